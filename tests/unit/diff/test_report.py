"""Tests of `diff.report`: Markdown and JSON of bounded size."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from support.comparisons import NEEDY, PLAIN, V1, V2
from support.hostile_texts import TEXTS
from support.profile import example_settings
from toolcatalog.diff.change import KINDS, Change
from toolcatalog.diff.comparison import (
    Comparison,
    Entry,
    Side,
    Status,
    ToolVersionKey,
    Unreadable,
    compare_sides,
)
from toolcatalog.diff.report import MAX_LENGTH, format_summary, render_markdown, to_values
from toolcatalog.diff.tool_changes import compare_tools
from toolcatalog.snapshot.format import Tool

PARSER = MarkdownIt("commonmark", {"html": True})
WORDS = {"type": "string", "description": "", "required": True}


def make_entry(label: Status = "changed", text: str = "x", **fields: Any) -> Entry:
    """Return an entry with this text in each field of a catalog."""
    change = Change("breaking", f"input {text}".replace("`", "\\u0060"), "no longer takes `a`, `b`")
    return Entry(label, f"toolkits/a/{text}", "a", text, V1, changes=(change,))._replace(**fields)


def test_report_without_differences() -> None:
    assert format_summary(Comparison("a", "b", ())) == "No change."
    assert (
        render_markdown(Comparison("main", "HEAD", ()))
        == "**No change.**\n\nFrom `main` to `HEAD`.\n"
    )


def test_numbers_come_first() -> None:
    entries = (
        make_entry("not compared", reason="line 3"),
        make_entry("removed"),
        make_entry(),
        make_entry("new version", compared_with=V1),
        make_entry("new version", compared_with=V1),
    )
    text = render_markdown(Comparison("main", "HEAD", entries))
    assert text.startswith(
        "**1 not compared, 1 removed, 1 changed in place, 2 new versions. Changes: 5"
        " breaking.**\n\n"
    )
    assert "- `x` version 20250101_00 not compared: `line 3`\n" in text
    assert "  - **breaking** `input x` no longer takes `a`, `b`\n" in text
    assert "<details>" not in text


def test_long_reports_are_folded_by_toolkit() -> None:
    """Each toolkit is a `details` element with its numbers and Markdown inside."""
    entries = tuple(
        make_entry(text=f"T_{number}", toolkit=f"kit{number % 3}") for number in range(60)
    )
    text = render_markdown(compare_sides(Side({}, {}, {}), Side({}, {}, {}), extra_entries=entries))
    assert text.count("<details><summary>Toolkit <code>kit") == text.count("\n</details>\n") == 3
    assert (
        "<code>kit0</code>: 20 changed in place. Changes: 20 breaking.</summary>\n\n- `T_0` "
        in text
    )
    assert PARSER.render(text).count("<li><code>T_") == 60


def test_report_length_is_limited() -> None:
    """For GitHub: omitted entries are counted, open elements are closed."""
    for entries in (
        tuple(
            make_entry(text=f"T_{number}", toolkit=f"kit{number % 200}") for number in range(3_000)
        ),
        tuple(make_entry(text="x" * 100_000, toolkit=f"kit{number}") for number in range(3_000)),
        tuple(make_entry(text=f"T_{number}") for number in range(3_000)),
        (make_entry(changes=(Change("breaking", "input x", "`" + "y" * 5000 + "`"),) * 10_000),)
        * 20,
    ):
        text = render_markdown(
            compare_sides(Side({}, {}, {}), Side({}, {}, {}), extra_entries=entries)
        )
        assert 10_000 < len(text) <= MAX_LENGTH
        assert text.count("<details>") == text.count("</details>")
        remaining = int(text.splitlines()[-1].split()[1].replace(",", ""))
        assert remaining + text.count("\n- ") == len(entries)


def tools(text: str) -> tuple[Tool, Tool]:
    """Two versions that differ, with a text wherever there can be one."""
    old = replace(
        PLAIN,
        name="A",
        tags=("a", text),
        input_parameters={"x": {**WORDS, "enum": ["a"]}, "gone": WORDS},
    )
    enum = {**WORDS, "enum": [text], "default": text, "pattern": text}
    new = replace(
        NEEDY, version=V2, name=text, scopes=(text,), input_parameters={text: WORDS, "x": enum}
    )
    return old, replace(
        new, deprecation={"reason": text, "since": text, "sunset": text, "replaced_by": text}
    )


def tags(text: str) -> list[str]:
    """What a text is made of as a CommonMark parser with raw HTML sees it: all but code and
    words.
    """
    results = []
    for token in PARSER.parse(text):
        results += (
            [
                child.type
                for child in token.children or ()
                if child.type not in ("text", "code_inline", "text_special")
            ]
            if token.children
            else []
        )
        results.append(
            f"{token.type} {token.tag}"
            + (f" {token.content}" if token.type.startswith("html") else "")
        )
    return results


@example_settings(100)
@given(TEXTS | st.text(max_size=20))
def test_catalog_texts_add_no_markdown(text: str) -> None:

    def content(word: str) -> str:
        old, new = tools(word)
        key = ToolVersionKey("a", "A_DO", V2)
        previous = Side(
            {("a", "A_DO"): [V1]}, {key._replace(version=V1): old}, {"toolkits/a/x": {"name": "a"}}
        )
        current = Side(
            {("a", "A_DO"): [V1, V2]},
            {key: new, key._replace(version=V1): old},
            {"toolkits/a/x": {"name": word}},
        )
        extra = [make_entry(text=word), make_entry("not compared", reason=word)]
        return render_markdown(compare_sides(previous, current, (f"b{word}", f"a{word}"), extra))

    assert len(compare_tools(*tools("word"))) == len(compare_tools(*tools(f"z{text}")))
    shape, plain = tags(content(f"z{text}")), tags(content("zword"))
    assert shape == plain
    assert all(char.isprintable() or char == "\n" for char in content(f"z{text}"))


def test_json_report() -> None:
    """With the fields of docs/reference/diff.md."""
    result = compare_sides(
        Side({("a", "A_DO"): [V1]}, {}, {}),
        Side({("a", "A_DO"): [V1, V2]}, {ToolVersionKey("a", "A_DO", V2): Unreadable("no")}, {}),
        ("main", "here"),
    )
    output = json.loads(json.dumps(to_values(result)))
    assert [*output] == ["before", "after", "totals", "entries"]
    assert [*output["totals"]] == ["entries", "by_what", "by_kind"]
    assert [*output["totals"]["by_kind"]] == [*KINDS]
    assert output["entries"] == [
        {
            "what": "not compared",
            "kind": "unknown",
            "path": f"toolkits/a/A_DO/{V2}.yaml",
            "toolkit": "a",
            "tool": "A_DO",
            "version": V2,
            "compared_with": "",
            "why": "no",
            "changes": [],
        }
    ]
