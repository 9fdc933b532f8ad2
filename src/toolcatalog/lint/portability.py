"""Lint rules for portability: valid JSON Schema that some model providers reject.

The limits come from the documentation of providers and from responses of their servers. The page of
each rule names the source and its date.
"""

import re
from collections.abc import Iterator
from itertools import chain

from toolcatalog.catalog.model import ToolVersion
from toolcatalog.encoding import dump_json
from toolcatalog.errors import Finding, Pointer
from toolcatalog.lint.rule import ToolRule
from toolcatalog.lint.views import ToolView

_MAX_DEPTH = 5  # levels of nested objects; the arguments object is the first
_MAX_PARAMETERS = 100
_MAX_TOKENS = 2000
_MAX_ENUM_VALUES = 250  # of one enum
_MAX_TOTAL_ENUM_VALUES = 500  # of all enums of a tool
_MAX_NAME_LENGTH = 64
_PORTABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_FORMATS = ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CHARACTER_CLASS = re.compile(r"\[[^\]]*\]")
_GROUP_EXTENSION = re.compile(r"\(\?(<[=!]|.?)")
_RARE_ESCAPES = {
    **dict.fromkeys("pP", "a class of Unicode characters"),
    **dict.fromkeys("AZz", "an anchor other than `^` and `$`"),
    **dict.fromkeys("123456789k", "a reference back to a group"),
}
_UNKNOWN_EXTENSION = "a named group, a flag or another extension behind `(?`"
_GROUP_EXTENSIONS = {
    ":": "",
    **dict.fromkeys(("=", "!"), "a look ahead"),
    **dict.fromkeys(("<=", "<!"), "a look behind"),
}


def check_slug_start(view: ToolView) -> Iterator[Finding]:
    """A tool's slug begins with a letter or `_`."""
    tool = view.tool
    first = tool.slug[:1]
    if not (first.isalpha() or first == "_"):
        message, expected = f"the slug starts with `{first}`", "a letter or `_`"
        help = "rename the folder: put a word before it"
        yield Finding(
            path=tool.path, rule="slug-start", message=message, expected=expected, help=help
        )


def check_parameter_names(view: ToolView) -> Iterator[Finding]:
    """Names of inputs, nested ones too, have characters and a length that all providers accept."""
    tool = view.tool
    help = "use a plainer name, and translate it where the tool runs"
    for node in view.inputs:
        if node.name and not _PORTABLE_NAME.fullmatch(node.name):
            message = f"the parameter name `{node.name}` is not plain"
            yield _finding_at_key(
                tool,
                node.pointer,
                "parameter-name",
                message,
                "ASCII letters, digits, `_`, `.` and `-` only",
                help,
            )
        elif len(node.name) > _MAX_NAME_LENGTH:
            message = f"the parameter name has {len(node.name)} characters"
            yield _finding_at_key(
                tool, node.pointer, "parameter-name", message, f"at most {_MAX_NAME_LENGTH}", help
            )


def check_nesting_depth(view: ToolView) -> Iterator[Finding]:
    """Objects are not nested deeper than strict modes allow.

    Only the first value that is too deep is reported.
    """
    tool = view.tool
    too_deep = next((node for node in view.inputs if node.depth > _MAX_DEPTH), None)
    if too_deep:
        message = f"this value is nested in {too_deep.depth} objects"
        help = "move inner values up, or use a string that contains the inner structure"
        yield _finding_at_key(
            tool, too_deep.pointer, "nesting-deep", message, f"at most {_MAX_DEPTH}", help
        )


def check_parameter_count(view: ToolView) -> Iterator[Finding]:
    """A tool has no more named inputs, including nested ones, than strict modes allow."""
    tool = view.tool
    nodes = view.inputs
    count = sum(1 for node in nodes if node.name) if len(nodes) > _MAX_PARAMETERS else 0
    if count > _MAX_PARAMETERS:
        message = f"the tool takes {count:,} parameters, including nested ones"
        help = "split the tool by what people do with it, and leave out what no one sets"
        yield _finding_at_key(
            tool,
            ("input_parameters",),
            "parameters-many",
            message,
            f"at most {_MAX_PARAMETERS}",
            help,
        )


