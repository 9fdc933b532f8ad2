"""Tests of `diff.tool_changes` and `diff.parameter_changes`: every change is classified."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.paths import SHIPPED_CATALOG
from support.profile import example_settings
from support.reference_model import ReferenceModel
from support.sample_arguments import sample_arguments
from support.tool_samples import TOOL, VALUES, described, parameters, tools
from toolcatalog.diff.change import KINDS, Change
from toolcatalog.diff.tool_changes import compare_tools
from toolcatalog.exports.definitions import input_schema
from toolcatalog.parameters import to_served_inputs, to_served_outputs, walk_descriptions
from toolcatalog.snapshot.format import Tool, tool_from_document

BREAKING, SCOPE, ADDITIVE, TEXT = KINDS
EMPTY = replace(TOOL, input_parameters={}, output_parameters={}, tags=())
STRING = {"type": "string"}
A_OR_B = {"type": "string", "enum": ["a", "b"]}


def of_inputs(previous: dict[str, Any], current: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Changes of inputs, by place without the word `input`."""
    return of(
        "input",
        replace(EMPTY, input_parameters=to_served_inputs(previous)),
        replace(EMPTY, input_parameters=to_served_inputs(current)),
    )


def of_outputs(previous: dict[str, Any], current: dict[str, Any]) -> list[tuple[str, str, str]]:
    return of(
        "output",
        replace(EMPTY, output_parameters=to_served_outputs(previous)),
        replace(EMPTY, output_parameters=to_served_outputs(current)),
    )


def of(side: str, previous: Tool, current: Tool) -> list[tuple[str, str, str]]:
    result = compare_tools(previous, current)
    assert all(change.location.startswith(f"{side} ") for change in result)
    return [
        (change.kind, change.location.removeprefix(f"{side} "), change.text) for change in result
    ]


# Each rule. Narrower and wider: breaking and additive for inputs, the other way round for outputs.

NARROWER = [
    ({"type": "number"}, {"type": "integer"}, "type number became integer"),
    (STRING, A_OR_B, {"input": "takes only `a`, `b` now", "output": "may be only `a`, `b` now"}),
    (
        A_OR_B,
        {**A_OR_B, "enum": ["b"]},
        {"input": "no longer takes `a`", "output": "is no longer `a`"},
    ),
    ({**STRING, "nullable": True}, STRING, "may no longer be null"),
    ({"type": "integer"}, {"type": "integer", "minimum": 1}, "has minimum 1 now"),
    ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 2}, "minimum 1 became 2"),
    (
        {"type": "integer", "maximum": 100},
        {"type": "integer", "maximum": 50},
        "maximum 100 became 50",
    ),
    (
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "exclusiveMinimum": 0.5},
        "exclusiveMinimum 0 became 0.5",
    ),
    (
        {"type": "number"},
        {"type": "number", "exclusiveMaximum": 1.5},
        "has exclusiveMaximum 1.5 now",
    ),
    (STRING, {**STRING, "minLength": 1}, "minLength 0 became 1"),
    ({**STRING, "maxLength": 9}, {**STRING, "maxLength": 8}, "maxLength 9 became 8"),
    ({"type": "array"}, {"type": "array", "minItems": 1}, "minItems 0 became 1"),
    ({"type": "array"}, {"type": "array", "maxItems": 3}, "has maxItems 3 now"),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}, "no item may repeat now"),
    ({"type": "array"}, {"type": "array", "items": STRING}, "items may no longer be anything"),
    (
        {"type": "object"},
        {"type": "object", "additionalProperties": STRING},
        "other properties may no longer be anything",
    ),
    (STRING, {**STRING, "pattern": "^a"}, "has pattern `^a` now"),
    (STRING, {**STRING, "format": "date"}, "has format `date` now"),
    (
        {"anyOf": [STRING, {"type": "integer"}]},
        {"type": "string", "description": "D"},
        "type string or integer became string",
    ),
]
WIDER = {
    "type number became integer": "type integer became number",
    "takes only `a`, `b` now": "takes other values than `a`, `b` now",
    "may be only `a`, `b` now": "may be other values than `a`, `b` now",
    "no longer takes `a`": "takes `a` now",
    "is no longer `a`": "may be `a` now, which callers may not know",
    "may no longer be null": "may now be null",
    "has minimum 1 now": "no longer has minimum 1",
    "minimum 1 became 2": "minimum 2 became 1",
    "maximum 100 became 50": "maximum 50 became 100",
    "exclusiveMinimum 0 became 0.5": "exclusiveMinimum 0.5 became 0",
    "has exclusiveMaximum 1.5 now": "no longer has exclusiveMaximum 1.5",
    "minLength 0 became 1": "minLength 1 became 0",
    "maxLength 9 became 8": "maxLength 8 became 9",
    "minItems 0 became 1": "minItems 1 became 0",
    "has maxItems 3 now": "no longer has maxItems 3",
    "no item may repeat now": "items may repeat now",
    "items may no longer be anything": "items may be anything now",
    "other properties may no longer be anything": "other properties may be anything now",
    "has pattern `^a` now": "no longer has pattern `^a`",
    "has format `date` now": "no longer has format `date`",
    "type string or integer became string": "type string became string or integer",
}


