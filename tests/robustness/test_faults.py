"""Faults: killed builds, full disks and failing writes. docs/evidence/faults.md has the results."""

import errno
import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import cycle, product
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.faults import (
    CommandRunner,
    Outcome,
    make_catalog_of_batches,
    rename_toolkit,
    start_runner,
)
from support.files_on_disk import find_leftovers, read_tree
from support.profile import DEEP_PROFILE
from support.server import start_server, wait_until
from toolcatalog.build.pipeline import build
from toolcatalog.keys import api_keys
from toolcatalog.snapshot import retention
from toolcatalog.store.open import open_build

SEED = 20261122
ALWAYS = 1 << 40  # steps: more than any command takes


@pytest.fixture(scope="module")
def runner() -> Iterator[CommandRunner]:
    """A process that has everything imported and runs each command in a fork of itself."""
    with start_runner() as runner:
        yield runner


def valid_current_digest(out: Path) -> str:
    """Return the digest of the current snapshot, which is complete and valid."""
    digest = retention.current_digest(out)
    assert retention.verify_by_digest(out, digest) == []
    assert open_build(out).digest == digest
    return digest


# A build that is killed


class Building:
    """A catalog of several names, what a clean build makes of each, and a folder in which one after
    another is built.
    """

    def __init__(self, folder: Path, runner: CommandRunner) -> None:
        self.runner, self.catalog, self.out, self.site = (
            runner,
            make_catalog_of_batches(folder / "catalog"),
            folder / "build",
            folder / "site",
        )
        self.clean = {name: self._clean(folder / name, name) for name in ("One", "Two", "Three")}
        self.command = (
            "build",
            "--catalog",
            self.catalog,
            "--out",
            self.out,
            "--site",
            self.site,
            "--jobs",
            2,
        )
        self.finish()

    def _clean(self, folder: Path, name: str) -> tuple[str, dict[str, bytes]]:
        rename_toolkit(self.catalog, name)
        return build(self.catalog, folder / "build", folder / "site").digest, read_tree(
            folder / "site"
        )

    def finish(self) -> float:
        """Build as soon as no other build runs, and keep only this snapshot; return the seconds."""
        ended = []

        def ends() -> bool:
            ended.append(self.runner.run(*self.command))
            return "Another build is writing" not in ended[-1].err

        wait_until(ends)
        assert ended[-1].status == 0, ended[-1].err
        assert self.runner.run("snapshots", "prune", "--keep", 0, "--build", self.out).status == 0
        return ended[-1].seconds


@pytest.fixture
def building(tmp_path: Path, runner: CommandRunner) -> Building:
    """That, after a first build of all."""
    return Building(tmp_path, runner)


def kill(building: Building, kills: int) -> Iterator[tuple[str, bool]]:
    """Kill builds of one name after another at random moments, every other time the first process
    alone: which snapshot is current, and whether it is the old one.
    """
    draw, names = random.Random(SEED), cycle(building.clean)  # noqa: S311 - nothing secret
    rename_toolkit(building.catalog, next(names))
    longest = building.finish()
    for number in range(kills):
        before = valid_current_digest(building.out)
        name = next(names)
        rename_toolkit(building.catalog, name)
        ended = building.runner.run(
            *building.command, seconds=draw.uniform(0.02, longest), alone=number % 2 == 0
        )
        assert ended.status in (0, -signal.SIGKILL)
        now = valid_current_digest(building.out)
        assert now in (before, building.clean[name][0]), f"kill {number} of seed {SEED}"
        yield now, now == before and ended.status != 0
        longest = max(longest / 2, building.finish())  # machines have their moods
        assert valid_current_digest(building.out) == building.clean[name][0], (
            f"after kill {number} of seed {SEED}"
        )
        assert find_leftovers(building.out.parent) == [], f"after kill {number} of seed {SEED}"
        assert read_tree(building.site) | {".lock": b""} == building.clean[name][1] | {".lock": b""}


@pytest.mark.deep
def test_two_hundred_killed_builds(building: Building, tmp_path: Path) -> None:
    """A server answers after each, and finally from the last one."""
    digests, old_count = {digest for digest, _ in building.clean.values()}, 0
    (tmp_path / "server").mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(start_server(building.out, tmp_path / "server"))
        client = stack.enter_context(
            httpx.Client(base_url=server.url, headers={"x-api-key": server.key})
        )
        for _, old in kill(building, 200):
            answer = client.get("/api/v3/tools")
            assert answer.status_code == 200
            assert answer.headers["x-catalog-snapshot"] in digests
            old_count += old
        wait_until(
            lambda: (
                client.get("/api/v3/tools").headers["x-catalog-snapshot"]
                == valid_current_digest(building.out)
            )
        )
    print(f"seed {SEED}: 200 builds, {old_count} killed before the new snapshot was current")
    assert 20 < old_count <= 200


