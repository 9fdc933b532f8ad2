"""The snapshots directory: put a snapshot in place atomically and switch `current` to it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from toolcatalog.errors import ShrunkCatalog
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.system import file_state, files

# How many percent of the tools a new build may lose: without a limit, and by default, which
# allows for everyday changes.
UNLIMITED_LOSS_PERCENT, DEFAULT_MAX_LOSS_PERCENT = 100, 10
_PARTIAL_SUFFIX = ".part"
_DOWNLOADED_FILE = ".downloaded"  # marks a folder whose snapshots come from an object store


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """The result of a build: the snapshot's digest, whether `current` has changed, and counts.

    `kept`: pages in the site that another build made and that are no longer made.
    """

    digest: str
    changed: bool
    toolkits: int
    tools: int
    tool_versions: int
    sessions: int
    pages: int
    foreign_pages: int = 0


def read_build_result(
    out: Path, digest: str, *, changed: bool, pages: int, kept: int = 0
) -> BuildResult:
    """Return the result of a build, with the counts of its manifest."""
    counts = _read_json(out / "snapshots" / digest / snapshot_format.MANIFEST)["counts"]
    return BuildResult(digest=digest, changed=changed, pages=pages, foreign_pages=kept, **counts)


def remove_leftovers(out: Path) -> None:
    """Remove what killed builds left behind."""
    files.remove_temporary_files(out)
    for path in find_leftovers(out):
        files.remove(path)


def find_leftovers(out: Path) -> list[Path]:
    """Return the folders of snapshots that were not completed or not removed completely."""
    return [*(out / "snapshots").glob(f"*{_PARTIAL_SUFFIX}")]


def remove_snapshot(out: Path, digest: str) -> None:
    """Remove a snapshot.

    It is renamed first, so that it is never partly removed under its name. Programs that have it
    open can still read it.
    """
    folder = out / "snapshots" / digest
    renamed = folder.with_name(f"{digest}.removed{_PARTIAL_SUFFIX}")
    folder.rename(renamed)
    files.remove(renamed)


def check_shrinkage(out: Path, tool_count: int, max_loss_percent: int) -> None:
    """Raise ShrunkCatalog if a snapshot of `tool_count` tools would lose too many.

    The limit is `max_loss_percent` of the tools of the current snapshot.
    """
    current_count = _count_current_tools(out)
    if 100 * (current_count - tool_count) > max_loss_percent * current_count:
        problem = (
            f"The catalog has {tool_count:,} tools, and the build in {out} serves"
            f" {current_count:,}: more than {max_loss_percent} % of them would be gone"
        )
        raise ShrunkCatalog(
            f"{problem}, so nothing was published. Fix the catalog, or build with --allow-shrink "
            f"if this is intended."
        )


def _count_current_tools(out: Path) -> int:
    """Return the number of tools of the current snapshot, whatever its format.

    Returns 0 if there is none or if its manifest is damaged.
    """
    try:
        manifest = _read_json(out / "current" / snapshot_format.MANIFEST)
        return (
            int(manifest["counts"]["tools"]) if snapshot_format.is_manifest_valid(manifest) else 0
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0


@contextmanager
def staging_folder(out: Path) -> Iterator[Path]:
    """Create an empty folder for a new snapshot; after an error it is removed."""
    folder = out / "snapshots" / f"new{_PARTIAL_SUFFIX}"
    files.remove(folder)
    folder.mkdir(parents=True)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            files.remove(folder)
        raise


def mark_downloaded(out: Path) -> None:
    """Record that the snapshots in a folder come from an object store, and not from a build."""
    if not (out / _DOWNLOADED_FILE).exists():
        (out / _DOWNLOADED_FILE).touch()


def is_downloaded(snapshot_folder: Path) -> bool:
    """Return whether a snapshot is in a folder for those from an object store."""
    folder = Path(os.path.realpath(snapshot_folder))  # it may be `current`
    return (folder.parent.parent / _DOWNLOADED_FILE).exists()


def install_snapshot(staging: Path, digest: str, file_infos: Mapping[str, FileInfo]) -> Path:
    """Rename a complete snapshot to its digest; an existing one stays if it is complete."""
    folder, damaged = (
        staging.with_name(digest),
        staging.with_name(f"{digest}.damaged{_PARTIAL_SUFFIX}"),
    )
    if _is_complete(
        folder,
        {
            **file_infos,
            snapshot_format.MANIFEST: _read_file_info(staging / snapshot_format.MANIFEST),
        },
    ):
        files.remove(staging)
        return folder
    # rename it so that the next build removes it if this one is killed
    if folder.exists():
        folder.rename(damaged)
    staging.rename(folder)
    files.remove(damaged)
    return folder


def set_current(out: Path, digest: str) -> bool:
    """Make `current` name an installed snapshot; return whether it named another one before."""
    current, target = out / "current", f"snapshots/{digest}"
    changed = not (current.is_symlink() and str(current.readlink()) == target)
    if changed:
        files.replace_symlink(current, target)
    return changed


def is_unchanged(out: Path, digest: str, stamp: str) -> bool:
    """Return whether `current` names this snapshot and its files match the stamp."""
    current = out / "current"
    is_current = (
        bool(digest) and current.is_symlink() and str(current.readlink()) == f"snapshots/{digest}"
    )
    return is_current and compute_stamp(out / "snapshots" / digest) == stamp


def compute_stamp(folder: Path) -> str:
    """Return a digest of the state of all files of a snapshot; empty if it cannot be read."""
    try:
        paths = [
            *_read_json(folder / snapshot_format.MANIFEST)["files"],
            *_read_json(folder / snapshot_format.FILE_LIST),
        ]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    unlisted = [snapshot_format.MANIFEST, snapshot_format.COMPRESSED_DOCUMENTS]
    return file_state.digest_signatures(folder, [*unlisted, *sorted(paths)])


def _is_complete(folder: Path, file_infos: Mapping[str, FileInfo]) -> bool:
    """Return whether the folder has exactly these files, and no links in place of any.

    This includes links in place of folders. The targets of links may change later.
    """
    real = os.path.realpath(folder)
    return folder.is_dir() and all(
        os.path.realpath(folder / path) == f"{real}/{path}"
        and (folder / path).is_file()
        and _read_file_info(folder / path) == info
        for path, info in file_infos.items()
    )


def _read_json(file: Path) -> Any:
    with files.open_regular(file) as source:
        return orjson.loads(source.read())


def _read_file_info(file: Path) -> FileInfo:
    return FileInfo(*files.hash_file(file))
