"""JSON Schema normalization: other dialects and spellings in one plain form.

Pydantic, OpenAPI and people write the same schema in many ways: `const`, `anyOf` with a null
branch, lists of types, `$ref`, `allOf`. A plain schema has none of these: it has one `type` or
branches, `nullable`, and `enum`, and every schema within it is plain as well. The meaning is
preserved; what a plain schema cannot express is left out and reported as a `Loss`. This module
knows nothing of the catalog format except the maximum nesting depth of a file.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcatalog.catalog.yaml_reader import MAX_DEPTH
from toolcatalog.errors import Pointer
from toolcatalog.importers.documents import resolve_reference

# maximum schemas of one definition after resolving references: more would not fit into a file of
# 1 MiB
MAX_SCHEMAS = 20_000
# characters of values that count as one schema: this many for each of MAX_SCHEMAS make 1 MiB
_CHARACTERS_PER_SCHEMA = 50
_MAX_REFERENCES = 50  # in a chain
BRANCHES = ("anyOf", "oneOf")
TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
# keywords that contain values, not schemas
_VALUE_KEYWORDS = ("enum", "examples", "example", "default", "const", "required")
# keywords that apply to values of this type only
_TYPE_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "string": ("pattern", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("items", "minItems", "maxItems", "uniqueItems"),
    "object": ("properties", "required", "additionalProperties"),
}

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the catalog does not keep.

    `pointer` is where in the tool's file it would have been, `what` describes its kind, and
    `detail` adds more about it.
    """

    pointer: Pointer
    what: str
    detail: str = ""


def type_keywords(kind: str) -> tuple[str, ...]:
    """Return the keywords that apply to values of one type only."""
    return _TYPE_KEYWORDS.get("number" if kind == "integer" else kind, ())


