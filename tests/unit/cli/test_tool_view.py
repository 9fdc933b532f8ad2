"""Tests of `cli.tool_view`: complete text without terminal escapes."""

from dataclasses import replace
from typing import Any

import pytest

from toolcatalog.cli import tool_view
from toolcatalog.exports import definitions
from toolcatalog.snapshot.format import Tool, Toolkit

KIT = Toolkit(
    slug="a",
    name="Kit A",
    logo="https://a.example/l.png",
    description="About A.",
    categories=("x",),
    no_auth=False,
    homepage="https://a.example",
    owners=("me",),
    versions=("20240101_00", "20250101_00"),
)
INPUTS: dict[str, Any] = {
    "free": {
        "type": "string",
        "description": "",
        "required": False,
        "nullable": True,
        "default": None,
    },
    "must": {
        "type": "integer",
        "description": "A count.\nOf things.",
        "required": True,
        "minimum": 1,
        "enum": [1, 2],
        "examples": [1],
    },
    "deep": {
        "type": "object",
        "description": "Fields.",
        "required": False,
        "properties": {
            "in": {
                "type": "array",
                "description": "",
                "required": True,
                "items": {"type": "string", "description": "One."},
            }
        },
        "additionalProperties": False,
    },
    "either": {
        "type": "string",
        "description": "",
        "required": False,
        "anyOf": [{"type": "string", "description": "As text."}],
    },
}
TOOL = Tool(
    slug="A_DO",
    toolkit="a",
    version="20250101_00",
    available_versions=("20240101_00", "20250101_00"),
    name="Do it",
    description="Does it.\n\nWell.",
    scopes=("s",),
    tags=("important", "t"),
    no_auth=True,
    deprecation=None,
    input_parameters=INPUTS,
    output_parameters={},
)


def text(lines: tool_view.Lines) -> str:
    return "\n".join("".join(piece for piece, _ in line) for line in lines)


def test_tool() -> None:
    """Required inputs first, parents before children."""
    assert text(tool_view.format_tool(TOOL, KIT, ["https://b.example/x"])) == (
        "A_DO  20250101_00\n"
        "Do it  Kit A\n"
        "[important] [no auth]\n"
        "\n"
        "Does it.\n"
        "\n"
        "Well.\n"
        "\n"
        "Toolkit     a\n"
        "Scopes      s\n"
        "Tags        important, t\n"
        "Auth        none needed\n"
        "Versions    20250101_00, 20240101_00\n"
        f"Tokens      about {definitions.estimate_tokens(TOOL)} of a model's context\n"
        "\n"
        "Inputs\n"
        "├── must  integer, required\n"
        "│       A count.\n"
        "│       Of things.\n"
        "│       limits: minimum 1\n"
        "│       one of: 1, 2\n"
        "│       examples: 1\n"
        "├── free  string or null\n"
        "│       default: null\n"
        "├── deep  object\n"
        "│   │   Fields.\n"
        "│   │   no other properties\n"
        "│   └── in  array, required\n"
        "│       └── each item  string\n"
        "│               One.\n"
        "└── either  string\n"
        "    └── any of  string\n"
        "            As text.\n"
        "\n"
        "Outputs  not described\n"
        "\n"
        "https://b.example/x"
    )


@pytest.mark.parametrize(
    ("message", "displayed"),
    [
        ({"reason": "", "since": "", "sunset": "", "replaced_by": ""}, "\nDeprecated.\n\n"),
        (
            {"reason": "Old.", "since": "2025-01-01", "sunset": "2026-01-01", "replaced_by": "B"},
            "\nDeprecated since 2025-01-01, until 2026-01-01. Use B instead.\nOld.\n\n",
        ),
    ],
)
def test_deprecated_tool(message: dict[str, str], displayed: str) -> None:
    """A badge and the reason."""
    result = text(tool_view.format_tool(replace(TOOL, deprecation=message), KIT))
    assert "\n[deprecated] [important] [no auth]\n" in result
    assert displayed in result


def test_toolkit() -> None:
    """A list of tools with badges."""
    rows: list[dict[str, Any]] = [
        {"slug": "A_DO", "name": "Do it", "deprecation": None},
        {"slug": "A_UNDO", "name": "Undo it", "deprecation": {}},
    ]
    assert (
        text(tool_view.format_toolkit(KIT, "20250101_00", rows))
        == "a  20250101_00\nKit A\n\nAbout A.\n\nCategories  x\nOwners      me\nHomepage   "
        " https://a.example\nVersions    20250101_00, 20240101_00\nTools       2\n\nA_DO    Do"
        " it\nA_UNDO  Undo it  deprecated"
    )


def test_catalog_texts_are_escaped() -> None:
    """Terminal escapes, line breaks and invisible characters."""
    evil = "a\x1b[31m\u202eb\rc"
    tool = replace(
        TOOL,
        name=evil,
        description=evil,
        scopes=(evil,),
        tags=(evil,),
        deprecation={"reason": evil, "since": evil, "sunset": evil, "replaced_by": "B"},
        input_parameters={
            evil: {
                "type": "string",
                "description": evil,
                "default": evil,
                "examples": [evil],
                "enum": [evil],
                "pattern": evil,
            }
        },
    )
    displayed = text(tool_view.format_tool(tool, replace(KIT, name=evil)))
    assert all(char.isprintable() or char == "\n" for char in displayed)
    assert "U+001B" in displayed
    assert "U+202E" in displayed
    displayed = text(
        tool_view.format_toolkit(
            replace(KIT, name=evil, description=evil, owners=(evil,)),
            "v",
            [{"slug": "A", "name": evil, "deprecation": None}],
        )
    )
    assert all(char.isprintable() or char == "\n" for char in displayed)


def test_long_texts_are_wrapped_in_their_branch() -> None:
    """If there is a width."""
    long = "word " * 60
    tool = replace(
        TOOL,
        description=long,
        input_parameters={"a": {"type": "string", "description": long, "required": True}},
    )
    lines = text(tool_view.format_tool(tool, KIT, width=60)).splitlines()
    assert max(map(len, lines)) <= 60
    assert sum(line.startswith("        word") for line in lines) > 5
    assert max(map(len, text(tool_view.format_tool(tool, KIT)).splitlines())) > 250


def test_many_values_are_counted() -> None:
    tool = replace(
        TOOL, input_parameters={"a": {"type": "integer", "description": "", "enum": [*range(1000)]}}
    )
    (line,) = (
        line for line in text(tool_view.format_tool(tool, KIT)).splitlines() if "one of" in line
    )
    assert len(line) < 400
    assert line.endswith(f", ... ({1000 - line.count(','):,} more)")


def test_slugs_and_versions_of_a_damaged_build_are_printable() -> None:
    """Their forms are checked when a build writes them, and not when it is shown."""
    hostile = "\x1b[31m\n::error::x"
    toolkit = replace(KIT, slug=hostile, versions=(hostile,))
    row = {"slug": hostile, "name": hostile, "deprecation": None}
    lines = [*tool_view.format_toolkit(toolkit, hostile, [row])]
    assert all(text.isprintable() for line in lines for text, _ in line)
