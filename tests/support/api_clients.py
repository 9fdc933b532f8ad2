"""API clients: real client libraries, each in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.paths import DATA, ROOT
from support.server import Server

FOLDER = DATA / "clients"


@dataclass(frozen=True)
class ClientLibrary:
    """A client library: its name and version as it tells them, the prefix under which it calls, and
    where it lies.

    `site_packages` None is among the packages of the tests. `has_session_pages`: it can ask for a
    page of a session's tools by itself.
    """

    name: str
    prefix: str
    site_packages: Path | None = None
    has_session_pages: bool = False

    @property
    def is_python(self) -> bool:
        return not self.name.startswith("@")

    @property
    def requires_session_pages(self) -> bool:
        """Whether its model fits a session's answer that is not in pages: the newer one declares
        the fields of a page as always there.
        """
        return not self.has_session_pages

    def missing_reason(self) -> str:
        """Why it cannot be driven here; empty where it can."""
        if not self.is_python and shutil.which("node") is None:
            return "there is no node on the path"
        installed = self.site_packages is None or self.site_packages.is_dir()
        return (
            ""
            if installed
            else (
                f"there is no {self.site_packages and self.site_packages.relative_to(ROOT)}, which"
                " scripts/test makes"
            )
        )

    def command(self) -> list[str]:
        return (
            [sys.executable, str(FOLDER / "drive.py")]
            if self.is_python
            else ["node", str(FOLDER / "drive.mjs")]
        )

    def module(self) -> list[str]:
        """The name under which npm has installed it, as a further argument of its driver."""
        if self.is_python or self.site_packages is None:
            return []
        return [str(self.site_packages.relative_to(FOLDER / "node_modules"))]

    def environment(self) -> dict[str, str]:
        """This process's, without the settings that the clients would take from there, and without
        a proxy.
        """
        remaining = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COMPOSIO_") and name != "PYTHONPATH"
        }
        first = (
            {"PYTHONPATH": str(self.site_packages)} if self.is_python and self.site_packages else {}
        )
        return {**remaining, **first, "NO_PROXY": "*"}


CLIENT_LIBRARIES = (
    ClientLibrary("composio-client 1.35.0", "/api/v3"),
    ClientLibrary(
        "composio-client 1.43.0",
        "/api/v3.1",
        ROOT / ".venv" / "client-1.43",
        has_session_pages=True,
    ),
    ClientLibrary(
        "@composio/client 0.1.0-alpha.68",
        "/api/v3",
        FOLDER / "node_modules" / "@composio" / "client",
    ),
    ClientLibrary(
        "composio-client 2.0.0-rc.22",
        "/api/v3.1",
        ROOT / ".venv" / "client-2.0",
        has_session_pages=True,
    ),
    ClientLibrary(
        "@composio/client 2.0.0-rc.6",
        "/api/v3.1",
        FOLDER / "node_modules" / "composio-client-2",
        has_session_pages=True,
    ),
)


class ApiClient:
    """A client library connected to one server; it sends `key` by default."""

    def __init__(self, kind: ClientLibrary, server: Server, errors: Path) -> None:
        self.library = kind
        self.key = server.key
        self.error_log = errors
        with errors.open("w") as sink:
            self.process = subprocess.Popen(
                [*kind.command(), server.url, *kind.module()],
                env=kind.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
            )

    def call(self, op: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
        """The answer to one call: its plain JSON, or with `raw` that and its headers, or what was
        raised.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(
            json.dumps({"op": op, "args": args or {}, "options": {"key": self.key, **options}})
            + "\n"
        )
        self.process.stdin.flush()
        return self.read_answer()

    def read_answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.error_log.read_text()
        return json.loads(line)

    def call_ok(self, op: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
        """The result of a call that must succeed."""
        answer = self.call(op, args, **options)
        assert "error" not in answer, (op, args, answer)
        return answer["result"]

    def stop(self) -> None:
        self.process.communicate(timeout=10)
