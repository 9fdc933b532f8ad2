"""Text helpers: invisible characters, sentences and one-line summaries."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text lazily, since mostly only the first one is needed."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end.start() > start:
            yield text[start : end.start()]
        start = end.end()
    if start < len(text):
        yield text[start:]


_MAX_SUMMARY_LENGTH = 200  # characters


@lru_cache(maxsize=1 << 15)
def first_sentence(text: str) -> str:
    """Return the first sentence of a description, at most 200 characters, for a list.

    A semicolon ends a sentence, too, and becomes a full stop.
    """
    first = next(filter(None, map(str.strip, split_sentences(text))), "")
    first = f"{first.rstrip(';')}." if first.endswith(";") else first
    return (
        first
        if len(first) <= _MAX_SUMMARY_LENGTH
        else f"{first[:_MAX_SUMMARY_LENGTH].rsplit(None, 1)[0]} …"
    )


# Hidden characters: Unicode's Default_Ignorable_Code_Point, controls except tab and line ends,
# line separators, annotations and surrogates. They are listed here, because Python's own table
# changes with its version. Some scripts and emoji need two kinds of them, which are allowed where
# they belong:
# a joiner between characters that join, and a variation selector after a character that varies.
_JOINING = (
    "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\u2194\u2195\u2600-\u27bf\u2b1b\ufe0f"
    "\U0001f000-\U0001faff"
)
_EMOJI = (  # these vary with U+FE0E and U+FE0F
    "0-9#*\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_VARYING = (  # these vary with U+FE00 to U+FE02: mathematical operators, Myanmar and CJK
    "\u1000-\u109f\u2200-\u22ff\u2a00-\u2aff\u3001\u3002\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
ALWAYS_HIDDEN = (  # the inside of a character class: those that are never allowed
    "\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe03-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(
    f"[{ALWAYS_HIDDEN}]"
    f"|(?<![{_JOINING}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINING}])"
    f"|(?<![{_EMOJI}])[\ufe0e\ufe0f]|(?<![{_VARYING}])[\ufe00-\ufe02]"
)
_MAY_HIDE = re.compile(f"[{ALWAYS_HIDDEN}\u200c\u200d\ufe00-\ufe0f]")


def escape_hidden(text: str, format_code_point: Callable[[str], str] = "U+{}".format) -> str:
    """Return the text with a name such as `U+202E` in place of each hidden character.

    `format_code_point` makes the name from the code point in hex.
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda match: format_code_point(f"{ord(match[0]):04X}"), text)


def escape_unprintable(text: str) -> str:
    """Return the text with unprintable characters as in a Python string, such as `\\x1b`.

    File contents and names are untrusted, and terminals and logs interpret control characters.
    """
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    )


def find_hidden(text: str) -> list[str]:
    """Return the hidden characters of a text, in order."""
    return _HIDDEN.findall(text)


def may_have_hidden(text: str) -> bool:
    """Return whether a text may have a hidden character, in any order of its characters."""
    return _MAY_HIDE.search(text) is not None


def pluralize(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
