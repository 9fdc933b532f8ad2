"""The pipeline: look what has changed, compile that, check the whole, and publish it, so that a
reader never sees half of anything.

build/snapshots/<digest>/   complete, or not there: written under another name beside and renamed
build/current               a link to one of them, moved last and in one step
build/.cache/               parts of earlier builds, and what those have seen; safe to delete
site/                       see `site`
"""

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from toolcatalog import files, guarding, looking, memory, program, publishing
from toolcatalog.crew import Crew, Workers
from toolcatalog.looking import Looked, Outline, Places
from toolcatalog.memory import Memory, Verdict
from toolcatalog.progress import Track, quietly
from toolcatalog.publishing import ALL, Built

_SOME = 4_000  # tools: the pages of fewer are looked at in the time that a process takes to begin
# tools: to look at fewer takes as long as to begin several, and what is known of fewer is held
# twice at little cost
_MANY = 100_000
# brings workers from elsewhere that are fit for a build of these places
Hire = Callable[[Places], Workers]
_PATIENCE = 60.0  # seconds that a check waits for a build


def build(
    catalog: Path,
    out: Path,
    site: Path | None,
    track: Track = quietly,
    jobs: int = 1,
    *,
    semantic: bool = False,
    hire: Hire | None = None,
    may_lose: int = ALL,
) -> Built:
    """Build a catalog into `out` and, unless it is None, `site`, with so many processes;
    `semantic`: to be searched by meaning too.

    `hire` brings workers of another kind for all that is done batch by batch, but for looking what
    has changed.

    `may_lose`: how many of a hundred tools of the snapshot in force the new one may be without.

    Raises InvalidCatalog with all problems, ShrunkCatalog where more tools than that would be gone,
    or UsageError where a folder cannot be used; in each case `out/current` and the site stay as
    they were.
    """
    fingerprint = program.fingerprint(_schemas(catalog), *([_model()] if semantic else []))
    places = Places(catalog=catalog, out=out, site=site, vectors=semantic)
    places = places.absolute() if hire else places
    outline = looking.outline(catalog)  # before anything is written: there may be no catalog
    guarding.check_places(catalog, out, site)
    with (
        guarding.guarded(out, "the last good build is untouched. Build"),
        guarding.alone_with_site(site),
    ):
        publishing.tidy(out)
        with Crew(jobs, partial(hire, places) if hire else None) as crew:
            crew.stand_by(len(outline.folders), _SOME if site else _MANY)
            looked, before = _looked(places, outline, fingerprint, crew, track)
            built = _unchanged(places, looked, before)
            # of a million tools that is much, and `looked` has it
            before = replace(before, batches={})
            return built or _changed(places, looked, before, crew, track, may_lose)


def check(
    catalog: Path, out: Path, severities: Collection[str], track: Track = quietly, jobs: int = 1
) -> Verdict:
    """Check a catalog, with so many processes, and give the advice that weighs as much as one of
    these.

    What has not changed since the last time is taken from the cache; where nothing has, all that
    was found then.

    Writes nothing but that, below `out`. Raises UsageError.
    """
    fingerprint = program.fingerprint(_schemas(catalog))
    places = Places(catalog=catalog, out=out, site=None, words=False)
    outline = looking.outline(catalog)
    guarding.check_places(catalog, out, None)
    with guarding.guarded(out, "nothing is lost. Check", wait=_PATIENCE), Crew(jobs) as crew:
        looked, before = _looked(places, outline, fingerprint, crew, track)
        found = memory.load_verdict(places.cache, _asked(places, looked, severities))
        return found or _inspected(places, looked, before, severities, crew, track)


def _looked(
    places: Places, outline: Outline, fingerprint: str, crew: Crew, track: Track
) -> tuple[Looked, Memory]:
    """A catalog as it is found, and what is known of it from the build or the check before."""
    site = looking.site(places, fingerprint, crew)  # begun first: it needs nothing of what follows
    for folder in (places.cache, *(places.cache / "parts").glob("*")):
        files.clean(folder)
    before = memory.load(places.cache, fingerprint)
    # others: those for what follows begin with all that loaded
    with Crew(crew.jobs if len(outline.folders) > _MANY else 1) as lookers:
        looked = looking.look(places, outline, before, fingerprint, lookers, track)
    if places.site and not all(looked.known):
        # all that compiles, checks and renders, while the site is looked at
        import_module("toolcatalog.making")
    looked = replace(looked, site=site())
    if len(outline.folders) <= _MANY and not all(looked.known):
        crew.stand_down()
    return looked, before


def _inspected(
    places: Places,
    looked: Looked,
    before: Memory,
    severities: Collection[str],
    crew: Crew,
    track: Track,
) -> Verdict:
    from toolcatalog import inspecting, parts  # noqa: PLC0415 - it takes a while to load

    gathered = inspecting.gather(places, looked, crew, track)
    checked = inspecting.inspect(places, looked, gathered, crew, track, severities)
    now = memory.batches(gathered.tasks, before)
    if now != before.batches or looked.heads != before.heads:
        memory.save(places.cache, looked.program, looked.heads, now)
        parts.tidy(places.cache, {task.known.key for task in gathered.tasks})
    verdict = Verdict(checked.problems, checked.files, checked.catalog.about.rules)
    # else something is wrong, or there is no cache yet
    if 0 < len(gathered.tasks) == len(looked.tasks):
        looked = replace(looked, known=[task.known for task in gathered.tasks])
        memory.save_verdict(places.cache, _asked(places, looked, severities), verdict)
    return verdict


def _asked(places: Places, looked: Looked, severities: Collection[str]) -> str:
    """A digest of all that the answer of a check goes by, the name by which paths are shown among
    it; empty where that is not known.
    """
    named = json.dumps([looked.made_from, places.catalog.resolve().name, [*severities]])
    return hashlib.sha256(named.encode()).hexdigest() if looked.made_from else ""


def _schemas(catalog: Path) -> str:
    """The names of the schemas beside a catalog: whether a comment leads to one is all that depends
    on anything but the catalog's files.
    """
    return " ".join(
        sorted(str(path.relative_to(catalog)) for path in (catalog / ".schemas").rglob("*.json"))
    )


def _model() -> str:
    from toolcatalog import meaning  # noqa: PLC0415 - it loads numpy, which a build of what has not changed does without

    return meaning.identity()


def _unchanged(places: Places, looked: Looked, before: Memory) -> Built | None:
    """What was built before, where it was made from the same and nothing of it has been touched
    since.
    """
    if (
        not looked.made_from
        or looked.made_from != before.made_from
        or not publishing.is_left(places.out, before.digest, before.stamp)
    ):
        return None
    if places.site and looked.site.made_from != looked.made_from:
        return None
    return publishing.built(places.out, before.digest, changed=False, pages=looked.site.pages)


def _changed(
    places: Places, looked: Looked, before: Memory, crew: Crew, track: Track, may_lose: int
) -> Built:
    from toolcatalog import making  # noqa: PLC0415 - all that compiles, checks and renders takes a while to load

    return making.make(places, looked, before, crew, track, may_lose)
