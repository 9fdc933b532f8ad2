"""Syntax highlighting: code to HTML with colored tokens.

A token is one of three elements, because a page has many of them: `b` is a keyword, `i` a string,
and `u` a number, a literal or a variable. Without the tags, the HTML is the escaped text.

JSON is rendered from values, and its keys are plain text: every second string of a schema is one.
The definitions of a tool contain the same texts and schemas, which are highlighted once.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from toolcatalog.exports import definitions
from toolcatalog.textutils import escape_hidden

_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_LITERAL = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_SEPARATOR = "\n\n"  # an empty line, which indented JSON does not have
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


def highlight_values(values: Iterable[Any]) -> list[str]:
    """Return the HTML of several values, as `highlight_json` does for one."""
    texts = [orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() for value in values]
    return _mark_json(_escape(_SEPARATOR.join(texts))).split(_SEPARATOR)


class FramePiece(NamedTuple):
    """The HTML before a part, the part's name, and a line break with the indentation of its line.

    The last piece of a frame has no part, and an empty name.
    """

    text: str
    part: str
    line_break: str


def make_frame(value: Any, names: Iterable[str]) -> list[FramePiece]:
    """Return the HTML of a value around its parts.

    The value has a 0 in the place of each part, and no other number; `names` are those of the
    parts.
    """
    pieces = highlight_json(value).split("<u>0</u>")
    lines = [piece[piece.rfind("\n") + 1 :] for piece in pieces]
    breaks = ["\n" + " " * (len(line) - len(line.lstrip())) for line in lines]
    return [*map(FramePiece, pieces, [*names, ""], breaks)]


def fill_frame(frame: Iterable[FramePiece], parts: Mapping[str, str]) -> str:
    """Return the HTML of a frame with its parts, of which `parts` has the HTML by name."""
    html: list[str] = []
    indented: dict[tuple[str, str], str] = {}  # most parts occur several times
    for text, name, line_break in frame:
        html.append(text)
        if name:
            key = name, line_break
            if key not in indented:
                indented[key] = parts[name].replace("\n", line_break)
            html.append(indented[key])
    return "".join(html)


def _escape(text: str) -> str:
    """Escape a text between tags, with names in place of hidden characters."""
    if not text.isascii() or "\x7f" in text:  # the only hidden ASCII character that JSON leaves
        text = escape_hidden(text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mark_json(text: str) -> str:
    """Mark the tokens of JSON.

    Between two quotes there is either a string or none, once escaped quotes are out of the way.
    What is around the strings recurs, and becomes one format for all of them. This takes a third
    of the time of a regular expression for tokens.
    """
    masked = text.replace("\\\\", "\1").replace('\\"', "\2") if "\\" in text else text
    first, *parts = masked.split('"')
    strings, outside = parts[::2], parts[1::2]
    html = _mark_literals(first) + "".join(map(_make_format, outside)) % tuple(strings)
    return html.replace("\2", '\\"').replace("\1", "\\\\") if masked is not text else html


@lru_cache(maxsize=1 << 14)
def _make_format(after: str) -> str:
    """Return the format of a string with what is after it, where JSON has no percent sign."""
    marked = _mark_literals(after)
    return f'"%s"{marked}' if after.startswith(":") else f'<i>"%s"</i>{marked}'


def _mark_literals(text: str) -> str:
    """Mark the numbers and literals of JSON outside of strings."""
    return _LITERAL.sub(r"<u>\g<0></u>", text)


def _mark_code_token(match: re.Match[str]) -> str:
    string, keyword = match.groups()
    if string:
        return f"<i>{string}</i>"
    return f"<b>{keyword}</b>" if keyword else f"<u>{match[0]}</u>"
