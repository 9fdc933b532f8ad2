"""Toolkit list: the toolkits and categories of a catalog, as the API returns them.

A static catalog has no accounts, no triggers and no record of use. So those fields are null, empty
or zero; the dates are those of the oldest and the newest version, and the most used toolkits are
those with the most tools.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from toolcatalog.api.query_params import ToolkitListParams
from toolcatalog.store.store import Filters, Store, ToolkitInfo, VersionPins

JsonObject = dict[str, Any]


class _Entry(NamedTuple):
    """A toolkit of the list; `text` is what a search is compared with."""

    toolkit: ToolkitInfo
    tools_count: int
    is_deprecated: bool
    text: str


class ToolkitList:
    """The toolkits that a key may see; `visible_toolkits` None means all."""

    def __init__(self, store: Store, visible_toolkits: Collection[str] | None) -> None:
        self._store = store
        self._visible_toolkits = visible_toolkits

    @cached_property
    def _entries(self) -> Sequence[_Entry]:
        """All visible toolkits, sorted by name."""
        slugs = self._store.list_toolkits()
        if self._visible_toolkits is not None:
            slugs = [slug for slug in slugs if slug in self._visible_toolkits]
        toolkits = filter(None, map(self._store.get_toolkit, slugs))
        entries = [self._make_entry(toolkit) for toolkit in toolkits]
        return sorted(
            entries, key=lambda entry: (entry.toolkit.name.casefold(), entry.toolkit.slug)
        )

    def _make_entry(self, toolkit: ToolkitInfo) -> _Entry:
        tools, deprecated = self._store.count_tools(toolkit.slug)
        text = f"{toolkit.slug}\n{toolkit.name}\n{toolkit.description}".casefold()
        return _Entry(toolkit, tools, 0 < tools == deprecated, text)

    def select(self, params: ToolkitListParams) -> tuple[list[JsonObject], int]:
        """Return the toolkits on the requested page, and the total on all pages.

        A toolkit is deprecated if all its tools are.
        """
        matches = [entry for entry in self._entries if _is_match(entry, params)]
        if params.by_usage:
            matches.sort(key=lambda entry: -entry.tools_count)
        start, size = params.page.start, params.page.size
        return [_render_item(entry) for entry in matches[start : start + size]], len(matches)

    @cached_property
    def categories(self) -> Sequence[JsonObject]:
        """The categories of the visible toolkits, sorted by id."""
        ids = {category for entry in self._entries for category in entry.toolkit.categories}
        return _render_categories(sorted(ids), "id")

    def render_toolkit(self, toolkit: ToolkitInfo, version: str | None) -> JsonObject:
        """Return the document of a toolkit at one of its versions; None is the newest."""
        pins = VersionPins(toolkits={toolkit.slug: version})
        tools = self._store.search(Filters(toolkits=(toolkit.slug,)), pins)
        meta = _render_meta(toolkit, tools.total, "slug", version)
        return {
            **_render_common(toolkit),
            "enabled": True,
            "meta": {**meta, "available_versions": toolkit.versions},
            "deprecated": {
                "toolkitId": toolkit.slug,
                "rawProxyInfoByAuthSchemes": [],
                "getCurrentUserEndpoint": None,
            },
            "composio_managed_auth": [],
            "auth_config_details": [],
            "base_url": None,
            "get_current_user_endpoint": None,
            "get_current_user_endpoint_method": None,
        }


def _is_match(entry: _Entry, params: ToolkitListParams) -> bool:
    return (
        not params.only_custom
        and (params.include_deprecated or not entry.is_deprecated)
        and (params.category is None or params.category in entry.toolkit.categories)
        and all(word in entry.text for word in params.words)
    )


def _render_item(entry: _Entry) -> JsonObject:
    return {
        **_render_common(entry.toolkit),
        "meta": _render_meta(entry.toolkit, entry.tools_count, "id", None),
        "deprecated": {"toolkitId": entry.toolkit.slug},
        "auth_schemes": None,
        "no_auth": entry.toolkit.no_auth,
    }


def _render_common(toolkit: ToolkitInfo) -> JsonObject:
    """Return the fields that are the same in the list and in the document of a toolkit."""
    return {
        "slug": toolkit.slug,
        "name": toolkit.name,
        "type": "native",
        "is_local_toolkit": False,
        "auth_guide_url": None,
        "composio_managed_auth_schemes": [],
    }


def _render_meta(
    toolkit: ToolkitInfo, tools_count: int, category_key: str, version: str | None
) -> JsonObject:
    oldest, newest = (toolkit.versions[0], toolkit.versions[-1]) if toolkit.versions else ("", "")
    version = version or newest
    return {
        "description": toolkit.description,
        "logo": toolkit.logo,
        "app_url": toolkit.homepage or None,
        "categories": _render_categories(toolkit.categories, category_key),
        "tools_count": tools_count,
        "triggers_count": 0,
        "version": version,
        "created_at": _to_timestamp(oldest),
        "updated_at": _to_timestamp(version),
    }


def _render_categories(categories: Iterable[str], key: str) -> list[JsonObject]:
    """Return categories with their ids under `key`, and with readable names."""
    return [{key: id, "name": id.replace("-", " ").capitalize()} for id in categories]


def _to_timestamp(version: str) -> str:
    """Return the day of a version as an RFC 3339 time; empty without a version."""
    return f"{version[:4]}-{version[4:6]}-{version[6:8]}T00:00:00.000Z" if version else ""
