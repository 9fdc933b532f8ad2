"""Sample values: check examples, defaults and enum values against their parameter description.

A validator of jsonschema-rs checks all values of a description at once. The work on large values
and on patterns is limited, because files are untrusted.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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
# A compiled pattern has about 72 bytes per state, and a byte of a value may take a step per state.
_MAX_SMALL_PATTERN_SIZE, _MAX_PATTERN_SIZE, _MAX_LARGE_PATTERN_SIZE = (
    16 << 10, 256 << 10, 4 << 20,
)  # bytes  # fmt: skip
_MAX_CACHED_SCHEMA_SIZE = 500  # bytes
_MAX_PATTERN_WORK = 1_000_000  # per file, in bytes of values for a small pattern: about 2 µs
_MAX_COMPILE_COST = 10_000  # per file, in about 0.1 ms
_PARSED_SIZE = 500  # characters of a pattern that cost 1 to parse
# Each of these is translated in a copy of the whole pattern.
_TRANSLATED_CLASS = re.compile(r"\\[cdDsSwW]")
_TRANSLATED_SIZE = 125  # characters of a pattern that cost 1 to copy
# With the flag `i`, a class may be compared with all of Unicode, which takes 2.6 ms.
_IGNORES_CASE = re.compile(r"[(\s]\?[A-Za-z-]*i")
_POSSIBLY_LARGE_CLASS = re.compile(r"\\[A-Za-z0-9]|[^\x00-\x7f]")
_LARGE_CLASS_COST = 26


def check_values(
    path: str, tool: Mapping[str, Any], sessionless: Mapping[str, Any], invalid: Collection[Pointer]
) -> Iterator[Finding]:
    """Yield findings for values that do not fit their description, and for unusable descriptions.

    The values are examples, defaults and enum values. `sessionless` is the same tool without the
    choices that depend on a session, because examples cannot be validated against those. Parameters
    in `invalid` are skipped: their values can be checked once their descriptions are valid.
    """
    budget = _PatternBudget()
    for parameters_field in PARAMETER_FIELDS:
        if (parameters_field,) in invalid:
            continue
        variants = (tool,) if sessionless is tool else (tool, sessionless)
        walks = [_walk_valid(variant, parameters_field, invalid) for variant in variants]
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
    """Options of an engine for regular expressions, and what a pattern costs.

    `compile_cost` is to compile it, `check_cost` to check a description, and `byte_cost` to check a
    byte of its values.
    """

    options: _PatternOptions
    compile_cost: int
    check_cost: int
    byte_cost: int


# in the order in which they are tried
_ENGINES = (
    # linear in the length of a value, without lookaround and references
    _PatternEngine(jsonschema_rs.RegexOptions(size_limit=_MAX_SMALL_PATTERN_SIZE), 5, 0, 1),
    _PatternEngine(jsonschema_rs.RegexOptions(size_limit=_MAX_PATTERN_SIZE), 25, 0, 16),
    # with both, but each step may scan the rest of the value
    _PatternEngine(
        jsonschema_rs.FancyRegexOptions(size_limit=_MAX_PATTERN_SIZE // 2, backtrack_limit=300),
        15,
        50_000,
        1_500,
    ),
    _PatternEngine(
        jsonschema_rs.RegexOptions(size_limit=_MAX_LARGE_PATTERN_SIZE), 200, 50_000, 256
    ),
)
_DEFAULT_ENGINE_COST = 200  # of a pattern, with the default options of jsonschema-rs
_TOO_LARGE, _BAD = len(_ENGINES), len(_ENGINES) + 1  # in place of the index of an engine


class _ValueValidator(NamedTuple):
    """A validator, how often it checks a pattern, and what a check costs, also per byte."""

    validator: jsonschema_rs.Draft202012Validator
    check_count: int = 0
    check_cost: int = 0
    byte_cost: int = 0


class _PatternsTooExpensive(Exception):
    """The patterns of a file would take too long to compile."""


@dataclass(slots=True)
class _PatternBudget:
    """The remaining work on the patterns of one file.

    `remaining` is for values, `compile_remaining` for patterns. `engines` has the engine of each
    pattern, by text.
    """

    remaining: int = _MAX_PATTERN_WORK
    compile_remaining: int = _MAX_COMPILE_COST
    engines: dict[str, int] = field(default_factory=dict)

    def allow(self, validator: _ValueValidator, values: bytes) -> bool:
        """Spend budget for these values, as JSON; return False if there is not enough left."""
        cost = validator.check_cost + validator.byte_cost * len(values)
        self.remaining -= validator.check_count * cost
        return self.remaining >= 0

    def find_engine(self, pattern: str) -> int:
        """Return the index of the first engine that takes this pattern, `_TOO_LARGE` or `_BAD`.

        Raises _PatternsTooExpensive.
        """
        if pattern not in self.engines:
            self.engines[pattern] = self._try_engines(pattern)
        return self.engines[pattern]

    def _try_engines(self, pattern: str) -> int:
        for index, engine in enumerate(_ENGINES):
            self.charge([pattern], engine.compile_cost)
            with suppress(jsonschema_rs.ValidationError):
                _compile({"pattern": pattern}, engine.options)
                return index
        self.charge([pattern], _DEFAULT_ENGINE_COST)
        try:
            jsonschema_rs.Draft202012Validator({"pattern": pattern})
        except jsonschema_rs.ValidationError:
            return _BAD
        return _TOO_LARGE

    def charge(self, patterns: Collection[str], compile_cost: int) -> None:
        """Spend budget to compile these patterns, at this cost for each.

        Raises _PatternsTooExpensive if there is not enough left.
        """
        parse_costs = map(_cost_to_parse, patterns)
        self.compile_remaining -= compile_cost * len(patterns) + sum(parse_costs)
        if self.compile_remaining < 0:
            raise _PatternsTooExpensive


def _cost_to_parse(pattern: str) -> int:
    """Return what an engine takes to parse a pattern, in about 0.1 ms."""
    cost = len(pattern) // _PARSED_SIZE
    cost += len(_TRANSLATED_CLASS.findall(pattern)) * len(pattern) // _TRANSLATED_SIZE
    if _IGNORES_CASE.search(pattern):
        cost += len(_POSSIBLY_LARGE_CLASS.findall(pattern)) * _LARGE_CLASS_COST
    return cost


def _check_description(
    path: str,
    pointer: Pointer,
    description: Mapping[str, Any],
    constraint: Mapping[str, Any],
    budget: _PatternBudget,
) -> Iterator[Finding]:
    groups = _group_values(description, constraint)
    if any(group.count_steps() > _MAX_STEPS for group in groups):
        help = "shorten the examples, the enum or the branches"
        yield _too_many_finding(path, pointer, "so large a description", help)
        return
    try:
        finding = _check_pattern(path, pointer, description, budget)
        validators = [] if finding else _make_validators(groups, constraint, budget)
    except _PatternsTooExpensive:
        finding, validators = _too_expensive_finding(path, pointer, description), []
    except jsonschema_rs.ValidationError as error:
        finding, validators = _unusable_finding(path, pointer, error), []
    if finding is not None:
        yield finding
    yield from _check_groups(path, pointer, description, groups, validators, budget)


def _check_groups(
    path: str,
    pointer: Pointer,
    description: Mapping[str, Any],
    groups: Sequence["_ValueGroup"],
    validators: Sequence[_ValueValidator],
    budget: _PatternBudget,
) -> Iterator[Finding]:
    """Yield findings for the values of the groups; without validators, there are none."""
    checks = [*zip(validators, groups, strict=False)]
    if not all(budget.allow(validator, group.json_values) for validator, group in checks):
        help = (
            "write the patterns with smaller repeats and without `(?...)` and references, or"
            " shorten the examples of this file"
        )
        yield _too_many_finding(path, pointer, "all patterns of this file", help)
        return
    for validator, group in checks:
        for step, value in group.values:
            try:
                # not `iter_errors`: it makes all errors first, each with a copy of its `enum`
                validator.validator.validate(value)
            except jsonschema_rs.ValidationError as misfit:
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


def _check_pattern(
    path: str, pointer: Pointer, description: Mapping[str, Any], budget: _PatternBudget
) -> Finding | None:
    """Return the finding for the description's own pattern, if it cannot be used."""
    if "pattern" not in description:
        return None
    engine = budget.find_engine(description["pattern"])
    if engine == _BAD:
        return _bad_pattern_finding(path, pointer, description)
    if engine == _TOO_LARGE:
        return Finding(
            path=path,
            pointer=(*pointer, "pattern"),
            rule="wrong-value",
            message="the pattern is too large to check values against it",
            help="use smaller repeats, and sets such as `[a-z]` in place of `\\p{...}`",
        )
    return None