def plain(found: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [change for change in found if change[0] != TEXT]


@pytest.mark.parametrize(
    ("previous", "current", "label"), NARROWER, ids=[json.dumps(case[1]) for case in NARROWER]
)
def test_narrower_and_wider(
    previous: dict[str, Any], current: dict[str, Any], label: str | dict[str, str]
) -> None:
    """Narrower inputs are breaking and wider ones additive; for outputs it is the other way
    round.
    """
    text = label if isinstance(label, dict) else {"input": label, "output": label}
    assert plain(of_inputs({"x": previous}, {"x": current})) == [(BREAKING, "x", text["input"])]
    assert plain(of_inputs({"x": current}, {"x": previous})) == [
        (ADDITIVE, "x", WIDER[text["input"]])
    ]
    assert plain(of_outputs({"x": previous}, {"x": current})) == [(ADDITIVE, "x", text["output"])]
    assert plain(of_outputs({"x": current}, {"x": previous})) == [
        (BREAKING, "x", WIDER[text["output"]])
    ]


@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        (STRING, {"type": "integer"}, [(BREAKING, "x", "type string became integer")]),
        (
            {**STRING, "minLength": 1},
            {"type": "array", "minItems": 2, "items": STRING},
            [(BREAKING, "x", "type string became array")],
        ),
        (
            {**STRING, "pattern": "a"},
            {**STRING, "pattern": "b`"},
            [(BREAKING, "x", 'pattern `a` became `"b\\u0060"`')],
        ),
        (
            {**STRING, "format": "date"},
            {**STRING, "format": "time"},
            [(BREAKING, "x", "format `date` became `time`")],
        ),
        (
            {**STRING, "default": "1"},
            {**STRING, "default": "a"},
            [(BREAKING, "x", 'default `"1"` became `a`: it counts wherever the value is left out')],
        ),
        (
            {**STRING, "default": ""},
            STRING,
            [
                (
                    BREAKING,
                    "x",
                    'no longer has default `""`: it counts wherever the value is left out',
                )
            ],
        ),
        (
            STRING,
            {**STRING, "default": None, "nullable": True},
            [(ADDITIVE, "x", "has default null now"), (None, "x", "may now be null")],
        ),
        (
            {"type": "object"},
            {"type": "object", "additionalProperties": False},
            [(BREAKING, "x", "may no longer have other properties")],
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "additionalProperties": STRING},
            [(ADDITIVE, "x", "may have other properties now")],
        ),
        (
            {"type": "object", "additionalProperties": STRING},
            {"type": "object", "additionalProperties": {"type": "integer"}},
            [(BREAKING, "x.*", "type string became integer")],
        ),
        (
            {"type": "array", "items": STRING},
            {"type": "array", "items": {"type": "boolean"}},
            [(BREAKING, "x[]", "type string became boolean")],
        ),
        (
            {"anyOf": [STRING]},
            {"oneOf": [STRING, {"type": "integer"}]},
            [(BREAKING, "x", "type string became string or integer")],
        ),
        (
            {"anyOf": [STRING, {"type": "integer"}]},
            {"oneOf": [STRING, {"type": "integer"}]},
            [(BREAKING, "x", "is described by other alternatives")],
        ),
        ({"anyOf": [STRING]}, STRING, [(TEXT, "x", "is written in another way")]),
        (
            {"anyOf": [{"type": "boolean"}, A_OR_B, STRING]},
            {"anyOf": [STRING, {"type": "integer"}]},
            [
                (BREAKING, "x.anyOf[1]", "type boolean became integer"),
                (None, "x.anyOf[1]", "was removed: string"),
                (TEXT, "x", "anyOf is in another order"),
            ],
        ),
        (
            {"oneOf": [STRING, {"type": "integer"}]},
            {"oneOf": [{"type": "integer"}, STRING]},
            [(TEXT, "x", "oneOf is in another order")],
        ),
        (
            STRING,
            {"type": "integer", "nullable": True, "title": "T"},
            [
                (BREAKING, "x", "type string became integer"),
                (None, "x", "may now be null"),
                (TEXT, "x", "has title `T` now"),
            ],
        ),
        (
            {"anyOf": [{**STRING, "title": "A"}, {**STRING, "title": "B"}]},
            {"anyOf": [{**STRING, "title": "B"}]},
            [(None, "x.anyOf[0]", "was removed: string")],
        ),
        (
            {"type": "number", "minimum": 1, "examples": [1]},
            {"type": "number", "minimum": 1.0, "examples": [1.0]},
            [(TEXT, "x", "is written in another way")],
        ),
        (
            {"type": "number", "examples": [{"a": 1}]},
            {"type": "number", "examples": [{"a": True}]},
            [(TEXT, "x", "has other examples")],
        ),
        (
            {**A_OR_B},
            {**A_OR_B, "enum": ["b", "a"]},
            [(TEXT, "x", "lists its values in another way")],
        ),
        (
            A_OR_B,
            dict(reversed({**A_OR_B, "maxLength": 1}.items())),
            [(None, "x", "has maxLength 1 now")],
        ),
        (
            {**A_OR_B, "maxLength": 1},
            {"type": "string", "maxLength": 1, "enum": ["a", "b"]},
            [(TEXT, "x", "is written in another way")],
        ),
        (
            {
                "type": "object",
                "default": {"a": 1, "b": 2},
                "properties": {"a": STRING, "b": STRING},
            },
            {
                "type": "object",
                "default": {"b": 2, "a": 1},
                "properties": {"a": STRING, "b": STRING},
            },
            [(TEXT, "x", "is written in another way")],
        ),
        (
            {"type": "object", "properties": {"a": STRING, "b": STRING, "c": STRING}},
            {"type": "object", "properties": {"b": STRING, "a": STRING}},
            [
                (BREAKING, "x.c", "was removed"),
                (TEXT, "x", "lists its properties in another order"),
            ],
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": STRING, "b": STRING}},
            },
            {
                "type": "array",
                "items": {"type": "object", "properties": {"b": STRING, "a": STRING}},
            },
            [(TEXT, "x[]", "lists its properties in another order")],
        ),
        (
            {"anyOf": [{"type": "object", "properties": {"a": STRING, "b": STRING}}, STRING]},
            {"anyOf": [{"type": "object", "properties": {"b": STRING, "a": STRING}}, STRING]},
            [(TEXT, "x.anyOf[0]", "lists its properties in another order")],
        ),
        (
            {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"a": STRING, "b": STRING},
                },
            },
            {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"b": STRING, "a": STRING},
                },
            },
            [(TEXT, "x.*", "lists its properties in another order")],
        ),
        (
            STRING,
            {**STRING, "minLength": 0},
            [(TEXT, "x", "says minLength 0 now, as it meant before")],
        ),
        (
            {**STRING, "nullable": False},
            STRING,
            [(TEXT, "x", "no longer says nullable false, and still means it")],
        ),
        (
            STRING,
            {**STRING, "description": "D", "title": "T", "examples": ["e"]},
            [
                (TEXT, "x", "description was added"),
                (TEXT, "x", "has other examples"),
                (TEXT, "x", "has title `T` now"),
            ],
        ),
        (
            {**STRING, "description": "A"},
            {**STRING, "description": "B"},
            [(TEXT, "x", "description was reworded")],
        ),
        (
            {**STRING, "multipleOf": 2},
            {**STRING, "multipleOf": 3},
            [(BREAKING, "x", "`multipleOf` changed in a way that is not understood")],
        ),
    ],
)
def test_neither_narrower_nor_wider(
    previous: dict[str, Any], current: dict[str, Any], expected: list[tuple[str | None, str, str]]
) -> None:
    """Breaking if unsure, text if callers cannot notice."""
    for result, narrower in (
        (of_inputs({"x": previous}, {"x": current}), BREAKING),
        (of_outputs({"x": previous}, {"x": current}), ADDITIVE),
    ):
        kinds = {"may now be null": BREAKING if narrower == ADDITIVE else ADDITIVE}
        filled = [
            (kind or kinds.get(label, narrower), location, label)
            for kind, location, label in expected
        ]
        assert result == sorted(filled, key=lambda change: (KINDS.index(change[0]), change[1:]))


