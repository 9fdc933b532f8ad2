"""`toolcatalog publish`, into a real S3 server and into a folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import s3 as support_s3
from support.command import run_successfully, run_toolcatalog
from support.s3 import FaultyProxy, ProxyFaults
from support.server import wait_until
from toolcatalog.progress import no_progress
from toolcatalog.publish import layout, object_store, upload
from toolcatalog.publish.object_store import ObjectStorage, StoreError


@pytest.fixture
def bucket(s3: str) -> str:
    """A bucket of one's own."""
    return support_s3.create_bucket(s3)


def test_publish_twice(small_build: Path, s3: str, proxy: FaultyProxy, bucket: str) -> None:
    """All files and each chunk once, the pointer last; the second run sends nothing."""
    url = f"s3://{bucket}/some/where"
    result = run_toolcatalog("publish", url, "--build", small_build, env=proxy.env)
    digest = (small_build / "current").readlink().name
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{digest}\n"
    assert "Sent " in result.stderr
    puts = [request.path for request in proxy.requests_of("PUT")]
    assert len(puts) == len({*puts})
    assert puts[-1] == f"/{bucket}/some/where/current.json"
    assert {path.split("/")[4] for path in puts} == {"objects", "snapshots", "current.json"}
    assert (
        support_s3.get_object(s3, f"{bucket}/some/where/snapshots/{digest}/manifest.json").data
        == (small_build / "current/manifest.json").read_bytes()
    )
    assert (
        layout.parse_pointer(support_s3.get_object(s3, f"{bucket}/some/where/current.json").data)
        == digest
    )

    proxy.requests.clear()
    again = run_toolcatalog("publish", url, "--build", small_build, env=proxy.env)
    assert (again.returncode, again.stdout) == (0, f"{digest}\n")
    assert "Nothing to send" in again.stderr
    assert proxy.requests_of("PUT") == []


def test_cache_headers(small_build: Path, s3: str, proxy: FaultyProxy, bucket: str) -> None:
    """Objects with a digest are immutable; the pointer is revalidated."""
    run_successfully("publish", f"s3://{bucket}", "--build", small_build, env=proxy.env)
    output = {
        request.path: support_s3.get_object(s3, request.path[1:]).headers["cache-control"]
        for request in proxy.requests_of("PUT")
    }
    assert output.pop(f"/{bucket}/current.json") == "no-cache"
    assert {*output.values()} == {"public, max-age=31536000, immutable"}


def test_only_changes_are_uploaded(
    shipped_build: Path, changed_build: Path, proxy: FaultyProxy, bucket: str
) -> None:
    """For one changed tool, a part of the objects, each once."""
    url = f"s3://{bucket}/p"
    run_successfully("publish", url, "--build", shipped_build, env=proxy.env)
    first = {request.path: request.sent for request in proxy.requests_of("PUT")}
    proxy.requests.clear()
    digest = run_successfully("publish", url, "--build", changed_build, env=proxy.env).strip()
    second = {request.path: request.sent for request in proxy.requests_of("PUT", "/objects/")}
    assert not first.keys() & second.keys()
    assert 0 < len(second) < len(first) / 2
    assert proxy.requests_of("PUT")[-1].path.endswith("/current.json")
    assert digest != (shipped_build / "current").readlink().name

    proxy.requests.clear()  # back to the first: all of it is there
    back = run_toolcatalog("publish", url, "--build", shipped_build, env=proxy.env)
    assert "Nothing to send but the pointer" in back.stderr
    assert [request.path for request in proxy.requests_of("PUT")] == [f"/{bucket}/p/current.json"]


