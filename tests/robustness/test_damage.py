"""Damaged snapshots and key files. docs/evidence/faults.md has the results."""

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from support.command import environment_without_coverage
from support.paths import DATA
from support.profile import DEEP_PROFILE
from support.server import Server, start_server, wait_until
from toolcatalog.build.pipeline import build
from toolcatalog.cli.main import main
from toolcatalog.errors import KeyFileError, SnapshotError
from toolcatalog.keys import api_keys
from toolcatalog.keys.storage import FileKeyStorage
from toolcatalog.snapshot import retention, verify
from toolcatalog.store.open import open_snapshot
from toolcatalog.system import files

GOLDEN = DATA / "golden"
SEED = 20261122

# Snapshots


class Two(NamedTuple):
    """A build with its pages: its folder, and the digests of a snapshot and of the next one."""

    out: Path
    first: str
    second: str


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    """A build with sessions, credentials and pages; the first snapshot is current."""
    folder = tmp_path_factory.mktemp("two")
    catalog = Path(shutil.copytree(GOLDEN / "sessions/catalog", folder / "catalog"))
    first = build(catalog, folder / "build", folder / "site").digest
    about = next(catalog.glob("toolkits/*/toolkit.yaml"))
    about.write_text(about.read_text().replace("name: ", "name: Another ", 1))
    second = build(catalog, folder / "build", folder / "site").digest
    retention.switch_current(folder / "build", first)
    return Two(folder / "build", first, second)


def flipped(data: bytes, bit: int) -> bytes:
    """The same with one bit changed."""
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def damages(folder: Path, number: int) -> Iterator[tuple[str, bytes]]:
    """Draw damages to the files of a folder, at least one per file: the path and its new bytes."""
    draw = random.Random(SEED)  # noqa: S311 - nothing secret
    paths = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    draw.shuffle(paths)
    for at in range(number):
        path = paths[at % len(paths)]
        data = (folder / path).read_bytes()
        yield (
            path,
            data[: draw.randrange(len(data))]
            if draw.random() < 0.5
            else flipped(data, draw.randrange(8 * len(data))),
        )


def opens(folder: Path) -> bool:
    """Whether a server starts with a snapshot."""
    try:
        open_snapshot(folder)
    except SnapshotError:
        return False
    return True


def verify_fails(out: Path, digest: str) -> bool:
    """Return whether `snapshots verify` reports damage."""
    try:
        return retention.verify_by_digest(out, digest) != []
    except SnapshotError:
        return True


def test_damage_to_any_file_is_found(two: Two) -> None:
    """Truncated files and flipped bits, by `verify`, and some on open."""
    folder = retention.snapshot_folder(two.out, two.second)
    number, at_open = (300 if DEEP_PROFILE else 20), 0
    for path, damaged in damages(folder, number):
        good = (folder / path).read_bytes()
        files.write_synced(folder / path, damaged)
        assert verify_fails(two.out, two.second), path
        at_open += not opens(folder)
        files.write_synced(folder / path, good)
    print(f"seed {SEED}: {number} damages, {number} found by verify, {at_open} at open")
    assert verify.verify_snapshot(folder) == []
    assert number / 5 < at_open


ASKED = (
    "/api/v3/tools",
    "/api/v3/tools?query=read",
    "/api/v3/tools/ALPHA_READ",
    "/api/v3/tools/BETA_WRITE",
    "/api/v3/tools?toolkit_slug=gamma",
)


def answers(server: Server, client: httpx.Client) -> dict[str, tuple[int, bytes]]:
    """Status and body of some questions."""
    result = {
        path: client.get(server.url + path, headers={"x-api-key": server.key}) for path in ASKED
    }
    return {path: (answer.status_code, answer.content) for path, answer in result.items()}


@pytest.mark.deep
def test_running_server_refuses_damaged_snapshots(two: Two, tmp_path: Path) -> None:
    """For each file; it logs that, serves the old one, and loads the repaired one."""
    out = Path(shutil.copytree(two.out, tmp_path / "build", symlinks=True))
    folder, refused = retention.snapshot_folder(out, two.second), 0
    with start_server(out, tmp_path) as server, httpx.Client() as client:
        expected = answers(server, client)
        for path, damaged in damages(folder, 60):
            good = (folder / path).read_bytes()
            files.write_synced(folder / path, damaged)
            files.replace_symlink(out / "current", f"snapshots/{two.second}")
            refused += 1
            wait_until(lambda: server.log.read_text().count("is refused") == refused)  # noqa: B023 - at once
            assert answers(server, client) == expected
            files.replace_symlink(out / "current", f"snapshots/{two.first}")
            wait_until(lambda: server.log.read_text().count("serving snapshot") == refused)  # noqa: B023 - at once
            files.write_synced(folder / path, good)
        files.replace_symlink(out / "current", f"snapshots/{two.second}")
        wait_until(lambda: two.second in client.get(f"{server.url}/readyz").text)


