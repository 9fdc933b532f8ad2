"""The store: an opened snapshot that answers queries and returns documents.

It knows nothing of HTTP, YAML or rendering.

Opening reads the manifest, the indexes of the tables and the numeric columns, to verify them. All
files are mapped into memory, and their pages belong to the operating system. So a large catalog
opens quickly, several servers share one copy, and memory grows by only a byte or two per tool. All
data is verified before it is served: the sizes of all files and the checksums of the tables at
opening, and each document and entry when it is first read.

Tool versions are numbered by slug and version. Filters are sets of these numbers, so a sorted set
is a page in slug order.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pyroaring import BitMap

from toolcatalog import names
from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.search import topk
from toolcatalog.search.embeddings.encoder import QueryEncoder
from toolcatalog.search.embeddings.vectors import NO_NEIGHBORS, Neighbors, VectorIndex
from toolcatalog.search.index import vocabulary
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.search.index.vocabulary import Lookup
from toolcatalog.search.query import explain, query_expansion, ranking
from toolcatalog.search.query.candidates import Candidates
from toolcatalog.search.query.explain import Explanation
from toolcatalog.search.query.ranking import Labels, Ranking, SlugMatch
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import tables as snapshot_tables
from toolcatalog.snapshot.compressed_documents import CompressedDocuments
from toolcatalog.snapshot.mapped_files import Buffer
from toolcatalog.snapshot.tables import Table, ToolIds
from toolcatalog.store.documents import Documents
from toolcatalog.versions import newest_at

_ENTRY_CACHE_SIZE = 1 << 15  # cached tool entries, a few hundred bytes each
_SLUG_WORD = re.compile("[A-Za-z0-9]+")
_MAX_SLUG_WORDS = 10  # a query with more words is no slug
_AFTER_ANY_SLUG = "\x7f"  # sorts after all characters of slugs
# candidates for "did you mean" of an unknown slug, and how many of them before it and after it
_SIMILAR, _NEXT_SLUGS = 40, 5
_LOOKUPS = 256  # sets of toolkits with a cached vocabulary and tools: a few bytes per term
# cached sets, at most an eighth of a byte per tool each; more than one request may name
_SET_CACHE_SIZE = 2048
_TOOLKIT_CACHE_SIZE = (
    1 << 14
)  # cached toolkit sets; a tool is in only one of them, so together they are small

TABLES = (
    snapshot_format.TOOLS,
    snapshot_format.SETS,
    snapshot_format.FACTS,
    snapshot_format.WORDS,
    snapshot_format.VOCABULARIES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPins:
    """The requested versions: a default for all toolkits, and those of single toolkits.

    The latter take precedence. None means the newest version.
    """

    default: str | None = None
    toolkits: Mapping[str, str | None] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.default, frozenset(self.toolkits.items())))

    def for_toolkit(self, toolkit: str) -> str | None:
        """Return the requested version of this toolkit; None for the newest."""
        return self.toolkits.get(toolkit, self.default)


class Filters(NamedTuple):
    """The filters of a tool list.

    An empty collection or text means no filter; so does `toolkits` None.
    """

    toolkits: Collection[str] | None = None
    auth_configs: Collection[str] = ()
    tags: Collection[str] = ()
    scopes: Collection[str] = ()
    only_important: bool = False
    include_deprecated: bool = True
    query: str = ""


class Session(NamedTuple):
    """A session: the project that owns it, the toolkits it allows, and its response body."""

    project: str
    toolkits: list[str]
    answer: bytes


class ToolkitInfo(NamedTuple):
    """A toolkit: its texts, its categories and all versions of its tools, oldest first."""

    slug: str
    versions: list[str]
    name: str
    logo: str = ""
    description: str = ""
    categories: Sequence[str] = ()
    no_auth: bool = False
    homepage: str = ""


class ToolEntry(NamedTuple):
    """A tool: its toolkit, the id of its oldest version, and all versions, oldest first."""

    toolkit: str
    first_id: int
    versions: list[str]

    @property
    def id_range(self) -> tuple[int, int]:
        """The id of the oldest version, and the one after that of the newest."""
        return self.first_id, self.first_id + len(self.versions)

    def version_at(self, toolkit_version: str | None) -> str | None:
        """Return the effective version at a toolkit version (None: the newest).

        Returns None if the tool did not exist yet.
        """
        return (
            self.versions[-1]
            if toolkit_version is None
            else newest_at(self.versions, toolkit_version)
        )

    def tool_id(self, version: str) -> int:
        """Return the id of a version; raises ValueError if the tool does not have it."""
        return self.first_id + self.versions.index(version)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matching tools: those that pass the filters, or their ranking if there was a query."""

    matches: BitMap | ToolIds | Ranking

    @property
    def total(self) -> int:
        """The number of matching tools."""
        return self.matches.total if isinstance(self.matches, Ranking) else len(self.matches)

    @property
    def tool_ids(self) -> BitMap | ToolIds:
        """The ids of all matching tools, in ascending order.

        After a query in a large catalog, this takes much longer than the search.
        """
        if isinstance(self.matches, Ranking):
            return self.matches.load_all().tool_ids
        return self.matches

    @property
    def ranking(self) -> Ranking | None:
        """The ranking; None if there was no query."""
        return self.matches if isinstance(self.matches, Ranking) else None


