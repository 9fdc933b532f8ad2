"""Schema validation: a raw value of one file to a record, or to findings.

jsonschema-rs checks every file in microseconds. Only for an invalid file does
`catalog.schema_validator` list the errors, and `catalog.schema_errors` turns them into messages in
terms of the file format. Then each example, default and enum value is validated against its
description.
"""

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice, takewhile
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from toolcatalog import names, parameters
from toolcatalog.catalog import schema_errors, sessions
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.loader import Document
from toolcatalog.catalog.model import (
    ROUTER,
    About,
    AuthConfig,
    MetaTool,
    PublishedFile,
    Selection,
    Session,
    Toolkit,
    ToolSelection,
    ToolVersion,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer

# findings after which a description cannot validate values
_UNUSABLE_RULES = {"wrong-type", "wrong-value", "missing-key"}
# keywords that may be wrong although the description fits its schema
_CHECKED_KEYWORDS = frozenset(("pattern", "enum", "examples", "default"))
_MAX_COMPARED_CHOICES = 100  # choices that are searched for the one nearest to a wrong value
# bytes of a description times bytes of its values: each value is compared with each choice or
# branch
_MAX_STEPS = 200_000_000
# A compiled pattern has about 72 bytes per state, and a character may take a step per state.
_MAX_PATTERN_SIZE, _MAX_LARGE_PATTERN_SIZE = 256 << 10, 4 << 20  # bytes
_MAX_PATTERN_WORK = 4_000  # per file; see `_PatternBudget`
# stands for the value in messages of jsonschema-rs: values are untrusted and may have a megabyte
_MASK = "<value>"

_PARAMETER_FIELDS = ("input_parameters", "output_parameters")
_MAX_RECOVERY_ROUNDS = 2
# required fields of a file that is recovered without them
_PLACEHOLDERS: Mapping[str, Mapping[str, Any]] = {
    "catalog": {"title": "?"},
    "toolkit": {"name": "?"},
    "tool": {"name": "?", "description": ""},
    "meta_tool": {"name": "?", "description": ""},
    "auth_config": {},
    "session": {},
}

Record = About | Toolkit | PublishedFile | ToolVersion | MetaTool | AuthConfig | Session


def validate(document: Document) -> tuple[Record | None, list[Finding]]:
    """Return the record of one document, or None and the findings."""
    kind, value, sessionless = document.location.kind, document.value, document.value
    if kind in ("logo", "font"):
        return _make_published_file(document), []
    if kind == "meta_tool":
        if findings := _limit_findings(_bad_placeholders(document.path, value)):
            return None, findings
        sessionless = sessions.fill_placeholders(
            sessions.remove_placeholder_enums(value), sessions.SAMPLE_VALUES
        )
        value = sessions.fill_placeholders(value, sessions.SAMPLE_VALUES)
    findings = _schema_findings(document.path, kind, value)
    if (
        kind in ("tool", "meta_tool")
        and isinstance(value, dict)
        and len(findings) <= MAX_FINDINGS_PER_FILE
    ):
        invalid = {finding.pointer[:2] for finding in findings if finding.rule in _UNUSABLE_RULES}
        findings += _limit_findings(_check_values(document.path, value, sessionless, invalid))
    return (None, findings) if findings else (_RECORD_FACTORIES[kind](document), [])


def _limit_findings(findings: Iterator[Finding]) -> list[Finding]:
    """Return at most MAX_FINDINGS_PER_FILE + 1 findings, to show whether there are more."""
    return [*islice(findings, MAX_FINDINGS_PER_FILE + 1)]


def _bad_placeholders(path: str, value: Any) -> Iterator[Finding]:
    for pointer, placeholder in sessions.find_invalid_placeholders(value):
        name = placeholder[sessions.PLACEHOLDER_KEY]
        message = f"{schema_errors.describe_value(name)} is not a value of a session"
        help = names.suggest(str(name), sessions.SAMPLE_VALUES)
        if len(placeholder) > 1:
            message = f"`{sessions.PLACEHOLDER_KEY}` is not the only key here"
            help = ""
        yield Finding(
            path=path,
            pointer=pointer,
            rule="placeholder",
            message=message,
            expected="one of " + ", ".join(sessions.SAMPLE_VALUES),
            help=help or "write `{$session: NAME}` and nothing else",
        )


@cache
def _file_validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(SCHEMAS[kind], mask=_MASK)


def _schema_findings(path: str, kind: str, value: Any) -> list[Finding]:
    if _file_validator(kind).is_valid(value):
        return []
    from toolcatalog.catalog import schema_validator  # noqa: PLC0415 - slow import, rarely needed

    findings = _limit_findings(
        finding
        for error in schema_validator.iter_errors(kind, value)
        for finding in schema_errors.to_findings(path, error)
    )
    if kind in ("tool", "meta_tool") and isinstance(value, dict):
        findings = _merge_related_findings(path, value, findings)
    # The two libraries treat a pattern's `$` before a final line break differently; the result of
    # jsonschema-rs counts.
    return findings or [
        _fallback_finding(path, error) for error in _file_validator(kind).iter_errors(value)
    ]


def _merge_related_findings(
    path: str, value: Mapping[str, Any], findings: list[Finding]
) -> list[Finding]:
    """Return the findings with one for each mistake that causes several.

    These are a whole JSON Schema in place of parameters, and a `$ref` in place of a description.
    """
    schemas = [field for field in _PARAMETER_FIELDS if _is_whole_schema(value.get(field))]
    references = {
        finding.pointer[:-1]
        for finding in findings
        if finding.rule == "unknown-key" and finding.pointer[-1:] == (schema_errors.REFERENCE_KEY,)
    }
    others = [
        finding
        for finding in findings
        if finding.pointer[:1] not in [(field,) for field in schemas]
        and not (finding.rule == "missing-key" and finding.pointer in references)
    ]
    return [*(_whole_schema_finding(path, field) for field in schemas), *others]


def _is_whole_schema(value: Any) -> bool:
    """Return whether a value is the JSON Schema of an object, not a mapping of parameters."""
    if not isinstance(value, dict):
        return False
    is_object = value.get("type") in ("object", ["object"])
    return is_object or any(isinstance(value.get(key), str) for key in ("$schema", "$ref"))


def _whole_schema_finding(path: str, field: str) -> Finding:
    return Finding(
        path=path,
        pointer=(field,),
        at_key=True,
        rule="wrong-type",
        message="found a whole JSON Schema",
        expected="a mapping of parameter names to descriptions",
        help=(
            f"write the `properties` directly below `{field}`, and `required: true` in each that "
            "is required"
        ),
    )


def recover(document: Document, findings: Sequence[Finding]) -> Record | None:
    """Return a record of the valid values of an invalid file, or None if too little is valid.

    So the rest of the file can be checked too. Invalid values are left out together with the list
    that contains them; required fields get a placeholder.
    """
    kind = document.location.kind
    if not isinstance(document.value, dict) or kind not in _PLACEHOLDERS:
        return None
    value = copy.deepcopy(document.value)
    for _ in range(_MAX_RECOVERY_ROUNDS):
        for finding in findings:
            _drop_value(value, finding.pointer)
        value = {**_PLACEHOLDERS[kind], **value}
        record, findings = validate(replace(document, value=value))
        if record:
            return record
    return None


def _drop_value(value: Any, pointer: Pointer) -> None:
    """Remove the value at a pointer, or the outermost list that contains it."""
    keys = [*takewhile(lambda step: isinstance(step, str), pointer)]
    for key in keys[:-1]:
        value = value.get(key) if isinstance(value, dict) else None
    if keys and isinstance(value, dict):
        value.pop(keys[-1], None)


def _fallback_finding(path: str, error: jsonschema_rs.ValidationError) -> Finding:
    return Finding(
        path=path, pointer=(*error.instance_path,), rule="wrong-value", message=_reason(error)
    )


def _reason(error: jsonschema_rs.ValidationError) -> str:
    return error.message.replace(_MASK, schema_errors.describe_value(error.instance), 1)


def _check_values(
    path: str, tool: Mapping[str, Any], sessionless: Mapping[str, Any], invalid: Collection[Pointer]
) -> Iterator[Finding]:
    """Yield findings for values that do not fit their description, and for unusable descriptions.

    The values are examples, defaults and enum values. `sessionless` is the same tool without the
    choices that depend on a session, because examples cannot be validated against those. Parameters
    in `invalid` are skipped: their values can be checked once their descriptions are valid.
    """
    budget = _PatternBudget()
    for field in _PARAMETER_FIELDS:
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
        orjson.loads(schema), validate_formats=True, mask=_MASK
    )


