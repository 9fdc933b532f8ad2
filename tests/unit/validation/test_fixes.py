"""Tests of `validation.fixes`: problems with one right answer are fixed; nothing else changes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command import run_toolcatalog
from support.profile import DEEP_PROFILE
from support.rejects import ALL
from toolcatalog.errors import Problem
from toolcatalog.validation import checker, fixes

TOOL = "toolkits/mail/MAIL_SEND/20250202_00.yaml"
HEAD = "name: Send\ndescription: Send a message.\n"
CASES = {
    "number as text": ("name: 5 # five\ndescription: x\n", 'name: "5" # five\ndescription: x\n'),
    "as it was written": ("name: 1.50\ndescription: x\n", 'name: "1.50"\ndescription: x\n'),
    "a word for a boolean": (
        f"{HEAD}no_auth:   'Yes'  # keep\n",
        f"{HEAD}no_auth:   true  # keep\n",
    ),
    "two in a line": (
        (
            f"{HEAD}input_parameters: {{a: {{type: string, description: 1, title: 2, examples: "
            f"[x]}}}}\n"
        ),
        (
            f'{HEAD}input_parameters: {{a: {{type: string, description: "1", title: "2", '
            f"examples: [x]}}}}\n"
        ),
    ),
    "two in a long line": (
        (
            f"{HEAD}input_parameters: {{a: {{type: string, description: 1, title: {'b' * 2000}}}, "
            f"c: {{type: string, description: 2, title: {'d' * 2000}}}}}\n"
        ),
        (
            f'{HEAD}input_parameters: {{a: {{type: string, description: "1", '
            f'title: {"b" * 2000}}}, c: {{type: string, description: "2", title: {"d" * 2000}}}}}\n'
        ),
    ),
    "at the end of a long line": (
        f"{HEAD}input_parameters: {{a: {{type: string, title: {'b' * 2000}, description: 1}}}}\n",
        f'{HEAD}input_parameters: {{a: {{type: string, title: {"b" * 2000}, description: "1"}}}}\n',
    ),
    "a number in quotes": (
        f"{HEAD}input_parameters:\r\n  a: {{type: array, items: {{type: string}}, minItems: '3'}}",
        f"{HEAD}input_parameters:\r\n  a: {{type: array, items: {{type: string}}, minItems: 3}}",
    ),
    "an example": (
        f"\ufeff{HEAD}input_parameters:\n  a:\n    type: string\n    examples: [true]\n",
        f'\ufeff{HEAD}input_parameters:\n  a:\n    type: string\n    examples: ["true"]\n',
    ),
    "what could be anything": (
        f"{HEAD}no_auth: perhaps\ntags: 5\nscopes: [a, a]\n",
        f"{HEAD}no_auth: perhaps\ntags: 5\nscopes: [a, a]\n",
    ),
}


def problems(root: Path, text: str) -> list[Problem]:
    (root / TOOL).parent.mkdir(parents=True, exist_ok=True)
    (root / TOOL).write_bytes(text.encode())
    return [*checker.check_file(root, TOOL).problems]


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_fixed(text: str, expected: str, tmp_path: Path) -> None:
    """Comments, order and line ends stay; a second run changes nothing."""
    result = fixes.fix_once(text.encode(), problems(tmp_path, text))
    assert result.data.decode() == expected
    assert result.fix_count == sum(problem.fix is not None for problem in problems(tmp_path, text))
    again = problems(tmp_path, expected)
    assert not any(problem.fix is not None for problem in again)
    assert fixes.fix_once(result.data, again) == fixes.FixResult(result.data, 0, 0)


def test_line_that_changed_is_not_fixed(tmp_path: Path) -> None:
    """An editor may write between check and fix."""
    result = problems(tmp_path, "name: 5\ndescription: x\n")
    assert fixes.fix_once(b"name: 50\ndescription: x\n", result) == fixes.FixResult(
        b"name: 50\ndescription: x\n", 0, 0
    )


@pytest.mark.parametrize(
    ("number", "changed"), [("5", "50"), ("1" * 900, "1" * 901)], ids=["short", "long"]
)
def test_long_line_that_changed_is_not_fixed(number: str, changed: str, tmp_path: Path) -> None:
    """A problem has only a part of the line, which must contain the value."""
    line = HEAD + "input_parameters: {a: {type: string, title: %s, description: %s}}"
    result = problems(tmp_path, line % ("b" * 2000, number))
    assert '"{}"' in [problem.fix for problem in result]
    text = (line % ("b" * 2000, changed)).encode()
    assert fixes.fix_once(text, result) == fixes.FixResult(text, 0, 0)


# Unsafe fixes

UNSAFE_CASES = {
    "a key": ("name: Send\ndescripton: x\n", "name: Send\ndescription: x\n"),
    "a key that is there already": (f"{HEAD}descripton: x\n", f"{HEAD}descripton: x\n"),
    "a type": (
        f"{HEAD}input_parameters: {{a: {{type: str, description: x}}}}\n",
        f"{HEAD}input_parameters: {{a: {{type: string, description: x}}}}\n",
    ),
    "scalars for lists": (
        f"{HEAD}tags: issues, important  # two\nscopes: chat:write\n",
        f'{HEAD}tags: [issues, important]  # two\nscopes: ["chat:write"]\n',
    ),
    "an example": (
        f"{HEAD}input_parameters:\n  a:\n    type: integer\n    examples: 5\n",
        f"{HEAD}input_parameters:\n  a:\n    type: integer\n    examples: [5]\n",
    ),
    "a text of several lines": (f"{HEAD}tags: |\n  a\n  b\n", f"{HEAD}tags: |\n  a\n  b\n"),
    "a list of types": (
        f"{HEAD}input_parameters: {{a: {{type: [string]}}}}\n",
        f"{HEAD}input_parameters: {{a: {{type: [string]}}}}\n",
    ),
}


@pytest.mark.parametrize(("text", "expected"), UNSAFE_CASES.values(), ids=UNSAFE_CASES)
def test_unsafe_fixes_need_an_option(text: str, expected: str, tmp_path: Path) -> None:

    def find(data: bytes) -> list[Problem]:
        return problems(tmp_path, data.decode())

    data = text.encode()
    assert fixes.fix_until_stable(data, find(data), find).data == data
    assert fixes.fix_until_stable(data, find(data), find, unsafe=True).data.decode() == expected


@pytest.mark.parametrize(
    ("path", "suggested"),
    [
        ("toolkits/Mail/Mail_Send/20250202_00.yml", "toolkits/mail/MAIL_SEND/20250202_00.yaml"),
        ("toolkits/mail/mail_send/20250202_00.yaml", "toolkits/mail/MAIL_SEND/20250202_00.yaml"),
        ("toolkits/Mail/toolkit.yaml", "toolkits/mail/toolkit.yaml"),
        ("meta_tools/find/20250202_00.yml", "meta_tools/FIND/20250202_00.yaml"),
        ("catalog.yml", "catalog.yaml"),
        ("sessions/trs_Base.yml", "sessions/trs_Base.yaml"),
        ("toolkits/mail/toolkit.yaml", None),
        ("toolkits/mail/MAIL_SEND/today.yml", None),
        ("notes.yml", None),
    ],
)
def test_suggested_paths(path: str, suggested: str | None) -> None:
    """Suffix and case only, and only valid paths of the catalog."""
    assert fixes.suggest_path(path) == suggested


# Once is enough


HIDDEN = (
    f"{HEAD}input_parameters:\n  a:\n    type: string # a text\n    pattern: 0\n    default: 0\n"
)


def test_hidden_problems_are_fixed_in_the_same_run(tmp_path: Path) -> None:
    """A default is checked only after its description is valid."""
    problems(tmp_path, HIDDEN)
    (tmp_path / "catalog.yaml").write_text("title: Test\n")
    out = tmp_path.parent / f"{tmp_path.name}-build"
    result = run_toolcatalog("check", "--fix", "--catalog", tmp_path, "--cache-dir", out)
    assert "Fixed 2 problems in 1 file" in result.stderr
    assert (tmp_path / TOOL).read_text() == HIDDEN.replace("pattern: 0", 'pattern: "0"').replace(
        "default: 0", 'default: "0"'
    )


FIXABLE = [case for case in ALL if (case / "catalog").exists()]


def fixed_file(root: Path, path: str) -> bytes:
    """Return a file of a catalog after one run of `check --fix`."""

    def look(data: bytes) -> list[Problem]:
        (root / path).write_bytes(data)
        return [*checker.check_file(root, path).problems]

    data = (root / path).read_bytes()
    return fixes.fix_until_stable(data, look(data), look).data


def twice(root: Path, path: str) -> tuple[bytes, bytes]:
    """Return a file of a catalog after one and after two runs."""
    once = fixed_file(root, path)
    (root / path).write_bytes(once)
    return once, fixed_file(root, path)


@pytest.mark.parametrize("rule", sorted({case.parent.name for case in FIXABLE}))
def test_fixing_twice_is_fixing_once(rule: str, tmp_path: Path) -> None:
    """For every file of the reject cases."""
    for case in FIXABLE:
        if case.parent.name == rule:
            root = Path(shutil.copytree(case / "catalog", tmp_path / case.name))
            for file in sorted(root.rglob("*.yaml")):
                once, again = twice(root, file.relative_to(root).as_posix())
                assert again == once, case
                assert [
                    one
                    for one in checker.check_file(root, file.relative_to(root).as_posix()).problems
                    if one.fix is not None
                ] == [], case


ODD = st.sampled_from(
    ["yes", "No", "true", "0", "3", "1.50", "", "x", 0, 1, 7, -3, 1.5, True, False, None]
)
KEYS = {
    "string": ["minLength", "maxLength", "pattern", "format"],
    "integer": ["minimum", "maximum"],
    "number": ["minimum", "exclusiveMaximum"],
    "boolean": [],
    "array": ["minItems", "uniqueItems"],
    "object": ["additionalProperties"],
}


@st.composite
def odd_parameter(draw: st.DrawFn) -> dict[str, Any]:
    """A parameter with values of the wrong kind here and there."""
    kind = draw(st.sampled_from([*KEYS]))
    keys = [*KEYS[kind], "description", "title", "required", "nullable", "default"]
    output = draw(st.dictionaries(st.sampled_from(keys), ODD, max_size=4))
    lists = draw(
        st.dictionaries(
            st.sampled_from(["enum", "examples"]), st.lists(ODD, min_size=1, max_size=2), max_size=2
        )
    )
    return {
        "type": kind,
        **({"items": {"type": "string"}} if kind == "array" else {}),
        **output,
        **lists,
    }


@st.composite
def odd_tool(draw: st.DrawFn) -> dict[str, Any]:
    """The value of a tool's file with values of the wrong kind here and there."""
    more = draw(
        st.dictionaries(
            st.sampled_from(["no_auth", "scopes", "tags", "deprecation"]),
            ODD | st.lists(ODD, max_size=2),
            max_size=2,
        )
    )
    inputs = draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), odd_parameter(), max_size=2))
    return {"name": draw(ODD), "description": draw(ODD), **more, "input_parameters": inputs}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog whose one tool anybody may write."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / TOOL).parent.mkdir(parents=True)
    return folder


@settings(max_examples=2_000 if DEEP_PROFILE else 40)
@given(value=odd_tool(), indent=st.sampled_from([None, 1]))
def test_fixing_any_file_twice_is_fixing_it_once(
    value: dict[str, Any], indent: int | None, root: Path
) -> None:
    """With values of wrong types, on one line or several."""
    (root / TOOL).write_text(json.dumps(value, indent=indent))
    once, again = twice(root, TOOL)
    assert again == once
