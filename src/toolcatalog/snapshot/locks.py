"""Write locks: one writer at a time for a build directory and a site directory.

A lock is an advisory lock on a file, not the existence of the file: it ends with its process,
however that ends. The folders may come from a checkout, so symbolic links in them are rejected: a
link could make a build write or remove files elsewhere.
"""

import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from toolcatalog.errors import UsageError, write_error
from toolcatalog.system import files

STAGED = ".staged"  # in a site: rendered pages, until all are rendered
_LOCK_FILE = ".lock"


def check_folders(catalog: Path, out: Path, site: Path | None) -> None:
    """Raise UsageError if a build would write through a link or if its folders overlap.

    A build removes old files from the folders that it writes to, so none may be equal to or inside
    of another.
    """
    refuse_link(out, "--out")
    if site:
        refuse_link(site, "--site")
    folders = [("catalog", catalog), ("build folder", out), *([("site", site)] if site else [])]
    resolved = [(label, path, os.path.realpath(path)) for label, path in folders]
    for number, (label, path, real) in enumerate(resolved):
        for other, other_path, other_real in resolved[number + 1 :]:
            if real == other_real:
                relation = f"The {other} and the {label} are the same folder ({path})"
            elif other_real.startswith(f"{real.rstrip('/')}/"):
                relation = f"The {other} ({other_path}) is inside of the {label} ({path})"
            elif real.startswith(f"{other_real.rstrip('/')}/"):
                relation = f"The {label} ({path}) is inside of the {other} ({other_path})"
            else:
                continue
            raise UsageError(
                f"{relation}: a build could overwrite or remove files there. Name folders next to "
                "each other with --catalog, --out and --site."
            )


def refuse_link(path: Path | str, option: str) -> None:
    """Raise UsageError if a folder to write to is a symbolic link."""
    if Path(path).is_symlink():
        raise UsageError(
            f"{path} is a symbolic link, and a build writes to plain folders only: remove the "
            f"link, or name the folder that it leads to with {option}."
        )


def _refuse_links(out: Path) -> None:
    """Raise UsageError if the build folder or a folder in it is a symbolic link."""
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
    """Lock a build folder, and turn errors while writing to it into UsageError.

    `failure_hint` says in messages what the state is and what to repeat. Waits up to `timeout`
    seconds for another build. Raises UsageError if another build is still writing, if a file cannot
    be written, and if a worker process was killed.
    """
    try:
        with _lock_folder(out, timeout):
            yield
    except BrokenExecutor:
        problem = "A worker process was killed, probably out of memory"
        raise UsageError(
            f"{problem}: {failure_hint} again, with --jobs 1 if it happens again."
        ) from None
    except OSError as error:
        raise write_error(error.filename or out, error, ", or name another folder") from None


@contextmanager
def _lock_folder(out: Path, timeout: float) -> Iterator[None]:
    """Lock a folder and create it if necessary.

    A new folder gets a `.gitignore` for all of it; an existing folder belongs to the user and stays
    unchanged.
    """
    _refuse_links(out)
    if _make_folder(out):
        files.write_unsynced(out / ".gitignore", b"*\n")
    with files.lock(out / _LOCK_FILE, timeout) as is_locked:
        if not is_locked:
            raise UsageError(f"Another build is writing to {out}: try again when it is done.")
        yield


@contextmanager
def lock_site(site: Path | None) -> Iterator[None]:
    """Lock a site before it is read, since builds into other folders may write to it too.

    At the end, staged pages are removed, and also a folder that was created for the lock and got no
    page. None: there is no site. Raises UsageError if another build is writing, and OSError.
    """
    if site is None or _is_foreign_site(site):
        yield
        return
    is_new = _make_folder(site)
    with files.lock(site / _LOCK_FILE) as is_locked:
        if not is_locked:
            raise UsageError(f"Another build is writing to {site}: try again when it is done.")
        try:
            yield
        finally:
            with suppress(OSError):  # do not hide an earlier error
                files.remove(site / STAGED)
            if is_new and [path.name for path in site.iterdir()] == [_LOCK_FILE]:
                _remove_empty_site(site)


def _is_foreign_site(site: Path) -> bool:
    """Return whether a folder contains a site without the page list that builds write.

    Such a site is left alone, and the build reports it.
    """
    if not (site / "index.html").exists():
        return False
    try:
        # It may list a million pages, so only its beginning is read here.
        with files.open_regular(site / ".generated") as listing:
            return b"[" not in listing.read(files.SEAL_LINE_SIZE + 1)
    except FileNotFoundError:
        return True


def _make_folder(folder: Path) -> bool:
    """Create a folder; return whether it is new."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def _remove_empty_site(site: Path) -> None:
    with suppress(OSError):
        (site / _LOCK_FILE).unlink()
        site.rmdir()
