"""nginx before the server, with the settings of docs/guides/reverse-proxy.md but without TLS."""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from support.paths import ROOT
from support.server import start_server, wait_until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
TOOLS = "/api/v3/tools"


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def write_settings(folder: Path, port: int, server: str) -> Path:
    """Write the settings of the page for this port and server, and a main file; return that."""
    text = (ROOT / "docs" / "guides" / "reverse-proxy.md").read_text()
    (shown,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    shown = re.sub(r"(?m)^ *ssl_\w+ .*\n", "", shown)
    for old, new in (("443 ssl", f"127.0.0.1:{port}"), ("127.0.0.1:8000", server)):
        assert shown.count(old) == 1
        shown = shown.replace(old, new)
    (folder / "proxy.conf").write_text(shown)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name}; "
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; master_process off; daemon off; events {{}} "
        f"http {{ access_log off; {temporary} include {folder}/proxy.conf; }}"
    )
    return folder / "nginx.conf"


@pytest.mark.skipif(NGINX is None, reason="there is no nginx (Debian: apt-get install nginx-light)")
def test_proxy_sets_the_address_and_hides_metrics(shipped_build: Path, tmp_path: Path) -> None:
    assert NGINX is not None
    log = tmp_path / "access.log"
    options = ("--forwarded-allow-ips", "127.0.0.1", "--access-log", log)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with start_server(shipped_build, tmp_path, *options) as server:
        address = server.url.removeprefix("http://")
        settings = write_settings(tmp_path, port, address)
        with subprocess.Popen([NGINX, "-e", tmp_path / "error.log", "-c", settings]) as process:
            try:
                wait_until(lambda: is_listening(port))
                headers = {"x-api-key": server.key, "x-forwarded-for": "203.0.113.7"}
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
                    statuses = [
                        client.get(path).status_code for path in (TOOLS, "/healthz", "/metrics")
                    ]
            finally:
                process.terminate()
                process.wait(timeout=20)
    assert statuses == [200, 200, 404]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["path"], line["client"]) for line in lines] == [
        (TOOLS, "127.0.0.1"),
        ("/healthz", "127.0.0.1"),
    ]
