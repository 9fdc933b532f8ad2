"""Tests of `lint.portability`: values just below and above the limits of providers."""

from typing import Any

import pytest

from support.models import make_tool
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.lint import portability
from toolcatalog.lint.views import ToolView

TEXT: dict[str, Any] = {"type": "string"}


def taking(**inputs: Any) -> ToolVersion:
    return make_tool("MAIL_SEND", input_parameters=inputs)


def check(item: ToolVersion) -> list[str]:
    return [
        finding.rule for lint in portability.TOOL_RULES for finding in lint.check(ToolView(item))
    ]


@pytest.mark.parametrize(
    ("slug", "unusual"), [("7MAIL_SEND", True), ("-MAIL", True), ("_MAIL", False), ("M7", False)]
)
def test_first_character_of_a_slug(slug: str, unusual: bool) -> None:
    """A letter or `_`."""
    assert check(make_tool(slug)) == (["slug-start"] if unusual else [])


@pytest.mark.parametrize(
    ("name", "unusual"),
    [
        ("a.b-c_D9", False),
        ("x" * 64, False),
        ("x" * 65, True),
        ("$top", True),
        ("filter[id]", True),
        ("größe", True),
        ("a b", True),
        ("a\n", True),
    ],
)
def test_parameter_names(name: str, unusual: bool) -> None:
    """At every level of the inputs, not of the outputs."""
    nested = {
        "type": "object",
        "properties": {
            "in": {"type": "array", "items": {"type": "object", "properties": {name: TEXT}}}
        },
    }
    for item in (taking(**{name: TEXT}), taking(a=nested)):
        assert check(item) == (["parameter-name"] if unusual else [])
    assert check(make_tool("MAIL_SEND", output_parameters={name: TEXT})) == []


def nested(levels: int) -> dict[str, Any]:
    return TEXT if levels == 1 else {"type": "object", "properties": {"in": nested(levels - 1)}}


def test_depth() -> None:
    """Five nested objects; lists do not count; reported once."""
    assert check(taking(a=nested(5))) == []
    assert check(taking(a=nested(6), b=nested(7))) == ["nesting-deep"]
    assert check(taking(a={"type": "array", "items": {"type": "array", "items": nested(5)}})) == []
    (finding,) = portability.check_nesting_depth(ToolView(taking(a=nested(8))))
    assert finding.pointer == ("input_parameters", "a", *("properties", "in") * 5)


def test_number_of_inputs() -> None:
    """A hundred names at all levels."""
    count = {f"p{number}": {"type": "array", "items": TEXT} for number in range(99)}
    assert check(taking(**count, more={"type": "object", "properties": {}})) == []
    assert check(taking(**count, more={"type": "object", "properties": {"one": TEXT}})) == [
        "parameters-many"
    ]


def test_definition_size() -> None:
    """Two thousand tokens of four bytes, with the description."""
    frame = len(b'{"a":{"type":"string","description":""}}')
    fits = make_tool(
        "MAIL_SEND",
        description="x" * 1000,
        input_parameters={"a": {**TEXT, "description": "x" * (7000 - frame)}},
    )
    over = make_tool("MAIL_SEND", description="x" * 1001, input_parameters=fits.input_parameters)
    assert [check(fits), check(over)] == [[], ["definition-large"]]
    assert (
        check(
            make_tool("MAIL_SEND", output_parameters=fits.input_parameters, description="x" * 1001)
        )
        == []
    )


def enum(count: int, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "enum": [*range(count)]}


def test_enums() -> None:
    """250 values in one and 500 in all; only strings for a string type."""
    assert check(taking(a=enum(250), b=enum(250))) == []
    assert check(taking(a=enum(251))) == ["enum-large"]
    assert check(taking(a=enum(250), b=enum(250), c=enum(1))) == ["enum-large"]
    assert (
        check(taking(a=enum(2, "integer"), b={"type": "array", "items": enum(2, "number")}))
        == ["enum-not-text"] * 2
    )
    assert check(taking(a={"anyOf": [TEXT], "enum": ["x"]})) == []


def test_arrays_have_items() -> None:
    """Also nested ones."""
    assert check(taking(a={"type": "array", "items": {"type": "array"}})) == ["array-items"]
    assert check(taking(a={"type": "array", "items": TEXT})) == []


@pytest.mark.parametrize(
    ("pattern", "unusual"),
    [
        (r"^refs/(?:heads|tags)/.*$", ""),
        (r"^\(?=\d{3}[)]?\w\b$", ""),
        (r"[(?=!]", ""),
        (r"[\](?!]x", ""),
        (r"\\1", ""),
        (r"a(?=b)", "ahead"),
        (r"a(?!b)", "ahead"),
        (r"\\(?=b)", "ahead"),
        (r"(?<=a)b", "behind"),
        (r"(?<!a)b", "behind"),
        (r"(?<year>\d+)", "named group"),
        (r"(?P<year>\d+)", "named group"),
        (r"(?i)abc", "flag"),
        (r"^[^\p{L}]$", "Unicode"),
        (r"\P{Lu}", "Unicode"),
        (r"(a)\1", "reference"),
        (r"\Aa\Z", "anchor"),
    ],
)
def test_patterns(pattern: str, unusual: str) -> None:
    """Escapes and brackets are no groups."""
    results = [*portability.check_patterns(ToolView(taking(a={**TEXT, "pattern": pattern})))]
    assert [unusual in finding.message for finding in results] == ([True] if unusual else [])


def test_formats() -> None:
    """Supported ones pass at each place."""
    assert check(taking(a={**TEXT, "format": "date-time"}, b={**TEXT, "format": "uri"})) == [
        "format-rare"
    ]
