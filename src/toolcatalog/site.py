"""The site on disk: only pages that are concerned by a change are made, and only those that differ
are written.

Pages come in groups, each with a digest of all that it is made from. The build's cache notes the
digests of the groups that were written and the state in which each file was left; a group whose
files are still in that state is not made again, nor is a list of tools that would be made from the
same. Without the note every page is made and compared.

`stage` renders what has changed into `.staged` in the site's folder, and `put` moves it to its
place: whatever fails while pages are rendered leaves the site as it was. `.generated` lists the
pages, so that those of removed tools go and nobody else's files do; a list that this user did not
seal removes nothing. It is noted like a group of its own: where it, too, is as it was left, only
what a change has replaced is held against what comes instead.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import orjson

from toolcatalog import files, guarding, memory, signatures
from toolcatalog.crew import Crew
from toolcatalog.errors import UsageError
from toolcatalog.groups import Group
from toolcatalog.memory import Noted, SiteMemory
from toolcatalog.progress import Track

_GENERATED = ".generated"
_NAME = "[A-Za-z0-9_-][A-Za-z0-9_.-]*"
_PAGE = re.compile(rf"(?:{_NAME}/)*{_NAME}\.(?:css|html|js|json|md|svg|txt|xml)")
# of files by path: the digest of what they are made from, and their state
Known = Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A site that can be put in its place: all groups by digest, those among them that are staged,
    and what is noted of the files that stay; the paths to remove, and whether there are new ones.

    `kept` counts files that an untrusted list names and that are no longer made.
    """

    site: Path
    left: SiteMemory
    groups: Mapping[str, Group]
    stale: Mapping[str, tuple[Group, Noted]]
    gone: set[str]
    is_more: bool
    kept: int


def stage(
    site: Path, groups: Sequence[Group], left: SiteMemory, crew: Crew, track: Track
) -> Staged:
    """Render the pages of these groups that are not there yet; `left` is what is there already. The
    pages that are in place stay as they are.

    There may be millions of files: their paths are gone through as often as they are needed, and
    not held. Raises UsageError where the folder holds a site and it cannot be told whose, or links
    in the place of folders, and OSError.
    """
    named = {group.digest: group for group in groups}
    stale = {digest: group for digest, group in named.items() if digest not in left.groups}
    gone, is_more, kept = _changes(site, named, stale, left)
    _refuse_links(site, chain((group.paths for group in stale.values()), [gone]))
    if not left.groups:  # the last build may have been killed while it wrote
        files.clean(site)
    notes: list[Noted] = []
    if stale:
        files.remove(site / guarding.STAGED)
        (site / guarding.STAGED).mkdir(parents=True)
        made = crew.each(partial(_stage, site, _known(left, named)), [*stale.values()])
        with track("Making pages", sum(len(group.paths) for group in stale.values())) as advance:
            for group, noted in zip(stale.values(), made, strict=True):
                notes.append(noted)
                advance(len(group.paths))
    return Staged(
        site=site,
        left=left,
        groups=named,
        stale={one: (stale[one], noted) for one, noted in zip(stale, notes, strict=True)},
        gone=gone,
        is_more=is_more,
        kept=kept,
    )


def put(staged: Staged, crew: Crew) -> Iterator[tuple[str, Noted]]:
    """Move what is staged to its place, as what there is of each group now is taken. Raises
    OSError.
    """
    site, left, named = staged.site, staged.left, staged.groups
    listing = site / _GENERATED
    if staged.is_more:
        _list(listing, chain(_paths(named, left), [staged.gone]))
    yield from ((digest, left.groups[digest]) for digest in named if digest in left.groups)
    moved = crew.each(partial(_put, site), [*staged.stale.values()])
    yield from zip(staged.stale, moved, strict=True)
    if staged.gone:
        _remove(site, staged.gone)
        _list(listing, _paths(named, left))
    files.remove(site / guarding.STAGED)
    yield _GENERATED, memory.noted({_GENERATED: signatures.left(str(listing))}, {})


def _changes(
    site: Path, named: Mapping[str, Group], stale: Mapping[str, Group], left: SiteMemory
) -> tuple[set[str], bool, int]:
    """The paths to remove, whether there are new ones, and how many files stay that are listed by
    somebody else.
    """
    # all is as it was left, the list of it too: what stays need not be gone through
    if left.made_from and _GENERATED in left.groups:
        replaced = {*filter(_PAGE.fullmatch, chain.from_iterable(_replaced(left, named)))}
        return *_gone(replaced, (group.paths for group in stale.values())), 0
    listed, is_ours = generated(site)
    gone, is_more = _gone(listed, _paths(named, left))
    if is_ours:
        return gone, is_more, 0
    return set(), True, sum(os.path.lexists(site / path) for path in gone)


