"""Tests of `catalog.schema`; tests/data/rejects has a case for each problem."""

from typing import Any

import pytest

from toolcatalog.catalog import sample_values
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.catalog.model import (
    About,
    AuthConfig,
    Deprecation,
    MetaTool,
    Selection,
    Session,
    Toolkit,
    ToolSelection,
    ToolVersion,
)
from toolcatalog.catalog.schema import Record, validate
from toolcatalog.errors import MAX_FINDINGS_PER_FILE

NAMES = {
    "toolkit": "mail",
    "tool": "MAIL_SEND",
    "version": "20250101_00",
    "auth_config": "ac_1",
    "session": "trs_1",
}
NEEDED = {"name": "Send", "description": "Send a message."}


def of(kind: str, value: Any) -> tuple[Record | None, list[str]]:
    """The record of a value, and the rules that it breaks."""
    result, findings = validate(Document("x.yaml", Location(kind, NAMES), value, is_readable=True))
    return result, [finding.rule for finding in findings]


def tool_of(path: str = "x.yaml", **fields: Any) -> ToolVersion:
    empty: dict[str, Any] = {"input_parameters": {}, "output_parameters": {}}
    return ToolVersion(
        path=path,
        slug="MAIL_SEND",
        toolkit="mail",
        version="20250101_00",
        **{**empty, **NEEDED, **fields},
    )


WHOLE_DEPRECATION = {
    "reason": "Old.",
    "since": "2025-01-01",
    "sunset": "2026-01-01",
    "replaced_by": "MAIL_POST",
}
RECORDS: dict[str, tuple[str, Any, Record]] = {
    "catalog, least": ("catalog", {"title": "T"}, About(title="T")),
    "catalog, all": (
        "catalog",
        {
            "title": "T",
            "description": "D",
            "home": "https://h.example",
            "repository": "https://r.example/x?y#z",
        },
        About(
            title="T",
            description="D",
            home="https://h.example",
            repository="https://r.example/x?y#z",
        ),
    ),
    "toolkit, least": (
        "toolkit",
        {"name": "Mail", "logo": "https://l.example"},
        Toolkit(slug="mail", name="Mail", logo="https://l.example"),
    ),
    "toolkit, all": (
        "toolkit",
        {
            "name": "M",
            "logo": "https://l.example",
            "description": "D",
            "categories": ["a b"],
            "no_auth": True,
            "homepage": "https://h.example",
            "owners": ["@a"],
        },
        Toolkit(
            slug="mail",
            name="M",
            logo="https://l.example",
            description="D",
            categories=("a b",),
            no_auth=True,
            homepage="https://h.example",
            owners=("@a",),
        ),
    ),
    "tool, least": ("tool", NEEDED, tool_of()),
    "tool, all": (
        "tool",
        {
            **NEEDED,
            "scopes": ["https://s.example/a"],
            "tags": ["b", "a"],
            "no_auth": False,
            "deprecation": WHOLE_DEPRECATION,
            "input_parameters": {"a": {"type": "string"}},
            "output_parameters": {"b": {"type": "number"}},
        },
        tool_of(
            scopes=("https://s.example/a",),
            tags=("b", "a"),
            no_auth=False,
            deprecation=Deprecation(**WHOLE_DEPRECATION),
            input_parameters={"a": {"type": "string"}},
            output_parameters={"b": {"type": "number"}},
        ),
    ),
    "tool, deprecated without words": (
        "tool",
        {**NEEDED, "deprecation": {}},
        tool_of(deprecation=Deprecation()),
    ),
    "meta tool": (
        "meta_tool",
        {**NEEDED, "when": "manage_connections", "tags": {"$session": "toolkits"}},
        MetaTool(
            path="x.yaml",
            slug="MAIL_SEND",
            version="20250101_00",
            when="manage_connections",
            template={**NEEDED, "when": "manage_connections", "tags": {"$session": "toolkits"}},
        ),
    ),
    "auth config, least": (
        "auth_config",
        {"toolkit": "mail"},
        AuthConfig(path="x.yaml", id="ac_1", toolkit="mail"),
    ),
    "auth config, nothing granted": (
        "auth_config",
        {"toolkit": "mail", "tools": [], "scopes": []},
        AuthConfig(path="x.yaml", id="ac_1", toolkit="mail", tools=(), scopes=()),
    ),
    "session, least": (
        "session",
        {},
        Session(path="x.yaml", id="trs_1", tools={}, auth_configs={}, toolkit_versions={}),
    ),
    "session, all": (
        "session",
        {
            "project": "p",
            "user_id": "u",
            "toolkits": {"enable": ["b", "a"]},
            "tools": {
                "a": {"disable": ["X"]},
                "b": {"tags": {"enable": ["t"], "disable": ["u"]}},
                "c": {},
            },
            "tags": {"disable": ["v"]},
            "auth_configs": {"a": "ac_1"},
            "toolkit_versions": {"a": "00000000_00"},
            "manage_connections": {"enable": True},
            "meta_tools": ["Y", "X"],
        },
        Session(
            path="x.yaml",
            id="trs_1",
            project="p",
            user_id="u",
            toolkits=Selection(enable=("b", "a")),
            tools={
                "a": ToolSelection(tools=Selection(disable=("X",))),
                "b": ToolSelection(tags=Selection(enable=("t",), disable=("u",))),
                "c": ToolSelection(),
            },
            tags=Selection(disable=("v",)),
            auth_configs={"a": "ac_1"},
            toolkit_versions={"a": "00000000_00"},
            manage_connections=True,
            meta_tools=("Y", "X"),
        ),
    ),
}


