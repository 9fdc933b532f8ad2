"""Metrics: counts over several processes, and who may read them."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families

from support import metrics
from support.command import run_toolcatalog
from support.paths import ROOT
from support.server import TIMEOUT, Server, create_key, start_server, wait_until, worker_pids
from toolcatalog.cli import listeners
from toolcatalog.errors import UsageError
from toolcatalog.server.metrics import prometheus, workers
from toolcatalog.server.metrics.counters import (
    BUCKET_BOUNDS,
    CACHE_HITS,
    CACHE_MISSES,
    NO_KEY,
    RELOADS,
    Counters,
    CounterValues,
    WorkerStatus,
    sum_values,
)

SESSION = "/api/v3/tool_router/session/trs_playground/tools"


def requests(found: Mapping[metrics.Sample, float]) -> dict[tuple[str, str], float]:
    """How many requests were answered, by route and status."""
    return {
        (dict(labels)["route"], dict(labels)["status"]): value
        for (name, labels), value in found.items()
        if name == "toolcatalog_requests_total"
    }


def send(server: Server, key: str, rounds: int) -> dict[tuple[str, str], int]:
    """Ask by all ways, each on a connection of its own as far as it matters; what that comes to, by
    route and status.
    """
    headers, plain = {"x-api-key": key}, {"x-api-key": key, "accept-encoding": "identity"}
    for _ in range(rounds):
        with httpx.Client(base_url=server.url) as remaining:
            for _ in range(5):  # from the third on, the head is known
                tag = remaining.get(metrics.TOOL, headers=plain).headers["etag"]
            assert (
                remaining.get(metrics.TOOL, headers={**plain, "if-none-match": tag}).status_code
                == 304
            )
            remaining.head(metrics.TOOL, headers=plain)
            remaining.get(metrics.LIST, headers=headers)  # coded
            remaining.get(metrics.TOOL.replace("ISSUE", "NOTHING"), headers=plain)
            remaining.get(metrics.TOOL, headers={**plain, "x-api-key": "tc_no"})
            remaining.get(SESSION, headers=headers)
            remaining.get("/")
            remaining.get("/nowhere")
            remaining.post(metrics.LIST, headers=headers)
            remaining.options(
                metrics.LIST,
                headers={"origin": "https://a.example", "access-control-request-method": "GET"},
            )
    item = "/api/v3/tools/{slug}"
    each = {
        (item, "200"): 6,
        (item, "304"): 1,
        (item, "404"): 1,
        (item, "401"): 1,
        (metrics.LIST, "200"): 1,
        (metrics.LIST, "405"): 1,
        ("/api/v3/tool_router/session/{id}/tools", "200"): 1,
        ("site", "200"): 1,
        ("none", "404"): 1,
        ("preflight", "204"): 1,
    }
    return {name: rounds * number for name, number in each.items()}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket on which this process serves metrics."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        prometheus.serve_metrics(list, listener)
        yield listener


def test_idle_connections_do_not_use_up_descriptors(listener: socket.socket) -> None:
    """One beyond the maximum is closed at once, and scrapes work when others have ended."""
    address = listener.getsockname()
    idle = [socket.create_connection(address) for _ in range(prometheus.MAX_CONNECTIONS)]
    with socket.create_connection(address, timeout=10) as connection:
        assert connection.recv(1) == b""
    for connection in idle:
        connection.close()

    def scrape() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{address[1]}/metrics").status_code == 200
        return False

    wait_until(scrape)


def test_a_slow_scrape_is_ended(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout is that of the whole request: a byte now and then does not extend it."""
    monkeypatch.setattr(prometheus, "_TIMEOUT", 0.5)

    def send_slowly(connection: socket.socket) -> None:
        for _ in range(100):
            connection.sendall(b"G")
            time.sleep(0.1)

    with (
        socket.create_connection(listener.getsockname(), timeout=10) as connection,
        pytest.raises(OSError, match=r"reset|pipe"),
    ):
        send_slowly(connection)