def _refuse_links(site: Path, groups: Iterable[Collection[str]]) -> None:
    """Raise UsageError where something else is in the place of a folder of these pages."""
    for paths in groups:
        seen: set[str] = set()
        for path in paths:
            folder = path.rpartition("/")[0]
            while folder and folder not in seen:
                seen.add(folder)
                _refuse_link(f"{site}/{folder}")
                folder = folder.rpartition("/")[0]


def _refuse_link(folder: str) -> None:
    try:
        mode = os.lstat(folder).st_mode
    except (FileNotFoundError, NotADirectoryError):  # the folder above it is looked at next
        return
    guarding.refuse_link(folder, "--site")
    if not stat.S_ISDIR(mode):
        raise UsageError(
            f"{folder} is a file, and pages go into a folder of this name: move the file away, or "
            "name another folder with --site."
        )


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


def _stage(site: Path, known: Known, group: Group) -> Noted:
    """Make the files of a group, but those that are known to be made from the same, and stage those
    that differ: the state of the files that were not made, and what files are made from.
    """
    folder = site / guarding.STAGED / group.digest
    folder.mkdir(exist_ok=True)
    numbers = {path: number for number, path in enumerate(group.paths)}
    state, sources = {}, {}
    for path, make, source in group.files():
        if source:
            sources[path] = source
        before, mark = known.get(path, ("", 0))
        if source and source == before:
            state[path] = mark
        elif not files.holds(f"{site}/{path}", data := make()):
            if (site / path).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), f"{site}/{path}")
            files.replace(folder / str(numbers[path]), data)
    return memory.noted(state, sources)


def _put(site: Path, staged: tuple[Group, Noted]) -> Noted:
    """Move the files of a group that are staged to their places: the state of all its files, and
    what they are made from.
    """
    group, noted = staged
    folder = f"{site}/{guarding.STAGED}/{group.digest}"
    waiting = {file.name for file in Path(folder).iterdir()}
    state = memory.state_of(noted)
    for number, path in enumerate(group.paths):
        if str(number) in waiting:
            files.take(f"{folder}/{number}", f"{site}/{path}")
    now = {path: state.get(path) or signatures.left(f"{site}/{path}") for path in group.paths}
    return memory.noted(now, memory.sources_of(noted))


def _list(listing: Path, groups: Iterable[Collection[str]]) -> None:
    """Say in the site what is made there, group by group."""
    paths = (
        orjson.dumps(sorted(some), option=orjson.OPT_INDENT_2)[1:-2] for some in groups if some
    )
    files.seal(listing, chain([b"["], _apart(paths), [b"\n]\n"]))


def _apart(pieces: Iterable[bytes]) -> Iterator[bytes]:
    comma = b""
    for piece in pieces:
        yield comma + piece
        comma = b","


def generated(site: Path) -> tuple[set[str], bool]:
    """The pages that the list of an earlier build names, and whether this user has sealed it. Paths
    that no build makes are left out.

    Raises UsageError where the folder holds a site and it cannot be told whose.
    """
    listing = site / _GENERATED
    try:
        data = files.unsealed(listing)
        is_ours = data is not None
        if data is None:  # the list of another user, machine or version, perhaps without a seal
            data = listing.read_bytes()
            data = data[max(0, data.find(b"[")) :]
        return {path for path in map(str, orjson.loads(data)) if _PAGE.fullmatch(path)}, is_ours
    except FileNotFoundError:
        if not (site / "index.html").exists():
            return set(), True
        wrong = f"{site} holds a site that this program did not make"
    except (orjson.JSONDecodeError, TypeError):
        wrong = f"{listing} is damaged, so it cannot be told which pages this program made"
    raise UsageError(f"{wrong}: name another folder with --site, or empty this one.")


def _remove(site: Path, paths: Iterable[str]) -> None:
    """Remove pages that are no longer made, and the folders that they leave empty. No folder among
    them is a link.
    """
    for path in sorted(paths):
        page = site / path
        if page.is_symlink() or not page.is_dir():
            page.unlink(missing_ok=True)
        for folder in page.relative_to(site).parents:
            if folder != Path() and (site / folder).is_dir() and not any((site / folder).iterdir()):
                (site / folder).rmdir()
