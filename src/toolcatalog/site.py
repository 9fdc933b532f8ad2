"""The site on disk: only pages that are concerned by a change are made, and only those that differ are written.

Pages come in groups, each with a digest of all that it is made from. The build's cache notes the digests of the groups that were
written and the state in which each file was left; a group whose files are still in that state is not made again, nor is a list of
tools that would be made from the same. Without the note every page is made and compared. Pages are written one after another, each in
one step; `.generated` in the site's folder lists them, so that pages of removed tools go and nobody else's files do.

Serves: "unchanged pages untouched on disk" of issue 5.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import orjson

from toolcatalog import files, signatures
from toolcatalog.crew import Crew
from toolcatalog.errors import UsageError
from toolcatalog.groups import Group
from toolcatalog.memory import SiteMemory, State
from toolcatalog.progress import Track

_GENERATED = ".generated"
Known = Mapping[str, tuple[str, int]]  # of files by path: the digest of what they are made from, and their state


def update(site: Path, groups: Sequence[Group], left: SiteMemory, crew: Crew, track: Track) -> SiteMemory:
    """Bring the site to these groups; `left` is what is there already, what comes back what is there now.

    Raises UsageError where the folder holds a site and it cannot be told whose, and OSError.
    """
    digests = [group.digest for group in groups]
    stale = [(digest, group, group.paths) for digest, group in zip(digests, groups, strict=True) if digest not in left.groups]
    made = {digest: left.groups[digest] for digest in digests if digest in left.groups}
    before, now = generated(site), {*chain.from_iterable(made.values()), *chain.from_iterable(paths for *_, paths in stale)}
    if not left.groups:  # the last build may have been killed while it wrote
        for folder in {(site / path).parent for path in before | now}:
            files.clean(folder)
    sources = {path: source for path, source in left.sources.items() if path in now}
    if stale or before != now:
        listing = site / _GENERATED
        if now - before:
            _list(listing, before | now)
        written = crew.each(partial(_write, site, _known(left)), [group for _, group, _ in stale])
        with track("Making pages", sum(len(paths) for *_, paths in stale)) as advance:
            for (digest, *_), (state, more) in zip(stale, written, strict=True):
                made[digest] = state
                sources |= more
                advance(len(state))
        if now != before:
            _remove(site, before - now)
            _list(listing, now)
    return SiteMemory(groups=made, sources=sources)


def _known(left: SiteMemory) -> Known:
    """The files that are as they were left and of which it is known what they are made from."""
    return {path: (left.sources[path], state[path]) for state in left.groups.values() for path in state.keys() & left.sources.keys()}


def _write(site: Path, known: Known, group: Group) -> tuple[State, Mapping[str, str]]:
    """Make the files of a group, but those that are known to be made from the same: the state of each, and what it is made from."""
    state, sources = {}, {}
    for path, make, source in group.files():
        if source:
            sources[path] = source
        before, mark = known.get(path, ("", 0))
        if not source or source != before:
            files.write_changed(site / path, make())
            mark = signatures.left(f"{site}/{path}")
        state[path] = mark
    return state, sources


def _list(listing: Path, paths: Iterable[str]) -> None:
    files.write_changed(listing, orjson.dumps(sorted(paths), option=orjson.OPT_INDENT_2))


def generated(site: Path) -> set[str]:
    """The pages that an earlier build has made. Raises UsageError where the folder holds a site and it cannot be told whose."""
    try:
        return {str(path) for path in orjson.loads((site / _GENERATED).read_bytes())}
    except FileNotFoundError:
        if not (site / "index.html").exists():
            return set()
        wrong = f"{site} holds a site that this program did not make"
    except (orjson.JSONDecodeError, TypeError):
        wrong = f"{site / _GENERATED} is damaged, so it cannot be told which pages this program made"
    raise UsageError(f"{wrong}: name another folder with --site, or empty this one.")


def _remove(site: Path, paths: Iterable[str]) -> None:
    """Remove pages that are no longer made, and the folders that they leave empty; nothing outside the site."""
    for path in sorted(paths):
        page = site / path
        if not page.resolve().is_relative_to(site.resolve()):
            continue
        page.unlink(missing_ok=True)
        for folder in page.relative_to(site).parents:
            if folder != Path() and (site / folder).is_dir() and not any((site / folder).iterdir()):
                (site / folder).rmdir()
