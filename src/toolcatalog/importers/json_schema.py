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
from toolcatalog.errors import Pointer, UsageError
from toolcatalog.importers.documents import resolve_reference

# maximum schemas of one definition after resolving references: more would not fit into a file of
# 1 MiB
MAX_SCHEMAS = 20_000
MAX_TOTAL_SCHEMAS = 1_000_000  # of all definitions of an import; they take about a minute
# characters of values that count as one schema: this many for each of MAX_SCHEMAS make 1 MiB
_CHARACTERS_PER_SCHEMA = 50
_MAX_REFERENCES = 50  # in a chain
BRANCHES = ("anyOf", "oneOf")
TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_REFERENCE_KEYWORDS = ("$ref", "allOf", "$defs", "definitions")
_ANNOTATIONS = ("type", "title", "description")  # kept of a schema where it is cut
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
Part = tuple[Any, tuple[str, ...]]  # a schema to merge, and the references followed to it


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the catalog does not keep.

    `pointer` is where in the tool's file it would have been, `kind` describes what is lost, in
    words that losses of the same kind share, and `detail` is specific to this one.
    """

    pointer: Pointer
    kind: str
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

    def report_loss(self, pointer: Pointer, kind: str, detail: str = "") -> None:
        """Record a loss."""
        self.losses.append(Loss(pointer, kind, detail))

    def normalize(self, schema: Any, pointer: Pointer, refs: tuple[str, ...] = ()) -> Schema | None:
        """Return the plain form of the schema at `pointer`.

        Returns None and records a loss if it has no plain form. `refs` are the references followed
        so far; following one of them again would never end.
        """
        schema = {} if schema is True else schema
        self.charge(schema)
        if reason := self.reject_reason(schema, pointer):
            self.report_loss(pointer, reason)
            return None
        result = self.drop_invalid_keywords(dict(schema), pointer)
        result = rename_old_keywords(result)
        result = self.normalize_types(result, pointer)
        result, parts = self.resolve_references(result, pointer, refs)
        result = self.normalize_children(result, pointer, refs)
        result = self.split_null(result, pointer)
        return self.merge_parts(result, parts, pointer)

    def charge(self, schema: Any) -> None:
        """Reduce the budget by the cost of one schema."""
        size = _estimate_size(schema) if isinstance(schema, Mapping) else 0
        self.budget -= 1 + size // _CHARACTERS_PER_SCHEMA

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

    # Passes, in their order

    def drop_invalid_keywords(self, schema: Schema, pointer: Pointer) -> Schema:
        """Return a schema without the keywords whose values are of a wrong type.

        Later passes can therefore rely on the types.
        """
        invalid = [
            key
            for key, is_valid in _KEYWORD_CHECKS.items()
            if key in schema and not is_valid(schema[key])
        ]
        for key in invalid:
            self.report_loss((*pointer, key), f"`{key}` of a form that is not read")
        return {key: value for key, value in schema.items() if key not in invalid}

    def normalize_types(self, schema: Schema, pointer: Pointer) -> Schema:
        """Return a schema with one type: a list becomes `nullable`, or branches.

        Types that JSON Schema does not have are left out.
        """
        if "type" not in schema:
            return schema
        types = self.known_types(schema["type"], pointer)
        schema = {key: value for key, value in schema.items() if key != "type"}
        if len(types) > 1 and "null" in types:
            types.remove("null")
            schema["nullable"] = True
        if "number" in types and "integer" in types:
            types.remove("integer")
        if len(types) == 1:
            return {"type": types[0], **schema}
        slot = next((key for key in BRANCHES if key not in schema), None)
        if types and slot:
            return _split_types(schema, types, slot)
        if types:
            self.report_loss((*pointer, "type"), "a list of types next to `anyOf` and `oneOf`")
        return schema

    def known_types(self, value: str | list[str], pointer: Pointer) -> list[str]:
        """Return the types of a schema that JSON Schema has, without duplicates."""
        types = [*dict.fromkeys([value] if isinstance(value, str) else value)]
        for name in types:
            if name not in TYPES:
                kind = "`type` that JSON Schema does not have"
                self.report_loss((*pointer, "type"), kind, name)
        return [name for name in types if name in TYPES]

    def resolve_references(
        self, schema: Schema, pointer: Pointer, refs: tuple[str, ...]
    ) -> tuple[Schema, list[Part]]:
        """Return a schema without `$ref` and `allOf`, and the schemas to merge with it."""
        parts: list[Part] = []
        if "$ref" in schema:
            parts.append(self.resolve_reference(schema["$ref"], pointer, refs))
        parts += [(part, refs) for part in schema.get("allOf", ())]
        return {
            key: value for key, value in schema.items() if key not in _REFERENCE_KEYWORDS
        }, parts

    def resolve_reference(self, ref: str, pointer: Pointer, refs: tuple[str, ...]) -> Part:
        """Return the schema that a reference points to, and the references followed so far."""
        target = resolve_reference(self.root, ref)
        if not isinstance(target, Mapping):
            problem = (
                "leads to nothing in its definition"
                if ref[:1] in ("", "#")
                else "leads to another document that cannot be read"
            )
            self.report_loss((*pointer, "$ref"), f"a `$ref` that {problem}", ref)
            return {}, refs
        if len(refs) > _MAX_REFERENCES:
            kind = f"what is more than {_MAX_REFERENCES} references away"
            self.report_loss((*pointer, "$ref"), kind, ref)
            return {}, refs
        if ref in refs:
            kind = "a schema within itself, cut where it comes again"
            self.report_loss((*pointer, "$ref"), kind, ref)
            return {key: target[key] for key in _ANNOTATIONS if key in target}, refs
        return {**target}, (*refs, ref)

    def normalize_children(self, schema: Schema, pointer: Pointer, refs: tuple[str, ...]) -> Schema:
        """Return a schema in which all schemas within it are plain."""
        return {
            key: value
            for key in schema
            for value in self.normalize_keyword(key, schema[key], pointer, refs)
        }

    def normalize_keyword(
        self, key: str, value: Any, pointer: Pointer, refs: tuple[str, ...]
    ) -> Iterator[Any]:
        """Yield the value of a keyword with all schemas in it normalized.

        Yields nothing if the keyword has no effect or cannot be kept.
        """
        if key == "properties":
            yield self.normalize_properties(value, pointer, refs)
        elif key in BRANCHES:
            branches = [
                self.normalize(branch, (*pointer, key, index), refs)
                for index, branch in enumerate(value)
            ]
            yield [branch for branch in branches if branch is not None]
        elif key == "items" and (value is True or value == {}):
            pass  # any value, the same as no `items`
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping) and value:
            if (inner := self.normalize(value, (*pointer, key), refs)) is not None:
                yield inner
        elif key == "additionalProperties":
            yield value is not False
        else:
            yield value

    def normalize_properties(
        self, properties: Mapping[str, Any], pointer: Pointer, refs: tuple[str, ...]
    ) -> dict[str, Schema]:
        """Return the plain schemas of the properties that can be kept."""
        # a tool's parameters are directly below the field name
        parent = (*pointer, "properties") if len(pointer) > 1 else pointer
        plain = {
            name: self.normalize(inner, (*parent, name), refs) for name, inner in properties.items()
        }
        return {name: inner for name, inner in plain.items() if inner is not None}

    def split_null(self, schema: Schema, pointer: Pointer) -> Schema:
        """Return a schema in which `nullable` replaces the null branches of choices.

        A single remaining branch is merged into the schema.
        """
        for key in [key for key in BRANCHES if key in schema]:
            schema = self.split_null_branches(schema, key, pointer)
        return schema

    def split_null_branches(self, schema: Schema, key: str, pointer: Pointer) -> Schema:
        """Return a schema without the null branches of one choice."""
        nulls = [branch for branch in schema[key] if _is_null(branch)]
        others = [branch for branch in schema[key] if not _is_null(branch)]
        for keyword in (keyword for branch in nulls for keyword in branch):
            if keyword not in ("type", "enum", "nullable"):
                self.report_loss((*pointer, key), f"`{keyword}` of a null branch")
        if nulls and others and not _refuses_null(schema):
            schema = {**schema, "nullable": True}
        if len(others) > 1:
            return {**schema, key: others}
        rest = {name: value for name, value in schema.items() if name != key}
        alone = others[0] if others else {"type": "null"} if nulls else {}
        return self.merge(rest, alone, pointer)

    def merge_parts(self, schema: Schema, parts: list[Part], pointer: Pointer) -> Schema:
        """Return a schema merged with those that must hold too."""
        for part, refs in parts:
            schema = self.merge(schema, self.normalize(part, pointer, refs) or {}, pointer)
        return schema

    def merge(self, schema: Schema, part: Schema, pointer: Pointer) -> Schema:
        """Merge two schemas that must both hold.

        If they contradict each other, the second becomes a branch, which must hold as well.
        """
        # these lists are copied or compared for each part
        lists = (schema.get(key) for key in ("properties", "required", "enum"))
        size = sum(len(value) for value in lists if isinstance(value, list | dict))
        self.budget -= size // _CHARACTERS_PER_SCHEMA
        merged, conflicts = _merge_keywords(schema, part)
        slot = next((key for key in BRANCHES if key not in schema), None)
        if slot and len(pointer) > 1 and {*conflicts} - {"title"}:
            return {**schema, slot: [part]}
        for key in conflicts:
            kind = f"`{key}` of a schema that is part of one with another `{key}`"
            self.report_loss((*pointer, key), kind)
        if _constrains_values(part) and _refuses_null(schema):
            merged.pop("nullable", None)
        return merged


@dataclass(slots=True)
class SchemaBudget:
    """The number of schemas that an import may still convert, in all definitions together."""

    remaining: int

    def charge(self, normalizer: Normalizer) -> None:
        """Subtract the schemas of one definition. Raises UsageError if there were too many."""
        self.remaining -= MAX_SCHEMAS - normalizer.budget
        if self.remaining < 0:
            raise UsageError(
                f"The tools unfold to more than {MAX_TOTAL_SCHEMAS:,} schemas: import a part of "
                "them at a time."
            )


def rename_old_keywords(schema: Schema) -> Schema:
    """Return a schema with current keywords in place of older and shorter ones."""
    schema = dict(schema)
    if "const" in schema and any(
        _is_same(schema["const"], value) for value in schema.get("enum", [schema["const"]])
    ):
        schema["enum"] = [schema.pop("const")]
    if "example" in schema:
        first = schema.pop("example")
        others = [value for value in schema.get("examples", ()) if not _is_same(value, first)]
        schema["examples"] = [first, *others]
    if schema.get("x-nullable") is True:  # Swagger 2.0 has no keyword for it
        schema["nullable"] = schema.pop("x-nullable")
    # no effect: a schema within may still accept null
    if schema.get("nullable") is False:
        del schema["nullable"]
    for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(key), bool) and schema.pop(key) and bound in schema:
            schema[key] = schema.pop(bound)
    return schema


def _split_types(schema: Schema, types: list[str], slot: str) -> Schema:
    """Return a schema with a branch for each type, which takes the keywords of that type."""
    branches = [
        {"type": name, **{key: schema[key] for key in type_keywords(name) if key in schema}}
        for name in types
    ]
    moved = {key for name in types for key in type_keywords(name)}
    return {**{key: schema[key] for key in schema if key not in moved}, slot: branches}


def _merge_keywords(schema: Schema, part: Schema) -> tuple[Schema, list[str]]:
    """Return the keywords of both schemas, and the keywords that contradict each other."""
    merged: Schema = {**schema}
    conflicts = []
    if _excludes_properties(schema, part) or _excludes_properties(part, schema):
        conflicts.append("additionalProperties")
    for key, value in part.items():
        merged[key], agree = _merge_keyword(key, schema, part) if key in schema else (value, True)
        if not agree and key not in conflicts:
            conflicts.append(key)
    return merged, conflicts


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
    is_barred = schema.get("type", "null") != "null" or None not in schema.get("enum", [None])
    return is_barred or any(all(_refuses_null(branch) for branch in choice) for choice in choices)


def _merge_keyword(key: str, schema: Schema, part: Schema) -> tuple[Any, bool]:
    """Return the merged value of a keyword of two schemas, and whether they agree.

    If they do not agree, the value is that of the first schema.
    """
    first, second = schema[key], part[key]
    if key == "properties":
        return {**first, **second, **first}, all(
            _is_same(first[name], second[name]) for name in first.keys() & second.keys()
        )
    if key == "required" and isinstance(first, list) and isinstance(second, list):
        return [*dict.fromkeys([*first, *second])], True
    if key == "enum":
        agree = _is_same(_without_null(first), _without_null(second))
        accepts_null = schema.get("nullable") or part.get("nullable") or None in second
        return first if accepts_null or not agree else _without_null(first), agree
    return first, _is_same(first, second)


def _without_null(values: list[Any]) -> list[Any]:
    """Return the values without null; whether null is accepted also depends on `nullable`."""
    return [value for value in values if value is not None]


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two JSON values are the same; unlike in Python, true is not 1."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _excludes_properties(schema: Schema, part: Schema) -> bool:
    """Return whether `own` restricts properties that only `part` lists.

    A merged schema would not express that restriction.
    """
    return schema.get("additionalProperties", True) is not True and bool(
        part.get("properties", {}).keys() - schema.get("properties", {}).keys()
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
