"""Signed snapshots: what `publish --sign` writes, and what `serve --verify-key` refuses."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from support import s3 as support_s3
from support.command import run_successfully, run_toolcatalog
from support.server import Server, start_server, wait_until
from toolcatalog import encoding
from toolcatalog.errors import SnapshotError, UsageError
from toolcatalog.progress import no_progress
from toolcatalog.publish import layout, signatures, trusted_pointers, upload
from toolcatalog.publish.follower import Follower
from toolcatalog.publish.object_store import ObjectConflict, ObjectStorage
from toolcatalog.publish.signatures import (
    SignedStatement,
    SigningKey,
    SnapshotStatement,
    VerifyKeys,
)
from toolcatalog.snapshot import verify

_FOLLOWS_ONCE = """
import sys
from pathlib import Path
from toolcatalog.publish.follower import Follower
from toolcatalog.publish.signatures import VerifyKeys

follower = Follower(sys.argv[1], Path(sys.argv[2]), keys=VerifyKeys.load(Path(sys.argv[3])))
print(follower.has_snapshot())
follower.poll()
print(follower.last_error)
"""
DIGEST = "0123456789abcdef" * 4


def write_private(file: Path, key: Any, password: bytes | None = None) -> Path:
    """Write a private key as OpenSSL does, for its owner alone."""
    kind = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    form = serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, kind))
    file.chmod(0o600)
    return file


def write_public(file: Path, *keys: Any) -> Path:
    """Write public keys, one after another."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = serialization.Encoding.PEM
    file.write_bytes(b"".join(key.public_key().public_bytes(pem, form) for key in keys))
    return file


class Pair:
    """Both halves of a key, in files."""

    def __init__(self, folder: Path, name: str) -> None:
        self.key = ed25519.Ed25519PrivateKey.generate()
        self.private = write_private(folder / f"{name}.pem", self.key)
        self.public = write_public(folder / f"{name}.pub.pem", self.key)

    def sign(self, digest: str, sequence: int) -> bytes:
        """A pointer that is signed."""
        statement = SnapshotStatement(digest, sequence, "2026-01-31T12:00:00Z")
        return layout.render_pointer(
            digest, signatures.dump_signed_statement(SigningKey(self.private).sign(statement))
        )


