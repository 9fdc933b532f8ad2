"""The history of a tool: pairs of versions, their changes, and the texts that changed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import orjson
from markupsafe import Markup

from toolcatalog.diff import tool_changes
from toolcatalog.diff.change import KINDS, Change, Kind, format_name
from toolcatalog.exports import definitions
from toolcatalog.parameters import children
from toolcatalog.site import text_diff
from toolcatalog.site.markdown import render_inline
from toolcatalog.snapshot.format import Tool
from toolcatalog.textutils import escape_hidden

_BADGES: dict[Kind, str] = {
    "breaking": "breaking",
    "scope": "warn",
    "additive": "ok",
    "text": "quiet",
}
_ALL_PAIRS = 8  # versions, at most, that are all compared with each other


class ComparedVersion:
    """A version of a tool with the texts that are compared, each made once."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The descriptions, by the places that changes name."""
        return dict(_list_texts(self.tool))

    @cached_property
    def schema(self) -> str:
        """The schemas of the inputs and outputs, as indented JSON without descriptions."""
        schemas = {
            "input": definitions.input_schema(self.tool.input_parameters),
            "output": definitions.output_schema(self.tool.output_parameters),
        }
        return orjson.dumps(_without_texts(schemas), option=orjson.OPT_INDENT_2).decode()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed between two versions, as HTML: badges with counts, changes, and the schemas."""

    older: str
    newer: str
    counts: Markup
    changes: Markup
    schema: Markup


def compare_versions(versions: Sequence[Tool]) -> list[Comparison]:
    """Return the comparisons of a tool's history, the newest first, from versions oldest first.

    With more than 8 versions, only neighbors are compared, and each version with the newest.
    """
    last = len(versions) - 1
    compared, budget = [*map(ComparedVersion, versions)], text_diff.Budget()
    return [
        _compare(compared[old], compared[new], budget)
        for new in range(last, 0, -1)
        for old in range(new - 1, -1, -1)
        if len(versions) <= _ALL_PAIRS or old == new - 1 or new == last
    ]


def _compare(
    older: ComparedVersion, newer: ComparedVersion, budget: text_diff.Budget
) -> Comparison:
    changes = tool_changes.compare_tools(older.tool, newer.tool)
    items = "".join(_render_change(change, older, newer, budget) for change in changes)
    schema = text_diff.diff_lines(older.schema, newer.schema, budget)
    return Comparison(
        older=older.tool.version,
        newer=newer.tool.version,
        counts=_render_counts(changes),
        changes=Markup(items),  # noqa: S704 - all parts are escaped
        schema=Markup(schema),  # noqa: S704 - all parts are escaped
    )


def _render_counts(changes: Sequence[Change]) -> Markup:
    counts = Counter(change.kind for change in changes)
    badges = (_badge(kind, f"{counts[kind]} {kind}") for kind in KINDS if counts[kind])
    return Markup(" ".join(badges))  # noqa: S704 - fixed texts and numbers


def _render_change(
    change: Change, older: ComparedVersion, newer: ComparedVersion, budget: text_diff.Budget
) -> str:
    """Render a change; if a description was reworded, with the difference of the texts."""
    place = escape(escape_hidden(change.location))
    text = f"{_badge(change.kind, change.kind)} <code>{place}</code> {render_inline(change.text)}"
    if change.kind == "text" and change.text.endswith("was reworded"):
        old, new = older.texts.get(change.location, ""), newer.texts.get(change.location, "")
        if old != new:
            text += f'<p class="diff">{text_diff.diff_words(old, new, budget)}</p>'
    return f"<li>{text}</li>\n"


def _badge(kind: Kind, text: str) -> str:
    return f'<span class="badge {_BADGES[kind]}">{text}</span>'


def _list_texts(tool: Tool) -> Iterator[tuple[str, str]]:
    yield "description", tool.description
    for prefix, parameters in (
        ("input ", tool.input_parameters),
        ("output ", tool.output_parameters),
    ):
        for name, parameter in parameters.items():
            yield from _list_parameter_texts(prefix + format_name(name), parameter)


def _list_parameter_texts(place: str, parameter: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield place, parameter["description"]
    for steps, name, inner in children(parameter):
        yield from _list_parameter_texts(place + _format_step(steps, name), inner)


def _format_step(steps: Sequence[Any], name: str) -> str:
    match steps[0]:
        case "properties":
            return f".{format_name(name)}"
        case "items":
            return "[]"
        case "additionalProperties":
            return ".*"
        case _:
            return f".{steps[0]}[{steps[1]}]"


def _without_texts(value: Any) -> Any:
    """Return a schema without descriptions, titles and examples, which have differences by word."""
    if isinstance(value, list):
        return [*map(_without_texts, value)]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("properties"), dict):
        inner = {name: _without_texts(one) for name, one in value["properties"].items()}
        rest = {key: one for key, one in value.items() if key != "properties"}
        return {**_without_texts(rest), "properties": inner}
    return {key: _without_texts(one) for key, one in value.items() if key not in _TEXT_KEYS}


_TEXT_KEYS = frozenset(("description", "title", "examples"))
