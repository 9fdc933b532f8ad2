"""An opened snapshot: finds tools and hands out their bytes. No HTTP, no YAML, no rendering.

Opening reads every file once and holds it against the manifest, so a missing, half-written or damaged build is refused whole and a
server never touches the disk afterwards. Tool versions are numbered in order of slug and version; filters are sets of those
numbers, so a set in order is a page in slug order.

Serves: "Versions" and the parameters' rules of the decisions.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from pyroaring import BitMap

from toolcatalog import search, snapshot
from toolcatalog.errors import SnapshotError
from toolcatalog.versions import newest_at

IMPORTANT = "important"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The versions asked for: one for every toolkit (`everywhere`), and those of single toolkits, which go before it. None: newest."""

    everywhere: str | None = None
    toolkits: Mapping[str, str | None] = field(default_factory=dict)

    def of(self, toolkit: str) -> str | None:
        """The version at which this toolkit is asked for; None for the newest."""
        return self.toolkits.get(toolkit, self.everywhere)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a list of tools is narrowed to. An empty collection or text: no such filter; `toolkits` None: all of them."""

    toolkits: Collection[str] | None = None
    auth_configs: Collection[str] = ()
    tags: Collection[str] = ()
    scopes: Collection[str] = ()
    important: bool = False
    deprecated: bool = True
    query: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One tool version, as far as finding it needs."""

    slug: str
    version: str
    toolkit: str
    name: str
    tags: Sequence[str]
    scopes: Sequence[str]
    deprecated: bool


