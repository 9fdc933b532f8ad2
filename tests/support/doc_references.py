"""References to tests in documents, and those that do not exist."""

import ast
import re

from support.paths import ROOT


def find_test_references(document: str) -> list[tuple[str, str]]:
    """The tests that a text names as `file::test`."""
    return re.findall(r"`([\w/]*test_\w+)::(test_\w+)`", document)


def find_missing_tests(document: str) -> list[str]:
    """Those of them that are not there."""
    return [
        f"{file}::{test}"
        for file, test in find_test_references(document)
        if test not in _list_functions(file)
    ]


def parse_table_rows(document: str) -> list[list[str]]:
    """The cells of each row of each table, heads and rules left out."""
    lines = [
        line
        for block in re.findall(r"(?m)(?:^\|.*\n?)+", document)
        for line in block.splitlines()[2:]
    ]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def _list_functions(file: str) -> set[str]:
    path = ROOT / "tests" / f"{file}.py"
    body = ast.parse(path.read_text()).body if path.is_file() else []
    return {item.name for item in body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}
