"""Bodies that are assembled from fragments, read by the gzip readers that clients use.

Each reader fetches the same bodies from a server that only has them, and must get the plain bytes.
"""

import gzip
import json
import shutil
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser

from toolcatalog.snapshot.gzip_fragments import Fragments, gzip_body
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store

pytest_plugins = ["support.browser"]
pytestmark = pytest.mark.xdist_group("gzip-readers")

PREFIX, SUFFIX = b'{"items":[', b'],"total_items":1}'
NODE = """
const answer = await fetch(process.argv[1], {headers: {"accept-encoding": "gzip, deflate"}});
process.stdout.write(Buffer.from(await answer.arrayBuffer()));
"""
GO = """package main

import ("io"; "net/http"; "os")

func main() {
    answer, err := http.Get(os.Args[1])
    if err != nil { panic(err) }
    if !answer.Uncompressed { panic("it was not compressed") }
    if _, err := io.Copy(os.Stdout, answer.Body); err != nil { panic(err) }
}
"""


class Body(NamedTuple):
    """A compressed body and its plain bytes."""

    compressed: bytes
    plain: bytes


class Host(NamedTuple):
    """A server of bodies: its address, and the bodies by path."""

    url: str
    bodies: dict[str, Body]


def make_bodies(store: Store) -> dict[str, Body]:
    """A document, pages in the order of the file, in another order, long ones and an empty one."""
    every = np.arange(store.version_count, dtype=np.uint32)
    pages = {
        "/page": every[:20],
        "/mixed": every[::-2],
        "/repeated": np.tile(every[::3], 1000 // len(every[::3]) + 1),
        "/empty": every[:0],
    }
    document = store.read_fragment(0)
    assert document is not None
    bodies = {"/document": Body(join(b"", document, b""), bytes(store.read_document(0)[0]))}
    for path, ids in pages.items():
        fragments = store.read_fragments(ids)
        assert fragments is not None
        plain = PREFIX + b",".join(store.read_documents(ids)[0]) + SUFFIX
        bodies[path] = Body(join(PREFIX, fragments, SUFFIX), plain)
    return bodies


def join(prefix: bytes, fragments: Fragments, suffix: bytes) -> bytes:
    return b"".join(gzip_body(prefix, fragments, suffix))


@pytest.fixture(scope="module")
def host(shipped_build: Path) -> Iterator[Host]:
    bodies = make_bodies(open_build(shipped_build))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies[self.path].compressed
            assert "gzip" in self.headers["Accept-Encoding"]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Host(f"http://127.0.0.1:{server.server_port}", bodies)
        server.shutdown()
        thread.join()


def check(host: Host, fetch: Callable[[str], bytes]) -> None:
    for path, body in host.bodies.items():
        assert fetch(host.url + path) == body.plain, path


def run(*command: str | Path, data: bytes | None = None) -> bytes:
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout


def require(program: str, hint: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"there is no {program} on the path ({hint})")
    return path


def test_python(host: Host) -> None:
    for body in host.bodies.values():
        assert gzip.decompress(body.compressed) == body.plain
        json.loads(body.plain)
        decompressor = zlib.decompressobj(31)
        # byte by byte, as from a slow network
        plain = b"".join(decompressor.decompress(bytes([byte])) for byte in body.compressed)
        assert (plain, decompressor.eof, decompressor.unused_data) == (body.plain, True, b"")


def test_gzip_command(host: Host) -> None:
    program = require("gzip", "Debian: apt-get install gzip")
    for body in host.bodies.values():
        run(program, "--test", data=body.compressed)
        assert run(program, "--decompress", "--stdout", data=body.compressed) == body.plain


def test_httpx(host: Host) -> None:
    with httpx.Client() as client:
        check(host, lambda url: client.get(url).content)


def test_node(host: Host) -> None:
    program = require("node", "Debian: apt-get install nodejs")
    check(host, lambda url: run(program, "--input-type=module", "--eval", NODE, url))


def test_curl(host: Host) -> None:
    program = require("curl", "Debian: apt-get install curl")
    check(host, lambda url: run(program, "--silent", "--show-error", "--compressed", url))


def test_go(host: Host, tmp_path: Path) -> None:
    program = require("go", "Debian: apt-get install golang-go")
    (tmp_path / "main.go").write_text(GO)
    run(program, "build", "-o", tmp_path / "fetch", tmp_path / "main.go")
    check(host, lambda url: run(tmp_path / "fetch", url))


def test_chromium(host: Host, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{host.url}/document")
    for path, body in host.bodies.items():
        text = page.evaluate("path => fetch(path).then(answer => answer.text())", path)
        assert text.encode() == body.plain, path
    page.close()