@pytest.mark.parametrize(("kind", "value", "expected"), RECORDS.values(), ids=RECORDS)
def test_record_has_the_fields_of_its_file(kind: str, value: Any, expected: Record) -> None:
    """With defaults of the format; the identity is from the path."""
    assert of(kind, value) == (expected, [])


def test_toolkit_of_meta_tools_is_the_router() -> None:
    """meta_tools/toolkit.yaml has no slug in its path."""
    value = {"name": "R", "logo": "https://l.example"}
    result, _ = validate(
        Document("meta_tools/toolkit.yaml", Location("toolkit", {}), value, is_readable=True)
    )
    assert isinstance(result, Toolkit)
    assert result.slug == "router"


EVERY_KEYWORD = {
    "title": "T",
    "type": "string",
    "description": "D",
    "examples": ["ab"],
    "enum": ["ab", "cd"],
    "default": "cd",
    "format": "uuid-like",
    "pattern": r"^\w+$",
    "minLength": 0,
    "maxLength": 9,
    "nullable": True,
    "required": True,
}
FITTING: dict[str, dict[str, Any]] = {
    "every keyword of a string": EVERY_KEYWORD,
    "numbers": {
        "type": "number",
        "minimum": -1.5,
        "maximum": 1e9,
        "exclusiveMinimum": -2,
        "exclusiveMaximum": 1e10,
        "examples": [0, 1.5],
    },
    "arrays": {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 1,
        "maxItems": 2,
        "uniqueItems": True,
        "examples": [[1], [1, 2]],
    },
    "objects": {
        "type": "object",
        "properties": {"a": {"type": "string", "required": True}},
        "examples": [{"a": "x", "more": 1}],
    },
    "a closed object": {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "default": {},
    },
    "a map": {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "examples": [{"a": 1}],
    },
    "branches without a type": {
        "anyOf": [{"type": "string"}, {"type": "integer", "enum": [1]}],
        "examples": ["a", 1],
    },
    "null where nullable": {
        "type": "integer",
        "nullable": True,
        "default": None,
        "enum": [1],
        "examples": [None, 1],
    },
    "a whole float is an integer": {"type": "integer", "default": 2.0},
    "known formats": {
        "type": "string",
        "format": "date-time",
        "examples": ["2025-01-01T00:00:00Z"],
    },
}


