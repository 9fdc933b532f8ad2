"""Ctrl-C at moments when Python prints a traceback, loses the interrupt or hangs."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from support.catalogs import generate_catalog
from support.command import run_toolcatalog
from support.server import TIMEOUT, create_key, wait_until
from toolcatalog.system.processes import available_cpus
from toolcatalog.system.signals import exit_on_interrupt

# Interrupts the program when it imports one module.
AS_IT_LOADS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    "module", ["click", "toolcatalog.cli.main", "toolcatalog.cli.serve", "uvicorn", "numpy"]
)
def test_interrupted_start_prints_nothing(module: str, tmp_path: Path) -> None:
    """It ends at once by the signal, without a traceback."""
    (tmp_path / "sitecustomize.py").write_text(AS_IT_LOADS.format(module=module))
    command = [sys.executable, "-m", "toolcatalog", "serve", "--build", str(tmp_path)]
    result = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGINT, "", "")


AS_A_WORKER_LOADS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "toolcatalog.store.store" and os.getpid() != os.getpgrp():
            os.killpg(os.getpgrp(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


def test_interrupted_worker_start_prints_nothing(shipped_build: Path, tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to all processes."""
    (tmp_path / "sitecustomize.py").write_text(AS_A_WORKER_LOADS)
    with start_process(
        tmp_path, "serve", "--build", shipped_build, "--port", "0", "--workers", "2"
    ) as process:
        _, output = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, "Traceback" in output) == (130, False), output


@pytest.mark.parametrize("pause", [0, 0.05])
@pytest.mark.parametrize(
    "command",
    ["serve --build {build}", "serve --build {build} --workers 2", "dev --catalog {catalog}"],
)
def test_second_interrupt_of_a_server_prints_nothing(
    command: str, pause: float, shipped_build: Path, tmp_path: Path
) -> None:
    """It ends at once."""
    arguments = command.format(
        build=shipped_build, catalog=generate_catalog(tmp_path / "catalog", 6)
    ).split()
    with start_process(tmp_path, *arguments, "--port", "0") as process:
        wait_until_it_answers(process)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGINT)
        _, output = process.communicate(timeout=TIMEOUT)
    assert (process.returncode in {130, -signal.SIGINT}, "Traceback" in output) == (True, False), (
        output
    )


WHILE_IT_IS_HANDLED = """
import signal, sys
class Interrupter:
    left = 20
    def trace(self, frame, event, argument):
        callers = [frame]
        while callers[-1].f_back and len(callers) < 6:
            callers.append(callers[-1].f_back)
        if any(caller.f_code.co_name == "handle_exit" for caller in callers):
            return self.interrupt
    def interrupt(self, frame, event, argument):
        if self.left:
            self.left -= 1
            signal.raise_signal(signal.SIGINT)
        return self.interrupt
sys.settrace(Interrupter().trace)
"""


def test_interrupt_in_the_signal_handler_prints_nothing(
    shipped_build: Path, tmp_path: Path
) -> None:
    """At any line: no lock waits for itself."""
    (tmp_path / "sitecustomize.py").write_text(WHILE_IT_IS_HANDLED)
    with start_process(tmp_path, "serve", "--build", shipped_build, "--port", "0") as process:
        wait_until_it_answers(process)
        os.kill(process.pid, signal.SIGINT)
        _, printed = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, "Traceback" in printed) == (130, False), printed


def wait_until_it_answers(server: "subprocess.Popen[str]") -> None:
    """Wait until a server has printed its address, and answers there."""
    assert server.stderr
    url = next(match for line in server.stderr if (match := re.search("http://[0-9.:]+", line)))[0]
    wait_until(lambda: answers(f"{url}/"))


def answers(url: str) -> bool:
    """Whether a server answers."""
    try:
        return httpx.get(url).status_code > 0
    except httpx.TransportError:
        return False


@contextmanager
def start_process(folder: Path, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """Start a command in its own process group, with `sitecustomize` and the keys of a folder."""
    env = os.environ | {"PYTHONPATH": str(folder), "TOOLCATALOG_KEYS": str(folder / "keys.json")}
    command = [sys.executable, "-m", "toolcatalog", *map(str, arguments)]
    create_key(folder / "keys.json")
    with subprocess.Popen(
        command, env=env, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


AT_ITS_END = """
import atexit, os, signal
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
"""


def test_interrupt_at_the_end_prints_nothing(tmp_path: Path) -> None:
    """The output is complete then."""
    (tmp_path / "sitecustomize.py").write_text(AT_ITS_END)
    result = run_toolcatalog("completion", "bash", env={"PYTHONPATH": str(tmp_path)})
    assert (result.returncode, "complete" in result.stdout, result.stderr) == (
        -signal.SIGINT,
        True,
        "",
    )


LOADED = """
import os, sys
from toolcatalog.__main__ import main
sys.argv = ["toolcatalog", "--version"]
main()
import numpy
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or available_cpus() < 2,
    reason="a thread for each core is told by /proc, where there are two",
)
@pytest.mark.parametrize(("said", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
def test_numpy_starts_no_threads(said: dict[str, str], threads: int) -> None:
    """By default it starts one per core, and fails where a container allows fewer."""
    env = {
        name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"
    } | said
    result = subprocess.run(
        [sys.executable, "-c", LOADED], env=env, capture_output=True, text=True, check=True
    )
    assert int(result.stdout.split()[-1]) == threads


def test_interrupt_after_the_start_raises() -> None:
    """So that loaded modules can clean up."""
    with exit_on_interrupt():
        pass
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_other_signal_handlers_are_kept(handler: signal.Handlers) -> None:
    """Shells ignore SIGINT for background programs, and callers may have their own handler."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        with exit_on_interrupt():
            assert signal.getsignal(signal.SIGINT) == handler
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)
