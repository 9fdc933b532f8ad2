"""Problems at a terminal: source lines, carets and colors."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.cells import cell_len

from support.command import run_toolcatalog
from toolcatalog.cli.output import format_problem
from toolcatalog.errors import Problem


def look(
    excerpt: str, column: int, length: int = 1, available: int = 60, line: int = 12
) -> tuple[str, str]:
    """The source line and the line with the carets, from the first character of the source line
    on.
    """
    problem = Problem(
        path="x.yaml",
        line=line,
        column=column,
        rule="r",
        message="m",
        excerpt=excerpt,
        length=length,
    )
    _, _, source, carets, *_ = "".join(
        text for text, _ in format_problem(problem, available)
    ).split("\n")
    assert cell_len(source) <= available
    gutter = f" {line} | "
    assert source.startswith(gutter)
    assert carets.startswith(f" {' ' * len(str(line))} | ")
    return source.removeprefix(gutter), carets[len(gutter) :]


def test_complete_problem() -> None:
    """Place, rule, message, source with a caret, expectation and help."""
    problem = Problem(
        path="catalog/x.yaml",
        line=9,
        column=7,
        rule="wrong-type",
        message="found the number `5`",
        expected="a name",
        help='put it in quotes: "5"',
        excerpt="name: 5",
    )
    assert "".join(text for text, _ in format_problem(problem)) == (
        "catalog/x.yaml:9:7: error[wrong-type] found the number `5`\n"
        "   |\n"
        " 9 | name: 5\n"
        "   |       ^\n"
        "   = expected: a name\n"
        '   = help: put it in quotes: "5"\n'
    )


def test_unknown_parts_are_left_out() -> None:
    """Without source, expectation or help there is one line."""
    problem = Problem(
        path="catalog/x.yaml",
        line=1,
        column=1,
        rule="file-link",
        message="a link that leaves the catalog",
    )
    assert (
        "".join(text for text, _ in format_problem(problem))
        == "catalog/x.yaml:1:1: error[file-link] a link that leaves the catalog\n"
    )


@pytest.mark.parametrize(
    ("excerpt", "column", "length", "source", "carets"),
    [
        ("name: hello", 7, 5, "name: hello", "      ^^^^^"),
        ("a: \tb", 5, 1, "a:  b", "    ^"),
        ("名前: 日本 x", 5, 2, "名前: 日本 x", "      ^^^^"),
        ("名前: 日本 x", 8, 1, "名前: 日本 x", "           ^"),
        ("e\u0301: x", 5, 1, "e\u0301: x", "   ^"),
        ("a: \x1b[31m\u202eb", 4, 1, "a: \ufffd[31m\ufffdb", "   ^"),
        ("a:", 3, 1, "a:", "  ^"),
        ("a: [b", 4, 30, "a: [b", "   ^^"),
    ],
)
def test_carets_are_aligned(
    excerpt: str, column: int, length: int, source: str, carets: str
) -> None:
    """After tabs, wide and combining characters and escapes; one caret at the end of a line."""
    assert look(excerpt, column, length) == (source, carets)


@pytest.mark.parametrize("excerpt", ["x" * 500, "日" * 500, "日x" * 250])
@pytest.mark.parametrize("column", [1, 30, 250, 499, 500, 501])
@pytest.mark.parametrize("length", [1, 7, 400])
def test_long_lines_are_cut_around_the_place(excerpt: str, column: int, length: int) -> None:
    """With ellipses and a caret."""
    source, carets = look(excerpt, column, length)
    assert "^" in carets
    assert cell_len(carets) <= 60
    # a third of the 54 cells that the gutter leaves
    assert source.startswith("…") == (cell_len(excerpt[: column - 1]) > 18)
    assert source.endswith("…") or column + length > 440
    assert cell_len(source) > 30


def test_fitting_line_is_not_cut() -> None:
    assert look("x" * 54, 54, available=60) == ("x" * 54, " " * 53 + "^")
    assert look("x" * 55, 1, available=60)[0] == "x" * 53 + "…"
    assert look("x" * 55, 55, available=60)[0] == "…" + "x" * 53


def run_in_terminal(catalog: Path, columns: int, env: Mapping[str, str]) -> str:
    """Return what `check` writes to a terminal of this width."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "toolcatalog", "check", "--catalog", str(catalog)]
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **env}
    for name in {"NO_COLOR", "FORCE_COLOR", "CI"} - {*env}:
        settings.pop(name, None)
    with subprocess.Popen(
        command, stdin=child, stdout=child, stderr=child, env=settings, close_fds=True
    ) as process:
        os.close(child)
        content = b""
        try:
            while part := os.read(parent, 4096):
                content += part
        except OSError:
            pass  # this is how Linux says that the other end is closed
    os.close(parent)
    assert process.returncode == 1
    return content.decode()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "catalog.yaml").write_text(f"titel: {'x' * 300}\n")
    return tmp_path / "catalog"


COLOUR = re.compile(r"\x1b\[(?:1;)?3[0-9]m")


def test_colors_at_a_terminal(broken: Path) -> None:
    """Source lines fit the window, so that carets stay aligned."""
    content = run_in_terminal(broken, 72, {})
    assert COLOUR.search(content)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", content).replace("\r", "")
    assert "catalog/catalog.yaml:1:1: error[unknown-key] unknown key `titel`" in plain
    (source,) = {line for line in plain.split("\n") if line.startswith(" 1 | titel: x")}
    assert len(source) == 72
    assert source.endswith("…")


def test_no_color_disables_colors(broken: Path) -> None:
    content = run_in_terminal(broken, 72, {"NO_COLOR": "1"})
    assert "error" in content
    assert not COLOUR.search(content)


def test_pipe_gets_plain_text_on_standard_error(broken: Path) -> None:
    result = run_toolcatalog("check", "--catalog", broken)
    assert result.returncode == 1
    assert "\x1b" not in result.stdout
    assert " 1 | titel: xxx" in result.stdout
    assert result.stdout.endswith("2 errors in 1 file, of 1 file read.\n")
