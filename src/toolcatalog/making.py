"""What a build does where something has changed: compile it, check the whole, and make snapshot and
site of it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

from toolcatalog import (
    compiling,
    groups,
    inspecting,
    looking,
    memory,
    merging,
    model,
    overview,
    pages,
    parts,
    publishing,
    resolve,
    site,
)
from toolcatalog.assembling import Assembly
from toolcatalog.batches import Task
from toolcatalog.crew import Crew, give_back
from toolcatalog.errors import InvalidCatalog
from toolcatalog.groups import Group, Index
from toolcatalog.inspecting import Gathered
from toolcatalog.looking import Looked, Places
from toolcatalog.memory import Memory
from toolcatalog.pages import MetaTool
from toolcatalog.progress import Track
from toolcatalog.publishing import Built
from toolcatalog.site import Staged
from toolcatalog.snapshot import Contents


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A catalog without problems: its contents, its tools as tasks whose parts are in the cache,
    and how many there are.
    """

    contents: Contents
    tasks: Sequence[Task]
    made_from: str
    meta_tools: tuple[MetaTool, ...]
    tools: Mapping[str, int]  # tools of each toolkit
    versions: Mapping[str, int]  # tool versions of each toolkit
    # of each toolkit the tools that have several versions, with those
    several: Mapping[str, Mapping[str, Sequence[str]]]
    # the tags and the scopes that tools have in their newest versions, sorted
    labels: Mapping[str, Sequence[str]]


def make(
    places: Places, looked: Looked, before: Memory, crew: Crew, track: Track, may_lose: int
) -> Built:
    """Make snapshot and site. Raises InvalidCatalog with all problems, ShrunkCatalog, UsageError,
    OSError or BrokenExecutor.
    """
    if places.site and not looked.site.groups:
        site.generated(places.site)  # a folder of somebody else's is refused before the long work
        pages.prepare()  # for all the processes that make pages; of a few pages most is not needed
    crew.stand_by(len(looked.tasks))
    sound, words = _begun(places, looked, before, crew, track)
    # Should this build be killed, the next one need not compile again.
    memory.save(places.cache, looked.program, looked.heads, memory.batches(sound.tasks, before))
    # before the site: its pages go out as they are written
    publishing.keep_most(places.out, sum(sound.tools.values()), may_lose)
    if len(sound.tasks) > merging.MANY:
        sound = _lighter(sound)
        looked.known.clear()  # it has the same at length, and who has called this holds on to it
        give_back()
    if words:
        words.begin()
        assembly = Assembly(publishing.beside(places.out), sound.contents)
        _assemble(assembly, sound, track)
        # while the words are written
        staged = _staged(places, sound, assembly.folder, looked, crew, track)
        assembly.take(words.folder, words.files(sound.tasks))
        digest = _sealed(assembly, sound)
    else:
        digest = before.digest
        staged = _staged(places, sound, places.out / "snapshots" / digest, looked, crew, track)
    # all that can fail for what the catalog says has been done
    count = _put(places, sound, looked, staged, crew) if staged else 0
    changed = publishing.point(places.out, digest)
    stamp = publishing.stamp_of(places.out / "snapshots" / digest)
    memory.save_made(places.cache, looked.program, sound.made_from, digest, stamp)
    parts.keep(places.cache, {task.known.key for task in sound.tasks})
    kept = staged.kept if staged else 0
    return publishing.built(places.out, digest, changed=changed, pages=count, kept=kept)


def _begun(
    places: Places, looked: Looked, before: Memory, crew: Crew, track: Track
) -> tuple[Sound, merging.Words | None]:
    """The catalog, compiled and found sound, and the words of a new snapshot on their way; None
    where there is one of the same.
    """
    gathered, words = inspecting.gather(places, looked, crew, track), None
    made_from = looking.made_from(
        looked.program, looked.others, [task.known for task in gathered.tasks]
    )
    is_made = before.made_from == made_from and publishing.is_left(
        places.out, before.digest, before.stamp
    )
    if not (is_made or gathered.broken):
        words = merging.Words(places, looked.program, gathered.tasks, crew)
    return _checked(places, looked, gathered, made_from, crew, track), words


def _lighter(sound: Sound) -> Sound:
    """The same with less in memory: pages are told by the names of files, and what else is known of
    those has been noted.
    """
    return replace(
        sound, tasks=[replace(task, known=task.known.names_only) for task in sound.tasks]
    )


