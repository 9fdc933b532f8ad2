"""Limits on threads and processes: work continues with fewer, or one sentence reports it."""

import re
import resource
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from support.catalogs import generate_catalog
from support.command import error_sentence
from support.server import TIMEOUT, create_key, wait_until
from toolcatalog.build.pipeline import build
from toolcatalog.errors import UsageError
from toolcatalog.system import threads

GIB = 1 << 30
STACK = 4 * GIB  # that a thread takes of the addresses that its process may have
REST = 3 * GIB  # that all else takes, at most
TOOLS = 700  # more batches than are compiled without processes

needs_limits = pytest.mark.skipif(
    sys.platform != "linux"
    or resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY,
    reason="threads can be limited by their addresses on Linux only, where no stack is limited",
)


def limited(most: int, *command: object) -> "subprocess.CompletedProcess[str]":
    """Run the program with a limit on the threads of each process."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (most * STACK + REST,) * 2)

    arguments = [sys.executable, "-m", "toolcatalog", *map(str, command)]
    return subprocess.run(
        arguments, preexec_fn=limit, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog that is worth two processes."""
    return generate_catalog(tmp_path_factory.mktemp("many") / "catalog", TOOLS)


@needs_limits
@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 5, 6])
def test_build_uses_fewer_processes_if_limited(most: int, catalog: Path, tmp_path: Path) -> None:
    """Or none, and never waits for one that cannot start."""
    result = limited(
        most,
        "build",
        "--catalog",
        catalog,
        "--out",
        tmp_path / "build",
        "--site",
        tmp_path / "site",
        "--jobs",
        2,
    )
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stderr
    assert result.stdout.strip() == build(catalog, tmp_path / "other", None).digest


@pytest.fixture
def no_shared_memory_command() -> list[str]:
    """Return the prefix of a command that runs it without shared memory, as in some containers."""
    alone = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"',
        "sh",
    ]
    if (
        not shutil.which("unshare")
        or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this account may not mount a disk for a process of its own")
    return [*alone, sys.executable, "-m", "toolcatalog"]


def test_build_works_without_shared_memory(
    no_shared_memory_command: list[str], catalog: Path, tmp_path: Path
) -> None:
    """Which holds the locks of processes."""
    command = f"build --catalog {catalog} --out {tmp_path}/build --no-site --jobs 2"
    result = subprocess.run(
        [*no_shared_memory_command, *command.split()],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == build(catalog, tmp_path / "other", None).digest


def test_workers_run_without_shared_memory(
    no_shared_memory_command: list[str], shipped_build: Path, tmp_path: Path
) -> None:
    """They answer and drain."""
    create_key(tmp_path / "keys.json")
    command = (
        f"serve --build {shipped_build} --keys {tmp_path}/keys.json --port 0 --workers 2 "
        f"--drain 3600"
    )
    with (
        subprocess.Popen(
            [*no_shared_memory_command, *command.split()], stderr=subprocess.PIPE, text=True
        ) as server,
        ExitStack() as ends,
    ):
        ends.callback(server.kill)  # should what follows fail, it would be waited for
        assert server.stderr
        url = next(
            result[0] for line in server.stderr if (result := re.search("http://[0-9.:]+", line))
        )
        assert httpx.get(f"{url}/readyz", timeout=TIMEOUT).status_code == 200
        server.terminate()
        wait_until(lambda: httpx.get(f"{url}/readyz").status_code == 503)
        server.terminate()
        _, output = server.communicate(timeout=TIMEOUT)
    assert (server.returncode, "Traceback" in output) == (0, False), output


@needs_limits
def test_server_without_threads_reports_it(shipped_build: Path, tmp_path: Path) -> None:
    """It cannot follow its build."""
    (tmp_path / "keys.json").write_text('{"format": 1, "keys": []}')
    result = limited(
        0, "serve", "--build", shipped_build, "--keys", tmp_path / "keys.json", "--port", 0
    )
    assert error_sentence(result).startswith("error: No more threads may be started here")


@needs_limits
def test_object_store_without_threads_is_reported(shipped_build: Path, tmp_path: Path) -> None:
    """The library starts its own."""
    result = limited(0, "publish", f"file://{tmp_path}/store", "--build", shipped_build)
    assert error_sentence(result).startswith("error: No more threads may be started here")


def test_thread_count_is_measured_and_released() -> None:
    before = threading.active_count()
    assert threads.count_available(5) == 5
    assert threading.active_count() == before


def test_thread_error_is_one_sentence() -> None:
    """With the limit to raise."""
    thread = threading.Thread(target=str)
    thread.start()
    with pytest.raises(UsageError, match="No more threads may be started here: raise the limit"):
        threads.start(thread)
