"""Tests of `publish.follower` and `serve --from`: a folder that always has a complete build."""

import contextlib
import gzip
import json
import logging
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from support import s3 as support_s3
from support.command import run_toolcatalog
from support.s3 import FaultyProxy, ProxyFaults
from support.server import Server, start_server, wait_until
from toolcatalog import encoding
from toolcatalog.progress import no_progress
from toolcatalog.publish import download, layout, upload
from toolcatalog.publish import follower as publish_follower
from toolcatalog.publish.follower import Follower
from toolcatalog.publish.object_store import ObjectStorage
from toolcatalog.snapshot import compression, verify
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.snapshot.gzip_fragments import gzip_ends
from toolcatalog.store.open import open_build
from toolcatalog.system import files

Publish = Callable[[Path], str]


@pytest.fixture
def bucket(s3: str) -> str:
    """A bucket of one's own."""
    return support_s3.create_bucket(s3)


@pytest.fixture
def publish(s3: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Publishes a build there, past the proxy; tells its digest."""
    for name, value in {**support_s3.CREDENTIALS, "AWS_ENDPOINT_URL": s3}.items():
        monkeypatch.setenv(name, value)
    door = ObjectStorage(f"s3://{bucket}/p")
    return lambda build: upload.upload_snapshot(door, build, 4, no_progress).digest


@pytest.fixture
def follower(
    publish: Publish,  # noqa: ARG001
    bucket: str,
    proxy: FaultyProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Follower:
    """Follows that address into an empty folder, through the proxy, looking often; other followers
    go through it too from now on.
    """
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.env["AWS_ENDPOINT_URL"])
    return Follower(f"s3://{bucket}/p", tmp_path / "cache", interval=0.05)


def named(cache: Path) -> str:
    """The digest of the snapshot that can be served from a cache, every byte of it verified."""
    folder = cache / "current"
    assert verify.verify_snapshot(folder.resolve()) == []
    assert open_build(cache).digest == folder.readlink().name
    return folder.readlink().name


def parts(cache: Path) -> list[str]:
    """What is in a cache that was not completed."""
    return [path.name for path in cache.rglob("*.part")]


def test_compressed_documents_are_never_downloaded(
    follower: Follower, publish: Publish, shipped_build: Path, tmp_path: Path
) -> None:
    """Publishers do not send them, and followers compress what they verified."""
    build = Path(shutil.copytree(shipped_build, tmp_path / "build", symlinks=True))
    (build / "current" / "tools.deflate").write_bytes(b"forged")
    publish(build)
    follower.poll()
    assert named(follower.cache) == named(shipped_build)
    chunks = [*(follower.cache / "chunks").glob("*.json")]
    assert [b"tools.deflate" in file.read_bytes() for file in chunks] == [False]
    store = open_build(follower.cache)
    fragments = store.read_fragment(0)
    assert fragments is not None
    start, end = gzip_ends(b"", fragments, b"")
    body = b"".join((start, *fragments.chunks, end))
    assert gzip.decompress(body) == store.read_document(0)[0]


def test_cached_snapshot_gets_compressed_documents(
    follower: Follower, publish: Publish, shipped_build: Path
) -> None:
    """If an older program downloaded it without."""
    publish(shipped_build)
    follower.poll()
    file = follower.cache / "current" / "tools.deflate"
    before = file.read_bytes()
    file.unlink()
    Follower(follower._storage.url, follower.cache).poll()
    assert file.read_bytes() == before


def test_follower_copies_the_files(
    follower: Follower, publish: Publish, shipped_build: Path, changed_build: Path
) -> None:
    """Byte for byte; an update downloads only changes, a rollback nothing."""
    first = publish(shipped_build)
    follower.poll()
    assert named(follower.cache) == first
    copied = {
        path.relative_to(follower.cache / "current"): path.read_bytes()
        for path in (follower.cache / "current").rglob("*")
        if path.is_file()
    }
    assert copied == {
        path.relative_to(shipped_build / "current"): path.read_bytes()
        for path in (shipped_build / "current").rglob("*")
        if path.is_file()
    }
    objects, size = follower.objects_fetched, follower.bytes_fetched
    second = publish(changed_build)
    follower.poll()
    assert compression.verify_compressed_documents(follower.cache / "current") == []
    assert named(follower.cache) == second != first
    assert 0 < follower.objects_fetched - objects < objects / 2
    assert 0 < follower.bytes_fetched - size < size
    objects = follower.objects_fetched
    publish(shipped_build)
    follower.poll()
    assert named(follower.cache) == first
    assert (
        follower.objects_fetched,
        follower.snapshots_fetched,
        follower.snapshots_rejected,
        follower.last_error,
    ) == (
        objects,
        2,
        0,
        "",
    )
    assert abs(time.time() - follower.last_success) < 60


def test_unchanged_pointer_costs_one_small_response(
    follower: Follower, publish: Publish, small_build: Path, proxy: FaultyProxy
) -> None:
    publish(small_build)
    follower.poll()
    proxy.requests.clear()
    for _ in range(3):
        follower.poll()
    assert [(one.path.rpartition("/")[2], one.received) for one in proxy.requests] == [
        ("current.json", 0)
    ] * 3


def test_replicas_follow_independently(
    follower: Follower,
    bucket: str,
    publish: Publish,
    small_build: Path,
    other_build: Path,
    tmp_path: Path,
) -> None:
    """Two threads with a folder each."""
    replicas = [follower, Follower(f"s3://{bucket}/p", tmp_path / "other", interval=0.05)]
    for replica in replicas:
        replica.start()
    try:
        for build in (small_build, other_build, small_build):
            digest = publish(build)
            wait_until(
                lambda wanted=digest: all(  # type: ignore[misc]
                    os.path.realpath(one.cache / "current").endswith(wanted) for one in replicas
                )
            )
            assert {named(one.cache) for one in replicas} == {digest}
    finally:
        for replica in replicas:
            replica.stop()


@pytest.mark.parametrize("kind", ["cut", "short", "long", "wrong", 500, 404, 403])
def test_wrong_objects_are_refused(
    kind: str | int,
    bucket: str,
    follower: Follower,
    publish: Publish,
    small_build: Path,
    other_build: Path,
    proxy: FaultyProxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Truncated, too long or changed bodies, and errors: the old snapshot stays, one line says why,
    and a later attempt succeeds.
    """
    first = publish(small_build)
    follower.poll()
    second = publish(other_build)
    proxy.faults = ProxyFaults(kind)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            follower.poll()
    assert named(follower.cache) == first
    assert follower.last_error
    # followers of other tests may still log
    own = [record for record in caplog.records if f"//{bucket}/" in record.getMessage()]
    assert [record.levelname for record in own] == ["WARNING"]
    assert "Keeping the current snapshot" in caplog.text
    assert parts(follower.cache) == []
    proxy.faults = ProxyFaults()
    wait_until(lambda: follower.poll() or not follower.last_error)  # type: ignore[func-returns-value]
    assert named(follower.cache) == second


def test_failed_download_backs_off(
    follower: Follower, publish: Publish, small_build: Path, proxy: FaultyProxy
) -> None:
    """Meanwhile only the pointer is requested; another snapshot is downloaded at once."""
    publish(small_build)
    proxy.faults = ProxyFaults("wrong")
    follower = Follower(follower._storage.url, follower.cache, interval=60)
    follower.poll()
    proxy.requests.clear()
    for _ in range(10):
        follower.poll()
    assert {one.path.rpartition("/")[2] for one in proxy.requests} == {"current.json"}
    assert (follower.snapshots_rejected, len(proxy.requests)) == (1, 10)


def test_new_pointer_ends_the_backoff(
    follower: Follower, publish: Publish, small_build: Path, other_build: Path, proxy: FaultyProxy
) -> None:
    publish(small_build)
    follower = Follower(follower._storage.url, follower.cache, interval=60)
    proxy.faults = ProxyFaults("wrong")
    follower.poll()
    assert follower.snapshots_rejected == 1
    proxy.faults = ProxyFaults()
    second = publish(other_build)
    follower.poll()
    assert named(follower.cache) == second


def test_slow_store_is_waited_for(
    follower: Follower, publish: Publish, small_build: Path, proxy: FaultyProxy
) -> None:
    first = publish(small_build)
    proxy.faults = ProxyFaults("slow")
    follower.poll()
    assert named(follower.cache) == first
    assert follower.last_error == ""


def test_store_outage_and_recovery(
    follower: Follower,
    publish: Publish,
    small_build: Path,
    other_build: Path,
    proxy: FaultyProxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The current snapshot is served, with one log line; then the follower continues."""
    first = publish(small_build)
    follower.poll()
    proxy.stop()
    caplog.set_level(logging.INFO)
    for _ in range(2):
        follower.poll()
    assert named(follower.cache) == first
    assert len(caplog.records) == 1
    assert "error sending request" in follower.last_error
    # what a server that is started now starts with
    assert Follower(follower._storage.url, follower.cache).has_snapshot()
    second = publish(other_build)
    proxy.start()
    follower.poll()
    assert named(follower.cache) == second
    assert "again." in caplog.text


def replaced_manifest(s3: str, bucket: str, digest: str, **changes: object) -> str:
    """Publish past everybody a snapshot whose manifest says something else; its digest."""
    manifest = {
        **json.loads(
            support_s3.get_object(s3, f"{bucket}/p/snapshots/{digest}/manifest.json").data
        ),
        **changes,
    }
    del manifest["digest"]
    other = encoding.sha256_hex(encoding.dump_json(manifest))
    support_s3.put_object(
        s3,
        f"{bucket}/p/snapshots/{other}/manifest.json",
        encoding.dump_json({"digest": other, **manifest}),
    )
    support_s3.put_object(
        s3,
        f"{bucket}/p/snapshots/{other}/chunks.json",
        support_s3.get_object(s3, f"{bucket}/p/snapshots/{digest}/chunks.json").data,
    )
    support_s3.put_object(s3, f"{bucket}/p/current.json", layout.render_pointer(other))
    return other


class Published:
    """What is published under a digest, to be spoilt past everybody."""

    def __init__(self, s3: str, bucket: str, digest: str) -> None:
        self.s3, self.bucket, self.digest = s3, bucket, digest
        self.folder = f"{bucket}/p/snapshots/{digest}"
        self.manifest = support_s3.get_object(s3, f"{self.folder}/manifest.json").data
        self.chunks = json.loads(support_s3.get_object(s3, f"{self.folder}/chunks.json").data)
        self.files = self.chunks["files"]

    def point(self, data: bytes) -> None:
        """Put another pointer."""
        support_s3.put_object(self.s3, f"{self.bucket}/p/current.json", data)

    def put(self, manifest: bytes) -> None:
        """Put another manifest under the same digest."""
        support_s3.put_object(self.s3, f"{self.folder}/manifest.json", manifest)

    def list(self, files: dict[str, object]) -> None:
        """Put another list of chunks."""
        support_s3.put_object(
            self.s3,
            f"{self.folder}/chunks.json",
            orjson.dumps({**self.chunks, "files": {**self.files, **files}}),
        )

    def of_another(self) -> None:
        """Write the manifest of this snapshot under another digest, and point to it."""
        support_s3.put_object(
            self.s3, f"{self.bucket}/p/snapshots/{'1' * 64}/manifest.json", self.manifest
        )
        self.point(layout.render_pointer("1" * 64))

    def put_incomplete_list(self) -> None:
        """Replace a chunk list by one that lacks a file."""
        del self.files["query.sets"]
        self.list({})

    def remove_chunk(self) -> None:
        """Remove a chunk."""
        support_s3.remove_object(
            self.s3, f"{self.bucket}/p/objects/{self.files['tools.json'][0][0]}"
        )


# by name: how to damage a publication, and a part of the message
SPOILT: dict[str, tuple[Callable[[Published], object], str]] = {
    "names nothing": (
        lambda it: it.point(layout.render_pointer("0" * 64)),
        "names a snapshot that is not there",
    ),
    "no pointer": (
        lambda it: it.point(b"<html>not what you think</html>"),
        "current.json is damaged",
    ),
    "huge pointer": (
        lambda it: it.point(layout.render_pointer(it.digest) + b" " * 5000),
        "more than the 4,096 bytes",
    ),
    "newer depot": (
        lambda it: it.point(orjson.dumps({"format": 2, "digest": it.digest})),
        "current.json has format 2, this program reads 1: upgrade",
    ),
    "newer format": (
        lambda it: replaced_manifest(it.s3, it.bucket, it.digest, format=99),
        "has format 99",
    ),
    "manifest of another": (
        Published.of_another,
        "The manifest of snapshot 111111111111 is that of ",
    ),
    "manifest changed": (
        lambda it: it.put(it.manifest.replace(b'"tools":', b'"tools":1')),
        "manifest.json is not the one that was written",
    ),
    "manifest cut": (
        lambda it: it.put(it.manifest[:-50]),
        "The manifest of the build in snapshots/",
    ),
    "half": (
        lambda it: support_s3.remove_object(it.s3, f"{it.folder}/chunks.json"),
        "is not there",
    ),
    "a chunk is gone": (Published.remove_chunk, "is not in s3://"),
    "chunks of another file": (
        lambda it: it.list({"tools.json": it.files["query.sets"]}),
        "The list of chunks does not make tools.json",
    ),
    "more chunks": (
        lambda it: it.list({"tools.json": it.files["tools.json"] * 1000}),
        "The list of chunks does not make tools.json",
    ),
    "a file less": (Published.put_incomplete_list, "The list of chunks does not make query.sets"),
    "leads elsewhere": (lambda it: it.list({"../../elsewhere": []}), "leads elsewhere"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_invalid_publication_is_refused(
    how: str,
    follower: Follower,
    publish: Publish,
    small_build: Path,
    other_build: Path,
    s3: str,
    bucket: str,
) -> None:
    """Incomplete snapshots, newer formats, wrong lists and pointers: one sentence, no file
    elsewhere, and the old snapshot stays.
    """
    first = publish(small_build)
    follower.poll()
    spoil, output = SPOILT[how]
    spoil(Published(s3, bucket, publish(other_build)))
    # else what changed little would need none of what is wrong
    shutil.rmtree(follower.cache / "chunks")
    follower.poll()
    assert output in follower.last_error
    assert named(follower.cache) == first
    assert parts(follower.cache) == []
    assert sorted(path.name for path in follower.cache.iterdir()) == [
        ".downloaded",
        ".lock",
        "current",
        "snapshots",
    ]
    publish(small_build)
    follower.poll()
    assert (named(follower.cache), follower.last_error) == (first, "")


def test_empty_store_is_reported(follower: Follower) -> None:
    """As an empty store, not as an error of the machine."""
    follower.poll()
    assert "Nothing is published in" in follower.last_error
    assert not follower.has_snapshot()


@contextlib.contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_keeps_the_old_snapshot(
    follower: Follower,
    publish: Publish,
    small_build: Path,
    other_build: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One log line, no partial files."""
    first = publish(small_build)
    follower.poll()
    publish(other_build)
    with caplog.at_level(logging.WARNING), limit_file_size(2_000):
        for _ in range(5):
            follower.poll()
    assert "Cannot write to" in caplog.text
    assert len(caplog.records) == 1
    assert parts(follower.cache) == []
    assert named(follower.cache) == first


def test_free_space_is_checked_first(tmp_path: Path) -> None:
    most, sha256 = 1 << 61, "0" * 64
    download._check_disk_space(tmp_path, {"a": FileInfo(1, sha256)}, most)
    with pytest.raises(
        OSError, match=r"Not enough disk space for a snapshot of 1,152,921,504,606,859,264 bytes"
    ):
        download._check_disk_space(tmp_path, {"a": FileInfo(1 << 60, sha256)}, most)


def test_old_snapshots_are_pruned(
    follower: Follower, publish: Publish, small_build: Path, s3: str, bucket: str
) -> None:
    """The three newest stay, and their chunk lists."""
    digest = publish(small_build)
    follower.poll()
    digests = [
        replaced_manifest(
            s3,
            bucket,
            digest,
            about={"title": str(number), "description": "", "home": "", "repository": ""},
        )
        for number in range(1)
    ]
    follower.poll()
    for number in range(1, 4):
        digests.append(
            replaced_manifest(
                s3,
                bucket,
                digest,
                about={"title": str(number), "description": "", "home": "", "repository": ""},
            )
        )
        follower.poll()
        assert follower.last_error == ""
    snapshots = sorted(path.name for path in (follower.cache / "snapshots").iterdir())
    assert snapshots == sorted(digests[-3:])
    assert sorted(path.stem for path in (follower.cache / "chunks").iterdir()) == snapshots
    assert named(follower.cache) == digests[-1]


def test_damaged_copy_is_downloaded_again(
    follower: Follower, publish: Publish, small_build: Path
) -> None:
    """A start repairs a cache with a lost or changed file, and does not serve it."""
    first = publish(small_build)
    follower.poll()
    assert follower.has_snapshot()
    file = follower.cache / "current/tools.json"
    file.write_bytes(file.read_bytes()[:-1])
    fresh = Follower(follower._storage.url, follower.cache)
    assert not fresh.has_snapshot()
    fresh.poll()
    assert named(follower.cache) == first


def test_servers_share_a_cache(follower: Follower, publish: Publish, small_build: Path) -> None:
    """A server waits while another process writes, and uses the result."""
    first = publish(small_build)
    follower.cache.mkdir()
    with files.lock(follower.cache / ".lock"):
        follower.poll()
        assert not follower.has_snapshot()
    follower.poll()
    assert named(follower.cache) == first


def test_locked_cache_is_reported(
    follower: Follower, publish: Publish, small_build: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A poll without the lock is no success, and many of them in a row are an error."""
    caplog.set_level(logging.INFO)
    publish(small_build)
    follower.cache.mkdir()
    with files.lock(follower.cache / ".lock"):
        follower.poll()
        assert (follower.last_success, follower.failed_polls, follower.last_error) == (0, 0, "")
        for _ in range(60):
            follower.poll()
        assert follower.last_success == 0
        assert follower.failed_polls > 10
        assert "has been locked for" in follower.last_error
    follower.poll()
    assert follower.last_success > 0
    assert (
        len([record for record in caplog.records if "has been locked for" in record.getMessage()])
        == 1
    )
    assert "again." in caplog.text


def test_default_cache_depends_on_the_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = (
        publish_follower.default_cache("s3://a/b"),
        publish_follower.default_cache("s3://a/c"),
    )
    assert one.parent == other.parent == tmp_path / "toolcatalog"
    assert one != other
    assert publish_follower.default_cache("s3://a/b/") == one
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert publish_follower.default_cache("s3://a/b").parent == Path.home() / ".cache/toolcatalog"


def test_server_follows_a_store(
    follower: Follower,
    publish: Publish,
    small_build: Path,
    other_build: Path,
    proxy: FaultyProxy,
    tmp_path: Path,
) -> None:
    """`serve --from` with two workers: follows, survives an outage, and starts during one."""
    url, cache = follower._storage.url, tmp_path / "cache"
    (tmp_path / "keys").mkdir()
    first = publish(small_build)
    with start_server(
        url, tmp_path / "keys", "--cache", cache, "--workers", "2", env=proxy.env
    ) as server:
        wait_until(lambda: {ready(server) for _ in range(8)} == {first})
        second = publish(other_build)
        wait_until(lambda: {ready(server) for _ in range(8)} == {second})
        proxy.stop()
        wait_until(lambda: "Keeping the current snapshot" in server.log.read_text())
        assert (
            httpx.get(f"{server.url}/api/v3/tools", headers={"x-api-key": server.key}).status_code
            == 200
        )
    with start_server(url, tmp_path / "keys", "--cache", cache, env=proxy.env) as server:
        assert ready(server) == second
        publish(small_build)
        proxy.start()
        wait_until(lambda: ready(server) == first)


def test_server_waits_for_the_first_snapshot(
    follower: Follower, publish: Publish, small_build: Path, proxy: FaultyProxy, tmp_path: Path
) -> None:
    """It is not ready, says why, and serves the snapshot when it comes."""
    with start_server(
        follower._storage.url, tmp_path, "--cache", tmp_path / "cache", env=proxy.env
    ) as server:
        wait_until(lambda: "Nothing is published in s3://" in server.log.read_text())
        assert ready(server) == ""
        first = publish(small_build)
        wait_until(lambda: ready(server) == first)


def ready(server: Server) -> str:
    """The digest of the snapshot that the server answers from; empty where it is not ready."""
    answer = httpx.get(f"{server.url}/readyz")
    assert answer.status_code in {200, 503}
    digest: str = answer.json().get("snapshot", "")
    return digest


def test_server_has_one_source(tmp_path: Path) -> None:
    """A build or a valid store address."""
    result = run_toolcatalog("serve", "--from", "s3://tools/p", "--build", tmp_path)
    assert result.returncode == 2
    assert "A server has one source" in result.stderr
    result = run_toolcatalog("serve", "--from", "tools/p")
    assert result.returncode == 2
    assert "is not the URL of an object store" in result.stderr