class Store:
    """The tools of one snapshot. Everything is read at the start; nothing changes later."""

    def __init__(self, digest: str, tree: snapshot.Tree) -> None:
        query = orjson.loads(tree[snapshot.TOOLS])
        self.digest = digest
        self.versions: Mapping[str, Sequence[str]] = query["toolkits"]
        self.sessions: Mapping[str, str] = query["sessions"]
        self.auth_configs: Mapping[str, Mapping[str, Any]] = query["auth_configs"]
        self._tree = tree
        self._rows = [Row(*row) for row in query["tools"]]
        self._postings = search.load(tree[snapshot.TEXT])
        self._of_tool: dict[str, list[int]] = {}
        self._of_toolkit: dict[str, dict[str, list[int]]] = {toolkit: {} for toolkit in self.versions}
        self._tagged: dict[str, BitMap] = {}
        self._scoped: dict[str, BitMap] = {}
        for number, row in enumerate(self._rows):
            self._of_tool.setdefault(row.slug, []).append(number)
            for names, sets in ((row.tags, self._tagged), (row.scopes, self._scoped)):
                for name in names:
                    sets.setdefault(name, BitMap()).add(number)
        for slug, numbers in self._of_tool.items():
            self._of_toolkit[self._rows[numbers[0]].toolkit][slug] = numbers
        self._deprecated = BitMap(number for number, row in enumerate(self._rows) if row.deprecated)
        self._at = lru_cache(maxsize=256)(self._toolkit_at)

    def toolkit_of(self, slug: str) -> str | None:
        """The toolkit of a tool, or None where there is no such tool."""
        numbers = self._of_tool.get(slug)
        return self._rows[numbers[0]].toolkit if numbers else None

    def tool_versions(self, slug: str) -> list[str]:
        """All versions of a tool, oldest first; empty where there is no such tool."""
        return [self._rows[number].version for number in self._of_tool.get(slug, ())]

    def version_at(self, slug: str, at: str | None) -> str | None:
        """The version of a tool in force at a version of its toolkit (None: the newest); None where it had none yet."""
        versions = self.tool_versions(slug)
        return versions[-1] if at is None else newest_at(versions, at)

    def tool(self, slug: str, version: str) -> bytes:
        """The document of one tool version that is there."""
        return self._tree[snapshot.tool_path(slug, version)]

    def session(self, id: str) -> bytes:
        """The answer for one session that is there."""
        return self._tree[snapshot.session_path(id)]

    def documents(self, numbers: Iterable[int]) -> list[bytes]:
        """The documents of tool versions, by number."""
        return [self.tool(self._rows[number].slug, self._rows[number].version) for number in numbers]

    def named(self, slugs: Iterable[str], pins: Pins, visible: Collection[str] | None) -> list[int]:
        """The numbers of the tools with these slugs, in this order, in force under the pins; unknown and unseen ones left out."""
        found = []
        for slug in slugs:
            toolkit = self.toolkit_of(slug)
            if toolkit is not None and (visible is None or toolkit in visible):
                version = self.version_at(slug, pins.of(toolkit))
                if version is not None:
                    found.append(self._of_tool[slug][self.tool_versions(slug).index(version)])
        return found

    def matching(self, filters: Filters, pins: Pins) -> tuple[BitMap, dict[int, float]]:
        """The numbers of the tools that pass all filters, and the score of each where there is a query."""
        found = self._in_force(pins, filters.toolkits)
        if filters.auth_configs:
            found &= BitMap.union(BitMap(), *(self._usable(self.auth_configs[id], found) for id in filters.auth_configs))
        for names, sets in ((filters.tags, self._tagged), (filters.scopes, self._scoped)):
            if names:
                found &= BitMap.union(BitMap(), *(sets[name] for name in names if name in sets))
        if filters.important:
            found &= self._tagged.get(IMPORTANT, BitMap())
        if not filters.deprecated:
            found -= self._deprecated
        if not filters.query:
            return found, {}
        scores = {number: score for number, score in search.scores(self._postings, filters.query).items() if number in found}
        return BitMap(scores), scores

    def ordered(self, found: BitMap, scores: Mapping[int, float], sort_by: str, descending: bool) -> list[int]:
        """The numbers in the order asked for; ties are broken by slug, which is the order of the numbers."""
        if sort_by == "slug":
            return [*reversed(found)] if descending else [*found]
        keys: dict[str, Callable[[int], Any]] = {
            "name": lambda number: self._rows[number].name,
            "version": lambda number: self._rows[number].version,
            "relevance": lambda number: scores.get(number, 0.0),
        }
        return sorted(found, key=keys[sort_by], reverse=descending)  # a stable sort keeps ties in slug order, reversed or not

    def similar(self, slug: str, visible: Collection[str] | None) -> list[str]:
        """A few slugs that share words with this one, most alike first: candidates for "did you mean"."""
        scores = search.scores(self._postings, slug.replace("-", "_"))
        best = sorted(scores, key=lambda number: (-scores[number], number))[:200]
        rows = [self._rows[number] for number in best]
        return [*dict.fromkeys(row.slug for row in rows if visible is None or row.toolkit in visible)]

    def _in_force(self, pins: Pins, toolkits: Collection[str] | None) -> BitMap:
        chosen = self.versions if toolkits is None else [toolkit for toolkit in toolkits if toolkit in self.versions]
        return BitMap.union(BitMap(), *(self._at(toolkit, pins.of(toolkit)) for toolkit in chosen))

    def _toolkit_at(self, toolkit: str, at: str | None) -> BitMap:
        """The toolkit at a version: of each of its tools the version in force."""
        found = BitMap()
        for numbers in self._of_toolkit[toolkit].values():
            version = numbers[-1] if at is None else self._newest_number(numbers, at)
            if version is not None:
                found.add(version)
        return found

    def _newest_number(self, numbers: list[int], at: str) -> int | None:
        version = newest_at([self._rows[number].version for number in numbers], at)
        return None if version is None else next(number for number in numbers if self._rows[number].version == version)

    def _usable(self, config: Mapping[str, Any], found: BitMap) -> BitMap:
        tools, scopes = config["tools"], config["scopes"]
        of_toolkit = (number for numbers in self._of_toolkit[config["toolkit"]].values() for number in numbers if number in found)
        rows = ((number, self._rows[number]) for number in of_toolkit)
        listed = ((number, row) for number, row in rows if tools is None or row.slug in tools)
        return BitMap(number for number, row in listed if scopes is None or {*row.scopes} <= {*scopes})


def open_build(build: Path) -> Store:
    """Open the snapshot that `build/current` names.

    Raises SnapshotError, with what to run, where there is none, or where it is not whole or not of this format.
    """
    try:
        folder = Path(os.path.realpath(build / "current"))  # once: it may move to a newer snapshot while this one is read
        manifest = orjson.loads((folder / snapshot.MANIFEST).read_bytes())
        if manifest["format"] != snapshot.FORMAT:
            raise SnapshotError(f"The build in {build} has format {manifest['format']}, this program reads {snapshot.FORMAT}: {_MEND}")
        tree = {path: (folder / path).read_bytes() for path in manifest["files"] if (folder / path).is_file()}
        wrong = snapshot.faults(manifest, tree)
    except FileNotFoundError:
        raise SnapshotError(f"There is no finished build in {build}: {_MEND}") from None
    except OSError as error:
        raise SnapshotError(f"The build in {build} cannot be read ({error.strerror}): mend its permissions, or {_MEND}") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise SnapshotError(f"The manifest of the build in {build} is damaged: {_MEND}") from None
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise SnapshotError(f"The build in {build} is damaged ({wrong[0]}{more}): {_MEND}")
    return Store(manifest["digest"], tree)


_MEND = "run `toolcatalog build`, or name another build with --build."
