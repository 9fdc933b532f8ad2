"""Lint rules for security: hidden characters, lookalike letters and prompt injection.

Models read descriptions as well as people do, and a model cannot distinguish a description from its
user's instructions. The patterns are few and precise: each matches the form of known attacks, and
hardly anything else.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from toolcatalog import textutils
from toolcatalog.catalog.model import Catalog, ToolSummary
from toolcatalog.errors import Finding
from toolcatalog.lint import lookalikes
from toolcatalog.lint.rule import CatalogRule, ToolRule, iter_urls
from toolcatalog.lint.views import KeywordMatcher, ToolView

_MAX_LISTED = 3  # characters that a message names
_MAX_QUOTED = 80  # characters of a text that a message repeats
_CONTROL_ESCAPES = (r"\u00", r"\b", r"\f")  # control characters as escaped in JSON
# other letters are allowed next to Latin ones, as in `Δt` and `kΩ`
_LOOKALIKE_LETTER = re.compile(f"[{lookalikes.LETTERS}]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile("[A-Za-z]")
_ONLY_LOOKALIKES = re.compile(rf"(?:[{lookalikes.LETTERS}]|[\W\d_]){{2,}}")

_INSTRUCTION_WORDS = r"(?:instructions?|prompts?|guidelines|guardrails|directions|rules)"
_PRIVATE_DATA = (
    r"(?:conversation|chat (?:history|log)|(?:previous|prior|earlier) messages|system"
    r" prompt|environment variables|credentials"
    r"|passwords?|(?:api|private|ssh)[ _-]?keys?|access[ _-]?tokens?)"
)


class _InjectionPattern(NamedTuple):
    """A form of prompt injection: what the text does, keywords, and the exact pattern.

    Every such text contains a keyword of each matcher.
    """

    action: str
    keywords: Sequence[KeywordMatcher]
    pattern: re.Pattern[str]


def _injection_pattern(
    action: str, keywords: Sequence[KeywordMatcher], *pattern: str
) -> _InjectionPattern:
    return _InjectionPattern(action, keywords, re.compile("".join(pattern), re.IGNORECASE))


_INJECTION_PATTERNS = (
    _injection_pattern(
        "sets aside the instructions of the model",
        (
            KeywordMatcher("ignore", "disregard", "forget"),
            KeywordMatcher(
                "instruction", "prompt", "guidelines", "guardrails", "directions", " rules"
            ),
        ),
        r"\b(?:ignore|disregard|forget)\s+(?:(?:all|any|every|of|the|your|my|these|those|other)"
        r"\s+){0,4}",
        rf"(?:previous|prior|above|earlier|preceding|foregoing|system|developer)"
        rf"\s+{_INSTRUCTION_WORDS}\b",
    ),
    _injection_pattern(
        "asks to hide something from the user",
        (
            KeywordMatcher("the user", "the human"),
            KeywordMatcher(
                "tell ", "telling ", "inform ", "informing ", "mention", "reveal", "disclos"
            ),
        ),
        r"\b(?:do\s+not|don['\u2019]?t|never|without|must\s+not|should\s+not)\s+(?:ever\s+)?",
        r"(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing))\s+"
        r"(?:\w+\s+){0,3}?(?:to\s+)?the\s+(?:user|human)\b",
    ),
    _injection_pattern(
        "promotes itself over other tools",
        (
            KeywordMatcher("this tool", "this function", "this action"),
            KeywordMatcher("first", "before "),
        ),
        r"\b(?:you|model|agent|assistant|llm|ai)\s+(?:must|should|shall|have\s+to|need\s+to)\s+"
        r"(?:always\s+)?",
        r"(?:call|use|invoke|run|execute)\s+this\s+(?:tool|function|action)\s+(?:first|before\s+"
        r"(?:any|all|every|each)\b)",
    ),
    _injection_pattern(
        "looks like a prompt",
        (
            KeywordMatcher(
                "<|",
                "<<sys",
                "<important",
                "<system",
                "<instruction",
                "<secret",
                "<hidden",
                "[inst]",
            ),
        ),
        r"<(?:important|system|instructions?|secret|hidden)>|<\|(?:im_start|im_end|system|user"
        r"|assistant|endoftext|eot_id)\|>",
        r"|<<SYS>>|\[INST\]",
    ),
    _injection_pattern(
        "asks for the model's own instructions",
        (KeywordMatcher("your "), KeywordMatcher("prompt", "instructions", "system message")),
        r"\b(?:reveal|repeat|print|output|leak|expose|send|include|append|return|show)\s+(?:\w+"
        r"\s+){0,2}?your\s+(?:\w+\s+)?",
        r"(?:system\s+(?:prompt|message)|instructions|prompt)\b",
    ),
    _injection_pattern(
        "sends data elsewhere",
        (
            KeywordMatcher(" http", " www."),
            KeywordMatcher(
                "conversation",
                "chat",
                "messages",
                "prompt",
                "environment",
                "credential",
                "password",
                "key",
                "token",
            ),
        ),
        rf"\b(?:send|post|upload|forward|transmit|leak|exfiltrate|append|copy)\b[^.!?\n]{{0,60}}"
        rf"\b{_PRIVATE_DATA}\b",
        r"[^.!?\n]{0,40}\b(?:to|at)\s+(?:https?://|www\.)",
    ),
    _injection_pattern(
        "names a file with the user's secrets",
        (KeywordMatcher("/.ssh/", "/.aws/", "/mcp.json", "/etc/passwd", "/etc/shadow"),),
        r"(?:~|\$home)/\.(?:ssh/|aws/credentials|cursor/mcp\.json)|/etc/(?:passwd|shadow)\b",
    ),
)


def check_hidden_characters(view: ToolView) -> Iterator[Finding]:
    """No text contains a character that is invisible or changes the direction of text."""
    tool = view.tool
    if not (
        any(control in view.json_text for control in _CONTROL_ESCAPES)
        or textutils.may_have_hidden(view.non_ascii)
    ):
        return
    for text in view.texts:
        if characters := [*dict.fromkeys(textutils.find_hidden(text.value))]:
            help = "remove it, or write what is meant: models read what people do not see"
            yield text.make_finding(tool, "hidden-character", _hidden_message(characters), help)


def remove_hidden_characters(text: str) -> str:
    """Return a text without characters that are invisible or change the direction of text."""
    hidden = {*textutils.find_hidden(text)}
    return "".join(char for char in text if char not in hidden)


def make_comment_finding(path: str, line: int, characters: Sequence[str]) -> Finding:
    """Return a finding for a comment with hidden characters.

    Models do not read comments, but a reviewer may see another line than the file contains.
    """
    message, help = (
        f"{_hidden_message(characters)} in a comment",
        "remove it: it may hide what a line says",
    )
    return Finding(path=path, rule="hidden-character", line=line, message=message, help=help)


def _hidden_message(characters: Sequence[str]) -> str:
    names = ", ".join(_character_name(char) for char in characters[:_MAX_LISTED])
    suffix = f" and {len(characters) - _MAX_LISTED:,} more" if len(characters) > _MAX_LISTED else ""
    return f"a reader cannot see {names}{suffix}"


def _character_name(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def check_lookalike_letters(view: ToolView) -> Iterator[Finding]:
    """No word mixes Latin letters with lookalikes, and no name consists of lookalikes only.

    Lookalikes are letters of other scripts that look like Latin ones. Regular expressions are
    exempt, because a range of one script may follow a range of another.
    """
    tool = view.tool
    if not _LOOKALIKE_LETTER.search(view.non_ascii):
        return
    for text in view.texts:
        if text.is_pattern:
            continue
        if word := _find_mixed_word(text.value) or (
            text.value if text.is_name and _has_only_lookalikes(text.value) else ""
        ):
            letters = ", ".join(
                _character_name(char)
                for char in [*dict.fromkeys(_LOOKALIKE_LETTER.findall(word))][:_MAX_LISTED]
            )
            message, help = (
                f"`{word}` has letters that only look like Latin ones: {letters}",
                "type the word again, with one script",
            )
            yield text.make_finding(tool, "lookalike-letters", message, help)


def _find_mixed_word(text: str) -> str:
    """Return the first word with both Latin and lookalike letters, or an empty string."""
    return next(
        (
            word
            for word in _WORD.findall(text)
            if _LOOKALIKE_LETTER.search(word) and _LATIN.search(word)
        ),
        "",
    )


def _has_only_lookalikes(text: str) -> bool:
    return (
        _LOOKALIKE_LETTER.search(text) is not None and _ONLY_LOOKALIKES.fullmatch(text) is not None
    )


def check_instructions(view: ToolView) -> Iterator[Finding]:
    """No text gives instructions to the model that reads it, against the interest of its user."""
    tool = view.tool
    patterns = [
        pattern
        for pattern in _INJECTION_PATTERNS
        if all(matcher.matches(view.normalized_text) for matcher in pattern.keywords)
    ]
    for text in view.texts if patterns else ():
        matches = ((pattern, pattern.pattern.search(text.value)) for pattern in patterns)
        pattern, match = next((pair for pair in matches if pair[1]), (None, None))
        if pattern and match:
            message = f"the text {pattern.action}: `{_shorten(' '.join(match[0].split()))}`"
            help = (
                "say what the tool does, not what a model is to do; a model may follow this as "
                "an instruction"
            )
            yield text.make_finding(tool, "instruction-like", message, help)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 3]}..."


def check_scopes_grow(catalog: Catalog) -> Iterator[Finding]:
    """The newest version of a tool does not only add scopes to those of the previous version.

    If scopes are both added and removed, their names do not show whether the tool may do more or
    less; `diff` shows the change.
    """
    for previous, tool in _iter_newest_pairs(catalog):
        added = [scope for scope in tool.scopes if scope not in previous.scopes]
        if added and {*previous.scopes} <= {*tool.scopes}:
            suffix = f" and {len(added) - _MAX_LISTED:,} more" if len(added) > _MAX_LISTED else ""
            quoted = ", ".join(f"`{scope}`" for scope in added[:_MAX_LISTED])
            message = f"asks for {quoted}{suffix}, which {previous.version} did not"
            help = (
                "ask for less, or say in the pull request what needs it: users grant these scopes"
                " without being asked again"
            )
            pointer = ("scopes", [*tool.scopes].index(added[0]))
            yield Finding(
                path=tool.path, pointer=pointer, rule="scopes-grow", message=message, help=help
            )


def _iter_newest_pairs(catalog: Catalog) -> Iterator[tuple[ToolSummary, ToolSummary]]:
    """Yield the previous and the newest version of each tool with several versions."""
    last: tuple[ToolSummary, ToolSummary] | None = None
    for previous, tool in pairwise(catalog.tools):
        if tool.slug == previous.slug:
            last = previous, tool
        elif last:
            yield last
            last = None
    if last:
        yield last


TEXT_CLEANERS: Mapping[str, Callable[[str], str]] = {"hidden-character": remove_hidden_characters}
TOOL_RULES: tuple[ToolRule, ...] = (
    ToolRule("hidden-character", "error", check_hidden_characters),
    ToolRule("lookalike-letters", "warning", check_lookalike_letters),
    ToolRule("instruction-like", "warning", check_instructions),
)
_URL_HOST = re.compile(r"https://([^/?#]*)")


def check_punycode_hosts(catalog: Catalog) -> Iterator[Finding]:
    """Report URLs whose host is in punycode, which shows nobody what a browser shows."""
    for path, key, url in iter_urls(catalog):
        match = _URL_HOST.match(url)
        if match and any(label.startswith("xn--") for label in match[1].lower().split(".")):
            yield Finding(
                path=path,
                pointer=(key,),
                rule="lookalike-letters",
                message=f"`{key}` has a host in punycode, in which no one sees other letters",
                expected="a host in its own letters, or one without others",
                help="write the host as a browser shows it, and look at each letter",
            )


CATALOG_RULES: tuple[CatalogRule, ...] = (
    CatalogRule("scopes-grow", "warning", check_scopes_grow),
    CatalogRule("lookalike-letters", "warning", check_punycode_hosts),
)
