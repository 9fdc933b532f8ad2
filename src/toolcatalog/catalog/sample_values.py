"""Sample values: check examples, defaults and enum values against their parameter description.

A validator of jsonschema-rs checks all values of a description at once. The work on large values
and on patterns is limited, because files are untrusted.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from toolcatalog import names, parameters
from toolcatalog.catalog import schema_errors
from toolcatalog.errors import Finding, Pointer

PARAMETER_FIELDS = ("input_parameters", "output_parameters")
# keywords that may be wrong although the description fits its schema
_CHECKED_KEYWORDS = frozenset(("pattern", "enum", "examples", "default"))
_MAX_COMPARED_CHOICES = 100  # choices that are searched for the one nearest to a wrong value
# bytes of a description times bytes of its values: each value is compared with each choice or
# branch
_MAX_STEPS = 200_000_000
# A compiled pattern has about 72 bytes per state, and a character may take a step per state.
_MAX_PATTERN_SIZE, _MAX_LARGE_PATTERN_SIZE = 256 << 10, 4 << 20  # bytes
_MAX_PATTERN_WORK = 4_000  # per file; see `_PatternBudget`


def check_values(
    path: str, tool: Mapping[str, Any], sessionless: Mapping[str, Any], invalid: Collection[Pointer]
) -> Iterator[Finding]:
    """Yield findings for values that do not fit their description, and for unusable descriptions.

    The values are examples, defaults and enum values. `sessionless` is the same tool without the
    choices that depend on a session, because examples cannot be validated against those. Parameters
    in `invalid` are skipped: their values can be checked once their descriptions are valid.
    """
    budget = _PatternBudget()
    for field in PARAMETER_FIELDS:
        if (field,) in invalid:
            continue
        variants = (tool,) if sessionless is tool else (tool, sessionless)
        walks = [_walk_valid(variant, field, invalid) for variant in variants]
        for nodes in zip(*walks, strict=True):
            (pointer, description), (_, constraint) = nodes[0], nodes[-1]
            if not (
                _CHECKED_KEYWORDS.isdisjoint(description)
                or parameters.has_plainly_valid_values(description, constraint)
            ):
                yield from _check_description(path, pointer, description, constraint, budget)


def _walk_valid(
    tool: Mapping[str, Any], field: str, invalid: Collection[Pointer]
) -> Iterator[tuple[Pointer, Mapping[str, Any]]]:
    """Yield the descriptions of one field, at every level, without the invalid parameters."""
    valid = {
        name: description
        for name, description in tool.get(field, {}).items()
        if (field, name) not in invalid
    }
    return parameters.walk_descriptions(valid, (field,))


_PatternOptions = jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions


class _PatternEngine(NamedTuple):
    """Options of an engine for regular expressions, and what each byte of a value costs with it."""

    options: _PatternOptions
    byte_cost: int


# in the order in which they are tried
_ENGINES = (
    # linear in the length of a value, without lookaround and references
    _PatternEngine(jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN_SIZE), 0),
    _PatternEngine(jsonschema_rs.RegexOptions(size_limit=_MAX_LARGE_PATTERN_SIZE), 1),
    # with both, but each step may scan the rest of the value
    _PatternEngine(
        jsonschema_rs.FancyRegexOptions(size_limit=_MAX_PATTERN_SIZE // 2, backtrack_limit=300), 6
    ),
)


class _ValueValidator(NamedTuple):
    """A validator, what each byte of a value costs, and the number of patterns if that is not 0."""

    validator: jsonschema_rs.Draft202012Validator
    byte_cost: int = 0
    pattern_count: int = 0


@dataclass(slots=True)
class _PatternBudget:
    """The remaining work, for one file, on large patterns and on those that look around or back."""

    remaining: int = _MAX_PATTERN_WORK

    def allow(self, validator: _ValueValidator, values: bytes) -> bool:
        """Spend budget for these values, as JSON; return False if there is not enough left."""
        self.remaining -= validator.pattern_count * (200 + validator.byte_cost * len(values))
        return self.remaining >= 0


def _check_description(
    path: str,
    pointer: Pointer,
    description: Mapping[str, Any],
    constraint: Mapping[str, Any],
    budget: _PatternBudget,
) -> Iterator[Finding]:
    groups = _group_values(description, constraint)
    if not groups and _has_bad_pattern(description):
        yield _bad_pattern_finding(path, pointer, description)
    if any(group.count_steps() > _MAX_STEPS for group in groups):
        help = "shorten the examples, the enum or the branches"
        yield _too_many_finding(path, pointer, "so large a description", help)
        return
    try:
        validators = [_value_validator(group.schema) for group in groups]
    except jsonschema_rs.ValidationError as error:
        yield from _unusable_findings(path, pointer, description, error)
        return
    if not all(
        budget.allow(validator, group.json_values)
        for validator, group in zip(validators, groups, strict=True)
    ):
        help = (
            "write the patterns with smaller repeats and without `(?...)` and references, or"
            " shorten the examples of this file"
        )
        subject = "patterns that are large, or look around or back"
        yield _too_many_finding(path, pointer, subject, help)
        return
    for validator, group in zip(validators, groups, strict=True):
        for step, value in group.values:
            if misfit := next(iter(validator.validator.iter_errors(value)), None):
                yield _misfit_finding(path, pointer, step, value, description, misfit)


class _ValueGroup(NamedTuple):
    """The values of a description that are validated against one schema.

    `schema` and `json_values` are JSON; each of `values` comes with its pointer.
    """

    schema: bytes
    values: list[tuple[Pointer, Any]]
    json_values: bytes

    def count_steps(self) -> int:
        """Return about how many steps the validation takes at most."""
        return len(self.schema) * len(self.json_values)


def _group_values(
    description: Mapping[str, Any], constraint: Mapping[str, Any]
) -> list[_ValueGroup]:
    """Return the enum values, and the samples (examples and the default), if there are any."""
    choices: list[tuple[Pointer, Any]] = [
        (("enum", index), value) for index, value in enumerate(description.get("enum", ()))
    ]
    samples: list[tuple[Pointer, Any]] = [
        (("examples", index), value) for index, value in enumerate(description.get("examples", ()))
    ]
    samples += [(("default",), description["default"])] if "default" in description else []
    return [
        _ValueGroup(
            orjson.dumps(parameters.to_value_schema(constraint, with_enum)),
            values,
            orjson.dumps([value for _, value in values]),
        )
        for with_enum, values in ((False, choices), (True, samples))
        if values
    ]


def _unusable_findings(
    path: str,
    pointer: Pointer,
    description: Mapping[str, Any],
    error: jsonschema_rs.ValidationError,
) -> Iterator[Finding]:
    if _has_bad_pattern(description):
        yield _bad_pattern_finding(path, pointer, description)
    elif "regex" in error.message:
        # otherwise the pattern belongs to a nested description, which reports it
        if _has_too_large_pattern(description):
            yield Finding(
                path=path,
                pointer=(*pointer, "pattern"),
                rule="wrong-value",
                message="the pattern is too large to check values against it",
                help="use smaller repeats, and sets such as `[a-z]` in place of `\\p{...}`",
            )
    else:
        message = f"not a usable description: {error.message}"
        yield Finding(path=path, pointer=pointer, rule="wrong-value", message=message)


def _too_many_finding(path: str, pointer: Pointer, subject: str, help: str) -> Finding:
    return Finding(
        path=path,
        pointer=pointer,
        rule="wrong-value",
        message=f"too many values to check against {subject}",
        help=help,
    )


def _value_validator(schema: bytes) -> _ValueValidator:
    return (
        _pattern_validator(schema)
        if b'"pattern"' in schema
        else _ValueValidator(_cached_validator(schema))
    )


@lru_cache(maxsize=512)
def _cached_validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema from a cache.

    Creating a validator takes longer than using it, and many tools have equal descriptions.
    """
    return jsonschema_rs.Draft202012Validator(
        orjson.loads(schema), validate_formats=True, mask=schema_errors.MASK
    )


