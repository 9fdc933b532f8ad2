"""Hot reload: a thread that opens a new snapshot and puts it into service."""

import logging
import os
import threading
import time
from pathlib import Path

from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.publish import trusted_pointers
from toolcatalog.publish.signatures import VerifyKeys
from toolcatalog.server.state import AppState
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import verify
from toolcatalog.store import open as store_open
from toolcatalog.store.store import Store
from toolcatalog.system import threads

POLL_INTERVAL = 0.5  # seconds
_RETRY_DELAY = (
    30.0  # seconds until a rejected snapshot is tried again: its disk may be available again
)
_MAX_LOGGED_PROBLEMS = 3  # problems of a snapshot that are logged
_log = logging.getLogger("toolcatalog.server")

# the folder that `current` names, and the inode and modification time of its manifest
SnapshotIdentity = tuple[str, int, int]


def read_current_identity(build: Path) -> SnapshotIdentity | None:
    """Return the identity of the snapshot that `build/current` names.

    The snapshot may be damaged. Returns None if there is no such link.
    """
    current = build / "current"
    folder = current.resolve()
    try:
        manifest = (folder / snapshot_format.MANIFEST).stat()
    except OSError:
        return (str(folder), 0, 0) if os.path.lexists(current) else None
    return str(folder), manifest.st_ino, manifest.st_mtime_ns


class SnapshotReloader:
    """Keeps the served snapshot in step with a build.

    `last_seen` is the identity that was current when the served store was opened. With
    `verify_keys`, a snapshot is served only if one of them has signed it.
    """

    def __init__(
        self,
        state: AppState,
        build: Path,
        last_seen: SnapshotIdentity | None,
        verify_keys: VerifyKeys | None = None,
    ) -> None:
        self.state = state
        self.build = build
        self._verify_keys = verify_keys
        self._last_seen = last_seen
        self._unaccepted: SnapshotIdentity | None = None
        self._rejected_at = 0.0

    def start(self) -> None:
        """Check twice a second from now on, until the process ends."""
        threads.start(threading.Thread(target=self._run, name="reloading", daemon=True))

    def _run(self) -> None:
        while True:
            time.sleep(POLL_INTERVAL)
            try:
                self.check_once()
            except Exception:  # noqa: BLE001 - keep serving, and check again
                _log.exception("looking for a new build failed")

    def check_once(self) -> None:
        """Serve the current snapshot if it is another one, or log why it is rejected."""
        found, now = read_current_identity(self.build), time.monotonic()
        is_due = self._rejected_at and now - self._rejected_at >= _RETRY_DELAY
        if (
            found is None
            or (found == self._last_seen and not is_due)
            or not self._is_accepted(found)
        ):
            return
        self._last_seen, self._rejected_at = found, now  # any error leaves it rejected
        try:
            is_signed = self._verify_keys is not None
            self._switch(_open_verified(Path(found[0]), self.build, is_signed=is_signed))
            self._rejected_at = 0.0
        except SnapshotError as error:
            self.state.observer.counters.count_reload(ok=False)
            _log.error(
                "new snapshot %s is refused, %s stays: %s",
                _short_digest(Path(found[0]).name),
                _short_digest(self.state.digest.decode()),
                error,
            )

    def _is_accepted(self, found: SnapshotIdentity) -> bool:
        """Return whether a snapshot has the required signature.

        A signature may come later, so an unsigned snapshot is checked each time, and logged once.
        """
        if self._verify_keys is None:
            return True
        try:
            trusted_pointers.require_signature(self.build, Path(found[0]).name, self._verify_keys)
        except SnapshotError as error:
            if found != self._unaccepted:
                _log.error("%s", error)
            self._unaccepted = found
            return False
        return True

    def _switch(self, store: Store) -> None:
        before = self.state.digest.decode()
        self.state.switch_snapshot(store)
        self.state.observer.counters.count_reload(ok=True)
        _log.info(
            "serving snapshot %s, before: %s", _short_digest(store.digest), _short_digest(before)
        )


def _open_verified(folder: Path, build: Path, *, is_signed: bool) -> Store:
    """Open a snapshot and verify all of its bytes. Raises SnapshotError."""
    store = store_open.open_snapshot(folder, build, is_signed=is_signed)
    if wrong := verify.verify_snapshot(folder):
        faults = "; ".join(wrong[:_MAX_LOGGED_PROBLEMS]) + (
            f"; and {len(wrong) - _MAX_LOGGED_PROBLEMS} more"
            if len(wrong) > _MAX_LOGGED_PROBLEMS
            else ""
        )
        raise SnapshotError(f"The build in {build} is damaged ({faults}): {REBUILD_HINT}")
    return store


def _short_digest(digest: str) -> str:
    return digest[:12] or "none"