def check_definition_size(view: ToolView) -> Iterator[Finding]:
    """A definition leaves room in a model's context.

    The size is an estimate: one token per four characters of the description and per four bytes of
    the inputs as JSON.
    """
    tool = view.tool
    size = -(-(len(tool.description) + len(dump_json(tool.input_parameters))) // 4)
    if size > _MAX_TOKENS:
        message = f"the definition takes about {size:,} tokens"
        help = "shorten descriptions, examples and enums, or split the tool"
        yield _finding_at_key(
            tool,
            ("input_parameters",),
            "definition-large",
            message,
            f"at most {_MAX_TOKENS:,}",
            help,
        )


def check_enum_size(view: ToolView) -> Iterator[Finding]:
    """Enums have no more values than providers allow, each and in total."""
    tool = view.tool
    help = "say in the description which values there are, or offer a tool that lists them"
    total = 0
    for node in view.inputs:
        count = len(node.description.get("enum", ()))
        total += count
        if count > _MAX_ENUM_VALUES:
            yield _finding_at_key(
                tool,
                (*node.pointer, "enum"),
                "enum-large",
                f"the enum has {count:,} values",
                f"at most {_MAX_ENUM_VALUES}",
                help,
            )
    if total > _MAX_TOTAL_ENUM_VALUES:
        message = f"the enums have {total:,} values together"
        yield _finding_at_key(
            tool,
            ("input_parameters",),
            "enum-large",
            message,
            f"at most {_MAX_TOTAL_ENUM_VALUES}",
            help,
        )


def check_enum_type(view: ToolView) -> Iterator[Finding]:
    """Only strings have an enum."""
    tool = view.tool
    help = "use `minimum` and `maximum`, or name the values in the description"
    for node in view.inputs:
        kind = node.description.get("type", "string")
        if kind != "string" and "enum" in node.description:
            yield _finding_at_key(
                tool,
                (*node.pointer, "enum"),
                "enum-not-text",
                f"an enum of type {kind}",
                "an enum of type string",
                help,
            )


def check_array_items(view: ToolView) -> Iterator[Finding]:
    """An array among the inputs has `items`."""
    tool = view.tool
    for node in view.inputs:
        if node.description.get("type") == "array" and "items" not in node.description:
            message = "this array does not say what it is a list of"
            yield _finding_at_key(
                tool,
                node.pointer,
                "array-items",
                message,
                "`items` with a type",
                "add `items: {type: ...}`",
            )


def check_patterns(view: ToolView) -> Iterator[Finding]:
    """A pattern of an input uses no syntax that only some regular expression engines support."""
    tool = view.tool
    for node in view.inputs:
        rare_syntax = (
            _find_rare_syntax(node.description["pattern"]) if "pattern" in node.description else ""
        )
        if rare_syntax:
            expected = (
                "what every engine knows: characters, sets, plain groups, `|`, counts, `^` and `$`"
            )
            help = (
                "write it without, or drop the pattern and say in the description what is allowed"
            )
            pointer = (*node.pointer, "pattern")
            message = f"the pattern has {rare_syntax}"
            yield Finding(
                path=tool.path,
                pointer=pointer,
                rule="pattern-rare",
                message=message,
                expected=expected,
                help=help,
            )


def _find_rare_syntax(pattern: str) -> str:
    """Return a description of syntax that not all engines support, or an empty string."""
    escapes = (_RARE_ESCAPES.get(escape[1], "") for escape in _ESCAPED.finditer(pattern))
    without_classes = _CHARACTER_CLASS.sub(
        "", _ESCAPED.sub("", pattern)
    )  # a character class contains no groups
    extensions = (
        _GROUP_EXTENSIONS.get(match[1], _UNKNOWN_EXTENSION)
        for match in _GROUP_EXTENSION.finditer(without_classes)
    )
    return next((description for description in chain(escapes, extensions) if description), "")


def check_formats(view: ToolView) -> Iterator[Finding]:
    """A format of an input is one that strict modes accept."""
    tool = view.tool
    for node in view.inputs:
        format_name = node.description.get("format")
        if format_name is not None and format_name not in _FORMATS:
            message, expected = (
                f"strict modes refuse the format `{format_name}`",
                "one of " + ", ".join(_FORMATS),
            )
            help = "drop the format and say in the description what the text looks like"
            pointer = (*node.pointer, "format")
            yield Finding(
                path=tool.path,
                pointer=pointer,
                rule="format-rare",
                message=message,
                expected=expected,
                help=help,
            )


def _finding_at_key(
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


TOOL_RULES: tuple[ToolRule, ...] = (
    ToolRule("slug-start", "warning", check_slug_start),
    ToolRule("parameter-name", "warning", check_parameter_names),
    ToolRule("nesting-deep", "warning", check_nesting_depth),
    ToolRule("parameters-many", "warning", check_parameter_count),
    ToolRule("definition-large", "warning", check_definition_size),
    ToolRule("enum-large", "warning", check_enum_size),
    ToolRule("enum-not-text", "note", check_enum_type),
    ToolRule("array-items", "warning", check_array_items),
    ToolRule("pattern-rare", "warning", check_patterns),
    ToolRule("format-rare", "note", check_formats),
)
