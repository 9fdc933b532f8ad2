"""Raw values to records, or findings: the shape of one file at a time; the only room that applies JSON Schema.

jsonschema-rs answers "is it valid?" for every file in microseconds; only for a file that is not does jsonschema list what is wrong,
and the messages here say it in the words of the format. Then each example, default and enum value is held against its description.

Serves: "Any other key is an error that names the nearest allowed one" and "Examples, defaults and enum values must fit the
description" of the catalog format.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator

from toolcatalog import complaints, names, parameters, placeholders
from toolcatalog.errors import Finding, Pointer
from toolcatalog.formats import SCHEMAS
from toolcatalog.model import ROUTER, About, AuthConfig, Choice, MetaTool, Session, ToolChoice, Toolkit, ToolVersion
from toolcatalog.source import Document

_UNUSABLE = {"wrong-type", "wrong-value", "missing-key"}  # what leaves a description that no value can be held against

Record = About | Toolkit | ToolVersion | MetaTool | AuthConfig | Session


def record(document: Document) -> tuple[Record | None, list[Finding]]:
    """The record of one document, or None and what is wrong with it."""
    kind, value = document.place.kind, document.value
    if kind == "meta_tool":
        if findings := list(_bad_placeholders(document.path, value)):
            return None, findings
        value = placeholders.fill(value, placeholders.SAMPLES)
    findings = _findings(document.path, kind, value)
    if kind in ("tool", "meta_tool") and isinstance(value, dict):
        findings += _misfits(document.path, value, {finding.pointer[:2] for finding in findings if finding.rule in _UNUSABLE})
    return (None, findings) if findings else (_RECORDS[kind](document), [])


def _bad_placeholders(path: str, value: Any) -> Iterator[Finding]:
    for pointer, name in placeholders.malformed(value):
        near = names.nearest(str(name), placeholders.SAMPLES)
        help = f"did you mean `{near[0]}`?" if near else "write `{$session: NAME}` and nothing else"
        message, expected = f"`{name}` is not something that a session gives", "one of " + ", ".join(placeholders.SAMPLES)
        yield Finding(path=path, pointer=pointer, rule="placeholder", message=message, expected=expected, help=help)


@cache
def _gate(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(SCHEMAS[kind])


@cache
def _lister(kind: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[kind])


def _findings(path: str, kind: str, value: Any) -> list[Finding]:
    if _gate(kind).is_valid(value):
        return []
    found = [finding for error in _lister(kind).iter_errors(value) for finding in complaints.told(path, error)]
    # The two libraries read a pattern's `$` differently before a final line break: the gate's word counts.
    return found or [_refused(path, error) for error in _gate(kind).iter_errors(value)]


def _refused(path: str, error: jsonschema_rs.ValidationError) -> Finding:
    return Finding(path=path, pointer=(*error.instance_path,), rule="wrong-value", message=error.message)


def _misfits(path: str, tool: Mapping[str, Any], broken: Collection[Pointer]) -> Iterator[Finding]:
    """Examples, defaults and enum values that do not fit their description, and descriptions that no value can be held against.

    Parameters that are `broken` are passed over: what does not fit them can be told once they are mended.
    """
    for field in ("input_parameters", "output_parameters"):
        if (field,) in broken:
            continue
        sound = {name: description for name, description in tool.get(field, {}).items() if (field, name) not in broken}
        for pointer, description in parameters.walk(sound, (field,)):
            yield from _misfit(path, pointer, description)


def _misfit(path: str, pointer: Pointer, description: Mapping[str, Any]) -> Iterator[Finding]:
    values: list[tuple[Pointer, Any, bool]] = [(("enum", index), value, False) for index, value in enumerate(description.get("enum", ()))]
    values += [(("examples", index), value, True) for index, value in enumerate(description.get("examples", ()))]
    values += [(("default",), description["default"], True)] if "default" in description else []
    if not values and "pattern" not in description:
        return
    try:
        gates = {enum: jsonschema_rs.Draft202012Validator(parameters.value_schema(description, enum)) for enum in (True, False)}
    except jsonschema_rs.ValidationError as refusal:
        yield _unusable(path, pointer, description, refusal)
        return
    for where, value, enum in values:
        if error := next(iter(gates[enum].iter_errors(value)), None):
            yield _misfit_finding(path, (*pointer, *where), str(where[0]), value, description, error.message)


def _unusable(path: str, pointer: Pointer, description: Mapping[str, Any], refusal: jsonschema_rs.ValidationError) -> Finding:
    if "pattern" not in description or "regex" not in refusal.message:
        return Finding(path=path, pointer=pointer, rule="wrong-value", message=f"not a usable description: {refusal.message}")
    message, expected = f"`{description['pattern']}` is not a regular expression", "an ECMA 262 regular expression"
    return Finding(path=path, pointer=(*pointer, "pattern"), rule="bad-pattern", message=message, expected=expected)


def _misfit_finding(path: str, pointer: Pointer, keyword: str, value: Any, description: Mapping[str, Any], reason: str) -> Finding:
    what = {"enum": "enum value", "examples": "example", "default": "default"}[keyword]
    kind = parameters.type_of(description)
    near = names.nearest(str(value), [str(choice) for choice in description.get("enum", ())]) if keyword != "enum" else []
    help = f"did you mean `{near[0]}`?" if near else f"change the {what} or the description"
    if kind == "string" and isinstance(value, bool | int | float):
        help = complaints.quoted(value)
    message = f"the {what} does not fit its description: {reason}"
    return Finding(path=path, pointer=pointer, rule=f"misfit-{keyword}", message=message, expected=f"a value of type {kind}", help=help)


def _about(document: Document) -> About:
    return About(**document.value)


def _toolkit(document: Document) -> Toolkit:
    fields = {**document.value}
    for key in ("categories", "owners"):
        fields[key] = tuple(fields.get(key, ()))
    return Toolkit(slug=document.place.names.get("toolkit", ROUTER), **fields)


def _tool(document: Document) -> ToolVersion:
    place = document.place.names
    return ToolVersion.of(document.value, path=document.path, slug=place["tool"], toolkit=place["toolkit"], version=place["version"])


def _meta_tool(document: Document) -> MetaTool:
    place, when = document.place.names, document.value.get("when")
    return MetaTool(path=document.path, slug=place["tool"], version=place["version"], template=document.value, when=when)


def _auth_config(document: Document) -> AuthConfig:
    value = document.value
    limits = {key: tuple(value[key]) if key in value else None for key in ("tools", "scopes")}
    return AuthConfig(path=document.path, id=document.place.names["auth_config"], toolkit=value["toolkit"], **limits)


def _session(document: Document) -> Session:
    value = document.value
    tools = {
        slug: ToolChoice(tools=_choice(said), tags=_choice(said["tags"]) if "tags" in said else None)
        for slug, said in value.get("tools", {}).items()
    }
    return Session(
        path=document.path,
        id=document.place.names["session"],
        project=value.get("project", "default"),
        user_id=value.get("user_id", "default"),
        toolkits=_choice(value.get("toolkits", {})),
        tools=tools,
        tags=_choice(value.get("tags", {})),
        auth_configs=value.get("auth_configs", {}),
        toolkit_versions=value.get("toolkit_versions", {}),
        manage_connections=value.get("manage_connections", {}).get("enable", False),
        meta_tools=tuple(value["meta_tools"]) if "meta_tools" in value else None,
    )


def _choice(value: Mapping[str, Any]) -> Choice:
    return Choice(enable=tuple(value["enable"]) if "enable" in value else None, disable=tuple(value.get("disable", ())))


_RECORDS: dict[str, Callable[[Document], Record]] = {
    "catalog": _about,
    "toolkit": _toolkit,
    "tool": _tool,
    "meta_tool": _meta_tool,
    "auth_config": _auth_config,
    "session": _session,
}
