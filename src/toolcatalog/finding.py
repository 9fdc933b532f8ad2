"""What the search in the page looks in, as scripts that call a function of the site's own: so it works from disk too. Pure.

Of each tool the script needs slug and name at once, what it does only when it is shown, tags and scopes only on the page of all tools.

Serves: "from a data file loaded by `<script src>` so that `file://` works; descriptions in lazy shards".
"""

from collections.abc import Sequence

from toolcatalog.entries import Row, summary
from toolcatalog.pages import OfToolkit
from toolcatalog.snapshot import dump

SHARD = 500  # tools whose summaries lie in one file


def data(toolkits: Sequence[OfToolkit]) -> bytes:
    """`search-data.js`."""
    tools = [tool for _, some in toolkits for tool in some]
    found = {
        "toolkits": [[toolkit.slug, toolkit.name, len(some)] for toolkit, some in toolkits],
        "slugs": "\n".join(tool.slug for tool in tools),
        "names": "\n".join(" ".join(tool.name.split()) for tool in tools),
        "flags": "".join(f"{_flags(tool):x}" for tool in tools),
        "shard": SHARD,
    }
    return _call("toolcatalogData", dump(found))


def _flags(tool: Row) -> int:
    return (tool.deprecation is not None) + 2 * ("important" in tool.tags) + 4 * bool(tool.no_auth)


def shards(tools: int) -> int:
    """How many files the summaries of so many tools take."""
    return -(-tools // SHARD)


def shard(number: int, tools: Sequence[Row]) -> bytes:
    """`search/<n>.js`: what the tools from `number` times SHARD on do."""
    said = [summary(tool.description) for tool in tools]
    return _call("toolcatalogShard", b"%d,%b" % (number, dump(said)))


def shard_path(number: int) -> str:
    """Where a shard lies in the site."""
    return f"search/{number}.js"


def facets(toolkits: Sequence[OfToolkit]) -> bytes:
    """`facets.js`: the tags and scopes of tools, by number; their order in a file says nothing here."""
    tools = [tool for _, some in toolkits for tool in some]
    found = {}
    for kind in ("tags", "scopes"):
        labels = sorted({label for tool in tools for label in getattr(tool, kind)})
        places = {label: place for place, label in enumerate(labels)}
        found[kind] = labels
        found[f"tool_{kind}"] = [sorted(places[label] for label in getattr(tool, kind)) for tool in tools]
    return _call("toolcatalogFacets", dump(found))


def _call(function: str, arguments: bytes) -> bytes:
    return b"%b(%b);\n" % (function.encode(), arguments)
