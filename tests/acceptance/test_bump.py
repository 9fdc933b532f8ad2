"""`toolcatalog bump`: the next version of a tool, copied from its newest one."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from support.command import run_toolcatalog
from support.paths import SHIPPED_CATALOG
from support.terminal import run_in_terminal
from toolcatalog.cli.main import main

OLD = b"\xef\xbb\xbf# mine\r\nname: A # a\r\ndescription: B\r\ndeprecation: {}"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a tool with two versions; the working directory contains its catalog."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "catalog" / "toolkits" / "a" / "A_DO"
    folder.mkdir(parents=True)
    (folder.parents[2] / "catalog.yaml").write_text("title: A\n")
    (folder.parent / "toolkit.yaml").write_text("name: A\nlogo: https://example.com/a.png\n")
    (folder / "20240101_00.yaml").write_text("name: A\ndescription: A\n")
    (folder / "20250101_03.yaml").write_bytes(OLD)
    return folder


def days() -> str:
    return f"{datetime.now().astimezone():%Y%m%d}"


def test_bump_copies_the_newest_version(tool: Path) -> None:
    """Byte for byte; standard output has only the path, standard error the next steps."""
    previous = days()
    result = run_toolcatalog("bump", "A_DO")
    path = Path(result.stdout.strip())
    assert result.returncode == 0
    assert path.as_posix() in {
        f"catalog/toolkits/a/A_DO/{day}_00.yaml" for day in (previous, days())
    }
    assert path.read_bytes() == OLD
    assert f"toolcatalog diff A_DO@20250101_03 A_DO@{path.stem}" in result.stderr
    assert run_toolcatalog("check", "--format", "concise").returncode == 0
    assert sorted(file.name for file in tool.iterdir()) == [
        "20240101_00.yaml",
        "20250101_03.yaml",
        path.name,
    ]


def test_bump_after_todays_version(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A version of today or later is followed by the next one; `--version` must be newer."""
    for text, result in (
        ([], None),
        (["--version", "29990101_99"], "29990101_99"),
        ([], "29990102_00"),
        ([], "29990102_01"),
    ):
        assert main(["bump", "A_DO", *text]) == 0
        path = Path(capsys.readouterr().out.strip())
        assert result in (None, path.stem)
        assert max(tool.iterdir()).name == path.name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["A_D0"], "There is no tool A_D0 in catalog: did you mean A_DO?"),
        (
            ["ZZZZZ"],
            (
                "There is no tool ZZZZZ in catalog: look up its slug in the catalog, or add it with"
                " `toolcatalog new tool`."
            ),
        ),
        (["../x"], "There is no tool ../x in catalog:"),
        (
            ["A_DO", "--version", "20250101_03"],
            (
                "A_DO has version 20250101_03, and 20250101_03 is not newer: leave --version out,"
                " or give a newer one."
            ),
        ),
        (
            ["A_DO", "--version", "2025"],
            "`2025` is not a version: it needs eight digits, `_` and two digits, such as ",
        ),
        (["A_DO", "--catalog", "none"], "No catalog at none:"),
    ],
)
def test_errors_are_one_sentence(
    tool: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """Exit code 2, and nothing is written."""
    assert main(["bump", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert len([*tool.iterdir()]) == 2


def test_last_possible_version_cannot_be_bumped(
    tool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(tool / "20250101_03.yaml", tool / "99999999_99.yaml")
    assert main(["bump", "A_DO"]) == 2
    assert "No version is newer than 99999999_99 of A_DO" in capsys.readouterr().err


def test_symlink_out_of_the_catalog_is_not_followed(
    tool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tool / "20260101_00.yaml").symlink_to("/etc/hostname")
    assert main(["bump", "A_DO"]) == 2
    assert "a link that leaves the catalog" in capsys.readouterr().err


def test_editor_opens_only_at_a_terminal(tool: Path) -> None:
    editor = tool.parents[3] / "editor"
    editor.write_text('#!/bin/sh\necho "name: edited" > "$1"\n')
    editor.chmod(0o755)
    terminal = run_in_terminal(
        ["bump", "A_DO"], [], tool.parents[3], {"VISUAL": "", "EDITOR": str(editor)}
    )
    assert terminal.code == 0
    assert (tool / Path(terminal.out.strip()).name).read_text() == "name: edited\n"
    assert (
        run_toolcatalog(
            "bump", "A_DO", "--version", "29990101_00", env={"EDITOR": str(editor)}
        ).returncode
        == 0
    )
    assert (tool / "29990101_00.yaml").read_text() == "name: edited\n"
    (tool / "29990101_00.yaml").write_bytes(OLD)
    assert (
        run_toolcatalog(
            "bump", "A_DO", "--version", "29990101_01", env={"EDITOR": str(editor)}
        ).returncode
        == 0
    )
    assert (tool / "29990101_01.yaml").read_bytes() == OLD


def test_meta_tool_can_be_bumped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SHIPPED_CATALOG, tmp_path / "catalog")
    folder = next(path for path in (tmp_path / "catalog" / "meta_tools").iterdir() if path.is_dir())
    newest = max(folder.iterdir()).read_bytes()
    assert main(["bump", folder.name, "--catalog", str(tmp_path / "catalog")]) == 0
    assert Path(capsys.readouterr().out.strip()).read_bytes() == newest


def test_completion_offers_slugs(tool: Path) -> None:
    """In upper or lower case."""
    for typed_so_far, offered in (("a_", "A_DO"), ("B", "")):
        environment = {
            "_TOOLCATALOG_COMPLETE": "bash_complete",
            "COMP_WORDS": f"toolcatalog bump {typed_so_far}",
            "COMP_CWORD": "2",
        }
        result = run_toolcatalog(env=environment, cwd=tool.parents[3])
        assert result.stdout.strip() == (f"plain,{offered}" if offered else "")
