"""The site writer: plan which pages change, render them, and move them into place.

Pages come in groups, each with a digest of everything that it is made from. The build cache records
the digests of the groups that were written and the state of each file. A group whose files are
still in that state is not rendered again, nor is a list of tools with the same input. Without this
record every page is rendered and compared.

`plan_site` finds what is to be rendered and removed, `stage_site` renders it into `.staged` in the
site's folder, and `install_site` moves it into place: if rendering fails, the site stays as it was.
`.generated` lists the pages, so that pages of removed tools are deleted and no other files are; a
list that this user did not seal deletes nothing. The list is recorded like a group of its own: if
it is unchanged too, only the groups that were replaced are compared with the new ones.

There may be millions of files, so paths are generated each time they are needed and not kept in
memory.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import orjson

from toolcatalog.build import state as build_state
from toolcatalog.build.site_pages import PageGroup, SiteFile
from toolcatalog.build.state import PageGroupState, SiteState
from toolcatalog.errors import UsageError
from toolcatalog.progress import Progress
from toolcatalog.snapshot import locks
from toolcatalog.system import file_state, files
from toolcatalog.system.processes import WorkerPool

_LISTING_FILE = ".generated"
_PATH_SEGMENT = "[A-Za-z0-9_-][A-Za-z0-9_.-]*"
_PAGE_PATH = re.compile(
    rf"(?:{_PATH_SEGMENT}/)*{_PATH_SEGMENT}\.(?:css|html|js|json|md|png|svg|txt|woff2|xml)"
)
# the most that the pages of a build have: a small catalog must not fill the disk
_BASE_SITE_SIZE, _SIZE_PER_FILE = 1 << 30, 128 << 10  # bytes
# by path: the source digest of a file, and its signature
ReusableFiles = Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """What changes in a site.

    `groups` has all groups by digest. Those in `state` stay as they are, and all others are
    rendered. `removed_paths` are the files to delete; `has_new_paths` is true if there are new
    files. `kept_count` is the number of files that an untrusted list names and that are no longer
    made.
    """

    site: Path
    state: SiteState
    groups: Mapping[str, PageGroup]
    removed_paths: set[str]
    has_new_paths: bool
    kept_count: int = 0

    @property
    def stale_groups(self) -> dict[str, PageGroup]:
        """The groups to render, by digest."""
        return {
            digest: group
            for digest, group in self.groups.items()
            if digest not in self.state.groups
        }

    def iter_paths(self) -> Iterator[Collection[str]]:
        """Yield the paths of each group: as recorded if it stays, or else from the group."""
        for digest, group in self.groups.items():
            recorded = self.state.groups.get(digest)
            yield build_state.decode_signatures(recorded) if recorded else group.paths


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSite:
    """A site that is ready to be installed: the plan, and the staged groups by digest."""

    plan: SitePlan
    groups: Mapping[str, PageGroupState]


def plan_site(site: Path, groups: Iterable[PageGroup], site_state: SiteState) -> SitePlan:
    """Return what changes in a site for these groups, given the unchanged groups.

    Raises OSError, and UsageError if the folder contains a site of unknown origin.
    """
    by_digest = {group.digest: group for group in groups}
    plan = SitePlan(
        site=site, state=site_state, groups=by_digest, removed_paths=set(), has_new_paths=True
    )
    # the whole site is unchanged, including the list: only replaced groups matter
    if site_state.source_digest and _LISTING_FILE in site_state.groups:
        replaced = chain.from_iterable(_replaced_paths(plan))
        rendered = (group.paths for group in plan.stale_groups.values())
        return _with_changes(plan, {*filter(_PAGE_PATH.fullmatch, replaced)}, rendered)
    generated, is_ours = load_generated(site)
    changed = _with_changes(plan, generated, plan.iter_paths())
    if is_ours:
        return changed
    kept_count = sum(os.path.lexists(site / path) for path in changed.removed_paths)
    return replace(plan, kept_count=kept_count)


def _replaced_paths(plan: SitePlan) -> Iterator[Collection[str]]:
    """Yield the paths of the recorded groups that no longer exist."""
    for digest, recorded in plan.state.groups.items():
        if digest not in plan.groups and digest != _LISTING_FILE:
            yield build_state.decode_signatures(recorded)


def _with_changes(plan: SitePlan, before: set[str], paths: Iterable[Collection[str]]) -> SitePlan:
    """Return the plan with the paths that no longer exist, and whether there are new ones."""
    has_new_paths = False
    for group_paths in paths:
        has_new_paths = has_new_paths or not before.issuperset(group_paths)
        before.difference_update(group_paths)
    return replace(plan, removed_paths=before, has_new_paths=has_new_paths)


def stage_site(plan: SitePlan, pool: WorkerPool, progress: Progress) -> StagedSite:
    """Render the pages of the stale groups, without changing existing pages.

    Raises OSError, and UsageError if there are links or files in the place of folders.
    """
    stale, staging = plan.stale_groups, plan.site / locks.STAGED
    _require_folders(plan.site, (group.paths for group in stale.values()))
    _require_folders(plan.site, [plan.removed_paths])
    if not plan.state.groups:  # the last build may have been killed while writing
        files.remove_temporary_files(plan.site)
    if not stale:
        return StagedSite(plan=plan, groups={})
    files.remove(staging)
    staging.mkdir(parents=True)
    staged, size = {}, 0
    file_count = sum(len(group.paths) for group in stale.values())
    max_size = _BASE_SITE_SIZE + file_count * _SIZE_PER_FILE
    render = partial(_stage_group, plan.site, _find_reusable(plan), max_size)
    with _remove_after_error(staging), progress("Rendering pages", file_count) as advance:
        results = pool.map(render, [*stale.values()])
        for (digest, group), (group_state, group_size) in zip(stale.items(), results, strict=True):
            staged[digest] = group_state
            size += group_size
            paths = group.paths
            if paths:
                _check_size(size, max_size, paths[0])
            advance(len(paths))
    return StagedSite(plan=plan, groups=staged)


@contextmanager
def _remove_after_error(staging: Path) -> Iterator[None]:
    """Remove the staged pages after an error, as far as the workers permit."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            files.remove(staging)
        raise


