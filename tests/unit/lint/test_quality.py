"""Tests of `lint.quality`; tests/data/rejects has a case for each rule."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.models import make_tool
from toolcatalog import parameters
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.errors import Pointer
from toolcatalog.lint import quality
from toolcatalog.lint.views import ToolView

NAMES = st.sampled_from(["a", "properties", "items", "anyOf", "type", "b c"])
DESCRIPTIONS = st.recursive(
    st.fixed_dictionaries({"type": st.just("string")}),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "items": inner,
            "additionalProperties": st.booleans() | inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=8,
)


def check(item: ToolVersion) -> list[str]:
    """Return the findings of a tool, without notes that almost every short example has."""
    results = [finding for lint in quality.TOOL_RULES for finding in lint.check(ToolView(item))]
    return [finding.rule for finding in results if finding.rule != "description-brief"]


@given(st.dictionaries(NAMES, DESCRIPTIONS, max_size=3))
def test_every_description_is_visited(description: dict[str, Any]) -> None:
    """With the place of `parameters.walk`; parameters may have names of keywords."""
    item = make_tool("MAIL_SEND", input_parameters=description, output_parameters=description)
    walked = dict(parameters.walk_descriptions(description, ("input_parameters",)))
    view = ToolView(item)
    result = view.inputs
    assert {node.pointer: node.description for node in result} == walked
    assert len(result) == len(walked) == len(view.outputs)
    for node in result:
        assert node.name in ("", node.pointer[-1])
        assert sum(1 for _ in _objects(description, node.pointer[1:])) == node.depth


def _objects(description: Any, pointer: Pointer) -> Iterator[Any]:
    """The maps of named parameters that a pointer leads through."""
    yield description
    remaining = list(pointer[1:])
    value = description[pointer[0]]
    while remaining:
        key = remaining.pop(0)
        value = value[key]
        if key == "properties":
            yield value
            value = value[remaining.pop(0)]
        elif key in ("anyOf", "oneOf"):
            value = value[remaining.pop(0)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "description-empty"),
        ("\n \n", "description-empty"),
        ("Mail: send!", "description-repeats-name"),
        ("mail_send", "description-repeats-name"),
        ("Mail.", "description-short"),
        ("Sends mail.", "description-short"),
        ("Envoyé.", ""),  # not all languages can be measured in words
        ("メールを送る", ""),
        ("Send a message to many people.", "description-brief"),
        ("Send a message to many people, one by one.", ""),
        ("x " * 512, ""),
        ("x " * 513, "description-long"),
        ("word" * 256, ""),
    ],
)
def test_only_the_worst_problem_of_a_description_is_reported(text: str, rule: str) -> None:
    item = make_tool("MAIL_SEND", name="Mail send", description=text)
    assert [
        finding.rule for lint in quality.TOOL_RULES for finding in lint.check(ToolView(item))
    ] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("start", "is_filler"),
    [
        ("This tool sends", True),
        ("Tool to send", True),
        ("A tool that sends", True),
        ("Use this function to send", True),
        ("Allows you to send", True),
        ("lets users send", True),
        ("This message is sent", False),
        ("Toolbox to send", False),
        ("Use this where nothing else fits: it sends", False),
        ("Lets go of", False),
        ("Tool calls are sent", False),
    ],
)
def test_filler_words(start: str, is_filler: bool) -> None:
    """Only words without meaning are reported, with their kind."""
    item = make_tool("MAIL_SEND", description=f"{start} one message to all people of a team.")
    results = [finding for lint in quality.TOOL_RULES for finding in lint.check(ToolView(item))]
    assert [finding.rule for finding in results] == (["description-filler"] if is_filler else [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"description": "(deprecated) Send one message to all people of a team."},
            ["deprecation-unmarked"],
        ),
        ({"name": "DEPRECATED: send"}, ["deprecation-unmarked"]),
        ({"description": "List deprecated tools, newest first, page by page."}, []),
        (
            {
                "description": "Deprecated. Send one message to all people.",
                "deprecation": {"reason": "Old."},
            },
            [],
        ),
        ({"deprecation": {"reason": " "}}, ["deprecation-unexplained"]),
        ({"deprecation": {"sunset": "2026-01-01"}}, ["deprecation-unexplained"]),
        ({"deprecation": {"replaced_by": "MAIL_POST"}}, []),
    ],
)
def test_deprecation_texts(fields: dict[str, Any], expected: list[str]) -> None:
    """What the description says must be in the field, with a replacement."""
    assert (
        check(
            make_tool(
                "MAIL_SEND",
                **{"description": "Send one message to all people of a team.", **fields},
            )
        )
        == expected
    )


def test_missing_descriptions() -> None:
    """At the blank description, or at the name; array items need none."""
    blank = {"type": "string", "description": " "}
    description = {
        "type": "object",
        "description": "Good.",
        "properties": {"in": {"type": "string"}},
    }
    inputs = {
        "none": {"type": "string"},
        "blank": blank,
        "list": {
            "type": "array",
            "description": "Good.",
            "items": {"type": "object", "properties": {"deep": blank}},
        },
        "map": {"type": "object", "description": "Good.", "additionalProperties": description},
        "either": {"description": "Good.", "oneOf": [{"type": "string"}, description]},
    }
    item = make_tool(
        "MAIL_SEND", input_parameters=inputs, output_parameters={"out": {"type": "string"}}
    )
    results = [
        finding
        for lint in quality.TOOL_RULES
        for finding in lint.check(ToolView(item))
        if finding.rule.endswith("undescribed")
    ]
    assert [(finding.pointer[1:], finding.at_key) for finding in results] == [
        (("none",), True),
        (("blank", "description"), False),
        (("list", "items", "properties", "deep", "description"), False),
        (("map", "additionalProperties", "properties", "in"), True),
        (("either", "oneOf", 1, "properties", "in"), True),
        (("out",), True),
    ]
    assert [finding.rule for finding in results] == 5 * ["parameter-undescribed"] + [
        "output-undescribed"
    ]


@pytest.mark.parametrize(
    ("name", "text", "repeats"),
    [
        ("user_name", "User name.", True),
        ("userName", "user-name", True),
        ("q", "Q", True),
        ("user_name", "The user name.", False),
        ("user_name", "Name of the user", False),
        ("id", "", False),
    ],
)
def test_description_repeats_the_name(name: str, text: str, repeats: bool) -> None:
    """Ignoring case, spaces and punctuation; one more word is enough."""
    item = make_tool("MAIL_SEND", input_parameters={name: {"type": "string", "description": text}})
    assert ("parameter-repeats-name" in check(item)) is repeats
