"""Tests of `build.cluster`: builds on a real dask scheduler and workers equal local builds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from distributed import Security

from support.catalogs import generate_catalog
from support.command import error_sentence
from support.files_on_disk import find_leftovers, read_tree
from support.paths import ROOT
from support.server import wait_until
from toolcatalog.build import cluster as clusters
from toolcatalog.errors import UsageError

TOOLS = 800  # a dozen batches: more than those for which no worker is asked

PARTS = "build/.cache/parts/*/*.compiled"

Environment = Mapping[str, str]


@dataclass
class Cluster:
    """A scheduler and its workers, and what runs them."""

    folder: Path
    env: Environment
    stack: ExitStack
    address: str = ""
    scheduler: "subprocess.Popen[bytes] | None" = None
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start(
        self, name: str, *arguments: object, env: Environment | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start a process of the cluster with its log."""
        log = self.stack.enter_context((self.folder / f"{name}.log").open("wb"))
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_" + name.rstrip("0123456789"),
            *map(str, arguments),
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env or self.env)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def join(self, *arguments: object, env: Environment | None = None) -> None:
        """A worker more; returns when the scheduler knows it."""
        name = f"worker{len(self.workers)}"
        few = (
            "--no-nanny",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
            "--local-directory",
            self.folder / "scratch",
        )
        self.workers.append(
            self.start(name, self.address, *few, *(arguments or ("--nthreads", 1)), env=env)
        )
        wait_until(lambda: "Registered to" in (self.folder / f"{name}.log").read_text())


def midway(process: "subprocess.Popen[str]", folder: Path, busy_with: str = PARTS) -> bool:
    """Return whether a build has started to write such files, or ended too early."""
    return next(folder.glob(busy_with), None) is not None or process.poll() is not None


@contextmanager
def cluster_of(workers: int, folder: Path, env: Environment) -> Iterator[Cluster]:
    """Start a cluster with this number of workers on free ports."""
    folder.mkdir()
    with ExitStack() as stack:
        result = Cluster(folder, env, stack)
        output = folder / "scheduler.json"
        free = (
            "--host",
            "127.0.0.1",
            "--port",
            0,
            "--dashboard-address",
            "127.0.0.1:0",
            "--no-dashboard",
        )
        result.scheduler = result.start("scheduler", *free, "--scheduler-file", output)
        wait_until(lambda: output.exists() and output.read_text().endswith("}"))
        result.address = json.loads(output.read_text())["address"]
        for _ in range(workers):
            result.join()
        yield result


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The environment of all processes: one copy of the program, and a separate configuration of
    dask.
    """
    folder = tmp_path_factory.mktemp("program")
    shutil.copytree(
        ROOT / "src" / "toolcatalog",
        folder / "toolcatalog",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return {**os.environ, "PYTHONPATH": str(folder), "DASK_CONFIG": str(folder / "dask")}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog that is worth several workers. Not to be changed."""
    return generate_catalog(tmp_path_factory.mktemp("many") / "catalog", TOOLS, toolkits=10)


