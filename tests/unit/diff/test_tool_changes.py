"""What changed between two versions of a tool: each rule, both sides, and that no change is ever
left untold.
"""

import copy
import json
import random
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
from support.tool_samples import TOOL, VALUES, described, parameters, tools
from toolcatalog.diff.change import KINDS, Change
from toolcatalog.diff.tool_changes import compare_tools
from toolcatalog.exports.definitions import input_schema, sample_arguments
from toolcatalog.parameters import to_served_inputs, to_served_outputs, walk_descriptions
from toolcatalog.snapshot.format import Tool, tool_from_document

BREAKING, SCOPE, ADDITIVE, TEXT = KINDS
EMPTY = replace(TOOL, input_parameters={}, output_parameters={}, tags=())
STRING = {"type": "string"}
A_OR_B = {"type": "string", "enum": ["a", "b"]}


def of_inputs(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Changes of inputs, by place without the word `input`."""
    return of(
        "input",
        replace(EMPTY, input_parameters=to_served_inputs(before)),
        replace(EMPTY, input_parameters=to_served_inputs(after)),
    )


def of_outputs(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    return of(
        "output",
        replace(EMPTY, output_parameters=to_served_outputs(before)),
        replace(EMPTY, output_parameters=to_served_outputs(after)),
    )


def of(side: str, before: Tool, after: Tool) -> list[tuple[str, str, str]]:
    found = compare_tools(before, after)
    assert all(change.location.startswith(f"{side} ") for change in found)
    return [
        (change.kind, change.location.removeprefix(f"{side} "), change.text) for change in found
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
    ("before", "after", "what"), NARROWER, ids=[json.dumps(case[1]) for case in NARROWER]
)
def test_what_narrows_and_what_widens(
    before: dict[str, Any], after: dict[str, Any], what: str | dict[str, str]
) -> None:
    """To take less is breaking and to take more additive; to answer less is additive and to answer
    more breaking.
    """
    said = what if isinstance(what, dict) else {"input": what, "output": what}
    assert plain(of_inputs({"x": before}, {"x": after})) == [(BREAKING, "x", said["input"])]
    assert plain(of_inputs({"x": after}, {"x": before})) == [(ADDITIVE, "x", WIDER[said["input"]])]
    assert plain(of_outputs({"x": before}, {"x": after})) == [(ADDITIVE, "x", said["output"])]
    assert plain(of_outputs({"x": after}, {"x": before})) == [
        (BREAKING, "x", WIDER[said["output"]])
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (STRING, {"type": "integer"}, [(BREAKING, "x", "type string became integer")]),
        ({**STRING, "minLength": 1}, {"type": "array", "minItems": 2, "items": STRING}, [(BREAKING, "x", "type string became array")]),
        ({**STRING, "pattern": "a"}, {**STRING, "pattern": "b`"}, [(BREAKING, "x", 'pattern `a` became `"b\\u0060"`')]),
        ({**STRING, "format": "date"}, {**STRING, "format": "time"}, [(BREAKING, "x", "format `date` became `time`")]),
        ({**STRING, "default": "1"}, {**STRING, "default": "a"}, [(BREAKING, "x", 'default `"1"` became `a`: it counts wherever the value is left out')]),
        ({**STRING, "default": ""}, STRING, [(BREAKING, "x", 'no longer has default `""`: it counts wherever the value is left out')]),
        (STRING, {**STRING, "default": None, "nullable": True}, [(ADDITIVE, "x", "has default null now"), (None, "x", "may now be null")]),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}, [(BREAKING, "x", "may no longer have other properties")]),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "additionalProperties": STRING},
            [(ADDITIVE, "x", "may have other properties now")],
        ),
        ({"type": "object", "additionalProperties": STRING}, {"type": "object", "additionalProperties": {"type": "integer"}}, [(BREAKING, "x.*", "type string became integer")]),
        ({"type": "array", "items": STRING}, {"type": "array", "items": {"type": "boolean"}}, [(BREAKING, "x[]", "type string became boolean")]),
        ({"anyOf": [STRING]}, {"oneOf": [STRING, {"type": "integer"}]}, [(BREAKING, "x", "type string became string or integer")]),
        ({"anyOf": [STRING, {"type": "integer"}]}, {"oneOf": [STRING, {"type": "integer"}]}, [(BREAKING, "x", "is described by other alternatives")]),
        ({"anyOf": [STRING]}, STRING, [(TEXT, "x", "is written in another way")]),
        (
            {"anyOf": [{"type": "boolean"}, A_OR_B, STRING]},
            {"anyOf": [STRING, {"type": "integer"}]},
            [(BREAKING, "x.anyOf[1]", "type boolean became integer"), (None, "x.anyOf[1]", "was removed: string"), (TEXT, "x", "anyOf is in another order")],
        ),
        ({"oneOf": [STRING, {"type": "integer"}]}, {"oneOf": [{"type": "integer"}, STRING]}, [(TEXT, "x", "oneOf is in another order")]),
        (STRING, {"type": "integer", "nullable": True, "title": "T"}, [(BREAKING, "x", "type string became integer"), (None, "x", "may now be null"), (TEXT, "x", "has title `T` now")]),
        ({"anyOf": [{**STRING, "title": "A"}, {**STRING, "title": "B"}]}, {"anyOf": [{**STRING, "title": "B"}]}, [(None, "x.anyOf[0]", "was removed: string")]),
        ({"type": "number", "minimum": 1, "examples": [1]}, {"type": "number", "minimum": 1.0, "examples": [1.0]}, [(TEXT, "x", "is written in another way")]),
        ({"type": "number", "examples": [{"a": 1}]}, {"type": "number", "examples": [{"a": True}]}, [(TEXT, "x", "has other examples")]),
        ({**A_OR_B}, {**A_OR_B, "enum": ["b", "a"]}, [(TEXT, "x", "lists its values in another way")]),
        (A_OR_B, dict(reversed({**A_OR_B, "maxLength": 1}.items())), [(None, "x", "has maxLength 1 now")]),
        ({**A_OR_B, "maxLength": 1}, {"type": "string", "maxLength": 1, "enum": ["a", "b"]}, [(TEXT, "x", "is written in another way")]),
        (
            {"type": "object", "default": {"a": 1, "b": 2}, "properties": {"a": STRING, "b": STRING}},
            {"type": "object", "default": {"b": 2, "a": 1}, "properties": {"a": STRING, "b": STRING}},
            [(TEXT, "x", "is written in another way")],
        ),
        (
            {"type": "object", "properties": {"a": STRING, "b": STRING, "c": STRING}},
            {"type": "object", "properties": {"b": STRING, "a": STRING}},
            [(BREAKING, "x.c", "was removed"), (TEXT, "x", "lists its properties in another order")],
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": STRING, "b": STRING}}},
            {"type": "array", "items": {"type": "object", "properties": {"b": STRING, "a": STRING}}},
            [(TEXT, "x[]", "lists its properties in another order")],
        ),
        (
            {"anyOf": [{"type": "object", "properties": {"a": STRING, "b": STRING}}, STRING]},
            {"anyOf": [{"type": "object", "properties": {"b": STRING, "a": STRING}}, STRING]},
            [(TEXT, "x.anyOf[0]", "lists its properties in another order")],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING, "b": STRING}}},
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": STRING, "a": STRING}}},
            [(TEXT, "x.*", "lists its properties in another order")],
        ),
        (STRING, {**STRING, "minLength": 0}, [(TEXT, "x", "says minLength 0 now, as it meant before")]),
        ({**STRING, "nullable": False}, STRING, [(TEXT, "x", "no longer says nullable false, and still means it")]),
        (STRING, {**STRING, "description": "D", "title": "T", "examples": ["e"]}, [(TEXT, "x", "description was added"), (TEXT, "x", "has other examples"), (TEXT, "x", "has title `T` now")]),
        ({**STRING, "description": "A"}, {**STRING, "description": "B"}, [(TEXT, "x", "description was reworded")]),
        ({**STRING, "multipleOf": 2}, {**STRING, "multipleOf": 3}, [(BREAKING, "x", "`multipleOf` changed in a way that is not understood")]),
    ],
)  # fmt: skip
def test_what_is_neither(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str | None, str, str]]
) -> None:
    """What cannot be told to be narrower or wider is breaking on both sides, and what callers do
    not feel is text. None: as the side goes.
    """
    for found, narrower in (
        (of_inputs({"x": before}, {"x": after}), BREAKING),
        (of_outputs({"x": before}, {"x": after}), ADDITIVE),
    ):
        kinds = {"may now be null": BREAKING if narrower == ADDITIVE else ADDITIVE}
        filled = [
            (kind or kinds.get(what, narrower), place, what) for kind, place, what in expected
        ]
        assert found == sorted(filled, key=lambda change: (KINDS.index(change[0]), change[1:]))


@pytest.mark.parametrize("at", [[], ["a"], ["a", "b"]])
def test_names_that_come_and_go(at: list[str]) -> None:
    """At every level: an input that goes or must now be there is breaking, an optional one that
    comes is not.
    """

    def within(inner: dict[str, Any]) -> dict[str, Any]:
        for name in reversed(at):
            inner = {name: {"type": "object", "properties": inner}}
        return inner

    nothing, optional, required = (
        within(one) for one in ({}, {"x": STRING}, {"x": {**STRING, "required": True}})
    )
    place = ".".join([*at, "x"])
    assert plain(of_inputs(nothing, optional)) == [(ADDITIVE, place, "is new and optional")]
    assert plain(of_inputs(nothing, required)) == [(BREAKING, place, "is new and required")]
    assert of_inputs(optional, required) == [(BREAKING, place, "is required now")]
    assert of_inputs(required, optional) == [(ADDITIVE, place, "is optional now")]
    assert (
        plain(of_inputs(required, nothing))
        == plain(of_inputs(optional, nothing))
        == [(BREAKING, place, "was removed")]
    )
    assert plain(of_outputs(nothing, optional)) == [(ADDITIVE, place, "is new")]
    assert plain(of_outputs(optional, nothing)) == [(BREAKING, place, "was removed")]


def test_places_cannot_be_mistaken() -> None:
    """A name that holds what places are made of is quoted; a name like a keyword is a name."""
    inner = {"a.b": STRING, "": STRING, "x`": STRING, "items": STRING, "*": STRING}
    found = of_inputs(
        {"type": {"type": "object", "properties": inner}},
        {"type": {"type": "object", "properties": {}}},
    )
    assert [place for _, place, _ in found] == [
        'type.""',
        'type."*"',
        'type."a.b"',
        'type."x\\u0060"',
        "type.items",
    ]


def test_long_values_are_cut() -> None:
    """A sentence stays one line, and backquotes in it pair."""
    before, after = (
        {"x": {**STRING, "enum": [f"{number}\n`" for number in range(12)]}},
        {"x": {**STRING, "enum": ["a" * 500]}},
    )
    what = " ".join(change[2] for change in of_inputs(before, after))
    assert "and 2 more" in what
    assert f"`{'a' * 119}…`" in what
    assert "\n" not in what
    assert what.count("`") == 22


# The tool's own fields


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"name": "A"}, {"name": "B"}, [(TEXT, "name", "`A` became `B`")]),
        ({"description": "A"}, {"description": "B"}, [(TEXT, "description", "was reworded")]),
        ({"scopes": ("a", "b")}, {"scopes": ("b", "c")}, [(SCOPE, "scopes", "`a` was removed: it need not be granted any more"), (SCOPE, "scopes", "`c` was added: it must be granted now")]),
        ({"scopes": ("a", "b")}, {"scopes": ("b", "a")}, [(TEXT, "scopes", "are listed in another way")]),
        ({"tags": ("a", "important")}, {"tags": ("a",)}, [(TEXT, "tags", "`important` was removed")]),
        ({"tags": ()}, {"tags": ("readOnlyHint", "x")}, [(TEXT, "tags", "`readOnlyHint` was added"), (TEXT, "tags", "`x` was added")]),
        ({"tags": ("readOnlyHint",)}, {"tags": ()}, [(BREAKING, "tags", "`readOnlyHint` was removed: it may change something")]),
        ({"tags": ()}, {"tags": ("destructiveHint",)}, [(BREAKING, "tags", "`destructiveHint` was added: it may destroy something")]),
        ({"tags": ("destructiveHint",)}, {"tags": ()}, [(TEXT, "tags", "`destructiveHint` was removed")]),
        ({"no_auth": True}, {"no_auth": False}, [(BREAKING, "no_auth", "is false now: the tool needs authentication")]),
        ({"no_auth": False}, {"no_auth": True}, [(ADDITIVE, "no_auth", "is true now: the tool needs no authentication any more")]),
        ({"deprecation": None}, {"deprecation": {"reason": "Old.", "since": "", "replaced_by": "MAIL_POST"}}, [(TEXT, "deprecation", "is new: reason `Old.`, replaced_by `MAIL_POST`")]),
        ({"deprecation": {"reason": "Old."}}, {"deprecation": None}, [(TEXT, "deprecation", "was taken back")]),
        (
            {"deprecation": {"reason": "", "sunset": "2026-01-01"}},
            {"deprecation": {"reason": "Old.", "sunset": "2026-02-01"}},
            [(TEXT, "deprecation", "has reason `Old.` now"), (TEXT, "deprecation", "sunset `2026-01-01` became `2026-02-01`")],
        ),
        ({"version": "20250101_00"}, {"version": "20250201_00", "available_versions": ()}, []),
        ({"slug": "MAIL_SEND"}, {"slug": "MAIL_POST"}, [(BREAKING, "slug", "changed in a way that is not understood")]),
    ],
)  # fmt: skip
def test_fields_of_the_tool(
    before: dict[str, Any], after: dict[str, Any], expected: list[Change]
) -> None:
    """Words are text, scopes are their own kind, and two hints and the need of authentication are
    the contract.
    """
    assert compare_tools(replace(EMPTY, **before), replace(EMPTY, **after)) == expected


def test_the_order() -> None:
    """Breaking, scope, additive, text; by place within each."""
    before = replace(EMPTY, input_parameters=to_served_inputs({"b": STRING, "a": STRING}))
    after = replace(
        EMPTY,
        name="N",
        scopes=(),
        output_parameters=to_served_outputs({"o": STRING}),
        input_parameters=to_served_inputs({"c": STRING}),
    )
    assert [(change.kind, change.location) for change in compare_tools(before, after)] == [
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
def test_nothing_where_nothing_changed(tool: Tool, chance: random.Random) -> None:
    """Where only the order of names is another, that is told as a text: it is served so."""
    assert compare_tools(tool, copy.deepcopy(tool)) == []
    inputs = shuffled(tool.input_parameters, chance)
    found = compare_tools(tool, replace(tool, input_parameters=inputs, version="20990101_00"))
    assert {change.kind for change in found} == (
        {TEXT} if json.dumps(inputs) != json.dumps(tool.input_parameters) else set()
    )


def test_parameters_in_another_order() -> None:
    """Of those that stay: one that comes or goes between them is no other order of theirs."""
    both, turned = {"a": STRING, "b": STRING}, {"b": STRING, "a": STRING}
    more = {"a": STRING, "x": STRING, "b": STRING}
    expected = [(TEXT, "lists its parameters in another order")]
    for old, new in ((both, turned), (turned, more)):
        before = replace(EMPTY, input_parameters=old, output_parameters=old)
        after = replace(EMPTY, input_parameters=new, output_parameters=new)
        for place in ("input", "output"):
            found = [
                (one.kind, one.text)
                for one in compare_tools(before, after)
                if one.location == place
            ]
            assert found == expected
    before, after = replace(EMPTY, input_parameters=both), replace(EMPTY, input_parameters=more)
    assert [change.location for change in compare_tools(before, after)] == ["input x"]


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample([*value], len(value))}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


@example_settings(20)
@given(tools(), tools())
def test_no_change_is_left_untold(before: Tool, after: Tool) -> None:
    """Two tools that differ in any field have a change there, whichever is the older one."""
    for field in fields(Tool):
        if field.name not in ("version", "available_versions"):
            new = replace(before, **{field.name: getattr(after, field.name)})
            sorts = field.name == "deprecation"  # its keys have one order in a catalog
            expected = json.dumps(getattr(before, field.name), sort_keys=sorts) != json.dumps(
                getattr(new, field.name), sort_keys=sorts
            )
            assert bool(compare_tools(before, new)) == bool(compare_tools(new, before)) == expected


Served = Callable[[dict[str, Any]], dict[str, Any]]


@st.composite
def mutations(
    draw: st.DrawFn, served: Served = to_served_inputs, but: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Served parameters, and the same with some keywords of some descriptions, at any depth, as
    they are in another one.
    """
    before = served(draw(parameters(but=but).filter(bool)))
    after = copy.deepcopy(before)
    for _ in range(draw(st.integers(1, 3))):
        inside: Any = draw(st.sampled_from([one for _, one in walk_descriptions(after, ())]))
        other = served({"x": draw(described(but=but))})["x"]
        key = draw(st.sampled_from(sorted(inside.keys() | other.keys())))
        if key in other:
            inside[key] = other[key]
        elif key != "type":
            del inside[key]
    return before, after


@example_settings(40)
@given(mutations())
def test_no_mutation_is_left_untold(mutation: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Whatever is other within a description, at whatever depth, is told from both ends."""
    before, after = (
        replace(EMPTY, input_parameters=one, output_parameters=one) for one in mutation
    )
    differs = json.dumps(mutation[0]) != json.dumps(mutation[1])
    for old, new in ((before, after), (after, before)):
        assert {change.location.partition(" ")[0] for change in compare_tools(old, new)} == (
            {"input", "output"} if differs else set()
        )


TRIED = [
    "", "a", "aaaaaa", "bbbbbbbbb", "2025-01-15", "a@b.example", -5, -3, 0, 0.5, 1, 2, 3, 3.5, 9, 12, True, None,
    [], ["a"], ["a", "a"], [1, 2, 3, 4, 5], [None], [[]], {}, {"a": "a"}, {"a": 1, "b": None}, {"a": {}}, {"other": 1}, {"other": "a"},
]  # fmt: skip


def near(parameters: dict[str, Any], values: list[Any]) -> Iterator[Any]:
    """Arguments most of which fit, with each value in each place."""
    whole = sample_arguments(all_required(parameters))
    yield from ({}, sample_arguments(parameters), whole, {**whole, "other": 1})
    for name in whole:
        yield {key: value for key, value in whole.items() if key != name}
        yield from ({**whole, name: value} for value in (*TRIED, *values))


def all_required(parameters: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(parameters)
    for _, one in walk_descriptions(found, ()):
        one["required"] = True  # type: ignore[index]
    return found


UNSAID = frozenset(["oneOf", "description", "title", "examples", "default"])


@example_settings(50)
@given(mutations(but=UNSAID), st.lists(VALUES, max_size=3))
def test_inputs_take_what_they_took_unless_it_is_breaking(
    mutation: tuple[dict[str, Any], dict[str, Any]], values: list[Any]
) -> None:
    """A validator agrees. What had the name of a new and optional input before was nobody's."""
    before, after = mutation
    found = compare_tools(
        replace(EMPTY, input_parameters=before), replace(EMPTY, input_parameters=after)
    )
    if BREAKING in {change.kind for change in found} or any(
        change.text == "is new and optional" for change in found
    ):
        return
    old, new = gates(before, after)
    assert [
        value
        for value in (*near(before, values), *near(after, values))
        if old.is_valid(value) and not new.is_valid(value)
    ] == []


@example_settings(40)
@given(mutations(to_served_outputs, UNSAID | {"required"}), st.lists(VALUES, max_size=3))
def test_outputs_are_what_they_were_unless_it_is_breaking(
    mutation: tuple[dict[str, Any], dict[str, Any]], values: list[Any]
) -> None:
    """A validator agrees. Names that come break nobody."""
    before, after = mutation
    found = compare_tools(
        replace(EMPTY, output_parameters=before), replace(EMPTY, output_parameters=after)
    )
    names = {"is new", "may have other properties now"}
    if BREAKING in {change.kind for change in found} or names & {change.text for change in found}:
        return
    old, new = gates(before, after)
    assert [
        value
        for value in (*near(before, values), *near(after, values))
        if new.is_valid(value) and not old.is_valid(value)
    ] == []


def gates(*parameters: dict[str, Any]) -> list[jsonschema_rs.Draft202012Validator]:
    return [
        jsonschema_rs.Draft202012Validator(input_schema(one), validate_formats=True)
        for one in parameters
    ]


def test_the_shipped_catalog_is_understood() -> None:
    """Between the versions of its tools there are changes of every kind, each of them understood,
    and none that is told from one end only.
    """
    found = []
    for entries in ReferenceModel(SHIPPED_CATALOG).tools.values():
        for before, after in pairwise(
            tool_from_document(json.loads(entry.body), None) for entry in entries
        ):
            there, back = compare_tools(before, after), compare_tools(after, before)
            assert {change.location for change in there} == {change.location for change in back}
            found += there
    assert {change.kind for change in found} == {*KINDS}
    assert [change for change in found if "not understood" in change.text] == []