@dataclass(slots=True)
class Normalizer:
    """Converts the schemas of one definition to plain schemas.

    `root` is the document that references are resolved in. `losses` collects what is left out.
    `budget` is the number of schemas that may still be converted.
    """

    root: Mapping[str, Any]
    losses: list[Loss] = field(default_factory=list)
    budget: int = MAX_SCHEMAS

    def report_loss(self, pointer: Pointer, what: str, detail: str = "") -> None:
        """Record a loss."""
        self.losses.append(Loss(pointer, what, detail))

    def normalize(self, schema: Any, pointer: Pointer, refs: tuple[str, ...] = ()) -> Schema | None:
        """Return the plain form of the schema at `pointer`.

        Returns None and records a loss if it has no plain form. `refs` are the references followed
        so far; following one of them again would never end.
        """
        schema = {} if schema is True else schema
        self.budget -= 1 + (
            _estimate_size(schema) // _CHARACTERS_PER_SCHEMA if isinstance(schema, Mapping) else 0
        )
        if reason := self.reject_reason(schema, pointer):
            self.report_loss(pointer, reason)
            return None
        own = self.normalize_keywords(dict(schema), pointer)
        parts = [*self.take_parts(own, pointer, refs)]
        own = {
            key: value
            for key in own
            for value in self.normalize_keyword(key, own[key], pointer, refs)
        }
        for key in [key for key in BRANCHES if key in own]:
            own = self.split_null(own, key, pointer)
        for part, inner_refs in parts:
            own = self.merge(own, self.normalize(part, pointer, inner_refs) or {}, pointer)
        return own

    def reject_reason(self, schema: Any, pointer: Pointer) -> str:
        """Return why a schema cannot be kept at all, or an empty string if it can."""
        if len(pointer) + 2 > MAX_DEPTH:
            return f"nesting beyond {MAX_DEPTH} levels"
        if self.budget < 0:
            return f"what follows the first {MAX_SCHEMAS:,} schemas of a definition"
        if isinstance(schema, Mapping):
            return ""
        return (
            "`false`: a value that must not be there"
            if schema is False
            else "something that is not a schema"
        )

    def normalize_keywords(self, own: Schema, pointer: Pointer) -> Schema:
        """Replace older and shorter spellings, and remove keywords with values of a wrong type.

        Later steps can therefore rely on the types.
        """
        for key in [
            key for key, fits in _KEYWORD_CHECKS.items() if key in own and not fits(own[key])
        ]:
            self.report_loss((*pointer, key), f"`{key}` of a form that is not read")
            del own[key]
        if "const" in own and any(
            _is_same(own["const"], value) for value in own.get("enum", [own["const"]])
        ):
            own["enum"] = [own.pop("const")]
        if "example" in own:
            first = own.pop("example")
            own["examples"] = [
                first,
                *(value for value in own.get("examples", ()) if not _is_same(value, first)),
            ]
        if own.get("x-nullable") is True:  # Swagger 2.0 has no keyword for it
            own["nullable"] = own.pop("x-nullable")
        # no effect: a schema within may still accept null
        if own.get("nullable") is False:
            del own["nullable"]
        for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(own.get(key), bool) and own.pop(key) and bound in own:
                own[key] = own.pop(bound)
        return self.normalize_type(own, pointer)

    def normalize_type(self, own: Schema, pointer: Pointer) -> Schema:
        """Convert a list of types to `nullable`, and to branches if several types are left."""
        said = own.pop("type", [])
        types = [*dict.fromkeys([said] if isinstance(said, str) else said)]
        for unknown in [name for name in types if name not in TYPES]:
            self.report_loss(
                (*pointer, "type"), "`type` that JSON Schema does not have", str(unknown)
            )
            types.remove(unknown)
        if len(types) > 1 and "null" in types:
            types.remove("null")
            own["nullable"] = True
        if "number" in types and "integer" in types:
            types.remove("integer")
        if len(types) == 1:
            return {"type": types[0], **own}
        slot = next((key for key in BRANCHES if key not in own), None)
        if types and slot:
            own[slot] = [
                {"type": name, **{key: own[key] for key in type_keywords(name) if key in own}}
                for name in types
            ]
            return {
                key: own[key]
                for key in own
                if not any(key in type_keywords(name) for name in types)
            }
        if types:
            self.report_loss((*pointer, "type"), "a list of types beside `anyOf` and `oneOf`")
        return own

    def take_parts(
        self, own: Schema, pointer: Pointer, refs: tuple[str, ...]
    ) -> Iterator[tuple[Any, tuple[str, ...]]]:
        """Remove references and `allOf` from `own` and yield the schemas to merge with it."""
        own.pop("$defs", None), own.pop("definitions", None)
        if "$ref" in own:
            yield self.resolve_reference(own.pop("$ref"), pointer, refs)
        for part in own.pop("allOf", ()):
            yield part, refs

    def split_null(self, own: Schema, key: str, pointer: Pointer) -> Schema:
        """Replace the null branches of a choice by `nullable`.

        A single remaining branch is merged into the schema.
        """
        nulls = [branch for branch in own[key] if _is_null(branch)]
        left = [branch for branch in own[key] if not _is_null(branch)]
        for word in [
            word for branch in nulls for word in branch if word not in ("type", "enum", "nullable")
        ]:
            self.report_loss((*pointer, key), f"`{word}` of a null branch")
        if nulls and left and not _refuses_null(own):
            own["nullable"] = True
        if len(left) > 1:
            return {**own, key: left}
        del own[key]
        return self.merge(own, left[0] if left else {"type": "null"} if nulls else {}, pointer)

    def resolve_reference(
        self, ref: str, pointer: Pointer, refs: tuple[str, ...]
    ) -> tuple[Schema, tuple[str, ...]]:
        """Return the schema that a reference points to, and the references followed so far."""
        found = resolve_reference(self.root, ref)
        if not isinstance(found, Mapping):
            what = (
                "leads to nothing in its definition"
                if ref[:1] in ("", "#")
                else "leads to another document, which is not fetched"
            )
            self.report_loss((*pointer, "$ref"), f"a `$ref` that {what}", ref)
            return {}, refs
        if len(refs) > _MAX_REFERENCES:
            self.report_loss(
                (*pointer, "$ref"), f"what is more than {_MAX_REFERENCES} references away", ref
            )
            return {}, refs
        if ref in refs:
            self.report_loss(
                (*pointer, "$ref"), "a schema within itself, cut where it comes again", ref
            )
            return {
                key: found[key] for key in ("type", "title", "description") if key in found
            }, refs
        return {**found}, (*refs, ref)

    def normalize_keyword(
        self, key: str, value: Any, pointer: Pointer, refs: tuple[str, ...]
    ) -> Iterator[Any]:
        """Yield the value of a keyword with all schemas in it normalized.

        Yields nothing if the keyword has no effect or cannot be kept.
        """
        if key == "properties":
            # a tool's parameters are directly below the field name
            inside = (*pointer, key) if len(pointer) > 1 else pointer
            found = {
                name: self.normalize(inner, (*inside, name), refs) for name, inner in value.items()
            }
            yield {name: inner for name, inner in found.items() if inner is not None}
        elif key in BRANCHES:
            yield [
                inner
                for index, branch in enumerate(value)
                if (inner := self.normalize(branch, (*pointer, key, index), refs)) is not None
            ]
        elif key == "items" and (value is True or value == {}):
            pass  # any value, the same as no `items`
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping) and value:
            if (inner := self.normalize(value, (*pointer, key), refs)) is not None:
                yield inner
        elif key == "additionalProperties":
            yield value is not False
        else:
            yield value

    def merge(self, own: Schema, part: Schema, pointer: Pointer) -> Schema:
        """Merge two schemas that must both hold.

        If they contradict each other, the second becomes a branch, which must hold as well.
        """
        both: Schema = {**own}
        self.budget -= (
            len(own.get("properties", ())) // _CHARACTERS_PER_SCHEMA
        )  # the properties are copied for each part
        clash = (
            ["additionalProperties"]
            if _excludes_properties(own, part) or _excludes_properties(part, own)
            else []
        )
        for key, value in part.items():
            both[key], agree = _merge_keyword(key, own, part) if key in own else (value, True)
            clash += [] if agree or key in clash else [key]
        slot = next((key for key in BRANCHES if key not in own), None)
        if slot and len(pointer) > 1 and {*clash} - {"title"}:
            return {**own, slot: [part]}
        for key in clash:
            self.report_loss(
                (*pointer, key), f"`{key}` of a schema that is part of one with another `{key}`"
            )
        if _constrains_values(part) and _refuses_null(own):
            both.pop("nullable", None)
        return both


