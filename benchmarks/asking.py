"""A plain client, for everything that is asked before and after the load: is the answer right, how
large is it, what is its ETag.
"""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_PAGE_SIZE = 1000
_TIMEOUT = 300  # seconds that one answer may take


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its status, body, ETag, and how long it took, in seconds."""

    status: int
    body: bytes
    etag: str
    seconds: float


class Client:
    """A connection to a server that stays open."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT)
        self.headers = {**headers}

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for one path."""
        begin = time.perf_counter()
        self.connection.request("GET", path, headers={**self.headers, **headers})
        answer = self.connection.getresponse()
        body = answer.read()
        return Answer(
            answer.status, body, answer.headers.get("etag", ""), time.perf_counter() - begin
        )


def extract_slugs(body: bytes) -> list[str]:
    """The tools in an answer, whoever gave it: one tool, a page, or rows of a table."""
    value = json.loads(body)
    found = value if isinstance(value, list) else value.get("items", value.get("rows", [value]))
    return [tool["slug"] for tool in found]


def export_tools(client: Client, rows: Path) -> None:
    """Write the newest version of every tool, as our server answers it, into a file: a tool's JSON
    on each line, in order of slug.
    """
    part = rows.with_suffix(".part")
    with part.open("wb") as sink:
        for page in _pages(client):
            sink.writelines(
                json.dumps(tool, separators=(",", ":")).encode() + b"\n" for tool in page
            )
    part.rename(rows)


def _pages(client: Client) -> Iterator[list[object]]:
    path: str | None = f"/api/v3/tools?limit={_PAGE_SIZE}"
    while path:
        page = json.loads(client.get(path).body)
        yield page["items"]
        path = (
            f"/api/v3/tools?limit={_PAGE_SIZE}&cursor={page['next_cursor']}"
            if page["next_cursor"]
            else None
        )
