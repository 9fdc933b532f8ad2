"""API keys and `toolcatalog keys`: the key file, its permissions, and damage."""

import functools
import hashlib
import json
import logging
import math
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from support.command import environment_without_coverage, run_successfully, run_toolcatalog
from support.server import create_key, wait_until
from toolcatalog.cli.main import main
from toolcatalog.errors import KeyFileError
from toolcatalog.keys import api_keys
from toolcatalog.system import files

KEY = r"tc_[0-9A-Za-z]{36}"
DAY = timedelta(days=1)


def state(file: Path, id: str) -> str:
    """The state of a key by its id."""
    return next(key.state(datetime.now(UTC)) for key in api_keys.load_keys(file) if key.id == id)


def run_refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the only line of a command that exits with 2."""
    assert main([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return err.strip()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o177])
def test_key_file_is_private(tmp_path: Path, umask: int) -> None:
    """Mode 0600 with any umask, also after rewriting, and without copies."""
    file = tmp_path / "keys.json"
    previous = os.umask(umask)
    try:
        _, key = api_keys.create(file, "default", None, None)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
        _, successor = api_keys.rotate(file, key.id, DAY)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        api_keys.revoke(file, successor.id)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(previous)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".keys.json.lock", "keys.json"]
    assert (tmp_path / ".keys.json.lock").read_bytes() == b""


def test_default_folder_is_created(tmp_path: Path) -> None:
    """In the user's configuration folder, private."""
    secret = run_successfully(
        "keys",
        "create",
        "--project",
        "default",
        env={"XDG_CONFIG_HOME": str(tmp_path / "config"), "TOOLCATALOG_KEYS": ""},
    ).strip()
    folder = tmp_path / "config" / "toolcatalog"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [key.hint for key in api_keys.load_keys(folder / "keys.json")] == [secret[-4:]]


