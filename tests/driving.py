"""The family's real client libraries, unmodified, each in a process of its own that stays: a
request in, an answer out.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import ROOT, Server

FOLDER = ROOT / "tests" / "clients"


@dataclass(frozen=True)
class Kind:
    """A client library: its name and version as it tells them, the prefix under which it calls, and
    where it lies.

    `place` None is among the packages of the tests. `pages_sessions`: it can ask for a page of a
    session's tools by itself.
    """

    name: str
    prefix: str
    place: Path | None = None
    pages_sessions: bool = False

    @property
    def is_python(self) -> bool:
        return not self.name.startswith("@")

    @property
    def strict_on_sessions(self) -> bool:
        """Whether its model fits a session's answer that is not in pages: the newer one declares
        the fields of a page as always there.
        """
        return not self.pages_sessions

    def missing(self) -> str:
        """Why it cannot be driven here; empty where it can."""
        if not self.is_python and shutil.which("node") is None:
            return "there is no node on the path"
        installed = self.place is None or self.place.is_dir()
        return (
            ""
            if installed
            else f"there is no {self.place and self.place.relative_to(ROOT)}, which scripts/test makes"
        )

    def command(self) -> list[str]:
        return (
            [sys.executable, str(FOLDER / "drive.py")]
            if self.is_python
            else ["node", str(FOLDER / "drive.mjs")]
        )

    def environment(self) -> dict[str, str]:
        """This process's, without the settings that the clients would take from there, and without
        a proxy.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COMPOSIO_") and name != "PYTHONPATH"
        }
        first = {"PYTHONPATH": str(self.place)} if self.is_python and self.place else {}
        return {**kept, **first, "NO_PROXY": "*"}


KINDS = (
    Kind("composio-client 1.35.0", "/api/v3"),
    Kind(
        "composio-client 1.43.0", "/api/v3.1", ROOT / ".venv" / "client-1.43", pages_sessions=True
    ),
    Kind(
        "@composio/client 0.1.0-alpha.68",
        "/api/v3",
        FOLDER / "node_modules" / "@composio" / "client",
    ),
)


class Client:
    """A client library at work on one server; `key` is what it sends unless told otherwise."""

    def __init__(self, kind: Kind, server: Server, errors: Path) -> None:
        self.kind = kind
        self.key = server.key
        self.errors = errors
        with errors.open("w") as sink:
            self.process = subprocess.Popen(
                [*kind.command(), server.url],
                env=kind.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
            )

    def ask(self, op: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
        """The answer to one call: its plain JSON, or with `raw` that and its headers, or what was
        raised.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(
            json.dumps({"op": op, "args": args or {}, "options": {"key": self.key, **options}})
            + "\n"
        )
        self.process.stdin.flush()
        return self.read()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors.read_text()
        return json.loads(line)

    def get(self, op: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
        """The result of a call that must succeed."""
        answer = self.ask(op, args, **options)
        assert "error" not in answer, (op, args, answer)
        return answer["result"]

    def stop(self) -> None:
        self.process.communicate(timeout=10)