@pytest.mark.parametrize("description", FITTING.values(), ids=FITTING)
def test_valid_descriptions_are_accepted(description: dict[str, Any]) -> None:
    """With every keyword of the format."""
    result, rules = of("tool", {**NEEDED, "input_parameters": {"a": description}})
    assert rules == []
    assert isinstance(result, ToolVersion)
    assert result.input_parameters == {"a": description}


@pytest.mark.parametrize("sample", [{"default": "mail"}, {"examples": ["mail", "chat"]}])
@pytest.mark.parametrize("nested", [False, True])
def test_sample_with_session_choices(sample: dict[str, Any], nested: bool) -> None:
    """Its type is checked, but not the choices, which are unknown yet."""
    choice = {"type": "string", "enum": {"$session": "toolkits"}, **sample}
    description = {"type": "array", "items": choice, "examples": [["mail"]]} if nested else choice
    assert of("meta_tool", {**NEEDED, "input_parameters": {"a": description}})[1] == []
    invalid = {"type": "string", "enum": {"$session": "toolkits"}, "default": 5}
    assert of("meta_tool", {**NEEDED, "input_parameters": {"a": invalid}})[1] == ["misfit-default"]


def test_problems_of_parameters_are_independent() -> None:
    """Values are checked unless the shape of their own description is invalid."""
    description = {
        "a": {"typ": "string", "default": 1},
        "b": {"type": "string", "default": 1},
        "c": {"type": "integer", "pattern": "("},
    }
    assert sorted(of("tool", {**NEEDED, "input_parameters": description})[1]) == [
        "bad-pattern",
        "misfit-default",
        "missing-key",
        "unknown-key",
    ]


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        (r"^(?=.*[A-Z])(?=.*\d).{8,64}$", "correct-Horse7battery staple"),
        (r"^[\p{L}\p{N} ]{1,64}$", "Grüße an alle 4 Kinder"),
        ("^.{1,1000}$", "a short text"),
    ],
)
def test_values_are_checked_against_patterns(pattern: str, example: str) -> None:
    """With lookaround, and repeated large sets."""
    description = {"type": "string", "pattern": pattern, "examples": [example] * 3}
    assert of("tool", {**NEEDED, "input_parameters": {"a": description}})[1] == []
    misfits = {**description, "examples": ["\n\n"] * 2}
    rules = of("tool", {**NEEDED, "input_parameters": {"a": misfits}})[1]
    assert rules == ["misfit-examples"] * 2


def test_large_pattern_is_reported() -> None:
    """With its place, also nested."""
    large = {"type": "string", "pattern": r"\p{L}{200}", "examples": ["a"]}
    for description in (large, {"type": "array", "items": large, "examples": [["a"]]}):
        value = {**NEEDED, "input_parameters": {"a": description}}
        _, (finding, *others) = validate(
            Document("x.yaml", Location("tool", NAMES), value, is_readable=True)
        )
        assert (finding.rule, finding.pointer[-1]) == ("wrong-value", "pattern")
        assert "too large" in finding.message
        assert others == []


def test_validators_of_large_schemas_are_not_kept() -> None:
    """A validator takes up to a thousand times the memory of its schema."""
    properties = {f"p{number}": {"type": "string"} for number in range(500)}
    large = {"type": "object", "properties": properties, "nullable": True, "default": {"q": 1}}
    value = {**NEEDED, "input_parameters": {"a": {**large, "additionalProperties": False}}}
    size = sample_values._cached_validator.cache_info().currsize
    _, (finding,) = validate(Document("x.yaml", Location("tool", NAMES), value, is_readable=True))
    assert finding.rule == "misfit-default"
    assert sample_values._cached_validator.cache_info().currsize == size


