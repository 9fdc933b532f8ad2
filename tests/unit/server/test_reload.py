"""Hot reload: what is tried again after an error."""

import asyncio
import shutil
from pathlib import Path

import pytest

from support.asgi import sent_by
from support.server import wait_until
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server import reload
from toolcatalog.server.process import ServerSettings, create_worker_app
from toolcatalog.server.reload import SnapshotReloader
from toolcatalog.server.state import AppState, LocalFlag
from toolcatalog.store.store import Store


class _ShortOfMemory(AppState):
    """A state that has no memory for the first snapshot."""

    attempts = 0

    def switch_snapshot(self, store: Store) -> None:
        self.attempts += 1
        if self.attempts == 1:
            raise MemoryError
        super().switch_snapshot(store)


def test_a_snapshot_is_tried_again_after_any_error(
    shipped_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after an error that does not say that the snapshot is damaged."""
    state = _ShortOfMemory(KeyRing(None), None)
    reloader = SnapshotReloader(state, shipped_build, None)
    with pytest.raises(MemoryError):
        reloader.check_once()
    reloader.check_once()
    assert (state.attempts, state.current) == (1, None)  # not yet
    monkeypatch.setattr(reload, "_RETRY_DELAY", 0.0)
    for _ in range(2):
        reloader.check_once()
        assert state.current
    assert state.attempts == 2


def test_a_snapshot_that_could_not_be_opened_at_the_start_is_opened_later(
    shipped_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that returns brings back the snapshot, with no other snapshot published."""
    monkeypatch.setattr(reload, "_RETRY_DELAY", 0.0)
    build = Path(shutil.copytree(shipped_build, tmp_path / "build", symlinks=True))
    words = (build / "current").resolve() / "query.words"
    words.rename(tmp_path / "query.words")
    settings = ServerSettings(
        build=build, keys=tmp_path / "keys.json", site=None, wait_for_build=True
    )
    app = create_worker_app(settings, LocalFlag())

    def is_ready() -> bool:
        return asyncio.run(sent_by(app, "/readyz"))[0] == 200

    assert not is_ready()
    (tmp_path / "query.words").rename(words)
    wait_until(is_ready)
