"""The catalog as written to the contents of a snapshot: versions listed, defaults settled, sessions
filled in. Pure.

The only bridge between the two vocabularies, `model` and `snapshot`.
"""

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from toolcatalog import choices, model, parameters, placeholders, snapshot


def resolve(catalog: model.Catalog) -> snapshot.Contents:
    """The contents of the snapshot of a catalog without problems, but for the tools, which go
    through `tool` one by one.
    """
    of_toolkit: defaultdict[str, set[str]] = defaultdict(set)
    for one in catalog.tools:
        of_toolkit[one.toolkit].add(one.version)
    return snapshot.Contents(
        about={key: value for key, value in asdict(catalog.about).items() if key != "rules"},
        toolkits=tuple(
            _toolkit(toolkit, of_toolkit[slug])
            for slug, toolkit in sorted(catalog.toolkits.items())
        ),
        router=_toolkit(catalog.router, set()) if catalog.router else None,
        auth_configs=tuple(_auth_config(config) for config in catalog.auth_configs),
        sessions=tuple(_session(catalog, session) for session in catalog.sessions),
    )


def tool(
    tool: model.ToolVersion, toolkit: model.Toolkit, versions: tuple[str, ...]
) -> snapshot.Tool:
    """One tool version as served; `versions` are all those of the tool, oldest first."""
    return snapshot.Tool(
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
        input_parameters=parameters.served_inputs(tool.input_parameters),
        output_parameters=parameters.served_outputs(tool.output_parameters),
    )


def _toolkit(toolkit: model.Toolkit, versions: set[str]) -> snapshot.Toolkit:
    return snapshot.Toolkit(**asdict(toolkit), versions=tuple(sorted(versions)))


def _auth_config(config: model.AuthConfig) -> snapshot.AuthConfig:
    return snapshot.AuthConfig(
        id=config.id, toolkit=config.toolkit, tools=config.tools, scopes=config.scopes
    )


def _session(catalog: model.Catalog, session: model.Session) -> snapshot.Session:
    toolkits = choices.toolkits_of(catalog, session)
    given = {
        "toolkits": toolkits,
        "tools": [tool.slug for tool in choices.tools_of(catalog, session)],
        "session_id": session.id,
        "user_id": session.user_id,
        "auth_configs": sorted(
            {config for toolkit, config in session.auth_configs.items() if toolkit in toolkits}
        ),
    }
    tools = tuple(_meta_tool(catalog, one, given) for one in _meta_tools(catalog, session))
    return snapshot.Session(
        id=session.id, project=session.project, toolkits=tuple(toolkits), tools=tools
    )


def _meta_tools(catalog: model.Catalog, session: model.Session) -> list[model.MetaTool]:
    """The newest version of each meta tool that the session offers, in the session's order, else by
    slug.
    """
    newest = {tool.slug: tool for tool in catalog.meta_tools}
    chosen = [
        newest[slug] for slug in (newest if session.meta_tools is None else session.meta_tools)
    ]
    return [tool for tool in chosen if tool.when is None or session.manage_connections]


def _meta_tool(
    catalog: model.Catalog, meta: model.MetaTool, given: dict[str, Any]
) -> snapshot.Tool:
    assert catalog.router is not None
    value = placeholders.fill(meta.template, given)
    for field in ("input_parameters", "output_parameters"):
        value[field] = _without_empty_choices(value.get(field, {}))
    filled = model.ToolVersion.of(
        value, path=meta.path, slug=meta.slug, toolkit=model.ROUTER, version=meta.version
    )
    return tool(
        filled,
        catalog.router,
        tuple(sorted(other.version for other in catalog.meta_tools if other.slug == meta.slug)),
    )


def _without_empty_choices(described: dict[str, Any]) -> dict[str, Any]:
    """The parameters but those, at any level, whose choice is empty in this session: no value could
    ever be given for them.
    """
    pruned = {name: _pruned(description) for name, description in described.items()}
    return {name: description for name, description in pruned.items() if description is not None}


def _pruned(description: dict[str, Any]) -> dict[str, Any] | None:
    """The description without empty choices, or None where nothing is left of it."""
    kept = dict(description)
    if "properties" in kept:
        kept["properties"] = _without_empty_choices(kept["properties"])
    if isinstance(kept.get("additionalProperties"), dict):
        kept["additionalProperties"] = _pruned(kept["additionalProperties"]) or False
    if "items" in kept:
        kept["items"] = _pruned(kept["items"])
    for key in {"anyOf", "oneOf"} & kept.keys():
        kept[key] = [branch for branch in map(_pruned, kept[key]) if branch is not None]
    empty = (
        kept.get("enum") == []
        or kept.get("items", {}) is None
        or kept.get("anyOf") == []
        or kept.get("oneOf") == []
    )
    return None if empty else kept
