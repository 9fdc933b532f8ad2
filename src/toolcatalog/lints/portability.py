"""Portability: what is good JSON Schema and some provider of models refuses all the same, with
every other tool of the request. Pure.

The limits are those of providers' documents and of what their servers answered; each rule's page
names the source and its date.
"""

import re
from collections.abc import Iterator
from itertools import chain

from toolcatalog.errors import Finding, Pointer
from toolcatalog.lints.kinds import Lint
from toolcatalog.lints.texts import ToolView
from toolcatalog.model import ToolVersion
from toolcatalog.snapshot import dump

_DEEPEST = 5  # objects within each other, the arguments being the first
_MOST_PARAMETERS = 100
_MOST_TOKENS = 2000
_MOST_VALUES = 250  # of one enum
_ALL_VALUES = 500  # of all enums of a tool
_LONGEST_NAME = 64
_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_FORMATS = ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SET = re.compile(r"\[[^\]]*\]")
_EXTENSION = re.compile(r"\(\?(<[=!]|.?)")
_ESCAPES = {
    **dict.fromkeys("pP", "a class of Unicode characters"),
    **dict.fromkeys("AZz", "an anchor other than `^` and `$`"),
    **dict.fromkeys("123456789k", "a reference back to a group"),
}
_RARE = "a named group, a flag or another extension behind `(?`"
_EXTENSIONS = {
    ":": "",
    **dict.fromkeys(("=", "!"), "a look ahead"),
    **dict.fromkeys(("<=", "<!"), "a look behind"),
}


def slug_begins_like_a_name(view: ToolView) -> Iterator[Finding]:
    """A tool's slug begins with a letter or `_`."""
    tool = view.tool
    first = tool.slug[:1]
    if not (first.isalpha() or first == "_"):
        message, expected = f"the slug begins with `{first}`", "a letter or `_`"
        help = "rename the folder: put a word before it"
        yield Finding(
            path=tool.path, rule="slug-start", message=message, expected=expected, help=help
        )


def parameters_have_plain_names(view: ToolView) -> Iterator[Finding]:
    """Names of inputs, nested ones too, have only characters and a length that all providers take."""
    tool = view.tool
    help = "take a plainer name, and let what runs the tool translate it"
    for place in view.inputs:
        if place.name and not _NAME.fullmatch(place.name):
            message = f"the parameter name `{place.name}` is not plain"
            yield _at_key(
                tool,
                place.pointer,
                "parameter-name",
                message,
                "ASCII letters, digits, `_`, `.` and `-` only",
                help,
            )
        elif len(place.name) > _LONGEST_NAME:
            message = f"the parameter name has {len(place.name)} characters"
            yield _at_key(
                tool, place.pointer, "parameter-name", message, f"at most {_LONGEST_NAME}", help
            )


def inputs_are_shallow(view: ToolView) -> Iterator[Finding]:
    """Objects lie in each other no deeper than strict modes take; told at the first value that is
    too deep.
    """
    tool = view.tool
    deep = next((place for place in view.inputs if place.level > _DEEPEST), None)
    if deep:
        message = f"this value lies in {deep.level} objects within each other"
        help = "lift inner values up, or take a text that holds the inner structure"
        yield _at_key(tool, deep.pointer, "nesting-deep", message, f"at most {_DEEPEST}", help)


def inputs_are_few(view: ToolView) -> Iterator[Finding]:
    """The named inputs, nested ones counted, are not more than strict modes take."""
    tool = view.tool
    places = view.inputs
    count = sum(1 for place in places if place.name) if len(places) > _MOST_PARAMETERS else 0
    if count > _MOST_PARAMETERS:
        message = f"the tool takes {count:,} parameters, nested ones counted"
        help = "split the tool by what people do with it, and leave out what nobody sets"
        yield _at_key(
            tool,
            ("input_parameters",),
            "parameters-many",
            message,
            f"at most {_MOST_PARAMETERS}",
            help,
        )