def _check_size(size: int, max_size: int, path: str) -> None:
    """Raise UsageError if the pages have more than `max_size` bytes; `path` is the last one."""
    if size > max_size:
        raise UsageError(
            f"The pages would have more than {max_size >> 20:,} MiB, which is more than a catalog "
            f"of this size needs. {path} is among the pages that reach this: shorten its texts, or "
            "remove old versions. The site is as it was."
        )


def _require_folders(site: Path, groups: Iterable[Collection[str]]) -> None:
    """Raise UsageError if anything but a folder is in the place of a folder of these pages."""
    for paths in groups:
        checked = {"": True}  # whether each folder exists
        for path in paths:
            _check_folder(site, path.rpartition("/")[0], checked)


def _check_folder(site: Path, folder: str, checked: dict[str, bool]) -> bool:
    """Return whether a folder exists, which is not the case without its parent."""
    if folder not in checked:
        has_parent = _check_folder(site, folder.rpartition("/")[0], checked)
        checked[folder] = has_parent and _is_folder(f"{site}/{folder}")
    return checked[folder]


def _is_folder(folder: str) -> bool:
    """Return whether there is a folder. Raises UsageError if there is anything else."""
    try:
        mode = os.lstat(folder).st_mode
    except FileNotFoundError:
        return False
    locks.refuse_link(folder, "--site")
    if not stat.S_ISDIR(mode):
        raise UsageError(
            f"{folder} is a file, and pages go into a folder of this name: move the file away, or "
            "name another folder with --site."
        )
    return True


def _find_reusable(plan: SitePlan) -> ReusableFiles:
    """Return the unchanged files with a source digest of groups that no longer exist."""
    reusable = {}
    for digest, recorded in plan.state.groups.items():
        if digest not in plan.groups:
            signatures = build_state.decode_signatures(recorded)
            for path, source_digest in build_state.decode_sources(recorded).items():
                reusable[path] = source_digest, signatures[path]
    return reusable