def _pattern_validator(schema: bytes) -> _ValueValidator:
    """Return the validator of a description with patterns, uncached: it may use more than 1 MB.

    Raises ValidationError if no engine takes the patterns.
    """
    description, count = orjson.loads(schema), schema.count(b'"pattern"')

    def make_validator(options: _PatternOptions, byte_cost: int) -> _ValueValidator:
        validator = jsonschema_rs.Draft202012Validator(
            description, validate_formats=True, mask=schema_errors.MASK, pattern_options=options
        )
        return _ValueValidator(validator, byte_cost, count if byte_cost else 0)

    for engine in _ENGINES[:-1]:
        with suppress(jsonschema_rs.ValidationError):
            return make_validator(*engine)
    return make_validator(*_ENGINES[-1])


def _has_bad_pattern(description: Mapping[str, Any]) -> bool:
    """Return whether the description's own pattern is not a regular expression.

    This check is a last resort: creating a validator for the values detects a bad pattern already.
    """
    try:
        jsonschema_rs.Draft202012Validator({"pattern": description.get("pattern", "")})
    except jsonschema_rs.ValidationError:
        return True
    return False


def _has_too_large_pattern(description: Mapping[str, Any]) -> bool:
    """Return whether no engine takes the description's own pattern."""
    try:
        _pattern_validator(orjson.dumps({"pattern": description.get("pattern", "")}))
    except jsonschema_rs.ValidationError:
        return True
    return False


def _bad_pattern_finding(path: str, pointer: Pointer, description: Mapping[str, Any]) -> Finding:
    message, expected = (
        f"`{description['pattern']}` is not a regular expression",
        "an ECMA 262 regular expression",
    )
    return Finding(
        path=path,
        pointer=(*pointer, "pattern"),
        rule="bad-pattern",
        message=message,
        expected=expected,
    )


def _misfit_finding(
    path: str,
    pointer: Pointer,
    step: Pointer,
    value: Any,
    description: Mapping[str, Any],
    error: jsonschema_rs.ValidationError,
) -> Finding:
    keyword = str(step[0])
    noun = {"enum": "enum value", "examples": "example", "default": "default"}[keyword]
    kind = parameters.type_of(description)
    help, fix = "", None
    if kind == "string" and isinstance(value, bool | int | float):
        help, fix = schema_errors.quote_hint(value), schema_errors.QUOTE_FIX
    elif keyword != "enum":
        choices = description.get("enum", ())[:_MAX_COMPARED_CHOICES]
        help = names.suggest(str(value), [str(choice) for choice in choices])
    message = f"the {noun} does not fit its description: {schema_errors.unmask_message(error)}"
    expected = "" if error.instance_path else f"a value of type {kind}"
    location = (*pointer, *step, *error.instance_path)
    return Finding(
        path=path,
        pointer=location,
        rule=f"misfit-{keyword}",
        message=message,
        expected=expected,
        help=help or f"change the {noun} or the description",
        fix=fix,
    )
