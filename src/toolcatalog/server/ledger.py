"""What several processes have counted, in one folder: each writes its own page, and whoever is
asked adds all pages up.

A page is replaced in one step, so it is always whole. The supervisor adds the pages of processes
that have ended to one page of the past, which names them: a reader that meets both in the middle of
that counts them once. So no number ever goes back when a process ends, is killed or is replaced; a
killed one takes what it counted since its last page with it, half a second at most.

The folder is in memory where there is such a file system (`/dev/shm`): nothing is flushed to a
disk, and none is needed. Its supervisor holds a lock in it, so that the next one knows what a
killed one has left.
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

from toolcatalog import files, threads
from toolcatalog.errors import UsageError
from toolcatalog.server.tallies import Counts, restored, total

WRITE_EVERY = 0.5  # seconds
_PREFIX, _LOCK, _PAST = "toolcatalog-", "lock", "past.json"
_YOUNG = 60.0  # seconds
_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made in it has a name of its own and mode 0700
_REMEMBERED = 1000  # pages added to the past last, by name: no reader is that slow
_log = logging.getLogger("toolcatalog.server")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder for the pages, gone in the end. Raises UsageError where none can be made."""
    try:
        within = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=within))
    except OSError as error:
        reason = f"No folder for what the workers count can be made ({error.strerror})"
        raise UsageError(
            f"{reason}: name one that may be written to in TMPDIR, or run one worker."
        ) from None
    try:
        with files.alone(place / _LOCK):
            _sweep(within)
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _sweep(within: Path) -> None:
    """Remove what supervisors of this account that were killed have left: nobody holds its lock.
    One that is new may not be held yet.
    """
    for place in within.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_ours(place.lstat()) and (place / _LOCK).exists():
                with files.alone(place / _LOCK) as is_left:
                    if is_left:
                        shutil.rmtree(place, ignore_errors=True)


def _is_ours(found: os.stat_result) -> bool:
    """Tell whether this account has made a folder, and not just now: anybody may put one, or a
    link, where it stands.
    """
    ours = stat.S_ISDIR(found.st_mode) and hasattr(os, "geteuid") and found.st_uid == os.geteuid()
    return ours and found.st_mtime < time.time() - _YOUNG


def read(pages: Path) -> list[Counts]:
    """All pages, and the past. Raises FileNotFoundError where the folder is gone."""
    if not pages.is_dir():
        # the server is about to end: a scrape that fails is better than numbers that go back
        raise FileNotFoundError(pages)
    found = {}
    for file in pages.glob("*.page"):
        with contextlib.suppress(FileNotFoundError):  # it has just become the past
            found[file.name] = file.read_bytes()
    past = _past(pages)  # after the pages: what has become the past meanwhile is named there
    return [
        past.counts,
        *(restored(orjson.loads(page)) for name, page in found.items() if name not in past.names),
    ]


def fold(pages: Path, alive: Collection[int | None]) -> None:
    """Add the pages of all processes but these to the past. For the supervisor alone, when it has
    replaced who died. Raises OSError.
    """
    dead = [file for file in pages.glob("*.page") if int(file.name.partition("-")[0]) not in alive]
    if not dead:
        return
    past = _past(pages)
    counts = total(
        [
            past.counts,
            *(
                restored(orjson.loads(file.read_bytes()))
                for file in dead
                if file.name not in past.names
            ),
        ]
    )
    names = [*past.names, *(file.name for file in dead)][-_REMEMBERED:]
    _replace(
        pages / _PAST,
        orjson.dumps(
            {"names": names, **_fields(Counts(counts.answered, counts.keys, counts.events))}
        ),
    )
    for file in dead:
        file.unlink()
        file.with_suffix(".part").unlink(missing_ok=True)


class _Past:
    """What ended processes have counted, and the names of their pages."""

    def __init__(self, names: list[str], counts: Counts) -> None:
        self.names = names
        self.counts = counts


def _past(pages: Path) -> _Past:
    try:
        fields = orjson.loads((pages / _PAST).read_bytes())
    except FileNotFoundError:
        return _Past([], Counts())
    return _Past(fields["names"], restored(fields))


def _fields(counts: Counts) -> dict[str, object]:
    return {
        "answered": counts.answered,
        "keys": counts.keys,
        "events": counts.events,
        "now": counts.now,
    }


def _replace(file: Path, data: bytes) -> None:
    beside = file.with_suffix(".part")
    beside.write_bytes(data)
    beside.replace(file)


class Page:
    """The page of this process: what `counted` says is written there now, and twice a second where
    it has changed.
    """

    def __init__(self, pages: Path, counted: Callable[[], Counts]) -> None:
        self._pages = pages
        self._file = pages / f"{os.getpid()}-{os.urandom(4).hex()}.page"
        self._counted = counted
        self._written: bytes | None = None
        self._one = threading.Lock()
        self._works = True
        self.write()
        threads.begin(threading.Thread(target=self._run, name="counting", daemon=True))

    def _run(self) -> None:
        while True:
            time.sleep(WRITE_EVERY)
            self.write()

    def write(self) -> None:
        """Write it now. Where that fails, what was counted stays in memory for the next time: the
        log says so once.
        """
        with self._one:
            data = orjson.dumps(_fields(self._counted()))
            if data == self._written:
                return
            try:
                _replace(self._file, data)
                self._written, self._works = data, True
            except OSError as error:
                if self._works:
                    _log.error(
                        (
                            "what this process counts is not to be seen for now: %s cannot be "
                            "written (%s)"
                        ),
                        self._file,
                        error.strerror,
                    )
                self._works = False

    def every(self) -> list[Counts]:
        """The counts of all processes, this one's as they are now."""
        self.write()
        return read(self._pages)
