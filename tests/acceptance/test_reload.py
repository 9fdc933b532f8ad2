"""Reload: a running server follows `build/current` and refuses damaged snapshots."""

import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import orjson
import pytest

from support.paths import SHIPPED_CATALOG
from support.server import TIMEOUT, Server, start_server, wait_until
from toolcatalog.build.pipeline import build
from toolcatalog.system import files

TOOL = "/api/v3/tools/GITHUB_CREATE_ISSUE"
SESSION = "/api/v3/tool_router/session/trs_playground/tools"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A build with two snapshots, the second in force: its folder and their digests."""
    folder = tmp_path_factory.mktemp("two")
    catalog = Path(shutil.copytree(SHIPPED_CATALOG, folder / "catalog"))
    first = build(catalog, folder / "build", None).digest
    metadata = catalog / "toolkits/github/toolkit.yaml"
    metadata.write_text(metadata.read_text().replace("name: GitHub", "name: GitHub again", 1))
    second = build(catalog, folder / "build", None).digest
    assert first != second
    return folder / "build", first, second


class ServedBuild:
    """A copy of that build, whose `current` can be changed."""

    def __init__(self, two: tuple[Path, str, str], folder: Path) -> None:
        original, self.first, self.second = two
        self.build = Path(
            shutil.copytree(
                original, folder / "build", symlinks=True, ignore=shutil.ignore_patterns(".cache")
            )
        )
        self.point(self.first)

    def point(self, digest: str) -> None:
        files.replace_symlink(self.build / "current", f"snapshots/{digest}")

    def folder(self, digest: str) -> Path:
        return self.build / "snapshots" / digest


@pytest.fixture
def served_build(two: tuple[Path, str, str], tmp_path: Path) -> ServedBuild:
    """A separate build for each test."""
    return ServedBuild(two, tmp_path)


@pytest.fixture
def server(served_build: ServedBuild, tmp_path: Path) -> Iterator[Server]:
    """A server of it that answers: it says where it will before it has looked which snapshot is in
    force.
    """
    with start_server(served_build.build, tmp_path) as server:
        assert snapshot(server) == served_build.first
        yield server


def snapshot(server: Server, path: str = TOOL) -> str:
    """Which snapshot a good answer comes from."""
    response = httpx.get(server.url + path, headers={"x-api-key": server.key})
    assert response.status_code == 200
    return response.headers["x-catalog-snapshot"]


def is_served(server: Server, digest: str, path: str = TOOL) -> bool:
    """Tell whether answers come from this snapshot."""
    return snapshot(server, path) == digest


@pytest.mark.parametrize(
    "path", [TOOL, "/api/v3/tools", SESSION, "/openapi.json", "/healthz", "/readyz"]
)
def test_all_routes_answer_from_the_new_snapshot(
    served_build: ServedBuild, server: Server, path: str
) -> None:
    """And after a rollback."""
    assert snapshot(server, path) == served_build.first
    for digest in (served_build.second, served_build.first):
        served_build.point(digest)
        wait_until(partial(is_served, server, digest, path))
    assert httpx.get(f"{server.url}/readyz").json() == {
        "status": "ready",
        "snapshot": served_build.first,
    }


def test_kept_connection_gets_the_new_snapshot(served_build: ServedBuild, server: Server) -> None:
    """No cached response of the old one."""
    with httpx.Client(base_url=server.url, headers={"x-api-key": server.key}) as client:
        for _ in range(3):
            assert client.get(TOOL).json()["toolkit"]["name"] == "GitHub"
        served_build.point(served_build.second)
        wait_until(lambda: client.get(TOOL).headers["x-catalog-snapshot"] == served_build.second)
        assert client.get(TOOL).json()["toolkit"]["name"] == "GitHub again"


def test_errors_name_the_snapshot(server: Server, served_build: ServedBuild) -> None:
    """401, 404 and 405."""
    for method, path in (("GET", TOOL), ("GET", "/nothing"), ("POST", TOOL)):
        assert (
            httpx.request(method, server.url + path).headers["x-catalog-snapshot"]
            == served_build.first
        )


def mapped(server: Server, digest: str) -> bool:
    """Tell whether the server has files of a snapshot mapped."""
    return digest in Path(f"/proc/{server.process.pid}/maps").read_text()


def test_old_snapshot_is_unmapped(served_build: ServedBuild, server: Server) -> None:
    """So that pruning frees its disk space."""
    assert snapshot(server, "/api/v3/tools?query=issue") == served_build.first
    assert mapped(server, served_build.first)
    served_build.point(served_build.second)
    wait_until(lambda: snapshot(server) == served_build.second)
    wait_until(lambda: not mapped(server, served_build.first))


def flip(file: Path) -> None:
    """Change a bit in the middle of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def newer(folder: Path) -> None:
    """Make a snapshot one of a format to come."""
    file = folder / "manifest.json"
    file.write_bytes(orjson.dumps({**orjson.loads(file.read_bytes()), "format": 999}))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "has other bytes than were written": lambda folder: flip(folder / "tools.json"),
    "is missing": lambda folder: (folder / "query.words").unlink(),
    "has format 999": newer,
    "There is no finished build": lambda folder: (folder / "manifest.json").unlink(),
    "is not the one that was written": lambda folder: flip(folder / "manifest.json"),
    "not listed": lambda folder: (folder / "more.json").write_text("{}"),
}