def test_key_file_path_from_flag_or_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--keys` has priority over `TOOLCATALOG_KEYS`."""
    flag, variable = tmp_path / "flag.json", tmp_path / "variable.json"
    assert run_successfully(
        "keys", "create", "--project", "a", env={"TOOLCATALOG_KEYS": str(variable)}
    )
    assert run_successfully(
        "keys", "create", "--project", "b", "--keys", flag, env={"TOOLCATALOG_KEYS": str(variable)}
    )
    assert [[key.project for key in api_keys.load_keys(file)] for file in (flag, variable)] == [
        ["b"],
        ["a"],
    ]
    assert main(["keys", "list", "--keys", str(flag)]) == 0
    assert " b " in capsys.readouterr().out


def test_list_as_json_has_all_fields(tmp_path: Path) -> None:
    """Except the secret."""
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "research", ("github",), None)
    (values,) = json.loads(run_successfully("keys", "list", "--keys", file, "--format", "json"))
    assert values == {
        "id": key.id,
        "project": "research",
        "toolkits": ["github"],
        "hint": key.hint,
        "created": key.created,
        "expires": None,
        "state": "active",
    }


def test_unknown_toolkit_is_a_warning(tmp_path: Path, shipped_build: Path) -> None:
    """A later build may have it; without a build there is no check."""
    command = ("keys", "create", "--project", "p", "--toolkit", "github,slak", "--keys")
    result = run_toolcatalog(*command, tmp_path / "keys.json", "--build", shipped_build)
    assert (result.returncode, len(result.stdout)) == (0, 40)
    assert result.stderr.startswith(
        "warning: There is no toolkit slak (did you mean slack?). The key is created anyway."
    )
    assert "warning" not in run_toolcatalog(*command, tmp_path / "keys.json", cwd=tmp_path).stderr


def test_only_the_hash_is_stored(tmp_path: Path) -> None:
    """SHA-256 and the last four characters; the secret is printed once."""
    file = tmp_path / "keys.json"
    result = run_toolcatalog("keys", "create", "--project", "default", "--keys", file)
    secret = result.stdout.removesuffix("\n")
    assert re.fullmatch(KEY, secret)
    assert secret not in result.stderr
    assert (
        json.loads(file.read_bytes())["keys"][0]["sha256"]
        == hashlib.sha256(secret.encode()).hexdigest()
    )
    for path in tmp_path.iterdir():
        assert secret[3:-4] not in path.read_text()
        assert secret[-6:] not in path.read_text()


def test_key_format() -> None:
    """`tc_`, 30 random base-62 characters and a checksum of six."""
    result = {api_keys.generate_secret() for _ in range(500)}
    assert len(result) == 500
    assert all(re.fullmatch(KEY, key) for key in result)
    assert {character for key in result for character in key[3:33]} == {
        *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    }


def test_key_ends_with_a_checksum() -> None:
    """The CRC-32 of the rest in base 62."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for _ in range(20):
        key = api_keys.generate_secret()
        checksum = functools.reduce(
            lambda number, digit: number * 62 + digits.index(digit), key[-6:], 0
        )
        assert checksum == zlib.crc32(key[:-6].encode())


def test_concurrent_creates_lose_no_key(tmp_path: Path) -> None:
    file = tmp_path / "new" / "keys.json"
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "keys",
        "create",
        "--project",
        "default",
        "--keys",
        str(file),
    ]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    secrets = [process.communicate(timeout=60)[0].strip() for process in started]
    assert [process.returncode for process in started] == [0] * 6
    assert {key.hint for key in api_keys.load_keys(file)} == {secret[-4:] for secret in secrets}
    assert len(api_keys.load_keys(file)) == 6


def test_concurrent_threads_lose_no_key(tmp_path: Path) -> None:
    """Forty changes by eight threads."""
    file = tmp_path / "keys.json"
    with ThreadPoolExecutor(8) as pool:
        result = [
            *pool.map(
                lambda number: api_keys.create(file, f"p{number}", None, None)[1].id, range(40)
            )
        ]
    assert {key.id for key in api_keys.load_keys(file)} == {*result}


def test_locked_key_file_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    with ThreadPoolExecutor(1) as pool:
        with files.lock(tmp_path / ".keys.json.lock") as acquired:
            assert acquired
            waiting = pool.submit(api_keys.create, file, "default", None, None)
            time.sleep(0.3)
            assert not waiting.done()
            assert not file.exists()
        secret, _ = waiting.result(timeout=5)
    assert [key.hint for key in api_keys.load_keys(file)] == [secret[-4:]]


GOOD = {
    "id": "key_1",
    "project": "p",
    "toolkits": None,
    "sha256": "0" * 64,
    "hint": "abcd",
    "created": "2025-01-01T00:00:00+00:00",
    "expires": None,
    "revoked": None,
}
WRONG: tuple[dict[str, object], ...] = (
    {"id": 1},
    {"project": None},
    {"sha256": []},
    {"hint": {}},
    {"created": None},
    {"created": "yesterday"},
    {"created": 5},
    {"created": "2025-01-01T00:00:00"},
    {"expires": "2025-01-01"},
    {"expires": 5},
    {"expires": ""},
    {"revoked": True},
    {"revoked": ""},
    {"lifetime": "1d"},
    {"lifetime": 1.5},
    {"lifetime": True},
    {"toolkits": "slack"},
    {"toolkits": [1]},
    {"toolkits": {"a": 1}},
    {"toolkits": False},
    {"unknown": 1},
)


def test_base_record_of_damage_tests_is_valid(tmp_path: Path) -> None:
    """The next tests change one field of it."""
    (tmp_path / "keys.json").write_text(
        json.dumps(
            {"format": 1, "keys": [GOOD, {**GOOD, "toolkits": ["a"], "expires": GOOD["created"]}]}
        )
    )
    assert [key.toolkits for key in api_keys.load_keys(tmp_path / "keys.json")] == [None, ("a",)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"{}",
        b'{"format": 1}',
        b'{"keys": []}',
        b'{"format": 1, "keys": {}, ',
        b"\xff\xfe",
        b"\x00" * 100,
        b'{"format": 1, "keys": 5}',
        b'{"format": 1, "keys": null}',
        b'{"format": 1, "keys": [1]}',
        b'{"format": 1, "keys": [{}]}',
        b'{"format": 1, "keys": "x"}',
        *(json.dumps({"format": 1, "keys": [{**GOOD, **invalid}]}).encode() for invalid in WRONG),
    ],
)
def test_damaged_key_file_is_reported_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """By every command, with what to do."""
    file = tmp_path / "keys.json"
    file.write_bytes(content)
    expected = (
        f"error: The key file {file} is damaged: restore it from a backup, or move it away and"
        " create new keys."
    )
    for command in (
        ["create", "--project", "p"],
        ["list"],
        ["rotate", "key_1"],
        ["revoke", "key_1"],
    ):
        assert run_refused(capsys, "keys", *command, "--keys", file) == expected
    assert file.read_bytes() == content


def test_other_format_is_reported_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of a later program is not called damaged."""
    file = tmp_path / "keys.json"
    file.write_text('{"format": 2, "keys": []}')
    assert (
        run_refused(capsys, "keys", "list", "--keys", file)
        == f"error: The key file {file} has format 2, this program reads 1."
    )


def test_missing_key_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`list`, `rotate` and `revoke` name the command that creates one."""
    file = tmp_path / "keys.json"
    for command in (["list"], ["rotate", "key_1"], ["revoke", "key_1"]):
        assert (
            run_refused(capsys, "keys", *command, "--keys", file)
            == f"error: There is no key file {file}: run `toolcatalog keys create --project default"
            f" --keys {file}`."
        )


