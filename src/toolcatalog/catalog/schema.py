"""Schema validation: a raw value of one file to a record, or to findings.

jsonschema-rs answers "is it valid?" for every file in microseconds; only for a file that is not
does `support.mcp_server` list what is wrong, and `catalog.schema_errors` says it in the words of the format. Then each
example, default and enum value is held against its description.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
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
    Selection,
    Session,
    Toolkit,
    ToolSelection,
    ToolVersion,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Pointer

# what leaves a description that no value can be held against
_UNUSABLE_RULES = {"wrong-type", "wrong-value", "missing-key"}
# what may be wrong with a description that is well formed
_CHECKED_KEYWORDS = frozenset(("pattern", "enum", "examples", "default"))
_MAX_COMPARED_CHOICES = 100  # choices among which the one nearest to a wrong value is looked for
# bytes of a description by bytes of the values that are held against it: each value meets each
# choice or branch
_MAX_STEPS = 200_000_000
# of one file: characters, and a hundred for each text, that are held against patterns which look
# around or back
_MAX_BACKTRACKING = 40_000
# takes as long as the text; knows neither look-around nor references
_LINEAR = jsonschema_rs.RegexOptions()
# knows them, and each step back may go through the whole text
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=2_000)
# what jsonschema-rs is to say in the place of a value: values are untrusted, and may be a megabyte
# long
_MASK = "<value>"

Record = About | Toolkit | ToolVersion | MetaTool | AuthConfig | Session


def validate(document: Document) -> tuple[Record | None, list[Finding]]:
    """The record of one document, or None and what is wrong with it."""
    kind, value, undecided = document.location.kind, document.value, document.value
    if kind == "meta_tool":
        if findings := _limit_findings(_bad_placeholders(document.path, value)):
            return None, findings
        undecided = sessions.fill_placeholders(
            sessions.remove_placeholder_enums(value), sessions.SAMPLE_VALUES
        )
        value = sessions.fill_placeholders(value, sessions.SAMPLE_VALUES)
    findings = _schema_findings(document.path, kind, value)
    if (
        kind in ("tool", "meta_tool")
        and isinstance(value, dict)
        and len(findings) <= MAX_FINDINGS_PER_FILE
    ):
        broken = {finding.pointer[:2] for finding in findings if finding.rule in _UNUSABLE_RULES}
        findings += _limit_findings(_check_values(document.path, value, undecided, broken))
    return (None, findings) if findings else (_RECORD_FACTORIES[kind](document), [])


def _limit_findings(findings: Iterator[Finding]) -> list[Finding]:
    """As many findings as are told of one file, and one more: whoever tells them can say that there
    are more.
    """
    return [*islice(findings, MAX_FINDINGS_PER_FILE + 1)]


def _bad_placeholders(path: str, value: Any) -> Iterator[Finding]:
    for pointer, found in sessions.find_invalid_placeholders(value):
        name, help = (
            found[sessions.PLACEHOLDER_KEY],
            "write `{$session: NAME}` and nothing else",
        )
        message, expected = (
            f"{schema_errors.describe_value(name)} is not something that a session gives",
            "one of " + ", ".join(sessions.SAMPLE_VALUES),
        )
        if len(found) > 1:
            message = f"`{sessions.PLACEHOLDER_KEY}` does not stand alone here"
        elif near := names.find_nearest(str(name), sessions.SAMPLE_VALUES):
            help = f"did you mean `{near[0]}`?"
        yield Finding(
            path=path,
            pointer=pointer,
            rule="placeholder",
            message=message,
            expected=expected,
            help=help,
        )


@cache
def _file_validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(SCHEMAS[kind], mask=_MASK)


def _schema_findings(path: str, kind: str, value: Any) -> list[Finding]:
    if _file_validator(kind).is_valid(value):
        return []
    from toolcatalog.catalog import schema_validator  # noqa: PLC0415 - its library takes long to load, and a build without faults never needs it

    found = _limit_findings(
        finding
        for error in schema_validator.iter_errors(kind, value)
        for finding in schema_errors.to_findings(path, error)
    )
    # The two libraries read a pattern's `$` differently before a final line break: the gate's word
    # counts.
    return found or [
        _fallback_finding(path, error) for error in _file_validator(kind).iter_errors(value)
    ]


def _fallback_finding(path: str, error: jsonschema_rs.ValidationError) -> Finding:
    return Finding(
        path=path, pointer=(*error.instance_path,), rule="wrong-value", message=_reason(error)
    )


def _reason(error: jsonschema_rs.ValidationError) -> str:
    return error.message.replace(_MASK, schema_errors.describe_value(error.instance), 1)


def _check_values(
    path: str, tool: Mapping[str, Any], sessionless: Mapping[str, Any], broken: Collection[Pointer]
) -> Iterator[Finding]:
    """Examples, defaults and enum values that do not fit their description, and descriptions that
    no value can be held against.

    `undecided` is the same tool without the choices that only a session knows, which no example can
    be held against. Parameters that are `broken` are passed over: what does not fit them can be
    told once they are mended.
    """
    trials = _BacktrackingBudget(_MAX_BACKTRACKING)
    for field in ("input_parameters", "output_parameters"):
        if (field,) in broken:
            continue
        forms = (tool,) if sessionless is tool else (tool, sessionless)
        walks = [
            parameters.walk_descriptions(
                {
                    name: one
                    for name, one in form.get(field, {}).items()
                    if (field, name) not in broken
                },
                (field,),
            )
            for form in forms
        ]
        for steps in zip(*walks, strict=True):
            (pointer, description), (_, measure) = steps[0], steps[-1]
            if not (
                _CHECKED_KEYWORDS.isdisjoint(description)
                or parameters.has_plainly_valid_values(description, measure)
            ):
                yield from _check_description(path, pointer, description, measure, trials)


class _ValueValidator(NamedTuple):
    """What tells whether a value fits; how many patterns it has that look around or back: none
    where it tells in no time.
    """

    validator: jsonschema_rs.Draft202012Validator
    pattern_count: int = 0


@dataclass(slots=True)
class _BacktrackingBudget:
    """How much may still be tried, of one file, on patterns that look around or back."""

    remaining: int

    def allow(self, validator: _ValueValidator, values: bytes) -> bool:
        """Tell whether these values, as JSON, may be held against this gate too."""
        if validator.pattern_count:
            # two quotes for each text
            self.remaining -= validator.pattern_count * (len(values) + 50 * values.count(b'"'))
        return self.remaining >= 0


def _check_description(
    path: str,
    pointer: Pointer,
    description: Mapping[str, Any],
    constraint: Mapping[str, Any],
    budget: _BacktrackingBudget,
) -> Iterator[Finding]:
    held = _collect_values(description, constraint)
    if not held and _has_bad_pattern(description):
        yield _bad_pattern_finding(path, pointer, description)
    if any(len(form) * len(said) > _MAX_STEPS for form, _, said in held):
        yield _too_many_finding(
            path,
            pointer,
            "so large a description",
            "shorten the examples, the enum or the branches",
        )
        return
    try:
        gates = [(_value_validator(form), values, said) for form, values, said in held]
    except jsonschema_rs.ValidationError as refusal:
        if _has_bad_pattern(description):
            yield _bad_pattern_finding(path, pointer, description)
        # else it is the pattern of a description within this one, and told there
        elif "regex" not in refusal.message:
            yield Finding(
                path=path,
                pointer=pointer,
                rule="wrong-value",
                message=f"not a usable description: {refusal.message}",
            )
        return
    if not all(budget.allow(gate, said) for gate, _, said in gates):
        what = "a pattern that looks around or back"
        yield _too_many_finding(
            path,
            pointer,
            what,
            (
                "write the pattern without `(?...)` and references, or shorten the examples of "
                "this file"
            ),
        )
        return
    for gate, values, _ in gates:
        for where, value in values:
            if error := next(iter(gate.validator.iter_errors(value)), None):
                yield _misfit_finding(path, pointer, where, value, description, error)


def _collect_values(
    description: Mapping[str, Any], constraint: Mapping[str, Any]
) -> list[tuple[bytes, list[tuple[Pointer, Any]], bytes]]:
    """What values must fit, as JSON; the values, each at its place; and those as JSON. Choices and
    samples apart.
    """
    choices: list[tuple[Pointer, Any]] = [
        (("enum", index), value) for index, value in enumerate(description.get("enum", ()))
    ]
    samples: list[tuple[Pointer, Any]] = [
        (("examples", index), value) for index, value in enumerate(description.get("examples", ()))
    ]
    samples += [(("default",), description["default"])] if "default" in description else []
    forms = [
        (orjson.dumps(parameters.to_value_schema(constraint, enum)), some)
        for enum, some in ((False, choices), (True, samples))
        if some
    ]
    return [(form, values, orjson.dumps([value for _, value in values])) for form, values in forms]


def _too_many_finding(path: str, pointer: Pointer, what: str, help: str) -> Finding:
    return Finding(
        path=path,
        pointer=pointer,
        rule="wrong-value",
        message=f"too many values to hold against {what}",
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
    """Making one takes longer than using it, and a whole number from 1 to 100 is a whole number
    from 1 to 100 in every tool.
    """
    return jsonschema_rs.Draft202012Validator(
        orjson.loads(schema), validate_formats=True, mask=_MASK
    )


def _pattern_validator(schema: bytes) -> _ValueValidator:
    """The gate of a description with patterns. It is not kept: it may hold more than a megabyte."""
    description = orjson.loads(schema)
    try:
        linear = jsonschema_rs.Draft202012Validator(
            description, validate_formats=True, mask=_MASK, pattern_options=_LINEAR
        )
    except jsonschema_rs.ValidationError:
        other = jsonschema_rs.Draft202012Validator(
            description, validate_formats=True, mask=_MASK, pattern_options=_BACKTRACKING
        )
        return _ValueValidator(other, schema.count(b'"pattern"'))
    return _ValueValidator(linear)


def _has_bad_pattern(description: Mapping[str, Any]) -> bool:
    """Tell whether its own pattern is none. Asked last: where values are held against it, making
    the gate has told.
    """
    try:
        jsonschema_rs.Draft202012Validator({"pattern": description.get("pattern", "")})
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
    where: Pointer,
    value: Any,
    description: Mapping[str, Any],
    error: jsonschema_rs.ValidationError,
) -> Finding:
    keyword = str(where[0])
    what = {"enum": "enum value", "examples": "example", "default": "default"}[keyword]
    kind = parameters.type_of(description)
    help, fix = f"change the {what} or the description", None
    if kind == "string" and isinstance(value, bool | int | float):
        help, fix = schema_errors.quote_hint(value), schema_errors.QUOTE_FIX
    elif keyword != "enum" and (
        near := names.find_nearest(
            str(value),
            [str(choice) for choice in description.get("enum", ())[:_MAX_COMPARED_CHOICES]],
        )
    ):
        help = f"did you mean `{near[0]}`?"
    message = f"the {what} does not fit its description: {_reason(error)}"
    expected = "" if error.instance_path else f"a value of type {kind}"
    spot = (*pointer, *where, *error.instance_path)
    return Finding(
        path=path,
        pointer=spot,
        rule=f"misfit-{keyword}",
        message=message,
        expected=expected,
        help=help,
        fix=fix,
    )


def _make_about(document: Document) -> About:
    return About(**document.value)


def _make_toolkit(document: Document) -> Toolkit:
    fields = {**document.value}
    for key in ("categories", "owners"):
        fields[key] = tuple(fields.get(key, ()))
    return Toolkit(slug=document.location.names.get("toolkit", ROUTER), **fields)


def _make_tool(document: Document) -> ToolVersion:
    place = document.location.names
    return ToolVersion.from_value(
        document.value,
        path=document.path,
        slug=place["tool"],
        toolkit=place["toolkit"],
        version=place["version"],
    )


def _make_meta_tool(document: Document) -> MetaTool:
    place, when = document.location.names, document.value.get("when")
    return MetaTool(
        path=document.path,
        slug=place["tool"],
        version=place["version"],
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
            tools=_make_selection(said),
            tags=_make_selection(said["tags"]) if "tags" in said else None,
        )
        for slug, said in value.get("tools", {}).items()
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
