"""The room `keys` and its command: what stands in the key file, who may read it, and what happens
to it in other hands.
"""

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


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line on standard error of a command that exits with 2 and prints nothing else."""
    assert main([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return err.strip()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o177])
def test_no_one_else_can_read_the_file(tmp_path: Path, umask: int) -> None:
    """Whatever the umask, the file has mode 0600, also after it was written again, and no copy of
    it lies about.
    """
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


def test_the_folders_on_the_way_are_made(tmp_path: Path) -> None:
    """The default file is in the user's configuration folder, which nobody else can look into."""
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


def test_the_file_is_named_by_flag_or_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--keys` goes before `TOOLCATALOG_KEYS`."""
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


def test_the_list_as_json(tmp_path: Path) -> None:
    """Every field of a key but its secret."""
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


def test_an_unknown_toolkit_is_a_warning(tmp_path: Path, shipped_build: Path) -> None:
    """The key is created, since a later build may have the toolkit; without a build nothing is
    checked.
    """
    command = ("keys", "create", "--project", "p", "--toolkit", "github,slak", "--keys")
    done = run_toolcatalog(*command, tmp_path / "keys.json", "--build", shipped_build)
    assert (done.returncode, len(done.stdout)) == (0, 40)
    assert done.stderr.startswith(
        "warning: There is no toolkit slak (did you mean slack?). The key is created anyway."
    )
    assert "warning" not in run_toolcatalog(*command, tmp_path / "keys.json", cwd=tmp_path).stderr


def test_only_a_hash_is_kept(tmp_path: Path) -> None:
    """The file has the key's SHA-256 and its last four characters; the secret is told once and
    stands nowhere.
    """
    file = tmp_path / "keys.json"
    done = run_toolcatalog("keys", "create", "--project", "default", "--keys", file)
    secret = done.stdout.removesuffix("\n")
    assert re.fullmatch(KEY, secret)
    assert secret not in done.stderr
    assert (
        json.loads(file.read_bytes())["keys"][0]["sha256"]
        == hashlib.sha256(secret.encode()).hexdigest()
    )
    for path in tmp_path.iterdir():
        assert secret[3:-4] not in path.read_text()
        assert secret[-6:] not in path.read_text()


def test_what_a_key_looks_like() -> None:
    """`tc_`, 30 random base-62 characters and a checksum of six; no two are alike."""
    result = {api_keys.generate_secret() for _ in range(500)}
    assert len(result) == 500
    assert all(re.fullmatch(KEY, key) for key in result)
    assert {character for key in result for character in key[3:33]} == {
        *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    }


def test_a_typing_error_is_not_an_unknown_key() -> None:
    """The checksum fits the rest of the key, and no longer where one character is another or two
    have changed places.
    """
    # the CRC-32 of the first 33 bytes in base 62, worked out apart from the code
    assert api_keys.is_well_formed("tc_" + "0" * 30 + "2bskOd")
    for _ in range(20):
        key = api_keys.generate_secret()
        assert api_keys.is_well_formed(key)
        for position in range(3, len(key)):
            other = key[:position] + ("x" if key[position] != "x" else "y") + key[position + 1 :]
            assert not api_keys.is_well_formed(other)
    for text in (
        "",
        "tc_",
        key[:-1],
        key + "0",
        " " + key,
        key + "\n",
        key.replace("tc_", "TC_"),
        "é" * 39,
    ):
        assert not api_keys.is_well_formed(text)


def test_keys_made_at_once_are_all_kept(tmp_path: Path) -> None:
    """Commands that run at the same time wait for each other: none fails, and no key is lost."""
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


def test_threads_wait_for_each_other_too(tmp_path: Path) -> None:
    """Forty changes from eight threads: all are in the file."""
    file = tmp_path / "keys.json"
    with ThreadPoolExecutor(8) as pool:
        result = [
            *pool.map(
                lambda number: api_keys.create(file, f"p{number}", None, None)[1].id, range(40)
            )
        ]
    assert {key.id for key in api_keys.load_keys(file)} == {*result}


def test_a_held_file_is_waited_for(tmp_path: Path) -> None:
    """A command waits while another one holds the file, and goes on when it lets go."""
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


def test_the_file_of_the_following_tests_is_fine_without_their_damage(tmp_path: Path) -> None:
    """A key with these fields is read, so what is refused below is refused for the one field that
    is another.
    """
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
def test_a_damaged_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """What is not a key file is called damaged by every command, with what to do; it is left as it
    is.
    """
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
        assert refused(capsys, "keys", *command, "--keys", file) == expected
    assert file.read_bytes() == content


def test_a_key_file_of_another_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of a later program is not called damaged."""
    file = tmp_path / "keys.json"
    file.write_text('{"format": 2, "keys": []}')
    assert (
        refused(capsys, "keys", "list", "--keys", file)
        == f"error: The key file {file} has format 2, this program reads 1."
    )


def test_what_a_missing_file_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`list`, `rotate` and `revoke` say which command makes a key file."""
    file = tmp_path / "keys.json"
    for command in (["list"], ["rotate", "key_1"], ["revoke", "key_1"]):
        assert (
            refused(capsys, "keys", *command, "--keys", file)
            == f"error: There is no key file {file}: run `toolcatalog keys create --project default"
            f" --keys {file}`."
        )


