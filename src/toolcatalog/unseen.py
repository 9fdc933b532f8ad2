"""Characters that no reader sees and every model reads: which they are, and a text with their names
in their place. Pure.
"""

import re
from collections.abc import Callable

# Unicode's Default_Ignorable_Code_Point, controls but tab and line ends, separators of lines,
# annotations, halves of pairs. Written out,
# because Python's own table changes with its version. Some scripts and emoji need two of them, and
# those are fine where they belong:
# a joiner between characters that join, and one variation selector after a character that varies.
_JOINING = (
    "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
)
_VARYING = "0-9#*\xa9\xae\u2000-\ufdff\U0001f000-\U0003ffff"
ALWAYS_HIDDEN = (
    "\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)  # the inside of a character class: those that are fine nowhere
_HIDDEN = re.compile(
    f"[{ALWAYS_HIDDEN}]|(?<![{_JOINING}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINING}])|(?<![{_VARYING}])[\ufe00-\ufe0f]"
)
_MAY_HIDE = re.compile(f"[{ALWAYS_HIDDEN}\u200c\u200d\ufe00-\ufe0f]")


def escape_hidden(text: str, format_code_point: Callable[[str], str] = "U+{}".format) -> str:
    """The text with a name, `U+202E`, in place of each character that cannot be seen; `shown` makes
    it from the code point in hex.
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: format_code_point(f"{ord(found[0]):04X}"), text)


def find_hidden(text: str) -> list[str]:
    """The characters of a text that cannot be seen, in their order."""
    return _HIDDEN.findall(text)


def may_have_hidden(text: str) -> bool:
    """Tell whether a text, whatever the order of its characters, may hold one that cannot be seen."""
    return _MAY_HIDE.search(text) is not None
