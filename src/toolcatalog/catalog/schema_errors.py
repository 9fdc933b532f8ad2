"""JSON Schema errors as messages: what is wrong, what was expected, and the nearest valid name.

A validator's own messages point at the parent value and use the terms of JSON Schema. Contributors
need the key and the terms of the file format.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcatalog import names, parameters
from toolcatalog.catalog import sessions
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.errors import Finding, Pointer

if TYPE_CHECKING:
    import jsonschema_rs
    from jsonschema.exceptions import ValidationError

REFERENCE_KEY = "$ref"
# stands for the value in messages of jsonschema-rs: values are untrusted and may have a megabyte
MASK = "<value>"
_TYPE_NAMES = {
    dict: "a mapping",
    list: "a list",
    str: "the string",
    bool: "the boolean",
    int: "the number",
    float: "the number",
    type(None): "null",
}
_BOOLEAN_WORDS = {
    "yes": "true",
    "on": "true",
    "true": "true",
    "no": "false",
    "off": "false",
    "false": "false",
}
# what to write instead of keywords of JSON Schema that the format does not have
_SCHEMA_KEYWORD_HELP = {
    REFERENCE_KEY: "write the schema itself here: a file cannot refer to another place",
    "$defs": "remove it, and write each schema where it is used",
    "definitions": "remove it, and write each schema where it is used",
    "$schema": "remove it: a description is always a JSON Schema of 2020-12",
    "allOf": "write one description that says all of it",
    "const": "write `enum` with this one value",
    "not": "remove it, and say in the description what is not allowed",
}
QUOTE_FIX = '"{}"'  # fix that turns a number or boolean into a string; see `validation.fixes`
_EMPTY_NAMES: dict[type[Any], str] = {
    dict: "an empty mapping",
    list: "an empty list",
    str: "an empty string",
}
_FIELD_DESCRIPTIONS = {
    key: inner.get("description", "")
    for schema in SCHEMAS.values()
    for key, inner in schema["properties"].items()
}
_FIELD_DESCRIPTIONS["type"] = "one of " + ", ".join(parameters.TYPES)


@dataclass(frozen=True, slots=True)
class _SchemaError:
    """The fields of a library's error that messages use.

    `instance` is the value at `pointer`, `keyword_value` the value of the failed keyword, and
    `schema` the schema that contains the keyword.
    """

    path: str
    pointer: Pointer
    is_key: bool
    instance: Any
    keyword_value: Any
    schema: Mapping[str, Any]
    message: str

    def make_finding(
        self,
        rule: str,
        message: str,
        help: str = "",
        step: Pointer = (),
        at_key: bool = False,
        expected: str | None = None,
        fix: str | None = None,
        unsafe_fix: str | None = None,
    ) -> Finding:
        """Return a finding at this value, or at `step` below it.

        `expected` defaults to the description in the schema.
        """
        expectation = self.schema.get("description", "") if expected is None else expected
        pointer = (*self.pointer, *step)
        at_key = at_key or self.is_key
        return Finding(
            path=self.path,
            pointer=pointer,
            at_key=at_key,
            rule=rule,
            message=message,
            expected=expectation,
            help=help,
            fix=fix,
            unsafe_fix=unsafe_fix,
        )


def to_findings(path: str, error: "ValidationError") -> Iterator[Finding]:
    """Yield the findings for one error of the library."""
    pointer: Pointer = (*error.absolute_path,)
    details: Any = error
    is_key = "propertyNames" in error.absolute_schema_path
    if is_key:
        pointer = (*pointer, details.instance)
    schema = details.schema if isinstance(details.schema, dict) else {}
    schema_error = _SchemaError(
        path, pointer, is_key, details.instance, details.validator_value, schema, error.message
    )
    yield from _KEYWORD_FINDINGS.get(str(error.validator), _other_findings)(schema_error)


def describe_value(value: Any) -> str:
    """Return a short description of a value for a message."""
    kind = _TYPE_NAMES[type(value)]
    if value in ({}, [], ""):
        return _EMPTY_NAMES[type(value)]
    if isinstance(value, dict | list) or value is None:
        return kind
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{kind} `{text if len(text) <= 60 else text[:57] + '...'}`"


def unmask_message(error: "jsonschema_rs.ValidationError") -> str:
    """Return the message of a validator with `MASK`, with a short form of the value."""
    return error.message.replace(MASK, describe_value(error.instance), 1)


def quote_hint(value: Any) -> str:
    """Return the help text for a number or boolean that should be a string."""
    return f"put it in quotes: {json.dumps(json.dumps(value))}"


def _other_findings(error: _SchemaError) -> Iterator[Finding]:
    yield error.make_finding(
        "wrong-value",
        f"{describe_value(error.instance)} does not fit",
        expected=error.schema.get("description") or error.message,
    )


def _unknown_key_findings(error: _SchemaError) -> Iterator[Finding]:
    allowed = error.schema["properties"]
    for key in error.instance:
        if key not in allowed:
            help, unsafe_fix = _unknown_key_help(key, allowed, error.instance)
            yield error.make_finding(
                "unknown-key",
                f"unknown key `{key}`",
                help,
                (key,),
                at_key=True,
                expected="one of " + ", ".join(allowed),
                unsafe_fix=unsafe_fix,
            )


def _unknown_key_help(
    key: str, allowed: Mapping[str, Any], instance: Mapping[str, Any]
) -> tuple[str, str | None]:
    """Return the help for an unknown key, and the key that probably is meant."""
    is_description = "examples" in allowed
    if key == sessions.PLACEHOLDER_KEY:
        return "write a value: only the files in meta_tools/ have placeholders", None
    if key == "required" and is_description:
        return "remove it: only a named input parameter says whether it is required", None
    if key in _SCHEMA_KEYWORD_HELP and is_description:
        return _SCHEMA_KEYWORD_HELP[key], None
    nearest = names.find_nearest(key, allowed)
    if not nearest:
        return "remove it, or look the key up in docs/reference/catalog-format.md", None
    return f"did you mean `{nearest[0]}`?", nearest[0] if nearest[0] not in instance else None


def _missing_key_findings(error: _SchemaError) -> Iterator[Finding]:
    for key in error.keyword_value:
        # the library reports one error per missing key
        if key not in error.instance and f"'{key}'" in error.message:
            field = error.schema.get("properties", {}).get(key, {})
            expected, help = (
                field.get("description") or _FIELD_DESCRIPTIONS.get(key, ""),
                f"add a line `{key}: ...`",
            )
            yield error.make_finding(
                "missing-key",
                f"`{key}` is missing",
                help,
                at_key=bool(error.pointer),
                expected=expected,
            )


def _type_findings(error: _SchemaError) -> Iterator[Finding]:
    hints = {
        "array": "write a list: `[a, b]`, or lines that start with `- `",
        "object": "write `key: value` lines below it, or `{}` for none",
        "boolean": "write `true` or `false`; other words are strings here",
    }
    help = hints.get(str(error.keyword_value), "")
    if not error.pointer:
        help = "start the file with `key: value` lines"
    if error.keyword_value == "string" and isinstance(error.instance, bool | int | float):
        help = quote_hint(error.instance)
    elif error.pointer[-1:] == ("required",) and isinstance(error.instance, list):
        help = "say `required: true` in each of the properties"
    elif error.keyword_value in ("number", "integer") and isinstance(error.instance, str):
        help = "write a number, without quotes"
    elif error.keyword_value == "string" and error.instance is None:
        help = "write the text here, in quotes if it is the word `null`"
    expected = error.schema.get("description") or f"a value of type {error.keyword_value}"
    fix = None if error.is_key else _type_fix(error.keyword_value, error.instance)
    yield error.make_finding(
        "wrong-type",
        f"found {describe_value(error.instance)}",
        help,
        expected=expected,
        fix=fix,
        unsafe_fix=None if error.is_key else _list_fix(error.keyword_value, error.instance),
    )


def _type_fix(wanted_type: Any, value: Any) -> str | None:
    """Return the replacement that gives a value the wanted type, or None if it is not certain."""
    if wanted_type == "string" and isinstance(value, bool | int | float):
        return QUOTE_FIX
    if wanted_type == "boolean" and isinstance(value, str):
        return _BOOLEAN_WORDS.get(value.casefold())
    if wanted_type in ("number", "integer") and isinstance(value, str):
        return (
            value
            if re.fullmatch(
                r"-?(0|[1-9]\d{0,14})" + (r"(\.\d+)?" if wanted_type == "number" else ""), value
            )
            else None
        )
    return None


def _list_fix(wanted_type: Any, value: Any) -> str | None:
    """Return the replacement that makes a list of a scalar, or None.

    A plain text such as `a, b` becomes two items.
    """
    if wanted_type != "array" or isinstance(value, dict | list) or value in (None, ""):
        return None
    if isinstance(value, str) and not re.fullmatch(r"[\w][\w .,/+-]*", value):
        return f"[{json.dumps(value)}]" if "\n" not in value and "{}" not in value else None
    return "[{}]"


def _enum_findings(error: _SchemaError) -> Iterator[Finding]:
    choices = [str(choice) for choice in error.keyword_value]
    nearest = names.find_nearest(str(error.instance), choices)
    help, unsafe_fix = names.suggest(str(error.instance), choices), next(iter(nearest), None)
    if error.pointer[-1:] == ("type",) and (
        error.instance in ("null", None) or isinstance(error.instance, list)
    ):
        help = (
            "name one type; `nullable: true` next to it allows null too, `anyOf` holds several"
            " descriptions"
        )
        unsafe_fix = None
    message = f"{describe_value(error.instance)} is not allowed"
    yield error.make_finding("wrong-value", message, help, unsafe_fix=unsafe_fix)


def _repeated_item_findings(error: _SchemaError) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, item in enumerate(error.instance):
        text = json.dumps(item, sort_keys=True)
        if text in seen:
            yield error.make_finding(
                "repeated-item", f"{describe_value(item)} is repeated", "remove it", (index,)
            )
        seen.add(text)


def _too_many_items_findings(error: _SchemaError) -> Iterator[Finding]:
    yield error.make_finding(
        "wrong-value",
        f"found a list of {len(error.instance):,} items",
        "leave out what no one would look for",
    )


def _selection_findings(error: _SchemaError) -> Iterator[Finding]:
    yield error.make_finding(
        "wrong-value", "found more than one way of choosing", "keep one", at_key=True
    )


def _too_many_keys_findings(error: _SchemaError) -> Iterator[Finding]:
    if error.keyword_value == 1:
        yield from _selection_findings(error)
        return
    message = f"found a mapping of {len(error.instance):,} keys"
    yield error.make_finding("wrong-value", message, "keep the important ones")


_KEYWORD_FINDINGS: dict[str, Callable[[_SchemaError], Iterator[Finding]]] = {
    "additionalProperties": _unknown_key_findings,
    "required": _missing_key_findings,
    "type": _type_findings,
    "enum": _enum_findings,
    "uniqueItems": _repeated_item_findings,
    "maxItems": _too_many_items_findings,
    "not": _selection_findings,
    "maxProperties": _too_many_keys_findings,
}
