"""An opened snapshot: finds tools and hands out their bytes. No HTTP, no YAML, no rendering.

Nothing is read at opening but the manifest and the heads of the tables: the files are mapped into
memory, where their pages belong to the operating system. So opening takes as long for a million
tools as for a hundred, several servers share one copy, and nothing here grows with the catalog but
a byte or two for each tool. What is served is still never taken on trust: the sizes of all files
and the checksums of the tables are checked at opening, and each document and entry when it is first
read.

Tool versions are numbered by slug and version; filters are sets of those numbers, so a set in order
is a page in slug order.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pyroaring import BitMap

from toolcatalog import columns, lookup, names, picking, ranking, snapshot
from toolcatalog.documents import Documents
from toolcatalog.errors import MEND, SnapshotError
from toolcatalog.lookup import Lookup
from toolcatalog.nearness import NOTHING, Encode, Near, Nearness
from toolcatalog.postings import Numbers, Postings
from toolcatalog.ranking import Ranked, Typed
from toolcatalog.table import Data, Table
from toolcatalog.versions import newest_at

if TYPE_CHECKING:
    from toolcatalog.explaining import Explanation

_ENTRIES = 1 << 15  # of tools that are remembered: some hundred bytes each
_WORD = re.compile("[A-Za-z0-9]+")
_WORDS = 10  # of a query that may be a slug
_LAST = "\x7f"  # sorts behind whatever a slug may hold
_SIMILAR = 50  # slugs that may be meant where there is no tool of a slug
_QUERIES = 256  # whose vectors are remembered: some kilobytes each
_LOOKUPS = 256  # sets of toolkits that keys are limited to: a few bytes for each term
_SETS = 512  # opened at a time: each takes at most an eighth of a byte for each tool
_TOOLKITS = 1 << 14  # the same of toolkits: a tool is in one only, so together they are small

TABLES = (
    snapshot.TOOLS,
    snapshot.SETS,
    snapshot.FACTS,
    snapshot.WORDS,
    snapshot.VOCABULARIES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The versions asked for: one for every toolkit (`everywhere`), and those of single toolkits,
    which go before it. None: newest.
    """

    everywhere: str | None = None
    toolkits: Mapping[str, str | None] = field(default_factory=dict)

    def of(self, toolkit: str) -> str | None:
        """The version at which this toolkit is asked for; None for the newest."""
        return self.toolkits.get(toolkit, self.everywhere)


class Filters(NamedTuple):
    """What a list of tools is narrowed to. An empty collection or text: no such filter; `toolkits`
    None: all of them.
    """

    toolkits: Collection[str] | None = None
    auth_configs: Collection[str] = ()
    tags: Collection[str] = ()
    scopes: Collection[str] = ()
    important: bool = False
    deprecated: bool = True
    query: str = ""


class Session(NamedTuple):
    """A session: the project that owns it, the toolkits that it allows, and its answer."""

    project: str
    toolkits: list[str]
    answer: bytes


class Entry(NamedTuple):
    """A tool: its toolkit, the number of its oldest version, and all versions, oldest first."""

    toolkit: str
    first: int
    versions: list[str]

    def at(self, version: str | None) -> str | None:
        """The version in force at a version of the toolkit (None: the newest); None where the tool
        had none yet.
        """
        return self.versions[-1] if version is None else newest_at(self.versions, version)

    def number(self, version: str) -> int:
        """The number of a version that is there."""
        return self.first + self.versions.index(version)


@dataclass(frozen=True, slots=True)
class Found:
    """The tools that a list question finds: their numbers, smallest first, and their ranking where
    there was a query.
    """

    numbers: BitMap | Numbers
    ranked: Ranked | None = None


