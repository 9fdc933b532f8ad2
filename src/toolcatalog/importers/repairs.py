"""Repairs of imported values: whatever the catalog refuses is replaced or left out.

`catalog.schema` decides what a file may contain, and the rules of the catalog, which the caller
passes as `ContentRules`, what its texts may say. So neither is repeated here. Only the value that a
finding names is changed, and each change is reported as a `Loss`.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.catalog import schema
from toolcatalog.catalog.loader import Document
from toolcatalog.catalog.schema import Record
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer
from toolcatalog.importers.json_schema import Loss
from toolcatalog.importers.to_parameters import is_storable

_MAX_ROUNDS = 5  # of checking the rules again after a repair
_VALUE_KEYWORDS = ("examples", "default", "enum")


class ContentRules(NamedTuple):
    """The rules that an imported file must pass.

    `find_refused` returns the findings of a record that make it invalid. `find_reported` returns
    those that are only reported. `clean_text` returns a text without what a rule refuses in it, or
    the same text if it cannot be cleaned.
    """

    find_refused: Callable[[Record], Sequence[Finding]]
    find_reported: Callable[[Record], Sequence[Finding]]
    clean_text: Callable[[str, str], str]


def no_rules() -> ContentRules:
    """Return rules that refuse nothing."""
    return ContentRules(lambda _: [], lambda _: [], lambda _, text: text)


class RepairedValue(NamedTuple):
    """A value that the catalog accepts, or None if it cannot be repaired, and what was changed."""

    value: dict[str, Any] | None
    losses: list[Loss]


def repair(
    document: Document, required: Mapping[str, Any], rules: ContentRules | None = None
) -> RepairedValue:
    """Return the value of a document without what the catalog and its rules refuse.

    `required` gives the fields that must be present, with values to use if they are missing.
    """
    rules = rules or no_rules()
    value, losses = drop_refused(document, required)
    for _ in range(_MAX_ROUNDS):
        record, _ = schema.validate(_with_value(document, value))
        findings = rules.find_refused(record) if record else []
        if record and not findings:
            losses += [Loss((), finding.message) for finding in rules.find_reported(record)]
            return RepairedValue(value, losses)
        value = copy.deepcopy(value)
        losses += _repair_texts(value, findings, rules)
        value, more = drop_refused(_with_value(document, value), required)
        losses += more
    return RepairedValue(None, losses)


def drop_refused(
    document: Document, required: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Loss]]:
    """Return the value of a document without what its schema refuses, and the losses.

    `required` gives the fields that must be present, with values to use if they are missing.
    """
    fields = document.value
    value = {key: inner for key, inner in fields.items() if is_storable(inner, 2)}
    losses = [Loss((key,), f"`{key}` that no file can hold") for key in fields if key not in value]
    losses += [
        Loss((key,), f"no `{key}` in the source: made up", str(required[key]))
        for key in required
        if key not in value
    ]
    value = {**required, **value}
    findings = _find_refused_values(document, value)
    # most values are valid, and a copy costs as much as the whole validation
    value = copy.deepcopy(value) if findings else value
    while findings:
        losses += _remove_refused_values(value, findings)
        value = {**required, **value}
        findings = _find_refused_values(document, value)
    return value, losses


def _with_value(document: Document, value: dict[str, Any]) -> Document:
    return Document(document.path, document.location, value, True)


# What the schema refuses


def _find_refused_values(document: Document, value: dict[str, Any]) -> dict[Pointer, Finding]:
    """Return the findings of a document by the pointers of whole values.

    For example, an example is kept or removed as a whole.
    """
    _, findings = schema.validate(_with_value(document, value))
    refused = {_value_pointer(finding.pointer): finding for finding in findings}
    return _merge_list_items(refused) if len(refused) > MAX_FINDINGS_PER_FILE else refused


def _remove_refused_values(
    value: dict[str, Any], findings: Mapping[Pointer, Finding]
) -> Iterable[Loss]:
    """Remove the values with findings, and return the losses.

    An example may be refused because of an invalid description, so descriptions are removed first.
    """
    urgent = [pointer for pointer in findings if not {"examples", "default"} & {*pointer[-2:]}]
    pointers = sorted(urgent or findings, reverse=True)
    for pointer in pointers:
        _remove_value(value, pointer)
    return [_removal_loss(pointer, findings[pointer]) for pointer in pointers]


def _merge_list_items(findings: Mapping[Pointer, Finding]) -> dict[Pointer, Finding]:
    """Return the findings with each list in place of its items.

    Removing thousands of items one by one would take hours.
    """
    return {
        pointer[:-1] if isinstance(pointer[-1], int) else pointer: finding
        for pointer, finding in findings.items()
    }


def _value_pointer(pointer: Pointer) -> Pointer:
    """Return the pointer up to the first value that is not a description."""
    end = 2
    while end < len(pointer):
        if pointer[end] in ("properties", "anyOf", "oneOf"):
            end += 2
        elif pointer[end] in ("items", "additionalProperties"):
            end += 1
        else:
            return pointer[: end + (2 if pointer[end] in ("examples", "enum") else 1)]
    return pointer


def _removal_loss(pointer: Pointer, finding: Finding) -> Loss:
    *outer, last = pointer
    if isinstance(last, int):
        kind = f"a value in `{outer[-1]}`"
    else:
        kind = "a parameter" if outer[-1:] == ["properties"] or len(outer) == 1 else f"`{last}`"
    return Loss(pointer, f"{kind} that the catalog refuses", finding.message)


def _remove_value(value: Any, pointer: Pointer) -> None:
    """Remove the value at `pointer`, and the list that this leaves empty."""
    *outer, last = pointer
    parent = _get_value(value, outer)
    if isinstance(parent, list) and isinstance(last, int):
        del parent[last]
        if not parent:
            _remove_value(value, tuple(outer))
    elif isinstance(parent, dict):
        parent.pop(str(last), None)


def _get_value(value: Any, pointer: Iterable[str | int]) -> Any:
    for step in pointer:
        value = value[step]
    return value


# What rules refuse


def _repair_texts(
    value: dict[str, Any], findings: Sequence[Finding], rules: ContentRules
) -> list[Loss]:
    """Clean the texts with findings, or remove them, and return the losses."""
    losses = []
    by_place = {_text_place(finding): finding for finding in findings}
    for pointer in sorted(by_place, key=_sort_key, reverse=True):
        finding = by_place[pointer]
        cleaned = _clean_text(value, pointer, finding, rules)
        if cleaned is None:
            _remove_value(value, pointer)
            losses.append(_rule_loss("left out", pointer, finding))
        else:
            _get_value(value, pointer[:-1])[pointer[-1]] = cleaned
            losses.append(_rule_loss("replaced in part", pointer, finding))
    return losses


def _clean_text(
    value: dict[str, Any], pointer: Pointer, finding: Finding, rules: ContentRules
) -> str | None:
    """Return the text at a pointer without what a rule refuses, or None if it must be removed.

    Defaults and enum values are removed, because another value would mean something else.
    """
    text = _get_value(value, pointer)
    is_fixed = pointer[-1:] == ("default",) or pointer[-2:-1] == ("enum",)
    if finding.at_key or is_fixed or not isinstance(text, str):
        return None
    cleaned = rules.clean_text(finding.rule, text)
    return cleaned if cleaned != text else None


def _sort_key(pointer: Pointer) -> tuple[tuple[bool, int, str], ...]:
    return tuple(
        (isinstance(step, int), step if isinstance(step, int) else 0, str(step)) for step in pointer
    )


def _text_place(finding: Finding) -> Pointer:
    """Return the pointer of the text to repair.

    A sample value with a text of its own deep inside is removed as a whole.
    """
    pointer = finding.pointer
    place = _value_pointer(pointer)
    is_sample = any(step in _VALUE_KEYWORDS for step in place[2:])
    return place if is_sample and len(place) < len(pointer) else pointer


def _rule_loss(kind: str, pointer: Pointer, finding: Finding) -> Loss:
    return Loss(pointer, f"a text that the rule `{finding.rule}` refuses: {kind}", finding.message)
