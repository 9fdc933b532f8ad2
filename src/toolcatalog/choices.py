"""What a session may use: its toolkits and, of those, its tools. Pure."""

from collections.abc import Iterable, Sequence

from toolcatalog.model import AuthConfig, Catalog, Selection, Session, ToolSelection, ToolSummary
from toolcatalog.snapshot import format as snapshot_format

_ALL_TOOLS = ToolSelection()


def select_toolkits(catalog: Catalog, session: Session) -> list[str]:
    """The slugs of the session's toolkits, sorted."""
    return [slug for slug in sorted(catalog.toolkits) if _is_selected(session.toolkits, (slug,))]


def select_tools(catalog: Catalog, session: Session) -> list[ToolSummary]:
    """The tool versions that the session may use, sorted by slug: one for each tool, the one in
    force.
    """
    toolkits = {*select_toolkits(catalog, session)}
    configs = {config.id: config for config in catalog.auth_configs}
    allowed = []
    for tool in select_versions(
        (tool for tool in catalog.tools if tool.toolkit in toolkits), session
    ):
        config = configs.get(session.auth_configs.get(tool.toolkit, ""))
        said = session.tools.get(tool.toolkit, _ALL_TOOLS)
        if _allows(said, session.tags, tool) and (
            config is None or is_usable(config, tool.slug, tool.scopes)
        ):
            allowed.append(tool)
    return allowed


def select_versions(tools: Iterable[ToolSummary], session: Session) -> Iterable[ToolSummary]:
    """Of each tool the newest version, or the newest at the session's version of its toolkit.
    `tools` is sorted by slug and version.
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
    """Tell whether a tool of the config's toolkit is usable with it: listed, where tools are; all
    scopes granted, where scopes are.
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
