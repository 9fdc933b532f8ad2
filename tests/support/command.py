"""Run the command line as a user would, and read its output."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolcatalog.errors import Problem


def run_toolcatalog(
    *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, as a user would."""
    command = [sys.executable, "-m", "toolcatalog", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=120,
        check=False,
    )


def run_successfully(
    *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run one command that must succeed; its standard output."""
    result = run_toolcatalog(*arguments, env=env, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def environment_without_coverage() -> dict[str, str]:
    """The environment without what would have a process count its lines: for one that could not
    write them down.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def only_errors(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that make a catalog unusable, without advice."""
    return [problem for problem in problems if problem.severity == "error"]


def error_sentence(process: "subprocess.CompletedProcess[str]") -> str:
    """What a command that must fail with 2 says at its end: one line, no traceback."""
    assert process.returncode == 2, process.stderr
    assert "Traceback" not in process.stderr
    assert process.stdout == ""
    return process.stderr.strip().rpartition("\n")[2]