class Store:
    """The tools of one snapshot. Nothing changes after the opening."""

    def __init__(
        self,
        digest: str,
        data: Mapping[str, Data],
        tables: Mapping[str, Table],
        encode: Encode | None = None,
    ) -> None:
        self.digest = digest
        self._columns = columns.unpack(memoryview(data[snapshot.NUMBERS]))
        self.versions = len(self._columns["place"])  # how many tool versions there are
        held = Documents(data[snapshot.DOCUMENTS], self._columns)
        self.document, self.documents, self.sizes = held.document, held.documents, held.sizes
        self._tools, self._sets, self._facts, words, vocabularies = (
            tables[name] for name in TABLES
        )
        self._postings = Postings(words, data, self.versions)
        self._every_term = Lookup(self._postings)
        self._limited = lru_cache(maxsize=_LOOKUPS)(
            partial(lookup.read, vocabularies, self._postings)
        )
        self._has_vectors = snapshot.VECTORS in data
        self._encode = encode and lru_cache(maxsize=_QUERIES)(encode)
        self._nearness = (
            Nearness(data[snapshot.VECTORS], self.versions) if self._has_vectors else None
        )
        # the newest documents go before the older ones
        self._newest = self._columns["number"][: len(self._tools)]
        self._tool = lru_cache(maxsize=_ENTRIES)(partial(_read_tool, self._tools))
        self._set = lru_cache(maxsize=_SETS)(partial(_read_set, self._sets, self.versions))
        self._toolkit_set = lru_cache(maxsize=_TOOLKITS)(
            partial(_read_set, self._sets, self.versions)
        )
        self._every_version = lru_cache(maxsize=1)(partial(_every_version, self._facts))
        self._in_force_at = lru_cache(maxsize=64)(
            partial(_read_in_force, self._columns["version"], self._newest, self._facts)
        )

    # Single things

    def tool(self, slug: str) -> Entry | None:
        """A tool; None where there is none of this slug."""
        return self._tool(slug) if len(slug) <= names.LONGEST else None

    def toolkit(self, slug: str) -> list[str] | None:
        """All versions of a toolkit's tools, oldest first; None where there is no such toolkit."""
        versions: list[str] | None = _fact(self._facts, f"toolkit {slug}")
        return versions

    def every_version(self) -> list[str]:
        """The versions of all toolkits, oldest first."""
        return self._every_version()

    def auth_config(self, id: str) -> str | None:
        """The toolkit of an auth config; None where there is no such config."""
        toolkit: str | None = _fact(self._facts, f"auth_config {id}")
        return toolkit

    def auth_configs(self, toolkit: str) -> list[str]:
        """The ids of the auth configs of a toolkit, sorted."""
        return _fact(self._facts, f"auth_configs {toolkit}") or []

    def session(self, id: str) -> Session | None:
        """A session; None where there is no such session."""
        found = self._facts.get(f"session {id}")
        if found is None:
            return None
        about, _, answer = found.partition(b"\n")
        project, toolkits = orjson.loads(about)
        return Session(project, toolkits, answer)

    def names_near(self, kind: str, name: str, most: int) -> list[str]:
        """The toolkits or auth configs (`kind`) whose names sort nearest to this one: candidates
        for "did you mean".
        """
        place = self._facts.place(f"{kind} {name}")
        return [
            found.partition(" ")[2]
            for found in self._facts.names(place - most, place + most)
            if found.startswith(f"{kind} ")
        ]

    # What there is in all

    def toolkits(self) -> list[str]:
        """The slugs of all toolkits, also of those without tools."""
        return [name.partition(" ")[2] for name in _kind(self._facts, "toolkit")]

    def sessions(self) -> list[str]:
        """The ids of all sessions."""
        return [name.partition(" ")[2] for name in _kind(self._facts, "session")]

    def labels(self, kind: str) -> dict[str, int]:
        """Each toolkit, tag or scope (`kind`) that a tool has, with the number of tools that have
        it in their newest version.
        """
        newest = self._set(snapshot.NEWEST)
        found = {
            name.partition(" ")[2]: newest.intersection_cardinality(self._set(name))
            for name in _kind(self._sets, kind)
        }
        return {name: tools for name, tools in found.items() if tools}

    # Lists

    def named(self, slugs: Iterable[str], pins: Pins, visible: Collection[str] | None) -> Numbers:
        """The numbers of the tools with these slugs, in this order, in force under the pins;
        unknown and unseen ones left out.
        """
        found = []
        for slug in slugs:
            entry = self.tool(slug)
            if entry is not None and (visible is None or entry.toolkit in visible):
                version = entry.at(pins.of(entry.toolkit))
                if version is not None:
                    found.append(entry.number(version))
        return np.array(found, np.uint32)

    def matching(
        self, filters: Filters, pins: Pins, visible: Collection[str] | None = None
    ) -> Found:
        """The tools that pass all filters, and their ranking where there is a query. Words that
        stand in no tool of the `visible` toolkits (None: all) are unknown.
        """
        found = self._in_force(pins, filters.toolkits)
        for kind, wanted in (
            ("auth_config", filters.auth_configs),
            ("tag", filters.tags),
            ("scope", filters.scopes),
        ):
            if wanted:
                found = found & _union([self._set(f"{kind} {name}") for name in wanted])
        if filters.important:
            found = found & self._set("tag important")
        if not filters.deprecated:
            found = found - self._set(snapshot.DEPRECATED)
        if filters.query:
            among = self._mask(found)
            near = self._near(filters.query, among)
            ranked = ranking.rank(
                self._lookup(visible), filters.query, among, self._typed(filters.query), near
            )
            return Found(ranked.numbers, ranked)
        return Found(self._newest if found is self._set(snapshot.NEWEST) else found)

    def _lookup(self, visible: Collection[str] | None) -> Lookup:
        return self._every_term if visible is None else self._limited(frozenset(visible))

    @property
    def knows_meaning(self) -> bool:
        """Whether queries find by meaning too. Then the first answer to each takes some
        milliseconds, nearly all of them for `encode`.
        """
        return self._encode is not None

    @property
    def lacks_model(self) -> bool:
        """Whether the tools have vectors that cannot be used, for want of what makes a query's."""
        return self._has_vectors and not self._encode

    def encode(self, query: str) -> None:
        """Find out what a query means, and remember it for a while. May be called in any thread."""
        if self._encode:
            self._encode(query)

    def _near(self, query: str, among: NDArray[np.bool_]) -> Near:
        return (
            self._nearness.nearest(self._encode(query), among)
            if self._encode and self._nearness
            else NOTHING
        )

    def explain(self, query: str, found: Found, number: int) -> "Explanation":
        """Why a tool that a query found, and that was looked at closely, stands where it does."""
        from toolcatalog import explaining  # noqa: PLC0415 - it takes a while to load, and a server never needs it

        assert found.ranked is not None
        return explaining.explain(
            self._postings,
            query,
            found.ranked,
            number,
            orjson.loads(self.document(number)[0]),
            self._typed(query),
        )

    def corrected(self, query: str, visible: Collection[str] | None = None) -> str:
        """The query with unknown words replaced by known ones like them, from the tools of the
        `visible` toolkits (None: all); empty where there is none to replace.
        """
        return ranking.corrected(self._lookup(visible), query)

    def _typed(self, query: str) -> list[Typed]:
        """The tools whose slugs are the query, or begin with it, in whatever case and with whatever
        between their words.
        """
        if len(query) > names.LONGEST or len(_WORD.findall(query)) > _WORDS:
            return []
        found, slug_like = [], "_" in query or query.isupper()
        for slug in {"_".join(_WORD.findall(query)).upper(), query.strip().upper()}:
            if names.fits(names.TOOL_SLUG, slug):
                if entry := self.tool(slug):
                    found.append(
                        Typed(slice(entry.first, entry.first + len(entry.versions)), ranking.SLUG)
                    )
                if some := self._beginning(slug if slug_like else f"{slug}_"):
                    found.append(Typed(some, ranking.BEGINNING))
        return found

    def _beginning(self, start: str) -> slice | None:
        """The numbers of the tools whose slugs begin so; None where there is none."""
        first = self._tools.place(start)
        if not any(slug.startswith(start) for slug in self._tools.names(first, first + 1)):
            return None
        last = self._tools.place(start + _LAST)
        return slice(self._first_of(first), self._first_of(last))

    def _first_of(self, place: int) -> int:
        """The number of the oldest version of the tool at a place in the order of slugs; behind the
        last one, how many there are.
        """
        return (
            self.versions
            if place == len(self._tools)
            else int.from_bytes(self._tools.at(place)[1][:4], "little")
        )

    def _mask(self, found: BitMap) -> NDArray[np.bool_]:
        """The same set as a column, by number."""
        return (
            self._is_newest
            if found is self._set(snapshot.NEWEST)
            else _mask(_array(found), self.versions)
        )

    @cached_property
    def _is_newest(self) -> NDArray[np.bool_]:
        return _mask(self._newest, self.versions)

    def page(self, found: Found, sort_by: str, descending: bool, start: int, size: int) -> Numbers:
        """The numbers on one page of what was found, in the order asked for; ties are broken by
        slug, which is the order of the numbers.
        """
        numbers, total = found.numbers, len(found.numbers)
        if start >= total:
            return np.zeros(0, np.uint32)
        if sort_by == "relevance" and found.ranked is not None:
            return _by_relevance(found.ranked, descending, start, start + size)
        if sort_by == "slug" and descending:
            return _array(numbers[max(0, total - start - size) : total - start])[::-1]
        if sort_by in ("slug", "relevance"):
            return _array(numbers[start : start + size])
        every = _array(numbers)
        keys = self._columns[sort_by][every].astype(np.int64)
        return every[picking.ordered(-keys if descending else keys, start, start + size)]

    def similar(self, slug: str, visible: Collection[str] | None) -> list[str]:
        """The slugs of a few tools of the `visible` toolkits (None: all) that share most words
        with this slug: candidates for "did you mean".
        """
        among = self._mask(self._in_force(Pins(), visible))
        query = slug.replace("-", "_")
        numbers = ranking.sharing(self._lookup(visible), query, among, self._typed(query), _SIMILAR)
        # the newest versions of all tools are in the order of their slugs
        return [self._tools.at(place)[0] for place in self._newest.searchsorted(numbers).tolist()]

    # Sets

    def _in_force(self, pins: Pins, toolkits: Collection[str] | None) -> BitMap:
        """Of each tool of the toolkits (None: of all) the version in force under the pins."""
        pinned = [toolkit for toolkit in pins.toolkits if toolkits is None or toolkit in toolkits]
        found = self._at(pins.everywhere)
        if toolkits is not None:
            found = found & _union([self._of_toolkit(toolkit) for toolkit in toolkits])
        if not pinned:
            return found
        return self._repinned(found, {toolkit: pins.toolkits[toolkit] for toolkit in pinned})

    def _at(self, at: str | None) -> BitMap:
        return self._set(snapshot.NEWEST) if at is None else self._in_force_at(at)

    def _repinned(self, found: BitMap, pinned: Mapping[str, str | None]) -> BitMap:
        """The same set, but of these toolkits the tools that are in force at versions of their own.
        It costs no more than those toolkits are large.
        """
        every = self._every_version()
        members = [_array(self._of_toolkit(toolkit)) for toolkit in pinned]
        bounds = [len(every) if at is None else bisect_right(every, at) for at in pinned.values()]
        numbers = np.concatenate(members)
        early = self._columns["version"][numbers] < np.repeat(bounds, [*map(len, members)])
        in_force = numbers[_in_force(early, self._is_newest[numbers])]
        return (found - BitMap(numbers)) | BitMap(in_force)

    def _of_toolkit(self, toolkit: str) -> BitMap:
        return (
            self._toolkit_set(f"toolkit {toolkit}") if len(toolkit) <= names.LONGEST else BitMap()
        )


