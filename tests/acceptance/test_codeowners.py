"""`toolcatalog codeowners`: the reviewers of each toolkit."""

import os
from pathlib import Path

import pytest

from support.command import run_successfully, run_toolcatalog
from support.paths import ROOT
from toolcatalog.catalog.model import Toolkit
from toolcatalog.cli.codeowners import contains_lines, find_unowned, render_codeowners


def toolkit(slug: str, *owners: str) -> Toolkit:
    return Toolkit(slug=slug, name=slug, logo="https://example.com/logo.svg", owners=owners)


def lines(*toolkits: Toolkit, folder: str = "catalog") -> list[str]:
    return render_codeowners(toolkits, folder).splitlines()[1:]


def test_toolkit_has_a_line_with_its_owners() -> None:
    assert lines(
        toolkit("slack", "@chat/tools"),
        toolkit("github", "@octo", "mona@example.com"),
        folder="a/catalog",
    ) == [
        "/a/catalog/toolkits/github/ @octo mona@example.com",
        "/a/catalog/toolkits/slack/ @chat/tools",
    ]


def test_meta_tools_have_their_own_folder() -> None:
    assert lines(toolkit("router", "@octo")) == ["/catalog/meta_tools/ @octo"]


@pytest.mark.parametrize(
    "word",
    [
        "octo-team",
        "the octo team",
        "@",
        "@a b",
        "@octo/",
        "a@b",
        "@octo#",
        "@x @y",
        "@-a",
        "*",
        "@a/b/c",
        "@a\u2028b",
    ],
)
def test_invalid_accounts_are_left_out(word: str) -> None:
    assert lines(toolkit("github", word)) == []
    assert find_unowned([toolkit("github", word), toolkit("slack", "@octo")]) == ["github"]
    assert lines(toolkit("github", word, "@octo", "@octo")) == ["/catalog/toolkits/github/ @octo"]


def test_other_lines_are_kept() -> None:
    result = render_codeowners([toolkit("github", "@octo")], "catalog")
    assert contains_lines(result, result)
    assert contains_lines(f"* @everybody\n\n{result}/docs/ @writers\n", result)
    assert contains_lines(result.rstrip("\n"), result)
    assert not contains_lines("", result)
    assert not contains_lines(result.replace("@octo", "@octopus"), result)
    assert not contains_lines(f"x{result}", result)


# --- the command


def catalog(folder: Path, owners: str) -> Path:
    toolkit = folder / "catalog" / "toolkits" / "github" / "toolkit.yaml"
    toolkit.parent.mkdir(parents=True)
    toolkit.write_text(f"name: GitHub\nlogo: https://example.com/logo.svg\nowners: {owners}\n")
    return toolkit


def test_command_prints_lines_and_checks_a_file(tmp_path: Path) -> None:
    catalog(tmp_path, '["@octo/tools"]')
    file = tmp_path / "CODEOWNERS"
    missing = run_toolcatalog("codeowners", "--check", "CODEOWNERS", cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "add the output of `toolcatalog codeowners`" in missing.stderr
    file.write_text(run_successfully("codeowners", cwd=tmp_path))
    assert file.read_text().splitlines()[1] == "/catalog/toolkits/github/ @octo/tools"
    assert run_successfully("codeowners", "--check", "CODEOWNERS", cwd=tmp_path) == ""


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("link", "it is a link"), ("pipe", "not a regular file"), ("large", "larger than 4 MiB")],
)
def test_file_that_may_never_end_is_not_read(kind: str, reason: str, tmp_path: Path) -> None:
    """A checkout may contain a link to a device; no link is followed."""
    catalog(tmp_path, '["@octo/tools"]')
    file = tmp_path / "CODEOWNERS"
    (tmp_path / "other").write_text("")
    if kind == "link":
        file.symlink_to("other")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.write_bytes(b"#" * ((4 << 20) + 1))
    result = run_toolcatalog("codeowners", "--check", "CODEOWNERS", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Cannot read CODEOWNERS (" in result.stderr
    assert reason in result.stderr


def test_invalid_toolkit_prints_nothing(tmp_path: Path) -> None:
    catalog(tmp_path, "[1]")
    result = run_toolcatalog("codeowners", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "catalog/toolkits/github/toolkit.yaml:3:10" in result.stderr


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("..", "is not below this folder"),
        ("nothing", "No catalog at nothing"),
        ("a b", "cannot name the folder"),
    ],
)
def test_unusable_folder_is_reported(folder: str, text: str, tmp_path: Path) -> None:
    location = tmp_path / "here"
    (location / "a b").mkdir(parents=True)
    result = run_toolcatalog("codeowners", "--catalog", folder, cwd=location)
    assert (result.returncode, result.stdout) == (2, "")
    assert text in result.stderr


def test_codeowners_of_this_repository_is_current() -> None:
    assert run_successfully("codeowners", "--check", ".github/CODEOWNERS", cwd=ROOT) == ""
