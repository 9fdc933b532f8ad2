"""Resolve the catalog as written into the contents of a snapshot.

This is the only module that converts `catalog.model` records to `snapshot.format` records.
"""

from collections import defaultdict
from dataclasses import asdict, replace
from typing import Any

from toolcatalog import parameters
from toolcatalog.catalog import model, sessions
from toolcatalog.snapshot import format as snapshot_format


def resolve_catalog(catalog: model.Catalog) -> snapshot_format.SnapshotContents:
    """Return the snapshot contents of a catalog without problems, except for its tools.

    Tools are resolved one at a time by `resolve_tool`.
    """
    toolkit_versions: defaultdict[str, set[str]] = defaultdict(set)
    for tool in catalog.tools:
        toolkit_versions[tool.toolkit].add(tool.version)
    return snapshot_format.SnapshotContents(
        about=_resolve_about(catalog.about),
        toolkits=tuple(
            _resolve_toolkit(with_public_logo(toolkit, catalog.about.home), toolkit_versions[slug])
            for slug, toolkit in sorted(catalog.toolkits.items())
        ),
        router=_resolve_toolkit(catalog.router, set()) if catalog.router else None,
        auth_configs=tuple(_resolve_auth_config(config) for config in catalog.auth_configs),
        sessions=tuple(_resolve_session(catalog, session) for session in catalog.sessions),
    )


def _resolve_about(about: model.About) -> dict[str, str]:
    """Return the texts of catalog.yaml; those of the theme only if they are set.

    Links are lines, each with an address and a text.
    """
    theme = {
        "api": about.api,
        "headline": about.headline,
        "accent": about.accent,
        "links": "\n".join(
            f"{address} {' '.join(text.split())}" for text, address in about.links.items()
        ),
    }
    return {
        "title": about.title,
        "description": about.description,
        "home": about.home,
        "repository": about.repository,
        **{key: value for key, value in theme.items() if value},
    }


def with_public_logo(toolkit: model.Toolkit, home: str) -> model.Toolkit:
    """Return a toolkit with the logo that the API returns.

    It is the URL in the toolkit's file, else the public address of the logo file if `home` (the
    address of the site) is not empty, else empty.
    """
    if toolkit.logo or not (home and toolkit.logo_file):
        return toolkit
    return replace(toolkit, logo=f"{home.rstrip('/')}/{toolkit.logo_file}")


def resolve_tool(
    tool: model.ToolVersion, toolkit: model.Toolkit, versions: tuple[str, ...]
) -> snapshot_format.Tool:
    """Return one tool version as served; `versions` are all versions of the tool, oldest first."""
    return snapshot_format.Tool(
        slug=tool.slug,
        toolkit=tool.toolkit,
        version=tool.version,
        available_versions=versions,
        name=tool.name,
        description=tool.description,
        scopes=tool.scopes,
        tags=tool.tags,
        no_auth=toolkit.no_auth if tool.no_auth is None else tool.no_auth,
        deprecation=asdict(tool.deprecation) if tool.deprecation else None,
        source=tool.source,
        input_parameters=parameters.to_served_inputs(tool.input_parameters),
        output_parameters=parameters.to_served_outputs(tool.output_parameters),
    )


def _resolve_toolkit(toolkit: model.Toolkit, versions: set[str]) -> snapshot_format.Toolkit:
    return snapshot_format.Toolkit(**asdict(toolkit), versions=tuple(sorted(versions)))


def _resolve_auth_config(config: model.AuthConfig) -> snapshot_format.AuthConfig:
    return snapshot_format.AuthConfig(
        id=config.id, toolkit=config.toolkit, tools=config.tools, scopes=config.scopes
    )


def _resolve_session(catalog: model.Catalog, session: model.Session) -> snapshot_format.Session:
    toolkits = sessions.select_toolkits(catalog, session)
    values = {
        "toolkits": toolkits,
        "tools": [tool.slug for tool in sessions.select_tools(catalog, session)],
        "session_id": session.id,
        "user_id": session.user_id,
        "auth_configs": sorted(
            {config for toolkit, config in session.auth_configs.items() if toolkit in toolkits}
        ),
    }
    meta_tools = tuple(
        _resolve_meta_tool(catalog, meta_tool, values)
        for meta_tool in _offered_meta_tools(catalog, session)
    )
    return snapshot_format.Session(
        id=session.id, project=session.project, toolkits=tuple(toolkits), tools=meta_tools
    )


def _offered_meta_tools(catalog: model.Catalog, session: model.Session) -> list[model.MetaTool]:
    """Return the newest version of each meta tool that the session offers.

    They are in the session's order if it lists them, else sorted by slug.
    """
    newest = {tool.slug: tool for tool in catalog.meta_tools}
    selected = [
        newest[slug] for slug in (newest if session.meta_tools is None else session.meta_tools)
    ]
    return [tool for tool in selected if tool.when is None or session.manage_connections]


def _resolve_meta_tool(
    catalog: model.Catalog, meta: model.MetaTool, values: dict[str, Any]
) -> snapshot_format.Tool:
    assert catalog.router is not None
    value = sessions.fill_placeholders(meta.template, values)
    for field in ("input_parameters", "output_parameters"):
        value[field] = _remove_empty_choices(value.get(field, {}))
    tool = model.ToolVersion.from_value(
        value, path=meta.path, slug=meta.slug, toolkit=model.ROUTER, version=meta.version
    )
    return resolve_tool(
        tool,
        catalog.router,
        tuple(sorted(other.version for other in catalog.meta_tools if other.slug == meta.slug)),
    )


def _remove_empty_choices(descriptions: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters without those that have an empty choice in this session.

    This applies at any level: no value could be given for such a parameter.
    """
    pruned = {name: _prune(description) for name, description in descriptions.items()}
    return {name: description for name, description in pruned.items() if description is not None}


def _prune(description: dict[str, Any]) -> dict[str, Any] | None:
    """Return the description without empty choices, or None if nothing is left of it."""
    pruned = dict(description)
    if "properties" in pruned:
        pruned["properties"] = _remove_empty_choices(pruned["properties"])
    if isinstance(pruned.get("additionalProperties"), dict):
        pruned["additionalProperties"] = _prune(pruned["additionalProperties"]) or False
    if "items" in pruned:
        pruned["items"] = _prune(pruned["items"])
    for key in {"anyOf", "oneOf"} & pruned.keys():
        pruned[key] = [branch for branch in map(_prune, pruned[key]) if branch is not None]
    is_empty = (
        pruned.get("enum") == []
        or pruned.get("items", {}) is None
        or pruned.get("anyOf") == []
        or pruned.get("oneOf") == []
    )
    return None if is_empty else pruned