def test_unusable_key_file_path_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason of the system."""
    (tmp_path / "file").write_text("")
    for command in (
        ["create", "--project", "p"],
        ["list"],
        ["rotate", "key_1"],
        ["revoke", "key_1"],
    ):
        line = run_refused(capsys, "keys", *command, "--keys", tmp_path / "file" / "keys.json")
        assert re.search(
            r"cannot be (read|written) \((Not a directory|File exists)\): move what is in its way,"
            r" or name another with --keys\.",
            line,
        )
    assert main(["keys", "list", "--keys", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become the other user whom the file keeps out"
)
def test_key_file_of_another_user_is_reported() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "keys.json"
        create_key(file)
        # The other user may not be able to read Python's own modules: have all that a complaint
        # needs loaded first.
        program = (
            "import os, sys; from toolcatalog.cli import rich_output, keys; from"
            " toolcatalog.cli.main import main; os.setuid(65534); sys.exit(main(sys.argv[1:]))"
        )
        result = subprocess.run(
            [sys.executable, "-c", program, "keys", "list", "--keys", str(file)],
            capture_output=True,
            text=True,
            check=False,
            env=environment_without_coverage(),
        )
        assert (result.returncode, result.stdout) == (2, "")
        assert (
            result.stderr
            == f"error: The key file {file} cannot be read (Permission denied): fix its"
            " permissions, or name another with --keys.\n"
        )


def test_list_has_a_line_per_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Oldest first, without secrets."""
    file = tmp_path / "keys.json"
    first, item = api_keys.create(file, "default", None, None)
    second, two = api_keys.create(file, "partner", ("slack", "github"), timedelta(days=90))
    third, three = api_keys.create(file, "old", None, timedelta(seconds=-1))
    fourth, four = api_keys.create(file, "bad", None, None)
    api_keys.revoke(file, four.id)
    assert main(["keys", "list", "--keys", str(file)]) == 0
    out, err = capsys.readouterr()
    today = datetime.now(UTC).date().isoformat()
    assert [re.split(r"  +", line) for line in out.splitlines()] == [
        ["ID", "PROJECT", "TOOLKITS", "ENDS WITH", "CREATED", "EXPIRES", "STATE"],
        [item.id, "default", "all", first[-4:], today, "never", "active"],
        [two.id, "partner", "slack,github", second[-4:], today, str(two.expires)[:16], "active"],
        [three.id, "old", "all", third[-4:], today, str(three.expires)[:16], "expired"],
        [four.id, "bad", "all", fourth[-4:], today, "never", "revoked"],
    ]
    assert err == ""
    for secret in (first, second, third, fourth):
        assert secret[:-4] not in out


def test_rotate_and_revoke(tmp_path: Path) -> None:
    """A successor has project, toolkits and lifetime of the old key, which ends after the overlap;
    revoke ends one now.
    """
    file = tmp_path / "keys.json"
    old, key = api_keys.create(file, "partner", ("slack",), timedelta(days=90))
    new, successor = api_keys.rotate(file, key.id, timedelta(hours=1))
    assert old != new
    assert (successor.project, successor.toolkits) == ("partner", ("slack",))
    lifetime = datetime.fromisoformat(str(successor.expires)) - datetime.fromisoformat(
        successor.created
    )
    assert lifetime == timedelta(days=90)
    ends = datetime.fromisoformat(str(api_keys.load_keys(file)[0].expires)) - datetime.now(UTC)
    assert timedelta(minutes=59) < ends <= timedelta(hours=1)
    assert (state(file, key.id), state(file, successor.id)) == ("active", "active")
    api_keys.revoke(file, key.id)
    assert (state(file, key.id), state(file, successor.id)) == ("revoked", "active")


def test_overlap_never_extends_a_key(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "p", None, DAY)
    api_keys.rotate(file, key.id, timedelta(days=30))
    assert api_keys.load_keys(file)[0].expires == key.expires