# A disk that takes no more


class Given:
    """What commands work on: a catalog, a build of it with a snapshot more, its site, a key, and
    definitions to import.
    """

    def __init__(self, folder: Path, runner: CommandRunner) -> None:
        self.folder, catalog, out, file = (
            folder,
            make_catalog_of_batches(folder / "catalog", 10),
            folder / "build",
            folder / "keys.json",
        )
        build(catalog, out, folder / "site")
        self.old = retention.current_digest(out)
        rename_toolkit(catalog, "Another")
        self.new = build(catalog, out, None).digest
        retention.switch_current(out, self.old)
        _, key = api_keys.create(file, "default", None, None)
        (folder / "wire.json").write_text(json.dumps([wire(number) for number in range(3)]))
        self.slug = min(path.name for path in (catalog / "toolkits/kit").glob("KIT*"))
        self.broken = f"catalog/toolkits/kit/{self.slug}/20250101_00.yaml"
        self.commands: dict[str, tuple[str, ...]] = {
            "build": (
                "build",
                "--catalog",
                "catalog",
                "--out",
                "build",
                "--site",
                "site",
                "--jobs",
                "2",
            ),
            "build again": (
                "build",
                "--catalog",
                "catalog",
                "--out",
                "new/build",
                "--site",
                "new/site",
                "--jobs",
                "1",
            ),
            "check --fix": ("check", "--fix", "--catalog", "catalog", "--cache-dir", "build"),
            "keys create": ("keys", "create", "--project", "more", "--keys", "keys.json"),
            "keys create again": ("keys", "create", "--project", "more", "--keys", "new/keys.json"),
            "keys rotate": ("keys", "rotate", key.id, "--keys", "keys.json"),
            "keys revoke": ("keys", "revoke", key.id, "--keys", "keys.json"),
            "lock": ("lock", self.slug, "--build", "build", "--lock", "agent.lock"),
            "import": ("import", "wire", "wire.json", "--catalog", "catalog"),
            "new toolkit": (
                "new",
                "toolkit",
                "mail",
                "--name",
                "Mail",
                "--logo",
                "https://mail.example/l.svg",
                "--description",
                "It sends.",
                "--catalog",
                "catalog",
            ),
            "new tool": (
                "new",
                "tool",
                "KIT_SEND",
                "--name",
                "Send",
                "--description",
                "Send it.",
                "--catalog",
                "catalog",
            ),
            "bump": ("bump", self.slug, "--version", "20260101_00", "--catalog", "catalog"),
            "deprecate": (
                "deprecate",
                self.slug,
                "--reason",
                "It goes.",
                "--since",
                "2026-01-01",
                "--catalog",
                "catalog",
            ),
            "snapshots use": ("snapshots", "use", self.new, "--build", "build"),
            "snapshots prune": ("snapshots", "prune", "--keep", "0", "--build", "build"),
            "mirror": ("mirror", "mirror", "--build", "build"),
            "publish": ("publish", "file://store", "--build", "build"),
        }
        self._runner = runner

    def copied(self, name: str, to: Path) -> None:
        """A copy for one command."""
        shutil.rmtree(to / "given", ignore_errors=True)
        shutil.copytree(self.folder, to / "given", symlinks=True)
        (to / "given/store").mkdir()
        if name == "check --fix":
            file = to / "given" / self.broken
            file.write_text(file.read_text().replace("required: true", 'required: "true"'))

    def run(self, name: str, to: Path, **met: Any) -> Outcome:
        """Run a command in that copy."""
        paths = {
            *[path.name for path in self.folder.iterdir()],
            "new/build",
            "new/site",
            "new/keys.json",
            "agent.lock",
            "mirror",
        }
        command, *rest = self.commands[name]
        arguments = [command, *(f"{to}/given/{word}" if word in paths else word for word in rest)]
        met = {"below": str(to / "given"), **met}
        return self._runner.run(
            *[word.replace("file://", f"file://{to}/given/") for word in arguments], **met
        )


def wire(number: int) -> dict[str, Any]:
    """A definition as APIs send it."""
    kit = {"slug": "wire", "name": "Wire", "logo": "https://wire.example/logo.svg"}
    return {
        "slug": f"WIRE_DO_{number}",
        "name": "Do",
        "description": "Do it.",
        "version": "20250101_00",
        "toolkit": kit,
        "input_parameters": {"type": "object", "properties": {}},
        "output_parameters": {"type": "object", "properties": {}},
        "tags": [],
        "scopes": [],
    }