def _stage_group(
    site: Path, reusable: ReusableFiles, max_size: int, group: PageGroup
) -> tuple[PageGroupState, int]:
    """Render the files of a group and stage those that differ from the site.

    Skips files whose source digest is unchanged. Returns the state of the skipped files and the
    source digests, and the number of bytes rendered. Raises UsageError if that exceeds `max_size`.
    """
    folder = site / locks.STAGED / group.digest
    try:
        folder.mkdir()
    except FileExistsError:  # a cluster repeats the task of a worker that was killed
        files.remove(folder)
        folder.mkdir()
    numbers = {path: number for number, path in enumerate(group.paths)}
    signatures, sources, size = {}, {}, 0
    for file in group.files():
        if file.source_digest:
            sources[file.path] = file.source_digest
        source_digest, signature = reusable.get(file.path, ("", 0))
        if source_digest and source_digest == file.source_digest:
            signatures[file.path] = signature
        else:
            size += _stage_file(site, file, f"{folder}/{numbers[file.path]}")
            _check_size(size, max_size, file.path)
    return build_state.encode_group_state(signatures, sources), size


def _stage_file(site: Path, file: SiteFile, staged_path: str) -> int:
    """Render a file, and write it if it differs from the one in the site; return its size."""
    data, path = file.render(), f"{site}/{file.path}"
    if os.path.lexists(path):
        if files.has_content(path, data):
            return len(data)
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    files.write_new_file(staged_path, data)
    return len(data)


def install_site(
    staged: StagedSite, pool: WorkerPool, record_group: Callable[[str, PageGroupState], None]
) -> None:
    """Move the staged files into place; call `record_group` with the new state of each group.

    Raises OSError.
    """
    plan, site = staged.plan, staged.plan.site
    listing = site / _LISTING_FILE
    if plan.has_new_paths:
        _write_listing(listing, chain(plan.iter_paths(), [plan.removed_paths]))
    for digest in plan.groups:
        if digest in plan.state.groups:
            record_group(digest, plan.state.groups[digest])
    stale = plan.stale_groups
    tasks = [(group, staged.groups[digest]) for digest, group in stale.items()]
    installed = pool.map(partial(_install_group, site), tasks)
    for digest, group_state in zip(stale, installed, strict=True):
        record_group(digest, group_state)
    if plan.removed_paths:
        _remove_pages(site, plan.removed_paths)
        _write_listing(listing, plan.iter_paths())
    files.remove(site / locks.STAGED)
    signatures = {_LISTING_FILE: file_state.settled_signature(str(listing))}
    record_group(_LISTING_FILE, build_state.encode_group_state(signatures, {}))


def _install_group(site: Path, staged: tuple[PageGroup, PageGroupState]) -> PageGroupState:
    """Move the staged files of a group into place; return the state of all its files."""
    group, group_state = staged
    folder = f"{site}/{locks.STAGED}/{group.digest}"
    with os.scandir(folder) as entries:
        names = {entry.name for entry in entries}
    paths = group.paths
    for number, path in enumerate(paths):
        if str(number) in names:
            files.move_file(f"{folder}/{number}", f"{site}/{path}")
    reused = build_state.decode_signatures(group_state)
    signatures = {
        path: reused.get(path) or file_state.settled_signature(f"{site}/{path}") for path in paths
    }
    return build_state.encode_group_state(signatures, build_state.decode_sources(group_state))


def _write_listing(listing: Path, groups: Iterable[Collection[str]]) -> None:
    """Write the list of generated pages, group by group."""
    separator = b"["
    with files.open_sealed(listing) as write:
        for paths in filter(None, groups):
            write(separator + orjson.dumps(sorted(paths), option=orjson.OPT_INDENT_2)[1:-2])
            separator = b","
        write(b"\n]\n")


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
        paths = map(str, orjson.loads(data))
        return {path for path in paths if _PAGE_PATH.fullmatch(path)}, is_ours
    except FileNotFoundError:
        if not (site / "index.html").exists():
            return set(), True
        reason = f"{site} contains a site that this program did not create"
    except (orjson.JSONDecodeError, TypeError):
        reason = f"{listing} is damaged, which leaves open which pages this program made"
    raise UsageError(f"{reason}: name another folder with --site, or empty this one.")


def _remove_pages(site: Path, paths: Iterable[str]) -> None:
    """Remove pages that are no longer made, and the folders that become empty.

    None of the folders is a link.
    """
    for path in sorted(paths):
        page = site / path
        if page.is_symlink() or not page.is_dir():
            page.unlink(missing_ok=True)
        for parent in [*page.relative_to(site).parents][:-1]:
            folder = site / parent
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
