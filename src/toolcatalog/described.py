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

from toolcatalog import markdown, unseen
from toolcatalog.parameters import children
from toolcatalog.snapshot import dump

_LIMITS = {
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
Described = Mapping[str, Any]


def table(parameters: Mapping[str, Described], anchor: str, caption: str) -> Markup:
    """A map of parameters in their served form, the required ones first; empty where there are
    none. What they say is escaped.
    """
    return Markup(_table(parameters, anchor, caption))  # noqa: S704 - of escaped parts


def _table(parameters: Mapping[str, Described], anchor: str, caption: str) -> str:
    if not parameters:
        return ""
    rows = sorted(parameters.items(), key=lambda item: not item[1].get("required"))
    body = "".join(_row(name, it, f"{anchor}{_part(name)}") for name, it in rows)
    head = '<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Description</th></tr></thead>'
    return f'<table class="parameters"><caption>{escape(caption)}</caption>{head}<tbody>\n{body}</tbody></table>'


@lru_cache(maxsize=1 << 14)
def _part(name: str) -> str:
    """A name as part of an anchor: no other name, and no path of names, has the same."""
    return quote(name, safe="").replace(".", "%2E")


def _row(name: str, it: Described, anchor: str) -> str:
    required = ' <span class="badge key">required</span>' if it.get("required") else ""
    target = anchor.replace("%", "%25")
    link = f'<a class="anchor" href="#{target}"><code>{_text(name)}</code></a>'
    return f'<tr id="{anchor}"><th scope="row">{link}{required}</th><td>{escape(_type(it))}</td><td>{_described(it, anchor)}</td></tr>\n'


def _type(it: Described) -> str:
    items = it.get("items")
    return (
        f"{it['type']} of {items['type']}"
        if it["type"] == "array" and isinstance(items, Mapping)
        else str(it["type"])
    )


def _described(it: Described, anchor: str) -> str:
    return "".join(
        (
            markdown.block(it["description"]),
            _facts(it),
            *_within(it, anchor),
        )
    )


def _within(it: Described, anchor: str) -> Iterator[str]:
    """Yield what a description contains, folded."""
    if properties := it.get("properties"):
        yield _folded(_count(properties), _table(properties, f"{anchor}.", "Fields"))
    branch = 0
    for steps, _, description in children(it):
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
        if html := _described(description, f"{anchor}.{part}"):
            yield _folded(label, html)


def _count(properties: Mapping[str, Any]) -> str:
    return f"{len(properties)} field{'' if len(properties) == 1 else 's'}"


def _folded(what: str, html: str) -> str:
    return f"<details><summary>{escape(what)}</summary>{html}</details>"


def _facts(it: Described) -> str:
    facts = [
        f"<li>{words}{_told(it[key])}</li>"
        for key, words in _LIMITS.items()
        if key in it and it[key] is not False
    ]
    facts += [f"<li>default {_literal(it['default'])}</li>"] if "default" in it else []
    for what, key in (("one of", "enum"), ("for example", "examples")):
        if it.get(key):
            facts.append(f"<li>{what} {' '.join(map(_literal, it[key]))}</li>")
    return f'<ul class="limits">{"".join(facts)}</ul>' if facts else ""


def _text(text: str) -> str:
    # never in an attribute
    return escape(text if text.isascii() else unseen.visible(text), quote=False)


def _told(limit: Any) -> str:
    return "" if limit is True else f" {_literal(limit)}"


def _literal(value: Any) -> str:
    return f"<code>{_text(dump(value).decode())}</code>"
