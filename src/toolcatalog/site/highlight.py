"""Syntax highlighting: code to HTML with colored tokens.

A token is one of three elements, because a page has many of them: `b` is a key or a keyword, `i` a
string, and `u` a number, a literal or a variable. Without the tags, the HTML is the escaped text.

JSON is rendered from values. The definitions of a tool contain the same texts and schemas, which
are highlighted once.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from toolcatalog.exports import definitions
from toolcatalog.textutils import escape_hidden

_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_LITERAL = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_KEYWORDS = "import|from|const|await|new|curl|print"
_CODE_TOKEN = re.compile(rf"({_STRING}|'[^'\n]*')|\b({_KEYWORDS})\b(?!\.)|\$?\b[A-Z][A-Z_]{{3,}}\b")
# the address of the API in snippets, which the script replaces if the page's server has the API
_ADDRESSES = (
    f"${definitions.URL_VARIABLE}",
    f'os.environ[<i>"{definitions.URL_VARIABLE}"</i>]',
    f"process.env.<u>{definitions.URL_VARIABLE}</u>",
)


def highlight_code(text: str) -> str:
    """Return shell, Python or TypeScript code as HTML."""
    return _CODE_TOKEN.sub(_mark_code_token, _escape(text))


def mark_address(html: str) -> str:
    """Mark the address of the API in highlighted code, for the script."""
    for address in _ADDRESSES:
        html = html.replace(address, f'<span class="api">{address}</span>')
    return html


def highlight_json(value: Any) -> str:
    """Return a value as indented JSON in HTML."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return _mark_json(_escape(text))


def highlight_with_parts(value: Any, parts: Mapping[int, str]) -> str:
    """Return a value as `highlight_json` does, with the HTML of values that are in `parts`.

    `parts` contains HTML by the `id` of a value. The rest of the value must contain no number.
    """
    used: list[str] = []
    frame = _replace_parts(value, parts, used)
    first, *others = _render_frame(orjson.dumps(frame, option=orjson.OPT_INDENT_2))
    html = [first.text]
    for part, before, after in zip(used, (first, *others), others, strict=False):
        html += part.replace("\n", before.line_break), after.text
    return "".join(html)


def _replace_parts(value: Any, parts: Mapping[int, str], used: list[str]) -> Any:
    """Return a value with 0 in the place of each part, and append the HTML of these to `used`."""
    if id(value) in parts:
        used.append(parts[id(value)])
        return 0
    if isinstance(value, dict):
        return {key: _replace_parts(inner, parts, used) for key, inner in value.items()}
    return value


class FramePiece(NamedTuple):
    """The HTML before a part or at the end, and a line break with the indentation of its line."""

    text: str
    line_break: str


@lru_cache(maxsize=256)
def _render_frame(data: bytes) -> list[FramePiece]:
    """Return the HTML around the parts of a value; few values differ in more than the parts."""
    pieces = _mark_json(_escape(data.decode())).split("<u>0</u>")
    lines = [piece[piece.rfind("\n") + 1 :] for piece in pieces]
    indents = [" " * (len(line) - len(line.lstrip())) for line in lines]
    return [*map(FramePiece, pieces, ("\n" + indent for indent in indents))]


def _escape(text: str) -> str:
    """Escape a text between tags, with names in place of hidden characters."""
    text = text if text.isascii() else escape_hidden(text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mark_json(text: str) -> str:
    """Mark the tokens of JSON.

    Between two quotes there is either a string or none, once escaped quotes are out of the way.
    This takes a third of the time of a regular expression for tokens.
    """
    parts = text.replace("\\\\", "\1").replace('\\"', "\2").split('"')
    outside = [*map(_mark_literals, parts[::2])]
    tags = ["b" if after[:1] == ":" else "i" for after in outside[1:]]
    tokens = [
        f'{before}<{tag}>"{string}"</{tag}>'
        for before, tag, string in zip(outside, tags, parts[1::2], strict=False)
    ]
    return "".join([*tokens, outside[-1]]).replace("\2", '\\"').replace("\1", "\\\\")


@lru_cache(maxsize=1 << 14)
def _mark_literals(text: str) -> str:
    """Mark the numbers and literals of JSON between two strings."""
    return _LITERAL.sub(r"<u>\g<0></u>", text)


def _mark_code_token(match: re.Match[str]) -> str:
    string, keyword = match.groups()
    if string:
        return f"<i>{string}</i>"
    return f"<b>{keyword}</b>" if keyword else f"<u>{match[0]}</u>"
