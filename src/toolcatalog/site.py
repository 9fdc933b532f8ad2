"""The site on disk: only pages that are concerned by a change are made, and only those that differ
are written.

Pages come in groups, each with a digest of all that it is made from. The build's cache notes the
digests of the groups that were written and the state in which each file was left; a group whose
files are still in that state is not made again, nor is a list of tools that would be made from the
same. Without the note every page is made and compared. Pages are written one after another, each in
one step; `.generated` in the site's folder lists them, so that pages of removed tools go and nobody
else's files do. It is noted like a group of its own: where it, too, is as it was left, only what a
change has replaced is held against what comes instead.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import orjson

from toolcatalog import files, memory, signatures
from toolcatalog.crew import Crew
from toolcatalog.errors import UsageError
from toolcatalog.groups import Group
from toolcatalog.memory import Noted, SiteMemory
from toolcatalog.progress import Track

_GENERATED = ".generated"
# of files by path: the digest of what they are made from, and their state
Known = Mapping[str, tuple[str, int]]


def update(
    site: Path, groups: Sequence[Group], left: SiteMemory, crew: Crew, track: Track
) -> Iterator[tuple[str, Noted]]:
    """Bring the site to these groups, as what there is of each now is taken; `left` is what is
    there already.

    There may be millions of files: their paths are gone through as often as they are needed, and
    not held. Raises UsageError where the folder holds a site and it cannot be told whose, and
    OSError.
    """
    named = {group.digest: group for group in groups}
    stale = {digest: group for digest, group in named.items() if digest not in left.groups}
    # all is as it was left, the list of it too: what stays need not be gone through
    if left.made_from and _GENERATED in left.groups:
        gone, is_more = _gone(
            {*chain.from_iterable(_replaced(left, named))},
            (group.paths for group in stale.values()),
        )
    else:
        gone, is_more = _gone(generated(site), _paths(named, left))
    if not left.groups:  # the last build may have been killed while it wrote
        for folder in {"", *(path.rpartition("/")[0] for path in generated(site))}:
            files.clean(site / folder)
    listing = site / _GENERATED
    if is_more:
        _list(listing, chain(_paths(named, left), [gone]))
    yield from ((digest, left.groups[digest]) for digest in named if digest in left.groups)
    if stale:
        written = crew.each(partial(_write, site, _known(left, named)), [*stale.values()])
        with track("Making pages", sum(len(group.paths) for group in stale.values())) as advance:
            for (digest, group), noted in zip(stale.items(), written, strict=True):
                yield digest, noted
                advance(len(group.paths))
    if gone:
        _remove(site, gone)
        _list(listing, _paths(named, left))
    yield _GENERATED, memory.noted({_GENERATED: signatures.left(str(listing))}, {})


def _paths(groups: Mapping[str, Group], left: SiteMemory) -> Iterator[Collection[str]]:
    """Where the files of each group lie: of groups that are left as they were noted, of the others
    as they say.
    """
    for digest, group in groups.items():
        yield memory.state_of(left.groups[digest]) if digest in left.groups else group.paths


def _gone(before: set[str], now: Iterable[Collection[str]]) -> tuple[set[str], bool]:
    """Which of the files that were there are no more, and whether there are more now; those of each
    group at once.
    """
    is_more = False
    for paths in now:
        is_more = is_more or not before.issuperset(paths)
        before.difference_update(paths)
    return before, is_more


def _replaced(left: SiteMemory, groups: Mapping[str, Group]) -> Iterator[Collection[str]]:
    """Where the files lie of groups that are no more."""
    return (
        memory.state_of(noted)
        for digest, noted in left.groups.items()
        if digest not in groups and digest != _GENERATED
    )


def _known(left: SiteMemory, groups: Mapping[str, Group]) -> Known:
    """The files of groups that are no more, but as they were left, and of which it is known what
    they are made from.
    """
    notes = [
        (memory.state_of(noted), memory.sources_of(noted))
        for digest, noted in left.groups.items()
        if digest not in groups
    ]
    return {
        path: (source, state[path]) for state, sources in notes for path, source in sources.items()
    }


def _write(site: Path, known: Known, group: Group) -> Noted:
    """Make the files of a group, but those that are known to be made from the same: the state of
    each, and what it is made from.
    """
    state, sources = {}, {}
    for path, make, source in group.files():
        if source:
            sources[path] = source
        before, mark = known.get(path, ("", 0))
        if not source or source != before:
            files.write_changed(site / path, make())
            mark = signatures.left(f"{site}/{path}")
        state[path] = mark
    return memory.noted(state, sources)


def _list(listing: Path, groups: Iterable[Collection[str]]) -> None:
    """Say in the site what is made there, group by group."""
    paths = (
        orjson.dumps(sorted(some), option=orjson.OPT_INDENT_2)[1:-2] for some in groups if some
    )
    files.fill(listing, chain([b"["], _apart(paths), [b"\n]"]))


def _apart(pieces: Iterable[bytes]) -> Iterator[bytes]:
    comma = b""
    for piece in pieces:
        yield comma + piece
        comma = b","


def generated(site: Path) -> set[str]:
    """The pages that an earlier build has made. Raises UsageError where the folder holds a site and
    it cannot be told whose.
    """
    try:
        return set(map(str, orjson.loads((site / _GENERATED).read_bytes())))
    except FileNotFoundError:
        if not (site / "index.html").exists():
            return set()
        wrong = f"{site} holds a site that this program did not make"
    except (orjson.JSONDecodeError, TypeError):
        wrong = (
            f"{site / _GENERATED} is damaged, so it cannot be told which pages this program made"
        )
    raise UsageError(f"{wrong}: name another folder with --site, or empty this one.")


def _remove(site: Path, paths: Iterable[str]) -> None:
    """Remove pages that are no longer made, and the folders that they leave empty; nothing outside
    the site.
    """
    for path in sorted(paths):
        page = site / path
        if not page.resolve().is_relative_to(site.resolve()):
            continue
        page.unlink(missing_ok=True)
        for folder in page.relative_to(site).parents:
            if folder != Path() and (site / folder).is_dir() and not any((site / folder).iterdir()):
                (site / folder).rmdir()
