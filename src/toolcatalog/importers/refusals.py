"""A file's value without what the catalog would refuse of it. Pure.

What that is is found by asking `schema`, so that nothing here repeats its rules, and only the very
value that it names is left out.
"""

import copy
from collections.abc import Mapping
from typing import Any

from toolcatalog.catalog import schema
from toolcatalog.catalog.loader import Document
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer
from toolcatalog.importers.descriptions import is_storable
from toolcatalog.importers.dialects import Loss


def drop_refused(
    document: Document, required: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Loss]]:
    """The value of a document without what the catalog refuses, and what that was. `needed` are
    fields that must be there.
    """
    said = document.value
    held = {key: inner for key, inner in said.items() if is_storable(inner, 2)}
    losses = [Loss((key,), f"`{key}` that no file can hold") for key in said if key not in held]
    losses += [
        Loss((key,), f"no `{key}` in the source: made up", str(required[key]))
        for key in required
        if key not in held
    ]
    findings = _refused_values(document, value := {**required, **held})
    # most are sound, and copying takes as long as all of this
    value = copy.deepcopy(value) if findings else value
    while findings:
        findings = (
            _merge_list_items(findings) if len(findings) > MAX_FINDINGS_PER_FILE else findings
        )
        # An example may be refused for a description that is itself in the wrong: that one goes
        # first.
        urgent = [pointer for pointer in findings if not {"examples", "default"} & {*pointer[-2:]}]
        for pointer in sorted(urgent or findings, reverse=True):
            losses.append(_loss(pointer, findings[pointer]))
            _remove_value(value, pointer)
        findings = _refused_values(document, value := {**required, **value})
    return value, losses


def _refused_values(document: Document, value: dict[str, Any]) -> dict[Pointer, Finding]:
    """What the catalog refuses, by the pointers of whole values: an example goes or stays, nothing
    within it does.
    """
    _, findings = schema.validate(Document(document.path, document.location, value, True))
    return {_value_pointer(finding.pointer): finding for finding in findings}


def _merge_list_items(findings: dict[Pointer, Finding]) -> dict[Pointer, Finding]:
    """The same with a list in the place of its items: where thousands do not fit, taking one by one
    away would take hours.
    """
    return {
        pointer[:-1] if isinstance(pointer[-1], int) else pointer: finding
        for pointer, finding in findings.items()
    }


def _value_pointer(pointer: Pointer) -> Pointer:
    """The pointer up to the first value that is not a description."""
    end = 2
    while end < len(pointer):
        if pointer[end] in ("properties", "anyOf", "oneOf"):
            end += 2
        elif pointer[end] in ("items", "additionalProperties"):
            end += 1
        else:
            return pointer[: end + (2 if pointer[end] in ("examples", "enum") else 1)]
    return pointer


def _loss(pointer: Pointer, finding: Finding) -> Loss:
    *outer, last = pointer
    if isinstance(last, int):
        what = f"a value in `{outer[-1]}`"
    else:
        what = "a parameter" if outer[-1:] == ["properties"] or len(outer) == 1 else f"`{last}`"
    return Loss(pointer, f"{what} that the catalog refuses", finding.message)


def _remove_value(value: Any, pointer: Pointer) -> None:
    """Take away the value at `pointer`, and the list that it leaves empty."""
    *outer, last = pointer
    around: Any = value
    for step in outer:
        around = around[step]
    if isinstance(around, list) and isinstance(last, int):
        del around[last]
        if not around:
            _remove_value(value, tuple(outer))
    else:
        around.pop(last, None)