@pytest.mark.parametrize("at", [[], ["a"], ["a", "b"]])
def test_added_and_removed_names(at: list[str]) -> None:
    """At any level: removed and required inputs are breaking, optional ones are not."""

    def nest(inner: dict[str, Any]) -> dict[str, Any]:
        for name in reversed(at):
            inner = {name: {"type": "object", "properties": inner}}
        return inner

    nothing, optional, required = (
        nest(item) for item in ({}, {"x": STRING}, {"x": {**STRING, "required": True}})
    )
    location = ".".join([*at, "x"])
    assert plain(of_inputs(nothing, optional)) == [(ADDITIVE, location, "is new and optional")]
    assert plain(of_inputs(nothing, required)) == [(BREAKING, location, "is new and required")]
    assert of_inputs(optional, required) == [(BREAKING, location, "is required now")]
    assert of_inputs(required, optional) == [(ADDITIVE, location, "is optional now")]
    assert (
        plain(of_inputs(required, nothing))
        == plain(of_inputs(optional, nothing))
        == [(BREAKING, location, "was removed")]
    )
    assert plain(of_outputs(nothing, optional)) == [(ADDITIVE, location, "is new")]
    assert plain(of_outputs(optional, nothing)) == [(BREAKING, location, "was removed")]


def test_places_are_unambiguous() -> None:
    """Names with path characters are quoted."""
    inner = {"a.b": STRING, "": STRING, "x`": STRING, "items": STRING, "*": STRING}
    result = of_inputs(
        {"type": {"type": "object", "properties": inner}},
        {"type": {"type": "object", "properties": {}}},
    )
    assert [location for _, location, _ in result] == [
        'type.""',
        'type."*"',
        'type."a.b"',
        'type."x\\u0060"',
        "type.items",
    ]


