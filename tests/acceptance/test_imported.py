"""930 real definitions, imported, built, served, and read by real clients."""

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


def test_all_imported_tools_are_listed(client: ApiClient, definitions: dict[str, Any]) -> None:
    """All 930 in order and once, with name, texts, tags and parameters."""
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


def test_single_tool_and_filters_work(client: ApiClient, definitions: dict[str, Any]) -> None:
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
