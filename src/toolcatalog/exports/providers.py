"""Model providers: tool definitions within each provider's limits, and what had to be changed.

A provider that rejects one definition rejects the whole request, and so all other tools in it. The
known limits are in one table here. A name that is too long is replaced by a shorter, stable one. A
text that is too long is truncated. A tool with an argument name that the provider rejects is left
out, because a model that sees other argument names would call it wrongly. The decision
"Fit exports to providers" gives the source of each limit.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from toolcatalog.encoding import sha256_hex
from toolcatalog.exports import definitions
from toolcatalog.snapshot.format import Tool

_DIGEST_LENGTH = 16  # characters of the slug's SHA-256 at the end of a shortened name
_ELLIPSIS = "..."  # at the end of a truncated text


class _Limits(NamedTuple):
    """The limits of a provider.

    `name` and `description` are in characters (0: no limit), `argument` is the pattern of argument
    names (None: any).
    """

    name: int = 0
    description: int = 0
    argument: re.Pattern[str] | None = None


_LIMITS = {
    "openai": _Limits(name=64, description=1024),
    "anthropic": _Limits(name=64, argument=re.compile(r"[A-Za-z0-9_.-]{1,64}")),
    "openai-responses": _Limits(name=64, description=1024),
    "gemini": _Limits(name=64, argument=re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")),
    "bedrock": _Limits(name=64),
    "mcp": _Limits(name=128),
    "json-schema": _Limits(),
}


class ProviderDefinition(NamedTuple):
    """A definition that a provider accepts, or None, and notes on what differs from the catalog."""

    definition: dict[str, Any] | None
    notes: tuple[str, ...] = ()


def fit_definitions(tool: Tool) -> dict[str, ProviderDefinition]:
    """Return the definitions of a tool by the names in `definitions.FORMATS`."""
    return {
        format_name: _fit_definition(tool, format_name, definition)
        for format_name, definition in definitions.to_all_formats(tool).items()
    }


def fit_definition(tool: Tool, provider: str) -> ProviderDefinition:
    """Return the definition of a tool for one of `definitions.EXPORT_FORMATS`."""
    if provider == "openai-responses":
        return _fit_definition(tool, provider, definitions.to_openai_responses(tool))
    if provider == "bedrock":
        return _fit_definition(tool, provider, definitions.to_bedrock(tool))
    if provider != "gemini":
        return _fit_definition(tool, provider, definitions.to_all_formats(tool)[provider])
    if tool.slug[:1].isdigit():
        note = f"{tool.slug} is left out: gemini refuses a name that starts with a digit."
        return ProviderDefinition(None, (note,))
    losses: set[str] = set()
    result = _fit_definition(tool, provider, definitions.to_gemini(tool, losses))
    if not losses or result.definition is None:
        return result
    lost = ", ".join(sorted(losses))
    note = f"{tool.slug} loses {lost}: gemini's schema cannot express it."
    return result._replace(notes=(*result.notes, note))


def provider_name(slug: str, provider: str) -> str:
    """Return the name of a tool for a provider.

    It is the slug, or the beginning and a digest of the slug if that is too long.
    """
    max_length = _LIMITS[provider].name or len(slug)
    if len(slug) <= max_length:
        return slug
    digest = sha256_hex(slug.encode())[:_DIGEST_LENGTH]
    return f"{slug[: max_length - _DIGEST_LENGTH - 1]}_{digest}"


def render_json_array(definitions: Iterable[bytes]) -> bytes:
    """Return JSON definitions as an array with one line for each.

    A change of one tool is then a change of one line.
    """
    lines = b",\n".join(definitions)
    return b"[\n" + lines + b"\n]\n" if lines else b"[]\n"


def _fit_definition(tool: Tool, provider: str, definition: dict[str, Any]) -> ProviderDefinition:
    limits = _LIMITS[provider]
    invalid_names = [
        name
        for name in tool.input_parameters
        if limits.argument and not limits.argument.fullmatch(name)
    ]
    if invalid_names:
        note = (
            f"{tool.slug} is left out: {provider} refuses the name of its argument"
            f" {invalid_names[0]!r}."
        )
        return ProviderDefinition(None, (note,))
    name, text = provider_name(tool.slug, provider), _truncate(tool.description, limits.description)
    notes = []
    if name != tool.slug:
        notes.append(
            f"{name} is the name of {tool.slug}: {provider} takes names of {limits.name} "
            "characters."
        )
    if text != tool.description:
        notes.append(
            f"{tool.slug} has its description cut: {provider} takes {limits.description:,}"
            " characters."
        )
    if provider == "json-schema":
        head = {"$schema": definitions.JSON_SCHEMA_DIALECT, "$id": f"{tool.slug}@{tool.version}"}
        definition = {**head, **definition}
    elif notes or not text:
        definition = _rename(definition, name, text)
    return ProviderDefinition(definition, tuple(notes))


def _rename(definition: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    """Return the definition, or one that contains it under a key, with this name and text."""
    for key in ("function", "toolSpec"):
        if key in definition:
            return {**definition, key: _set_name_and_description(definition[key], name, text)}
    return _set_name_and_description(definition, name, text)


def _set_name_and_description(
    definition: Mapping[str, Any], name: str, text: str
) -> dict[str, Any]:
    """Return the definition with this name and description; an empty description is left out."""
    result = {**definition, "name": name, "description": text}
    return result if text else {key: value for key, value in result.items() if key != "description"}


def _truncate(text: str, max_length: int) -> str:
    """Return the text, or as many whole words as fit followed by an ellipsis."""
    if not max_length or len(text) <= max_length:
        return text
    head, blank, _ = text[: max_length - len(_ELLIPSIS) + 1].rpartition(" ")
    return f"{head.rstrip() if blank else text[: max_length - len(_ELLIPSIS)]}{_ELLIPSIS}"
