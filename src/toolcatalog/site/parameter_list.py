"""Parameters of a tool as nested lists, each with its type, description and limits.

Nearly all of a site is parameters, so they are rendered by plain functions: recursive template
macros took most of the time of a build. Each parameter has an anchor, such as
`input-filter.state`; nested parameters are folded into their parent.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any
from urllib.parse import quote

from toolcatalog.encoding import dump_json
from toolcatalog.parameters import NESTING, children
from toolcatalog.site import lists, markdown
from toolcatalog.textutils import escape_hidden

ServedParameter = Mapping[str, Any]

# keys of the lower and the upper limit, and what they count
_RANGES = (
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minimum", "maximum", ""),
)
_WORDS = {  # other limits
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "format": "format",
    "pattern": "pattern",
    "default": "default",
}
_FLAGS = {"uniqueItems": "no duplicates", "nullable": "may be null"}
_RANGE_KEYS = frozenset(key for low, high, _ in _RANGES for key in (low, high))
LIMIT_KEYS = _RANGE_KEYS.union(_WORDS, _FLAGS)
_FACT_KEYS = LIMIT_KEYS.union(("enum", "examples"))
_OTHER_NESTING = NESTING - {"properties"}
_MAX_ANCHOR_LENGTH = 500  # characters; a longer one becomes a digest, or pages could be huge
_MAX_VALUES = 12  # values of an enum that are shown at once


def render_parameters(parameters: Mapping[str, ServedParameter], anchor: str) -> str:
    """Render parameters in their served form as a list, required ones first.

    Catalog texts are escaped. No parameters give an empty result.
    """
    if not parameters:
        return ""
    items = sorted(parameters.items(), key=lambda item: not item[1].get("required"))
    body = "".join([_render_item(name, it, _join_anchor(anchor, name)) for name, it in items])
    return f'<ul class="params">\n{body}</ul>'


def _join_anchor(parent: str, name: str) -> str:
    """Return the anchor of a parameter; names with many characters in many levels get a digest."""
    anchor = parent + _encode_anchor(name)
    if len(anchor) <= _MAX_ANCHOR_LENGTH:
        return anchor
    start = parent.partition("-")[0]
    return f"{start}-~{hashlib.sha256(anchor.encode()).hexdigest()[:32]}"


@lru_cache(maxsize=1 << 14)
def _encode_anchor(name: str) -> str:
    """Return a name as part of an anchor, unique among all names and paths of names."""
    return quote(name, safe="").replace(".", "%2E")


def _render_item(name: str, parameter: ServedParameter, anchor: str) -> str:
    required = " <strong>required</strong>" if parameter.get("required") else ""
    target = anchor.replace("%", "%25")
    code = lists.render_identifier(name)
    head = f'<a href="#{target}">{code}</a> <span>{_render_type(parameter)}</span>'
    body = _render_description(parameter, anchor)
    return f'<li id="{anchor}"><p class="param">{head}{required}</p>{body}</li>\n'


def _render_type(parameter: ServedParameter) -> str:
    kind, items = str(parameter["type"]), parameter.get("items")
    if kind == "array" and isinstance(items, Mapping):
        kind = f"array of {items['type']}"
    return kind if kind.isalpha() else escape(kind)


def _render_description(parameter: ServedParameter, anchor: str) -> str:
    """Render everything about a parameter but its name and type.

    Most parameters are not nested, and many have no limits.
    """
    html = markdown.render_block(parameter["description"])
    if not _FACT_KEYS.isdisjoint(parameter):
        html += _render_limits(parameter)
    return html if NESTING.isdisjoint(parameter) else html + _render_nested(parameter, anchor)


def _render_nested(parameter: ServedParameter, anchor: str) -> str:
    return "".join(_list_nested(parameter, anchor))


def _list_nested(parameter: ServedParameter, anchor: str) -> Iterator[str]:
    """Yield the folded HTML of each nested description of a parameter."""
    if properties := parameter.get("properties"):
        fields = render_parameters(properties, f"{anchor}.")
        yield _render_details(_count_fields(properties), fields)
    if _OTHER_NESTING.isdisjoint(parameter):
        return
    branch = 0
    for steps, _, description in children(parameter):
        match steps[0]:
            case "properties":
                continue
            case "items":
                label, part = "Each item", "items"
            case "additionalProperties":
                label, part = "Each other value", "others"
            case _:
                label = f"{'or' if branch else 'Either'}: {description['type']}"
                part, branch = f"{branch}", branch + 1
        if html := _render_description(description, f"{anchor}.{part}"):
            yield _render_details(label, html)


def _count_fields(properties: Mapping[str, Any]) -> str:
    return f"{len(properties)} field{'' if len(properties) == 1 else 's'}"


def _render_details(summary: str, html: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def _render_limits(parameter: ServedParameter) -> str:
    """Render each limit of a parameter in a few words, then its values and examples."""
    facts: list[str] = []
    if not LIMIT_KEYS.isdisjoint(parameter):
        _add_constraints(facts, parameter)
    if values := parameter.get("enum"):
        facts.append(_render_enum(values))
    if values := parameter.get("examples"):
        facts.append(f"e.g. {' '.join(map(_render_value, values))}")
    return f'<p class="limits">{" · ".join(facts)}</p>' if facts else ""


def _add_constraints(facts: list[str], parameter: ServedParameter) -> None:
    if not _RANGE_KEYS.isdisjoint(parameter):
        for low, high, unit in _RANGES:
            if low in parameter or high in parameter:
                facts.append(_format_range(parameter.get(low), parameter.get(high), unit))
    for key, words in _WORDS.items():
        if key in parameter:
            facts.append(f"{words} {_render_value(parameter[key])}")
    for key, words in _FLAGS.items():
        if parameter.get(key):
            facts.append(words)


def _format_range(low: Any, high: Any, unit: str) -> str:
    if high is None:
        return f"at least {_render_json(low)}{unit}"
    if low is None:
        return f"at most {_render_json(high)}{unit}"
    same = low == high
    limits = _render_json(low) if same else f"{_render_json(low)}\N{EN DASH}{_render_json(high)}"
    return f"{'exactly ' if same else ''}{limits}{unit}"


def _render_json(value: Any) -> str:
    return str(value) if type(value) is int else _escape_text(dump_json(value).decode())


def _render_enum(values: list[Any]) -> str:
    first, rest = values[:_MAX_VALUES], values[_MAX_VALUES:]
    # a <details> cannot be in a paragraph, so the other values follow in a span
    more = f' <span class="more">{" ".join(map(_render_value, rest))}</span>' if rest else ""
    return f"one of {' '.join(map(_render_value, first))}{more}"


def _render_value(value: Any) -> str:
    if type(value) is str:
        return _render_text(value)
    return f"<code>{_render_json(value)}</code>"


@lru_cache(maxsize=1 << 14)
def _render_text(text: str) -> str:
    """Render a text without quotes if it has no special characters, and else as JSON."""
    is_plain = text.isprintable() and text == text.strip() != ""
    return f"<code>{_escape_text(text if is_plain else dump_json(text).decode())}</code>"


def _escape_text(text: str) -> str:
    # quotes stay, because this is never used in an attribute
    return escape(text if text.isascii() else escape_hidden(text), quote=False)
