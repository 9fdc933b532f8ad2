"""Search data for the search in the browser.

The script needs the slug and name of every tool at once, the summary of a tool only when it is
shown, and tags and scopes only on the page of all tools. So these are separate files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import attrgetter

import orjson

from toolcatalog.encoding import dump_json, dump_json_compact
from toolcatalog.search.query import synonyms
from toolcatalog.site.lists import ToolRow, subject_tag
from toolcatalog.site.pages import TOOLS_PER_PAGE
from toolcatalog.snapshot.format import Toolkit
from toolcatalog.textutils import first_sentence

_WORD = re.compile(r"[^\W_]+")
_MAX_INDEXED_TEXT = 160  # characters of a description
_STOP_WORDS = (
    *("a", "an", "and", "are", "as", "at", "be", "by", "do", "for", "from", "has", "have", "in"),
    *("is", "it", "its", "not", "of", "on", "or", "that", "the", "this", "to", "use", "with"),
)
_FLAG_DIGITS = "0123456789abcdefghijklmnopqrstuv"  # five bits
_LABEL_CACHE_SIZE = 1 << 15  # label tuples: many tools have the same
# Tools per summary file, at most. No file has tools of two list pages.
SHARD_SIZE = TOOLS_PER_PAGE // 2


class SearchDataBuilder:
    """Collects the search data of all tools; as text, because there may be very many of them.

    `labels` are the sorted tags and scopes of the tools.
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
        self._texts: list[str] = []
        self._label_rows: dict[str, list[bytes]] = {kind: [] for kind in labels}

    def add_tools(self, tools: Sequence[ToolRow]) -> None:
        """Append the data of further tools, at least one."""
        self._slugs.append("\n".join(tool.slug for tool in tools))
        self._names.append("\n".join(" ".join(tool.name.split()) for tool in tools))
        self._flags.append("".join(map(_row_flags, tools)))
        self._texts.append("\n".join(map(_index_words, tools)))
        for kind, some in self._label_rows.items():
            some.append(b",".join(map(self._encode_numbers[kind], map(attrgetter(kind), tools))))

    def slugs(self) -> Iterator[str]:
        """Return an iterator over the slugs of all tools."""
        return chain.from_iterable(some.split("\n") for some in self._slugs)

    def render_search_data(
        self, toolkits: Sequence[tuple[Toolkit, int]], recent: Sequence[str]
    ) -> bytes:
        """Render `search-data.js`.

        `toolkits` have their number of tools; `recent` are the slugs of tools that changed last.
        """
        found = {
            "toolkits": [_describe_toolkit(*pair) for pair in toolkits],
            "slugs": "\n".join(self._slugs),
            "names": "\n".join(self._names),
            "flags": "".join(self._flags),
            "shard": SHARD_SIZE,
            "recent": recent,
            "synonyms": [*map(_list_synonyms, (synonyms.ACTIONS, synonyms.THINGS))],
        }
        return _render_call("toolcatalogData", dump_json(found))

    def render_words(self) -> bytes:
        """Render `search-words.js`: the words of each tool that are not in its name."""
        return _render_call("toolcatalogWords", dump_json("\n".join(self._texts)))

    def render_facets(self) -> bytes:
        """Render `facets.js`: the tags and scopes of each tool, as sorted label numbers."""
        found: dict[str, object] = {}
        for kind, labels in self._labels.items():
            found[kind] = labels
            found[f"tool_{kind}"] = orjson.Fragment(b"[%b]" % b",".join(self._label_rows[kind]))
        return _render_call("toolcatalogFacets", dump_json(found))


def _list_synonyms(table: str) -> str:
    """Return lines of the words that tools use, a colon, and the words that users say."""
    lines = synonyms.parse_table(table)
    return "\n".join(f"{' '.join(used)}:{' '.join(said)}" for used, said in lines)


def _encode_label_numbers(positions: Mapping[str, int], labels: tuple[str, ...]) -> bytes:
    """Return the numbers of a tool's labels as JSON."""
    return dump_json_compact(sorted(map(positions.__getitem__, labels)))


@lru_cache(maxsize=_LABEL_CACHE_SIZE)
def _encode_flags(deprecated: bool, tags: tuple[str, ...], no_auth: bool) -> str:
    bits = (
        deprecated,
        "important" in tags,
        bool(no_auth),
        "readOnlyHint" in tags,
        "destructiveHint" in tags,
    )
    return _FLAG_DIGITS[sum(bit << place for place, bit in enumerate(bits))]


def _row_flags(tool: ToolRow) -> str:
    return _encode_flags(tool.deprecation is not None, tool.tags, tool.no_auth)


def _describe_toolkit(toolkit: Toolkit, tool_count: int) -> list[object]:
    """Return slug, name, number of tools and, if there is one, the path of the logo."""
    fields = [toolkit.slug, toolkit.name, tool_count]
    return [*fields, toolkit.logo_file] if toolkit.logo_file else fields


def _index_words(tool: ToolRow) -> str:
    """Return the words of a tool's text that are not in its name: once each, in lower case."""
    text = " ".join((tool.description[:_MAX_INDEXED_TEXT], *tool.tags, *tool.scopes))
    words = dict.fromkeys(_WORD.findall(text.lower()))
    named = {*_WORD.findall(f"{tool.slug} {tool.name}".lower()), *_STOP_WORDS}
    return " ".join(word for word in words if word not in named)


def count_shards(tool_count: int) -> int:
    """Return the number of summary files for this number of tools."""
    return -(-tool_count // SHARD_SIZE)


def render_shard(index: int, tools: Sequence[ToolRow]) -> bytes:
    """Render `search/<index>.js`: the summaries of the tools from `index * SHARD_SIZE` on."""
    said = [first_sentence(tool.description) for tool in tools]
    return _render_call("toolcatalogShard", b"%d,%b" % (index, dump_json(said)))


def render_toolkit_tools(toolkit: Toolkit, tools: Sequence[ToolRow]) -> bytes:
    """Render `toolkits/<slug>/tools.js`: what the side navigation of its tools' pages shows."""
    groups = list(dict.fromkeys(map(subject_tag, tools)))
    numbers = {tag: number for number, tag in enumerate(groups)}
    data = {
        "slugs": "\n".join(tool.slug for tool in tools),
        "names": "\n".join(" ".join(tool.name.split()) for tool in tools),
        "flags": "".join(map(_row_flags, tools)),
        "groups": groups,
        "group": [numbers[subject_tag(tool)] for tool in tools],
    }
    return _render_call("toolcatalogToolkit", dump_json(toolkit.slug) + b"," + dump_json(data))


def shard_path(index: int) -> str:
    """Return the path of a shard in the site."""
    return f"search/{index}.js"


def _render_call(function: str, arguments: bytes) -> bytes:
    return b"%b(%b);\n" % (function.encode(), arguments)
