"""A terminal for tests: input, and what is displayed."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class TerminalResult(NamedTuple):
    """How a command ended, what it printed on standard output (a pipe), and what the terminal
    showed.
    """

    code: int
    out: str
    terminal_output: str


def run_in_terminal(
    arguments: list[object], answers: list[str], cwd: Path, env: Mapping[str, str] | None = None
) -> TerminalResult:
    """Run a command whose standard input and error are a terminal, where these lines are typed."""
    actual, reference = pty.openpty()
    command = [sys.executable, "-m", "toolcatalog", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **(env or {})}
    with subprocess.Popen(
        command, stdin=reference, stdout=subprocess.PIPE, stderr=reference, env=environment, cwd=cwd
    ) as process:
        os.close(reference)
        os.write(actual, "".join(f"{answer}\n" for answer in answers).encode())
        displayed = b""
        while chunk := _read_terminal(actual):
            displayed += chunk
        assert process.stdout is not None
        out = process.stdout.read().decode()
    os.close(actual)
    return TerminalResult(process.returncode, out, displayed.decode().replace("\r\n", "\n"))


def _read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
