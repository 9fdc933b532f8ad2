"""The Markdown twins: what they say, and that no text of a catalog becomes structure, as a
CommonMark parser with raw HTML switched on reads them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from markdown_it import MarkdownIt

from support import hostile_texts
from support.profile import example_settings
from toolcatalog.site import markdown_pages
from toolcatalog.snapshot.format import Tool, Toolkit

LEAF = {"type": "string", "description": ""}


def described(text: str) -> dict[str, Any]:
    """A description that has the text in every place that can have one."""
    plain = {
        "type": "string",
        "description": text,
        "required": True,
        "default": text,
        "enum": [text, text],
        "examples": [{text: text}],
        "pattern": text,
    }
    return {
        **plain,
        "properties": {text: plain, "last": LEAF},
        "items": plain,
        "additionalProperties": plain,
        "anyOf": [plain],
        "oneOf": [LEAF],
    }


def toolkit(text: str = "Mail") -> Toolkit:
    return Toolkit(
        slug="mail",
        name=text,
        logo="",
        description=text,
        categories=(text,),
        no_auth=True,
        homepage=text,
        owners=(),
        versions=("20250101_00",),
    )


def tool(text: str = "word", **fields: Any) -> Tool:
    values: dict[str, Any] = {
        "slug": "MAIL_SEND",
        "toolkit": "mail",
        "version": "20250101_00",
        "available_versions": ("20250101_00",),
        "name": text,
        "description": text,
        "scopes": (text,),
        "tags": (text,),
        "no_auth": False,
        "deprecation": {"reason": text, "since": text, "sunset": text, "replaced_by": "MAIL_POST"},
        "input_parameters": {text: described(text), "last": LEAF},
        "output_parameters": {text: described(text), "last": LEAF},
    }
    return Tool(**{**values, **fields})


def outline(data: bytes) -> list[tuple[str, int]]:
    """The blocks of a Markdown file by kind and depth. Paragraphs and fences, in which texts stand,
    are left out.
    """
    tokens = MarkdownIt("commonmark").parse(data.decode())
    inline = [child.type for token in tokens for child in token.children or ()]
    assert "html_inline" not in inline
    assert "html_block" not in [token.type for token in tokens]
    return [
        (token.type, token.level)
        for token in tokens
        if token.type not in ("inline", "fence", "paragraph_open", "paragraph_close")
    ]


def of_tool(text: str) -> bytes:
    return markdown_pages.render_tool_markdown(tool(text), toolkit(text))


def of_toolkit(text: str) -> bytes:
    both = tool(text, output_parameters={}), tool(text, input_parameters={})
    return b"".join(
        markdown_pages.render_llms_full_txt(
            toolkit(text), [markdown_pages.to_markdown(one, toolkit(text)) for one in both]
        )
    )


@cache
def plain(make: Callable[[str], bytes]) -> list[tuple[str, int]]:
    return outline(make("word"))


@example_settings(20)
@given(hostile_texts.TEXTS)
@example("```\n# x\n- y")
@example("    # x\n\n\n1. y\n---")
@example("`<b>` <script>")
@example("</ul>\n\n<div>\n")
@example("[x]: y")
@example("_ _ _")
def test_no_text_becomes_structure(text: str) -> None:
    """Whatever text stands in whatever place, headings, lists and their items are those of a plain
    word.
    """
    for make in (of_tool, of_toolkit):
        assert outline(make(f"a{text}")) == plain(make)
        assert not text.strip() or outline(make(text)) == plain(make)
    about = {"title": text, "description": f"a{text}"}
    assert outline(markdown_pages.render_llms_txt(about, [toolkit(text)], {"mail": 1})) == outline(
        markdown_pages.render_llms_txt({"title": "a", "description": "b"}, [toolkit()], {"mail": 1})
    )


@example_settings(66)
@given(hostile_texts.TEXTS.filter(str.strip))
def test_nothing_hidden_passes(text: str) -> None:
    said = markdown_pages.render_tool_markdown(tool(text), toolkit(text)).decode()
    assert not any(hidden in said for hidden in "\u202e\U000e0041\x0b\u2028")
    assert said.count("word") >= text.count("word")


def test_a_twin() -> None:
    """All of one, to the letter."""
    body = {
        "type": "object",
        "description": "What to send.\n\n# Not a heading\n```\nx",
        "required": True,
        "nullable": True,
        "minLength": 0,
        "format": "date",
        "default": None,
        "enum": ["x", 1.5],
        "examples": [{"a": "`"}, "\u202e"],
        "additionalProperties": False,
        "properties": {
            "to_id": {"type": "string", "description": "Who <gets> it.", "required": False},
            "a`b": {
                "type": "array",
                "description": "",
                "items": {"type": "string", "description": "One."},
            },
        },
        "anyOf": [{"type": "string", "description": "Text."}],
    }
    one = tool(
        name="Send_it *now* #",
        description="Sends `x` to **all**.",
        scopes=("a.b", "c"),
        tags=(),
        input_parameters={"body": body},
        output_parameters={},
        deprecation={
            "reason": "It is old.",
            "since": "2025-01-01",
            "sunset": "",
            "replaced_by": "MAIL_POST",
        },
        available_versions=("20240101_00", "20250101_00"),
    )
    assert markdown_pages.render_tool_markdown(one, toolkit()).decode() == (
        r"""# Send_it \*now\* \#