@pytest.fixture(scope="module")
def local(catalog: Path, env: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `build` and the `site` that processes of this machine make of it. Not to be
    changed.
    """
    folder = tmp_path_factory.mktemp("local")
    result = building(catalog, folder, env)
    assert finished(result)[0] == 0
    return folder


@pytest.fixture(scope="module")
def cluster(env: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers, of a user with another secret. Not to be changed."""
    folder = tmp_path_factory.mktemp("cluster")
    theirs = {**env, "XDG_CACHE_HOME": str(folder / "home")}
    with cluster_of(2, folder / "cluster", theirs) as result:
        yield result


def building(
    catalog: Path, folder: Path, env: Environment, *arguments: str
) -> "subprocess.Popen[str]":
    """A build into a folder, given as a path from where it runs, as a person would type it."""
    command = [sys.executable, "-m", "toolcatalog", "build", "--catalog", str(catalog), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=folder
    )


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    output, complaint = process.communicate(timeout=240)
    return process.returncode, output, complaint


def run_refused(catalog: Path, folder: Path, env: Environment, *arguments: str) -> str:
    """Return the one sentence of a build that fails and leaves nothing behind."""
    process = building(catalog, folder, env, *arguments)
    code, output, complaint = finished(process)
    last = complaint.splitlines()[-1] if complaint else ""
    assert not (folder / "build" / "current").exists()
    return error_sentence(subprocess.CompletedProcess(process.args, code, output, last + "\n"))


def assert_same(folder: Path, local: Path) -> None:
    """Snapshot and site are there to the byte, and not a file more."""
    for part in ("build/current", "site"):
        result, expected = read_tree(folder / part), read_tree(local / part)
        assert result.keys() == expected.keys()
        assert result == expected
    assert find_leftovers(folder / "build", folder / "site") == []


def test_cluster_build_gives_the_same_bytes(
    catalog: Path, cluster: Cluster, local: Path, env: Environment, tmp_path: Path
) -> None:
    """Digest, snapshot and site equal those of a local build; only the build prints."""
    code, output, complaint = finished(
        building(catalog, tmp_path, env, "--cluster", cluster.address, "--jobs", "1")
    )
    assert (code, output.strip()) == (0, (local / "build" / "current").resolve().name), complaint
    assert [line.partition(":")[0] for line in complaint.splitlines()[:-1]] == [
        "Reading tools",
        "Writing the snapshot",
        "Rendering pages",
    ]
    assert_same(tmp_path, local)
    (tmp_path / "site" / "index.html").unlink()
    # what workers noted of files holds for who is no worker
    again = finished(building(catalog, tmp_path, env))
    assert (again[0], again[1]) == (0, output), again[2]
    assert "Reading tools" not in again[2]
    assert_same(tmp_path, local)


def test_killed_workers_do_not_change_the_result(
    catalog: Path, local: Path, env: Environment, tmp_path: Path
) -> None:
    """One during compilation, another during rendering."""
    with cluster_of(3, tmp_path / "cluster", env) as cluster:
        process = building(catalog, tmp_path, env, "--cluster", cluster.address)
        for victim, busy_with in zip(
            cluster.workers, (PARTS, "site/.staged/*/[0-9]*"), strict=False
        ):
            wait_until(partial(midway, process, tmp_path, busy_with))
            victim.send_signal(signal.SIGSTOP)  # what it is at will not be done
            before = {*tmp_path.glob(busy_with)}
            assert before
            assert process.poll() is None
            victim.kill()
        # as one leaves it that was killed while it wrote
        half = min(before).with_name(".0.0123abcd.part")
        half.write_text("<html>")
        code, output, complaint = finished(process)
        assert (code, output.strip()) == (0, (local / "build" / "current").resolve().name), (
            complaint
        )
        assert len(before) < len(read_tree(tmp_path / "site"))  # it was midway
        assert_same(tmp_path, local)


@pytest.mark.deep
def test_build_without_workers_ends(catalog: Path, env: Environment, tmp_path: Path) -> None:
    """After the timeout, with one sentence; the old build stays."""
    with cluster_of(1, tmp_path / "cluster", env) as cluster:
        before = generate_catalog(tmp_path / "before", 3)
        assert finished(building(before, tmp_path, env))[0] == 0
        previous = read_tree(tmp_path / "build" / "current")
        command = [sys.executable, "-c", IMPATIENT, str(catalog), cluster.address]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            cwd=tmp_path,
        )
        wait_until(lambda: len([*tmp_path.glob(PARTS)]) > 1 or process.poll() is not None)
        cluster.workers[0].kill()
        code, output, complaint = finished(process)
        assert (code, complaint) == (0, "")
        assert (
            output == "No worker of the cluster is left, for 2 seconds: the last good build is "
            "untouched. Start some and build again.\n"
        )
        assert read_tree(tmp_path / "build" / "current") == previous


IMPATIENT = """
import sys
from functools import partial
from pathlib import Path
from toolcatalog.build import cluster
from toolcatalog.build.pipeline import build
from toolcatalog.errors import UsageError

try:
    source = partial(cluster.connect, sys.argv[2], timeout=2.0)
    build(Path(sys.argv[1]), Path("build"), None, worker_source=source)
except UsageError as error:
    print(error)
"""


@pytest.mark.deep
def test_stopped_scheduler_is_reported(catalog: Path, env: Environment, tmp_path: Path) -> None:
    with cluster_of(1, tmp_path / "cluster", env) as cluster:
        process = building(catalog, tmp_path, env, "--no-site", "--cluster", cluster.address)
        wait_until(partial(midway, process, tmp_path))
        assert cluster.scheduler
        cluster.scheduler.kill()
        code, output, complaint = finished(process)
        assert (code, output, complaint[-1500:] if code == 3 else "") == (2, "", "")
        assert complaint.splitlines()[1:] == [
            (
                "error: The scheduler of the cluster has ended: the last good build is untouched. "
                "Start it and build again."
            )
        ]


def test_interrupt_ends_the_build(
    catalog: Path, cluster: Cluster, env: Environment, tmp_path: Path
) -> None:
    """Exit code 130; the workers are free for the next build."""
    arguments = ("--no-site", "--cluster", cluster.address)
    process = building(catalog, tmp_path, env, *arguments)
    wait_until(partial(midway, process, tmp_path))
    process.send_signal(signal.SIGINT)
    code, output, complaint = finished(process)
    assert (code, output, [line for line in complaint.splitlines()[1:] if line]) == (130, "", [])
    assert finished(building(catalog, tmp_path, env, *arguments))[0] == 0


