"""Read the metrics of a server."""

import re

import httpx
from prometheus_client.parser import text_string_to_metric_families as families

from support.server import Server, wait_until

TOOL, LIST = "/api/v3/tools/GITHUB_CREATE_ISSUE", "/api/v3.1/tools"

Sample = tuple[str, frozenset[tuple[str, str]]]


def samples(text: str) -> dict[Sample, float]:
    """All samples, by name and labels."""
    return {
        (item.name, frozenset(item.labels.items())): item.value
        for family in families(text)
        for item in family.samples
    }


def sample(name: str, **labels: str) -> Sample:
    return f"toolcatalog_{name}", frozenset(labels.items())


def where(server: Server) -> str:
    """The address of the metrics, where they have one of their own."""
    line = re.compile(r"Metrics at (http://\S+/metrics)\.")
    wait_until(lambda: line.search(server.log.read_text()) is not None)
    (address,) = line.findall(server.log.read_text())
    return str(address)


def scrape(url: str) -> dict[Sample, float]:
    response = httpx.get(url)
    assert response.status_code == 200
    return samples(response.text)