def test_killed_publish_is_resumed(
    small_build: Path, s3: str, proxy: FaultyProxy, bucket: str
) -> None:
    """No pointer names a partial snapshot, and the next run sends the rest."""
    url = f"s3://{bucket}/p"
    proxy.faults = ProxyFaults("slow", method="PUT", pause=0.2)
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "publish",
        url,
        "--build",
        str(small_build),
        "--jobs",
        "2",
    ]
    with subprocess.Popen(
        command,
        env={**os.environ, **proxy.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: len(proxy.requests_of("PUT")) >= 4)
        process.send_signal(signal.SIGKILL)
    assert support_s3.get_object(s3, f"{bucket}/p/current.json").status == 404
    proxy.faults = ProxyFaults()
    wait_until(proxy.is_idle)
    first = {request.path for request in proxy.requests_of("PUT")}
    proxy.requests.clear()
    run_successfully("publish", url, "--build", small_build, env=proxy.env)
    second = {request.path for request in proxy.requests_of("PUT")}
    assert len(first) >= 4
    assert not first & second
    assert support_s3.get_object(s3, f"{bucket}/p/current.json").status == 200


def test_object_of_the_wrong_size_is_sent_again(
    small_build: Path, s3: str, proxy: FaultyProxy, bucket: str
) -> None:
    """Or a missing one."""
    run_successfully("publish", f"s3://{bucket}", "--build", small_build, env=proxy.env)
    missing, short, *_ = [
        request.path for request in proxy.requests_of("PUT", "/objects/") if request.sent > 1
    ]
    support_s3.remove_object(s3, missing[1:])
    support_s3.put_object(s3, short[1:], b"")
    proxy.requests.clear()
    run_successfully("publish", f"s3://{bucket}", "--build", small_build, env=proxy.env)
    assert {request.path for request in proxy.requests_of("PUT")} == {missing, short}


@pytest.mark.parametrize("name", ["manifest.json", "chunks.json", "object"])
def test_publish_repairs_damage_of_the_same_size(
    name: str, small_build: Path, tmp_path: Path
) -> None:
    """Metadata is always compared, an object only with --verify."""
    store, url = tmp_path / "store", f"file://{tmp_path}/store"
    digest = run_successfully("publish", url, "--build", small_build).strip()
    folder = store / "snapshots" / digest
    file = folder / name
    if name == "object":
        listed = json.loads((folder / "chunks.json").read_bytes())["files"]
        file = store / "objects" / listed["tools.json"][0][0]
    before = file.read_bytes()
    file.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    if name == "object":
        done = run_toolcatalog("publish", url, "--build", small_build)
        assert "Nothing to send" in done.stderr
    done = run_toolcatalog("publish", url, "--build", small_build, "--verify")
    assert (done.returncode, done.stdout) == (0, f"{digest}\n")
    assert f"Sent 1 objects, {len(before):,} bytes." in done.stderr
    assert file.read_bytes() == before
    done = run_toolcatalog("publish", url, "--build", small_build, "--verify")
    assert "Nothing to send" in done.stderr


@pytest.mark.parametrize("name", ["manifest.json", "chunks.json"])
def test_publish_compares_metadata(name: str, small_build: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store"
    digest = run_successfully("publish", url, "--build", small_build).strip()
    file = tmp_path / "store/snapshots" / digest / name
    before = file.read_bytes()
    for damaged in (before[:-1] + b"?", before + b"?", before[:-1]):
        file.write_bytes(damaged)
        run_successfully("publish", url, "--build", small_build)
        assert file.read_bytes() == before


def test_store_errors_are_retried(small_build: Path, proxy: FaultyProxy, bucket: str) -> None:
    """A few 503 responses."""
    proxy.faults = ProxyFaults(503, method="PUT", times=3)
    run_successfully("publish", f"s3://{bucket}/p", "--build", small_build, env=proxy.env)
    assert proxy.faults.times == 0


def test_concurrent_publishers_get_an_error(
    s3: str, proxy: FaultyProxy, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pointer that another one moved does not change."""
    for name, value in proxy.env.items():
        monkeypatch.setenv(name, value)
    door = ObjectStorage(f"s3://{bucket}/p")
    for before in (None, b"theirs"):
        tag = door.read("current.json", 100).tag if before else None  # type: ignore[union-attr]
        support_s3.put_object(
            s3, f"{bucket}/p/current.json", b"theirs" if before is None else b"others"
        )
        with pytest.raises(object_store.ObjectConflict, match=r"changed by someone else"):
            door.replace("current.json", b"ours", "no-cache", tag)
    assert support_s3.get_object(s3, f"{bucket}/p/current.json").data == b"others"
    now = door.read("current.json", 100)
    assert now
    door.replace("current.json", b"ours", "no-cache", now.tag)
    assert support_s3.get_object(s3, f"{bucket}/p/current.json").data == b"ours"


def test_incomplete_build_is_not_published(
    small_build: Path, proxy: FaultyProxy, bucket: str, tmp_path: Path
) -> None:
    """Or one with a changed byte."""
    shutil.copytree(small_build, tmp_path / "build", symlinks=True)
    file = tmp_path / "build/current/tools.json"
    file.write_bytes(file.read_bytes()[:-2] + b" ]")
    result = run_toolcatalog(
        "publish", f"s3://{bucket}", "--build", tmp_path / "build", env=proxy.env
    )
    assert result.returncode == 2
    assert "tools.json has other bytes than were written" in result.stderr
    (tmp_path / "build/current/manifest.json").unlink()
    result = run_toolcatalog(
        "publish", f"s3://{bucket}", "--build", tmp_path / "build", env=proxy.env
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "There is no finished build" in result.stderr
    assert proxy.requests == []


def test_folder_can_be_a_store(small_build: Path, other_build: Path, tmp_path: Path) -> None:
    """On a shared disk."""
    url = f"file://{tmp_path}/store"
    digest = run_successfully("publish", url, "--build", small_build).strip()
    other = run_successfully("publish", url, "--build", other_build).strip()
    assert layout.parse_pointer((tmp_path / "store/current.json").read_bytes()) == other != digest
    run_successfully("publish", url, "--build", small_build)
    assert layout.parse_pointer((tmp_path / "store/current.json").read_bytes()) == digest
    assert "Nothing to send:" in run_toolcatalog("publish", url, "--build", small_build).stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("somewhere", "is not the URL of an object store: give one like s3://bucket/prefix"),
        ("https://example.com/x", "is not the URL of an object store"),
        ("s3://", "cannot be opened: Unable to recognise URL"),
        ("az://container/x", "cannot be opened: Account must be specified"),
        ("s3://no-such-bucket-here/p", "there is no such bucket"),
    ],
)
def test_invalid_address_is_refused(
    url: str, said: str, small_build: Path, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in proxy.env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=said) as caught:
        upload.upload_snapshot(ObjectStorage(url), small_build, 1, no_progress)
    assert "\n" not in str(caught.value)


def test_unreachable_store_is_reported(small_build: Path, proxy: FaultyProxy, bucket: str) -> None:
    """Also plain http without permission; with a hint."""
    proxy.faults = ProxyFaults(403, where="/")
    result = run_toolcatalog("publish", f"s3://{bucket}", "--build", small_build, env=proxy.env)
    assert result.returncode == 2
    assert "refuses these credentials" in result.stderr
    result = run_toolcatalog(
        "publish",
        f"s3://{bucket}",
        "--build",
        small_build,
        env={**proxy.env, "AWS_ALLOW_HTTP": "false"},
    )
    assert result.returncode == 2
    assert "AWS_ALLOW_HTTP=true" in result.stderr
    proxy.stop()
    result = run_toolcatalog("publish", f"s3://{bucket}", "--build", small_build, env=proxy.env)
    assert result.returncode == 2
    assert "error sending request" in result.stderr


def test_chunk_list_has_file_order(small_build: Path, tmp_path: Path) -> None:
    """`cat` can restore a file."""
    digest = run_successfully("publish", f"file://{tmp_path}/store", "--build", small_build).strip()
    listed = json.loads((tmp_path / f"store/snapshots/{digest}/chunks.json").read_bytes())["files"]
    for path in ("tools.json", "query.postings", "files.json"):
        assert (
            b"".join((tmp_path / "store/objects" / sha).read_bytes() for sha, _ in listed[path])
            == (small_build / "current" / path).read_bytes()
        )


def test_download_size_is_limited(tmp_path: Path) -> None:
    """An object that is larger than expected is not read into memory."""
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    with pytest.raises(StoreError, match=r"more than the 1,000 bytes"):
        ObjectStorage(f"file://{tmp_path}").read("big", 1000)


def age(store: Path, *names: str) -> None:
    """Make all objects, or only these, two days old."""
    then = time.time() - 2 * 86400
    for path in (
        path for path in store.rglob("*") if path.is_file() and (not names or path.name in names)
    ):
        os.utime(path, (then, then))


def test_unused_files_are_removed(small_build: Path, other_build: Path, tmp_path: Path) -> None:
    """Old snapshots and their chunks; nothing that is current, kept, or younger than a day."""
    store, url = tmp_path / "store", f"file://{tmp_path}/store"
    first = run_successfully("publish", url, "--build", small_build).strip()
    of_first = {path.name for path in (store / "objects").iterdir()}
    result = run_toolcatalog("publish", url, "--build", other_build, "--keep", "0")
    assert "Removed 0 snapshots, 0 objects, 0 bytes" in result.stderr  # all is young
    second = result.stdout.strip()
    age(store)
    assert (
        "Removed 0 snapshots, 0 objects"
        in run_toolcatalog("publish", url, "--build", other_build, "--keep", "1").stderr
    )
    both = {path.name for path in (store / "objects").iterdir()}
    assert (
        "Removed 1 snapshot, "
        in run_toolcatalog("publish", url, "--build", other_build, "--keep", "0").stderr
    )
    remaining = {path.name for path in (store / "objects").iterdir()}
    assert (
        {path.name for path in (store / "snapshots").iterdir() if any(path.iterdir())}
        == {second}
        != {first}
    )
    assert {
        chunk.sha256
        for some in layout.parse_chunk_list(
            (store / f"snapshots/{second}/chunks.json").read_bytes()
        ).values()
        for chunk in some
    } == remaining
    assert remaining < both
    assert of_first - remaining


def test_old_unused_chunks_are_sent_again(
    small_build: Path, other_build: Path, tmp_path: Path
) -> None:
    """Another process may be removing them."""
    store, url = tmp_path / "store", f"file://{tmp_path}/store"
    run_successfully("publish", url, "--build", small_build)
    run_successfully("publish", url, "--build", other_build)
    age(store)
    assert "Nothing to send:" in run_toolcatalog("publish", url, "--build", other_build).stderr
    result = run_toolcatalog("publish", url, "--build", small_build)
    assert "Sent " in result.stderr
    young = {
        path.name
        for path in (store / "objects").iterdir()
        if path.stat().st_mtime > time.time() - 86400
    }
    assert young
    chunks = layout.parse_chunk_list(
        (store / f"snapshots/{result.stdout.strip()}/chunks.json").read_bytes()
    )
    assert young < {chunk.sha256 for some in chunks.values() for chunk in some}


def test_damaged_chunk_list_blocks_removal(
    small_build: Path, other_build: Path, tmp_path: Path
) -> None:
    """It is unknown what kept snapshots need."""
    store, url = tmp_path / "store", f"file://{tmp_path}/store"
    first = run_successfully("publish", url, "--build", small_build).strip()
    run_successfully("publish", url, "--build", other_build)
    (store / f"snapshots/{first}/chunks.json").write_bytes(b"{}")
    age(store)
    before = {path.name for path in store.rglob("*")}
    result = run_toolcatalog("publish", url, "--build", other_build, "--keep", "1")
    assert result.returncode == 2
    assert "chunks.json is damaged" in result.stderr
    assert {path.name for path in store.rglob("*")} == before


def test_missing_extra_is_reported(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['obstore'] = None\n"
        "from toolcatalog.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "publish", f"file://{tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 2
    assert "pip install 'toolcatalog[s3]'" in result.stderr
