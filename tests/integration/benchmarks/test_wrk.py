"""wrk sends the headers of a client, and an id per request, to a real server."""

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import wrk
from benchmarks.profiles import PROFILES
from benchmarks.wrk import RequestLine

pytestmark = pytest.mark.skipif(
    not (shutil.which("wrk") and shutil.which("taskset")), reason="wrk is not installed"
)
LINES = [RequestLine(f"/tools/{number}", {"If-None-Match": f'"{number}"'}) for number in range(50)]


class Recorder(BaseHTTPRequestHandler):
    """Records the path and the headers of each request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    requests: list[tuple[str, dict[str, str]]]

    def do_GET(self) -> None:
        self.requests.append((self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def recorder() -> Iterator[ThreadingHTTPServer]:
    """A server in a thread, with an empty record."""
    Recorder.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def send(recorder: ThreadingHTTPServer, folder: Path, first: int | None) -> wrk.LoadRun:
    """Send requests for a second with one connection and the headers of a browser."""
    host = f"127.0.0.1:{recorder.server_address[1]}"
    headers = {"Host": host, **PROFILES["browser"].headers, "x-api-key": "k"}
    wrk.write_requests(folder / "requests.txt", headers, LINES)
    # the process that is measured must become idle, so it is not this one
    return wrk.run_wrk(f"http://{host}", 2**22 + 1, folder / "requests.txt", 1, 1, first, cores=[0])


def test_requests_have_unique_bytes(recorder: ThreadingHTTPServer, tmp_path: Path) -> None:
    """The headers of the profile, the API key, and a unique id."""
    run = send(recorder, tmp_path, first=None)
    assert run.errors == 0
    assert run.requests > len(LINES)
    ids = [headers.pop("X-Request-Id") for _, headers in Recorder.requests]
    assert len({*ids}) == len(ids)
    expected = {**PROFILES["browser"].headers, "x-api-key": "k"}
    for path, headers in Recorder.requests:
        assert headers.pop("Host").startswith("127.0.0.1:")
        assert headers.pop("If-None-Match") == f'"{path.rpartition("/")[2]}"'
        assert headers == expected
    assert len({path for path, _ in Recorder.requests}) == len(LINES)


def test_new_queries_are_sent_in_order(recorder: ThreadingHTTPServer, tmp_path: Path) -> None:
    """From a random start, and cyclic."""
    send(recorder, tmp_path, first=47)
    indexes = [int(path.rpartition("/")[2]) for path, _ in Recorder.requests]
    assert indexes[0] in (47, 48)  # wrk creates a request to check the script
    assert all(after == (before + 1) % 50 for before, after in pairwise(indexes))
