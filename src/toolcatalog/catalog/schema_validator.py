"""The JSON Schema validator: every validation error of a file's value, lazily, from jsonschema.

Only `schema` loads this, and only for a file that is not valid: the library takes longer to load
than a small catalog to build.
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
    """The library's errors, in the order of the schema's keywords and of the file. Lazy: a hostile
    file has millions.
    """
    yield from _error_validator(kind).iter_errors(value)


@cache
def _error_validator(kind: str) -> Draft202012Validator:
    keywords = {
        "additionalProperties": _check_additional_properties,
        "uniqueItems": _check_unique_items,
    }
    validator: Draft202012Validator = extend(Draft202012Validator, keywords)(SCHEMAS[kind])  # type: ignore[no-untyped-call]  # `extend`
    return validator


def _check_additional_properties(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """`additionalProperties` in the order of the file: the library goes through a set, so the first
    hundred would be a lottery.
    """
    others = (
        [key for key in instance if key not in schema.get("properties", {})]
        if isinstance(instance, dict)
        else []
    )
    if isinstance(wanted, dict):
        for key in others:
            yield from validator.descend(instance[key], wanted, path=key)
    elif others and not wanted:
        yield ValidationError("unknown keys")


def _check_unique_items(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    """`uniqueItems` in one pass: the library compares each item with each, which takes minutes for
    a long list.
    """
    if (
        wanted
        and isinstance(instance, list)
        and len({json.dumps(item, sort_keys=True) for item in instance}) < len(instance)
    ):
        yield ValidationError("repeated items")