def definition_is_small(view: ToolView) -> Iterator[Finding]:
    """A definition leaves room in a model's context: an estimate, of four bytes of the inputs as
    written a token.
    """
    tool = view.tool
    size = -(-(len(tool.description) + len(dump(tool.input_parameters))) // 4)
    if size > _MOST_TOKENS:
        message = f"the definition takes about {size:,} tokens"
        help = "shorten descriptions, examples and enums, or split the tool"
        yield _at_key(
            tool,
            ("input_parameters",),
            "definition-large",
            message,
            f"at most {_MOST_TOKENS:,}",
            help,
        )


def enums_are_short(view: ToolView) -> Iterator[Finding]:
    """Lists of allowed values have no more of them than providers take, each and all together."""
    tool = view.tool
    help = "say in the description which values there are, or offer a tool that lists them"
    total = 0
    for place in view.inputs:
        count = len(place.description.get("enum", ()))
        total += count
        if count > _MOST_VALUES:
            yield _at_key(
                tool,
                (*place.pointer, "enum"),
                "enum-large",
                f"the enum has {count:,} values",
                f"at most {_MOST_VALUES}",
                help,
            )
    if total > _ALL_VALUES:
        message = f"the enums have {total:,} values together"
        yield _at_key(
            tool, ("input_parameters",), "enum-large", message, f"at most {_ALL_VALUES}", help
        )


def enums_are_texts(view: ToolView) -> Iterator[Finding]:
    """Only strings have an enum."""
    tool = view.tool
    help = "use `minimum` and `maximum`, or name the values in the description"
    for place in view.inputs:
        kind = place.description.get("type", "string")
        if kind != "string" and "enum" in place.description:
            yield _at_key(
                tool,
                (*place.pointer, "enum"),
                "enum-not-text",
                f"an enum of type {kind}",
                "an enum of type string",
                help,
            )


def arrays_say_of_what(view: ToolView) -> Iterator[Finding]:
    """An array among the inputs has `items`."""
    tool = view.tool
    for place in view.inputs:
        if place.description.get("type") == "array" and "items" not in place.description:
            message = "this array does not say what it is a list of"
            yield _at_key(
                tool,
                place.pointer,
                "array-items",
                message,
                "`items` with a type",
                "add `items: {type: ...}`",
            )


def patterns_are_common(view: ToolView) -> Iterator[Finding]:
    """A pattern of an input has nothing that only some regular expression engines know."""
    tool = view.tool
    for place in view.inputs:
        odd = _oddity(place.description["pattern"]) if "pattern" in place.description else ""
        if odd:
            expected = (
                "what every engine knows: characters, sets, plain groups, `|`, counts, `^` and `$`"
            )
            help = (
                "write it without, or drop the pattern and say in the description what is allowed"
            )
            pointer = (*place.pointer, "pattern")
            message = f"the pattern has {odd}"
            yield Finding(
                path=tool.path,
                pointer=pointer,
                rule="pattern-rare",
                message=message,
                expected=expected,
                help=help,
            )


def _oddity(pattern: str) -> str:
    """What of a pattern is not common to all engines, in words; empty where there is nothing."""
    escapes = (_ESCAPES.get(escape[1], "") for escape in _ESCAPED.finditer(pattern))
    bare = _SET.sub("", _ESCAPED.sub("", pattern))  # what stands in brackets is no group
    extensions = (_EXTENSIONS.get(found[1], _RARE) for found in _EXTENSION.finditer(bare))
    return next((odd for odd in chain(escapes, extensions) if odd), "")


def formats_are_common(view: ToolView) -> Iterator[Finding]:
    """A format of an input is one that strict modes know."""
    tool = view.tool
    for place in view.inputs:
        named = place.description.get("format")
        if named is not None and named not in _FORMATS:
            message, expected = (
                f"strict modes refuse the format `{named}`",
                "one of " + ", ".join(_FORMATS),
            )
            help = "drop the format and say in the description what the text looks like"
            pointer = (*place.pointer, "format")
            yield Finding(
                path=tool.path,
                pointer=pointer,
                rule="format-rare",
                message=message,
                expected=expected,
                help=help,
            )


def _at_key(
    tool: ToolVersion, pointer: Pointer, rule: str, message: str, expected: str, help: str
) -> Finding:
    return Finding(
        path=tool.path,
        pointer=pointer,
        at_key=True,
        rule=rule,
        message=message,
        expected=expected,
        help=help,
    )


LINTS: tuple[Lint, ...] = (
    Lint("slug-start", "warning", slug_begins_like_a_name),
    Lint("parameter-name", "warning", parameters_have_plain_names),
    Lint("nesting-deep", "warning", inputs_are_shallow),
    Lint("parameters-many", "warning", inputs_are_few),
    Lint("definition-large", "warning", definition_is_small),
    Lint("enum-large", "warning", enums_are_short),
    Lint("enum-not-text", "note", enums_are_texts),
    Lint("array-items", "warning", arrays_say_of_what),
    Lint("pattern-rare", "warning", patterns_are_common),
    Lint("format-rare", "note", formats_are_common),
)