def _checked(
    places: Places, looked: Looked, gathered: Gathered, made_from: str, crew: Crew, track: Track
) -> Sound:
    """Hold the whole catalog against the rules."""
    checked = inspecting.inspect(places, looked, gathered, crew, track, ("error",))
    if checked.problems:
        raise InvalidCatalog(checked.problems, checked.files)
    return Sound(
        contents=resolve.resolve(checked.catalog),
        tasks=gathered.tasks,
        made_from=made_from,
        tools=Counter(
            toolkit
            for (toolkit, _), _ in groupby(checked.catalog.tools, attrgetter("toolkit", "slug"))
        ),
        versions=Counter(tool.toolkit for tool in checked.catalog.tools),
        meta_tools=_meta_tools(checked.catalog),
        several=_several(checked.catalog),
        labels=_labels(checked.catalog),
    )


def _assemble(assembly: Assembly, sound: Sound, track: Track) -> None:
    """Write all of the snapshot but the words."""
    with track("Writing the snapshot", len(sound.tasks)) as advance:
        parts_of = (
            compiling.part_of(task, "facts", "newest", "older", "rows") for task in sound.tasks
        )
        assembly.tools(parts_of, sound.versions, advance)
    assembly.rest()
    if len(sound.tasks) > merging.MANY:
        give_back()


def _sealed(assembly: Assembly, sound: Sound) -> str:
    """Seal the snapshot and put it in its place: its digest."""
    counts = {
        "toolkits": len(sound.contents.toolkits),
        "tools": sum(sound.tools.values()),
        "tool_versions": sum(sound.versions.values()),
        "sessions": len(sound.contents.sessions),
    }
    digest = assembly.seal(counts)
    publishing.place(assembly.folder, digest, assembly.files)
    return digest


def _staged(
    places: Places, sound: Sound, folder: Path, looked: Looked, crew: Crew, track: Track
) -> Staged | None:
    """The pages that are to change, rendered from the snapshot in a folder; None where no site is
    wanted.
    """
    if places.site is None:
        return None
    return site.stage(places.site, _groups(sound, folder, looked.program), looked.site, crew, track)


def _put(places: Places, sound: Sound, looked: Looked, staged: Staged, crew: Crew) -> int:
    """Put the pages in their places: how many the site has."""
    memory.forget_site(places.cache, staged.site)
    now = site.put(staged, crew)
    return memory.save_site(places.cache, staged.site, looked.program, sound.made_from, now)


def _groups(sound: Sound, folder: Path, program: str) -> list[Group]:
    about, toolkits = sound.contents.about, sound.contents.toolkits
    indexes = [Index(toolkit, folder) for toolkit in toolkits]
    found: list[Group] = [
        overview.Whole(
            program=program,
            made_from=sound.made_from,
            about=about,
            indexes=indexes,
            meta_tools=sound.meta_tools,
            versions=sound.several,
            tools=sound.tools,
            labels=sound.labels,
        ),
    ]
    for index in indexes:
        slug = index.toolkit.slug
        tasks = [task for task in sound.tasks if slug in task.heads]
        found.append(
            groups.Kit(
                program=program,
                about=about,
                index=index,
                tasks=tasks,
                versions={slug: sound.several[slug]},
            )
        )
    by_slug = {toolkit.slug: toolkit for toolkit in toolkits}
    found += [
        groups.Tools(task=task, about=about, toolkits={slug: by_slug[slug] for slug in task.heads})
        for task in sound.tasks
    ]
    return found


def _several(catalog: model.Catalog) -> dict[str, dict[str, Sequence[str]]]:
    found: dict[str, dict[str, Sequence[str]]] = {toolkit: {} for toolkit in catalog.toolkits}
    for (toolkit, slug), some in groupby(catalog.tools, attrgetter("toolkit", "slug")):
        versions = [tool.version for tool in some]
        if len(versions) > 1:
            found[toolkit][slug] = versions
    return found


def _labels(catalog: model.Catalog) -> dict[str, list[str]]:
    # sorted by slug and version: the newest wins
    newest = {tool.slug: tool for tool in catalog.tools}.values()
    return {
        kind: sorted({*chain.from_iterable(map(attrgetter(kind), newest))})
        for kind in ("tags", "scopes")
    }


def _meta_tools(catalog: model.Catalog) -> tuple[MetaTool, ...]:
    """The meta tools in their newest versions, as their files describe them."""
    newest = {tool.slug: tool.template for tool in catalog.meta_tools}
    return tuple(
        MetaTool(slug, str(said["name"]), str(said["description"])) for slug, said in newest.items()
    )
