"""Schema validation: a raw value of one file to a record, or to findings.

jsonschema-rs checks every file in microseconds. Only for an invalid file does
`catalog.schema_validator` list the errors, and `catalog.schema_errors` turns them into messages in
terms of the file format. Then `catalog.sample_values` checks examples, defaults and enum values.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, takewhile
from typing import Any

import jsonschema_rs

from toolcatalog import names
from toolcatalog.catalog import sample_values, schema_errors, sessions
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
        findings += _limit_findings(
            sample_values.check_values(document.path, value, sessionless, invalid)
        )
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
    return jsonschema_rs.Draft202012Validator(SCHEMAS[kind], mask=schema_errors.MASK)


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
    schemas = [
        field for field in sample_values.PARAMETER_FIELDS if _is_whole_schema(value.get(field))
    ]
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
        path=path,
        pointer=(*error.instance_path,),
        rule="wrong-value",
        message=schema_errors.unmask_message(error),
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
