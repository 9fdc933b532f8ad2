"""A thread that notices a new build and lets the server answer from it: opened and verified beside
the old one, or refused.
"""

import logging
import os
import threading
import time
from pathlib import Path

from toolcatalog import accepting, opening, snapshot, threads, verifying
from toolcatalog.errors import MEND, SnapshotError
from toolcatalog.server.live import Live
from toolcatalog.signing import VerifyKeys
from toolcatalog.store import Store

LOOK_EVERY = 0.5  # seconds
_AGAIN = 30.0  # seconds until what was refused is tried again: a disk that was away may be back
_TOLD = 3  # things that are wrong with a snapshot, in the log
_log = logging.getLogger("toolcatalog.server")

# a snapshot as `current` names it: its folder, and which manifest lies there
Named = tuple[str, int, int]


def named(build: Path) -> Named | None:
    """What `build/current` names, be it whole or not; None where there is no such link."""
    current = build / "current"
    folder = current.resolve()
    try:
        manifest = (folder / snapshot.MANIFEST).stat()
    except OSError:
        return (str(folder), 0, 0) if os.path.lexists(current) else None
    return str(folder), manifest.st_ino, manifest.st_mtime_ns


class Reloading:
    """Keeps what is live in step with a build. `seen` is what was named when the store that is live
    was opened. With `verify_keys` a snapshot is taken over only where one of them has signed it.
    """

    def __init__(
        self, live: Live, build: Path, seen: Named | None, verify_keys: VerifyKeys | None = None
    ) -> None:
        self.live = live
        self.build = build
        self._verify_keys = verify_keys
        self._seen = seen
        self._unaccepted: Named | None = None
        self._refused_at = 0.0

    def start(self) -> None:
        """Look twice a second from now on, until the process ends."""
        threads.begin(threading.Thread(target=self._run, name="reloading", daemon=True))

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_EVERY)
            try:
                self.look()
            except Exception:  # noqa: BLE001 - whatever it is: the next look may do better, and what is live stays
                _log.exception("looking for a new build failed")

    def look(self) -> None:
        """Look once: where another snapshot is named than before, take it over, or say why not."""
        found, now = named(self.build), time.monotonic()
        is_due = self._refused_at and now - self._refused_at >= _AGAIN
        if found is None or (found == self._seen and not is_due) or not self._is_accepted(found):
            return
        self._seen, self._refused_at = found, 0.0
        try:
            self._exchange(_opened(Path(found[0]), self.build))
        except SnapshotError as error:
            self.live.witness.tallies.reloaded(ok=False)
            self._refused_at = now
            _log.error(
                "new snapshot %s is refused, %s stays: %s",
                _short(Path(found[0]).name),
                _short(self.live.snapshot.decode()),
                error,
            )

    def _is_accepted(self, found: Named) -> bool:
        """Tell whether a snapshot has the signature that it needs. It may come later, so one that
        has none is looked at each time, and told of once.
        """
        if self._verify_keys is None:
            return True
        try:
            accepting.require(self.build, Path(found[0]).name, self._verify_keys)
        except SnapshotError as error:
            if found != self._unaccepted:
                _log.error("%s", error)
            self._unaccepted = found
            return False
        return True

    def _exchange(self, store: Store) -> None:
        before = self.live.snapshot.decode()
        self.live.exchange(store)
        self.live.witness.tallies.reloaded(ok=True)
        _log.info("serving snapshot %s, before: %s", _short(store.digest), _short(before))


def _opened(folder: Path, build: Path) -> Store:
    """A snapshot, verified from its first byte to its last. Raises SnapshotError."""
    store = opening.open_snapshot(folder, build)
    if wrong := verifying.verify(folder):
        told = "; ".join(wrong[:_TOLD]) + (
            f"; and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        )
        raise SnapshotError(f"The build in {build} is damaged ({told}): {MEND}")
    return store


def _short(digest: str) -> str:
    return digest[:12] or "none"
