"""Parameters as lists: order, anchors, limits and what is nested."""

import re
from typing import Any
from urllib.parse import unquote

import pytest

from toolcatalog.site.parameter_list import render_parameters

PLAIN: dict[str, Any] = {"type": "string", "description": ""}


def limits(**more: Any) -> str:
    """The line with the limits of a parameter, without tags."""
    html = str(render_parameters({"p": {**PLAIN, **more}}, ""))
    line = html.partition('<p class="limits">')[2].partition("</p>")[0]
    return line.replace("<code>", "[").replace("</code>", "]")


def test_required_parameters_come_first() -> None:
    """Each with an anchor and its type."""
    tags = {"type": "array", "description": "All *tags*.", "items": {**PLAIN, "type": "integer"}}
    html = render_parameters({"tags": tags, "id": {**PLAIN, "required": True}}, "input-")
    assert html == (
        '<ul class="params">\n'
        '<li id="input-id"><p class="param"><a href="#input-id"><code>id</code></a> '
        "<span>string</span> <strong>required</strong></p></li>\n"
        '<li id="input-tags"><p class="param"><a href="#input-tags"><code>tags</code></a> '
        "<span>array of integer</span></p><p>All <em>tags</em>.</p></li>\n"
        "</ul>"
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"minLength": 1, "maxLength": 256}, "1\N{EN DASH}256 characters"),
        ({"minLength": 4, "maxLength": 4}, "exactly 4 characters"),
        ({"minItems": 2}, "at least 2 items"),
        ({"maximum": 1.5}, "at most 1.5"),
        ({"minimum": 0, "exclusiveMaximum": 9}, "at least 0 · less than [9]"),
        ({"format": "date", "pattern": "^<a>$"}, "format [date] · pattern [^&lt;a&gt;$]"),
        ({"uniqueItems": True, "nullable": False}, "no duplicates"),
        ({"default": None, "examples": ["a", " b"]}, 'default [null] · e.g. [a] [" b"]'),
        ({"enum": ["x", 1.5, ""]}, 'one of [x] [1.5] [""]'),
        ({}, ""),
    ],
)
def test_limits_are_one_line(more: dict[str, Any], expected: str) -> None:
    """In a few words each; values are plain texts or JSON."""
    assert limits(**more) == expected


def test_many_values_are_set_apart() -> None:
    """Those after the twelfth, so that they can be folded."""
    html = limits(enum=[*range(14)])
    assert html.count("[") == 14
    assert html.endswith('[11] <span class="more">[12] [13]</span>')


def test_nested_parameters_are_folded_into_their_parent() -> None:
    """Fields, items, other values and branches, with anchors below that of the parent."""
    inner = {**PLAIN, "description": "Any."}
    value = {
        **PLAIN,
        "properties": {"a.b": PLAIN},
        "items": {**PLAIN, "properties": {}},
        "additionalProperties": inner,
        "anyOf": [inner],
        "oneOf": [{"type": "integer", "description": "Or this."}],
    }
    html = render_parameters({"p": value}, "input-")
    assert html == (
        '<ul class="params">\n<li id="input-p"><p class="param"><a '
        'href="#input-p"><code>p</code></a> '
        "<span>string</span></p>"
        '<details><summary>1 field</summary><ul class="params">\n'
        '<li id="input-p.a%2Eb"><p class="param"><a href="#input-p.a%252Eb"><code>a.b</code></a> '
        "<span>string</span></p></li>\n</ul></details>"
        "<details><summary>Each other value</summary><p>Any.</p></details>"
        "<details><summary>Either: string</summary><p>Any.</p></details>"
        "<details><summary>or: integer</summary><p>Or this.</p></details></li>\n</ul>"
    )


def test_long_paths_have_short_anchors() -> None:
    """A page does not repeat the names of all levels for each parameter."""
    inner: dict[str, Any] = {f"leaf{n}": PLAIN for n in range(50)}
    for level in range(10):
        name = "\U0001f600" * 100 + str(level)
        inner = {name: {"type": "object", "description": "", "properties": inner}}
    html = str(render_parameters(inner, "input-"))
    anchors = re.findall('id="([^"]*)"', html)
    assert len(anchors) == len({*anchors}) == 60
    assert max(map(len, anchors)) <= 500
    assert [unquote(target) for target in re.findall('href="#([^"]*)"', html)] == anchors
