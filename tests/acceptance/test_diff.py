"""`toolcatalog diff`: versions, revisions and builds, in three formats."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.catalogs import generate_catalog
from support.command import run_successfully, run_toolcatalog
from support.git import CLEAN, TOOL, commit, create_repository, run_git, write_tool
from toolcatalog.cli.main import main
from toolcatalog.snapshot.format import MANIFEST

NEEDY = TOOL + "input_parameters:\n  to: {type: string, description: Whom., required: true}\n"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CLEAN.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed catalog, from the folder of whose repository commands are run."""
    result = create_repository(tmp_path / "repo")
    write_tool(result, "A_DO", text=TOOL)
    write_tool(result, "A_SEE", text=TOOL)
    commit(tmp_path / "repo")
    monkeypatch.chdir(tmp_path / "repo")
    return result


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that succeeds prints; nothing on standard error."""
    assert main(["diff", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def run_refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one sentence of a command that fails; standard output is empty."""
    assert main(["diff", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix("error: ")


# Revisions


def test_working_tree_against_a_revision(catalog: Path) -> None:
    """Committed changes and others, the most severe first."""
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    write_tool(catalog, "A_SEE").unlink()
    write_tool(catalog, "A_NEW", text=TOOL)
    result = run_toolcatalog("diff", "main", cwd=catalog.parent)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "a\n"
        "  A_SEE  removed\n"
        "    breaking  tool  was removed\n"
        "  A_DO  version 20260101_00, after 20250101_00\n"
        "    breaking  input to  is new and required\n"
        "  A_NEW  added\n"
        "    additive  tool  is new\n"
        "\n"
        "1 removed, 1 new version, 1 added. Changes: 2 breaking, 1 additive.\n"
    )


@pytest.mark.parametrize(
    ("new_tool", "fail_on", "code"),
    [
        (NEEDY, "breaking", 1),
        (TOOL + "tags: [b]\n", "breaking", 0),
        (TOOL + "tags: [b]\n", "any", 1),
        ("", "any", 0),
    ],
)
def test_fail_on(
    catalog: Path, capsys: pytest.CaptureFixture[str], new_tool: str, fail_on: str, code: int
) -> None:
    """The exit code is 1 if there is a change of that kind."""
    if new_tool:
        write_tool(catalog, "A_DO", "20260101_00", new_tool)
    arguments = ["diff", "main", "--catalog", str(catalog), "--fail-on", fail_on]
    assert main(arguments) == code, capsys.readouterr()


def test_two_revisions(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ignores the working tree."""
    write_tool(catalog, "A_DO", text=TOOL + "deprecation: {reason: Old.}\n")
    commit(catalog.parent)
    write_tool(catalog, "A_SEE").unlink()
    assert (
        run(capsys, "HEAD~1", "HEAD")
        == "a\n  A_DO  version 20250101_00 deprecated\n    text      deprecation  is new: reason"
        " `Old.`\n\n1 deprecated. Changes: 1 text.\n"
    )
    assert (
        "A_DO  version 20250101_00 has another deprecation\n    text      deprecation  was "
        "removed" in run(capsys, "HEAD", "HEAD~1")
    )
    assert run(capsys, "HEAD", "HEAD") == "No change.\n"


def test_incomparable_tools_are_counted(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And are no error."""
    write_tool(catalog, "A_DO", text=TOOL + "colour: red\n")
    (catalog / "toolkits" / "a" / "stray.txt").write_text("x")
    output = run(capsys, "main")
    assert "A_DO  version 20250101_00 not compared: after: line 3: " in output
    assert "toolkits/a/stray.txt  not compared: after: no file is expected here" in output
    assert output.endswith("2 not compared. Changes: none.\n")


def test_catalog_missing_in_the_revision(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (catalog.parent / "other").mkdir()
    assert (
        run_refused(capsys, "main", "HEAD", "--catalog", "other")
        == "There is no catalog at other in main or HEAD: name its folder with --catalog.\n"
    )


def test_number_of_git_calls_is_constant(tmp_path: Path) -> None:
    """For any number of tools and differences."""
    catalog = generate_catalog(tmp_path / "catalog", 300)
    run_git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    commit(tmp_path)
    for number in range(10):
        write_tool(catalog, f"KIT0_DO_{number * 3}", text=TOOL, toolkit="kit0")
    commit(tmp_path)
    trace = tmp_path / "trace"
    run_successfully("diff", "HEAD~1", "HEAD", cwd=tmp_path, env={"GIT_TRACE": str(trace)})
    assert 0 < trace.read_text().count("built-in: git") <= 14


# Versions


def test_two_versions(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SLUG@VERSION, or SLUG for the newest; one argument is compared with the newest, or the newest
    with the one before.
    """
    write_tool(catalog, "A_DO", "20250202_00", TOOL.replace("Does", "Can do"))
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    document = run(capsys, "A_DO@20250101_00", "A_DO")
    assert (
        "A_DO  version 20260101_00, after 20250101_00\n    breaking  input to  is new and"
        " required\n" in document
    )
    assert (
        document
        == run(capsys, "A_DO@20250101_00", "A_DO@")
        == run(capsys, "A_DO@20250101_00")
        == run(capsys, "A_DO@20250101_00", "A_DO@20260101_00")
    )
    assert (
        run(capsys, "A_DO")
        == run(capsys, "A_DO@")
        == run(capsys, "A_DO@20250202_00", "A_DO@20260101_00")
    )
    assert "input to  was removed" in run(capsys, "A_DO", "A_DO@20250101_00")
    assert run(capsys, "A_DO", "A_DO") == "No change.\n"


def test_incomparable_versions(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_refused(capsys, "A_DO@20200101_00", "A_DO")
        == "A_DO has no version 20200101_00: it has 20250101_00.\n"
    )
    assert run_refused(capsys, "A_DO", "A_SEE").startswith("A_DO and A_SEE are two tools: ")
    assert (
        run_refused(capsys, "A_DO")
        == "A_DO has one version only, 20250101_00: there is none to compare it with.\n"
    )
    write_tool(catalog, "A_DO", "20260101_00", TOOL + "colour: red\n")
    assert "A_DO/20260101_00.yaml cannot be compared (line 3: " in run_refused(capsys, "A_DO")


# Builds


def test_two_builds(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Build folders, snapshot folders or both; unchanged files are not read."""
    toolkits = catalog / "toolkits"
    shutil.copytree(toolkits / "a", toolkits / "b")
    for slug in ("A_DO", "A_SEE"):
        (toolkits / "b" / slug).rename(toolkits / "b" / slug.replace("A_", "B_"))
    run_successfully("build", "--no-site", "--out", "old", cwd=catalog.parent)
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    write_tool(catalog, "A_SEE", text=TOOL + "deprecation: {sunset: 2027-01-01}\n")
    (catalog / "catalog.yaml").write_text("title: Larger\n")
    run_successfully("build", "--no-site", "--out", "new", cwd=catalog.parent)
    output = run(capsys, "old", "new")
    assert [line.strip() for line in output.splitlines()] == [
        "a",
        "A_DO  version 20260101_00, after 20250101_00",
        "breaking  input to  is new and required",
        "A_SEE  version 20250101_00 deprecated",
        "text      deprecation  is new: sunset `2027-01-01`",
        "",
        "other files",
        "catalog.yaml  changed",
        "text      title  `Small` became `Larger`",
        "",
        "1 changed in place, 1 new version, 1 deprecated. Changes: 1 breaking, 2 text.",
    ]
    inner = [str(Path(name, "current").resolve()) for name in ("old", "new")]
    assert run(capsys, *inner) == run(capsys, "old", inner[1]) == output
    assert run(capsys, "new", "new") == "No change.\n"
    assert "A_DO  version 20260101_00 removed\n    breaking  version  was removed" in run(
        capsys, "new", "old"
    )
    assert run_refused(capsys, "old") == "old is a build: name the build to compare it with, too.\n"


def test_damaged_build_is_refused(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_successfully("build", "--no-site", "--out", "old", cwd=catalog.parent)
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    run_successfully("build", "--no-site", "--out", "new", cwd=catalog.parent)
    index = Path("new/current/toolkits/a/20260101_00.json")
    data = index.read_bytes()
    index.write_bytes(data.replace(b"Does it.", b"Does IT."))
    assert "toolkits/a/20260101_00.json has other bytes than were written" in run_refused(
        capsys, "old", "new"
    )
    index.unlink()
    assert "(toolkits/a/20260101_00.json: No such file or directory)" in run_refused(
        capsys, "old", "new"
    )
    index.write_bytes(data)
    manifest = Path("new/current") / MANIFEST
    manifest.write_bytes(manifest.read_bytes().replace(b'"format":4', b'"format":3'))
    assert "has format 3, this program reads 4" in run_refused(capsys, "old", "new")


# Telling them apart


@pytest.mark.usefixtures("catalog")
def test_unknown_target_error_lists_attempts(capsys: pytest.CaptureFixture[str]) -> None:
    tried = (
        "cannot be compared: no version of a tool (as SLUG@VERSION), no folder of a"
        " build, and no git revision. "
    )
    assert run_refused(capsys, "nope").startswith(f"nope {tried}Git knows no revision `nope` in ")
    assert run_refused(capsys, "main", "B_DO@").startswith(f"B_DO@ {tried}")
    assert run_refused(capsys, "--", "-x").startswith(f"-x {tried}")
    assert run_refused(capsys, "main", "").startswith(f"An empty name {tried}")
    assert (
        run_refused(capsys, "main", "A_DO")
        == "main is a git revision, A_DO is a tool: name two of one kind.\n"
    )


def test_outside_of_a_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions work without git; revisions do not."""
    catalog = tmp_path / "catalog"
    write_tool(catalog, "A_DO", text=TOOL)
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    monkeypatch.chdir(tmp_path)
    assert "is new and required" in run(capsys, "A_DO")
    assert run_refused(capsys, "main").endswith(
        "catalog is in no git repository, so it has no revisions: name one that is with --catalog,"
        " or `git init`.\n"
    )


def test_ambiguous_name_is_refused(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error says how to disambiguate; the other argument may decide it."""
    run_successfully("build", "--no-site", "--out", "build", cwd=catalog.parent)
    run_git(catalog.parent, "branch", "build")
    run_git(catalog.parent, "branch", "A_DO")
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    assert run_refused(capsys, "build", "build").startswith(
        "build is a build and a git revision: say `SLUG@` "
    )
    assert run_refused(capsys, "A_DO").startswith("A_DO is a tool and a git revision: say `SLUG@` ")
    for item in (
        ("./build", "build"),
        ("build", "main"),
        ("refs/heads/build", "build"),
        ("A_DO", "main"),
    ):
        assert run(capsys, *item) == "No change.\n"
    assert "is new and required" in run(capsys, "A_DO@")
    assert "is new and required" in run(capsys, "refs/heads/A_DO")


# Forms


def test_markdown_and_json_formats(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    assert (
        run(capsys, "main", "--format", "markdown")
        == "**1 new version. Changes: 1 breaking.**\n\nFrom `main` to `the working tree`.\n\n####"
        " Toolkit `a`\n\n- `A_DO` version 20260101_00, after 20250101_00\n  - **breaking**"
        " `input to` is new and required\n"
    )
    output = json.loads(run(capsys, "main", "--format", "json"))
    assert output["totals"]["by_kind"] == {"breaking": 1, "scope": 0, "additive": 0, "text": 0}
    (entry,) = output["entries"]
    assert entry["changes"] == [
        {"kind": "breaking", "place": "input to", "what": "is new and required"}
    ]
    assert (entry["what"], entry["tool"], entry["version"], entry["compared_with"]) == (
        "new version",
        "A_DO",
        "20260101_00",
        "20250101_00",
    )


def test_catalog_texts_cannot_move_the_cursor(
    catalog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tool(
        catalog,
        "A_DO",
        "20260101_00",
        'name: "\\e[2J\\u202e"\ndescription: Does it.\nscopes: ["a\\u2028b"]\n',
    )
    for output_format in ("text", "markdown"):
        assert all(
            char.isprintable() or char == "\n"
            for char in run(capsys, "main", "--format", output_format)
        )


@pytest.mark.parametrize(("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors_only_at_a_terminal(catalog: Path, extra: dict[str, str], coloured: bool) -> None:
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    assert "\x1b" not in run_successfully("diff", "main", cwd=catalog.parent)
    actual, reference = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
        "TERM": "xterm-256color",
        **extra,
    }
    command = [sys.executable, "-m", "toolcatalog", "diff", "main"]
    with subprocess.Popen(
        command, stdout=reference, env=environment, cwd=catalog.parent
    ) as process:
        assert process.wait(timeout=60) == 0
    os.close(reference)
    displayed = os.read(actual, 65536)
    os.close(actual)
    assert b"is new and required" in displayed
    assert (b"\x1b[31m" in displayed) == coloured