class Store:
    """The tools of one snapshot; immutable."""

    def __init__(
        self,
        digest: str,
        data: Mapping[str, Buffer],
        tables: Mapping[str, Table],
        encode: QueryEncoder | None = None,
        compressed: CompressedDocuments | None = None,
    ) -> None:
        self.digest = digest
        self._columns = snapshot_tables.unpack_columns(memoryview(data[snapshot_format.NUMBERS]))
        self.version_count = len(self._columns["place"])  # number of tool versions
        documents = Documents(data[snapshot_format.DOCUMENTS], self._columns, compressed)
        self.read_document, self.read_documents = documents.read_document, documents.read_documents
        self.read_fragment, self.read_fragments = documents.read_fragment, documents.read_fragments
        self.read_tag = documents.read_tag
        self.document_sizes = documents.document_sizes
        self._tools, self._sets, self._facts, words, vocabularies = (
            tables[name] for name in TABLES
        )
        self._index = TextIndex(words, data, self.version_count)
        self._every_term = Lookup(self._index)
        self._limited = lru_cache(maxsize=_LOOKUPS)(
            partial(vocabulary.read, vocabularies, self._index)
        )
        self._has_vectors = snapshot_format.VECTORS in data
        self._encode = encode
        self._vector_index = (
            VectorIndex(data[snapshot_format.VECTORS], self.version_count)
            if self._has_vectors and encode
            else None
        )
        # the newest versions come before the older ones
        self._newest_ids = self._columns["number"][: len(self._tools)]
        self._load_entry = lru_cache(maxsize=_ENTRY_CACHE_SIZE)(partial(_read_entry, self._tools))
        self._load_set = lru_cache(maxsize=_SET_CACHE_SIZE)(
            partial(_read_set, self._sets, self.version_count)
        )
        self._load_toolkit_set = lru_cache(maxsize=_TOOLKIT_CACHE_SIZE)(
            partial(_read_set, self._sets, self.version_count)
        )
        self._load_replacement = lru_cache(maxsize=_ENTRY_CACHE_SIZE)(
            partial(_read_replacement, self._tools, self._facts, self._newest_ids)
        )
        self._load_visible = lru_cache(maxsize=_LOOKUPS)(
            partial(_read_members, self._load_toolkit_set)
        )
        self._every_version = lru_cache(maxsize=1)(partial(_read_all_versions, self._facts))
        self._load_effective_at = lru_cache(maxsize=64)(
            partial(_read_effective, self._columns["version"], self._newest_ids, self._facts)
        )

    # Single records

    def get_tool(self, slug: str) -> ToolEntry | None:
        """Return a tool; None if no tool has this slug."""
        return self._load_entry(slug) if len(slug) <= names.MAX_LENGTH else None

    def get_toolkit_versions(self, slug: str) -> list[str] | None:
        """Return all versions of a toolkit's tools, oldest first; None if it is unknown."""
        versions: list[str] | None = _read_fact(self._facts, f"toolkit {slug}")
        return versions

    def get_toolkit(self, slug: str) -> ToolkitInfo | None:
        """Return a toolkit; None if it is unknown.

        A snapshot of an older release has only its slug and its versions.
        """
        versions = self.get_toolkit_versions(slug)
        if versions is None:
            return None
        fields = _read_fact(self._facts, f"toolkit_info {slug}") or {}
        # a newer release may have written more fields
        supported = {name: fields[name] for name in ToolkitInfo._fields if name in fields}
        return ToolkitInfo(**{"name": slug, **supported, "slug": slug, "versions": versions})

    def get_mcp_server(self, toolkit: str) -> Mapping[str, Any] | None:
        """Return the MCP server that a toolkit names; None if there is none."""
        server: Mapping[str, Any] | None = _read_fact(self._facts, f"mcp_server {toolkit}")
        return server

    def list_mcp_toolkits(self) -> list[str]:
        """Return the slugs of the toolkits that name an MCP server."""
        return [name.partition(" ")[2] for name in _names_of_kind(self._facts, "mcp_server")]

    def count_tools(self, toolkit: str) -> tuple[int, int]:
        """Return the number of tools of a toolkit, and how many of them are deprecated."""
        tools = self._visible_newest([toolkit])
        deprecated = self._load_set(snapshot_format.DEPRECATED)
        return len(tools), tools.intersection_cardinality(deprecated)

    def all_versions(self) -> list[str]:
        """Return the versions of all toolkits, oldest first."""
        return self._every_version()

    def get_auth_config_toolkit(self, id: str) -> str | None:
        """Return the toolkit of an auth config; None if the config is unknown."""
        toolkit: str | None = _read_fact(self._facts, f"auth_config {id}")
        return toolkit

    def auth_configs(self, toolkit: str) -> list[str]:
        """Return the ids of the auth configs of a toolkit, sorted."""
        return _read_fact(self._facts, f"auth_configs {toolkit}") or []

    def get_session(self, id: str) -> Session | None:
        """Return a session; None if it is unknown."""
        entry = self._facts.get(f"session {id}")
        if entry is None:
            return None
        head, _, answer = entry.partition(b"\n")
        project, toolkits = orjson.loads(head)
        return Session(project, toolkits, answer)

    def nearby_names(self, kind: str, name: str, limit: int) -> list[str]:
        """Return toolkits or auth configs (`kind`) whose names sort next to this one.

        They are candidates for "did you mean": at most `limit` before it and `limit` after it.
        """
        position = self._facts.bisect(f"{kind} {name}")
        return [
            entry_name.partition(" ")[2]
            for entry_name in self._facts.names(position - limit, position + limit)
            if entry_name.startswith(f"{kind} ")
        ]

    # Listings

    def list_toolkits(self) -> list[str]:
        """Return the slugs of all toolkits, including those without tools."""
        return [name.partition(" ")[2] for name in _names_of_kind(self._facts, "toolkit")]

    def list_slugs(self, visible_toolkits: Collection[str] | None = None) -> list[str]:
        """Return the slugs of all tools of the visible toolkits (None: all), sorted."""
        slugs = self._tools.names(0, len(self._tools))
        if visible_toolkits is None:
            return slugs
        visible = _to_array(self._visible_newest(visible_toolkits))
        return [slugs[position] for position in np.searchsorted(self._newest_ids, visible)]

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions."""
        return [name.partition(" ")[2] for name in _names_of_kind(self._facts, "session")]

    def count_labels(self, kind: str) -> dict[str, int]:
        """Return each toolkit, tag or scope (`kind`) with the number of tools that have it.

        Only the newest version of each tool counts; unused ones are left out.
        """
        newest = self._load_set(snapshot_format.NEWEST)
        counts = {
            name.partition(" ")[2]: newest.intersection_cardinality(self._load_set(name))
            for name in _names_of_kind(self._sets, kind)
        }
        return {name: tools for name, tools in counts.items() if tools}

    # Searches

    def resolve_slugs(
        self, slugs: Iterable[str], pins: VersionPins, visible_toolkits: Collection[str] | None
    ) -> ToolIds:
        """Return the ids of the tools with these slugs, in this order, at their effective versions.

        Unknown tools and tools of toolkits that are not visible are left out.
        """
        tool_ids = []
        for slug in slugs:
            entry = self.get_tool(slug)
            if entry is not None and (
                visible_toolkits is None or entry.toolkit in visible_toolkits
            ):
                version = entry.version_at(pins.for_toolkit(entry.toolkit))
                if version is not None:
                    tool_ids.append(entry.tool_id(version))
        return np.array(tool_ids, np.uint32)

    def search(
        self, filters: Filters, pins: VersionPins, visible: Collection[str] | None = None
    ) -> SearchResult:
        """Return the tools that pass all filters, ranked if there is a query.

        Words that occur in no tool of the `visible` toolkits (None: all) are unknown.
        """
        tools = self._effective_versions(pins, filters.toolkits)
        for kind, selected in (
            ("auth_config", filters.auth_configs),
            ("tag", filters.tags),
            ("scope", filters.scopes),
        ):
            if selected:
                # each intersection is smaller than the set, so their union costs less
                tools = _union([tools & self._load_label(kind, name) for name in selected])
        if filters.only_important:
            tools = tools & self._load_set("tag important")
        if not filters.include_deprecated:
            tools = tools - self._load_set(snapshot_format.DEPRECATED)
        if filters.query:
            candidates = self._to_candidates(tools)
            return SearchResult(
                ranking.rank_tools(
                    self._lookup(visible),
                    filters.query,
                    candidates,
                    self._match_slugs(filters.query),
                    self._labels,
                    self._find_neighbors(filters.query, candidates),
                    self._find_replacements,
                )
            )
        return SearchResult(
            self._newest_ids if tools is self._load_set(snapshot_format.NEWEST) else tools
        )

    def _find_replacements(self, tool_ids: ToolIds) -> list[tuple[int, int]]:
        """Return the positions of the deprecated tools whose replacement is among these tools too.

        `tool_ids` are in ascending order.
        """
        positions: list[int] = []
        bounds: list[int] = []
        for position in self._labels.find_deprecated(tool_ids):
            id_range = self._load_replacement(int(tool_ids[position]))
            if id_range is not None:
                positions.append(position)
                bounds += id_range
        if not positions:
            return []
        limits = iter(tool_ids.searchsorted(np.array(bounds, np.uint32)).tolist())
        return [
            (position, replacement)
            for position, start, stop in zip(positions, limits, limits, strict=True)
            for replacement in range(start, stop)
        ]

    @cached_property
    def _labels(self) -> Labels:
        deprecated, important = (
            _to_array(self._load_set(name))
            for name in (snapshot_format.DEPRECATED, "tag important")
        )
        return Labels(deprecated, important, self.version_count)

    def _lookup(self, visible: Collection[str] | None) -> Lookup:
        return self._every_term if visible is None else self._limited(frozenset(visible))

    @property
    def has_semantic_search(self) -> bool:
        """Whether queries also match by meaning, which takes a few milliseconds more."""
        return self._encode is not None

    @property
    def is_model_missing(self) -> bool:
        """Whether the tools have vectors that cannot be used without a model for queries."""
        return self._has_vectors and not self._encode

    def _find_neighbors(self, query: str, candidates: Candidates) -> Neighbors:
        return (
            self._vector_index.find_nearest(self._encode(query), candidates.mask)
            if self._encode and self._vector_index
            else NO_NEIGHBORS
        )

    def explain(self, query: str, result: SearchResult, tool_id: int) -> Explanation:
        """Explain the rank of a tool that a query found and that was reranked."""
        assert result.ranking is not None
        return explain.explain_result(
            self._index,
            query,
            result.ranking,
            tool_id,
            orjson.loads(self.read_document(tool_id)[0]),
            self._match_slugs(query),
            self._labels,
            self._find_replacements(result.ranking.top_ids),
        )

    def correct_query(self, query: str, visible: Collection[str] | None = None) -> str:
        """Return the query with unknown words replaced by similar known words.

        Known words are those of the `visible` toolkits (None: all). Returns an empty text if
        nothing was replaced.
        """
        return query_expansion.correct_query(self._lookup(visible), query)

    def _match_slugs(self, query: str) -> list[SlugMatch]:
        """Return the tools whose slugs are the query or begin with it.

        Case and the separators between words are ignored.
        """
        if len(query) > names.MAX_LENGTH or len(_SLUG_WORD.findall(query)) > _MAX_SLUG_WORDS:
            return []
        matches, slug_like = [], "_" in query or query.isupper()
        for slug in {"_".join(_SLUG_WORD.findall(query)).upper(), query.strip().upper()}:
            if names.is_valid(names.TOOL_SLUG, slug):
                if entry := self.get_tool(slug):
                    matches.append(
                        SlugMatch(
                            slice(entry.first_id, entry.first_id + len(entry.versions)),
                            ranking.SLUG_BONUS,
                        )
                    )
                if prefix_range := self._ids_with_prefix(slug if slug_like else f"{slug}_"):
                    matches.append(SlugMatch(prefix_range, ranking.SLUG_PREFIX_BONUS))
        return matches

    def _ids_with_prefix(self, prefix: str) -> slice | None:
        """Return the ids of the tools whose slugs have this prefix; None if there are none."""
        first = self._tools.bisect(prefix)
        if not any(slug.startswith(prefix) for slug in self._tools.names(first, first + 1)):
            return None
        last = self._tools.bisect(prefix + _AFTER_ANY_SLUG)
        return slice(self._first_id_at(first), self._first_id_at(last))

    def _first_id_at(self, position: int) -> int:
        """Return the id of the oldest version of the tool at a position in slug order.

        After the last tool, it is the number of tool versions.
        """
        return (
            self.version_count
            if position == len(self._tools)
            else int.from_bytes(self._tools.entry_at(position)[1][:4], "little")
        )

    def _to_candidates(self, tool_ids: BitMap) -> Candidates:
        return (
            self._newest_candidates
            if tool_ids is self._load_set(snapshot_format.NEWEST)
            else Candidates(_to_array(tool_ids), self.version_count)
        )

    @cached_property
    def _newest_candidates(self) -> Candidates:
        return Candidates(self._newest_ids, self.version_count)

    def select_page(
        self, result: SearchResult, sort_by: str, descending: bool, start: int, size: int
    ) -> ToolIds:
        """Return the ids of one page of a result, in the requested order.

        Ties are broken by slug, which is the order of the ids.
        """
        total = result.total
        if start >= total:
            return np.zeros(0, np.uint32)
        if sort_by == "relevance" and result.ranking is not None:
            return _page_by_relevance(result.ranking, descending, start, start + size)
        numbers = result.tool_ids
        if sort_by == "slug" and descending:
            return _to_array(numbers[max(0, total - start - size) : total - start])[::-1]
        if sort_by in ("slug", "relevance"):
            return _to_array(numbers[start : start + size])
        all_numbers = _to_array(numbers)
        keys = self._columns[sort_by][all_numbers].astype(np.int64)
        return all_numbers[topk.sorted_slice(-keys if descending else keys, start, start + size)]

    def similar_slugs(self, slug: str, visible_toolkits: Collection[str] | None) -> list[str]:
        """Return the slugs of up to 40 visible tools that share most words with this slug.

        The next ones in slug order are among them. They are candidates for "did you mean";
        `visible_toolkits` None means all.
        """
        newest = self._visible_newest(visible_toolkits)
        query = "_".join(slug.replace("-", "_").split("_")[:_MAX_SLUG_WORDS])
        similar = ranking.find_similar_slugs(
            self._lookup(visible_toolkits),
            query,
            self._to_candidates(newest).mask,
            self._match_slugs(query),
            _SIMILAR - 2 * _NEXT_SLUGS,
        )
        # the newest versions of all tools are in slug order
        position = newest.range_cardinality(0, self._first_id_at(self._tools.bisect(slug)))
        following = newest[max(0, position - _NEXT_SLUGS) : position + _NEXT_SLUGS]
        numbers = np.union1d(similar, _to_array(following))
        return [
            self._tools.entry_at(position)[0]
            for position in self._newest_ids.searchsorted(numbers).tolist()
        ]

    # Sets

    def _load_label(self, kind: str, name: str) -> BitMap:
        """Return the tools with a label; the cache keeps only names that a label can have."""
        return self._load_set(f"{kind} {name}") if len(name) <= names.MAX_LENGTH else BitMap()

    def _visible_newest(self, toolkits: Collection[str] | None) -> BitMap:
        """Return the newest version of each visible tool (None: of all tools)."""
        newest = self._load_set(snapshot_format.NEWEST)
        return newest if toolkits is None else newest & self._load_visible(frozenset(toolkits))

    def _effective_versions(self, pins: VersionPins, toolkits: Collection[str] | None) -> BitMap:
        """Return the effective version of each tool of the toolkits (None: all) under the pins."""
        candidates = None if toolkits is None else frozenset(toolkits)
        pinned = [
            toolkit for toolkit in pins.toolkits if candidates is None or toolkit in candidates
        ]
        versions = self._effective_at(pins.default)
        if toolkits is not None:
            versions = versions & _read_members(self._load_toolkit_set, toolkits)
        if not pinned:
            return versions
        return self._apply_pins(versions, {toolkit: pins.toolkits[toolkit] for toolkit in pinned})

    def _effective_at(self, version: str | None) -> BitMap:
        return (
            self._load_set(snapshot_format.NEWEST)
            if version is None
            else self._load_effective_at(version)
        )

    def _apply_pins(self, versions: BitMap, pinned: Mapping[str, str | None]) -> BitMap:
        """Return the same set, with the tools of these toolkits at the toolkits' own pins.

        The cost depends only on the size of those toolkits.
        """
        all_versions = self._every_version()
        members = [
            _to_array(_read_members(self._load_toolkit_set, [toolkit])) for toolkit in pinned
        ]
        bounds = [
            len(all_versions) if version is None else bisect_right(all_versions, version)
            for version in pinned.values()
        ]
        numbers = np.concatenate(members)
        is_reached = self._columns["version"][numbers] < np.repeat(bounds, [*map(len, members)])
        effective = numbers[_select_effective(is_reached, self._newest_candidates.mask[numbers])]
        return (versions - BitMap(numbers)) | BitMap(effective)


# The cached functions take a table and not the store. A reference cycle would keep the files
# mapped after the store is no longer in use.


def _read_entry(tools: Table, slug: str) -> ToolEntry | None:
    match = tools.find(slug)
    if match is None:
        return None
    toolkit, versions = orjson.loads(match[1][4:])
    return ToolEntry(toolkit, int.from_bytes(match[1][:4], "little"), versions)


def _read_replacement(
    tools: Table, facts: Table, newest_ids: ToolIds, tool_id: int
) -> tuple[int, int] | None:
    """Return the range of ids of the tool that replaces a deprecated one; None without one."""
    place = int(newest_ids.searchsorted(np.uint32(tool_id)))  # another type copies the column
    (slug,) = tools.names(place, place + 1)
    successor = _read_entry(tools, _read_fact(facts, f"replacement {slug}") or "")
    return None if successor is None else successor.id_range


def _read_set(sets: Table, versions: int, name: str) -> BitMap:
    """Return a set of tool ids.

    Raises SnapshotError if an id is out of range: a few bytes can encode a set of all 32-bit
    numbers, and an array of those takes gigabytes.
    """
    data = sets.get(name)
    numbers = BitMap() if data is None else BitMap.deserialize(data)
    if numbers and numbers.max() >= versions:
        raise SnapshotError(f"A set of tools has other bytes than were written: {REBUILD_HINT}")
    return numbers


def _read_members(load_toolkit: Callable[[str], BitMap], toolkits: Iterable[str]) -> BitMap:
    """Return the ids of all versions of all tools of these toolkits."""
    return _union(
        [load_toolkit(f"toolkit {slug}") for slug in toolkits if len(slug) <= names.MAX_LENGTH]
    )


def _read_effective(
    version: NDArray[np.uint32], newest: ToolIds, facts: Table, at_version: str
) -> BitMap:
    """Return, for each tool, the newest version that is not newer than `at_version`.

    That is a version that is early enough, while the next one is not or does not exist.
    """
    is_reached = version < bisect_right(_read_all_versions(facts), at_version)
    effective = _select_effective(is_reached, _make_mask(newest, len(version)))
    return BitMap(np.flatnonzero(effective).astype(np.uint32))


def _select_effective(
    is_reached: NDArray[np.bool_], is_newest: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which versions are effective, from columns of some tools' versions in order.

    A version is effective if it is early enough and no later version of its tool is.
    """
    effective: NDArray[np.bool_] = is_reached & (is_newest | ~np.append(is_reached[1:], False))
    return effective


