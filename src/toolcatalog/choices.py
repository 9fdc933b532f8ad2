"""What a session may use: its toolkits and, of those, its tools. Pure."""

from collections.abc import Iterable, Sequence

from toolcatalog import snapshot
from toolcatalog.model import AuthConfig, Catalog, Choice, Listed, Session, ToolChoice

_EVERYTHING = ToolChoice()


def toolkits_of(catalog: Catalog, session: Session) -> list[str]:
    """The slugs of the session's toolkits, sorted."""
    return [slug for slug in sorted(catalog.toolkits) if _chosen(session.toolkits, (slug,))]


def tools_of(catalog: Catalog, session: Session) -> list[Listed]:
    """The tool versions that the session may use, sorted by slug: one for each tool, the one in
    force.
    """
    toolkits = {*toolkits_of(catalog, session)}
    configs = {config.id: config for config in catalog.auth_configs}
    allowed = []
    for tool in in_force((tool for tool in catalog.tools if tool.toolkit in toolkits), session):
        config = configs.get(session.auth_configs.get(tool.toolkit, ""))
        said = session.tools.get(tool.toolkit, _EVERYTHING)
        if _allows(said, session.tags, tool) and (
            config is None or usable(config, tool.slug, tool.scopes)
        ):
            allowed.append(tool)
    return allowed


def in_force(tools: Iterable[Listed], session: Session) -> Iterable[Listed]:
    """Of each tool the newest version, or the newest at the session's version of its toolkit.
    `tools` is sorted by slug and version.
    """
    pins = session.toolkit_versions
    return {
        tool.slug: tool
        for tool in tools
        if tool.toolkit not in pins or tool.version <= pins[tool.toolkit]
    }.values()


def usable(config: AuthConfig | snapshot.AuthConfig, slug: str, scopes: Iterable[str]) -> bool:
    """Tell whether a tool of the config's toolkit is usable with it: listed, where tools are; all
    scopes granted, where scopes are.
    """
    return (config.tools is None or slug in config.tools) and (
        config.scopes is None or {*scopes} <= {*config.scopes}
    )


def _allows(said: ToolChoice, tags: Choice, tool: Listed) -> bool:
    return _chosen(said.tools, (tool.slug,)) and _chosen(said.tags or tags, tool.tags)


def _chosen(choice: Choice, has: Sequence[str]) -> bool:
    enabled = choice.enable is None or any(name in choice.enable for name in has)
    return enabled and not any(name in choice.disable for name in has)