def test_cost_of_compiling_patterns_is_limited() -> None:
    """Many large patterns, and objects within objects that compile those within them again."""
    large = [{"type": "string", "pattern": rf"\p{{L}}{{60}}a{number}"} for number in range(500)]
    nested: dict[str, object] = {f"p{number}": large[number] for number in range(20)}
    for _ in range(12):
        nested = {"o": {"type": "object", "default": {}, "properties": nested}}
    for inputs in ({f"p{number}": large[number] for number in range(500)}, nested):
        value = {**NEEDED, "input_parameters": inputs}
        _, findings = validate(Document("x.yaml", Location("tool", NAMES), value, is_readable=True))
        assert {finding.rule for finding in findings} == {"wrong-value"}
        assert "too many or too large patterns" in findings[-1].message


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)x@[\W&&a]{0}" + r"[\W&&a]{0}" * 95,
        r"(?x)( # a comment" + "\n?i)@" + r"\pL{0}" * 150,
        "@" + r"\s{0}" * 180,
        "@" + r"\cA{0}" * 160,
    ],
    ids=["sets", "verbose", "translated", "control characters"],
)
def test_cost_of_classes_is_limited(pattern: str) -> None:
    """Each is translated in a copy of the pattern; without case, it is compared with all letters.

    A few such patterns are no problem.
    """
    for count in (1, 20):
        inputs = {
            f"p{number}": {"type": "string", "pattern": pattern.replace("@", str(number))}
            for number in range(count)
        }
        rules = of("tool", {**NEEDED, "input_parameters": inputs})[1]
        assert set(rules) == ({"wrong-value"} if count > 1 else set())


@pytest.mark.parametrize("repeats", [200, 3000])
def test_states_of_patterns_count_for_each_character(repeats: int) -> None:
    """A character may take a step per state of each pattern, also of one that is not large."""
    for size in (10, 40_000):
        patterns = [f"[01]*1[01]{{{repeats + number}}}x" for number in range(30)]
        branches = [{"type": "string", "pattern": pattern} for pattern in patterns]
        description = {"description": "A text.", "examples": ["01" * size]}
        inputs = {"a": {**description, "anyOf": [*branches, {"type": "string"}]}}
        rules = of("tool", {**NEEDED, "input_parameters": inputs})[1]
        assert rules == (["wrong-value"] if size > 10 else [])


@pytest.mark.parametrize("choice", ["anyOf", "oneOf", "nullable"])
def test_choices_of_schemas_count_for_each_character(choice: str) -> None:
    """To find what to report, a pattern in them is checked once more for each."""
    for depth in (0, 12):
        inner: dict[str, Any] = {"type": "string", "pattern": "^a*$"}
        for _ in range(depth):
            if choice == "nullable":
                inner = {"type": "object", "nullable": True, "properties": {"a": inner}}
            else:
                inner = {choice: [inner, {"type": "integer"}]}
        example: Any = "a" * 100_000
        for _ in range(depth if choice == "nullable" else 0):
            example = {"a": example}
        inputs = {"a": {"description": "A text.", "examples": [example], **inner}}
        rules = of("tool", {**NEEDED, "input_parameters": inputs})[1]
        assert rules == (["wrong-value"] if depth else [])


@pytest.mark.parametrize(
    ("value", "rule", "around"),
    [
        ({f"k{number}": 1 for number in range(5000)}, "unknown-key", "k{}"),
        ({"tags": [*range(5000), *range(5000)]}, "wrong-type", "tags/{}"),
        (
            {"input_parameters": {f"k{number}": {"type": "x"} for number in range(5000)}},
            "wrong-value",
            "input_parameters/k{}/type",
        ),
        (
            {"input_parameters": {"a": {"type": "string", "examples": [*range(5000)]}}},
            "misfit-examples",
            "input_parameters/a/examples/{}",
        ),
    ],
)
def test_number_of_findings_is_limited(value: dict[str, Any], rule: str, around: str) -> None:
    """One more than is printed, so that the report can say so."""
    _, findings = validate(
        Document("x.yaml", Location("tool", NAMES), {**NEEDED, **value}, is_readable=True)
    )
    output = [("/".join(map(str, finding.pointer)), finding.rule) for finding in findings]
    assert output == [(around.format(number), rule) for number in range(MAX_FINDINGS_PER_FILE + 1)]