def test_long_values_are_cut() -> None:
    """With balanced backquotes."""
    previous, current = (
        {"x": {**STRING, "enum": [f"{number}\n`" for number in range(12)]}},
        {"x": {**STRING, "enum": ["a" * 500]}},
    )
    label = " ".join(change[2] for change in of_inputs(previous, current))
    assert "and 2 more" in label
    assert f"`{'a' * 119}…`" in label
    assert "\n" not in label
    assert label.count("`") == 22


# The tool's own fields


@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        ({"name": "A"}, {"name": "B"}, [(TEXT, "name", "`A` became `B`")]),
        ({"description": "A"}, {"description": "B"}, [(TEXT, "description", "was reworded")]),
        (
            {"scopes": ("a", "b")},
            {"scopes": ("b", "c")},
            [
                (SCOPE, "scopes", "`a` was removed: it need not be granted any more"),
                (SCOPE, "scopes", "`c` was added: it must be granted now"),
            ],
        ),
        (
            {"scopes": ("a", "b")},
            {"scopes": ("b", "a")},
            [(TEXT, "scopes", "are listed in another way")],
        ),
        (
            {"tags": ("a", "important")},
            {"tags": ("a",)},
            [(TEXT, "tags", "`important` was removed")],
        ),
        (
            {"tags": ()},
            {"tags": ("readOnlyHint", "x")},
            [(TEXT, "tags", "`readOnlyHint` was added"), (TEXT, "tags", "`x` was added")],
        ),
        (
            {"tags": ("readOnlyHint",)},
            {"tags": ()},
            [(BREAKING, "tags", "`readOnlyHint` was removed: it may change something")],
        ),
        (
            {"tags": ()},
            {"tags": ("destructiveHint",)},
            [(BREAKING, "tags", "`destructiveHint` was added: it may destroy something")],
        ),
        (
            {"tags": ("destructiveHint",)},
            {"tags": ()},
            [(TEXT, "tags", "`destructiveHint` was removed")],
        ),
        (
            {"no_auth": True},
            {"no_auth": False},
            [(BREAKING, "no_auth", "is false now: the tool needs authentication")],
        ),
        (
            {"no_auth": False},
            {"no_auth": True},
            [(ADDITIVE, "no_auth", "is true now: the tool needs no authentication any more")],
        ),
        (
            {"deprecation": None},
            {"deprecation": {"reason": "Old.", "since": "", "replaced_by": "MAIL_POST"}},
            [(TEXT, "deprecation", "is new: reason `Old.`, replaced_by `MAIL_POST`")],
        ),
        (
            {"deprecation": {"reason": "Old."}},
            {"deprecation": None},
            [(TEXT, "deprecation", "was removed")],
        ),
        (
            {"deprecation": {"reason": "", "sunset": "2026-01-01"}},
            {"deprecation": {"reason": "Old.", "sunset": "2026-02-01"}},
            [
                (TEXT, "deprecation", "has reason `Old.` now"),
                (TEXT, "deprecation", "sunset `2026-01-01` became `2026-02-01`"),
            ],
        ),
        ({"version": "20250101_00"}, {"version": "20250201_00", "available_versions": ()}, []),
        (
            {"slug": "MAIL_SEND"},
            {"slug": "MAIL_POST"},
            [(BREAKING, "slug", "changed in a way that is not understood")],
        ),
    ],
)
def test_fields_of_the_tool(
    previous: dict[str, Any], current: dict[str, Any], expected: list[Change]
) -> None:
    """Names are text, scopes their own kind; two hints and auth are the contract."""
    assert compare_tools(replace(EMPTY, **previous), replace(EMPTY, **current)) == expected


