"""Write locks: one writer at a time for a build directory and a site directory.

A lock is a file that is held and not one that is there: it ends with its process, however that
ends. Folders that are written to may have come with a checkout, so symbolic links among them are
refused: one leads a build to write, or to remove, files elsewhere.
"""

import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from toolcatalog.errors import UsageError, remedy
from toolcatalog.system import files

STAGED = ".staged"  # in a site: pages that wait until all are rendered
_LOCK_FILE = ".lock"


def check_places(catalog: Path, out: Path, site: Path | None) -> None:
    """Raise UsageError where a build would write through a link, or where two of its folders are
    the same or one holds another: it removes old files from what it writes to.
    """
    refuse_link(out, "--out")
    if site:
        refuse_link(site, "--site")
    places = [("catalog", catalog), ("build folder", out), *([("site", site)] if site else [])]
    named = [(what, path, os.path.realpath(path)) for what, path in places]
    for number, (what, path, real) in enumerate(named):
        for other, beside, where in named[number + 1 :]:
            if real == where:
                relation = f"The {other} and the {what} are the same folder ({path})"
            elif where.startswith(f"{real.rstrip('/')}/"):
                relation = f"The {other} ({beside}) is inside of the {what} ({path})"
            elif real.startswith(f"{where.rstrip('/')}/"):
                relation = f"The {what} ({path}) is inside of the {other} ({beside})"
            else:
                continue
            raise UsageError(
                f"{relation}: a build could overwrite or remove files there. Name folders next to "
                "each other with --catalog, --out and --site."
            )


def refuse_link(path: Path | str, option: str) -> None:
    """Raise UsageError where a folder that is to be written to is a symbolic link."""
    if Path(path).is_symlink():
        raise UsageError(
            f"{path} is a symbolic link, and a build writes to plain folders only: remove the "
            f"link, or name the folder that it leads to with {option}."
        )


def _refuse_links(out: Path) -> None:
    """The same for a build's folder and the folders in it."""
    for path in (
        out,
        out / "snapshots",
        out / ".cache",
        out / ".cache/parts",
        out / ".cache/words",
    ):
        refuse_link(path, "--out")
    for folder in (out / "snapshots", out / ".cache/parts"):
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    refuse_link(entry.path, "--out")


@contextmanager
def lock_build(out: Path, failure_hint: str, timeout: float = 0.0) -> Iterator[None]:
    """Alone with a build's folder, and with words for what may go wrong there; `still`: how things
    are then, and what to do again.

    Waits so many seconds for another build. Raises UsageError where one is still writing, and for
    whatever cannot be written.
    """
    try:
        with _lock_folder(out, timeout):
            yield
    except BrokenExecutor:
        wrong = "A worker process was killed, perhaps for want of memory"
        raise UsageError(
            f"{wrong}: {failure_hint} again, with --jobs 1 if it happens again."
        ) from None
    except OSError as error:
        where = error.filename or out
        raise UsageError(
            f"Cannot write {where} ({error.strerror}): {remedy(error)}, or name another folder."
        ) from None


@contextmanager
def _lock_folder(out: Path, timeout: float) -> Iterator[None]:
    """A folder that is made for this tells git that nothing in it is to be kept; one that was there
    is somebody's, and stays as it is.
    """
    _refuse_links(out)
    if _make_folder(out):
        files.write_unsynced(out / ".gitignore", b"*\n")
    with files.lock(out / _LOCK_FILE, timeout) as got_it:
        if not got_it:
            raise UsageError(f"Another build is writing to {out}: try again when it is done.")
        yield


@contextmanager
def lock_site(site: Path | None) -> Iterator[None]:
    """Alone with a site from before it is looked at, for builds into other folders may write to it
    too; None: there is none.

    Staged pages go in the end, and a folder that is made for the lock does where no page comes into
    it. Raises UsageError
    where another build is writing, OSError.
    """
    if site is None or _is_foreign_site(site):
        yield
        return
    fresh = _make_folder(site)
    with files.lock(site / _LOCK_FILE) as got_it:
        if not got_it:
            raise UsageError(f"Another build is writing to {site}: try again when it is done.")
        try:
            yield
        finally:
            with suppress(OSError):  # what went wrong before is what there is to report
                files.remove(site / STAGED)
            if fresh and [path.name for path in site.iterdir()] == [_LOCK_FILE]:
                _remove_empty_site(site)


def _is_foreign_site(site: Path) -> bool:
    """Tell whether a folder holds a site without a list of pages as builds leave it: nothing is
    written there, and the build says so.
    """
    if not (site / "index.html").exists():
        return False
    try:
        # of a million pages: all of it is read only where something has changed
        with files.open_regular(site / ".generated") as listing:
            return b"[" not in listing.read(files.SEAL_LINE_SIZE + 1)
    except FileNotFoundError:
        return True


def _make_folder(folder: Path) -> bool:
    """Make a folder; tell whether it was not there."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def _remove_empty_site(site: Path) -> None:
    with suppress(OSError):
        (site / _LOCK_FILE).unlink()
        site.rmdir()