def test_requests_are_counted(shipped_build: Path, tmp_path: Path) -> None:
    """By route, status and key, in the histogram; routes are templates, so that paths add none."""
    with start_server(
        shipped_build,
        tmp_path,
        "--site",
        str(shipped_build.parent / "site"),
        "--metrics",
        "127.0.0.1:0",
    ) as server:
        other = create_key(server.keys_file)
        time.sleep(1)
        request = send(server, server.key, 3)
        for path in ("/api/v3/tools/A%0AB", "/api/v3/tools/%22%7D", '/x"}{', "/metrics"):
            httpx.get(server.url + path, headers={"x-api-key": other})
        request["/api/v3/tools/{slug}", "400"], request["none", "404"] = (
            2,
            request["none", "404"] + 2,
        )
        url = metrics.where(server)
        wait_until(lambda: requests(metrics.scrape(url)) == request)
        result = metrics.scrape(url)
        ids = dict(
            zip(
                (server.key, other),
                re.findall("key_[0-9A-Za-z]{8}", server.keys_file.read_text()),
                strict=True,
            )
        )
        assert result[metrics.sample("key_requests_total", key=ids[other])] == 2
        assert (
            result[metrics.sample("key_requests_total", key="none")] == 3 * 5 + 2
            # nobody asks for a key at pages, at what is not there, and before another method is
            # refused
        )
        assert sum(
            value for (name, _), value in result.items() if name == "toolcatalog_key_requests_total"
        ) == sum(request.values())
        for route in {route for route, _ in request}:
            number = sum(value for (item, _), value in request.items() if item == route)
            buckets = [
                result[metrics.sample("request_duration_seconds_bucket", route=route, le=le)]
                for le in [*map(str, BUCKET_BOUNDS), "+Inf"]
            ]
            assert buckets == sorted(buckets)
            assert (
                buckets[-1]
                == result[metrics.sample("request_duration_seconds_count", route=route)]
                == number
            )
            assert 0 < result[metrics.sample("request_duration_seconds_sum", route=route)] < TIMEOUT
        # a list, a tool and a session; in each round seven gets of that tool are answered
        assert result[metrics.sample("answer_cache_misses_total")] == 3
        assert result[metrics.sample("answer_cache_hits_total")] == 3 * (7 + 1 + 1) - 3
        assert result[metrics.sample("answer_cache_entries")] == 3
        assert result[metrics.sample("processes")] == 1
        assert result[metrics.sample("resident_memory_bytes")] > 10e6
        digest = httpx.get(f"{server.url}/readyz").json()["snapshot"]
        assert result[metrics.sample("snapshot_info", digest=digest)] == 1
        assert 0 < result[metrics.sample("snapshot_age_seconds", digest=digest)] < TIMEOUT
        text = httpx.get(url).text
        assert server.key not in text
        assert other not in text


def test_workers_are_added_up(shipped_build: Path, tmp_path: Path) -> None:
    """Three workers, one killed, then all stopped: no counter decreases, and dead processes do not
    count as running.
    """
    arguments = (
        "--site",
        str(shipped_build.parent / "site"),
        "--workers",
        "3",
        "--metrics",
        "127.0.0.1:0",
    )
    with start_server(shipped_build, tmp_path, *arguments) as server:
        url = metrics.where(server)
        wait_until(lambda: metrics.scrape(url)[metrics.sample("processes")] == 3)
        request = send(server, server.key, 4)
        wait_until(lambda: requests(metrics.scrape(url)) == request)
        previous, pids = metrics.scrape(url), worker_pids(server)
        os.kill(min(pids), signal.SIGKILL)
        wait_until(
            lambda: (
                assert_monotonic(previous, now := metrics.scrape(url))
                and now[metrics.sample("processes")] == 3
                and min(pids) not in worker_pids(server)
            )
        )
        previous, pids = metrics.scrape(url), worker_pids(server)
        request = added_counts(request, send(server, server.key, 2))
        for pid in pids:
            # at once: who ends in good order leaves all that was counted
            os.kill(pid, signal.SIGTERM)
        wait_until(
            lambda: (
                assert_monotonic(previous, now := metrics.scrape(url))
                and now[metrics.sample("processes")] == 3
                and not pids & worker_pids(server)
            )
        )
        assert requests(metrics.scrape(url)) == request


def assert_monotonic(
    previous: Mapping[metrics.Sample, float], now: Mapping[metrics.Sample, float]
) -> bool:
    """Check that no counter decreases or disappears."""
    counters = [name for name in previous if re.search("_(total|bucket|count|sum)$", name[0])]
    assert len(counters) > 20
    assert [name for name in counters if now[name] < previous[name]] == []
    return True


def added_counts(
    a: Mapping[tuple[str, str], int], b: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], int]:
    return {name: a[name] + b[name] for name in a}


