"""930 real definitions, imported, built, served, and read by the real clients."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.api_clients import CLIENT_LIBRARIES, ApiClient, ClientLibrary
from support.server import Server

pytestmark = pytest.mark.xdist_group("imported")


@pytest.fixture(params=CLIENT_LIBRARIES, ids=lambda kind: kind.name.replace(" ", "-"))
def client(request: pytest.FixtureRequest, imported: Server, tmp_path: Path) -> Iterator[ApiClient]:
    """Each real client, at work on that server."""
    kind: ClientLibrary = request.param
    if reason := kind.missing_reason():
        pytest.skip(f"{kind.name}: {reason}")
    client = ApiClient(kind, imported, tmp_path / "client.log")
    client.read_answer()
    yield client
    client.stop()


def test_every_tool_arrives(client: ApiClient, definitions: dict[str, Any]) -> None:
    """Page by page each of the 930 comes, once and in order, with the name, the words, the tags and
    the parameters that it came with.
    """
    items: list[Any] = []
    page: dict[str, Any] = {"limit": 100}
    while page:
        answer = client.call_ok("tools", page)
        items += answer["items"]
        page = {"cursor": answer["next_cursor"]} if answer["next_cursor"] else {}
    assert [item["slug"] for item in items] == sorted(definitions)
    for item in items:
        source = definitions[item["slug"]]
        assert (item["name"], item["description"]) == (source["name"], source["description"])
        assert item["tags"] == [*dict.fromkeys(source["tags"])]
        assert [*item["input_parameters"]] == [*source["input_parameters"]["properties"]]
        assert {name for name, group in item["input_parameters"].items() if group["required"]} == {
            *source["input_parameters"].get("required", ())
        }
        assert [*item["output_parameters"]] == [*source["output_parameters"]["properties"]]


def test_one_of_them(client: ApiClient, definitions: dict[str, Any]) -> None:
    """A single tool arrives as it does in the list, and filters reach it."""
    slug = "GOOGLEDRIVE_UPLOAD_FILE"
    tool = client.call_ok("tool", {"tool_slug": slug})
    assert tool["version"] == "00000000_00"
    assert tool["toolkit"]["slug"] == "googledrive"
    result = client.call_ok("tools", {"toolkit_slug": "googledrive", "limit": 1000})
    assert (
        len(result["items"])
        == result["total_items"]
        == sum(definition.startswith("GOOGLEDRIVE_") for definition in definitions)
    )
    assert tool in result["items"]