@pytest.mark.deep
def test_unfit_worker_is_named(catalog: Path, env: Environment, tmp_path: Path) -> None:
    """Other program code, or a second thread, at the start and for a worker that joins later."""
    other = tmp_path / "other"
    shutil.copytree(env["PYTHONPATH"], other)
    with (other / "toolcatalog" / "names.py").open("a") as file:
        file.write("#\n")
    with cluster_of(1, tmp_path / "cluster", env) as cluster:
        arguments = ("--no-site", "--cluster", cluster.address)
        cluster.join("--nthreads", 2)
        assert "it works with 2 threads (start it with --nthreads 1)" in run_refused(
            catalog, tmp_path, env, *arguments
        )
        cluster.workers[1].kill()
        process = building(catalog, tmp_path, env, *arguments)
        wait_until(partial(midway, process, tmp_path))
        cluster.workers[0].kill()
        cluster.join(env={**env, "PYTHONPATH": str(other)})  # which gets the work now
        code, _, complaint = finished(process)
        assert code == 2
        late = (
            "error: A worker that joined later cannot take part: it runs another toolcatalog, "
            "Python or library"
        )
        assert complaint.splitlines()[-1].startswith(late)
        sentence = run_refused(catalog, tmp_path, env, *arguments)
        assert sentence.startswith(
            "error: 1 of 1 workers cannot take part in this build; tcp://127.0.0.1:"
        )
        assert (
            "it runs another toolcatalog, Python or library (install the same, and start it again)"
            in sentence
        )


def test_folders_that_are_not_shared_are_refused(
    catalog: Path, cluster: Cluster, env: Environment, tmp_path: Path
) -> None:
    """The error names the worker."""
    command = [sys.executable, "-c", ELSEWHERE, str(catalog), cluster.address]
    result = subprocess.run(
        command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=240, check=True
    )
    missing, copied, read_only = result.stdout.splitlines()
    assert "2 of 2 workers cannot take part in this build; tcp://127.0.0.1:" in missing
    assert f"it does not see {catalog / 'nowhere'}, or sees something else there" in missing
    assert f"it does not see {catalog / 'toolkits'}, or sees something else there" in copied
    assert "it cannot write to /proc (" in read_only


# Requirements that no worker meets: a folder that does not exist, another inode, no right to write.
ELSEWHERE = """
import sys
from pathlib import Path
from toolcatalog.build import cluster
from toolcatalog.errors import UsageError
from toolcatalog.build.changes import BuildPaths

catalog = Path(sys.argv[1])
paths = BuildPaths(catalog=catalog, out=Path("build").absolute(), site=None)
valid = cluster.worker_requirements(paths)
toolkits = str(catalog / "toolkits")
for needs in (
    valid._replace(inodes={**valid.inodes, str(catalog / "nowhere"): 1}),
    valid._replace(inodes={**valid.inodes, toolkits: valid.inodes[toolkits] + 1}),
    valid._replace(writable_folders=["/proc"]),
):
    client = cluster._client(sys.argv[2])
    try:
        cluster._check_workers(client, needs, 5.0)
    except UsageError as error:
        print(error)
    client.close()
"""


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8786",
        "scheduler",
        "scheduler:8786",
        "tcp://scheduler",
        "tcp://scheduler:port",
    ],
)
def test_invalid_address_is_refused(address: str) -> None:
    """Before any connection."""
    with pytest.raises(
        UsageError,
        match=re.escape(
            f"{address} is not the address of a scheduler: give tcp://HOST:PORT or tls://HOST:PORT."
        ),
    ):
        clusters._security(address, Security())


def test_tls_uses_certificates() -> None:
    """From the configuration of dask."""
    with pytest.raises(UsageError, match=r"under `distributed\.comm\.tls`: there are none"):
        clusters._security("tls://127.0.0.1:8786", Security(tls_ca_file=None))


def test_unreachable_scheduler_is_reported_soon(
    catalog: Path, env: Environment, tmp_path: Path
) -> None:
    sentence = run_refused(catalog, tmp_path, env, "--cluster", "tcp://127.0.0.1:1", "--no-site")
    assert sentence.startswith("error: No scheduler answers at tcp://127.0.0.1:1 (")


def test_missing_extra_is_reported(catalog: Path, env: Environment, tmp_path: Path) -> None:
    """It names the extra `cluster`."""
    (tmp_path / "distributed.py").write_text("raise ImportError")
    poor = {**env, "PYTHONPATH": f"{tmp_path}{os.pathsep}{env['PYTHONPATH']}"}
    assert "run `pip install 'toolcatalog[cluster]'`" in run_refused(
        catalog, tmp_path, poor, "--cluster", "tcp://127.0.0.1:1"
    )
