"""The room `loading`: Ctrl-C before there is anything to put in order."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolcatalog.crew import cores
from toolcatalog.loading import loading

# Interrupts the program when it begins to load one module: as early, and as late, as somebody may press Ctrl-C.
AS_IT_LOADS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("module", ["click", "toolcatalog.cli", "toolcatalog.cli.serve", "uvicorn", "numpy"])
def test_an_interrupted_start_says_nothing(module: str, tmp_path: Path) -> None:
    """It ends at once, as by the signal, and without lines of code."""
    (tmp_path / "sitecustomize.py").write_text(AS_IT_LOADS.format(module=module))
    command = [sys.executable, "-m", "toolcatalog", "serve", "--build", str(tmp_path)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


LOADED = """
import os, sys
from toolcatalog.__main__ import main
sys.argv = ["toolcatalog", "--version"]
main()
import numpy
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or cores() < 2, reason="a thread for each core is told by /proc, where there are two"
)
@pytest.mark.parametrize(("said", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
def test_numpy_begins_no_threads(said: dict[str, str], threads: int) -> None:
    """It would begin one for each core, and end the process where a container allows fewer; unless somebody wants so many."""
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | said
    done = subprocess.run([sys.executable, "-c", LOADED], env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) == threads


def test_afterwards_an_interrupt_is_heard() -> None:
    """What has been loaded puts its own things in order."""
    with loading():
        pass
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_what_others_do_with_interrupts_stays(handler: signal.Handlers) -> None:
    """A shell has programs in the background ignore them, and who calls us may have a way of its own."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        with loading():
            assert signal.getsignal(signal.SIGINT) == handler
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)
