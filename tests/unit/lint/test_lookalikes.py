"""Tests of `lint.lookalikes`: the generated table is that of Unicode's confusables."""

import importlib.util
import re
import subprocess
import sys

import pytest

from support.paths import ROOT
from toolcatalog.lint.lookalikes import LETTERS


@pytest.mark.parametrize(
    "char",
    "\u0410\u0435\u0456\u03bf\u0391\u0455\u0501\uff47\U0001d41a\U0001d4d0\u13aa\ua4ee\u057d\u0261",
)
def test_letters_of_other_scripts(char: str) -> None:
    """Cyrillic, Greek, Armenian, Cherokee, Lisu, full-width and mathematical ones, and script g."""
    assert re.match(f"[{LETTERS}]", char)


@pytest.mark.parametrize(
    "char",
    "aZ\u00e9\u0131\u00df\u03b1\u03b3\u03bc\u03c3\u0394\u03a9\u0436\u0414\u044f\u05d0\u05d0\u4e2d\u3042",
)
def test_letters_that_are_fine_next_to_latin(char: str) -> None:
    """Latin letters with marks, Greek in names and units, unambiguous letters."""
    assert not re.match(f"[{LETTERS}]", char)


def test_lookalike_table_is_current() -> None:
    """The script creates it from the installed package."""
    if importlib.util.find_spec("confusable_homoglyphs") is None:
        pytest.skip("confusable-homoglyphs is not installed")
    command = [sys.executable, str(ROOT / "scripts" / "lookalikes"), "--check"]
    assert subprocess.run(command, check=False, timeout=120).returncode == 0
