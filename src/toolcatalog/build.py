"""The pipeline: look what has changed, compile that, check the whole, and publish it, so that a reader never sees half of anything.

build/snapshots/<digest>/   complete, or not there: written under another name beside and renamed
build/current               a link to one of them, moved last and in one step
build/.cache/               parts of earlier builds, and what those have seen; safe to delete
site/                       see `site`
"""

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from toolcatalog import files, looking, memory, program, publishing
from toolcatalog.crew import Crew
from toolcatalog.errors import UsageError
from toolcatalog.looking import Looked, Places
from toolcatalog.memory import Memory
from toolcatalog.progress import Track, quietly
from toolcatalog.publishing import Built


def build(catalog: Path, out: Path, site: Path | None, track: Track = quietly, jobs: int = 1, *, semantic: bool = False) -> Built:
    """Build a catalog into `out` and, unless it is None, `site`, with so many processes; `semantic`: to be searched by meaning too.

    Raises InvalidCatalog with all problems, or UsageError where a folder cannot be used; in both cases `out/current` stays as it was.
    """
    fingerprint = program.fingerprint(_model() if semantic else "")
    places = Places(catalog=catalog, out=out, site=site, vectors=semantic)
    outline = looking.outline(catalog)  # before anything is written: there may be no catalog
    try:
        with _alone(out):
            publishing.tidy(out)
            files.clean(places.cache)
            before = memory.load(places.cache, fingerprint)
            with Crew(jobs) as crew:
                looked = looking.look(places, outline, before, fingerprint, crew, track)
            built = _unchanged(places, looked, before)
            before = replace(before, batches={})  # of a million tools that is much, and `looked` has it
            return built or _changed(places, looked, before, jobs, track)
    except BrokenExecutor:
        wrong = "A worker process was killed, perhaps for want of memory"
        raise UsageError(f"{wrong}: the last good build is untouched. Build again, with --jobs 1 if it happens again.") from None
    except OSError as error:
        where = error.filename or out
        raise UsageError(f"Cannot write {where} ({error.strerror}): make room or mend its permissions, or name another folder.") from None


def _model() -> str:
    from toolcatalog import meaning  # noqa: PLC0415 - it loads numpy, which a build of what has not changed does without

    return meaning.identity()


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    out.mkdir(parents=True, exist_ok=True)
    with files.alone(out / ".lock") as got_it:
        if not got_it:
            raise UsageError(f"Another build is writing to {out}: try again when it is done.")
        yield


def _unchanged(places: Places, looked: Looked, before: Memory) -> Built | None:
    """What was built before, where it was made from the same and nothing of it has been touched since."""
    if not looked.made_from or looked.made_from != before.made_from or not publishing.is_left(places.out, before.digest, before.stamp):
        return None
    if places.site and looked.site.made_from != looked.made_from:
        return None
    return publishing.built(places.out, before.digest, changed=False, pages=looked.site.pages)


def _changed(places: Places, looked: Looked, before: Memory, jobs: int, track: Track) -> Built:
    from toolcatalog import making  # noqa: PLC0415 - all that compiles, checks and renders takes a while to load

    with Crew(jobs) as crew:  # a new one: its processes begin with all that loaded
        return making.make(places, looked, before, crew, track)