@pytest.mark.parametrize("output", DAMAGES)
def test_incomplete_snapshot_is_refused(
    served_build: ServedBuild, server: Server, output: str
) -> None:
    """The old one stays; the log says why, once; the next good one is loaded."""
    document = shutil.copytree(
        served_build.folder(served_build.second), served_build.build / "whole"
    )
    DAMAGES[output](served_build.folder(served_build.second))
    served_build.point(served_build.second)
    wait_until(lambda: "is refused" in server.log.read_text())
    assert snapshot(server) == served_build.first
    assert output in server.log.read_text()
    time.sleep(1.2)  # two more looks
    assert server.log.read_text().count("is refused") == 1
    shutil.rmtree(served_build.folder(served_build.second))
    document.rename(served_build.folder(served_build.second))
    wait_until(lambda: snapshot(server) == served_build.second)


def test_broken_current_link_changes_nothing(served_build: ServedBuild, server: Server) -> None:
    """Or a missing one."""
    served_build.point("f" * 64)
    wait_until(lambda: "is refused" in server.log.read_text())
    (served_build.build / "current").unlink()
    time.sleep(1.2)
    assert snapshot(server) == served_build.first


def test_snapshot_replaced_in_place_is_reopened(served_build: ServedBuild, server: Server) -> None:
    """After a build repaired it under the same name; the old files can be removed."""
    assert snapshot(server) == served_build.first
    folder = served_build.folder(served_build.first)
    shutil.copytree(folder, served_build.build / "again")
    folder.rename(served_build.build / "old")
    shutil.rmtree(served_build.build / "old")
    assert snapshot(server) == served_build.first
    (served_build.build / "again").rename(folder)
    wait_until(lambda: server.log.read_text().count("serving snapshot") == 1)
    assert snapshot(server) == served_build.first


def test_all_workers_reload(served_build: ServedBuild, tmp_path: Path) -> None:
    with start_server(served_build.build, tmp_path, "--workers", "2") as server:
        assert snapshot(server) == served_build.first
        served_build.point(served_build.second)
        wait_until(lambda: {snapshot(server) for _ in range(20)} == {served_build.second})


@pytest.mark.parametrize("workers", [1, 2])
def test_drain_announces_the_shutdown(
    served_build: ServedBuild, tmp_path: Path, workers: int
) -> None:
    """After SIGTERM `/readyz` is 503 and all else works until the time is up."""
    with start_server(served_build.build, tmp_path, "--workers", workers, "--drain", "3") as server:
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: httpx.get(f"{server.url}/readyz").status_code == 503)
        assert httpx.get(f"{server.url}/readyz").json()["error"]["slug"] == "draining"
        assert snapshot(server) == served_build.first
        assert server.process.wait(timeout=TIMEOUT) == 0
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=1)


def test_second_signal_stops_at_once(served_build: ServedBuild, tmp_path: Path) -> None:
    with start_server(served_build.build, tmp_path, "--drain", "3600") as server:
        assert snapshot(server) == served_build.first
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: httpx.get(f"{server.url}/readyz").status_code == 503)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=TIMEOUT) == 0
