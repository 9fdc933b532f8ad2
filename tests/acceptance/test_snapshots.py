"""`toolcatalog snapshots`: list, use, prune and verify."""

import json
import os
import shutil
from pathlib import Path

import pytest

from support.command import run_successfully, run_toolcatalog
from support.paths import DATA
from support.snapshot_reader import read_newest_documents
from toolcatalog.build.pipeline import build
from toolcatalog.cli.main import main
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import retention
from toolcatalog.store.open import open_build
from toolcatalog.system import files

HISTORY = DATA / "golden" / "history" / "catalog"
TEXTS = ("one", "two", "three", "four")


def describe(folder: Path, text: str) -> None:
    (folder / "catalog/toolkits/clock/CLOCK_NOW/20250601_00.yaml").write_text(
        f"name: Now\ndescription: {text}\n"
    )


def read_description(out: Path) -> str:
    """Return the description of the tool in the current snapshot."""
    return str(json.loads(read_newest_documents(out / "current")["CLOCK_NOW"])["description"])


@pytest.fixture(scope="module")
def four_snapshots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with a catalog and a build with four snapshots, an hour apart, and their digests."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(HISTORY, folder / "catalog")
    digests = []
    for hour, text in enumerate(TEXTS):
        describe(folder, text)
        digests.append(build(folder / "catalog", folder / "build", None).digest)
        when = 1_750_000_000 + 3600 * hour
        os.utime(folder / "build/snapshots" / digests[-1] / "manifest.json", (when, when))
    return folder, digests


@pytest.fixture
def out(four_snapshots: tuple[Path, list[str]], tmp_path: Path) -> Path:
    """A copy of that build."""
    shutil.copytree(four_snapshots[0] / "catalog", tmp_path / "catalog")
    return Path(shutil.copytree(four_snapshots[0] / "build", tmp_path / "build", symlinks=True))


@pytest.fixture
def digests(four_snapshots: tuple[Path, list[str]]) -> list[str]:
    return four_snapshots[1]


def present(out: Path) -> set[str]:
    return {path.name for path in (out / "snapshots").iterdir()}


