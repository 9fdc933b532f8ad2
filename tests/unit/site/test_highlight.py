"""Highlighting: without its tags, highlighted code is the code."""

import re
from html import unescape
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.site import highlight
from toolcatalog.textutils import escape_hidden

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def text_of(html: str) -> str:
    """What a reader copies."""
    return unescape(re.sub("</?[biu]>", "", html))


def indented(value: Any) -> str:
    """The text that is highlighted."""
    return escape_hidden(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def test_tokens_of_json() -> None:
    """Strings, and numbers with literals; keys are plain."""
    value = {"a": "b", "list": [1, -2.5, True, None, "true 1"]}
    assert highlight.highlight_json(value) == (
        '{\n  "a": <i>"b"</i>,\n  "list": [\n    <u>1</u>,\n    <u>-2.5</u>,\n'
        '    <u>true</u>,\n    <u>null</u>,\n    <i>"true 1"</i>\n  ]\n}'
    )


@given(JSON_VALUES)
def test_highlighted_json_is_the_json(value: Any) -> None:
    """Whatever its strings contain."""
    assert text_of(highlight.highlight_json(value)) == indented(value)


@pytest.mark.parametrize(
    "text", ['\\"', '\\\\"', 'a\\\\": 1', "</i><b>&amp;", "\x01\x02\x7f", '": "', "100 %s"]
)
def test_strings_with_quotes_and_markup(text: str) -> None:
    """A quote in a string does not end it, and markup stays text."""
    html = highlight.highlight_json({text: text})
    assert text_of(html) == indented({text: text})
    assert len(re.findall("<[biu]>", html)) == 1


@given(st.lists(JSON_VALUES, min_size=1, max_size=4))
def test_values_that_are_highlighted_together(values: list[Any]) -> None:
    """Each looks as it does alone."""
    assert highlight.highlight_values(values) == [*map(highlight.highlight_json, values)]


@given(st.dictionaries(st.text(), JSON_VALUES, min_size=1, max_size=4), st.text())
def test_a_frame_with_its_parts(properties: dict[str, Any], name: str) -> None:
    """The result is the same as without a frame, wherever the parts are."""
    values = {"name": name, "properties": properties, "required": ["a"]}
    parts = {part: highlight.highlight_json(value) for part, value in values.items()}

    def make_value(part_values: dict[str, Any]) -> dict[str, Any]:
        schema = {key: part_values[key] for key in ("properties", "required")}
        return {"function": {"name": part_values["name"], "parameters": schema}, "strict": True}

    frame = highlight.make_frame(make_value(dict.fromkeys(values, 0)), values)
    assert highlight.fill_frame(frame, parts) == highlight.highlight_json(make_value(values))


def test_code() -> None:
    """Strings, keywords and variables of the languages of requests."""
    assert highlight.highlight_code('curl -H "x: $KEY" <a>') == (
        '<b>curl</b> -H <i>"x: $KEY"</i> &lt;a&gt;'
    )
    assert highlight.highlight_code("const key = process.env.SOME_KEY;") == (
        "<b>const</b> key = process.env.<u>SOME_KEY</u>;"
    )