@pytest.fixture(scope="module")
def fault_folder(tmp_path_factory: pytest.TempPathFactory, runner: CommandRunner) -> Given:
    """A copy of the prepared files."""
    return Given(tmp_path_factory.mktemp("given"), runner)


def state_of(folder: Path) -> dict[str, object]:
    """Every file and link, but what is only there for the next time; of keys, whose they are and
    whether they are good.
    """
    result: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if re.search(r"/\.cache/|\.lock$|\.part$", name):
            continue
        if path.name == "keys.json":
            result[name] = [
                (key.project, key.expires is None, key.state(datetime.now(UTC)))
                for key in api_keys.load_keys(path)
            ]
        elif path.is_symlink():
            result[name] = path.readlink()
        elif path.is_file():
            result[name] = path.read_bytes()
    return result


def assert_write_error(ended: Outcome, folder: Path) -> str:
    """Check the one sentence of a command whose write failed."""
    assert ended.status == 2, ended
    assert "Traceback" not in ended.err
    sentence = ended.err.strip().rpartition("\n")[2]
    assert ended.err.count("error: ") == 1, ended.err
    assert not re.search(r"\.[0-9a-f]{8}\.part", sentence), "nobody knows this name"
    assert re.fullmatch(rf"error: .*{re.escape(str(folder))}.* \(.+\): [a-z].+\.", sentence), (
        sentence
    )
    return sentence


def fail(fault_folder: Given, name: str, error: int, at: int, to: Path) -> bool:
    """Run a command on a failing disk, then on a good one; return whether the first run had no
    fault.
    """
    fault_folder.copied(name, to)
    before = state_of(to / "given")
    ended = fault_folder.run(
        name, to, first=at, last=at if error == errno.EIO else ALWAYS, error=error
    )
    if ended.status:
        assert f"({os.strerror(error)}): {WHAT_TO_DO[error]}" in assert_write_error(
            ended, to / "given"
        )
    now = state_of(to / "given")
    assert valid_current_digest(to / "given/build") in (
        (fault_folder.old, fault_folder.new)
        if name in ("build", "snapshots use")
        else (fault_folder.old,)
    )
    if ended.status and name in ALL_OR_NOTHING and error != errno.EROFS:
        assert now == before
    if not ended.status:
        assert now == expected_state(fault_folder, name, to)
        return True
    assert fault_folder.run(name, to).status == 0
    assert state_of(to / "given") == expected_state(fault_folder, name, to)
    assert find_leftovers(to / "given") == [] or (
        error == errno.EROFS and not name.startswith("keys ")
    )
    return False


WHAT_TO_DO = {
    errno.ENOSPC: "free some space",
    errno.EROFS: "mount its disk for writing",
    errno.EIO: "check its disk for errors",
}
ALL_OR_NOTHING = {
    "keys create",
    "keys rotate",
    "keys revoke",
    "lock",
    "import",
    "bump",
    "deprecate",
    "snapshots use",
}
_AFTER: dict[str, dict[str, object]] = {}


def expected_state(fault_folder: Given, name: str, to: Path) -> dict[str, object]:
    """Return the files after a command without a fault."""
    if name not in _AFTER:
        fault_folder.copied(name, to / "clean")
        ended = fault_folder.run(name, to / "clean")
        assert ended.status == 0, ended
        _AFTER[name] = state_of(to / "clean/given")
    return _AFTER[name]


def steps_of(fault_folder: Given, name: str, error: int, to: Path) -> int:
    """Return the number of steps of a command that can fail like this."""
    fault_folder.copied(name, to)
    return fault_folder.run(name, to, error=error).steps


def spread(steps: int, most: int) -> list[int]:
    """Return at most this many steps, evenly spread, with the first and the last."""
    return sorted(
        {
            1 + number * (steps - 1) // max(1, min(steps, most) - 1)
            for number in range(min(steps, most))
        }
    )


FAULTS = (errno.ENOSPC, errno.EROFS, errno.EIO)
COMMANDS = (
    "build",
    "build again",
    "check --fix",
    "keys create",
    "keys create again",
    "keys rotate",
    "keys revoke",
    "lock",
    "import",
    "new toolkit",
    "new tool",
    "bump",
    "deprecate",
    "snapshots use",
    "snapshots prune",
    "mirror",
)
FEW = [
    ("import", errno.ENOSPC),
    ("keys revoke", errno.EROFS),
    ("new tool", errno.EIO),
]


