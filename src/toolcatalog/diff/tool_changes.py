"""Tool changes: what differs between two versions of a tool, and which changes are breaking."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from toolcatalog.diff.change import (
    ABSENT,
    KINDS,
    Change,
    are_equal,
    are_identical,
    describe_keyword_change,
    describe_text_change,
    quote_value,
)
from toolcatalog.diff.parameter_changes import INPUT, OUTPUT, compare_parameters, ensure_change
from toolcatalog.snapshot.format import Tool

_VERSION_FIELDS = ("version", "available_versions")  # fields that differ in every new version
_PARAMETERS = ("input_parameters", "output_parameters")


def compare_tools(before: Tool, after: Tool) -> list[Change]:
    """Return the changes between two versions of a tool, sorted by kind, then by place.

    Kinds are in the order of KINDS: breaking, scope, additive, text. The result is empty only if
    both are served as the same bytes, apart from the version. A different order without a different
    meaning, or another spelling of a number (1 and 1.0), is a text change.
    """
    found: list[Change] = []
    for field in fields(Tool):
        old, new = getattr(before, field.name), getattr(after, field.name)
        is_equal = are_identical if field.name in _PARAMETERS else are_equal
        if field.name not in _VERSION_FIELDS and not is_equal(old, new):
            rule = _FIELD_RULES.get(field.name)
            found += ensure_change(field.name, rule(old, new) if rule else ())
    return sorted(found, key=lambda change: (KINDS.index(change.kind), change.place, change.what))


def _compare_name(before: str, after: str) -> Iterator[Change]:
    yield Change("text", "name", f"{quote_value(before)} became {quote_value(after)}")


def _compare_description(before: str, after: str) -> Iterator[Change]:
    yield Change("text", "description", describe_text_change(before, after))


def _compare_scopes(before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
    gone, new = _removed_and_added(before, after)
    yield from (
        Change("scope", "scopes", f"{quote_value(one)} was added: it must be granted now")
        for one in new
    )
    yield from (
        Change(
            "scope", "scopes", f"{quote_value(one)} was removed: it need not be granted any more"
        )
        for one in gone
    )
    if not gone and not new:
        yield Change("text", "scopes", "are listed in another way")


def _compare_tags(before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
    """Yield changes of tags, which are texts for people and filters, except for two hints.

    Clients use these hints to let a model act without asking.
    """
    gone, new = _removed_and_added(before, after)
    yield from (
        _tag_change(
            tag, "was added", "it may destroy something" if tag == "destructiveHint" else ""
        )
        for tag in new
    )
    yield from (
        _tag_change(tag, "was removed", "it may change something" if tag == "readOnlyHint" else "")
        for tag in gone
    )
    if not gone and not new:
        yield Change("text", "tags", "are listed in another way")


def _tag_change(tag: str, what: str, consequence: str) -> Change:
    return (
        Change("breaking", "tags", f"{quote_value(tag)} {what}: {consequence}")
        if consequence
        else Change("text", "tags", f"{quote_value(tag)} {what}")
    )


def _compare_no_auth(before: bool, after: bool) -> Iterator[Change]:
    if before and not after:
        yield Change("breaking", "no_auth", "is false now: the tool needs authentication")
    elif after and not before:
        yield Change(
            "additive", "no_auth", "is true now: the tool needs no authentication any more"
        )


def _compare_deprecation(
    before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> Iterator[Change]:
    if after is None:
        yield Change("text", "deprecation", "was taken back")
    elif before is None:
        said = ", ".join(f"{key} {quote_value(value)}" for key, value in after.items() if value)
        yield Change("text", "deprecation", f"is new: {said}" if said else "is new")
    else:
        for key in sorted(before.keys() | after.keys()):
            old, new = before.get(key) or ABSENT, after.get(key) or ABSENT
            if not are_equal(old, new):
                yield Change("text", "deprecation", describe_keyword_change(key, old, new))


def _removed_and_added(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    return sorted({*before} - {*after}), sorted({*after} - {*before})


_FIELD_RULES: dict[str, Callable[[Any, Any], Iterable[Change]]] = {
    "name": _compare_name,
    "description": _compare_description,
    "scopes": _compare_scopes,
    "tags": _compare_tags,
    "no_auth": _compare_no_auth,
    "deprecation": _compare_deprecation,
    "input_parameters": lambda before, after: compare_parameters("input ", before, after, INPUT),
    "output_parameters": lambda before, after: compare_parameters("output ", before, after, OUTPUT),
}
