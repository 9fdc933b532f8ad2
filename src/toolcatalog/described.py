"""What a tool takes or returns, as an HTML table. Pure.

The descriptions of parameters are most of a tool's page, so they are made by plain functions: as
recursive macros of a template they took most of a build's time. Each parameter has an anchor,
`input-filter.state`; what it holds within it is folded into its row.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from toolcatalog import markdown, textutils
from toolcatalog.encoding import dump_json
from toolcatalog.parameters import children

_LIMIT_LABELS = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "shortest length",
    "maxLength": "longest length",
    "minItems": "fewest items",
    "maxItems": "most items",
    "uniqueItems": "no item twice",
    "nullable": "may be null",
}
ServedParameter = Mapping[str, Any]


def render_parameters(
    parameters: Mapping[str, ServedParameter], anchor: str, caption: str
) -> Markup:
    """A map of parameters in their served form, the required ones first; empty where there are
    none. What they say is escaped.
    """
    return Markup(_render_table(parameters, anchor, caption))  # noqa: S704 - of escaped parts


def _render_table(parameters: Mapping[str, ServedParameter], anchor: str, caption: str) -> str:
    if not parameters:
        return ""
    rows = sorted(parameters.items(), key=lambda item: not item[1].get("required"))
    body = "".join(_render_row(name, it, f"{anchor}{_encode_anchor(name)}") for name, it in rows)
    head = '<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Description</th></tr></thead>'
    return f'<table class="parameters"><caption>{escape(caption)}</caption>{head}<tbody>\n{body}</tbody></table>'


@lru_cache(maxsize=1 << 14)
def _encode_anchor(name: str) -> str:
    """A name as part of an anchor: no other name, and no path of names, has the same."""
    return quote(name, safe="").replace(".", "%2E")


def _render_row(name: str, parameter: ServedParameter, anchor: str) -> str:
    required = ' <span class="badge key">required</span>' if parameter.get("required") else ""
    target = anchor.replace("%", "%25")
    link = f'<a class="anchor" href="#{target}"><code>{_escape_text(name)}</code></a>'
    return f'<tr id="{anchor}"><th scope="row">{link}{required}</th><td>{escape(_format_type(parameter))}</td><td>{_render_description(parameter, anchor)}</td></tr>\n'


def _format_type(parameter: ServedParameter) -> str:
    items = parameter.get("items")
    return (
        f"{parameter['type']} of {items['type']}"
        if parameter["type"] == "array" and isinstance(items, Mapping)
        else str(parameter["type"])
    )


def _render_description(parameter: ServedParameter, anchor: str) -> str:
    return "".join(
        (
            markdown.render_block(parameter["description"]),
            _render_limits(parameter),
            *_render_nested(parameter, anchor),
        )
    )


def _render_nested(parameter: ServedParameter, anchor: str) -> Iterator[str]:
    """Yield what a description contains, folded."""
    if properties := parameter.get("properties"):
        yield _render_details(
            _format_field_count(properties), _render_table(properties, f"{anchor}.", "Fields")
        )
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


def _format_field_count(properties: Mapping[str, Any]) -> str:
    return f"{len(properties)} field{'' if len(properties) == 1 else 's'}"


def _render_details(summary: str, html: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def _render_limits(parameter: ServedParameter) -> str:
    facts = [
        f"<li>{words}{_render_limit(parameter[key])}</li>"
        for key, words in _LIMIT_LABELS.items()
        if key in parameter and parameter[key] is not False
    ]
    facts += (
        [f"<li>default {_render_literal(parameter['default'])}</li>"]
        if "default" in parameter
        else []
    )
    for what, key in (("one of", "enum"), ("for example", "examples")):
        if parameter.get(key):
            facts.append(f"<li>{what} {' '.join(map(_render_literal, parameter[key]))}</li>")
    return f'<ul class="limits">{"".join(facts)}</ul>' if facts else ""


def _escape_text(text: str) -> str:
    # never in an attribute
    return escape(text if text.isascii() else textutils.escape_hidden(text), quote=False)


def _render_limit(limit: Any) -> str:
    return "" if limit is True else f" {_render_literal(limit)}"


def _render_literal(value: Any) -> str:
    return f"<code>{_escape_text(dump_json(value).decode())}</code>"