@pytest.mark.parametrize(
    ("name", "error"), sorted({*product(COMMANDS, FAULTS), *FEW}) if DEEP_PROFILE else FEW
)
def test_failed_write_is_one_sentence(
    name: str, error: int, fault_folder: Given, tmp_path: Path
) -> None:
    """A full or read-only disk from some step on, or one failing step; then the command succeeds on
    a good disk.
    """
    steps = spread(steps_of(fault_folder, name, error, tmp_path), 20 if DEEP_PROFILE else 2)
    through = [fail(fault_folder, name, error, at, tmp_path) for at in steps]
    print(f"{name}, {errno.errorcode[error]}: {len(steps)} steps, {sum(through)} got through")
    assert not all(through)


def test_check_fix_reports_an_unwritable_file(fault_folder: Given, tmp_path: Path) -> None:
    """And does not change it."""
    fault_folder.copied("check --fix", tmp_path)
    before = state_of(tmp_path / "given/catalog")
    ended = fault_folder.run(
        "check --fix",
        tmp_path,
        below=str(tmp_path / "given/catalog"),
        first=1,
        last=ALWAYS,
        error=errno.EACCES,
    )
    assert f"{fault_folder.slug}/20250101_00.yaml (Permission denied)" in assert_write_error(
        ended, tmp_path / "given"
    )
    assert state_of(tmp_path / "given/catalog") == before


@contextmanager
def disk(folder: Path) -> Iterator[Callable[[str], None]]:
    """A disk of its own at a folder, and what mounts it again with other options; skips where this
    account may mount nothing.
    """
    folder.mkdir()
    if not mounted("-t", "tmpfs", "-o", "size=64m", "tmpfs", folder):
        pytest.skip("this account may not mount a disk")
    try:
        yield (
            lambda options: (
                None
                if mounted("-o", f"remount,{options}", folder)
                else pytest.fail(f"cannot remount with {options}")
            )
        )
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mounted(*arguments: object) -> bool:
    """Whether mounting succeeds."""
    command = shutil.which("mount")
    return (
        command is not None
        and subprocess.run(
            [command, *map(str, arguments)], capture_output=True, check=False
        ).returncode
        == 0
    )


REAL = (
    "build",
    "keys create",
    "keys revoke",
    "import",
    "lock",
    "mirror",
    "publish",
    "snapshots use",
)


@pytest.mark.deep
@pytest.mark.parametrize("name", REAL)
def test_really_full_or_read_only_disk(name: str, fault_folder: Given, tmp_path: Path) -> None:
    """With 0, 1, 2, ... free pages until the command succeeds, and mounted read-only."""
    place, full, room = tmp_path / "disk", 0, 0
    with disk(place) as remount:
        while True:
            fault_folder.copied(name, place)
            free = os.statvfs(place)
            remount(f"size={(free.f_blocks - free.f_bfree + room) * free.f_frsize}")
            ended = fault_folder.run(name, place)
            remount("size=64m")
            assert valid_current_digest(place / "given/build") in (
                (fault_folder.old, fault_folder.new)
                if name in ("build", "snapshots use")
                else (fault_folder.old,)
            )
            if not ended.status:
                break
            full += 1
            assert (
                "No space left on device" in ended.err
                or "not enough disk space" in ended.err.lower()
            ), ended.err
            assert_one_sentence(ended)
            assert fault_folder.run(name, place).status == 0
            room += 1 + room // 8
        fault_folder.copied(name, place)
        gc.collect()  # what is removed and still mapped keeps a disk from being mounted read-only
        remount("ro")
        ended = fault_folder.run(name, place)
        remount("rw")
        assert (
            "Read-only file system" in assert_write_error(ended, place)
            if name != "publish"
            else ended.status == 2
        )
        assert fault_folder.run(name, place).status == 0
    print(f"{name}: {full} sizes were too small, {room} pages were enough")
    assert full or name == "snapshots use"  # a link takes no room here


def assert_one_sentence(ended: Outcome) -> None:
    """One line at the end says what is wrong, and there is no traceback."""
    assert ended.status == 2
    assert "Traceback" not in ended.err
    assert ended.err.count("error: ") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments", [["search", "stories"], *([["explain"], ["--help"]] if DEEP_PROFILE else [])]
)
def test_standard_output_on_a_full_disk(arguments: list[str], small_build: Path) -> None:
    """One sentence, not an internal error."""
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        *arguments,
        *(["--build", str(small_build)] if "search" in arguments else []),
    ]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    sentence = (
        "error: Cannot write standard output (No space left on device): free some space, and "
        "run this again.\n"
    )
    assert (result.returncode, result.stderr) == (2, sentence)
