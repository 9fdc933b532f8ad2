"""The room `fixing`: what has one right answer is mended where it stands, and nothing else is touched."""

from pathlib import Path

import pytest

from toolcatalog import checking, fixing
from toolcatalog.errors import Problem

TOOL = "toolkits/mail/MAIL_SEND/20250202_00.yaml"
HEAD = "name: Send\ndescription: Send a message.\n"
CASES = {
    "number as text": ("name: 5 # five\ndescription: x\n", 'name: "5" # five\ndescription: x\n'),
    "as it was written": ("name: 1.50\ndescription: x\n", 'name: "1.50"\ndescription: x\n'),
    "a word for a boolean": (f"{HEAD}no_auth:   'Yes'  # keep\n", f"{HEAD}no_auth:   true  # keep\n"),
    "two in a line": (
        f"{HEAD}input_parameters: {{a: {{type: string, description: 1, title: 2, examples: [x]}}}}\n",
        f'{HEAD}input_parameters: {{a: {{type: string, description: "1", title: "2", examples: [x]}}}}\n',
    ),
    "a number in quotes": (
        f"{HEAD}input_parameters:\r\n  a: {{type: array, items: {{type: string}}, minItems: '3'}}",
        f"{HEAD}input_parameters:\r\n  a: {{type: array, items: {{type: string}}, minItems: 3}}",
    ),
    "an example": (
        f"\ufeff{HEAD}input_parameters:\n  a:\n    type: string\n    examples: [true]\n",
        f'\ufeff{HEAD}input_parameters:\n  a:\n    type: string\n    examples: ["true"]\n',
    ),
    "what could be anything": (f"{HEAD}no_auth: perhaps\ntags: 5\nscopes: [a, a]\n", f"{HEAD}no_auth: perhaps\ntags: 5\nscopes: [a, a]\n"),
}


def problems(root: Path, text: str) -> list[Problem]:
    (root / TOOL).parent.mkdir(parents=True, exist_ok=True)
    (root / TOOL).write_bytes(text.encode())
    return [*checking.examine(root, TOOL).problems]


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_fixed(text: str, expected: str, tmp_path: Path) -> None:
    """Comments, order, line ends and whatever else stays; mending once more changes nothing."""
    found = fixing.fixed(text.encode(), problems(tmp_path, text))
    assert found.data.decode() == expected
    assert found.mended == sum(problem.fix is not None for problem in problems(tmp_path, text))
    again = problems(tmp_path, expected)
    assert not any(problem.fix is not None for problem in again)
    assert fixing.fixed(found.data, again) == fixing.Fixed(found.data, 0, 0)


def test_a_line_that_has_changed_is_left_alone(tmp_path: Path) -> None:
    """Between checking and mending an editor may have written."""
    found = problems(tmp_path, "name: 5\ndescription: x\n")
    assert fixing.fixed(b"name: 50\ndescription: x\n", found) == fixing.Fixed(b"name: 50\ndescription: x\n", 0, 0)
