"""Search data for the search in the browser.

Of each tool the script needs slug and name at once, what it does only when it is shown, tags and
scopes only on the page of all tools.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import attrgetter

import orjson

from toolcatalog.encoding import dump_json, dump_json_compact
from toolcatalog.site.lists import ToolRow
from toolcatalog.site.pages import TOOLS_PER_PAGE
from toolcatalog.snapshot.format import Toolkit
from toolcatalog.textutils import first_sentence

_LABEL_CACHE_SIZE = 1 << 15  # tuples of labels, for many tools have the same
# tools whose summaries lie in one file, at most: those of a page of the list lie in files of their
# own
SHARD_SIZE = TOOLS_PER_PAGE // 2


class SearchDataBuilder:
    """What is told at once of all tools, put together as they go by: as text, for there may be very
    many of them.

    `labels` are the tags and the scopes, sorted, that tools have.
    """

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self._labels = labels
        places = {
            kind: {label: place for place, label in enumerate(some)}
            for kind, some in labels.items()
        }
        self._encode_numbers = {
            kind: lru_cache(maxsize=_LABEL_CACHE_SIZE)(partial(_encode_label_numbers, some))
            for kind, some in places.items()
        }
        self._slugs: list[str] = []
        self._names: list[str] = []
        self._flags: list[str] = []
        self._label_rows: dict[str, list[bytes]] = {kind: [] for kind in labels}

    def add_tools(self, tools: Sequence[ToolRow]) -> None:
        """Tools that come behind those before; at least one."""
        self._slugs.append("\n".join(tool.slug for tool in tools))
        self._names.append("\n".join(" ".join(tool.name.split()) for tool in tools))
        self._flags.append(
            "".join(
                [
                    _encode_flags(tool.deprecation is not None, tool.tags, tool.no_auth)
                    for tool in tools
                ]
            )
        )
        for kind, some in self._label_rows.items():
            some.append(b",".join(map(self._encode_numbers[kind], map(attrgetter(kind), tools))))

    def slugs(self) -> Iterator[str]:
        """The slugs of all tools."""
        return chain.from_iterable(some.split("\n") for some in self._slugs)

    def render_search_data(self, toolkits: Sequence[tuple[Toolkit, int]]) -> bytes:
        """`search-data.js`; of each toolkit it tells how many tools it has."""
        found = {
            "toolkits": [[toolkit.slug, toolkit.name, tools] for toolkit, tools in toolkits],
            "slugs": "\n".join(self._slugs),
            "names": "\n".join(self._names),
            "flags": "".join(self._flags),
            "shard": SHARD_SIZE,
        }
        return _render_call("toolcatalogData", dump_json(found))

    def render_facets(self) -> bytes:
        """`facets.js`: the tags and scopes of tools, by number; their order in a file says nothing
        here.
        """
        found: dict[str, object] = {}
        for kind, labels in self._labels.items():
            found[kind] = labels
            found[f"tool_{kind}"] = orjson.Fragment(b"[%b]" % b",".join(self._label_rows[kind]))
        return _render_call("toolcatalogFacets", dump_json(found))


def _encode_label_numbers(positions: Mapping[str, int], labels: tuple[str, ...]) -> bytes:
    """The labels of a tool by number, as JSON."""
    return dump_json_compact(sorted(map(positions.__getitem__, labels)))


@lru_cache(maxsize=_LABEL_CACHE_SIZE)
def _encode_flags(deprecated: bool, tags: tuple[str, ...], no_auth: bool) -> str:
    return f"{deprecated + 2 * ('important' in tags) + 4 * bool(no_auth):x}"


def count_shards(tool_count: int) -> int:
    """How many files the summaries of so many tools take."""
    return -(-tool_count // SHARD_SIZE)


def render_shard(index: int, tools: Sequence[ToolRow]) -> bytes:
    """`search/<n>.js`: what the tools from `number` times SHARD on do."""
    said = [first_sentence(tool.description) for tool in tools]
    return _render_call("toolcatalogShard", b"%d,%b" % (index, dump_json(said)))


def shard_path(index: int) -> str:
    """Where a shard lies in the site."""
    return f"search/{index}.js"


def _render_call(function: str, arguments: bytes) -> bytes:
    return b"%b(%b);\n" % (function.encode(), arguments)
