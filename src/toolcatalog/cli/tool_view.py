"""Tools and toolkits as text for a terminal.

A catalog's content cannot move the cursor or change colors, because hidden characters are shown by
name. Text is wrapped at `width`, if it is set, within its branch of the tree.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcatalog.encoding import dump_json
from toolcatalog.exports import definitions
from toolcatalog.parameters import CHILD_LABELS, LIMITS, Child, children
from toolcatalog.snapshot.format import Tool, Toolkit
from toolcatalog.textutils import escape_hidden

StyledText = tuple[str, str]  # text and style, as rich names styles; "" is none
Line = Sequence[StyledText]
Lines = Iterator[Line]

_BADGES = {
    "important": "bold",
    "readOnlyHint": "green",
    "destructiveHint": "red",
    "idempotentHint": "green",
    "openWorldHint": "cyan",
}
_MIN_TEXT_WIDTH = 20  # characters that a text has at least, however deep it stands
_MAX_VERSIONS = 5  # versions that are named
_MAX_VALUES_LENGTH = 200  # characters of a list of values


def format_tool(
    tool: Tool, toolkit: Toolkit, links: Sequence[str] = (), width: int | None = None
) -> Lines:
    """Yield the lines for a version of a tool; `links` lead to more information."""
    slug, version = _single_line(tool.slug), _single_line(tool.version)
    yield [(slug, "bold cyan"), ("  ", ""), (version, "dim")]
    yield [(_single_line(tool.name), "bold"), (f"  {_single_line(toolkit.name)}", "dim")]
    if badges := _format_badges(tool):
        yield badges
    yield []
    yield from _wrap_text(tool.description, "", "", width)
    if tool.deprecation is not None:
        yield from ([], *_format_deprecation(tool.deprecation, width))
    yield []
    yield from _format_facts(tool)
    for title, empty_note, parameters in (
        ("Inputs", "none", tool.input_parameters),
        ("Outputs", "not described", tool.output_parameters),
    ):
        yield []
        yield [(title, "bold")] if parameters else [(title, "bold"), (f"  {empty_note}", "dim")]
        yield from _format_parameters(parameters, "", width)
    if links:
        yield from ([], *([(link, "dim")] for link in links))


def format_toolkit(
    toolkit: Toolkit, version: str, tools: Iterable[Mapping[str, Any]], width: int | None = None
) -> Lines:
    """Yield the lines for a toolkit at a version; `tools` are the rows of its index."""
    rows = [*tools]
    yield [(_single_line(toolkit.slug), "bold cyan"), ("  ", ""), (_single_line(version), "dim")]
    yield [
        (_single_line(toolkit.name), "bold"),
        *([("  no auth", "green")] if toolkit.no_auth else []),
    ]
    if toolkit.description:
        yield from ([], *_wrap_text(toolkit.description, "", "", width))
    yield []
    for label, values in (
        ("Categories", toolkit.categories),
        ("Owners", toolkit.owners),
        ("Homepage", [toolkit.homepage] if toolkit.homepage else []),
    ):
        if values:
            yield _format_fact(label, ", ".join(map(_single_line, values)))
    yield _format_fact("Versions", _format_versions(toolkit.versions))
    yield _format_fact("Tools", f"{len(rows):,}")
    yield []
    slugs = [_single_line(row["slug"]) for row in rows]
    longest = max(map(len, slugs), default=0)
    for slug, row in zip(slugs, rows, strict=True):
        suffix = [("  deprecated", "yellow")] if row["deprecation"] is not None else []
        yield [
            (f"{slug:{longest}}", "cyan"),
            ("  ", ""),
            (_single_line(row["name"]), ""),
            *suffix,
        ]


def _format_badges(tool: Tool) -> list[StyledText]:
    badges = [("deprecated", "yellow")] if tool.deprecation is not None else []
    badges += [(tag, style) for tag, style in _BADGES.items() if tag in tool.tags]
    badges += [("no auth", "green")] if tool.no_auth else []
    return [piece for badge in badges for piece in ((f"[{badge[0]}]", badge[1]), (" ", ""))][:-1]


def _format_deprecation(deprecation: Mapping[str, str], width: int | None) -> Lines:
    since = f" since {_single_line(deprecation['since'])}" if deprecation.get("since") else ""
    sunset = f", until {_single_line(deprecation['sunset'])}" if deprecation.get("sunset") else ""
    instead: Line = (
        [(" Use ", ""), (_single_line(deprecation["replaced_by"]), "cyan"), (" instead.", "")]
        if deprecation.get("replaced_by")
        else []
    )
    yield [(f"Deprecated{since}{sunset}.", "yellow"), *instead]
    yield from _wrap_text(deprecation.get("reason", ""), "", "", width)


def _format_facts(tool: Tool) -> Lines:
    for label, values in (
        ("Toolkit", [tool.toolkit]),
        ("Scopes", tool.scopes),
        ("Tags", tool.tags),
    ):
        if values:
            yield _format_fact(label, ", ".join(map(_single_line, values)))
    yield _format_fact("Auth", "none needed" if tool.no_auth else "needed")
    yield _format_fact("Versions", _format_versions(tool.available_versions))
    yield _format_fact(
        "Tokens", f"about {definitions.estimate_tokens(tool):,} of a model's context"
    )


def _format_fact(label: str, text: str) -> Line:
    return [(f"{label:12}", "dim"), (text, "")]


def _format_versions(versions: Sequence[str]) -> str:
    """Return the newest versions, newest first, and how many there are if some are left out."""
    suffix = f", ... ({len(versions):,} in all)" if len(versions) > _MAX_VERSIONS else ""
    newest = map(_single_line, versions[: -_MAX_VERSIONS - 1 : -1])
    return (", ".join(newest) or "none") + suffix


# Parameters, as a tree


def _format_parameters(parameters: Mapping[str, Any], stem: str, width: int | None) -> Lines:
    items = sorted(parameters.items(), key=lambda item: not item[1].get("required"))
    yield from _format_branches(
        [(_format_name(name), parameter) for name, parameter in items], stem, width
    )


def _format_branches(
    items: Sequence[tuple[StyledText, Mapping[str, Any]]], stem: str, width: int | None
) -> Lines:
    for index, (name, parameter) in enumerate(items, 1):
        fork, deeper = ("└── ", "    ") if index == len(items) else ("├── ", "│   ")
        yield [(f"{stem}{fork}", "dim"), name, ("  ", ""), *_format_type(parameter)]
        inner = _nested_parameters(parameter)
        yield from _format_description(
            parameter, f"{stem}{deeper}{'│   ' if inner else '    '}", width
        )
        yield from _format_branches(inner, f"{stem}{deeper}", width)


def _nested_parameters(parameter: Mapping[str, Any]) -> list[tuple[StyledText, Mapping[str, Any]]]:
    """Return the parameters directly within a description, each with its label."""
    return [(_format_child_label(child), child.description) for child in children(parameter)]


def _format_child_label(child: Child) -> StyledText:
    kind = str(child.steps[0])
    return _format_name(child.name) if kind == "properties" else (CHILD_LABELS[kind], "italic")


def _format_name(name: str) -> StyledText:
    return (name if name == _single_line(name) else _format_value(name)), "bold"


def _format_type(parameter: Mapping[str, Any]) -> Lines | list[StyledText]:
    nullable = " or null" if parameter.get("nullable") else ""
    return [
        (f"{_single_line(parameter['type'])}{nullable}", "green"),
        *([(", required", "yellow")] if parameter.get("required") is True else []),
    ]


def _format_description(parameter: Mapping[str, Any], stem: str, width: int | None) -> Lines:
    yield from _wrap_text(parameter.get("description", ""), stem, "", width)
    for fact in _format_limits(parameter):
        yield from _wrap_text(fact, stem, "dim", width)


def _format_limits(parameter: Mapping[str, Any]) -> Iterator[str]:
    if limits := [f"{key} {_format_value(parameter[key])}" for key in LIMITS if key in parameter]:
        yield f"limits: {', '.join(limits)}"
    if "default" in parameter:
        yield f"default: {_format_value(parameter['default'])}"
    for label, key in (("one of", "enum"), ("examples", "examples")):
        if parameter.get(key):
            yield f"{label}: {_format_values(parameter[key])}"
    if parameter.get("additionalProperties") is False:
        yield "no other properties"


def _format_values(values: Sequence[Any]) -> str:
    """Return the first values, and how many more there are."""
    shown: list[str] = []
    length = 0
    for value in map(_format_value, values):
        length += len(value) + 2
        if shown and length > _MAX_VALUES_LENGTH:
            return f"{', '.join(shown)}, ... ({len(values) - len(shown):,} more)"
        shown.append(value)
    return ", ".join(shown)


def _format_value(value: Any) -> str:
    return escape_hidden(dump_json(value).decode())


def _single_line(text: str) -> str:
    return escape_hidden(" ".join(text.split()))


def _wrap_text(text: str, stem: str, style: str, width: int | None) -> Lines:
    """Yield a text with the stem of its branch, line by line; wrap the lines that are too long."""
    text_width = max(width - len(stem), _MIN_TEXT_WIDTH) if width else None
    for source_line in text.strip().splitlines():
        visible = escape_hidden(source_line.rstrip())
        for line in (
            textwrap.wrap(visible, text_width, break_on_hyphens=False)
            if text_width and len(visible) > text_width
            else [visible]
        ):
            yield [(stem, "dim"), (line, style)] if stem else [(line, style)]
