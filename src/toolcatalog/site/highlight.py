"""Syntax highlighting: code to HTML with colored tokens.

A token is one of three elements, because a page has many of them: `b` is a key or a keyword, `i` a
string, and `u` a number, a literal or a variable. Without the tags, the HTML is the escaped text.

JSON is rendered from values. Several definitions of a tool contain the same schema, which is
highlighted once.
"""

import re
from collections.abc import Mapping, Sequence
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
_FIRST_PLACE = 1_000_000  # the number in place of the first shared value


class Shared(NamedTuple):
    """A value that several definitions contain, and its HTML."""

    value: Mapping[str, Any]
    html: str


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


def highlight_with_shared(value: Any, shared: Sequence[Shared]) -> str:
    """Return a value as `highlight_json` does, with the HTML of the shared values in it.

    Apart from those, the value contains no numbers: numbers mark their places.
    """
    numbers = {id(one.value): _FIRST_PLACE + place for place, one in enumerate(shared)}
    html = highlight_json(_replace_shared(value, numbers))
    for one in shared:
        mark = f"<u>{numbers[id(one.value)]}</u>"
        before, found, after = html.partition(mark)
        if found:
            html = before + one.html.replace("\n", _indent_of(before)) + after
    return html


def _replace_shared(value: Any, numbers: Mapping[int, int]) -> Any:
    if id(value) in numbers:
        return numbers[id(value)]
    if isinstance(value, dict):
        return {key: _replace_shared(inner, numbers) for key, inner in value.items()}
    return value


def _indent_of(text: str) -> str:
    """Return a line break and the indentation of the last line of a text."""
    line = text[text.rfind("\n") + 1 :]
    return "\n" + " " * (len(line) - len(line.lstrip()))


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
