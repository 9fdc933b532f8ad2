"""A store that means harm: what it can cost a server that follows it is bounded, and said in one
sentence.
"""

import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap

from support import s3 as support_s3
from support.command import run_successfully, run_toolcatalog
from support.s3 import FaultyProxy, ProxyFaults
from support.server import start_server, wait_until
from toolcatalog import encoding
from toolcatalog.publish import follower as publish_follower
from toolcatalog.publish import layout
from toolcatalog.publish.follower import Follower
from toolcatalog.publish.object_store import ObjectStorage, StoreError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import retention, tables, verify
from toolcatalog.store.open import open_build

MIB = 1 << 20
_FOLLOWS = """
import sys
from pathlib import Path
from toolcatalog.publish.follower import Follower

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024

good, hostile, cache = sys.argv[1:]
first = Follower(good, Path(cache))
first.poll()
assert first.last_error == "", first.last_error
before = peak()
second = Follower(hostile, Path(cache))
second.poll()
print(peak() - before)
print(second.last_error)
"""


class Store:
    """A store in a folder, which a test fills with anything."""

    def __init__(self, folder: Path, digest: str) -> None:
        self.folder, self.digest = folder, digest
        self.url = f"file://{folder}"
        at = folder / "snapshots" / digest
        self.manifest = json.loads((at / "manifest.json").read_bytes())
        self.chunks = json.loads((at / "chunks.json").read_bytes())["files"]

    def put(self, data: bytes, size: int = MIB) -> list[list[Any]]:
        """Put bytes there in chunks: the list of those."""
        pieces = [data[begin : begin + size] for begin in range(0, len(data), size)]
        for piece in pieces:
            (self.folder / "objects" / encoding.sha256_hex(piece)).write_bytes(piece)
        return [[encoding.sha256_hex(piece), len(piece)] for piece in pieces]

    def publish(
        self, changes: dict[str, Any], files: dict[str, Any], chunks: dict[str, Any] | bytes
    ) -> str:
        """Publish a snapshot whose manifest, files of it or chunks are others; its digest."""
        output = {name: value for name, value in self.manifest.items() if name != "digest"}
        output["about"] = {**output["about"], "title": "other"}
        output = {**output, "files": {**output["files"], **files}, **changes}
        digest = encoding.sha256_hex(encoding.dump_json(output))
        at = self.folder / "snapshots" / digest
        at.mkdir(exist_ok=True)
        (at / "manifest.json").write_bytes(encoding.dump_json({"digest": digest, **output}))
        if isinstance(chunks, dict):
            listed = {"format": layout.LAYOUT_FORMAT, "files": {**self.chunks, **chunks}}
            chunks = encoding.dump_json(listed)
        (at / "chunks.json").write_bytes(chunks)
        self.point(digest)
        return digest

    def point(self, digest: str) -> None:
        """Put a pointer."""
        (self.folder / "current.json").write_bytes(layout.render_pointer(digest))


@pytest.fixture
def store(small_build: Path, tmp_path: Path) -> Store:
    """A store with a good snapshot, to be changed."""
    digest = run_successfully("publish", f"file://{tmp_path}/store", "--build", small_build).strip()
    return Store(tmp_path / "store", digest)


@pytest.fixture
def follower(store: Store, tmp_path: Path) -> Follower:
    """Has followed that store once, and found it good."""
    result = Follower(store.url, tmp_path / "cache", interval=0.05)
    result.poll()
    assert result.last_error == ""
    return result


def list_cache(cache: Path) -> list[str]:
    """Return all paths of a cache outside of its snapshots."""
    return sorted(
        path.relative_to(cache).as_posix() for depth in ("*", "*/*") for path in cache.glob(depth)
    )


def stated(data: bytes) -> dict[str, Any]:
    """What a manifest says of a file."""
    return {"size": len(data), "sha256": encoding.sha256_hex(data)}


def many_times(store: Store, path: str, chunk: int, times: int) -> None:
    """Publish a file that is one chunk, many times."""
    output = {"size": chunk * times, "sha256": "0" * 64}
    store.publish({}, {path: output}, {path: store.put(bytes(chunk), chunk) * times})


def huge_listing(store: Store, data: bytes) -> None:
    """Publish another listing, in chunks as they should be."""
    store.publish({}, {"files.json": stated(data)}, {"files.json": store.put(data)})


def full_listing(store: Store) -> None:
    """Publish a listing of very many files, which is well formed."""
    entry = b'"sessions/trs_%06d.json":{"size":0,"sha256":"' + b"0" * 64 + b'"}'
    entries = [entry % number for number in range(snapshot_format.MAX_FILES)]
    huge_listing(store, b"{" + b",".join(entries) + b"}")


