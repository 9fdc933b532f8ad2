"""The guide to add a tool, followed as a new user would."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from support.command import run_successfully, run_toolcatalog
from support.flags import flags
from support.paths import ROOT, SHIPPED_CATALOG
from toolcatalog.cli.main import cli

GUIDE = (ROOT / "docs" / "guides" / "add-a-tool.md").read_text()
PAGES = sorted(
    {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")}
    - {*(ROOT / "docs" / "reference" / "cli").glob("*.md")}  # generated from the commands
    - {ROOT / "docs" / "reference" / "cli.md"}
)


def example() -> str:
    """The tool that the guide writes."""
    result = re.search(r"(?ms)^```yaml catalog/\S+\n(.*?)^```$", GUIDE)
    assert result is not None
    return result[1]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this repository, as far as the guide needs it: the catalog, and the branch that it
    came from.
    """
    shutil.copytree(SHIPPED_CATALOG, tmp_path / "catalog")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for command in (
        "init -q",
        "add .",
        "commit -q -m start",
        "update-ref refs/remotes/origin/main HEAD",
        "switch -q -c star-repository",
    ):
        subprocess.run(
            ["git", *identity, *command.split()], cwd=tmp_path, capture_output=True, check=True
        )
    return tmp_path


def test_five_steps_add_a_valid_tool(clone: Path) -> None:
    answers = (
        "--name",
        "Star a repository",
        "--description",
        "Add a star to a repository for the connected account.",
    )
    file = (
        clone
        / run_successfully("new", "tool", "GITHUB_STAR_REPOSITORY", *answers, cwd=clone).strip()
    )
    file.write_text(example())
    checked = run_toolcatalog(
        "check",
        "--min-severity",
        "note",
        "--against",
        "origin/main",
        "--format",
        "concise",
        cwd=clone,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "GITHUB_STAR_REPOSITORY" not in checked.stdout
    assert "GITHUB_STAR_REPOSITORY" in run_successfully(
        "diff", "origin/main", "--format", "markdown", cwd=clone
    )


def test_mistakes_are_reported_with_their_place(clone: Path) -> None:
    file = clone / "catalog" / "toolkits" / "github" / "GITHUB_STAR_REPOSITORY" / "20251121_00.yaml"
    file.parent.mkdir()
    file.write_text(
        example()
        .replace("description: Account", "descripton: Account")
        .replace("required: true", "required: yes")
    )
    checked = run_toolcatalog("check", cwd=clone)
    assert checked.returncode == 1
    assert "GITHUB_STAR_REPOSITORY/20251121_00.yaml:5:25: error[unknown-key]" in checked.stdout
    assert "did you mean `description`?" in checked.stdout
    assert len(re.findall(r"20251121_00\.yaml:\d+:\d+: error", checked.stdout)) == 3


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documented_commands_and_flags_exist(page: Path) -> None:
    """`toolcatalog NAME ... --flag` in a code span or block."""
    text = page.read_text()
    spans = [
        *re.findall(r"`([^`\n]*)`", text),
        *re.findall(r"(?m)^(?:    )?(toolcatalog .*)", text),
    ]
    named = [
        words.partition("#")[0].partition(" -- ")[0].split()
        for span in spans
        if (words := span.rpartition("toolcatalog ")[2]) != span
    ]
    commands = {
        name: cli.get_command(click.Context(cli), name)
        for name in cli.list_commands(click.Context(cli))
    }
    for name, *rest in filter(None, named):
        if re.fullmatch("[a-z]+", name):
            command = commands[name]
            assert command is not None, name
            output = {word for word in rest if word.startswith("--")}
            assert output <= flags(command) | {"--help"}, (name, output)