def test_a_file_that_cannot_be_read_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path that leads through a file, or to a folder, is one sentence with the system's
    reason.
    """
    (tmp_path / "file").write_text("")
    for command in (
        ["create", "--project", "p"],
        ["list"],
        ["rotate", "key_1"],
        ["revoke", "key_1"],
    ):
        line = refused(capsys, "keys", *command, "--keys", tmp_path / "file" / "keys.json")
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
def test_another_user_cannot_read_it() -> None:
    """Another user of the machine is told that the permissions are missing, in one sentence."""
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
        done = subprocess.run(
            [sys.executable, "-c", program, "keys", "list", "--keys", str(file)],
            capture_output=True,
            text=True,
            check=False,
            env=environment_without_coverage(),
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr == f"error: The key file {file} cannot be read (Permission denied): fix its"
            " permissions, or name another with --keys.\n"
        )


def test_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each key under a heading, oldest first, without secrets."""
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


def test_rotating_and_revoking(tmp_path: Path) -> None:
    """A successor has the project, the toolkits and the lifetime of the old key, which ends after
    the overlap; revoking ends one now.
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


def test_an_overlap_never_lengthens_a_life(tmp_path: Path) -> None:
    """A key that ends tomorrow still ends tomorrow, however long the overlap."""
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "p", None, DAY)
    api_keys.rotate(file, key.id, timedelta(days=30))
    assert api_keys.load_keys(file)[0].expires == key.expires


@pytest.mark.parametrize("lifetime", [timedelta(days=90), None])
def test_a_successor_lives_as_long_as_the_first_key_was_made_for(
    tmp_path: Path, lifetime: timedelta | None
) -> None:
    """A rotation shortens the life of the old key and not of the successors that it has later,
    during the overlap.
    """
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


def test_a_key_made_before_lifetimes_were_kept(tmp_path: Path) -> None:
    """Its lifetime is the time from its making to its end."""
    (tmp_path / "keys.json").write_text(
        json.dumps(
            {
                "format": 1,
                "keys": [GOOD, {**GOOD, "id": "key_2", "expires": "2025-01-02T00:00:00+00:00"}],
            }
        )
    )
    assert [key.lifetime for key in api_keys.load_keys(tmp_path / "keys.json")] == [None, 86400]


def test_a_key_without_toolkits_sees_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty list that somebody wrote into the file is no toolkit, and is listed and inherited
    so.
    """
    (tmp_path / "keys.json").write_text(
        json.dumps({"format": 1, "keys": [{**GOOD, "toolkits": []}]})
    )
    assert main(["keys", "list", "--keys", str(tmp_path / "keys.json")]) == 0
    assert re.split(r"  +", capsys.readouterr().out.splitlines()[1])[2] == "none"
    assert main(["keys", "rotate", "key_1", "--keys", str(tmp_path / "keys.json")]) == 0
    assert "for project p, toolkits none, no expiry." in capsys.readouterr().err
    assert api_keys.load_keys(tmp_path / "keys.json")[1].toolkits == ()


@pytest.mark.parametrize("command", ["rotate", "revoke"])
def test_what_cannot_be_rotated_or_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """A key that is unknown, expired or revoked is left as it is, and the sentence says why."""
    file = tmp_path / "keys.json"
    _, expired = api_keys.create(file, "p", None, timedelta(seconds=-1))
    _, revoked = api_keys.create(file, "p", None, None)
    api_keys.revoke(file, revoked.id)
    previous = file.read_bytes()
    assert (
        refused(capsys, "keys", command, "key_nope", "--keys", file)
        == f"error: There is no key key_nope in {file}: see `toolcatalog keys list`."
    )
    for key, label in ((expired, "expired"), (revoked, "revoked")):
        assert refused(capsys, "keys", command, key.id, "--keys", file) == (
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
def test_a_duration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, length: timedelta
) -> None:
    """A number and s, m, h, d or w is how long a key lives."""
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
def test_any_other_duration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """Anything else is refused before a key is made; a lifetime of nothing too, which would make a
    key that is dead, or immortal.
    """
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
def test_a_key_for_what_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    """No key is made for toolkits that cannot exist, for none, or for a project without a name."""
    file = tmp_path / "keys.json"
    assert main(["keys", "create", "--project", "p", flag, value, "--keys", str(file)]) == 2
    assert flag in capsys.readouterr().err
    assert not file.exists()


