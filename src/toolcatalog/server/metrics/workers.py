"""Worker metrics: counters of several processes in one shared folder.

Each process writes its counters to a page, a file that is replaced in one step and is therefore
always complete. The supervisor adds the pages of ended processes to one file, which lists their
names: a reader that sees both a page and that file in the middle of this counts the page once. So
no number ever decreases when a process ends, is killed or is replaced. A killed process loses what
it counted since its last page, half a second at most.

The folder is in memory if there is such a file system (`/dev/shm`): nothing is flushed to a disk,
and nothing needs to be. The supervisor holds a lock in it, so that the next one can recognize what
a killed one has left.

<pid>-<random>.page    the counters of one process, as JSON
past.json              the sum of the counters of ended processes, and the names of their pages
lock                   locked by the supervisor
draining               exists while the server drains (`server.supervisor`)
"""

import contextlib
import logging
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import orjson

from toolcatalog.errors import UsageError
from toolcatalog.server.metrics.counters import CounterValues, parse_values, sum_values
from toolcatalog.system import files, threads

WRITE_INTERVAL = 0.5  # seconds
_FOLDER_PREFIX, _LOCK_FILE, _ENDED_FILE = "toolcatalog-", "lock", "past.json"
_MIN_AGE = 60.0  # seconds
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - our folder has a unique name, mode 0700
_MAX_ENDED_NAMES = 1000  # names of added pages that are kept: no reader is that slow
_log = logging.getLogger("toolcatalog.server")


@contextlib.contextmanager
def create_folder() -> Iterator[Path]:
    """Create a folder for the pages and remove it in the end.

    Raises UsageError if no folder can be created.
    """
    try:
        within = (
            _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        )
        place = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=within))
    except OSError as error:
        reason = f"No folder for the counters of the workers can be created ({error.strerror})"
        raise UsageError(
            f"{reason}: name one that may be written to in TMPDIR, or run one worker."
        ) from None
    try:
        with files.lock(place / _LOCK_FILE):
            _remove_stale_folders(within)
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _remove_stale_folders(parent: Path) -> None:
    """Remove the folders of killed supervisors of this account: nobody locks them.

    A folder that is new may not be locked yet, so it is kept.
    """
    for place in parent.glob(f"{_FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_own_and_stale(place.lstat()) and (place / _LOCK_FILE).exists():
                with files.lock(place / _LOCK_FILE) as is_left:
                    if is_left:
                        shutil.rmtree(place, ignore_errors=True)


def _is_own_and_stale(status: os.stat_result) -> bool:
    """Return whether this account created a folder, and not just now.

    Any account may put a folder or a link there.
    """
    ours = stat.S_ISDIR(status.st_mode) and hasattr(os, "geteuid") and status.st_uid == os.geteuid()
    return ours and status.st_mtime < time.time() - _MIN_AGE


def read_all_counts(folder: Path) -> list[CounterValues]:
    """Return the counts of all pages, and those of ended processes.

    Raises FileNotFoundError if the folder is gone.
    """
    if not folder.is_dir():
        # the server is stopping: a failed scrape is better than numbers that decrease
        raise FileNotFoundError(folder)
    found = {}
    for file in folder.glob("*.page"):
        with contextlib.suppress(FileNotFoundError):  # it has just been folded
            found[file.name] = file.read_bytes()
    past = _read_ended(folder)  # after the pages: those added meanwhile are listed there
    return [
        past.counts,
        *(
            parse_values(orjson.loads(page))
            for name, page in found.items()
            if name not in past.page_names
        ),
    ]


def fold_ended(folder: Path, alive_pids: Collection[int | None]) -> None:
    """Add the pages of all processes except `alive_pids` to those of ended processes.

    Only the supervisor calls this, after it has replaced dead workers. Raises OSError.
    """
    dead = [
        file for file in folder.glob("*.page") if int(file.name.partition("-")[0]) not in alive_pids
    ]
    if not dead:
        return
    past = _read_ended(folder)
    counts = sum_values(
        [
            past.counts,
            *(
                parse_values(orjson.loads(file.read_bytes()))
                for file in dead
                if file.name not in past.page_names
            ),
        ]
    )
    names = [*past.page_names, *(file.name for file in dead)][-_MAX_ENDED_NAMES:]
    _replace_file(
        folder / _ENDED_FILE,
        orjson.dumps(
            {
                "names": names,
                **_counts_to_dict(CounterValues(counts.requests, counts.keys, counts.events)),
            }
        ),
    )
    for file in dead:
        file.unlink()
        file.with_suffix(".part").unlink(missing_ok=True)


class _EndedWorkers:
    """The counts of ended processes, and the names of their pages."""

    def __init__(self, names: list[str], counts: CounterValues) -> None:
        self.page_names = names
        self.counts = counts


def _read_ended(folder: Path) -> _EndedWorkers:
    try:
        fields = orjson.loads((folder / _ENDED_FILE).read_bytes())
    except FileNotFoundError:
        return _EndedWorkers([], CounterValues())
    return _EndedWorkers(fields["names"], parse_values(fields))


def _counts_to_dict(counts: CounterValues) -> dict[str, object]:
    return {
        "answered": counts.requests,
        "keys": counts.keys,
        "events": counts.events,
        "now": counts.workers,
    }


def _replace_file(file: Path, data: bytes) -> None:
    part = file.with_suffix(".part")
    part.write_bytes(data)
    part.replace(file)


class WorkerPage:
    """The page of this process.

    It is written at once, and then twice a second if the counts have changed.
    """

    def __init__(self, folder: Path, get_counts: Callable[[], CounterValues]) -> None:
        self._folder = folder
        self._file = folder / f"{os.getpid()}-{os.urandom(4).hex()}.page"
        self._get_counts = get_counts
        self._last_written: bytes | None = None
        self._lock = threading.Lock()
        self._is_writable = True
        self.write()
        threads.start(threading.Thread(target=self._run, name="counting", daemon=True))

    def _run(self) -> None:
        while True:
            time.sleep(WRITE_INTERVAL)
            self.write()

    def write(self) -> None:
        """Write the page now.

        If that fails, the counts stay in memory for the next time, and the log reports it once.
        """
        with self._lock:
            data = orjson.dumps(_counts_to_dict(self._get_counts()))
            if data == self._last_written:
                return
            try:
                _replace_file(self._file, data)
                self._last_written, self._is_writable = data, True
            except OSError as error:
                if self._is_writable:
                    _log.error(
                        (
                            "the counters of this process are not visible for now: %s cannot be "
                            "written (%s)"
                        ),
                        self._file,
                        error.strerror,
                    )
                self._is_writable = False

    def read_all(self) -> list[CounterValues]:
        """Return the counts of all processes; those of this process are current."""
        self.write()
        return read_all_counts(self._folder)