def run_refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the one sentence of a command that exits with 2 and leaves `current` unchanged."""
    capsys.readouterr()
    assert main(["snapshots", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err.strip().rpartition("\n")[2]


def damage(out: Path, digest: str) -> None:
    """Change one byte of a document."""
    file = out / "snapshots" / digest / "tools.json"
    file.write_bytes(file.read_bytes().replace(b"Now", b"Not", 1))


# List


def test_list_shows_the_newest_first(out: Path, digests: list[str]) -> None:
    """A line each with numbers of the manifest and the current one; JSON has whole digests."""
    lines = run_successfully("snapshots", "list", "--build", out).splitlines()
    assert lines[0].split() == [
        "DIGEST",
        "CREATED",
        "(UTC)",
        "TOOLS",
        "VERSIONS",
        "TOOLKITS",
        "SIZE",
    ]
    assert [line.split()[0] for line in lines[1:]] == [digest[:12] for digest in reversed(digests)]
    assert [line.split()[-1] for line in lines[1:]] == ["current", "kB", "kB", "kB"]
    assert lines[1].split()[1:6] == ["2025-06-15", "18:06", "4", "8", "3"]
    output = json.loads(run_successfully("snapshots", "list", "--format", "json", cwd=out.parent))
    assert [item["digest"] for item in output] == [*reversed(digests)]
    assert [item["current"] for item in output] == [True, False, False, False]
    sizes = [
        sum(
            path.stat().st_size
            for path in (out / "snapshots" / digest).rglob("*")
            if path.is_file()
        )
        for digest in digests
    ]
    assert [item["size"] for item in output] == [*reversed(sizes)]
    assert {
        (item["toolkits"], item["tools"], item["tool_versions"], item["sessions"])
        for item in output
    } == {(3, 4, 8, 0)}
    assert output[0]["placed"] == "2025-06-15T18:06:40+00:00"
    assert {(item["state"], item["wrong"]) for item in output} == {("", "")}


def test_list_includes_invalid_snapshots(out: Path, digests: list[str]) -> None:
    """Incomplete ones, other formats and files; temporary files are left out."""
    (out / "snapshots" / digests[0] / "manifest.json").unlink()
    (out / "snapshots" / digests[1] / "query.words").unlink()
    manifest = out / "snapshots" / digests[2] / "manifest.json"
    manifest.write_bytes(
        manifest.read_bytes().replace(
            b'"format":%d' % snapshot_format.FORMAT, b'"format":%d' % (snapshot_format.FORMAT + 1)
        )
    )
    (out / "snapshots" / ("f" * 64)).write_text("")
    (out / "snapshots" / "new.part").mkdir()
    result = run_toolcatalog("snapshots", "list", "--build", out)
    states = {
        line.split()[0]: line.partition("kB")[2].strip() for line in result.stdout.splitlines()[1:]
    }
    expected = [
        (digests[0], "half"),
        (digests[1], "half"),
        (digests[2], "other format"),
        (digests[3], "current"),
        ("f" * 64, "half"),
    ]
    assert states == {digest[:12]: state for digest, state in expected}
    assert result.returncode == 0
    assert "(query.words is missing): build again, or use another one." in result.stderr
    assert (
        f"has format {snapshot_format.FORMAT + 1}, this program reads {snapshot_format.FORMAT}: it"
        " is of a newer toolcatalog: upgrade" in result.stderr
    )
    assert len(result.stderr.splitlines()) == 4


def test_digests_are_abbreviated_uniquely(
    out: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """An ambiguous prefix is refused with all matches."""
    twin = digests[0][:20] + ("1" if digests[0][20] == "0" else "0") * 44
    (out / "snapshots" / twin).mkdir()
    displayed = {
        line.split()[0]
        for line in run_successfully("snapshots", "list", "--build", out).splitlines()[1:]
    }
    assert displayed == {digest[:21] for digest in (twin, *digests)}
    both = ", ".join(sorted([twin[:21], digests[0][:21]]))
    assert (
        f"Several snapshots start with '{twin[:14]}': {both}. Write more of its digest."
        in run_refused(capsys, "use", twin[:14], "--build", out)
    )


# Use


def test_use_switches_back_and_forward(out: Path, digests: list[str]) -> None:
    """It prints both digests, and `current` changes at once."""
    result = run_toolcatalog("snapshots", "use", digests[0][:12], "--build", out)
    assert (result.returncode, result.stdout) == (0, f"{digests[0]}\n")
    assert f"was {digests[3][:12]}, and is {digests[0][:12]} now" in result.stderr
    assert "To roll the site back too, revert the catalog in git" in result.stderr
    assert (out / "current").readlink() == Path("snapshots") / digests[0]
    assert read_description(out) == "one"
    assert retention.switch_current(out, digests[2].upper()) == (digests[0], digests[2])
    assert read_description(out) == "three"
    assert open_build(out).digest == digests[2]
    repeated = run_toolcatalog("snapshots", "use", digests[2], "--build", out)
    assert (repeated.returncode, repeated.stdout) == (0, f"{digests[2]}\n")
    assert "names this snapshot already" in repeated.stderr


def test_build_after_a_rollback_restores_the_newest(out: Path, digests: list[str]) -> None:
    """Of the unchanged catalog."""
    catalog, site = out.with_name("catalog"), out.with_name("site")
    assert build(catalog, out, site).changed is False
    assert build(catalog, out, site).changed is False
    retention.switch_current(out, digests[1])
    assert read_description(out) == "two"
    built = build(catalog, out, site)
    assert (built.changed, built.digest, read_description(out)) == (True, digests[3], "four")
    assert present(out) == {*digests}
    assert build(catalog, out, site).changed is False


@pytest.mark.parametrize("invalid", ["a byte", "half", "newer", "a link out"])
def test_invalid_snapshot_cannot_be_used(
    invalid: str, out: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence says why, and `current` stays."""
    folder = out / "snapshots" / digests[0]
    if invalid == "a byte":
        damage(out, digests[0])
    elif invalid == "half":
        (folder / "manifest.json").unlink()
    elif invalid == "newer":
        manifest = folder / "manifest.json"
        manifest.write_bytes(
            manifest.read_bytes().replace(b'"format":%d' % snapshot_format.FORMAT, b'"format":9')
        )
    else:
        shutil.rmtree(folder)
        folder.symlink_to(digests[1])
    message = run_refused(capsys, "use", digests[0], "--build", out)
    expected = {
        "a byte": (
            "is incomplete or damaged (tools.json has other bytes than were written), and "
            "nothing was changed:"
            " build again, or use another one."
        ),
        "half": "There is no finished build in",
        "newer": "has format 9, this program reads",
        "a link out": "is a symbolic link, and a build writes to plain folders only",
    }
    assert expected[invalid] in message
    assert read_description(out) == "four"