def _read_all_versions(facts: Table) -> list[str]:
    return _read_fact(facts, snapshot_format.ALL_VERSIONS) or []


def _read_fact(facts: Table, name: str) -> Any:
    data = facts.get(name)
    return None if data is None else orjson.loads(data)


def _names_of_kind(table: Table, kind: str) -> list[str]:
    """Return the names in a table that have this kind as prefix, sorted."""
    # `!` is the character after the space
    return table.names(table.bisect(f"{kind} "), table.bisect(f"{kind}!"))


def _union(sets: Sequence[BitMap]) -> BitMap:
    return BitMap.union(*sets) if sets else BitMap()


def _to_array(tool_ids: BitMap | ToolIds) -> ToolIds:
    if not isinstance(tool_ids, BitMap):
        return tool_ids
    return np.frombuffer(tool_ids.to_array(), np.uint32) if tool_ids else np.zeros(0, np.uint32)


def _make_mask(tool_ids: ToolIds, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, bool)
    mask[tool_ids] = True
    return mask


def _page_by_relevance(result: Ranking, descending: bool, start: int, stop: int) -> ToolIds:
    """Return the ids from `start` to `stop` in order of relevance.

    The reranked tools are before all others, or after them in ascending order.
    """
    sign = -1 if descending else 1
    best = result.top_ids[np.argsort(sign * result.top_scores, kind="stable")]
    other_count = result.total - len(best)
    # positions of the reranked tools in the whole order
    first, last = (0, len(best)) if descending else (other_count, other_count + len(best))
    best_page = best[max(start - first, 0) : max(stop - first, 0)]
    if (start >= first and stop <= last) or not other_count:
        return best_page
    skipped = len(best) if descending else 0  # number of tools before the others
    start, stop = max(start - skipped, 0), min(max(stop - skipped, 0), other_count)
    if start >= stop:
        return best_page
    tool_ids, scores = result.load_all()
    is_other = np.isin(tool_ids, best, assume_unique=True, invert=True)
    others_page = tool_ids[is_other][topk.sorted_slice(sign * scores[is_other], start, stop)]
    return np.concatenate([best_page, others_page] if descending else [others_page, best_page])
