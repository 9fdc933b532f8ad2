"""A tool or a toolkit as a person reads it in a terminal: lines of pieces, each with a style that
may be dropped. Pure.

What a catalog says cannot move the cursor or change colours: characters that cannot be seen are
named. Text is broken at `width`, where there is one, so that it stays within its branch of the
tree.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcatalog import exports
from toolcatalog.parameters import CHILD_LABELS, LIMITS, Child, children
from toolcatalog.snapshot import Tool, Toolkit, dump
from toolcatalog.unseen import visible

Piece = tuple[str, str]  # text and style, as rich names styles; "" is none
Line = Sequence[Piece]
Lines = Iterator[Line]

_BADGES = {
    "important": "bold",
    "readOnlyHint": "green",
    "destructiveHint": "red",
    "idempotentHint": "green",
    "openWorldHint": "cyan",
}
_NARROWEST = 20  # characters that a text has at least, however deep it stands
_FEW = 5  # versions that are named
_LONGEST = 200  # characters of a list of values


def tool(one: Tool, toolkit: Toolkit, links: Sequence[str] = (), width: int | None = None) -> Lines:
    """Everything about a version of a tool; `links` lead to more."""
    yield [(one.slug, "bold cyan"), ("  ", ""), (one.version, "dim")]
    yield [(_line(one.name), "bold"), (f"  {_line(toolkit.name)}", "dim")]
    if badges := _badges(one):
        yield badges
    yield []
    yield from _text(one.description, "", "", width)
    if one.deprecation is not None:
        yield from ([], *_deprecation(one.deprecation, width))
    yield []
    yield from _facts(one)
    for title, none, described in (
        ("Inputs", "none", one.input_parameters),
        ("Outputs", "not described", one.output_parameters),
    ):
        yield []
        yield [(title, "bold")] if described else [(title, "bold"), (f"  {none}", "dim")]
        yield from _parameters(described, "", width)
    if links:
        yield from ([], *([(link, "dim")] for link in links))


def kit(
    one: Toolkit, version: str, tools: Iterable[Mapping[str, Any]], width: int | None = None
) -> Lines:
    """A toolkit at a version, and a line for each of its tools; `tools` are rows of its index."""
    rows = [*tools]
    yield [(one.slug, "bold cyan"), ("  ", ""), (version, "dim")]
    yield [(_line(one.name), "bold"), *([("  no auth", "green")] if one.no_auth else [])]
    if one.description:
        yield from ([], *_text(one.description, "", "", width))
    yield []
    for what, said in (
        ("Categories", one.categories),
        ("Owners", one.owners),
        ("Homepage", [one.homepage] if one.homepage else []),
    ):
        if said:
            yield _fact(what, ", ".join(map(_line, said)))
    yield _fact("Versions", _versions(one.versions))
    yield _fact("Tools", f"{len(rows):,}")
    yield []
    longest = max((len(row["slug"]) for row in rows), default=0)
    for row in rows:
        mark = [("  deprecated", "yellow")] if row["deprecation"] is not None else []
        yield [(f"{row['slug']:{longest}}", "cyan"), ("  ", ""), (_line(row["name"]), ""), *mark]


def _badges(one: Tool) -> list[Piece]:
    found = [("deprecated", "yellow")] if one.deprecation is not None else []
    found += [(tag, style) for tag, style in _BADGES.items() if tag in one.tags]
    found += [("no auth", "green")] if one.no_auth else []
    return [piece for badge in found for piece in ((f"[{badge[0]}]", badge[1]), (" ", ""))][:-1]


def _deprecation(said: Mapping[str, str], width: int | None) -> Lines:
    since = f" since {_line(said['since'])}" if said.get("since") else ""
    sunset = f", until {_line(said['sunset'])}" if said.get("sunset") else ""
    instead: Line = (
        [(" Use ", ""), (said["replaced_by"], "cyan"), (" instead.", "")]
        if said.get("replaced_by")
        else []
    )
    yield [(f"Deprecated{since}{sunset}.", "yellow"), *instead]
    yield from _text(said.get("reason", ""), "", "", width)


def _facts(one: Tool) -> Lines:
    for what, said in (("Toolkit", [one.toolkit]), ("Scopes", one.scopes), ("Tags", one.tags)):
        if said:
            yield _fact(what, ", ".join(map(_line, said)))
    yield _fact("Auth", "none needed" if one.no_auth else "needed")
    yield _fact("Versions", _versions(one.available_versions))
    yield _fact("Tokens", f"about {exports.tokens(one):,} of a model's context")


def _fact(what: str, said: str) -> Line:
    return [(f"{what:12}", "dim"), (said, "")]


def _versions(versions: Sequence[str]) -> str:
    """How many there are, and the newest of them, newest first."""
    more = f", ... ({len(versions):,} in all)" if len(versions) > _FEW else ""
    return (", ".join(versions[: -_FEW - 1 : -1]) or "none") + more


# Parameters, as a tree


def _parameters(described: Mapping[str, Any], stem: str, width: int | None) -> Lines:
    named = sorted(described.items(), key=lambda item: not item[1].get("required"))
    yield from _branches([(_name(name), it) for name, it in named], stem, width)


def _branches(
    items: Sequence[tuple[Piece, Mapping[str, Any]]], stem: str, width: int | None
) -> Lines:
    for place, (name, it) in enumerate(items, 1):
        fork, deeper = ("└── ", "    ") if place == len(items) else ("├── ", "│   ")
        yield [(f"{stem}{fork}", "dim"), name, ("  ", ""), *_type(it)]
        inner = _within(it)
        yield from _said(it, f"{stem}{deeper}{'│   ' if inner else '    '}", width)
        yield from _branches(inner, f"{stem}{deeper}", width)


def _within(it: Mapping[str, Any]) -> list[tuple[Piece, Mapping[str, Any]]]:
    """List what a description contains, each with its label."""
    return [(_label(child), child.description) for child in children(it)]


def _label(child: Child) -> Piece:
    kind = str(child.steps[0])
    return _name(child.name) if kind == "properties" else (CHILD_LABELS[kind], "italic")


def _name(name: str) -> Piece:
    return (name if name == _line(name) else _value(name)), "bold"


def _type(it: Mapping[str, Any]) -> Lines | list[Piece]:
    nullable = " or null" if it.get("nullable") else ""
    return [
        (f"{it['type']}{nullable}", "green"),
        *([(", required", "yellow")] if it.get("required") is True else []),
    ]


def _said(it: Mapping[str, Any], stem: str, width: int | None) -> Lines:
    yield from _text(it.get("description", ""), stem, "", width)
    for fact in _said_of(it):
        yield from _text(fact, stem, "dim", width)


def _said_of(it: Mapping[str, Any]) -> Iterator[str]:
    if limits := [f"{key} {_value(it[key])}" for key in LIMITS if key in it]:
        yield f"limits: {', '.join(limits)}"
    if "default" in it:
        yield f"default: {_value(it['default'])}"
    for what, key in (("one of", "enum"), ("examples", "examples")):
        if it.get(key):
            yield f"{what}: {_values(it[key])}"
    if it.get("additionalProperties") is False:
        yield "no other properties"


def _values(values: Sequence[Any]) -> str:
    """As many values as are read, and how many there are more."""
    told: list[str] = []
    length = 0
    for value in map(_value, values):
        length += len(value) + 2
        if told and length > _LONGEST:
            return f"{', '.join(told)}, ... ({len(values) - len(told):,} more)"
        told.append(value)
    return ", ".join(told)


def _value(value: Any) -> str:
    return visible(dump(value).decode())


def _line(text: str) -> str:
    return visible(" ".join(text.split()))


def _text(text: str, stem: str, style: str, width: int | None) -> Lines:
    """A text behind the stem of its branch, in lines as it is written, broken where they are too
    long.
    """
    room = max(width - len(stem), _NARROWEST) if width else None
    for written in text.strip().splitlines():
        shown = visible(written.rstrip())
        for line in (
            textwrap.wrap(shown, room, break_on_hyphens=False)
            if room and len(shown) > room
            else [shown]
        ):
            yield [(stem, "dim"), (line, style)] if stem else [(line, style)]
