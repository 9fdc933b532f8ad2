"""What there is to build, and what of it is in the cache: the first step of a build, and the only
one where nothing has changed.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from toolcatalog import batches, memory, signatures, tree
from toolcatalog.batches import Known, Task
from toolcatalog.crew import Crew
from toolcatalog.errors import Problem
from toolcatalog.memory import Memory, SiteMemory
from toolcatalog.progress import Track


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a build reads and writes; `site` None: no pages; `vectors`: tools get them; `words`:
    all are counted.
    """

    catalog: Path
    out: Path
    site: Path | None
    vectors: bool = False
    words: bool = True

    @property
    def cache(self) -> Path:
        """Where parts and memories lie."""
        return self.out / ".cache"

    def absolute(self) -> "Places":
        """The same, told so that processes that work in other folders find them."""
        return replace(
            self,
            catalog=self.catalog.absolute(),
            out=self.out.absolute(),
            site=self.site and self.site.absolute(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The files that are not tools', the folders of tools, and what cannot be read."""

    paths: Sequence[str]
    folders: Sequence[str]
    unreadable: Sequence[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A catalog as it is found: the SHA-256 of each file that is not a tool's, and the tools in
    batches.

    `known` says of each batch what is in the cache, None where it must be compiled; `site` what is
    as the last build has left it.
    """

    others: Mapping[str, str]
    tasks: Sequence[Task]
    known: list[Known | None]
    site: SiteMemory
    unreadable: Sequence[Problem]
    program: str

    @property
    def heads(self) -> Mapping[str, str]:
        """The SHA-256 of each toolkit's file."""
        return _heads(self.others)

    @property
    def made_from(self) -> str:
        """The digest of all that a snapshot is made from; empty where something cannot be read, or
        must be compiled first.
        """
        sure = not self.unreadable and all(self.others.values()) and all(self.known)
        return (
            ""
            if not sure
            else made_from(self.program, self.others, [one for one in self.known if one])
        )


def made_from(program: str, others: Mapping[str, str], known: Sequence[Known]) -> str:
    """The digest of all that a snapshot is made from."""
    return hashlib.sha256(
        json.dumps([program, sorted(others.items()), [one.key for one in known]]).encode()
    ).hexdigest()


def outline(catalog: Path) -> Outline:
    """What there is. Raises UsageError where there is no such folder."""
    paths, folders, unreadable = tree.outline(catalog)
    return Outline(paths=paths, folders=folders, unreadable=unreadable)


def look(
    places: Places, outline: Outline, before: Memory, program: str, crew: Crew, track: Track
) -> Looked:
    """Find out what of the catalog has changed since the build before; `program` is the digest of
    this one.
    """
    others = {path: tree.digest(places.catalog, path) for path in outline.paths}
    heads = _heads(others)
    tasks = [
        _task(places, program, batch, heads, before) for batch in batches.batches(outline.folders)
    ]
    known: list[Known | None] = []
    if (places.cache / "parts").exists():
        found = crew.each(batches.looked, tasks)
        with track("Looking for changes", len(tasks)) as advance:
            for one in found:
                known.append(one)
                advance(1)
    else:
        known = [None] * len(tasks)
    # what was known before is said once more in `known`
    forgotten = [replace(task, known=batches.NOTHING) for task in tasks]
    return Looked(
        others=others,
        tasks=forgotten,
        known=known,
        site=SiteMemory(),
        unreadable=outline.unreadable,
        program=program,
    )


def site(places: Places, program: str, crew: Crew) -> Callable[[], SiteMemory]:
    """Begin to look at the site; call what comes back for the groups of pages that are as they were
    left, all of them or not.
    """
    return (
        SiteMemory
        if places.site is None
        else partial(_noted, crew.beside(partial(_left, places, program)), places, program)
    )


def _noted(left: Callable[[], Sequence[str]], places: Places, program: str) -> SiteMemory:
    """What is known of the groups that are left. It is read here too, which is sooner done than
    sent from one process to another.
    """
    assert places.site
    noted = memory.load_site(places.cache, places.site, program)
    return noted.only(left())


def _left(places: Places, program: str) -> list[str]:
    """The digests of the groups whose files are as they were left."""
    assert places.site
    noted = memory.site_groups(places.cache, places.site, program)
    return [
        digest for digest, group in noted if signatures.is_left(places.site, memory.state_of(group))
    ]


def _heads(others: Mapping[str, str]) -> dict[str, str]:
    return {toolkit: digest for path, digest in others.items() if (toolkit := _toolkit(path))}


def _toolkit(path: str) -> str:
    """The toolkit that is described at a path; empty where none is."""
    match path.split("/"):
        case ["toolkits", toolkit, "toolkit.yaml"]:
            return toolkit
    return ""


def _task(
    places: Places, program: str, batch: tuple[str, ...], heads: Mapping[str, str], before: Memory
) -> Task:
    its_heads = {toolkit: heads.get(toolkit, "") for toolkit in batches.toolkits_of(batch)}
    known = before.known(batch, its_heads)
    return Task(
        root=places.catalog,
        cache=places.cache,
        program=program,
        vectors=places.vectors,
        words=places.words,
        folders=batch,
        heads=its_heads,
        toolkits={},
        known=known,
    )
