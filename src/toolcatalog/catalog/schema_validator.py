"""The JSON Schema validator: every validation error of a file's value, lazily, from jsonschema.

Only `catalog.schema` imports this module, and only for an invalid file: loading the library takes
longer than building a small catalog.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from toolcatalog.catalog.file_schemas import SCHEMAS


def iter_errors(kind: str, value: Any) -> Iterator[ValidationError]:
    """Yield the library's errors in the order of the schema's keywords and of the file.

    Errors are computed lazily, because a malicious file can have millions.
    """
    yield from _error_validator(kind).iter_errors(value)


@cache
def _error_validator(kind: str) -> Draft202012Validator:
    keywords = {
        "additionalProperties": _check_additional_properties,
        "uniqueItems": _check_unique_items,
    }
    validator_class = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
    validator: Draft202012Validator = validator_class(SCHEMAS[kind])
    return validator


def _check_additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Check `additionalProperties` in the order of the file.

    The library iterates over a set, so the first hundred errors would be random.
    """
    extra_keys = (
        [key for key in instance if key not in schema.get("properties", {})]
        if isinstance(instance, dict)
        else []
    )
    if isinstance(allowed, dict):
        for key in extra_keys:
            yield from validator.descend(instance[key], allowed, path=key)
    elif extra_keys and not allowed:
        yield ValidationError("unknown keys")


def _check_unique_items(
    _: Any, is_required: bool, instance: Any, __: Any
) -> Iterator[ValidationError]:
    """Check `uniqueItems` in one pass.

    The library compares all pairs of items, which takes minutes for a long list.
    """
    if (
        is_required
        and isinstance(instance, list)
        and len({json.dumps(item, sort_keys=True) for item in instance}) < len(instance)
    ):
        yield ValidationError("repeated items")