def _unusable_finding(
    path: str, pointer: Pointer, error: jsonschema_rs.ValidationError
) -> Finding | None:
    """Return the finding for an unusable description; None if a nested one has a wrong pattern."""
    if "regex" in error.message:
        return None
    message = f"not a usable description: {error.message}"
    return Finding(path=path, pointer=pointer, rule="wrong-value", message=message)


def _too_expensive_finding(path: str, pointer: Pointer, description: Mapping[str, Any]) -> Finding:
    return Finding(
        path=path,
        pointer=(*pointer, "pattern") if "pattern" in description else pointer,
        rule="wrong-value",
        message="too many or too large patterns in this file to check values against all of them",
        help=(
            "write patterns with smaller repeats, fewer classes such as `\\s` and no flag `i`, or"
            " give fewer objects with patterns an example or a default"
        ),
    )


def _too_many_finding(path: str, pointer: Pointer, subject: str, help: str) -> Finding:
    return Finding(
        path=path,
        pointer=pointer,
        rule="wrong-value",
        message=f"too many values to check against {subject}",
        help=help,
    )


def _make_validators(
    groups: Collection[_ValueGroup], constraint: Mapping[str, Any], budget: _PatternBudget
) -> list[_ValueValidator]:
    """Return a validator for each group of values.

    Raises _PatternsTooExpensive, and ValidationError if no engine takes all patterns together.
    """
    nodes = [*parameters.walk_descriptions({"": constraint}, ())] if groups else []
    pointers = [pointer for pointer, node in nodes if "pattern" in node]
    patterns = [node["pattern"] for _, node in nodes if "pattern" in node]
    if not patterns:
        return [_ValueValidator(_load_validator(group.schema)) for group in groups]
    engine = _ENGINES[min(max(map(budget.find_engine, patterns)), len(_ENGINES) - 1)]
    # each choice of schemas around a pattern may check it once more, to find what to report
    nullable = {pointer for pointer, node in nodes if node.get("nullable")}
    check_count = sum(1 + _count_choices(pointer, nullable) for pointer in pointers)
    validators = []
    for group in groups:
        budget.charge(patterns, engine.compile_cost)
        validators.append(
            _ValueValidator(
                _compile(orjson.loads(group.schema), engine.options),
                check_count,
                engine.check_cost,
                engine.byte_cost,
            )
        )
    return validators


def _count_choices(pointer: Pointer, nullable: Collection[Pointer]) -> int:
    """Return how many `anyOf` and `oneOf` are around a description; `nullable` adds one, too."""
    parents = (pointer[:length] for length in range(len(pointer) + 1))
    choices = pointer.count("anyOf") + pointer.count("oneOf")
    return choices + sum(parent in nullable for parent in parents)


def _load_validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema without patterns; that of a small one from a cache.

    Creating a validator takes longer than using it, and many tools have equal descriptions. A
    validator takes up to a thousand times the memory of its schema.
    """
    create = _cached_validator if len(schema) <= _MAX_CACHED_SCHEMA_SIZE else _create_validator
    return create(schema)


def _create_validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        orjson.loads(schema), validate_formats=True, mask=schema_errors.MASK
    )


_cached_validator = lru_cache(maxsize=512)(_create_validator)


def _compile(schema: Any, options: _PatternOptions) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema with patterns; raises ValidationError."""
    return jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, mask=schema_errors.MASK, pattern_options=options
    )


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
