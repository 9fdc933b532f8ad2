"""Tests of `system.processes`: shared work, and processes that end with their build."""

import multiprocessing
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from support.catalogs import add_tool, generate_catalog
from support.command import error_sentence, run_successfully
from support.files_on_disk import find_leftovers, read_tree
from support.server import is_running
from support.snapshot_reader import read_documents
from toolcatalog.build.pipeline import build
from toolcatalog.errors import InvalidCatalog
from toolcatalog.system.processes import WorkerPool, available_cpus

MANY = 1500  # tools: far more than the few batches for which no process is started
PATIENCE = 20.0  # seconds
EVERY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(),
    reason="only /proc tells which processes a build has started",
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog that is worth two processes. Not to be changed."""
    return generate_catalog(tmp_path_factory.mktemp("many") / "catalog", MANY)


@pytest.fixture(scope="module")
def snapshot(many: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that one process makes of it."""
    out = tmp_path_factory.mktemp("plain") / "build"
    build(many, out, None)
    assert len(read_documents(out / "current")) == MANY
    return read_tree(out / "current")


def building(catalog: Path, out: Path) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "build",
        "--catalog",
        catalog,
        "--out",
        out,
        "--no-site",
        "--jobs",
        "2",
    ]
    return subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def workers(process: "subprocess.Popen[str]") -> list[int]:
    """The processes that this one has started, once there are two."""
    children, deadline = (
        Path(f"/proc/{process.pid}/task/{process.pid}/children"),
        time.monotonic() + PATIENCE,
    )
    while len(result := children.read_text().split()) < 2:
        assert time.monotonic() < deadline
    return [int(pid) for pid in result]


def all_end(pids: list[int]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_running, pids))


@pytest.mark.parametrize("jobs", [2, 5])
def test_any_number_of_jobs_gives_the_same_bytes(
    jobs: int, many: Path, snapshot: dict[str, bytes], tmp_path: Path
) -> None:
    run_successfully(
        "build", "--catalog", many, "--out", tmp_path / "build", "--no-site", "--jobs", jobs
    )
    assert read_tree(tmp_path / "build" / "current") == snapshot


def test_killed_worker_is_reported(many: Path, snapshot: dict[str, bytes], tmp_path: Path) -> None:
    """Exit code 2; the old snapshot stays, and no process remains."""
    catalog, out = tmp_path / "catalog", tmp_path / "build"
    build(generate_catalog(catalog, 3), out, None)
    previous = read_tree(out / "current")
    for victim in (0, 1):
        shutil.rmtree(out / ".cache")  # with nothing to compile there is no worker
        with building(many, out) as process:
            result = workers(process)
            os.kill(result[victim], signal.SIGKILL)
            output, complaint = process.communicate(timeout=60)
        completed = subprocess.CompletedProcess(process.args, process.returncode, output, complaint)
        assert error_sentence(completed).startswith(
            "error: A worker process was killed, probably out of memory: the last good build is"
            " untouched."
        )
        assert all_end(result)
        assert read_tree(out / "current") == previous
    build(many, out, None)
    assert read_tree(out / "current") == snapshot
    assert find_leftovers(out) == []