def _pattern_validator(schema: bytes) -> _ValueValidator:
    """Return the validator of a description with patterns, uncached: it may use more than 1 MB.

    Raises ValidationError if no engine takes the patterns.
    """
    description, count = orjson.loads(schema), schema.count(b'"pattern"')

    def make_validator(options: _PatternOptions, byte_cost: int) -> _ValueValidator:
        validator = jsonschema_rs.Draft202012Validator(
            description, validate_formats=True, mask=_MASK, pattern_options=options
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
    message = f"the {noun} does not fit its description: {_reason(error)}"
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


def _make_about(document: Document) -> About:
    return About(**document.value)


def _make_toolkit(document: Document) -> Toolkit:
    fields = {**document.value}
    for key in ("categories", "owners"):
        fields[key] = tuple(fields.get(key, ()))
    return Toolkit(slug=document.location.names.get("toolkit", ROUTER), **fields)


def _make_published_file(document: Document) -> PublishedFile:
    toolkit = document.location.names.get("toolkit", "")
    return PublishedFile(path=document.path, toolkit=toolkit, digest=document.digest)


def _make_tool(document: Document) -> ToolVersion:
    path_names = document.location.names
    return ToolVersion.from_value(
        document.value,
        path=document.path,
        slug=path_names["tool"],
        toolkit=path_names["toolkit"],
        version=path_names["version"],
    )


def _make_meta_tool(document: Document) -> MetaTool:
    path_names, when = document.location.names, document.value.get("when")
    return MetaTool(
        path=document.path,
        slug=path_names["tool"],
        version=path_names["version"],
        template=document.value,
        when=when,
    )


def _make_auth_config(document: Document) -> AuthConfig:
    value = document.value
    limits = {key: tuple(value[key]) if key in value else None for key in ("tools", "scopes")}
    return AuthConfig(
        path=document.path,
        id=document.location.names["auth_config"],
        toolkit=value["toolkit"],
        **limits,
    )


def _make_session(document: Document) -> Session:
    value = document.value
    tools = {
        slug: ToolSelection(
            tools=_make_selection(selection),
            tags=_make_selection(selection["tags"]) if "tags" in selection else None,
        )
        for slug, selection in value.get("tools", {}).items()
    }
    return Session(
        path=document.path,
        id=document.location.names["session"],
        project=value.get("project", "default"),
        user_id=value.get("user_id", "default"),
        toolkits=_make_selection(value.get("toolkits", {})),
        tools=tools,
        tags=_make_selection(value.get("tags", {})),
        auth_configs=value.get("auth_configs", {}),
        toolkit_versions=value.get("toolkit_versions", {}),
        manage_connections=value.get("manage_connections", {}).get("enable", False),
        meta_tools=tuple(value["meta_tools"]) if "meta_tools" in value else None,
    )


def _make_selection(value: Mapping[str, Any]) -> Selection:
    return Selection(
        enable=tuple(value["enable"]) if "enable" in value else None,
        disable=tuple(value.get("disable", ())),
    )


_RECORD_FACTORIES: dict[str, Callable[[Document], Record]] = {
    "catalog": _make_about,
    "toolkit": _make_toolkit,
    "tool": _make_tool,
    "meta_tool": _make_meta_tool,
    "auth_config": _make_auth_config,
    "session": _make_session,
}