def test_order_of_changes() -> None:
    """Breaking, scope, additive, text, then by place."""
    previous = replace(EMPTY, input_parameters=to_served_inputs({"b": STRING, "a": STRING}))
    current = replace(
        EMPTY,
        name="N",
        scopes=(),
        output_parameters=to_served_outputs({"o": STRING}),
        input_parameters=to_served_inputs({"c": STRING}),
    )
    assert [(change.kind, change.location) for change in compare_tools(previous, current)] == [
        (BREAKING, "input a"),
        (BREAKING, "input b"),
        (SCOPE, "scopes"),
        (ADDITIVE, "input c"),
        (ADDITIVE, "output o"),
        (TEXT, "name"),
    ]


# Whatever changes


@example_settings(15)
@given(tools(), st.randoms(use_true_random=False))
def test_another_key_order_is_text(tool: Tool, chance: random.Random) -> None:
    """It is served like that."""
    assert compare_tools(tool, copy.deepcopy(tool)) == []
    inputs = shuffled(tool.input_parameters, chance)
    result = compare_tools(tool, replace(tool, input_parameters=inputs, version="20990101_00"))
    assert {change.kind for change in result} == (
        {TEXT} if json.dumps(inputs) != json.dumps(tool.input_parameters) else set()
    )


def test_another_parameter_order() -> None:
    """Of the parameters in both; additions and removals do not count."""
    both, turned = {"a": STRING, "b": STRING}, {"b": STRING, "a": STRING}
    extra = {"a": STRING, "x": STRING, "b": STRING}
    expected = [(TEXT, "lists its parameters in another order")]
    for old, new in ((both, turned), (turned, extra)):
        previous = replace(EMPTY, input_parameters=old, output_parameters=old)
        current = replace(EMPTY, input_parameters=new, output_parameters=new)
        for location in ("input", "output"):
            results = [
                (item.kind, item.text)
                for item in compare_tools(previous, current)
                if item.location == location
            ]
            assert results == expected
    previous, current = (
        replace(EMPTY, input_parameters=both),
        replace(EMPTY, input_parameters=extra),
    )
    assert [change.location for change in compare_tools(previous, current)] == ["input x"]


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample([*value], len(value))}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