def test_a_limited_key_is_limited_to_what_was_named(tmp_path: Path) -> None:
    """Blanks and repetitions in `--toolkit` mean nothing."""
    file = tmp_path / "keys.json"
    create_key(file, "--toolkit", " slack,github ,slack,")
    assert api_keys.load_keys(file)[0].toolkits == ("slack", "github")


def found(ring: api_keys.KeyRing, secret: str, within: float = 1.0) -> bool:
    """Whether the ring knows a key; asked until it does, at most for a second."""
    deadline = time.monotonic() + within
    while (existing := ring.find(secret.encode())) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return existing is not None


def test_a_file_damaged_under_a_running_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The keys read last stay in force and the log says why; a mended file is taken over. No key is
    logged.
    """
    file = tmp_path / "keys.json"
    first, _ = api_keys.create(file, "p", None, None)
    ring = api_keys.KeyRing(file)
    assert found(ring, first)
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
    assert found(ring, second)
    assert found(ring, first)
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


def test_a_folder_in_the_place_of_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a damaged file: the keys stay, one line says why, and the file that comes back is taken
    over.
    """
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
    assert found(ring, second)


def test_a_ring_without_a_file_knows_no_one_until_there_is_one(tmp_path: Path) -> None:
    """A server may start before its first key is made."""
    ring = api_keys.KeyRing(tmp_path / "keys.json")
    assert ring.find(b"") is None
    secret, _ = api_keys.create(tmp_path / "keys.json", "p", None, None)
    assert found(ring, secret)
    for other in (b"", secret[:-1].encode(), secret.encode() + b"x", b"\xff", "é".encode()):
        assert ring.find(other) is None


def test_a_server_does_not_start_with_keys_that_cannot_be_used(tmp_path: Path) -> None:
    """A ring of a damaged file cannot be made: better no server than one that refuses everybody."""
    (tmp_path / "keys.json").write_text("{")
    with pytest.raises(KeyFileError, match="is damaged"):
        api_keys.KeyRing(tmp_path / "keys.json")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_rewritten_file_keeps_its_owner(tmp_path: Path) -> None:
    """What root rewrites stays with the account that reads it, or a server would not see that a key
    was revoked.
    """
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


def test_only_a_key_that_is_good_is_found(tmp_path: Path) -> None:
    """An active key is found, with its record; one that has ended, one that was revoked and one
    that nobody knows are not.
    """
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


def test_when_a_key_ends(tmp_path: Path) -> None:
    """At the second that is written down it has ended; never, where nothing is; a revoked one has
    ended long ago.
    """
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


def test_a_rotation_ends_its_own_key_alone(tmp_path: Path) -> None:
    """Of several keys only the one that is rotated gets an end."""
    file = tmp_path / "keys.json"
    ids = [api_keys.create(file, "default", None, None)[1].id for _ in range(3)]
    _, successor = api_keys.rotate(file, ids[1], DAY)
    assert [(key.id, key.expires is None) for key in api_keys.load_keys(file)] == [
        (ids[0], True),
        (ids[1], False),
        (ids[2], True),
        (successor.id, True),
    ]


def test_the_document_is_for_people_too(tmp_path: Path) -> None:
    """A line for each value and one at the end, so that a diff shows what has changed; ids can be
    told from slugs and secrets.
    """
    file = tmp_path / "keys.json"
    _, key = api_keys.create(file, "default", None, None)
    assert re.fullmatch("key_[0-9A-Za-z]{8}", key.id)
    text = file.read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_a_document_that_is_not_as_it_was_written_is_refused(tmp_path: Path) -> None:
    """Whatever was changed in it, the place is named: by a server that starts, too."""
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


def test_a_change_is_followed_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A key made while a server runs is good within a second; the log says how many there are
    then.
    """
    file = tmp_path / "keys.json"
    api_keys.create(file, "default", None, None)
    ring = api_keys.KeyRing(file)
    secret, _ = api_keys.create(file, "default", None, None)
    with caplog.at_level(logging.INFO, "toolcatalog.keys"):
        wait_until(lambda: ring.find(secret.encode()))
    assert caplog.messages == ["keys reloaded: 2"]


def test_where_keys_are_kept_unless_said_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the user's configuration folder, which `XDG_CONFIG_HOME` names; an empty one is none."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for text, folder in ((str(tmp_path / "own"), tmp_path / "own"), ("", tmp_path / ".config")):
        monkeypatch.setenv("XDG_CONFIG_HOME", text)
        assert api_keys.default_key_file() == folder / "toolcatalog" / "keys.json"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert api_keys.default_key_file() == tmp_path / ".config" / "toolcatalog" / "keys.json"
