"""Documents whose tables name tests: which tests they name, and which of those are not there."""

import ast
import re

from running import ROOT


def named_in(document: str) -> list[tuple[str, str]]:
    """The tests that a text names as `file::test`."""
    return re.findall(r"`(test_\w+)::(test_\w+)`", document)


def missing(document: str) -> list[str]:
    """Those of them that are not there."""
    return [
        f"{file}::{test}" for file, test in named_in(document) if test not in _functions_of(file)
    ]


def rows(document: str) -> list[list[str]]:
    """The cells of each row of each table, heads and rules left out."""
    lines = [
        line
        for block in re.findall(r"(?m)(?:^\|.*\n?)+", document)
        for line in block.splitlines()[2:]
    ]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def _functions_of(file: str) -> set[str]:
    path = ROOT / "tests" / f"{file}.py"
    body = ast.parse(path.read_text()).body if path.is_file() else []
    return {one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
