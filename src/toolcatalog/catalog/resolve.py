"""Resolve the catalog as written into the contents of a snapshot.

This is the only module that converts `catalog.model` records to `snapshot.format` records.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from toolcatalog import parameters
from toolcatalog.catalog import model, sessions
from toolcatalog.snapshot import format as snapshot_format


def resolve_catalog(catalog: model.Catalog) -> snapshot_format.SnapshotContents:
    """Return the snapshot contents of a catalog without problems, except for its tools.

    Tools are resolved one at a time by `resolve_tool`, and sessions when they are iterated.
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
        sessions=ResolvedSessions(catalog),
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


class ResolvedSessions(Collection[snapshot_format.Session]):
    """The sessions of a catalog, each resolved when it is needed.

    All sessions together may have hundreds of megabytes of meta tools.
    """

    def __init__(self, catalog: model.Catalog) -> None:
        self._router = catalog.router
        self._plans = [_plan_session(catalog, session) for session in catalog.sessions]
        self._versions: defaultdict[str, list[str]] = defaultdict(list)
        for meta_tool in catalog.meta_tools:
            self._versions[meta_tool.slug].append(meta_tool.version)

    def __len__(self) -> int:
        return len(self._plans)

    def __iter__(self) -> Iterator[snapshot_format.Session]:
        return map(self._resolve, self._plans)

    def __contains__(self, session: object) -> bool:
        return any(session == other for other in self)

    def _resolve(self, plan: "_SessionPlan") -> snapshot_format.Session:
        assert self._router is not None or not plan.meta_tools
        tools = (
            resolve_meta_tool(meta_tool, plan.values, self._router, self._versions[meta_tool.slug])
            for meta_tool in plan.meta_tools
            if self._router
        )
        return snapshot_format.Session(
            id=plan.id, project=plan.project, toolkits=plan.toolkits, tools=tuple(tools)
        )


@dataclass(frozen=True, slots=True)
class _SessionPlan:
    """What a session is resolved from; `values` are those that its meta tools contain."""

    id: str
    project: str
    toolkits: tuple[str, ...]
    meta_tools: Sequence[model.MetaTool]
    values: Mapping[str, Any]


def _plan_session(catalog: model.Catalog, session: model.Session) -> _SessionPlan:
    meta_tools = sessions.select_meta_tools(catalog, session)
    names = {name for tool in meta_tools for name in sessions.iter_placeholders(tool.template)}
    tools = sessions.select_tools(catalog, session) if "tools" in names else []
    values = sessions.placeholder_values(catalog, session, tools)
    return _SessionPlan(
        id=session.id,
        project=session.project,
        toolkits=tuple(values["toolkits"]),
        meta_tools=meta_tools,
        values={name: values[name] for name in names},
    )


def resolve_meta_tool(
    meta_tool: model.MetaTool,
    values: Mapping[str, Any],
    router: model.Toolkit,
    versions: Iterable[str],
) -> snapshot_format.Tool:
    """Return a meta tool as served to a session with these values for placeholders."""
    value = sessions.fill_placeholders(meta_tool.template, values)
    for field in ("input_parameters", "output_parameters"):
        value[field] = _remove_empty_choices(value.get(field, {}))
    tool = model.ToolVersion.from_value(
        value,
        path=meta_tool.path,
        slug=meta_tool.slug,
        toolkit=model.ROUTER,
        version=meta_tool.version,
    )
    return resolve_tool(tool, router, tuple(sorted(versions)))


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
