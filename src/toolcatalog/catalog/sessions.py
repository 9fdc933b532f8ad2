"""Sessions: which tools a session may use, and the `{$session: ...}` placeholders of meta tools."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcatalog.catalog.model import (
    AuthConfig,
    Catalog,
    MetaTool,
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


def iter_placeholders(template: Any) -> Iterator[str]:
    """Yield the name of each placeholder, as often as it occurs."""
    if isinstance(template, dict):
        if PLACEHOLDER_KEY in template:
            yield template[PLACEHOLDER_KEY]
            return
        template = template.values()
    elif not isinstance(template, list):
        return
    for inner in template:
        yield from iter_placeholders(inner)


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
    allows = _make_selector(session.toolkits)
    return [slug for slug in sorted(catalog.toolkits) if allows((slug,))]


def select_tools(catalog: Catalog, session: Session) -> list[ToolSummary]:
    """Return the tool versions that the session may use, sorted by slug.

    There is one version of each tool, the effective one.
    """
    toolkits = select_toolkits(catalog, session)
    configs = {config.id: config for config in catalog.auth_configs}
    allows = {
        toolkit: _make_tool_selector(
            session.tools.get(toolkit, _ALL_TOOLS),
            session.tags,
            configs.get(session.auth_configs.get(toolkit, "")),
        )
        for toolkit in toolkits
    }
    candidates = (tool for tool in catalog.tools if tool.toolkit in allows)
    return [tool for tool in select_versions(candidates, session) if allows[tool.toolkit](tool)]


def select_meta_tools(catalog: Catalog, session: Session) -> list[MetaTool]:
    """Return the newest version of each meta tool that the session offers.

    They are in the session's order if it lists them, else sorted by slug.
    """
    newest = {tool.slug: tool for tool in catalog.meta_tools}
    selected = [
        newest[slug] for slug in (newest if session.meta_tools is None else session.meta_tools)
    ]
    return [tool for tool in selected if tool.when is None or session.manage_connections]


def placeholder_values(
    catalog: Catalog, session: Session, tools: Sequence[ToolSummary]
) -> dict[str, Any]:
    """Return the values for placeholders, by name; `tools` are those that the session may use."""
    toolkits = select_toolkits(catalog, session)
    configs = (session.auth_configs[toolkit] for toolkit in session.auth_configs.keys() & toolkits)
    return {
        "toolkits": toolkits,
        "tools": [tool.slug for tool in tools],
        "session_id": session.id,
        "user_id": session.user_id,
        "auth_configs": sorted({*configs}),
    }


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


def make_usability_check(
    config: AuthConfig | snapshot_format.AuthConfig,
) -> Callable[[str, Iterable[str]], bool]:
    """Return a function that returns whether a tool of the config's toolkit can use the config.

    It takes the slug and the scopes of the tool. The config must list the tool, if it lists tools,
    and grant all of its scopes, if it limits scopes.
    """
    tools = None if config.tools is None else frozenset(config.tools)
    granted = None if config.scopes is None else frozenset(config.scopes)
    return lambda slug, scopes: (
        (tools is None or slug in tools) and (granted is None or granted.issuperset(scopes))
    )


def _make_tool_selector(
    selection: ToolSelection, tags: Selection, config: AuthConfig | None
) -> Callable[[ToolSummary], bool]:
    allows_slug, allows_tags = (
        _make_selector(selection.tools),
        _make_selector(selection.tags or tags),
    )
    is_usable = make_usability_check(config) if config else None
    return lambda tool: (
        allows_slug((tool.slug,))
        and allows_tags(tool.tags)
        and (is_usable is None or is_usable(tool.slug, tool.scopes))
    )


def _make_selector(selection: Selection) -> Callable[[Iterable[str]], bool]:
    """Return a function that returns whether the selection allows something with these names.

    A selection may name thousands, and a catalog has very many tools.
    """
    enabled = None if selection.enable is None else frozenset(selection.enable)
    disabled = frozenset(selection.disable)
    return lambda names: (
        (enabled is None or not enabled.isdisjoint(names)) and disabled.isdisjoint(names)
    )
