"""Commands that meet faults: killed at a moment, or refused by the disk from one write on, as one
that is full, read-only or broken would.

`PYTHONPATH=tests python -m support.faults` reads a `Trial` a line, as JSON, runs its command in a
fork of itself, which has everything imported, and answers with an `Outcome`, likewise. Steps are
files opened for writing, written to or flushed, and whatever is made, renamed or removed, below one
folder, by whichever process of the command; they fail where Python hands them to the system.
"""

import builtins
import contextlib
import errno
import importlib
import io
import json
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import toolcatalog
from support.catalogs import add_tool, add_toolkit
from support.paths import ROOT
from toolcatalog.cli import main as cli_main
from toolcatalog.system.processes import tune_garbage_collection

_BATCH_SIZE = 128  # the checksum of a slug that begins a batch is a multiple of this: see `batches`
# where a `dir_fd` may stand
_CREATING_EVENTS = {
    "os.mkdir": 2,
    "os.symlink": 2,
    "os.link": 2,
    "os.rename": 2,
    "os.truncate": -1,
    "os.chown": -1,
}
_REMOVING_EVENTS = {"os.remove": 1, "os.rmdir": 1}  # what a full disk lets happen
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A command line, and what it is to meet: steps `first` to `last` below a folder fail with
    `error`, and it is killed after `seconds`.

    0 for `first` and `seconds`: not at all. `alone`: only the first process is killed, and not
    those that it has started.
    """

    arguments: list[str]
    below: str = "/nowhere"
    first: int = 0
    last: int = 0
    error: int = 0
    seconds: float = 0.0
    alone: bool = False


class Outcome(NamedTuple):
    """How a command ended: its exit code, or minus the signal; what it printed; how many steps it
    took, and how many seconds.
    """

    status: int
    out: str
    err: str
    steps: int
    seconds: float


class CommandRunner:
    """The program at work."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, *arguments: object, **faults: Any) -> Outcome:
        """Run a command that meets what a `Trial` of these fields says."""
        assert self._process.stdin
        assert self._process.stdout
        trial = Trial(arguments=[*map(str, arguments)], **faults)
        print(json.dumps(asdict(trial)), file=self._process.stdin, flush=True)
        return Outcome(*json.loads(self._process.stdout.readline()))


@contextmanager
def start_runner() -> Iterator[CommandRunner]:
    """The program, started."""
    command = [sys.executable, "-m", "support.faults"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    ) as process:
        yield CommandRunner(process)
        assert process.stdin
        process.stdin.close()


def make_catalog_of_batches(root: Path, batches: int = 12) -> Path:
    """A catalog of one toolkit and few tools, each a batch of its own, so that several processes
    have work; `again` changes all of it.
    """
    root.mkdir(parents=True)
    (root / "catalog.yaml").write_text("title: Faults\n")
    add_toolkit(root, "kit")
    slugs = (f"KIT_DO_{number}" for number in range(batches * 10 * _BATCH_SIZE))
    selected = [slug for slug in slugs if zlib.crc32(slug.encode()) % _BATCH_SIZE == 0][:batches]
    for number, slug in enumerate(selected):
        add_tool(root, "kit", slug, number)
    return root


def rename_toolkit(root: Path, name: str) -> None:
    """Rename the toolkit, so that every batch and page of it changes."""
    (root / "toolkits/kit/toolkit.yaml").write_text(
        f"name: {name}\nlogo: https://kit.example/logo.svg\n"
    )


# --- the program


class FaultInjector:
    """Counts the steps of a process and of all that it forks, and lets some of them fail."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._count = multiprocessing.Value("q", 0)
        self._open, self._fsync = builtins.open, os.fsync

    @property
    def steps(self) -> int:
        """How many there were."""
        return int(self._count.value)

    def install(self) -> None:
        """Count from now on, in this process and those that it forks."""
        faults = self

        class Written(io.FileIO):
            """A file each write to which is a step."""

            def write(self, data: Any, /) -> int:
                faults.count_step(_descriptor_path(self.fileno()), has_path=False)
                return super().write(data)

        def opened(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: Any = None,
            errors: Any = None,
            newline: Any = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            if not {*mode} & {*"wax+"}:
                return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = Written(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return (
                buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)
            )

        def fsync(handle: Any) -> None:
            self.count_step(_descriptor_path(handle), has_path=False)
            self._fsync(handle)

        builtins.open = io.open = opened
        os.fsync = fsync  # type: ignore[assignment] # its parameter has another name
        sys.addaudithook(self._watch)

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, int) and isinstance(flags, int) and flags & _WRITES:
                self.count_step(os.fsdecode(path))
        elif event in _CREATING_EVENTS or (
            event in _REMOVING_EVENTS and self._trial.error != errno.ENOSPC
        ):
            position = {**_CREATING_EVENTS, **_REMOVING_EVENTS}[event]
            self.count_step(
                _absolute(
                    arguments[0 if event != "os.symlink" else 1],
                    arguments[position] if position > 0 else -1,
                )
            )

    def count_step(self, path: str, *, has_path: bool = True) -> None:
        """One more, at a path; the system names it where it was given."""
        if not path.startswith(f"{self._trial.below}/"):
            return
        with self._count.get_lock():
            self._count.value += 1
            number = self._count.value
        if self._trial.first <= number <= self._trial.last:
            text = (self._trial.error, os.strerror(self._trial.error))
            raise OSError(*text, path) if has_path else OSError(*text)


def _descriptor_path(handle: int) -> str:
    return str(Path(f"/proc/self/fd/{handle}").readlink())


def _absolute(path: Any, folder: Any) -> str:
    if isinstance(path, int):
        return _descriptor_path(path)
    text = os.fsdecode(path)
    return f"{_descriptor_path(folder)}/{text}" if isinstance(folder, int) and folder >= 0 else text


def _run_trial(trial: Trial) -> Outcome:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        faults, start = FaultInjector(trial), time.monotonic()
        child = os.fork()
        if not child:
            _run_command(trial, faults, out.fileno(), err.fileno())
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(child, child)
        if trial.seconds:
            time.sleep(trial.seconds)
            (os.kill if trial.alone else os.killpg)(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seconds = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        return Outcome(status, out.read(), err.read(), faults.steps, seconds)


def _run_command(trial: Trial, faults: FaultInjector, out: int, err: int) -> None:
    """The command, in a group of processes of its own, from here to its end."""
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for handle, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(handle, number)
    faults.install()
    code = cli_main.main(trial.arguments)
    # as at the end of any program, workers are waited for; to take all apart takes long
    threading._shutdown()  # type: ignore[attr-defined]
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Load all that commands need, then answer line by line."""
    for module in pkgutil.walk_packages(toolcatalog.__path__, "toolcatalog."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not here
                importlib.import_module(module.name)
    answers = os.dup(1)
    tune_garbage_collection()
    for line in sys.stdin:
        os.write(answers, json.dumps(_run_trial(Trial(**json.loads(line)))).encode() + b"\n")


if __name__ == "__main__":
    main()