def test_metrics_on_the_api_port_are_local(shipped_build: Path, tmp_path: Path) -> None:
    """Other addresses, host names and proxied requests get 404."""
    options = ("--workers", "2", "--host", "0.0.0.0")  # noqa: S104
    with start_server(shipped_build, tmp_path, *options) as server:
        port = server.url.rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/metrics"
        wait_until(lambda: metrics.scrape(url)[metrics.sample("processes")] == 2)
        for _ in range(8):
            httpx.get(server.url + metrics.TOOL, headers={"x-api-key": server.key})
        wait_until(lambda: requests(metrics.scrape(url)).get(("/api/v3/tools/{slug}", "200")) == 8)
        for headers in (
            {"host": "tools.example.com"},
            {"x-forwarded-for": "127.0.0.1"},
            {"forwarded": "for=1.2.3.4"},
            {"via": "1.1 a"},
            {"host": ""},
        ):
            response = httpx.get(url, headers=headers)
            assert (response.status_code, response.json()["error"]["slug"]) == (
                404,
                "route_not_found",
            )
        for headers in ({"host": "localhost:1"}, {"host": "[::1]"}, {"host": "127.9.9.9:80"}):
            assert httpx.get(url, headers=headers).status_code == 200
        answer = httpx.get(url, headers={"accept": "application/openmetrics-text; version=1.0.0"})
        assert answer.headers["cache-control"] == "no-store"
        assert len([*open_families(answer.text)]) == 15  # type: ignore[no-untyped-call]
        if address := own_address():
            assert httpx.get(f"http://{address}:{port}/healthz").status_code == 200
            for headers in ({}, {"host": "localhost"}):
                assert (
                    httpx.get(f"http://{address}:{port}/metrics", headers=headers).status_code
                    == 404
                )


PAGES = (
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:8000"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none", "origin": ""},
)