def test_unknown_digest_suggests_the_nearest(
    out: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    slip = digests[1][:5] + ("0" if digests[1][5] != "0" else "1") + digests[1][6:12]
    assert (
        f"starts with '{slip}': did you mean {digests[1][:12]}? `toolcatalog snapshots list`"
        in run_refused(capsys, "use", slip, "--build", out)
    )
    assert "did you mean" not in run_refused(capsys, "use", "zzzz", "--build", out)
    assert "Several snapshots start with ''" in run_refused(capsys, "use", "", "--build", out)
    assert "starts with '../current'" in run_refused(capsys, "verify", "../current", "--build", out)


def test_running_build_blocks_use_and_prune(
    out: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading commands do not wait."""
    with files.lock(out / ".lock") as acquired:
        assert acquired
        for arguments in (["use", digests[0]], ["prune", "--keep", "0"]):
            assert f"Another build is writing to {out}: try again" in run_refused(
                capsys, *arguments, "--build", out
            )
        assert main(["snapshots", "list", "--build", str(out)]) == 0
        assert main(["snapshots", "verify", "--build", str(out)]) == 0
    assert present(out) == {*digests}
    assert read_description(out) == "four"


# Prune


def test_prune_keeps_the_newest_and_the_current(out: Path, digests: list[str]) -> None:
    """It prints what it removed; `--dry-run` only prints."""
    retention.switch_current(out, digests[0])
    would = run_toolcatalog("snapshots", "prune", "--keep", 1, "--dry-run", "--build", out)
    assert present(out) == {*digests}
    result = run_toolcatalog("snapshots", "prune", "--keep", 1, "--build", out)
    assert would.stdout == result.stdout == f"{digests[2]}\n{digests[1]}\n"
    assert would.stderr.startswith("Would remove 2 snapshots (")
    assert result.stderr.startswith("Removed 2 snapshots (")
    assert present(out) == {digests[0], digests[3]}
    assert read_description(out) == "one"


def test_prune_keeps_three_others_by_default(out: Path, digests: list[str]) -> None:
    assert run_successfully("snapshots", "prune", "--build", out) == ""
    assert present(out) == {*digests}
    assert (
        len(run_successfully("snapshots", "prune", "--keep", 0, "--build", out).splitlines()) == 3
    )
    assert present(out) == {digests[3]}


def test_prune_removes_incomplete_snapshots_first(out: Path, digests: list[str]) -> None:
    """And temporary files of killed builds; other files stay."""
    (out / "snapshots" / digests[2] / "query.words").unlink()
    (out / "snapshots" / digests[1] / "manifest.json").unlink()
    (out / "snapshots" / "new.part" / "toolkits").mkdir(parents=True)
    (out / "snapshots" / "README").write_text("")
    result = run_toolcatalog("snapshots", "prune", "--keep", 1, "--build", out)
    assert {*result.stdout.split()} == {digests[1], digests[2]}
    assert ", and what 1 killed builds had left" in result.stderr
    assert present(out) == {digests[0], digests[3], "README"}


def test_killed_prune_is_finished_by_the_next(out: Path, digests: list[str]) -> None:
    """A snapshot built again in between can be removed, too."""
    killed = out / "snapshots" / f"{digests[0]}.removed.part"
    shutil.copytree(out / "snapshots" / digests[0], killed)
    assert [item.digest for item in retention.list_snapshots(out)] == [*reversed(digests)]
    removed, left_over = retention.prune_snapshots(out, 0)
    assert ([item.digest for item in removed], left_over) == ([*reversed(digests[:3])], 1)
    assert present(out) == {digests[3]}


def test_prune_without_current_removes_nothing(
    out: Path, digests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "current").unlink()
    for dry in ([], ["--dry-run"]):
        assert "names no snapshot, so none is removed" in run_refused(
            capsys, "prune", "--keep", "0", *dry, "--build", out
        )
    (out / "current").symlink_to("snapshots/" + "0" * 64)
    assert "names no snapshot, so none is removed" in run_refused(
        capsys, "prune", "--keep", "0", "--build", out
    )
    assert present(out) == {*digests}


def test_open_snapshot_survives_prune(out: Path, digests: list[str]) -> None:
    """Every document can still be read."""
    store = open_build(out)
    retention.switch_current(out, digests[0])
    assert [item.digest for item in retention.prune_snapshots(out, 0).removed] == [
        *reversed(digests[1:])
    ]
    assert present(out) == {digests[0]}
    documents = [
        json.loads(bytes(store.read_document(number)[0])) for number in range(store.version_count)
    ]
    assert "four" in [document["description"] for document in documents]


# Verify


def test_verify_reports_all_damage(out: Path, digests: list[str]) -> None:
    """All snapshots or named ones; a line per problem, and exit code 1."""
    good = run_toolcatalog("snapshots", "verify", "--build", out)
    assert (good.returncode, good.stdout, good.stderr.strip().rpartition("\n")[2]) == (
        0,
        "",
        "4 snapshots verified: no problems.",
    )
    damage(out, digests[0])
    (out / "snapshots" / digests[0] / "notes.txt").write_text("")
    (out / "snapshots" / digests[1] / "manifest.json").unlink()
    manifest = out / "snapshots" / digests[2] / "manifest.json"
    manifest.write_bytes(
        manifest.read_bytes().replace(b'"format":%d' % snapshot_format.FORMAT, b'"format":9')
    )
    result = run_toolcatalog("snapshots", "verify", "--build", out)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("Verifying")]
    assert (result.returncode, result.stdout) == (1, "")
    assert {line.partition(":")[0] for line in lines[:-1]} == {
        digest[:12] for digest in digests[:3]
    }
    assert len(lines) == 5
    assert f"{digests[0][:12]}: tools.json has other bytes than were written" in lines
    assert f"{digests[0][:12]}: notes.txt is not listed" in lines
    assert any(
        line.startswith(f"{digests[2][:12]}: The build in ") and "has format 9" in line
        for line in lines
    )
    assert lines[-1] == "4 snapshots verified: 3 damaged."
    item = run_toolcatalog("snapshots", "verify", digests[3][:9], digests[3], "--build", out)
    assert (item.returncode, item.stderr.strip().rpartition("\n")[2]) == (
        0,
        "1 snapshot verified: no problems.",
    )


def test_verify_escapes_names_of_unlisted_files(out: Path) -> None:
    (out / "current" / "\x1b[31mx\n::error::y").touch()
    done = run_toolcatalog("snapshots", "verify", "--build", out)
    assert done.returncode == 1
    assert "\\x1b[31mx\\n::error::y" in done.stderr
    assert "\x1b" not in done.stderr
    assert "\n::error::" not in done.stderr


@pytest.mark.parametrize("arguments", [["list"], ["use", "ab"], ["prune"], ["verify"]])
def test_missing_build_is_reported(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is created."""
    message = run_refused(capsys, *arguments, "--build", tmp_path / "none")
    assert (
        message
        == f"error: There is no finished build in {tmp_path}/none: run `toolcatalog build`, or name"
        " another build with --build."
    )
    assert not (tmp_path / "none").exists()