@pytest.mark.deep
def test_server_with_damage_answers_correctly_or_500(two: Two, tmp_path: Path) -> None:
    """Damage that opening does not find affects only requests that read it."""
    out = Path(shutil.copytree(two.out, tmp_path / "build", symlinks=True))
    folder, started, faults = retention.snapshot_folder(out, two.first), 0, 0
    served = {path.name for path in folder.iterdir() if path.is_file()}
    with start_server(out, tmp_path) as server, httpx.Client() as client:
        expected = answers(server, client)
    for path, damaged in damages(folder, 160):
        good = (folder / path).read_bytes()
        files.write_synced(folder / path, damaged)
        if path in served and opens(folder):
            started += 1
            with start_server(out, tmp_path) as server, httpx.Client() as client:
                for url, answer in answers(server, client).items():
                    assert answer == expected[url] or answer[0] == 500, (path, url)
                    faults += answer[0] == 500
        files.write_synced(folder / path, good)
    print(
        f"seed {SEED}: {started} damages not seen at open; {faults} of {started * len(ASKED)} "
        f"answers were 500"
    )
    assert 0 < faults < started * len(ASKED)


@pytest.mark.deep
def test_truncated_mapped_file_ends_the_process(two: Two, tmp_path: Path) -> None:
    """By SIGBUS, and no wrong response is sent before."""
    out = Path(shutil.copytree(two.out, tmp_path / "build", symlinks=True))
    with start_server(out, tmp_path) as server, httpx.Client() as client:
        answers(server, client)
        os.truncate(retention.snapshot_folder(out, two.first) / "tools.json", 0)
        with pytest.raises(httpx.HTTPError):
            answers(server, client)
        assert server.process.wait(timeout=20) == -signal.SIGBUS


def test_damage_after_the_first_read_is_served(two: Two, tmp_path: Path) -> None:
    """A document that was read once is not verified again, as docs/guides/troubleshoot.md warns."""
    out = Path(shutil.copytree(two.out, tmp_path / "build", symlinks=True))
    folder = retention.snapshot_folder(out, two.first)
    store, tools = open_snapshot(folder), folder / "tools.json"
    before = bytes(store.read_document(0)[0])
    with tools.open("r+b") as file:
        file.write(flipped(tools.read_bytes(), 8 * tools.read_bytes().index(before) + 80))
    assert bytes(store.read_document(0)[0]) != before
    with pytest.raises(SnapshotError, match="is not what was written"):
        open_snapshot(folder).read_document(0)
    assert verify_fails(out, two.first)


# Key files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A key file with a key for a while, one that ended, and one that was revoked."""
    file = tmp_path / "keys.json"
    api_keys.create(file, "default", ("github",), timedelta(days=90))
    api_keys.create(file, "old", None, timedelta(seconds=-1))
    _, key = api_keys.create(file, "gone", None, None)
    api_keys.revoke(file, key.id)
    return file


def load_or_none(data: bytes, file: Path) -> tuple[api_keys.ApiKey, ...] | None:
    """Return the keys of a document; None if it is refused."""
    try:
        return api_keys.parse_keys(data, FileKeyStorage(file))
    except KeyFileError:
        return None


def test_damaged_key_file_is_refused_or_unchanged(file: Path) -> None:
    """Truncated at every length and with each bit flipped."""
    data, good = file.read_bytes(), api_keys.load_keys(file)
    cut = [load_or_none(data[:length], file) for length in range(len(data))]
    bits = [load_or_none(flipped(data, bit), file) for bit in range(8 * len(data))]
    assert {*cut[:-1]} == {None}
    assert cut[-1] == good  # without its last line break
    assert {*bits} == {None}
    print(f"{len(cut)} lengths, {len(bits)} bits")


def test_key_file_without_a_checksum_is_read(file: Path) -> None:
    """Of an older program; the next change adds one."""
    document = json.loads(file.read_bytes())
    good = api_keys.load_keys(file)
    del document["sha256"]
    file.write_text(json.dumps(document))
    assert api_keys.load_keys(file) == good
    api_keys.create(file, "new", None, None)
    assert api_keys.load_keys(file)[:3] == good
    assert set(json.loads(file.read_bytes())) == {"format", "sha256", "keys"}


def test_edited_key_file_is_reported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """White space may change; a later end needs removing the checksum."""
    document = json.loads(file.read_bytes())
    file.write_text(json.dumps(document))
    assert api_keys.load_keys(file)[0].project == "default"
    document["keys"][2]["revoked"] = None
    file.write_text(json.dumps(document))
    assert main(["keys", "list", "--keys", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"error: The key file {file} does not match its checksum: restore it from a backup. "
        "If someone edited it on purpose, remove its line `sha256`.\n"
    )
    file.write_text(json.dumps({key: value for key, value in document.items() if key != "sha256"}))
    assert main(["keys", "list", "--keys", str(file)]) == 0


def garbage(file: Path) -> None:
    file.write_bytes(random.Random(SEED).randbytes(500))  # noqa: S311 - nothing secret


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-60])


