"""The commands in the documentation run: the blocks of a page in their order, in a clean folder.

A page starts in a clone with the shipped catalog, or in an empty folder if it has the comment
`<!-- start: empty -->`. A block of YAML with a path is written to that file. A block after a
comment `<!-- not run: REASON -->` needs something that a test does not have.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from support.paths import ROOT, SHIPPED_CATALOG

_FENCE = re.compile(
    r"(?ms)^(?P<skip><!-- not run: [^>]+ -->\n)?```(?P<language>sh|yaml)(?: (?P<path>\S+))?\n"
    r"(?P<text>.*?)^```$"
)
_SERVER = re.compile(r"(?m)^(toolcatalog (?:serve|dev)\b.*)$")


class Block(NamedTuple):
    """Commands to run, or the content of the file at `path`."""

    text: str
    path: str


def list_blocks(page: Path) -> list[Block]:
    """The blocks of a page that a test runs."""
    return [
        Block(match["text"], match["path"] or "")
        for match in _FENCE.finditer(page.read_text())
        if not match["skip"] and (match["language"] == "sh" or match["path"])
    ]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def prepare_clone(folder: Path) -> None:
    """Create a git repository with the shipped catalog, and the branch `origin/main`."""
    shutil.copytree(SHIPPED_CATALOG, folder / "catalog")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for command in (
        "init -q",
        "add .",
        "commit -q -m start",
        "update-ref refs/remotes/origin/main HEAD",
    ):
        subprocess.run(
            ["git", *identity, *command.split()], cwd=folder, capture_output=True, check=True
        )


def start_server(command: str, port: int) -> str:
    """Return shell lines that start a server in the background and wait until it is ready."""
    return (
        f"{command} --port {port} &\n"
        f"for _ in $(seq 100); do curl -sf http://127.0.0.1:{port}/readyz > server.txt && break; "
        "sleep 0.2; done"
    )


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(not block.path for block in list_blocks(page))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """In order, and all succeed."""
    folder = tmp_path / "work"
    folder.mkdir()
    if "<!-- start: empty -->" not in page.read_text():
        prepare_clone(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for number, block in enumerate(list_blocks(page)):
        if block.path:
            (tmp_path / str(number)).write_text(block.text)
            script.append(f"cp {tmp_path / str(number)} {block.path}")
        else:
            text = _SERVER.sub(lambda match: start_server(match[1], port), block.text)
            script.append(text.replace("127.0.0.1:8000", f"127.0.0.1:{port}"))
    result = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