@pytest.mark.parametrize("lifetime", [timedelta(days=90), None])
def test_successor_has_the_original_lifetime(tmp_path: Path, lifetime: timedelta | None) -> None:
    """Also if the old key is rotated again during the overlap."""
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "p", None, lifetime)
    api_keys.rotate(file, key.id, timedelta(hours=1))
    _, second = api_keys.rotate(file, key.id, timedelta(minutes=1))
    assert second.lifetime == key.lifetime
    assert (second.expires is None) == (lifetime is None)
    if lifetime is not None:
        assert (
            datetime.fromisoformat(str(second.expires)) - datetime.fromisoformat(second.created)
            == lifetime
        )


def test_old_record_without_lifetime_uses_its_dates(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(
        json.dumps(
            {
                "format": 1,
                "keys": [GOOD, {**GOOD, "id": "key_2", "expires": "2025-01-02T00:00:00+00:00"}],
            }
        )
    )
    assert [key.lifetime for key in api_keys.load_keys(tmp_path / "keys.json")] == [None, 86400]


def test_empty_toolkit_list_allows_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is listed and inherited."""
    (tmp_path / "keys.json").write_text(
        json.dumps({"format": 1, "keys": [{**GOOD, "toolkits": []}]})
    )
    assert main(["keys", "list", "--keys", str(tmp_path / "keys.json")]) == 0
    assert re.split(r"  +", capsys.readouterr().out.splitlines()[1])[2] == "none"
    assert main(["keys", "rotate", "key_1", "--keys", str(tmp_path / "keys.json")]) == 0
    assert "for project p, toolkits none, no expiry." in capsys.readouterr().err
    assert api_keys.load_keys(tmp_path / "keys.json")[1].toolkits == ()


@pytest.mark.parametrize("command", ["rotate", "revoke"])
def test_unusable_key_cannot_be_rotated_or_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Unknown, expired or revoked; the message says which."""
    file = tmp_path / "keys.json"
    _, expired = api_keys.create(file, "p", None, timedelta(seconds=-1))
    _, revoked = api_keys.create(file, "p", None, None)
    api_keys.revoke(file, revoked.id)
    previous = file.read_bytes()
    assert (
        run_refused(capsys, "keys", command, "key_nope", "--keys", file)
        == f"error: There is no key key_nope in {file}: see `toolcatalog keys list`."
    )
    for key, label in ((expired, "expired"), (revoked, "revoked")):
        assert run_refused(capsys, "keys", command, key.id, "--keys", file) == (
            f"error: Key {key.id} is {label}: create a new one with `toolcatalog keys create`."
        )
    assert file.read_bytes() == previous


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1s", timedelta(seconds=1)),
        ("15m", timedelta(minutes=15)),
        ("24h", DAY),
        ("90d", 90 * DAY),
        ("2w", 14 * DAY),
        ("99999w", 699993 * DAY),
        ("007d", 7 * DAY),
    ],
)
def test_duration_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, length: timedelta
) -> None:
    """A number and s, m, h, d or w."""
    file = tmp_path / "keys.json"
    assert main(["keys", "create", "--project", "p", "--expires", text, "--keys", str(file)]) == 0
    capsys.readouterr()
    (key,) = api_keys.load_keys(file)
    assert datetime.fromisoformat(str(key.expires)) - datetime.fromisoformat(key.created) == length


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "5",
        "d",
        "1.5d",
        "-1d",
        "1 d",
        "1D",
        "1y",
        "1d1h",
        "100000d",
        "\u0661d",
        "0d",
        "0s",
        "00w",
    ],
)
def test_invalid_duration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """Also zero, before a key is created."""
    file = tmp_path / "keys.json"
    assert main(["keys", "create", "--project", "p", "--expires", text, "--keys", str(file)]) == 2
    assert "--expires" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--toolkit", "Slack"),
        ("--toolkit", "a b"),
        ("--toolkit", ","),
        ("--toolkit", ""),
        ("--toolkit", "../x"),
        ("--project", " "),
    ],
)
def test_impossible_key_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    """Toolkits that cannot exist, an empty list, an empty project name."""
    file = tmp_path / "keys.json"
    assert main(["keys", "create", "--project", "p", flag, value, "--keys", str(file)]) == 2
    assert flag in capsys.readouterr().err
    assert not file.exists()


