"""Sessions: which tools a session may use, and the `{$session: ...}` placeholders of meta tools."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcatalog import encoding
from toolcatalog.catalog.model import (
    AuthConfig,
    Catalog,
    Selection,
    Session,
    ToolSelection,
    ToolSummary,
)
from toolcatalog.errors import Pointer
from toolcatalog.snapshot import format as snapshot_format

PLACEHOLDER_KEY = "$session"

# Sample values that replace placeholders when a meta tool is checked.
SAMPLE_VALUES: Mapping[str, Any] = {
    "toolkits": ["toolkit"],
    "tools": ["TOOL"],
    "session_id": "trs_session",
    "user_id": "user",
    "auth_configs": ["ac_config"],
}


def fill_placeholders(value: Any, values: Mapping[str, Any]) -> Any:
    """Return the value with each placeholder replaced by the value of its name.

    Raises KeyError if `values` does not contain the name.
    """
    if isinstance(value, dict):
        return (
            values[value[PLACEHOLDER_KEY]]
            if PLACEHOLDER_KEY in value
            else {key: fill_placeholders(inner, values) for key, inner in value.items()}
        )
    if isinstance(value, list):
        return [fill_placeholders(inner, values) for inner in value]
    return value


def estimate_size(template: Mapping[str, Any]) -> tuple[int, int]:
    """Return about how many bytes a meta tool has as JSON, and its number of placeholders."""
    text = encoding.dump_json(template)
    return len(text), text.count(encoding.dump_json(PLACEHOLDER_KEY))


def remove_placeholder_enums(value: Any) -> Any:
    """Return the value without each `enum` that is a placeholder.

    Its choices depend on the session, so until the session is known any value may be allowed.
    """
    if isinstance(value, dict):
        return {
            key: remove_placeholder_enums(inner)
            for key, inner in value.items()
            if key != "enum" or not _is_placeholder(inner)
        }
    return (
        [remove_placeholder_enums(inner) for inner in value] if isinstance(value, list) else value
    )


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, dict) and PLACEHOLDER_KEY in value


def find_invalid_placeholders(
    value: Any, pointer: Pointer = ()
) -> Iterator[tuple[Pointer, dict[str, Any]]]:
    """Yield pointer and value of each placeholder that is not a single key with a known name."""
    if isinstance(value, dict):
        if PLACEHOLDER_KEY in value:
            if (
                len(value) > 1
                or not isinstance(value[PLACEHOLDER_KEY], str)
                or value[PLACEHOLDER_KEY] not in SAMPLE_VALUES
            ):
                yield pointer, value
        else:
            for key, inner in value.items():
                yield from find_invalid_placeholders(inner, (*pointer, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from find_invalid_placeholders(inner, (*pointer, index))


_ALL_TOOLS = ToolSelection()


def select_toolkits(catalog: Catalog, session: Session) -> list[str]:
    """Return the sorted slugs of the session's toolkits."""
    return [slug for slug in sorted(catalog.toolkits) if _is_selected(session.toolkits, (slug,))]


def select_tools(catalog: Catalog, session: Session) -> list[ToolSummary]:
    """Return the tool versions that the session may use, sorted by slug.

    There is one version of each tool, the effective one.
    """
    toolkits = {*select_toolkits(catalog, session)}
    configs = {config.id: config for config in catalog.auth_configs}
    allowed = []
    for tool in select_versions(
        (tool for tool in catalog.tools if tool.toolkit in toolkits), session
    ):
        config = configs.get(session.auth_configs.get(tool.toolkit, ""))
        selection = session.tools.get(tool.toolkit, _ALL_TOOLS)
        if _allows(selection, session.tags, tool) and (
            config is None or is_usable(config, tool.slug, tool.scopes)
        ):
            allowed.append(tool)
    return allowed


def select_versions(tools: Iterable[ToolSummary], session: Session) -> Iterable[ToolSummary]:
    """Return the effective version of each tool: the newest, or the newest up to the pinned one.

    A session pins versions by toolkit. `tools` must be sorted by slug and version.
    """
    pins = session.toolkit_versions
    return {
        tool.slug: tool
        for tool in tools
        if tool.toolkit not in pins or tool.version <= pins[tool.toolkit]
    }.values()


def is_usable(
    config: AuthConfig | snapshot_format.AuthConfig, slug: str, scopes: Iterable[str]
) -> bool:
    """Return whether a tool of the config's toolkit can be used with the config.

    The config must list the tool, if it lists tools, and grant all of its scopes, if it limits
    scopes.
    """
    return (config.tools is None or slug in config.tools) and (
        config.scopes is None or {*scopes} <= {*config.scopes}
    )


def _allows(selection: ToolSelection, tags: Selection, tool: ToolSummary) -> bool:
    return _is_selected(selection.tools, (tool.slug,)) and _is_selected(
        selection.tags or tags, tool.tags
    )


def _is_selected(selection: Selection, names: Sequence[str]) -> bool:
    enabled = selection.enable is None or any(name in selection.enable for name in names)
    return enabled and not any(name in selection.disable for name in names)
