"""The toolkits, categories and slugs of the API.

The files of the shipped catalog say what each answer must contain.
"""

from typing import Any

import httpx
import pytest

from support.api_clients import ApiClient
from support.paths import SHIPPED_CATALOG
from support.reference_model import ReferenceModel, read_yaml
from support.server import Server

pytestmark = pytest.mark.xdist_group("clients")

TOOLKITS = {
    path.parent.name: read_yaml(path)
    for path in sorted(SHIPPED_CATALOG.glob("toolkits/*/toolkit.yaml"))
}
BY_NAME = sorted(TOOLKITS, key=lambda slug: (TOOLKITS[slug]["name"].casefold(), slug))


def slugs(page: Any) -> list[str]:
    return [item["slug"] for item in page["items"]]


def tool_counts(catalog: ReferenceModel) -> dict[str, int]:
    counts = dict.fromkeys(TOOLKITS, 0)
    for versions in catalog.tools.values():
        counts[versions[-1].toolkit] += 1
    return counts


def test_list_has_every_toolkit(client: ApiClient, catalog: ReferenceModel) -> None:
    """With texts, number of tools and dates."""
    page = client.call_ok("toolkits", {"limit": 1000})
    assert (page["total_items"], page["total_pages"], page["current_page"]) == (len(TOOLKITS), 1, 1)
    assert page["next_cursor"] is None
    assert slugs(page) == BY_NAME
    for item in page["items"]:
        toolkit, versions = TOOLKITS[item["slug"]], catalog.toolkits[item["slug"]]
        assert item["name"] == toolkit["name"]
        assert item["no_auth"] is toolkit.get("no_auth", False)
        assert item["deprecated"] == {"toolkitId": item["slug"]}
        meta = item["meta"]
        assert meta["description"] == toolkit["description"]
        assert meta["logo"] == toolkit.get("logo", "")
        assert meta["app_url"] == toolkit.get("homepage")
        assert [category["id"] for category in meta["categories"]] == toolkit["categories"]
        assert meta["tools_count"] == tool_counts(catalog)[item["slug"]]
        assert meta["version"] == versions[-1]
        days = [meta[name][:10].replace("-", "") for name in ("created_at", "updated_at")]
        assert days == [versions[0][:8], versions[-1][:8]]


def test_pages_have_each_toolkit_once(client: ApiClient) -> None:
    listed_slugs, cursor = list[str](), dict[str, str]()
    while True:
        page = client.call_ok("toolkits", {"limit": 2, **cursor})
        listed_slugs += slugs(page)
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert listed_slugs == BY_NAME


def test_filter_by_category(client: ApiClient) -> None:
    """An unknown category matches nothing."""
    expected = [slug for slug in BY_NAME if "developer-tools" in TOOLKITS[slug]["categories"]]
    assert expected
    assert slugs(client.call_ok("toolkits", {"category": "developer-tools"})) == expected
    assert client.call_ok("toolkits", {"category": "nothing"})["items"] == []


@pytest.mark.parametrize("search", ["GitHub", "hub CODE", "github"])
def test_search(client: ApiClient, search: str) -> None:
    """All words must occur in slug, name or description, in any case."""
    assert "github" in slugs(client.call_ok("toolkits", {"search": search}))
    assert client.call_ok("toolkits", {"search": f"{search} zymurgy"})["total_items"] == 0


def test_sort_by_usage(client: ApiClient, catalog: ReferenceModel) -> None:
    """A toolkit with more tools comes first."""
    counts = tool_counts(catalog)
    result = slugs(client.call_ok("toolkits", {"sort_by": "usage", "limit": 1000}))
    assert result == sorted(BY_NAME, key=lambda slug: -counts[slug])


@pytest.mark.parametrize(
    ("managed_by", "count"), [("all", len(TOOLKITS)), ("composio", len(TOOLKITS)), ("project", 0)]
)
def test_managed_by(client: ApiClient, managed_by: str, count: int) -> None:
    """No toolkit of a catalog belongs to a project."""
    assert client.call_ok("toolkits", {"managed_by": managed_by})["total_items"] == count