@pytest.fixture
def ours(tmp_path: Path) -> Pair:
    """The publisher's key."""
    return Pair(tmp_path, "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Pair:
    """The key of somebody who can write to the store."""
    return Pair(tmp_path, "theirs")


class Store:
    """A store in a folder."""

    def __init__(self, folder: Path) -> None:
        self.url, self.file = f"file://{folder}", folder / "current.json"

    def publish(self, build: Path, key: Path | None = None) -> str:
        """Publish a build, signed or not; its digest."""
        signer = SigningKey(key) if key else None
        return upload.upload_snapshot(ObjectStorage(self.url), build, 4, no_progress, signer).digest

    @property
    def sequence(self) -> int:
        """The sequence number of the pointer."""
        number: int = json.loads(self.file.read_bytes())["signed"]["sequence"]
        return number


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def follow(store: Store, ours: Pair, tmp_path: Path) -> Callable[..., Follower]:
    """Follows the store once, as a server does that was started just now: always into one cache."""

    def once(key: Path = ours.public, **options: Any) -> Follower:
        keys = VerifyKeys.load(key)
        follower = Follower(store.url, tmp_path / "cache", interval=0.01, keys=keys, **options)
        follower.poll()
        return follower

    return once


def served_digest(follower: Follower) -> str:
    """Return the digest of the snapshot that a server would open."""
    keys = follower._keys
    assert keys
    return trusted_pointers.open_verified_build(follower.cache, keys).digest


def test_signed_snapshots_are_followed(
    store: Store,
    ours: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
) -> None:
    """Each with a higher number, also a rollback; publishing again without a key changes
    nothing.
    """
    sequences = []
    for build in (small_build, other_build, small_build):
        digest = store.publish(build, ours.private)
        follower = follow()
        assert follower.last_error == ""
        assert served_digest(follower) == digest
        assert follower.has_snapshot()
        sequences.append(store.sequence)
    assert sequences == sorted({*sequences})
    assert store.publish(small_build, ours.private) == digest
    assert store.sequence > sequences[-1]
    before = store.file.read_bytes()
    assert store.publish(small_build) == digest
    assert store.file.read_bytes() == before


def test_restored_store_is_published_again(
    store: Store,
    ours: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
) -> None:
    """For a pointer with an old signature of the same snapshot."""
    digest = store.publish(small_build, ours.private)
    old = store.file.read_bytes()
    store.publish(other_build, ours.private)
    assert follow().last_error == ""
    store.file.write_bytes(old)
    assert "was accepted before: the store was restored" in follow().last_error
    time.sleep(2.1)  # a number is a time in seconds
    assert store.publish(small_build, ours.private) == digest
    follower = follow()
    assert (follower.last_error, served_digest(follower)) == ("", digest)


def test_number_in_the_far_future_is_ignored(
    store: Store,
    ours: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
) -> None:
    """From a wrong clock or a stolen key: nobody accepts it, and the next publisher does not
    continue from it.
    """
    first = store.publish(small_build, ours.private)
    assert follow().last_error == ""
    other = store.publish(other_build)
    now = int(datetime.now(UTC).timestamp())
    for sequence in ((1 << 53) - 1, now + 400 * 24 * 3600):
        store.file.write_bytes(ours.sign(other, sequence))
        follower = follow()
        assert "which is a time more than a year ahead" in follower.last_error
        assert served_digest(follower) == first
    time.sleep(2.1)
    assert store.publish(other_build, ours.private) == other
    assert store.sequence < now + 1000
    follower = follow()
    assert (follower.last_error, served_digest(follower)) == ("", other)
    store.file.write_bytes(ours.sign(first, now + 300 * 24 * 3600))
    assert follow().last_error == ""


def test_unsigned_server_does_not_fill_a_signed_cache(
    store: Store,
    ours: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
) -> None:
    """In any order of starts."""
    first = store.publish(small_build, ours.private)
    follower = follow()
    store.file.write_bytes(layout.render_pointer(store.publish(other_build)))
    naive = Follower(store.url, follower.cache)
    naive.poll()
    assert "this server has no key: start it with --verify-key or another" in naive.last_error
    current = follower.cache / "current"
    assert current.readlink().name == first
    assert follow().has_snapshot()
    (follower.cache / "accepted.json").unlink()
    naive.poll()
    assert naive.last_error == ""
    assert current.readlink().name != first


def changed(pointer: bytes, **changes: object) -> bytes:
    """A pointer whose signed part says something else."""
    output = json.loads(pointer)
    return encoding.dump_json({**output, "signed": {**output["signed"], **changes}})


# what somebody does who can write to the store: how, and what a server says
FORGED: dict[str, tuple[Callable[[bytes, bytes, str, Pair], bytes], str]] = {
    "not signed": (
        lambda _old, _new, digest, _pair: layout.render_pointer(digest),
        "is not signed",
    ),
    "signed by another key": (
        lambda _old, _new, digest, pair: pair.sign(digest, 1 << 40),
        "is not by the key of --verify-key",
    ),
    "the signature of another snapshot": (
        lambda _old, new, digest, _pair: encoding.dump_json({**json.loads(new), "digest": digest}),
        "is not by the key of --verify-key",
    ),
    "another number": (
        lambda _old, new, _digest, _pair: changed(new, sequence=1 << 40),
        "is not by the key of --verify-key",
    ),
    "another time": (
        lambda _old, new, _digest, _pair: changed(new, created="2030-01-01T00:00:00Z"),
        "is not by the key of --verify-key",
    ),
    "another format": (
        lambda _old, new, _digest, _pair: changed(new, format=2),
        "is not by the key of --verify-key",
    ),
    "a number that is none": (
        lambda _old, new, _digest, _pair: changed(new, sequence=True),
        "is not by the key of --verify-key",
    ),
    "no signature": (
        lambda _old, new, _digest, _pair: changed(new, signature=None),
        "is not by the key of --verify-key",
    ),
    "a short signature": (
        lambda _old, new, _digest, _pair: changed(new, signature="AAAA"),
        "is not by the key of --verify-key",
    ),
    "a list": (
        lambda _old, new, _digest, _pair: encoding.dump_json({**json.loads(new), "signed": [1]}),
        "is not by the key of --verify-key",
    ),
    "the pointer before": (
        lambda old, _new, _digest, _pair: old,
        "was accepted before: the store was restored",
    ),
}


@pytest.mark.parametrize("how", FORGED)
def test_unsigned_changes_are_refused(
    how: str,
    store: Store,
    ours: Pair,
    theirs: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
) -> None:
    """Other pointers, other signatures, those of other snapshots and old ones: one sentence with a
    hint, no download.
    """
    first = store.publish(small_build, ours.private)
    old = store.file.read_bytes()
    follow()
    second = store.publish(other_build, ours.private)
    new = store.file.read_bytes()
    assert served_digest(follow()) == second
    forge, output = FORGED[how]
    store.file.write_bytes(forge(old, new, first, theirs))
    for follower in (follow(), follow()):  # also after a restart
        for _ in range(3):
            follower.poll()
        assert output in follower.last_error
        assert (follower.snapshots_rejected, follower.snapshots_fetched) == (1, 0)
        assert served_digest(follower) == second
    store.file.write_bytes(new)
    follower.poll()
    assert follower.last_error == ""


def test_pipe_in_the_cache_does_not_block(
    store: Store, ours: Pair, follow: Callable[..., Follower], small_build: Path, tmp_path: Path
) -> None:
    """The cached pointer is read from regular files only."""
    digest = store.publish(small_build, ours.private)
    cache = follow().cache
    for name in ("accepted.json", f"signatures/{digest}.json"):
        (cache / name).unlink()
        os.mkfifo(cache / name)
    command = [sys.executable, "-c", _FOLLOWS_ONCE, store.url, str(cache), str(ours.public)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("False\n")
    assert "accepted.json, which says what was accepted last, is damaged" in result.stdout


def test_allow_rollback(
    store: Store,
    ours: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
) -> None:
    """A snapshot that was signed earlier becomes the last one; another one with the last number is
    never accepted.
    """
    first = store.publish(small_build, ours.private)
    old = store.file.read_bytes()
    follow()
    second = store.publish(other_build, ours.private)
    follow()
    store.file.write_bytes(old)
    assert "Publish again with --sign, or start once with --allow-rollback" in follow().last_error
    follower = follow(allow_rollback=True)
    assert (follower.last_error, served_digest(follower)) == ("", first)
    follower = follow()
    assert (follower.last_error, served_digest(follower)) == ("", first)
    store.file.write_bytes(ours.sign(second, json.loads(old)["signed"]["sequence"]))
    for options in ({}, {"allow_rollback": True}):
        assert "two publishers ran at the same time" in follow(**options).last_error
    assert served_digest(follower) == first


def test_cache_is_served_only_with_a_valid_signature(
    store: Store,
    ours: Pair,
    theirs: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
) -> None:
    """Not with another key or a changed signature, even if the store is away; a new signature is
    enough.
    """
    store.publish(small_build)
    unsigned = Follower(store.url, follow().cache)
    unsigned.poll()
    assert unsigned.has_snapshot()
    follower = follow()
    assert "is not signed" in follower.last_error
    assert not follower.has_snapshot()
    with pytest.raises(SnapshotError, match="was not accepted by the key of --verify-key"):
        served_digest(follower)
    digest = store.publish(small_build, ours.private)
    follower = follow()
    assert (follower.snapshots_fetched, served_digest(follower), follower.has_snapshot()) == (
        0,
        digest,
        True,
    )
    store.file.rename(store.file.with_suffix(".away"))
    assert follow().has_snapshot()
    other = follow(theirs.public)
    assert not other.has_snapshot()
    with pytest.raises(SnapshotError, match="was not accepted by the key of --verify-key"):
        served_digest(other)
    signature_file = follower.cache / "signatures" / f"{digest}.json"
    signature_file.write_bytes(changed(signature_file.read_bytes(), sequence=1))
    assert not follow().has_snapshot()


def test_signatures_are_pruned_with_their_snapshots(
    store: Store, ours: Pair, follow: Callable[..., Follower], small_build: Path, other_build: Path
) -> None:
    first = store.publish(small_build, ours.private)
    follower = follow()
    second = store.publish(other_build, ours.private)
    shutil.rmtree(follower.cache / "snapshots" / first)
    follower = follow()
    assert [path.stem for path in (follower.cache / "signatures").iterdir()] == [second]


def test_damaged_trusted_pointer_stops_updates(
    store: Store, ours: Pair, follow: Callable[..., Follower], small_build: Path, other_build: Path
) -> None:
    """The error names the file."""
    first = store.publish(small_build, ours.private)
    file = follow().cache / "accepted.json"
    for data in (b"", b"[]", b'{"digest":"x","sequence":1}', b'{"sequence":1}'):
        file.write_bytes(data)
        store.publish(other_build, ours.private)
        follower = follow()
        assert f"{file}, which says what was accepted last, is damaged" in follower.last_error
        assert served_digest(follower) == first


def test_keys_can_be_replaced(
    store: Store,
    ours: Pair,
    theirs: Pair,
    follow: Callable[..., Follower],
    small_build: Path,
    other_build: Path,
    tmp_path: Path,
) -> None:
    """Servers that have both keys accept either, and the number still increases."""
    both = write_public(tmp_path / "both.pem", ours.key, theirs.key)
    store.publish(small_build, ours.private)
    assert follow(both).last_error == ""
    before = store.sequence
    wait_until(lambda: int(datetime.now(UTC).timestamp()) > before)
    digest = store.publish(other_build, theirs.private)
    assert store.sequence > before
    follower = follow(both)
    assert (follower.last_error, served_digest(follower)) == ("", digest)


def test_number_follows_the_last_one() -> None:
    """The time in seconds, or one more than the last number if the clock is behind."""
    now = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
    first = signatures.next_statement(DIGEST, None, now)
    assert first == SnapshotStatement(DIGEST, 1769860800, "2026-01-31T12:00:00Z")
    assert signatures.next_statement(DIGEST, first, now).sequence == first.sequence + 1
    ahead = SnapshotStatement(DIGEST, first.sequence + 10_000, "2026-01-31T12:00:00Z")
    assert signatures.next_statement(DIGEST, ahead, now).sequence == ahead.sequence + 1
    behind = SnapshotStatement(DIGEST, 5, "1970-01-01T00:00:05Z")
    assert signatures.next_statement(DIGEST, behind, now).sequence == first.sequence


def test_concurrent_publishers_do_not_both_succeed(
    s3: str, ours: Pair, small_build: Path, other_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no two snapshots have the same number."""
    for name, value in {**support_s3.CREDENTIALS, "AWS_ENDPOINT_URL": s3}.items():
        monkeypatch.setenv(name, value)
    objects, key = ObjectStorage(f"s3://{support_s3.create_bucket(s3)}/p"), SigningKey(ours.private)
    upload.upload_snapshot(objects, small_build, 4, no_progress, key)
    before = upload._read_pointer(objects)
    assert before
    upload.upload_snapshot(objects, other_build, 4, no_progress, key)
    now = upload._read_pointer(objects)
    with pytest.raises(ObjectConflict):
        upload._move_pointer(objects, DIGEST, before, key)
    assert upload._read_pointer(objects) == now


def test_signed_bytes_are_documented(ours: Pair) -> None:
    """A domain line and JSON with sorted keys."""
    statement = SnapshotStatement(DIGEST, 7, "2026-01-31T12:00:00Z")
    message = (
        b"toolcatalog: the snapshot in force, format 1\n"
        b'{"created":"2026-01-31T12:00:00Z","digest":"%b","format":1,"sequence":7}'
        % DIGEST.encode()
    )
    assert statement.message() == message
    signed = SigningKey(ours.private).sign(statement)
    ours.key.public_key().verify(signed.signature, message)
    assert (
        signatures.parse_signed_statement(
            DIGEST, json.loads(encoding.dump_json(signatures.dump_signed_statement(signed)))
        )
        == signed
    )
    keys = VerifyKeys.load(ours.public)
    assert keys.is_valid(signed)
    # no signature of anything else, not of the same JSON without the domain
    bare = SignedStatement(statement, ours.key.sign(message.partition(b"\n")[2]))
    assert not keys.is_valid(bare)
    assert pickle.loads(pickle.dumps(keys)) == keys  # noqa: S301 - as it goes to a worker


def test_unusable_key_files_are_refused(ours: Pair, tmp_path: Path) -> None:
    """With the reason and a hint."""
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    garbage = tmp_path / "garbage.pem"
    garbage.write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    garbage.chmod(0o600)
    empty = tmp_path / "empty.pem"
    empty.touch(0o600)
    loose = write_private(tmp_path / "loose.pem", ours.key)
    loose.chmod(0o640)
    ours.public.chmod(0o600)
    private = [
        (ours.public, "contains a public key, and --sign needs a private one"),
        (write_private(tmp_path / "rsa.pem", other), "contains no Ed25519 private key"),
        (write_private(tmp_path / "locked.pem", ours.key, b"secret"), "is encrypted"),
        (garbage, "contains no Ed25519 private key"),
        (empty, "contains no Ed25519 private key"),
        (loose, f"run `chmod 600 {loose}`"),
        (tmp_path / "none.pem", "cannot be read (No such file or directory)"),
        (tmp_path, "cannot be read (Is a directory)"),
    ]
    for file, output in private:
        with pytest.raises(UsageError) as caught:
            SigningKey(file)
        assert output in str(caught.value)
        assert "\n" not in str(caught.value)
    public = [
        (ours.private, "contains a private key, which no server needs"),
        (write_public(tmp_path / "rsa.pub", other), "contains no Ed25519 public key"),
        (write_public(tmp_path / "two.pub", ours.key, other), "contains no Ed25519 public key"),
        (empty, "contains no Ed25519 public key"),
        (tmp_path / "none.pem", "cannot be read (No such file or directory)"),
    ]
    for file, output in public:
        with pytest.raises(UsageError) as caught:
            VerifyKeys.load(file)
        assert output in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("load", ["SigningKey", "VerifyKeys.load"])
def test_missing_extra_is_reported(load: str, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pathlib import Path\n"
        "from toolcatalog.errors import UsageError\n"
        "from toolcatalog.publish.signatures import SigningKey, VerifyKeys\n"
        "try:\n"
        f"    {load}(Path(sys.argv[1]))\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "key.pem")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "pip install 'toolcatalog[sign]'" in result.stdout


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")
def test_documented_commands_create_keys(tmp_path: Path, small_build: Path) -> None:
    """The OpenSSL commands of `publish --help`."""
    help = run_toolcatalog("publish", "--help").stdout
    commands = [line.strip() for line in help.splitlines() if line.strip().startswith("openssl ")]
    assert len(commands) == 2
    for command in commands:
        subprocess.run(["sh", "-ec", command], cwd=tmp_path, check=True, capture_output=True)
    store = Store(tmp_path / "store")
    digest = store.publish(small_build, tmp_path / "sign.pem")
    keys = VerifyKeys.load(tmp_path / "verify.pem")
    follower = Follower(store.url, tmp_path / "cache", keys=keys)
    follower.poll()
    assert served_digest(follower) == digest


def test_unsigned_publish_after_signed_is_an_error(
    store: Store, ours: Pair, small_build: Path, other_build: Path
) -> None:
    """It would leave servers behind."""
    arguments = ("publish", store.url, "--build")
    result = run_toolcatalog(*arguments, small_build, "--sign", ours.private)
    assert (result.returncode, "--verify-key" in result.stderr) == (0, False)
    result = run_toolcatalog(*arguments, small_build)
    assert "published already" in result.stderr
    result = run_toolcatalog(*arguments, other_build)
    assert result.returncode == 0
    assert (
        "servers with --verify-key refuse it. Publish again with --sign KEYFILE." in result.stderr
    )
    result = run_toolcatalog(*arguments, other_build, "--sign", ours.private)
    assert "Nothing to send but the pointer" in result.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_server_serves_only_signed_snapshots(
    workers: str,
    store: Store,
    ours: Pair,
    small_build: Path,
    other_build: Path,
    tmp_path: Path,
) -> None:
    """`serve --verify-key`, also if somebody changes `current` of the cache."""
    first = store.publish(small_build)
    cache = tmp_path / "cache"
    unsigned = Follower(store.url, cache)
    unsigned.poll()
    options = ("--cache", cache, "--verify-key", ours.public, "--workers", workers)
    with start_server(store.url, tmp_path, *options) as server:
        wait_until(lambda: "is not signed" in server.log.read_text())
        assert {ready(server) for _ in range(8)} == {""}
        run_successfully("publish", store.url, "--build", small_build, "--sign", ours.private)
        wait_until(lambda: {ready(server) for _ in range(8)} == {first})
        second = store.publish(other_build)
        wait_until(lambda: f"Snapshot {second[:12]} is not signed" in server.log.read_text())
        (cache / "snapshots" / second).mkdir()
        shutil.copytree(
            os.path.realpath(other_build / "current"),
            cache / "snapshots" / second,
            dirs_exist_ok=True,
        )
        assert verify.verify_snapshot(cache / "snapshots" / second) == []
        run_successfully("snapshots", "use", second[:12], "--build", cache)
        wait_until(lambda: f"{second[:12]} in {cache} was not accepted" in server.log.read_text())
        assert {ready(server) for _ in range(8)} == {first}
        store.publish(other_build, ours.private)
        wait_until(lambda: {ready(server) for _ in range(8)} == {second})
        assert "Traceback" not in server.log.read_text()


def ready(server: Server) -> str:
    """The digest of the snapshot that the server answers from; empty where it is not ready."""
    digest: str = httpx.get(f"{server.url}/readyz").json().get("snapshot", "")
    return digest


def test_options_need_each_other(ours: Pair, store: Store, tmp_path: Path) -> None:
    """A key needs a store, and rollback needs a key; the server does not start with a bad key."""
    for arguments, output in (
        (["--verify-key", ours.public], "--verify-key goes with --from URL"),
        (["--from", store.url, "--allow-rollback"], "--allow-rollback goes with --verify-key FILE"),
        (["--from", store.url, "--verify-key", tmp_path / "none"], "cannot be read"),
        (["--from", store.url, "--verify-key", ours.private], "contains a private key"),
    ):
        result = run_toolcatalog("serve", *arguments)
        assert result.returncode == 2
        assert output in result.stderr
        assert "Traceback" not in result.stderr
