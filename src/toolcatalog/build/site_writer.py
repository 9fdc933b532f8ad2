"""The site writer: render changed pages, write those that differ, delete the others.

Pages come in groups, each with a digest of everything that it is made from. The build cache records
the digests of the groups that were written and the state of each file. A group whose files are
still in that state is not rendered again, nor is a list of tools with the same input. Without this
record every page is rendered and compared.

`stage_site` renders what has changed into `.staged` in the site's folder, and `install` moves it
into place: if rendering fails, the site stays as it was. `.generated` lists the pages, so that
pages of removed tools are deleted and no other files are; a list that this user did not seal
deletes nothing. The list is recorded like a group of its own: if it is unchanged too, only the
groups that were replaced are compared with the new ones.
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

from toolcatalog.build import state as build_state
from toolcatalog.build.site_pages import PageGroup
from toolcatalog.build.state import PageGroupState, SiteState
from toolcatalog.errors import UsageError
from toolcatalog.progress import Progress
from toolcatalog.snapshot import locks
from toolcatalog.system import file_state, files
from toolcatalog.system.processes import WorkerPool

_LISTING_FILE = ".generated"
_PATH_SEGMENT = "[A-Za-z0-9_-][A-Za-z0-9_.-]*"
_PAGE_PATH = re.compile(
    rf"(?:{_PATH_SEGMENT}/)*{_PATH_SEGMENT}\.(?:css|html|js|json|md|png|svg|txt|xml)"
)
# by path: the source digest of a file, and its signature
KnownFiles = Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSite:
    """A site that is ready to be installed.

    `state` is the recorded state of the files that stay, `groups` has all groups by digest, and
    `staged_groups` those that were rendered. `removed_paths` are the files to delete;
    `has_new_paths` is true if there are new files. `kept_count` is the number of files that an
    untrusted list names and that are no longer made.
    """

    site: Path
    state: SiteState
    groups: Mapping[str, PageGroup]
    staged_groups: Mapping[str, tuple[PageGroup, PageGroupState]]
    removed_paths: set[str]
    has_new_paths: bool
    kept_count: int


def stage_site(
    site: Path,
    groups: Sequence[PageGroup],
    site_state: SiteState,
    pool: WorkerPool,
    progress: Progress,
) -> StagedSite:
    """Render the pages of the groups that are not in `site_state`, without changing existing pages.

    There may be millions of files, so paths are generated each time they are needed and not kept in
    memory. Raises OSError, and UsageError if the folder contains a site of unknown origin, or links
    in the place of folders.
    """
    named = {group.digest: group for group in groups}
    stale = {digest: group for digest, group in named.items() if digest not in site_state.groups}
    gone, is_more, kept = _find_changed_paths(site, named, stale, site_state)
    _require_no_links(site, chain((group.paths for group in stale.values()), [gone]))
    if not site_state.groups:  # the last build may have been killed while writing
        files.remove_temporary_files(site)
    notes: list[PageGroupState] = []
    if stale:
        files.remove(site / locks.STAGED)
        (site / locks.STAGED).mkdir(parents=True)
        made = pool.map(
            partial(_stage_group, site, _find_reusable(site_state, named)), [*stale.values()]
        )
        with progress("Making pages", sum(len(group.paths) for group in stale.values())) as advance:
            for group, noted in zip(stale.values(), made, strict=True):
                notes.append(noted)
                advance(len(group.paths))
    return StagedSite(
        site=site,
        state=site_state,
        groups=named,
        staged_groups={one: (stale[one], noted) for one, noted in zip(stale, notes, strict=True)},
        removed_paths=gone,
        has_new_paths=is_more,
        kept_count=kept,
    )


def install(staged: StagedSite, pool: WorkerPool) -> Iterator[tuple[str, PageGroupState]]:
    """Move the staged files into place; yield the new state of each group as it is done.

    Raises OSError.
    """
    site, left, named = staged.site, staged.state, staged.groups
    listing = site / _LISTING_FILE
    if staged.has_new_paths:
        _write_listing(listing, chain(_group_paths(named, left), [staged.removed_paths]))
    yield from ((digest, left.groups[digest]) for digest in named if digest in left.groups)
    moved = pool.map(partial(_install_group, site), [*staged.staged_groups.values()])
    yield from zip(staged.staged_groups, moved, strict=True)
    if staged.removed_paths:
        _remove_pages(site, staged.removed_paths)
        _write_listing(listing, _group_paths(named, left))
    files.remove(site / locks.STAGED)
    yield (
        _LISTING_FILE,
        build_state.encode_group_state(
            {_LISTING_FILE: file_state.settled_signature(str(listing))}, {}
        ),
    )


def _find_changed_paths(
    site: Path,
    groups: Mapping[str, PageGroup],
    missing_groups: Mapping[str, PageGroup],
    site_state: SiteState,
) -> tuple[set[str], bool, int]:
    """Return the paths to remove, whether there are new ones, and the number of files to keep.

    Files to keep are no longer made, but listed by another user.
    """
    # the whole site is unchanged, including the list: only replaced groups matter
    if site_state.made_from and _LISTING_FILE in site_state.groups:
        replaced = {
            *filter(_PAGE_PATH.fullmatch, chain.from_iterable(_replaced_paths(site_state, groups)))
        }
        return *_find_removed(replaced, (group.paths for group in missing_groups.values())), 0
    listed, is_ours = load_generated(site)
    gone, is_more = _find_removed(listed, _group_paths(groups, site_state))
    if is_ours:
        return gone, is_more, 0
    return set(), True, sum(os.path.lexists(site / path) for path in gone)


def _require_no_links(site: Path, groups: Iterable[Collection[str]]) -> None:
    """Raise UsageError if anything but a folder is in the place of a folder of these pages."""
    for paths in groups:
        seen: set[str] = set()
        for path in paths:
            folder = path.rpartition("/")[0]
            while folder and folder not in seen:
                seen.add(folder)
                _require_folder(f"{site}/{folder}")
                folder = folder.rpartition("/")[0]


def _require_folder(folder: str) -> None:
    try:
        mode = os.lstat(folder).st_mode
    except (FileNotFoundError, NotADirectoryError):  # the caller checks the parent folder next
        return
    locks.refuse_link(folder, "--site")
    if not stat.S_ISDIR(mode):
        raise UsageError(
            f"{folder} is a file, and pages go into a folder of this name: move the file away, or "
            "name another folder with --site."
        )


def _group_paths(
    groups: Mapping[str, PageGroup], site_state: SiteState
) -> Iterator[Collection[str]]:
    """Yield the paths of each group: from the recorded state if unchanged, else from the group."""
    for digest, group in groups.items():
        yield (
            build_state.decode_signatures(site_state.groups[digest])
            if digest in site_state.groups
            else group.paths
        )


def _find_removed(before: set[str], now: Iterable[Collection[str]]) -> tuple[set[str], bool]:
    """Return the paths that no longer exist, and whether there are new ones."""
    is_more = False
    for paths in now:
        is_more = is_more or not before.issuperset(paths)
        before.difference_update(paths)
    return before, is_more


def _replaced_paths(
    site_state: SiteState, groups: Mapping[str, PageGroup]
) -> Iterator[Collection[str]]:
    """Return the paths of the recorded groups that no longer exist."""
    return (
        build_state.decode_signatures(noted)
        for digest, noted in site_state.groups.items()
        if digest not in groups and digest != _LISTING_FILE
    )


def _find_reusable(site_state: SiteState, groups: Mapping[str, PageGroup]) -> KnownFiles:
    """Return the unchanged files with a source digest of groups that no longer exist."""
    notes = [
        (build_state.decode_signatures(noted), build_state.decode_sources(noted))
        for digest, noted in site_state.groups.items()
        if digest not in groups
    ]
    return {
        path: (source, state[path]) for state, sources in notes for path, source in sources.items()
    }


def _stage_group(site: Path, known: KnownFiles, group: PageGroup) -> PageGroupState:
    """Render the files of a group and stage those that differ from the site.

    Skips files whose source digest is unchanged. Returns the state of the skipped files, and the
    source digests.
    """
    folder = site / locks.STAGED / group.digest
    folder.mkdir(exist_ok=True)
    numbers = {path: number for number, path in enumerate(group.paths)}
    state, sources = {}, {}
    for path, make, source in group.files():
        if source:
            sources[path] = source
        before, mark = known.get(path, ("", 0))
        if source and source == before:
            state[path] = mark
        elif not files.has_content(f"{site}/{path}", data := make()):
            if (site / path).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), f"{site}/{path}")
            files.write_unsynced(folder / str(numbers[path]), data)
    return build_state.encode_group_state(state, sources)


def _install_group(site: Path, staged: tuple[PageGroup, PageGroupState]) -> PageGroupState:
    """Move the staged files of a group into place; return the state of all its files."""
    group, noted = staged
    folder = f"{site}/{locks.STAGED}/{group.digest}"
    waiting = {file.name for file in Path(folder).iterdir()}
    state = build_state.decode_signatures(noted)
    for number, path in enumerate(group.paths):
        if str(number) in waiting:
            files.move_file(f"{folder}/{number}", f"{site}/{path}")
    now = {
        path: state.get(path) or file_state.settled_signature(f"{site}/{path}")
        for path in group.paths
    }
    return build_state.encode_group_state(now, build_state.decode_sources(noted))


def _write_listing(listing: Path, groups: Iterable[Collection[str]]) -> None:
    """Write the list of generated pages, group by group."""
    paths = (
        orjson.dumps(sorted(some), option=orjson.OPT_INDENT_2)[1:-2] for some in groups if some
    )
    files.write_sealed(listing, chain([b"["], _with_commas(paths), [b"\n]\n"]))


def _with_commas(pieces: Iterable[bytes]) -> Iterator[bytes]:
    comma = b""
    for piece in pieces:
        yield comma + piece
        comma = b","


def load_generated(site: Path) -> tuple[set[str], bool]:
    """Return the pages that an earlier build listed, and whether this user has sealed the list.

    Paths that no build makes are left out. Raises UsageError if the folder contains a site of
    unknown origin.
    """
    listing = site / _LISTING_FILE
    try:
        data = files.read_sealed(listing)
        is_ours = data is not None
        if data is None:  # written by another user, machine or version, perhaps without a seal
            with files.open_regular(listing) as file:
                data = file.read()
            data = data[max(0, data.find(b"[")) :]
        return {
            path for path in map(str, orjson.loads(data)) if _PAGE_PATH.fullmatch(path)
        }, is_ours
    except FileNotFoundError:
        if not (site / "index.html").exists():
            return set(), True
        wrong = f"{site} holds a site that this program did not make"
    except (orjson.JSONDecodeError, TypeError):
        wrong = f"{listing} is damaged, so it cannot be told which pages this program made"
    raise UsageError(f"{wrong}: name another folder with --site, or empty this one.")


def _remove_pages(site: Path, paths: Iterable[str]) -> None:
    """Remove pages that are no longer made, and the folders that become empty.

    None of the folders is a link.
    """
    for path in sorted(paths):
        page = site / path
        if page.is_symlink() or not page.is_dir():
            page.unlink(missing_ok=True)
        for folder in page.relative_to(site).parents:
            if folder != Path() and (site / folder).is_dir() and not any((site / folder).iterdir()):
                (site / folder).rmdir()