`MAIL_SEND`, version `20250101_00`, toolkit Mail

Sends `x` to **all**.

- Toolkit: `mail`
- Authentication: needed
- Scopes: `a.b`, `c`
- All versions: `20240101_00`, `20250101_00`
- API: `GET /api/v3/tools/MAIL_SEND`

**Deprecated since 2025-01-01.** Use `MAIL_POST` instead.

Reason: It is old.


## Inputs

- `body` (object, required, or null):
  ````text
  What to send.

  # Not a heading
  ```
  x
  ````
  - limits: format `"date"`, minLength `0`
  - default: `null`
  - one of: `"x"`, `1.5`
  - examples: ``{"a":"`"}``, `"\u202e"`
  - no other properties
  - `to_id` (string): Who \<gets> it.
  - ``a`b`` (array)
    - each item (string): One.
  - any of (string): Text.

## Outputs

Not described.
"""
    )


@pytest.mark.parametrize(
    "text", ["# x", "- x", "> x", "1. x", "[x]: y", "---", "___", "* * *", "```", "<b> `x`"]
)
def test_a_description_that_could_start_a_block_is_fenced(text: str) -> None:
    said = markdown_pages.render_tool_markdown(tool(description=text), toolkit()).decode()
    assert f"{'`' * (4 if '```' in text else 3)}text\n{text}\n" in said


def test_names_that_a_code_span_cannot_show_are_json() -> None:
    for name, shown in (
        ("", '`""`'),
        (" ", '`" "`'),
        ("a\nb", r'`"a\nb"`'),
        ("a\u200bb", r'`"a\u200bb"`'),
        ("`", "`` ` ``"),
        ("a b", "`a b`"),
    ):
        assert (
            f"\n- {shown} (string)\n"
            in markdown_pages.render_tool_markdown(
                tool(input_parameters={name: LEAF}), toolkit()
            ).decode()
        )


def test_llms() -> None:
    about = {"title": "Tools", "description": "What agents\ncall.", "home": ""}
    first, second = (
        toolkit(),
        Toolkit(
            slug="x",
            name="X",
            logo="",
            description="",
            categories=(),
            no_auth=True,
            homepage="",
            owners=(),
            versions=(),
        ),
    )
    said = markdown_pages.render_llms_txt(about, [first, second], {"mail": 1_200, "x": 1}).decode()
    assert said.startswith("# Tools\n\n> What agents call. 1,201 tools in 2 toolkits.\n\n")
    assert (
        "## Toolkits\n\n- [Mail](toolkits/mail/llms-full.txt): 1,200 tools "
        "([page](toolkits/mail/index.html)). Mail\n"
    ) in said
    assert (
        "- [X](toolkits/x/llms-full.txt): 1 tool ([page](toolkits/x/index.html)).\n\n## API\n"
        in said
    )
    assert "](reference/index.html)" in said
    assert "](feed.xml)" in said


def test_a_whole_toolkit_is_made_piece_by_piece() -> None:
    """Tools are taken one at a time, and stand one heading deeper than in their own twins."""
    taken: list[int] = []

    def tools() -> Any:
        for number in range(3):
            taken.append(number)
            yield markdown_pages.to_markdown(tool(), toolkit())

    pieces = markdown_pages.render_llms_full_txt(toolkit(), tools())
    assert next(pieces).startswith(b"# Mail\n\nMail\n\n- Toolkit: `mail`\n")
    assert next(pieces).startswith(b"\n## word\n")
    assert taken == [0]
    assert [b"\n### Inputs\n" in piece for piece in pieces] == [True, True]
