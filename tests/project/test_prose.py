"""The prose linter finds what it is for, and the repository has no problems."""

import shutil
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT

COMMAND = '''"""A module."""

import click


@click.command("mend")
def command() -> None:
    """Mend the catalog."""
    raise click.UsageError("Nobody is there.")


def helper() -> str:
    """Begin anew: a docstring that no user reads."""
    return f"beside {command}"
'''
PAGE = """# A page

Whoever reads this, reads a [link](https://example.com/whoever) and `code beside code`.

```sh
toolcatalog mend anew
```

| cell |
|---|
| {cell} |
"""


def run(folder: Path) -> tuple[int, list[str]]:
    result = subprocess.run(
        [ROOT / "scripts" / "prose", folder], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    return result.returncode, result.stdout.splitlines()


def test_repository_has_no_problems() -> None:
    """Docs, messages, help texts and templates follow the style."""
    assert run(ROOT) == (0, ["prose: no problems"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src" / "package" / "templates").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    return tmp_path


def test_banned_words_are_reported(project: Path) -> None:
    """Once, with their line; code, links and docstrings are ignored."""
    (project / "src/package/command.py").write_text(COMMAND)
    (project / "src/package/templates/page.html").write_text("<p>\n<b>all is well</b> {{ mend }}")
    (project / "docs/page.md").write_text(PAGE.format(cell="short"))
    code, lines = run(project)
    assert code == 1
    assert [line.partition(": write")[0] for line in lines] == [
        "docs/page.md:3: 'Whoever'",
        "src/package/command.py:14: 'beside'",
        "src/package/command.py:8: 'Mend'",
        "src/package/command.py:9: 'Nobody'",
        "src/package/templates/page.html:2: 'all is well'",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("word " * 41, "docs/page.md:1: a sentence of 41 words: split it"),
        ("w" * 60 + " " + "w" * 60, "docs/page.md:1: 121 characters: wrap the line"),
        ("x\n" * 251, "docs/page.md:1: 251 lines: split the page"),
        (PAGE.format(cell="c " * 101), "docs/page.md:11: a table cell of 204 characters"),
    ],
)
def test_layout_problems_are_reported(text: str, problem: str, project: Path) -> None:
    """Long sentences, lines, cells and pages."""
    (project / "docs/page.md").write_text(text)
    code, lines = run(project)
    assert code == 1
    assert any(line.startswith(problem) for line in lines), lines


def test_passive_voice_is_a_hint(project: Path) -> None:
    """`--hints` prints it, and the exit code stays 0."""
    (project / "README.md").write_text("The file is written by the build.\n")
    assert run(project) == (0, ["prose: no problems"])
    result = subprocess.run(
        [ROOT / "scripts" / "prose", "--hints", project],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("README.md:1: hint: 'is written' may be passive")


def test_clean_page_exits_with_0(project: Path) -> None:
    (project / "README.md").write_text("A short sentence.\n")
    assert run(project) == (0, ["prose: no problems"])


def test_script_needs_only_the_standard_library() -> None:
    """It runs with any Python 3.11 before anything is installed."""
    python = shutil.which("python3")
    assert python
    result = subprocess.run([python, "-I", ROOT / "scripts" / "prose", "--help"], check=False)
    assert result.returncode == 0