def _estimate_size(schema: Mapping[str, Any]) -> int:
    """Return the approximate number of characters in the texts and values of a schema.

    Schemas within it are not counted.
    """
    texts = sum(len(value) for value in schema.values() if isinstance(value, str))
    return texts + sum(
        len(json.dumps(schema[key]))
        for key in _VALUE_KEYWORDS
        if isinstance(schema.get(key), list | dict | str)
    )


def _constrains_values(schema: Schema) -> bool:
    """Return whether a plain schema restricts the values it accepts."""
    return any(key in schema for key in ("type", "enum", *BRANCHES))


def _refuses_null(schema: Schema) -> bool:
    """Return whether a plain schema restricts its values so that null is not accepted."""
    if schema.get("nullable"):
        return False
    choices = [schema[key] for key in BRANCHES if key in schema]
    barred = schema.get("type", "null") != "null" or None not in schema.get("enum", [None])
    return barred or any(all(_refuses_null(branch) for branch in choice) for choice in choices)


def _merge_keyword(key: str, own: Schema, part: Schema) -> tuple[Any, bool]:
    """Return the merged value of a keyword of two schemas, and whether they agree.

    If they do not agree, the value is that of the first schema.
    """
    one, other = own[key], part[key]
    if key == "properties":
        return {**one, **other, **one}, all(
            _is_same(one[name], other[name]) for name in one.keys() & other.keys()
        )
    if key == "required" and isinstance(one, list) and isinstance(other, list):
        return [*dict.fromkeys([*one, *other])], True
    if key == "enum":
        agree = _is_same(_without_null(one), _without_null(other))
        null = own.get("nullable") or part.get("nullable") or None in other
        return one if null or not agree else _without_null(one), agree
    return one, _is_same(one, other)


def _without_null(values: list[Any]) -> list[Any]:
    """Return the values without null; whether null is accepted also depends on `nullable`."""
    return [value for value in values if value is not None]


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same; unlike in Python, true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _excludes_properties(one: Schema, other: Schema) -> bool:
    """Return whether `one` restricts properties that only `other` lists.

    A merged schema would not express that restriction.
    """
    return one.get("additionalProperties", True) is not True and bool(
        other.get("properties", {}).keys() - one.get("properties", {}).keys()
    )


def _is_null(branch: Schema) -> bool:
    """Return whether a plain schema accepts only null."""
    return not _refuses_null(branch) and (
        branch.get("type") == "null" or branch.get("enum") == [None]
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_choice(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_KEYWORD_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "type": lambda value: _is_text(value) or _are_texts(value),
    "required": lambda value: isinstance(value, bool) or _are_texts(value),
    "$ref": _is_text,
    "properties": _is_map,
    "items": lambda value: _is_map(value) or value is True,
    "additionalProperties": lambda value: _is_map(value) or isinstance(value, bool),
    "enum": _is_choice,
    "anyOf": _is_choice,
    "oneOf": _is_choice,
    "allOf": _is_choice,
    "examples": lambda value: isinstance(value, list),
}
