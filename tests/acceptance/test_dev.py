"""`toolcatalog dev`: the site follows the catalog and shows its problems."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.catalogs import generate_catalog
from support.command import run_toolcatalog
from toolcatalog.server.dev import is_trusted


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A catalog that is being edited, and where its site is."""
    catalog = generate_catalog(tmp_path / "catalog", 6)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "dev",
        "--catalog",
        str(catalog),
        "--out",
        str(tmp_path / "build"),
    ]
    command += ["--site", str(tmp_path / "site"), "--port", str(port)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                httpx.get(url)
                break
            except httpx.TransportError:
                assert process.poll() is None
                time.sleep(0.1)
        yield catalog, url
    finally:
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=20)
    assert "Traceback" not in output
    assert f"follows {catalog}" in output


def events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    return (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))


def test_change_is_rebuilt_and_reported(dev: tuple[Path, str]) -> None:
    """Pages contain the script; browsers get an event for a change, an error and its fix."""
    catalog, url = dev
    file = next((catalog / "toolkits" / "kit1").glob("*/*.yaml"))
    page = f"{url}/tools/{file.parent.name}/index.html"
    assert '<script src="/_dev/live.js"></script></head>' in httpx.get(page).text
    assert "EventSource" in httpx.get(f"{url}/_dev/live.js").text
    assert httpx.get(f"{url}/style.css").headers["content-type"].startswith("text/css")
    previous = file.read_text()
    with httpx.stream("GET", f"{url}/_dev/events", timeout=30) as stream:
        news = events(stream.iter_lines())
        assert next(news) == {"changes": 0, "problems": []}
        file.write_text(previous.replace("description: ", "description: Changed. ", 1))
        assert next(news) == {"changes": 1, "problems": []}
        assert "Changed." in httpx.get(page).text
        file.write_text(previous.replace("type: string", "type: strng", 1))
        output = next(news)
        assert output["changes"] == 1
        (problem,) = output["problems"]
        assert problem["path"].endswith(file.name)
        assert problem["line"] == 6
        assert "strng" in problem["excerpt"]
        assert "Changed." in httpx.get(page).text
        file.write_text(previous)
        assert next(news) == {"changes": 2, "problems": []}
    assert "Changed." not in httpx.get(page).text


def test_long_path_is_refused_quickly(dev: tuple[Path, str]) -> None:
    """Without resolving thousands of folders."""
    _, url = dev
    long, short = (f"{url}/{'a/' * count}" for count in (30_000, 2))
    seconds = dict.fromkeys((long, short), 60.0)
    for _ in range(3):
        for target in seconds:
            start = time.perf_counter()
            assert httpx.get(target).status_code == 404
            seconds[target] = min(seconds[target], time.perf_counter() - start)
    assert seconds[long] < seconds[short] + 0.1


def test_other_host_name_is_refused(dev: tuple[Path, str]) -> None:
    """Protects against DNS rebinding."""
    _, url = dev
    port = url.rpartition(":")[2]
    for path in ("/", "/_dev/events", "/_dev/live.js", "/nowhere"):
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "",
        ):
            answer = httpx.get(url + path, headers={"host": host})
            assert answer.status_code == 421
            assert answer.text.startswith("This server answers only to localhost")
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", f"[::1]:{port}", "LOCALHOST"):
        assert httpx.get(url, headers={"host": host}).status_code == 200


def test_no_other_site_may_load_files(dev: tuple[Path, str]) -> None:
    """A page elsewhere could read the data of the search from its script."""
    _, url = dev
    for path in ("/", "/search-data.js", "/_dev/live.js", "/nowhere"):
        headers = httpx.get(url + path).headers
        assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("header", "host", "trusted"),
    [
        ("devbox.example:8000", "devbox.example", True),
        ("DevBox.example", "devbox.example", True),
        ("other.example", "devbox.example", False),
        ("localhost", "devbox.example", True),
        ("192.0.2.7:8000", "192.0.2.7", True),
        ("192.0.2.8:8000", "192.0.2.7", False),
        ("192.0.2.8:8000", "0.0.0.0", True),  # noqa: S104 - nothing listens
        ("evil.example", "0.0.0.0", False),  # noqa: S104
        ("[2001:db8::1]:8000", "::", True),
        ("[2001:db8::1]", "2001:db8::1", True),
        ("", "0.0.0.0", False),  # noqa: S104
    ],
)
def test_host_option_is_trusted(header: str, host: str, trusted: bool) -> None:
    """By name or address and any port; a wildcard address trusts each address and no name."""
    assert is_trusted(header, host) is trusted


def test_used_port_is_reported_before_the_build(tmp_path: Path) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        catalog = generate_catalog(tmp_path / "catalog", 1)
        result = run_toolcatalog(
            "dev",
            "--catalog",
            catalog,
            "--out",
            tmp_path / "build",
            "--site",
            tmp_path / "site",
            "--port",
            port,
        )
    assert result.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port} (the port is in use)" in result.stderr
    assert not (tmp_path / "build").exists()


def test_missing_catalog_is_reported(tmp_path: Path) -> None:
    result = run_toolcatalog(
        "dev",
        "--catalog",
        tmp_path / "none",
        "--out",
        tmp_path / "build",
        "--site",
        tmp_path / "site",
        "--port",
        0,
    )
    assert result.returncode == 2
    assert "none" in result.stderr
