"""MCP registry: the MCP servers that toolkits name, as the registry API (v0.1) returns them.

A server has one version, the one in the toolkit's file. Its dates are those of the oldest and the
newest version of its toolkit.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from toolcatalog.api.error_responses import ErrorDetail
from toolcatalog.api.query_params import ServerListParams, encode_cursor
from toolcatalog.names import MAX_LENGTH, find_nearest
from toolcatalog.store.store import Store, ToolkitInfo
from toolcatalog.textutils import first_sentence
from toolcatalog.versions import LATEST

JsonObject = dict[str, Any]

SCHEMA_URL = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_OFFICIAL = "io.modelcontextprotocol.registry/official"  # the key under which hosts look
_MAX_TEXT_LENGTH = 100  # characters of a title or a description
_MAX_ICON_LENGTH = 255  # characters of its URL
_LIST_FIX = "List all of them with GET /v0.1/servers."
_DEFAULT_TRANSPORT = "streamable-http"


class RegistryEntry(NamedTuple):
    """A server of the registry, as it is returned; `updated` is None if its toolkit has no date."""

    name: str
    version: str
    updated: datetime | None
    value: JsonObject

    def has_version(self, version: str | None) -> bool:
        """Return whether a requested version (None: any) is that of this server."""
        return version in (None, LATEST, self.version)


class McpRegistry:
    """The MCP servers of the toolkits that a key may see; `visible_toolkits` None means all."""

    def __init__(self, store: Store, visible_toolkits: Collection[str] | None) -> None:
        self._store = store
        self._visible_toolkits = visible_toolkits

    @cached_property
    def _entries(self) -> Mapping[str, RegistryEntry]:
        """All visible servers by name, sorted."""
        entries = []
        for slug in self._store.list_mcp_toolkits():
            toolkit, server = self._store.get_toolkit(slug), self._store.get_mcp_server(slug)
            if toolkit and server and self._is_visible(slug):
                tools, deprecated = self._store.count_tools(slug)
                entries.append(_make_entry(toolkit, server, 0 < tools == deprecated))
        return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}

    def _is_visible(self, toolkit: str) -> bool:
        return self._visible_toolkits is None or toolkit in self._visible_toolkits

    @property
    def entries(self) -> Sequence[RegistryEntry]:
        """All visible servers, sorted by name."""
        return [*self._entries.values()]

    def find(self, name: str, version: str | None = None) -> RegistryEntry | ErrorDetail:
        """Return the server with this name and version (None: any), or an error."""
        entry = self._entries.get(name)
        if entry is None:
            line = f"server_name: there is no MCP server {name[:80]}."
            nearest = find_nearest(name[:MAX_LENGTH], [*self._entries])
            fix = f"Did you mean {nearest[0]}?" if nearest else _LIST_FIX
            return ErrorDetail(404, "server_not_found", line, fix)
        if not entry.has_version(version):
            line = f"version: MCP server {name} has no version {str(version)[:80]}."
            fix = f"Use latest, or {entry.version}."
            return ErrorDetail(404, "server_version_not_found", line, fix)
        return entry

    def render_page(self, params: ServerListParams) -> JsonObject:
        """Return the requested page of the list, with the cursor of the next one."""
        matches = [entry for entry in self.entries if _is_match(entry, params)]
        number, size = params.page
        start = params.page.start
        has_more = start + size < len(matches)
        cursor = encode_cursor(number + 1, size).decode() if has_more else ""
        return render_list(matches[start : start + size], cursor)


def render_list(entries: Sequence[RegistryEntry], next_cursor: str = "") -> JsonObject:
    """Return a list of servers; `next_cursor` is empty on the last page."""
    metadata: JsonObject = {"count": len(entries)}
    if next_cursor:
        metadata["nextCursor"] = next_cursor
    return {"servers": [entry.value for entry in entries], "metadata": metadata}


def _is_match(entry: RegistryEntry, params: ServerListParams) -> bool:
    return (
        params.search in entry.name.casefold()
        and entry.has_version(params.version)
        and (
            params.updated_since is None
            or (entry.updated is not None and entry.updated >= params.updated_since)
        )
    )


def _make_entry(
    toolkit: ToolkitInfo, server: Mapping[str, Any], is_deprecated: bool
) -> RegistryEntry:
    official: JsonObject = {"status": "deprecated" if is_deprecated else "active"}
    days = [_to_day(version) for version in (toolkit.versions[:1] + toolkit.versions[-1:])]
    for key, day in zip(("publishedAt", "updatedAt"), days, strict=False):
        if day:
            official[key] = day.isoformat().replace("+00:00", "Z")
    value = {
        "server": _render_server(toolkit, server),
        "_meta": {_OFFICIAL: {**official, "isLatest": True}},
    }
    return RegistryEntry(server["name"], server["version"], days[-1] if days else None, value)


def _render_server(toolkit: ToolkitInfo, server: Mapping[str, Any]) -> JsonObject:
    """Return a server in the format of `server.json`."""
    value = {
        "$schema": SCHEMA_URL,
        "name": server["name"],
        "title": _shorten(toolkit.name),
        "description": _shorten(first_sentence(toolkit.description) or toolkit.name),
        "version": server["version"],
    }
    if toolkit.homepage:
        value["websiteUrl"] = toolkit.homepage
    if 0 < len(toolkit.logo) <= _MAX_ICON_LENGTH:
        value["icons"] = [{"src": toolkit.logo}]
    if package := server.get("package"):
        value["packages"] = [_render_package(package, server["version"])]
    if url := server.get("url"):
        value["remotes"] = [{"type": server.get("transport", _DEFAULT_TRANSPORT), "url": url}]
    return value


def _render_package(package: Mapping[str, Any], version: str) -> JsonObject:
    """Return a package that is started on standard input and output.

    The identifier of an image contains its version.
    """
    versioned = {} if package["registry"] == "oci" else {"version": version}
    if "version" in package:
        versioned["version"] = package["version"]
    return {
        "registryType": package["registry"],
        "identifier": package["identifier"],
        **versioned,
        "transport": {"type": "stdio"},
    }


def _shorten(text: str) -> str:
    """Return a text on one line, cut after a word if it is too long."""
    line = " ".join(text.split())
    if len(line) <= _MAX_TEXT_LENGTH:
        return line
    cut = line[: _MAX_TEXT_LENGTH - 3]
    return f"{cut.rpartition(' ')[0] or cut}..."


def _to_day(version: str) -> datetime | None:
    """Return the day of a version; None if its digits are not a date."""
    try:
        return datetime(int(version[:4]), int(version[4:6]), int(version[6:8]), tzinfo=UTC)
    except ValueError:
        return None
