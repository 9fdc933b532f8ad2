"""The path of a query at each server."""

import base64
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.workload import ToolQuery

_API = "/api/v3.1/tools"


def to_api_path(query: ToolQuery) -> str:
    """Return the path at our server, and at the plain service, which has the same paths."""
    if query.slug:
        return f"{_API}/{query.slug}"
    fields: dict[str, Any] = {"limit": query.size}
    if query.page > 1:
        fields["cursor"] = base64.b64encode(f"{query.page}:{query.size}".encode()).decode()
    if query.toolkits:
        fields["toolkit_slug"] = ",".join(query.toolkits)
    if query.tags:
        fields["tags"] = ",".join(query.tags)
    if query.exclude_deprecated:
        fields["include_deprecated"] = "false"
    if query.words:
        fields["query"] = query.words
    return f"{_API}?{urlencode(fields)}"


def to_datasette_path(query: ToolQuery) -> str:
    """Return the path at Datasette: without facets, suggestions, and counts.

    Lists page by the key before the page, and ranked queries by an offset.
    """
    if query.slug:
        return f"/tables/tools/{query.slug}.json?_shape=objects"
    if query.words:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(query.words.split()))
        skip = (query.page - 1) * query.size
        return f"/tables/search.json?_shape=array&q={quote(words)}&size={query.size}&skip={skip}"
    return f"/tables/tools.json?{urlencode(_datasette_fields(query))}"


def _datasette_fields(query: ToolQuery) -> dict[str, Any]:
    fields: dict[str, Any] = {"_shape": "array", "_size": query.size}
    fields |= {"_nofacet": 1, "_nosuggest": 1, "_nocount": 1}
    if query.after:
        fields["_next"] = query.after
    if query.toolkits:
        fields["toolkit__in"] = ",".join(query.toolkits)
    if query.tags:
        tags = ", ".join(f"'{tag}'" for tag in query.tags)
        condition = f"(select 1 from json_each(tags) where value in ({tags}))"  # noqa: S608
        fields["_where"] = f"exists {condition}"
    if query.exclude_deprecated:
        fields["is_deprecated"] = 0
    return fields


PATH_FORMATTERS: Mapping[str, Callable[[ToolQuery], str]] = {
    "ours": to_api_path,
    "fastapi": to_api_path,
    "datasette": to_datasette_path,
}