def test_toolkit_option_ignores_blanks_and_repetition(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    create_key(file, "--toolkit", " slack,github ,slack,")
    assert api_keys.load_keys(file)[0].toolkits == ("slack", "github")


def wait_for_key(ring: api_keys.KeyRing, secret: str, within: float = 1.0) -> bool:
    """Return whether the ring finds a key within a second."""
    deadline = time.monotonic() + within
    while (existing := ring.find(secret.encode())) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return existing is not None


def test_used_key_ends_when_revoked_or_expired(tmp_path: Path) -> None:
    """The server remembers a key that it has found only while the key is valid."""
    file = tmp_path / "keys.json"
    revoked, record = api_keys.create(file, "p", None, None)
    expiring, _ = api_keys.create(file, "p", None, timedelta(seconds=2))
    ring = api_keys.KeyRing(file)
    assert [ring.find(secret.encode()) is None for secret in (revoked, expiring)] == [False] * 2
    api_keys.revoke(file, record.id)
    time.sleep(0.55)
    assert ring.find(revoked.encode()) is None
    time.sleep(2)
    assert [ring.find(secret.encode()) for secret in (revoked, expiring)] == [None] * 2


def test_running_server_keeps_keys_of_a_damaged_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs why, without keys, and reads the repaired file."""
    file = tmp_path / "keys.json"
    first, _ = api_keys.create(file, "p", None, None)
    ring = api_keys.KeyRing(file)
    assert wait_for_key(ring, first)
    document = file.read_bytes()
    with caplog.at_level(logging.INFO):
        for damage in (b"{", b"", None):
            file.unlink() if damage is None else file.write_bytes(damage)
            time.sleep(0.55)
            assert ring.find(first.encode()) is not None
            assert caplog.records[-1].levelname == "ERROR"
            assert caplog.messages[-1].startswith("keeping the current keys: ")
    assert len(caplog.messages) == 3  # once for each change, not for each request
    file.write_bytes(document)
    second, _ = api_keys.create(file, "p", None, None)
    assert wait_for_key(ring, second)
    assert wait_for_key(ring, first)
    assert first not in caplog.text


def test_a_file_that_could_not_be_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A revocation takes effect as soon as the file can be read, even if it does not change again;
    the failure is logged once.
    """
    file = tmp_path / "keys.json"
    secret, key = api_keys.create(file, "p", None, None)
    ring = api_keys.KeyRing(file)
    api_keys.revoke(file, key.id)

    def fail(*_: object) -> NoReturn:
        raise KeyFileError("Too many open files.")

    with monkeypatch.context() as patch:
        patch.setattr(api_keys, "load_keys", fail)
        for _ in range(3):
            time.sleep(0.55)
            assert ring.find(secret.encode()) is not None
    assert caplog.messages == ["keeping the current keys: Too many open files."]
    time.sleep(0.55)
    assert ring.find(secret.encode()) is None


def test_folder_in_place_of_the_key_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The current keys stay; one log line says why."""
    file = tmp_path / "keys.json"
    first, _ = api_keys.create(file, "p", None, None)
    ring = api_keys.KeyRing(file)
    file.rename(tmp_path / "away")
    file.mkdir()
    time.sleep(0.55)
    assert ring.find(first.encode())
    assert ring.find(first.encode())
    assert caplog.messages == [
        (
            f"keeping the current keys: The key file {file} cannot be read (Is a directory): move "
            f"what is"
            " in its way, or name another with --keys."
        )
    ]
    file.rmdir()
    (tmp_path / "away").rename(file)
    second, _ = api_keys.create(file, "p", None, None)
    assert wait_for_key(ring, second)


def test_key_ring_without_a_file_is_empty(tmp_path: Path) -> None:
    """It reads the file as soon as it exists."""
    ring = api_keys.KeyRing(tmp_path / "keys.json")
    assert ring.find(b"") is None
    secret, _ = api_keys.create(tmp_path / "keys.json", "p", None, None)
    assert wait_for_key(ring, secret)
    for other in (b"", secret[:-1].encode(), secret.encode() + b"x", b"\xff", "é".encode()):
        assert ring.find(other) is None


def test_server_does_not_start_with_a_damaged_key_file(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{")
    with pytest.raises(KeyFileError, match="is damaged"):
        api_keys.KeyRing(tmp_path / "keys.json")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_rewritten_file_keeps_its_owner(tmp_path: Path) -> None:
    """Otherwise a server could not read it after root changed it."""
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "default", None, None)
    os.chown(file, 65534, 65534)
    api_keys.revoke(file, key.id)
    assert (file.stat().st_uid, file.stat().st_gid, file.stat().st_mode & 0o777) == (
        65534,
        65534,
        0o600,
    )


# In one process: what a server goes by


def test_only_active_keys_are_found(tmp_path: Path) -> None:
    """With their record; expired, revoked and unknown ones are not."""
    file = tmp_path / "keys.json"
    result = {
        name: api_keys.create(file, name, None, life)
        for name, life in {"good": DAY, "endless": None, "old": -DAY, "bad": DAY}.items()
    }
    api_keys.revoke(file, result["bad"][1].id)
    ring = api_keys.KeyRing(file)
    results = {name: ring.find(secret.encode()) for name, (secret, _) in result.items()}
    assert results == {
        "good": result["good"][1],
        "endless": result["endless"][1],
        "old": None,
        "bad": None,
    }
    assert ring.find(api_keys.generate_secret().encode()) is None
    assert api_keys.KeyRing(tmp_path / "nothing.json").find(result["good"][0].encode()) is None
    assert api_keys.KeyRing(None).find(result["good"][0].encode()) is None


def test_expiry_time(tmp_path: Path) -> None:
    """A key ends at its second, never without one, or when it is revoked."""
    _, key = api_keys.create(tmp_path / "keys.json", "default", None, DAY)
    end = datetime.fromisoformat(str(key.expires))
    assert api_keys.compute_expiry(key) == end.timestamp()
    assert [key.state(end - timedelta(seconds=1)), key.state(end), key.state(end + DAY)] == [
        "active",
        "expired",
        "expired",
    ]
    assert api_keys.compute_expiry(replace(key, expires=None)) == math.inf
    assert api_keys.compute_expiry(replace(key, expires=None, revoked=key.created)) == 0


def test_rotation_ends_only_its_key(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    ids = [api_keys.create(file, "default", None, None)[1].id for _ in range(3)]
    _, successor = api_keys.rotate(file, ids[1], DAY)
    assert [(key.id, key.expires is None) for key in api_keys.load_keys(file)] == [
        (ids[0], True),
        (ids[1], False),
        (ids[2], True),
        (successor.id, True),
    ]


def test_key_file_is_readable(tmp_path: Path) -> None:
    """A line per value, so that diffs are useful; ids differ from slugs and secrets."""
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "default", None, None)
    assert re.fullmatch("key_[0-9A-Za-z]{8}", key.id)
    text = file.read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_changed_key_file_is_refused(tmp_path: Path) -> None:
    """With the place, by commands and by a starting server."""
    file = tmp_path / "keys.json"
    api_keys.create(file, "default", None, None)
    file.write_text(file.read_text().replace('"default"', '"defaults"'))
    for opens in (api_keys.load_keys, api_keys.KeyRing):
        with pytest.raises(
            KeyFileError, match=re.escape(f"The key file {file} does not match its checksum: ")
        ):
            opens(file)
    file.write_text("{}")
    with pytest.raises(KeyFileError, match=re.escape(f"The key file {file} is damaged: ")):
        api_keys.KeyRing(file)


def test_running_server_follows_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Within a second; it logs the number of keys."""
    file = tmp_path / "keys.json"
    api_keys.create(file, "default", None, None)
    ring = api_keys.KeyRing(file)
    secret, _ = api_keys.create(file, "default", None, None)
    with caplog.at_level(logging.INFO, "toolcatalog.keys"):
        wait_until(lambda: ring.find(secret.encode()))
    assert caplog.messages == ["keys reloaded: 2"]


def test_default_path_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty `XDG_CONFIG_HOME` counts as unset."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for text, folder in ((str(tmp_path / "own"), tmp_path / "own"), ("", tmp_path / ".config")):
        monkeypatch.setenv("XDG_CONFIG_HOME", text)
        assert api_keys.default_key_file() == folder / "toolcatalog" / "keys.json"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert api_keys.default_key_file() == tmp_path / ".config" / "toolcatalog" / "keys.json"


def test_list_shows_control_characters_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who can write to Redis or the file chooses ids and projects."""
    file = tmp_path / "keys.json"
    api_keys.create(file, "default", None, None)
    document = json.loads(file.read_bytes())
    document["keys"][0] |= {"project": "p\x1b[2J\n::error::x", "id": "key_\x1b[8m"}
    del document["sha256"]
    file.write_text(json.dumps(document))
    assert main(["keys", "list", "--keys", str(file)]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    assert "pU+001B[2J\\n::error::x" in line