def test_site_is_compared_in_a_background_process(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is rendered if nothing changed, except pages that somebody touched."""
    monkeypatch.setattr("toolcatalog.build.pipeline._FEW_TOOLS", 100)
    catalog, out, site = (
        shutil.copytree(many, tmp_path / "catalog"),
        tmp_path / "build",
        tmp_path / "site",
    )
    first = build(catalog, out, site, jobs=2)
    page = site / "tools" / "KIT0_DO_0" / "index.html"
    result = read_tree(site)
    page.write_text("mine")
    assert build(catalog, out, site, jobs=2) == replace(first, changed=False)
    assert read_tree(site) == result
    marked = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    assert build(catalog, out, site, jobs=2) == replace(first, changed=False)
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == marked
    add_tool(catalog, "kit0", "KIT0_DO_0", 1)
    assert (
        build(catalog, out, site, jobs=2).digest
        == build(catalog, tmp_path / "other", tmp_path / "other-site").digest
        != first.digest
    )
    assert read_tree(site) == read_tree(tmp_path / "other-site")


def test_single_batch_is_compiled_in_the_background_process(
    many: Path, snapshot: dict[str, bytes], tmp_path: Path
) -> None:
    """With the same problems and bytes as a clean build."""
    catalog, out = shutil.copytree(many, tmp_path / "catalog"), tmp_path / "build"
    build(catalog, out, None, jobs=2)
    file = next(catalog.glob("toolkits/kit0/KIT0_DO_0/*.yaml"))
    text = file.read_text()
    file.write_text(text.replace("name:", "nmae:", 1))
    with pytest.raises(InvalidCatalog) as invalid:
        build(catalog, out, None, jobs=2)
    assert {problem.path for problem in invalid.value.problems} == {
        file.relative_to(tmp_path).as_posix()
    }
    assert read_tree(out / "current") == snapshot
    file.write_text(text.replace("name: ", "name: Another ", 1))
    repeated = build(catalog, out, None, jobs=2)
    assert repeated.digest == build(catalog, tmp_path / "other", None).digest
    assert repeated.changed


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name
)
def test_workers_end_with_their_build(number: signal.Signals, many: Path, tmp_path: Path) -> None:
    """Within seconds, whether it is killed or interrupted; there is no `current`."""
    with building(many, tmp_path / "build") as process:
        result = workers(process)
        process.send_signal(number)
        output, complaint = process.communicate(timeout=60)
    assert (
        process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: -15, signal.SIGINT: 130}[number]
    ), complaint
    assert output == ""
    assert "Traceback" not in complaint
    assert all_end(result)
    assert not (tmp_path / "build" / "current").exists()
    run_successfully("build", "--catalog", many, "--out", tmp_path / "build", "--no-site")


AS_IT_FORKS = """
import os, signal
os.register_at_fork({when}=lambda: os.kill(os.getpid(), signal.SIGINT))
"""


@pytest.mark.parametrize("when", ["before", "after_in_parent"])
def test_interrupt_during_process_start_is_not_lost(when: str, many: Path, tmp_path: Path) -> None:
    """Python itself loses it there, or waits forever for a half-started pool."""
    (tmp_path / "sitecustomize.py").write_text(AS_IT_FORKS.format(when=when))
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "build",
        "--catalog",
        many,
        "--out",
        tmp_path / "build",
        "--no-site",
        "--jobs",
        "3",
    ]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    result = subprocess.run(
        [*map(str, command)], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, "Traceback" in result.stderr) == (130, False), result.stderr
    assert not (tmp_path / "build" / "current").exists()


@pytest.mark.parametrize("other_threads", [0, 1])
def test_interrupted_start_leaves_no_process(other_threads: int) -> None:
    """Processes are joined before the program exits; another thread may receive the signal."""
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(other_threads)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.stdout.split(), result.stderr) == ([str(1 + other_threads)] * 2, "")


INTERRUPTED = """
import os, signal, sys, threading
from toolcatalog.system.processes import WorkerPool

for _ in range(int(sys.argv[1])):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
for begin in lambda crew: crew.map(abs, range(40)), lambda crew: crew.background.start():
    try:
        with WorkerPool(3) as crew:
            begin(crew)
    except KeyboardInterrupt:
        print(threading.active_count())
"""


def test_second_interrupt_waits_for_processes() -> None:
    """Python would not stop them, and wait for them forever."""
    result = subprocess.run(
        [sys.executable, "-c", TWICE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.stdout.split(), result.stderr) == (["1"], "")


TWICE = """
import os, signal, threading, time
from toolcatalog.system.processes import WorkerPool

def work(task):
    for pause in (0.2, 0.2, 0.4):
        time.sleep(pause)
        os.kill(os.getppid(), signal.SIGINT) if task == 0 and pause < 0.4 else None

try:
    with WorkerPool(2) as crew:
        list(crew.map(work, range(9)))
except KeyboardInterrupt:
    print(threading.active_count())
"""


def test_results_have_the_order_of_the_tasks() -> None:
    """For any duration of tasks; without tasks, no process starts."""
    tasks = [*range(40)]
    for jobs in (1, 2):
        result = subprocess.run(
            [sys.executable, "-c", ORDER, str(jobs)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert result.stdout.split() == [str(-task) for task in tasks] + ["[]", "[]"]


ORDER = """
import sys, time
from toolcatalog.system.processes import WorkerPool, available_cpus
from toolcatalog.errors import InvalidCatalog

def work(task):
    time.sleep(0.001 * (task % 3))
    return -task

with WorkerPool(int(sys.argv[1])) as crew:
    print(*crew.map(work, range(40)))
    print([*crew.map(work, [])], [*crew.map(work, [])])
"""


@pytest.mark.parametrize(("jobs", "apart"), [(2, True), (1, False)])
def test_background_task_has_its_own_process(jobs: int, apart: bool) -> None:
    """If two processes are allowed; its result is there when it is needed."""
    with WorkerPool(jobs) as crew:
        crew.background.start()
        process = crew.background.submit(os.getpid)()
    assert (process != os.getpid()) == apart


def test_few_tasks_are_shared_by_two_processes() -> None:
    """The background process takes from the end; the rest runs here, and results keep their
    order.
    """
    with WorkerPool(2) as crew:
        crew.background.start()
        beside = crew.background.submit(os.getpid)()
        result = [*crew.map(delayed_number, [3, 1, 1, 1])]
        assert [number for number, _ in result] == [3, 1, 1, 1]
        assert {process for _, process in result} == {os.getpid(), beside}
        assert result[0][1] == os.getpid()
        assert result[-1][1] == beside
        assert [*crew.map(delayed_number, [])] == []


def delayed_number(number: int) -> tuple[int, int]:
    """Return a number and the process id after a delay."""
    time.sleep(0.05 * number)
    return number, os.getpid()


def test_few_tasks_do_not_wait_for_a_busy_process() -> None:
    """All but one or two run here; their errors are raised here."""
    with WorkerPool(2) as crew:
        crew.background.start()
        other = crew.background.submit(partial(time.sleep, 1))
        here = [process == os.getpid() for _, process in crew.map(delayed_number, [0] * 6)]
        assert here == sorted(here, reverse=True)
        assert here.count(False) <= 2  # none where the process starts slowly
        assert other() is None
        with pytest.raises(OSError, match="No space left"):
            [*crew.map(slow_task, [1, 2, 3])]


def test_released_process_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With all modules imported by then; in between, tasks run here."""
    with WorkerPool(2) as crew:
        crew.background.start()
        first = crew.background.submit(os.getpid)()
        crew.background.stop_if_forked()
        assert crew.background.submit(os.getpid)() == os.getpid()
        assert first not in {process.pid for process in multiprocessing.active_children()}
        monkeypatch.setitem(globals(), "PATIENCE", 7.0)
        crew.background.start()
        assert crew.background.submit(os.getpid)() not in (first, os.getpid())
        assert crew.background.submit(read_timeout)() == 7.0


def read_timeout() -> float:
    """Return the value of a variable in the process that runs this."""
    return PATIENCE


def slow_task(number: int) -> int:
    """Return the number after a moment, or fail for 3."""
    time.sleep(0.1)
    if number == 3:
        raise OSError(28, "No space left on device")
    return number


def test_processes_are_joined_after_a_failure() -> None:
    with pytest.raises(OSError, match="No space left"), WorkerPool(2) as crew:
        sorted(crew.map(slow_task, range(30)))
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="only glibc gives back what is free between what is held",
)
def test_free_memory_returns_to_the_system() -> None:
    """Even if a later allocation is still used."""
    result = subprocess.run(
        [sys.executable, "-c", HOLES], capture_output=True, text=True, timeout=60, check=True
    )
    previous, current = map(int, result.stdout.split())
    assert previous - current > 80_000_000


HOLES = """
import os
import platform
from pathlib import Path
from toolcatalog.system.processes import release_free_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

blocks = [b"x" * 50_000 for _ in range(2_000)]
last = blocks.pop()
del blocks
before = resident()
release_free_memory()
print(before, resident())
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, EVERY),
        ({"cpu.max": "max 100000\n"}, EVERY),
        ({"cpu.max": f"{100_000 * EVERY * 2} 100000\n"}, EVERY),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu.max": "damaged"}, EVERY),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, EVERY),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "50000\n"}, EVERY),
    ],
)
def test_cgroup_limit_sets_the_number_of_processes(
    files: dict[str, str], expected: int, tmp_path: Path
) -> None:
    """Version 1 or 2; otherwise the CPU affinity."""
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert available_cpus(tmp_path) == expected
