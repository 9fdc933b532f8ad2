"""The history of a tool: pairs of versions, their changes, and the texts that changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import takewhile
from typing import Any

import orjson
from markupsafe import Markup

from toolcatalog.diff import tool_changes
from toolcatalog.diff.change import KINDS, Change, Kind, format_name, shorten_location
from toolcatalog.exports import definitions
from toolcatalog.parameters import NESTING, children
from toolcatalog.site import text_diff
from toolcatalog.site.markdown import render_inline
from toolcatalog.snapshot.format import Tool
from toolcatalog.textutils import escape_hidden, pluralize

_BADGES: dict[Kind, str] = {
    "breaking": "breaking",
    "scope": "warn",
    "additive": "ok",
    "text": "quiet",
}
_ALL_PAIRS = 8  # versions, at most, that are all compared with each other


class ComparedVersion:
    """A version of a tool with its schemas as text, made once."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    @cached_property
    def schema(self) -> str:
        """The schemas of the inputs and outputs, as indented JSON without descriptions."""
        schemas = {
            "input": _without_texts(definitions.input_schema(self.tool.input_parameters)),
            "output": _without_texts(definitions.output_schema(self.tool.output_parameters)),
        }
        return orjson.dumps(schemas, option=orjson.OPT_INDENT_2).decode()


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

    With more than 8 versions, only neighbors are compared, and each version with the newest. The
    size of all comparisons is bounded: of those that no longer fit, the number of changes is shown.
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
    items = _render_changes(changes, older.tool, newer.tool, budget)
    schema = _render_schemas(older, newer, budget) if budget.has_space else ""
    return Comparison(
        older=older.tool.version,
        newer=newer.tool.version,
        counts=_render_counts(changes),
        changes=Markup(items),  # noqa: S704 - all parts are escaped
        schema=Markup(schema),  # noqa: S704 - all parts are escaped
    )


def _render_changes(
    changes: Sequence[Change], older: Tool, newer: Tool, budget: text_diff.Budget
) -> str:
    """Render the changes as list items, and the number of those that do not fit into the page."""
    items: list[str] = []
    if budget.has_space:
        texts = _changed_texts(older, newer), _changed_texts(newer, older)
        rendered = (_render_change(change, *texts, budget) for change in changes)
        items += takewhile(budget.fits, rendered)
    omitted = len(changes) - len(items)
    if omitted:
        budget.size = 0
        command = f"toolcatalog diff {older.slug}@{older.version} {newer.slug}@{newer.version}"
        items.append(
            f"<li>{pluralize(omitted, 'change')} not shown, as this page would be too large: "
            f"<code>{escape(command)}</code> shows them.</li>\n"
        )
    return "".join(items)


def _render_schemas(
    older: ComparedVersion, newer: ComparedVersion, budget: text_diff.Budget
) -> str:
    html = text_diff.diff_lines(older.schema, newer.schema, budget)
    return html if budget.fits(html) else "Not shown, as this page would be too large."


def _render_counts(changes: Sequence[Change]) -> Markup:
    counts = Counter(change.kind for change in changes)
    badges = (_badge(kind, f"{counts[kind]} {kind}") for kind in KINDS if counts[kind])
    return Markup(" ".join(badges))  # noqa: S704 - fixed texts and numbers


def _render_change(
    change: Change,
    old_texts: Mapping[str, str],
    new_texts: Mapping[str, str],
    budget: text_diff.Budget,
) -> str:
    """Render a change; if a description was reworded, with the difference of the texts."""
    place = escape(escape_hidden(change.location))
    text = f"{_badge(change.kind, change.kind)} <code>{place}</code> {render_inline(change.text)}"
    if change.kind == "text" and change.text.endswith("was reworded"):
        old, new = old_texts.get(change.location, ""), new_texts.get(change.location, "")
        if old != new:
            text += f'<p class="diff">{text_diff.diff_words(old, new, budget)}</p>'
    return f"<li>{text}</li>\n"


def _badge(kind: Kind, text: str) -> str:
    return f'<span class="badge {_BADGES[kind]}">{text}</span>'


def _changed_texts(tool: Tool, other: Tool) -> dict[str, str]:
    """Return the descriptions of a version, by the places that changes name.

    Parameters that are equal in the other version are left out.
    """
    texts = {"description": tool.description}
    for prefix, parameters, others in (
        ("input ", tool.input_parameters, other.input_parameters),
        ("output ", tool.output_parameters, other.output_parameters),
    ):
        for name, parameter in parameters.items():
            if parameter != others.get(name):
                _add_texts(texts, shorten_location(prefix + format_name(name)), parameter)
    return texts


def _add_texts(texts: dict[str, str], place: str, parameter: Mapping[str, Any]) -> None:
    # of places that look alike once they are shortened, no text is shown
    texts[place] = "" if place in texts else parameter["description"]
    for steps, name, inner in children(parameter):
        _add_texts(texts, shorten_location(place + _format_step(steps, name)), inner)


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


def _without_texts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions, titles and examples, which have differences by word."""
    return {
        key: value if key not in NESTING else _without_inner_texts(key, value)
        for key, value in schema.items()
        if key not in _TEXT_KEYS
    }


def _without_inner_texts(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _without_texts(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [*map(_without_texts, value)]
    return _without_texts(value) if isinstance(value, Mapping) else value


_TEXT_KEYS = frozenset(("description", "title", "examples"))
