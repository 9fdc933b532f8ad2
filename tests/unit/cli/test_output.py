"""Terminal output: text of files and servers is no command to a terminal or to GitHub Actions."""

from collections.abc import Callable

import pytest

from toolcatalog.cli import output

HOSTILE = "a\x1b]0;x\x07\n::error::b\r\x9b2J\u202e"
FAMILY = "\U0001f468\u200d\U0001f469"  # two emoji with a joiner between them


@pytest.mark.parametrize(
    "print_text",
    [
        output.print_message,
        output.print_warning,
        output.print_error,
        lambda text: output.print_lines([[(text, "bold"), (" end", "")]]),
        lambda text: output.print_traceback(ValueError(text)),
    ],
)
def test_hostile_text_is_printable(
    print_text: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    print_text(HOSTILE)
    lines = "".join(capsys.readouterr()).removesuffix("\n").split("\n")
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert "\\n::error::b" in lines[0]


def test_lines_keep_joiners_of_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_lines([[(FAMILY, "")], []])
    assert capsys.readouterr().out == f"{FAMILY}\n\n"


def test_error_may_have_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_error("First.\nSecond.\n  ::set-output::x")
    assert capsys.readouterr().err == "error: First.\nSecond.\\n  ::set-output::x\n"