def longer(file: Path) -> None:
    """The end of a key that ends in 2027 or so is moved by a bit."""
    data = file.read_bytes()
    file.write_bytes(flipped(data, 8 * (data.index(b'"expires": "20') + 15)))


def folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pipe_instead(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


def circle(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def gone(file: Path) -> None:
    file.unlink()


DAMAGES = (garbage, emptied, cut_off, longer, folder_instead, pipe_instead, dangling, circle, gone)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Interrupt a test that waits longer, such as for a pipe."""

    def end(*_: object) -> None:
        raise AssertionError("waited in vain")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("damage", DAMAGES)
def test_server_does_not_start_with_a_damaged_key_file(
    damage: Callable[[Path], None],
    file: Path,
    small_build: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2 and a sentence with the path and a hint."""
    damage(file)
    with time_limit(30):
        assert main(["serve", "--build", str(small_build), "--port", "0", "--keys", str(file)]) == 2
    sentence = capsys.readouterr().err.strip().rpartition("\n")[2]
    assert sentence.lower().startswith("error: ")
    assert str(file) in sentence


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_key_file_keeps_the_current_keys(
    damage: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In a running server, with one log line; a repaired file is read."""
    monkeypatch.setattr(api_keys, "_CHECK_INTERVAL", 0.0)  # check the file at each request
    file = tmp_path / "keys.json"
    good, _ = api_keys.create(file, "default", None, timedelta(days=90))
    revoked, key = api_keys.create(file, "default", None, None)
    api_keys.revoke(file, key.id)
    ring, unknown = api_keys.KeyRing(file), "tc_" + "0" * 36
    before, ends = file.read_bytes(), api_keys.load_keys(file)[0].expires
    damage(file)
    with time_limit(30), caplog.at_level(logging.INFO):
        for _ in range(3):
            result = ring.find(good.encode())
            assert result is not None
            assert result.expires == ends
            assert ring.find(revoked.encode()) is ring.find(unknown.encode()) is None
    assert [message.startswith("keeping the current keys: ") for message in caplog.messages] == [
        True
    ]
    assert not any(secret in caplog.text for secret in (good, revoked))
    files.remove(file)
    file.write_bytes(before)
    new, _ = api_keys.create(file, "default", None, None)
    assert ring.find(new.encode())
    assert ring.find(good.encode())
    assert ring.find(revoked.encode()) is None


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become the other user whom the file keeps out"
)
def test_unreadable_folder_keeps_the_current_keys(file: Path) -> None:
    """And a server does not start."""
    program = """\
import os, sys, logging
from pathlib import Path
from toolcatalog.keys import api_keys
from toolcatalog.cli import rich_output, serve
from toolcatalog.cli.main import main

api_keys._CHECK_INTERVAL = 0.0
file = Path(sys.argv[1])
ring = api_keys.KeyRing(file)
before = {*ring._keys}
logging.basicConfig(format="%(message)s")
os.setuid(65534)
ring._reload_if_changed()
assert {*ring._keys} == before
try:
    api_keys.KeyRing(file)
except Exception as error:
    print(error)
"""
    file.parent.chmod(0o700)
    command = [sys.executable, "-c", program, str(file)]
    result = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment_without_coverage()
    )
    sentence = (
        f"The key file {file} cannot be read (Permission denied): fix its permissions, or "
        f"name another with --keys.\n"
    )
    assert (result.stdout, result.stderr) == (sentence, f"keeping the current keys: {sentence}")


@pytest.mark.deep
def test_damaged_key_file_lets_nobody_in(small_build: Path, tmp_path: Path) -> None:
    """Over HTTP: the valid key gets 200, revoked and unknown ones 401."""
    with start_server(small_build, tmp_path) as server, httpx.Client() as client:
        api_keys.create(server.keys_file, "ending", None, timedelta(days=90))
        revoked, key = api_keys.create(server.keys_file, "default", None, None)
        api_keys.revoke(server.keys_file, key.id)
        before = server.keys_file.read_bytes()

        def status(secret: str) -> int:
            return client.get(
                f"{server.url}/api/v3/tools", headers={"x-api-key": secret}
            ).status_code

        def has_told(times: int) -> bool:
            assert status(server.key) == 200
            assert status(revoked) == status("tc_" + "0" * 36) == 401
            return server.log.read_text().count("keeping the current keys") == times

        wait_until(lambda: status(revoked) == 401 and "keys reloaded" in server.log.read_text())
        for number, damage in enumerate(DAMAGES, 1):
            damage(server.keys_file)
            wait_until(partial(has_told, number))
            files.remove(server.keys_file)
            server.keys_file.write_bytes(before)
            again = server.log.read_text().count("keys reloaded")
            wait_until(
                lambda: has_told(number) and server.log.read_text().count("keys reloaded") > again  # noqa: B023
            )
