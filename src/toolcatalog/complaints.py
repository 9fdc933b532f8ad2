"""What JSON Schema finds wrong, in the words of the format: one function for each keyword. Pure.

A validator's own sentences point at the parent and speak of schemas; a contributor wants the key,
what was expected there, and the nearest right name.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcatalog import names, parameters, placeholders
from toolcatalog.errors import Finding, Pointer
from toolcatalog.formats import SCHEMAS

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "the string",
    bool: "the boolean",
    int: "the number",
    float: "the number",
    type(None): "null",
}
_WORDS = {
    "yes": "true",
    "on": "true",
    "true": "true",
    "no": "false",
    "off": "false",
    "false": "false",
}
QUOTED = '"{}"'  # a number or a boolean as a string, in the way that problems are mended
_EMPTY: dict[type[Any], str] = {
    dict: "an empty mapping",
    list: "an empty list",
    str: "an empty string",
}
_FIELDS = {
    key: inner.get("description", "")
    for schema in SCHEMAS.values()
    for key, inner in schema["properties"].items()
}
_FIELDS["type"] = "one of " + ", ".join(parameters.TYPES)


@dataclass(frozen=True, slots=True)
class _Error:
    """The parts of a library's error that are told: where, what stands there, what the keyword
    wants, and the whole schema there.
    """

    path: str
    pointer: Pointer
    of_key: bool
    instance: Any
    wanted: Any
    schema: Mapping[str, Any]
    message: str

    def finding(
        self,
        rule: str,
        message: str,
        help: str = "",
        step: Pointer = (),
        at_key: bool = False,
        expected: str | None = None,
        fix: str | None = None,
    ) -> Finding:
        """A finding at this place, or at a step below it; expected is what the schema's description
        says, unless said otherwise.
        """
        said = self.schema.get("description", "") if expected is None else expected
        pointer = (*self.pointer, *step)
        at_key = at_key or self.of_key
        return Finding(
            path=self.path,
            pointer=pointer,
            at_key=at_key,
            rule=rule,
            message=message,
            expected=said,
            help=help,
            fix=fix,
        )


def told(path: str, error: "ValidationError") -> Iterator[Finding]:
    """The findings that one error of the library amounts to."""
    pointer: Pointer = (*error.absolute_path,)
    whole: Any = error
    of_key = "propertyNames" in error.absolute_schema_path
    if of_key:
        pointer = (*pointer, whole.instance)
    schema = whole.schema if isinstance(whole.schema, dict) else {}
    told = _Error(
        path, pointer, of_key, whole.instance, whole.validator_value, schema, error.message
    )
    yield from _TELLERS.get(str(error.validator), _tell_value)(told)


def seen(value: Any) -> str:
    """A value as a message names it."""
    kind = _KINDS[type(value)]
    if value in ({}, [], ""):
        return _EMPTY[type(value)]
    if isinstance(value, dict | list) or value is None:
        return kind
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{kind} `{text if len(text) <= 60 else text[:57] + '...'}`"


def quoted(value: Any) -> str:
    """How to write a number or boolean so that it is a string."""
    return f"put it in quotes: {json.dumps(json.dumps(value))}"


def _tell_value(error: _Error) -> Iterator[Finding]:
    yield error.finding(
        "wrong-value",
        f"{seen(error.instance)} does not fit",
        expected=error.schema.get("description") or error.message,
    )


def _tell_unknown(error: _Error) -> Iterator[Finding]:
    allowed = error.schema["properties"]
    for key in error.instance:
        if key not in allowed:
            near = names.nearest(key, allowed)
            help = (
                f"did you mean `{near[0]}`?"
                if near
                else "remove it, or look the key up in docs/catalog-format.md"
            )
            if key == "required" and "examples" in allowed:
                help = "remove it: only a named input parameter says whether it is required"
            if key == placeholders.MARK:
                help = "write a value: only the files in meta_tools/ have placeholders"
            expected = "one of " + ", ".join(allowed)
            yield error.finding(
                "unknown-key", f"unknown key `{key}`", help, (key,), at_key=True, expected=expected
            )


def _tell_missing(error: _Error) -> Iterator[Finding]:
    for key in error.wanted:
        # the library gives one error for each missing key
        if key not in error.instance and f"'{key}'" in error.message:
            field = error.schema.get("properties", {}).get(key, {})
            expected, help = (
                field.get("description") or _FIELDS.get(key, ""),
                f"add a line `{key}: ...`",
            )
            yield error.finding(
                "missing-key",
                f"`{key}` is missing",
                help,
                at_key=bool(error.pointer),
                expected=expected,
            )


def _tell_type(error: _Error) -> Iterator[Finding]:
    helps = {
        "array": "write a list: `[a, b]`, or lines that start with `- `",
        "object": "write `key: value` lines below it, or `{}` for none",
        "boolean": "write `true` or `false`; other words are strings here",
    }
    help = helps.get(str(error.wanted), "")
    if not error.pointer:
        help = "start the file with `key: value` lines"
    if error.wanted == "string" and isinstance(error.instance, bool | int | float):
        help = quoted(error.instance)
    elif error.pointer[-1:] == ("required",) and isinstance(error.instance, list):
        help = "say `required: true` in each of the properties"
    elif error.wanted in ("number", "integer") and isinstance(error.instance, str):
        help = "write a number, without quotes"
    elif error.wanted == "string" and error.instance is None:
        help = "write the text here, in quotes if it is the word `null`"
    expected = error.schema.get("description") or f"a value of type {error.wanted}"
    fix = None if error.of_key else _retyped(error.wanted, error.instance)
    yield error.finding(
        "wrong-type", f"{seen(error.instance)} stands here", help, expected=expected, fix=fix
    )


def _retyped(wanted: Any, value: Any) -> str | None:
    """How to write a value of the type that is wanted, where that is beyond doubt."""
    if wanted == "string" and isinstance(value, bool | int | float):
        return QUOTED
    if wanted == "boolean" and isinstance(value, str):
        return _WORDS.get(value.casefold())
    if wanted in ("number", "integer") and isinstance(value, str):
        return (
            value
            if re.fullmatch(
                r"-?(0|[1-9]\d{0,14})" + (r"(\.\d+)?" if wanted == "number" else ""), value
            )
            else None
        )
    return None


def _tell_enum(error: _Error) -> Iterator[Finding]:
    near = names.nearest(str(error.instance), [str(choice) for choice in error.wanted])
    help = f"did you mean `{near[0]}`?" if near else ""
    if error.pointer[-1:] == ("type",) and (
        error.instance in ("null", None) or isinstance(error.instance, list)
    ):
        help = "name one type; `nullable: true` beside it allows null too, `anyOf` holds several descriptions"
    yield error.finding("wrong-value", f"{seen(error.instance)} is not allowed", help)


def _tell_repeated(error: _Error) -> Iterator[Finding]:
    known: set[str] = set()
    for index, item in enumerate(error.instance):
        text = json.dumps(item, sort_keys=True)
        if text in known:
            yield error.finding(
                "repeated-item", f"{seen(item)} stands here again", "remove it", (index,)
            )
        known.add(text)


def _tell_long(error: _Error) -> Iterator[Finding]:
    yield error.finding(
        "wrong-value",
        f"a list of {len(error.instance):,} items stands here",
        "leave out what nobody would look for",
    )


def _tell_both(error: _Error) -> Iterator[Finding]:
    yield error.finding(
        "wrong-value", "more than one way of choosing stands here", "keep one", at_key=True
    )


_TELLERS: dict[str, Callable[[_Error], Iterator[Finding]]] = {
    "additionalProperties": _tell_unknown,
    "required": _tell_missing,
    "type": _tell_type,
    "enum": _tell_enum,
    "uniqueItems": _tell_repeated,
    "maxItems": _tell_long,
    "not": _tell_both,
    "maxProperties": _tell_both,
}
