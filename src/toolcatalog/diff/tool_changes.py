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


def compare_tools(old_tool: Tool, new_tool: Tool) -> list[Change]:
    """Return the changes between two versions of a tool, sorted by kind, then by place.

    Kinds are in the order of KINDS: breaking, scope, additive, text. The result is empty only if
    both are served as the same bytes, apart from the version. A different order without a different
    meaning, or another spelling of a number (1 and 1.0), is a text change.
    """
    changes: list[Change] = []
    for field in fields(Tool):
        old, new = getattr(old_tool, field.name), getattr(new_tool, field.name)
        is_equal = are_identical if field.name in _PARAMETERS else are_equal
        if field.name not in _VERSION_FIELDS and not is_equal(old, new):
            rule = _FIELD_RULES.get(field.name)
            changes += ensure_change(field.name, rule(old, new) if rule else ())
    return sorted(
        changes, key=lambda change: (KINDS.index(change.kind), change.location, change.text)
    )


def _compare_name(old: str, new: str) -> Iterator[Change]:
    yield Change("text", "name", f"{quote_value(old)} became {quote_value(new)}")


def _compare_description(old: str, new: str) -> Iterator[Change]:
    yield Change("text", "description", describe_text_change(old, new))


def _compare_scopes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    removed, added = _removed_and_added(old, new)
    yield from (
        Change("scope", "scopes", f"{quote_value(scope)} was added: it must be granted now")
        for scope in added
    )
    yield from (
        Change(
            "scope", "scopes", f"{quote_value(scope)} was removed: it need not be granted any more"
        )
        for scope in removed
    )
    if not removed and not added:
        yield Change("text", "scopes", "are listed in another way")


def _compare_tags(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yield changes of tags, which are texts for people and filters, except for two hints.

    Clients use these hints to let a model act without asking.
    """
    removed, added = _removed_and_added(old, new)
    yield from (
        _tag_change(
            tag, "was added", "it may destroy something" if tag == "destructiveHint" else ""
        )
        for tag in added
    )
    yield from (
        _tag_change(tag, "was removed", "it may change something" if tag == "readOnlyHint" else "")
        for tag in removed
    )
    if not removed and not added:
        yield Change("text", "tags", "are listed in another way")


def _tag_change(tag: str, action: str, consequence: str) -> Change:
    return (
        Change("breaking", "tags", f"{quote_value(tag)} {action}: {consequence}")
        if consequence
        else Change("text", "tags", f"{quote_value(tag)} {action}")
    )


def _compare_no_auth(old: bool, new: bool) -> Iterator[Change]:
    if old and not new:
        yield Change("breaking", "no_auth", "is false now: the tool needs authentication")
    elif new and not old:
        yield Change(
            "additive", "no_auth", "is true now: the tool needs no authentication any more"
        )


def _compare_deprecation(
    old: Mapping[str, str] | None, new: Mapping[str, str] | None
) -> Iterator[Change]:
    if new is None:
        yield Change("text", "deprecation", "was removed")
    elif old is None:
        details = ", ".join(f"{key} {quote_value(value)}" for key, value in new.items() if value)
        yield Change("text", "deprecation", f"is new: {details}" if details else "is new")
    else:
        for key in sorted(old.keys() | new.keys()):
            old_value, new_value = old.get(key) or ABSENT, new.get(key) or ABSENT
            if not are_equal(old_value, new_value):
                yield Change(
                    "text", "deprecation", describe_keyword_change(key, old_value, new_value)
                )


def _removed_and_added(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    return sorted({*old} - {*new}), sorted({*new} - {*old})


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