def test_web_pages_cannot_read_metrics(shipped_build: Path, tmp_path: Path) -> None:
    """Browser fetches get 404 and no CORS headers; typing the address works."""
    with start_server(shipped_build, tmp_path) as server:
        url = f"{server.url}/metrics"
        for headers in PAGES:
            answer = httpx.get(url, headers=headers)
            assert (answer.status_code, "toolcatalog_" in answer.text) == (404, False)
            assert not [name for name in answer.headers if name.startswith("access-control")]
        preflight = {"origin": "https://evil.example", "access-control-request-method": "GET"}
        answer = httpx.options(url, headers=preflight)
        assert answer.status_code == 405
        assert not [name for name in answer.headers if name.startswith("access-control")]
        for headers in ({}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-origin"}):
            assert "toolcatalog_requests" in httpx.get(url, headers=headers).text


def test_web_pages_cannot_read_the_metrics_port(shipped_build: Path, tmp_path: Path) -> None:
    """With 403."""
    with start_server(shipped_build, tmp_path, "--metrics", "127.0.0.1:0") as server:
        for headers in PAGES:
            answer = httpx.get(metrics.where(server), headers=headers)
            assert (answer.status_code, "toolcatalog_" in answer.text) == (403, False)
            assert not [name for name in answer.headers if name.startswith("access-control")]
        for headers in ({}, {"sec-fetch-site": "none"}):
            assert "toolcatalog_requests" in httpx.get(metrics.where(server), headers=headers).text
        # a page of a public name that its owner points to this machine
        for host in ("evil.example", "evil.example:9100", "127.0.0.1.evil.example", "a.b."):
            answer = httpx.get(metrics.where(server), headers={"host": host})
            assert (answer.status_code, "toolcatalog_" in answer.text) == (403, False)
        for host in (
            "localhost",
            "[::1]:9100",
            "10.1.2.3",
            "toolcatalog:9100",
            "a.b.svc",
            "x.local.",
        ):
            answer = httpx.get(metrics.where(server), headers={"host": host})
            assert "toolcatalog_requests" in answer.text


def own_address() -> str | None:
    """An address of this machine that is not a loopback one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address: str = asking.getsockname()[0]
        return None if address.startswith("127.") else address


@pytest.mark.parametrize(
    "text", ["9100", "localhost", "a:b", "127.0.0.1:99999", "::1:80", ":80", "a:-1", ""]
)
def test_invalid_metrics_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:9100"):
        listeners.parse_address(text)


def test_metrics_addresses() -> None:
    """A name, an IPv4 and an IPv6 address."""
    assert [
        listeners.parse_address(text) for text in ("localhost:0", "127.0.0.1:9100", "[::1]:65535")
    ] == [
        ("localhost", 0),
        ("127.0.0.1", 9100),
        ("::1", 65535),
    ]


@pytest.mark.parametrize("address", ["9100", "192.0.2.1:80"])
def test_unusable_metrics_address_stops_the_start(shipped_build: Path, address: str) -> None:
    result = run_toolcatalog("serve", "--build", shipped_build, "--port", "0", "--metrics", address)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Serving" not in result.stderr
    assert address in result.stderr


def test_bucket_bounds_are_inclusive() -> None:
    tallies = Counters()
    for seconds in (
        0.0,
        BUCKET_BOUNDS[0],
        BUCKET_BOUNDS[3],
        BUCKET_BOUNDS[-1],
        BUCKET_BOUNDS[-1] + 1,
    ):
        tallies.count_request("/a", 200, seconds, NO_KEY)
    cell = tallies.get_values().requests["200 /a"]
    assert [index for index, number in enumerate(cell[:-1]) for _ in range(int(number))] == [
        0,
        0,
        3,
        len(BUCKET_BOUNDS) - 1,
        len(BUCKET_BOUNDS),
    ]
    assert cell[-1] == pytest.approx(
        sum((BUCKET_BOUNDS[0], BUCKET_BOUNDS[3], 2 * BUCKET_BOUNDS[-1] + 1))
    )


def sample_counts(key: str, times: int, process: int = 1) -> CounterValues:
    """Some counts."""
    tallies = Counters()
    for _ in range(times):
        tallies.count_request("/a", 200, 0.25, key)
    tallies.count_reload(ok=True)
    tallies.cache.misses = 2
    tallies.cache.hits = times
    return tallies.get_values(WorkerStatus(process, "digest", 1.0, 3))


def test_counts_of_processes_are_added() -> None:
    both = sum_values([sample_counts("a", 2, 1), sample_counts("b", 3, 2)])
    assert both.requests["200 /a"][-1] == 1.25
    assert sum(both.requests["200 /a"][:-1]) == 5
    assert both.keys == {"a": 2, "b": 3}
    assert (both.events[RELOADS], both.events[CACHE_MISSES], both.events[CACHE_HITS]) == (2, 4, 5)
    assert [now.process for now in both.workers] == [1, 2]
    assert sum_values([]) == CounterValues()


def test_counts_of_dead_workers_are_added_once(tmp_path: Path) -> None:
    """Even if interrupted or repeated."""
    for process, times in ((11, 2), (12, 5)):
        write(tmp_path, process, times)
    assert sum_counts(tmp_path) == (7, 2)
    page = next(tmp_path.glob("12-*.page"))
    content = page.read_bytes()
    workers.fold_ended(tmp_path, {11})
    assert sum_counts(tmp_path) == (7, 1)
    page.write_bytes(content)  # as if it had been read before it went
    assert sum_counts(tmp_path) == (7, 1)
    workers.fold_ended(tmp_path, {11})
    workers.fold_ended(tmp_path, {11})
    assert sum_counts(tmp_path) == (7, 1)
    workers.fold_ended(tmp_path, set())
    assert sum_counts(tmp_path) == (7, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["past.json"]


def write(folder: Path, process: int, times: int) -> None:
    """A page as another process would write it."""
    page = workers.WorkerPage(folder, lambda: sample_counts("a", times, process))
    page.write()
    result = next(folder.glob(f"{os.getpid()}-*.page"))
    result.rename(folder / result.name.replace(f"{os.getpid()}-", f"{process}-"))


def sum_counts(folder: Path) -> tuple[int, int]:
    """Return the numbers of requests and of processes."""
    result = sum_values(workers.read_all_counts(folder))
    return result.keys["a"], len(result.workers)


def test_missing_counter_folder_fails_the_scrape(tmp_path: Path) -> None:
    """Smaller numbers would look like a restart."""
    with pytest.raises(FileNotFoundError):
        workers.read_all_counts(tmp_path / "gone")


def test_folder_of_a_killed_supervisor_is_removed(tmp_path: Path) -> None:
    """By the next one; folders that are in use, new, or foreign stay."""
    (dead, its), (alive, reference), (young, new) = supervisor(), supervisor(), supervisor()
    link = its.with_name(f"{its.name}-link")
    link.symlink_to(tmp_path)
    (tmp_path / "lock").touch()
    try:
        for process in (dead, young):
            process.kill()
            process.wait()
        for folder in (its, reference, tmp_path):
            os.utime(folder, (1, 1))
        with workers.create_folder():
            assert [folder.exists() for folder in (its, reference, new, link, tmp_path)] == [
                False,
                True,
                True,
                True,
                True,
            ]
    finally:
        alive.kill()
        alive.wait()
        link.unlink()
        for folder in (reference, new):
            shutil.rmtree(folder)


def supervisor() -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder, and the folder."""
    program = (
        "import time\nfrom toolcatalog.server.metrics import workers\nwith workers.create_folder()"
        " as f:\n print(f, flush=True)\n time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout as output:
        return process, Path(output.readline().strip())


def test_unwritable_counter_file_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Counting goes on in memory and is written later."""
    folder = tmp_path / "pages"
    folder.mkdir()
    times = 1
    page = workers.WorkerPage(folder, lambda: sample_counts("a", times))
    away = folder.rename(tmp_path / "away")
    times = 4
    page.write()
    page.write()
    away.rename(folder)
    assert caplog.text.count("cannot be written") == 1
    assert sum_counts(folder)[0] == 1
    page.write()
    assert sum_counts(folder)[0] == 4


def test_documented_metrics_exist() -> None:
    """In docs/reference/metrics.md."""
    output = (ROOT / "docs/reference/metrics.md").read_text()
    text = prometheus.render_metrics(lambda: [sample_counts("a", 1, os.getpid())], "").body.decode()
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert len(names) == 15
    assert {name for name in names if f"`{name}`" not in output} == set()