@example_settings(20)
@given(tools(), tools())
def test_every_changed_field_is_reported(previous: Tool, current: Tool) -> None:
    """In both directions."""
    for field in fields(Tool):
        if field.name not in ("version", "available_versions"):
            new = replace(previous, **{field.name: getattr(current, field.name)})
            sorts = field.name == "deprecation"  # its keys have one order in a catalog
            expected = json.dumps(getattr(previous, field.name), sort_keys=sorts) != json.dumps(
                getattr(new, field.name), sort_keys=sorts
            )
            assert (
                bool(compare_tools(previous, new)) == bool(compare_tools(new, previous)) == expected
            )


Served = Callable[[dict[str, Any]], dict[str, Any]]


@st.composite
def mutations(
    draw: st.DrawFn, served: Served = to_served_inputs, but: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Served parameters, and the same with some keywords of some descriptions, at any depth, as
    they are in another one.
    """
    previous = served(draw(parameters(but=but).filter(bool)))
    current = copy.deepcopy(previous)
    for _ in range(draw(st.integers(1, 3))):
        inside: Any = draw(st.sampled_from([item for _, item in walk_descriptions(current, ())]))
        other = served({"x": draw(described(but=but))})["x"]
        key = draw(st.sampled_from(sorted(inside.keys() | other.keys())))
        if key in other:
            inside[key] = other[key]
        elif key != "type":
            del inside[key]
    return previous, current


@example_settings(40)
@given(mutations())
def test_every_mutation_is_reported(mutation: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """At any depth of a description, in both directions."""
    previous, current = (
        replace(EMPTY, input_parameters=item, output_parameters=item) for item in mutation
    )
    differs = json.dumps(mutation[0]) != json.dumps(mutation[1])
    for old, new in ((previous, current), (current, previous)):
        assert {change.location.partition(" ")[0] for change in compare_tools(old, new)} == (
            {"input", "output"} if differs else set()
        )


TRIED = [
    "",
    "a",
    "aaaaaa",
    "bbbbbbbbb",
    "2025-01-15",
    "a@b.example",
    -5,
    -3,
    0,
    0.5,
    1,
    2,
    3,
    3.5,
    9,
    12,
    True,
    None,
    [],
    ["a"],
    ["a", "a"],
    [1, 2, 3, 4, 5],
    [None],
    [[]],
    {},
    {"a": "a"},
    {"a": 1, "b": None},
    {"a": {}},
    {"other": 1},
    {"other": "a"},
]


def near(parameters: dict[str, Any], values: list[Any]) -> Iterator[Any]:
    """Arguments most of which fit, with each value in each place."""
    document = sample_arguments(all_required(parameters))
    yield from ({}, sample_arguments(parameters), document, {**document, "other": 1})
    for name in document:
        yield {key: value for key, value in document.items() if key != name}
        yield from ({**document, name: value} for value in (*TRIED, *values))


def all_required(parameters: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(parameters)
    for _, item in walk_descriptions(result, ()):
        item["required"] = True  # type: ignore[index]
    return result


UNSAID = frozenset(["oneOf", "description", "title", "examples", "default"])


@example_settings(50)
@given(mutations(but=UNSAID), st.lists(VALUES, max_size=3))
def test_non_breaking_inputs_accept_the_same_values(
    mutation: tuple[dict[str, Any], dict[str, Any]], values: list[Any]
) -> None:
    """By a validator; except the name of a new optional input."""
    previous, current = mutation
    result = compare_tools(
        replace(EMPTY, input_parameters=previous), replace(EMPTY, input_parameters=current)
    )
    if BREAKING in {change.kind for change in result} or any(
        change.text == "is new and optional" for change in result
    ):
        return
    old, new = gates(previous, current)
    assert [
        value
        for value in (*near(previous, values), *near(current, values))
        if old.is_valid(value) and not new.is_valid(value)
    ] == []


@example_settings(40)
@given(mutations(to_served_outputs, UNSAID | {"required"}), st.lists(VALUES, max_size=3))
def test_non_breaking_outputs_have_the_same_values(
    mutation: tuple[dict[str, Any], dict[str, Any]], values: list[Any]
) -> None:
    """By a validator; except new names."""
    previous, current = mutation
    result = compare_tools(
        replace(EMPTY, output_parameters=previous), replace(EMPTY, output_parameters=current)
    )
    names = {"is new", "may have other properties now"}
    if BREAKING in {change.kind for change in result} or names & {change.text for change in result}:
        return
    old, new = gates(previous, current)
    assert [
        value
        for value in (*near(previous, values), *near(current, values))
        if new.is_valid(value) and not old.is_valid(value)
    ] == []


def gates(*parameters: dict[str, Any]) -> list[jsonschema_rs.Draft202012Validator]:
    return [
        jsonschema_rs.Draft202012Validator(input_schema(parameter), validate_formats=True)
        for parameter in parameters
    ]


def test_shipped_versions_have_changes_of_every_kind() -> None:
    """In both directions, and none is unknown."""
    results = []
    for entries in ReferenceModel(SHIPPED_CATALOG).tools.values():
        for previous, current in pairwise(
            tool_from_document(json.loads(entry.body), None) for entry in entries
        ):
            there, back = compare_tools(previous, current), compare_tools(current, previous)
            assert {change.location for change in there} == {change.location for change in back}
            results += there
    assert {change.kind for change in results} == {*KINDS}
    assert [change for change in results if "not understood" in change.text] == []


def test_places_have_a_largest_length() -> None:
    """Of thousands of changes within objects with long names; both ends are kept."""
    leaves: dict[str, Any] = {f"leaf{number}": STRING for number in range(20)}
    for number in range(12):
        wrapped: dict[str, Any] = {"type": "object", "properties": leaves}
        leaves = {
            f"{number}" + "`" * 190: wrapped,
            "list": {"type": "array", "items": wrapped},
            "branches": {"anyOf": [wrapped]},
            "others": {"type": "object", "additionalProperties": wrapped},
        } if number == 11 else {f"{number}" + "`" * 190: wrapped}  # fmt: skip
    emptied = copy.deepcopy(leaves)
    for _, description in [*walk_descriptions(emptied, ())]:
        if "leaf0" in description.get("properties", ()):
            description["properties"] = {}  # type: ignore[index]
    changes = of_inputs(leaves, emptied)
    assert len(changes) == 80
    assert max(len(place) for _, place, _ in changes) <= 200
    assert all(re.search(r"\.leaf\d+$", place) for _, place, _ in changes)
    assert all("…" in place for _, place, _ in changes)