# Remembered are answers of functions that know a table and not the store: so nothing refers to
# itself, and files are mapped while in use.


def _read_tool(tools: Table, slug: str) -> Entry | None:
    found = tools.find(slug)
    if found is None:
        return None
    toolkit, versions = orjson.loads(found[1][4:])
    return Entry(toolkit, int.from_bytes(found[1][:4], "little"), versions)


def _read_set(sets: Table, versions: int, name: str) -> BitMap:
    """A set of numbers. Raises SnapshotError where a number is that of no tool version: a few bytes
    can name all numbers that there are, and an array of those takes gigabytes.
    """
    found = sets.get(name)
    numbers = BitMap() if found is None else BitMap.deserialize(found)
    if numbers and numbers.max() >= versions:
        raise SnapshotError(f"A set of tools has other bytes than were written: {MEND}")
    return numbers


def _read_in_force(version: NDArray[np.uint32], newest: Numbers, facts: Table, at: str) -> BitMap:
    """Of each tool the newest version not newer than `at`: one that is not too new, while the next
    one is or there is none.
    """
    early = version < bisect_right(_every_version(facts), at)
    in_force = _in_force(early, _mask(newest, len(version)))
    return BitMap(np.flatnonzero(in_force).astype(np.uint32))


def _in_force(early: NDArray[np.bool_], is_newest: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of all versions of some tools, in order, those that are in force, by which are early enough
    and which are the newest of their tool.
    """
    in_force: NDArray[np.bool_] = early & (is_newest | ~np.append(early[1:], False))
    return in_force


def _every_version(facts: Table) -> list[str]:
    return _fact(facts, snapshot.EVERY_VERSION) or []


def _fact(facts: Table, name: str) -> Any:
    found = facts.get(name)
    return None if found is None else orjson.loads(found)


def _kind(table: Table, kind: str) -> list[str]:
    """The names in a table that have a kind before them, sorted."""
    # of all that may follow a kind, `!` sorts next to the blank
    return table.names(table.place(f"{kind} "), table.place(f"{kind}!"))


def _union(sets: Sequence[BitMap]) -> BitMap:
    return BitMap.union(*sets) if sets else BitMap()


def _array(numbers: BitMap | Numbers) -> Numbers:
    if not isinstance(numbers, BitMap):
        return numbers
    return np.frombuffer(numbers.to_array(), np.uint32) if numbers else np.zeros(0, np.uint32)


def _mask(numbers: Numbers, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, bool)
    mask[numbers] = True
    return mask


def _by_relevance(ranked: Ranked, descending: bool, start: int, stop: int) -> Numbers:
    """The numbers from one place in the order of relevance to another: those looked at closely are
    before, or behind, all others.
    """
    sign = -1 if descending else 1
    best = ranked.best[np.argsort(sign * ranked.best_scores, kind="stable")]
    others = len(ranked.numbers) - len(best)
    # places of the best
    first, last = (0, len(best)) if descending else (others, others + len(best))
    near = best[max(start - first, 0) : max(stop - first, 0)]
    if (start >= first and stop <= last) or not others:
        return near
    rest = np.isin(ranked.numbers, best, assume_unique=True, invert=True)
    before = len(best) if descending else 0  # of the others
    start, stop = max(start - before, 0), min(max(stop - before, 0), others)
    far = (
        ranked.numbers[rest][picking.ordered(sign * ranked.scores[rest], start, stop)]
        if start < stop
        else best[:0]
    )
    return np.concatenate([near, far] if descending else [far, near])