# by name: how to publish it, and a part of the message
HUGE: dict[str, tuple[Callable[[Store], object], str]] = {
    "16 MiB as the listing, 192 times": (
        lambda store: many_times(store, "files.json", 16 * MIB, 192),
        "has more than the 67,108,864 bytes that it can have",
    ),
    "16 MiB as a file, 192 times": (
        lambda store: many_times(store, "tools.json", 16 * MIB, 192),
        "The list of chunks is damaged",
    ),
    "1 MiB as a file, 9,000 times": (
        lambda store: many_times(store, "tools.json", MIB, 9_000),
        "and 8,589,934,592 are allowed: raise --max-snapshot-size",
    ),
    "a size that nothing has": (
        lambda store: store.publish({}, {"tools.json": {"size": 1 << 60, "sha256": "0" * 64}}, {}),
        "The manifest of the build in snapshots/",
    ),
    "a listing of nothing, 64 MB": (
        lambda store: huge_listing(store, b"[" + b"{}," * 21_000_000 + b"{}]"),
        "files.json is not the one that was written",
    ),
    "a listing of half a million files": (
        full_listing,
        "The list of chunks does not make sessions/trs_000000.json of 0 bytes",
    ),
    "chunks of nothing, 64 MB": (
        lambda store: store.publish({}, {}, b'{"format":1,"files":[' + b"[]," * 21_000_000),
        "is damaged",
    ),
    "chunks of ten million files": (
        lambda store: store.publish(
            {}, {}, b'{"format":1,"files":{' + b'"a":[],' * 9_000_000 + b'"a":[]}}'
        ),
        "is damaged",
    ),
    "chunks of one byte": (
        lambda store: store.publish(
            {},
            {"tools.json": {"size": 800_000, "sha256": "0" * 64}},
            {"tools.json": store.put(b"a") * 800_000},
        ),
        "makes tools.json of too many pieces",
    ),
    "a list of chunks without an end": (
        lambda store: store.publish({}, {}, b'{"format":1,"files":{' + b" " * (65 * MIB)),
        "has more than the 67,108,864 bytes that it can have",
    ),
    "a manifest of nothing, 4 MB": (
        lambda store: store.publish({"about": [{}] * 1_390_000}, {}, {}),
        "The manifest of the build in snapshots/",
    ),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells memory as Linux does")
@pytest.mark.parametrize("what", HUGE)
def test_large_listings_need_little_memory(
    what: str, store: Store, small_build: Path, tmp_path: Path
) -> None:
    """Less than 400 MB more than a good snapshot, and no files."""
    good = f"file://{tmp_path}/good"
    run_successfully("publish", good, "--build", small_build)
    publish, output = HUGE[what]
    publish(store)
    cache = tmp_path / "cache"
    result = subprocess.run(
        [sys.executable, "-c", _FOLLOWS, good, store.url, str(cache)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    peak, error = result.stdout.splitlines()
    assert output in error
    assert int(peak) < 400
    assert list_cache(cache) == [
        ".downloaded",
        ".lock",
        "chunks",
        f"chunks/{store.digest}.json",
        "current",
        *(f"current/{path.name}" for path in sorted((cache / "current").iterdir())),
        "snapshots",
        f"snapshots/{store.digest}",
    ]


def size_on_disk(sizes: dict[str, int]) -> int:
    """What files take, by path: each file and both levels of each folder take whole blocks."""
    folders = {path.rpartition("/")[0] for path in sizes}
    return sum(sizes.values()) + 4096 * (len(sizes) + 2 * len(folders))


def test_too_large_snapshot_is_not_downloaded(store: Store, tmp_path: Path) -> None:
    """Files next to the manifest count before the first request, those in folders before the
    second; the error names the flag.
    """
    listing = (store.folder / "objects" / store.chunks["files.json"][0][0]).read_bytes()
    sizes = {path: said["size"] for path, said in store.manifest["files"].items()}
    listed = snapshot_format.parse_file_list(listing)
    all_sizes = sizes | {path: said.size for path, said in listed.items()}
    most = size_on_disk(all_sizes)
    for max_size, kept in ((size_on_disk(sizes) - 1, ()), (most - 1, store.chunks["files.json"])):
        for chunk in (store.folder / "objects").iterdir():
            if chunk.name not in {sha256 for sha256, _ in kept}:
                chunk.rename(tmp_path / chunk.name)
        follower = Follower(store.url, tmp_path / "cache", max_size=max_size)
        follower.poll()
        assert f"and {max_size:,} are allowed: raise --max-snapshot-size" in follower.last_error
        assert list_cache(follower.cache) == [".downloaded", ".lock", "snapshots"]
        for chunk in tmp_path.glob("[0-9a-f]*"):
            chunk.rename(store.folder / "objects" / chunk.name)
    follower = Follower(store.url, tmp_path / "cache", max_size=most)
    follower.poll()
    assert follower.last_error == ""
    assert follower.has_snapshot()


ODD: dict[str, dict[str, Any]] = {
    "no listing": {"files": {"tools.json": {"size": 1, "sha256": "0" * 64}}},
    "no counts": {"counts": {}},
    "odd counts": {"counts": {"toolkits": -1, "tools": 1, "tool_versions": 1, "sessions": 1}},
    "odd about": {"about": {"title": [1]}},
    "odd format": {"format": "3\n\x1b[2J"},
}


@pytest.mark.parametrize("what", ODD)
def test_strange_manifest_is_refused(
    what: str, store: Store, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    """One sentence without a traceback; the good snapshot stays, and later checks are cheap."""
    before = list_cache(follower.cache)
    slow = Follower(store.url, follower.cache, interval=60)
    store.publish(ODD[what], {}, {})
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            slow.poll()
    lines = [one.getMessage() for one in caplog.records if one.levelno > logging.INFO]
    assert len(lines) == 1
    assert "The manifest of the build in snapshots/" in lines[0]
    assert lines[0].isprintable()
    assert not any(one.exc_info for one in caplog.records)
    assert slow.snapshots_rejected == 1
    assert list_cache(follower.cache) == before
    assert retention.current_digest(follower.cache) == store.digest


def test_prune_handles_an_invalid_manifest(store: Store, follower: Follower) -> None:
    """A cached snapshot with an invalid manifest counts as incomplete and is removed."""
    folder = follower.cache / "snapshots"
    output = {**store.manifest, "counts": {}}
    del output["digest"]
    odd = encoding.sha256_hex(encoding.dump_json(output))
    (folder / odd).mkdir()
    (folder / odd / "manifest.json").write_bytes(encoding.dump_json({"digest": odd, **output}))
    result = run_toolcatalog("snapshots", "list", "--build", follower.cache)
    assert result.returncode == 0, result.stderr
    assert f"{odd[:12]}" in result.stdout
    assert "is damaged" in result.stderr
    other = store.publish({}, {}, {})
    follower.poll()
    assert follower.last_error == ""
    assert {path.name for path in folder.iterdir()} == {store.digest, other}
    (folder / odd).mkdir()
    result = run_toolcatalog("snapshots", "prune", "--build", follower.cache)
    assert (result.returncode, result.stdout) == (0, f"{odd}\n")


def test_alternating_bad_snapshots_are_limited(store: Store, tmp_path: Path) -> None:
    """Each of two is downloaded once; of many, a few are."""
    follower = Follower(store.url, tmp_path / "cache", interval=60)
    about = {"title": "", "description": "", "home": "", "repository": ""}
    bad = [
        store.publish({"about": {**about, "title": str(number)}}, {}, {"tools.json": []})
        for number in range(40)
    ]
    for digest in bad[:2] * 5:
        store.point(digest)
        follower.poll()
    assert follower.snapshots_rejected == 2
    for digest in bad:
        store.point(digest)
        follower.poll()
    assert follower.snapshots_rejected == publish_follower._MAX_REMEMBERED_FAILURES
    assert follower.last_error


def test_good_snapshot_does_not_reset_the_backoff(store: Store, follower: Follower) -> None:
    """A pointer alternates between a good and a bad snapshot: the bad one is downloaded once."""
    slow = Follower(store.url, follower.cache, interval=60)
    bad = store.publish({}, {}, {"tools.json": []})
    for digest in [bad, store.digest] * 4:
        store.point(digest)
        slow.poll()
    assert slow.snapshots_rejected == 1
    assert slow.last_error == ""


def test_too_long_object_is_a_bad_snapshot(store: Store, follower: Follower) -> None:
    """Its pause grows to an hour, not to a minute as for network errors."""
    data = os.urandom(100)
    sha256, _ = store.put(data)[0]
    (store.folder / "objects" / sha256).write_bytes(data * 2)
    store.publish({}, {"tools.json": stated(data)}, {"tools.json": [[sha256, len(data)]]})
    follower.poll()
    assert "has other bytes than its name says" in follower.last_error
    assert follower.snapshots_rejected == 1


def test_nested_folders_do_not_fill_the_disk(store: Store, follower: Follower) -> None:
    """A short list of empty files in very many folders is refused first."""
    before = list_cache(follower.cache)
    paths = [f"a{number}/{'b/' * 200}c" for number in range(20)]
    listing = encoding.dump_json({path: stated(b"") for path in paths})
    output = {"files.json": store.put(listing), **{path: [] for path in paths}}
    store.publish({}, {"files.json": stated(listing)}, output)
    follower.poll()
    assert "files.json is not the one that was written" in follower.last_error
    assert list_cache(follower.cache) == before


def test_foreign_chunks_are_not_kept(store: Store, follower: Follower) -> None:
    """Chunk lists are stored without files of other snapshots."""
    more = [[encoding.sha256_hex(b"%d" % number), 1] for number in range(1000)]
    digest = store.publish({}, {}, {"more": more})
    follower.poll()
    assert follower.last_error == ""
    kept = (follower.cache / "chunks" / f"{digest}.json").read_bytes()
    assert layout.parse_chunk_list(kept).keys() == store.chunks.keys()


def full_table(data: bytes) -> bytes:
    """A table without a free slot, where a search for an unknown name would not end."""
    magic, count, slots, _, last = tables._HEADER.unpack(data[: tables._HEADER.size])
    begin, end = tables._HEADER.size + 4 * slots, tables._HEADER.size + 4 * slots + 8 * (count + 1)
    numbers = struct.unpack(f"<{slots}I", data[tables._HEADER.size : begin])
    index = struct.pack(f"<{slots}I", *(number or 1 for number in numbers)) + data[begin:end]
    return tables._HEADER.pack(magic, count, slots, zlib.crc32(index), last) + index + data[end:]


def with_fact(name: str, value: bytes) -> Callable[[bytes], bytes]:
    """Change the content of a fact, or add it."""

    def change(data: bytes) -> bytes:
        facts = tables.Table(data)
        values = dict(facts.entry_at(number) for number in range(len(facts)))
        values = dict(sorted({**values, name: value}.items()))
        sizes = [len(value) for value in values.values()]
        return b"".join(tables.pack_table([*values], sizes, values.values()))

    return change


# a file, and what becomes of it
UNFIT: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "covers that are cut": ("query.covers", lambda data: data[:-1]),
    "numbers that are cut": ("query.numbers", lambda data: data[:-1]),
    "no numbers": ("query.numbers", lambda _: b""),
    "no postings": ("query.postings", lambda _: b""),
    "numbers of other tools": ("query.numbers", lambda data: data[:8] + b"\xff" * (len(data) - 8)),
    "a full table of tools": ("query.tools", full_table),
    "a full table of facts": ("query.facts", full_table),
    "versions that are numbers": ("query.facts", with_fact("toolkit x", b"[1]")),
    "a name that is a number": ("query.facts", with_fact("toolkit_info x", b'{"name":5}')),
    "a toolkit that is no JSON": ("query.facts", with_fact("toolkit_info x", b"{")),
    "a server that is a number": ("query.facts", with_fact("mcp_server x", b"5")),
    "a session of nothing": ("query.facts", with_fact("session x", b"[]\n{}")),
}


@pytest.mark.parametrize("what", UNFIT)
def test_unopenable_snapshot_is_never_current(
    what: str, store: Store, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    """Its bytes match its manifest, but it cannot be opened: refused before `current` changes."""
    before = list_cache(follower.cache)
    path, change = UNFIT[what]
    objects = store.folder / "objects"
    data = b"".join((objects / sha256).read_bytes() for sha256, _ in store.chunks[path])
    other = change(data)
    store.publish({}, {path: stated(other)}, {path: store.put(other)})
    follower.poll()
    assert "snapshots/" in follower.last_error
    assert "publish to file://" in follower.last_error
    assert follower.snapshots_rejected == 1
    assert not any(one.exc_info for one in caplog.records)
    assert list_cache(follower.cache) == before
    assert open_build(follower.cache).digest == store.digest


def test_huge_bitmap_needs_no_memory(store: Store, follower: Follower) -> None:
    """A few bytes that name more tools than exist are refused."""
    objects = store.folder / "objects"
    data = b"".join((objects / sha256).read_bytes() for sha256, _ in store.chunks["query.sets"])
    sets = tables.Table(data)
    values = dict(sets.entry_at(number) for number in range(len(sets)))
    all_numbers = BitMap(range(1 << 20)).serialize()
    values = {name: all_numbers if name.startswith("toolkit ") else values[name] for name in values}
    sizes = [len(value) for value in values.values()]
    other = b"".join(tables.pack_table([*values], sizes, values.values()))
    store.publish({}, {"query.sets": stated(other)}, {"query.sets": store.put(other)})
    follower.poll()
    assert "query.sets is not one that a build writes" in follower.last_error


@pytest.mark.parametrize("where", ["current.json", "objects", "snapshots"])
def test_pipe_in_a_store_does_not_block(where: str, store: Store, tmp_path: Path) -> None:
    """One line reports it, and the server still stops."""
    for path in [store.folder / where, *(store.folder / where).rglob("*")]:
        if path.is_file():
            path.unlink()
            os.mkfifo(path)
    with start_server(store.url, tmp_path, "--cache", tmp_path / "cache") as server:
        wait_until(lambda: "is not a regular file" in server.log.read_text())
    assert server.process.returncode == 0


def test_silent_store_does_not_block_shutdown(
    s3: str, proxy: FaultyProxy, small_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**support_s3.CREDENTIALS, "AWS_ENDPOINT_URL": s3}.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{support_s3.create_bucket(s3)}/p"
    run_successfully("publish", url, "--build", small_build)
    proxy.faults = ProxyFaults("slow", pause=50)
    with start_server(url, tmp_path, "--cache", tmp_path / "cache", env=proxy.env) as server:
        wait_until(lambda: proxy.busy)
        server.process.terminate()
        server.process.wait(timeout=20)
    assert server.process.returncode == 0


def test_backoff_grows_to_an_hour() -> None:
    """It doubles with jitter, and a success resets it."""
    failures = publish_follower._FailedDownloads(1.5)
    pauses = []
    for _ in range(20):
        failures.add("a", "because", publish_follower._MAX_REJECTION_DELAY)
        pauses.append(failures._failures["a"].retry_at - time.monotonic())
    for pause, expected in zip(pauses, [min(3600, 1.5 * 2**n) for n in range(1, 21)], strict=True):
        assert expected * 0.79 - 1 < pause <= expected
    with pytest.raises(layout.InvalidRemoteSnapshot, match="because"):
        failures.check("a")
    failures.check("b")
    failures.remove("a")
    failures.check("a")


@pytest.fixture
def dripping(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A store that sends single bytes without end; returns the times of the requests.

    The client waits one second for a response here, not half a minute.
    """
    times: list[float] = []
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection:
            times.append(time.monotonic())
            connection.recv(1 << 16)
            head = b'HTTP/1.1 200 OK\r\nContent-Length: 4000\r\nETag: "x"\r\n'
            connection.sendall(head + b"Last-Modified: Mon, 23 Nov 2026 10:00:00 GMT\r\n\r\n")
            while not ended.wait(0.1):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    def accept() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        for name, value in support_s3.CREDENTIALS.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("AWS_TIMEOUT", "1s")
        threading.Thread(target=accept, daemon=True).start()
        yield times
        ended.set()


def test_endless_response_is_given_up(dripping: list[float], follower: Follower) -> None:
    """After a few attempts, as for any error."""
    begin = time.monotonic()
    with pytest.raises(StoreError):
        ObjectStorage("s3://bucket/p").read(layout.POINTER, layout.MAX_POINTER_SIZE)
    assert len(dripping) <= 6
    assert time.monotonic() - begin < 60
    slow = Follower("s3://bucket/p", follower.cache)
    slow.poll()
    assert "cannot be read" in slow.last_error
    assert verify.verify_snapshot(Path(os.path.realpath(follower.cache / "current"))) == []


def test_store_errors_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control characters are replaced."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            body = b"\x1b[2J\x07gone\x1b]0;title"
            head = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        for name, value in support_s3.CREDENTIALS.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(StoreError, match="refuses these credentials") as caught:
            ObjectStorage("s3://bucket/p").read(layout.POINTER, layout.MAX_POINTER_SIZE)
    assert "gone" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-snapshot-size", "8GiB"], "--max-snapshot-size goes with --from URL"),
        (["--from", "{url}", "--max-snapshot-size", "much"], "'much' is not a size: write a whole"),
        (["--from", "{url}", "--max-snapshot-size", "0"], "'0' is not a size"),
        (["--from", "{url}", "--max-snapshot-size", "8iB"], "'8iB' is not a size"),
    ],
)
def test_invalid_size_is_refused(arguments: list[str], said: str, store: Store) -> None:
    """A size has a number and a unit, and needs a store."""
    result = run_toolcatalog("serve", *(one.format(url=store.url) for one in arguments))
    assert result.returncode == 2
    assert said in result.stderr