def test_get_toolkit(client: ApiClient, catalog: ReferenceModel) -> None:
    """With texts and all versions; `version` selects one."""
    for slug, toolkit in TOOLKITS.items():
        result = client.call_ok("toolkit", {"slug": slug})
        versions = catalog.toolkits[slug]
        assert (result["slug"], result["name"]) == (slug, toolkit["name"])
        assert (result["enabled"], result["is_local_toolkit"]) == (True, False)
        meta = result["meta"]
        assert [category["slug"] for category in meta["categories"]] == toolkit["categories"]
        assert (meta["available_versions"], meta["version"]) == (versions, versions[-1])
        assert meta["tools_count"] == tool_counts(catalog)[slug]
        for version in versions:
            meta = client.call_ok("toolkit", {"slug": slug, "version": version})["meta"]
            effective = [
                tool
                for tool in catalog.tools.values()
                if tool[0].toolkit == slug and tool[0].version <= version
            ]
            assert (meta["version"], meta["tools_count"]) == (version, len(effective))


@pytest.mark.parametrize(
    ("args", "slug", "fix"),
    [
        ({"slug": "githup"}, "toolkit_not_found", "Did you mean github?"),
        (
            {"slug": "github", "version": "19990101_00"},
            "toolkit_version_not_found",
            "Use latest, or one of ",
        ),
    ],
)
def test_unknown_toolkit_is_404(client: ApiClient, args: Any, slug: str, fix: str) -> None:
    """Or an unknown version, with a hint."""
    answer = client.call("toolkit", args)
    assert (answer["status"], answer["error"]) == (404, "NotFoundError")
    error = answer["body"]["error"]
    assert error["slug"] == slug
    assert error["suggested_fix"].startswith(fix)


def test_categories(client: ApiClient) -> None:
    """Each once, sorted by id, with a readable name."""
    expected = sorted({name for toolkit in TOOLKITS.values() for name in toolkit["categories"]})
    page = client.call_ok("categories")
    assert [item["id"] for item in page["items"]] == expected[:20]
    assert page["total_items"] == len(expected)
    assert all(item["name"][0].isupper() and "-" not in item["name"] for item in page["items"])


def test_slugs_are_sorted(client: ApiClient, catalog: ReferenceModel) -> None:
    assert client.call_ok("slugs") == sorted(catalog.tools)


def test_limited_key_sees_its_toolkits(
    client: ApiClient,
    keys: dict[str, str | None],
    visible_toolkits: tuple[str, ...],
    catalog: ReferenceModel,
) -> None:
    key = keys["limited"]
    assert set(slugs(client.call_ok("toolkits", key=key))) == set(visible_toolkits)
    visible = {category for slug in visible_toolkits for category in TOOLKITS[slug]["categories"]}
    page = client.call_ok("categories", key=key)
    assert {item["id"] for item in page["items"]} == visible
    assert client.call_ok("slugs", key=key) == sorted(
        slug for slug, versions in catalog.tools.items() if versions[-1].toolkit in visible_toolkits
    )
    hidden = next(slug for slug in TOOLKITS if slug not in visible_toolkits)
    assert client.call("toolkit", {"slug": hidden}, key=key)["status"] == 404


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("sort_by=size", "sort_by: 'size' is not one of usage, alphabetically."),
        ("managed_by=me", "managed_by: 'me' is not one of composio, all, project."),
        ("limit=0", "limit: '0' is not a whole number from 1."),
        ("search=" + "x" * 4001, "search: 4001 characters, at most 4000 are allowed."),
    ],
)
def test_invalid_parameter_is_400(shipped: Server, query: str, message: str) -> None:
    """The error lists allowed values."""
    answer = httpx.get(f"{shipped.url}/api/v3/toolkits?{query}", headers={"x-api-key": shipped.key})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    "path", ["/toolkits", "/toolkits/github", "/toolkits/categories", "/tools/enum"]
)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_conditional_request(shipped: Server, path: str, coding: str) -> None:
    """Both prefixes have the same ETag per coding, and answer 304."""
    headers = {"x-api-key": shipped.key, "accept-encoding": coding}
    first = httpx.get(f"{shipped.url}/api/v3{path}", headers=headers)
    second = httpx.get(f"{shipped.url}/api/v3.1{path}", headers=headers)
    assert first.status_code == 200
    assert (first.json(), first.headers["etag"]) == (second.json(), second.headers["etag"])
    headers["if-none-match"] = first.headers["etag"]
    assert httpx.get(f"{shipped.url}/api/v3{path}", headers=headers).status_code == 304
