"""Catalog view: the part of a catalog that a key may see, with errors for everything else.

A toolkit that the key may not see behaves as if it did not exist, with three exceptions that are
403: to list its tools by `toolkit_slug`, to list by one of its auth configs, and to ask for a
session that allows it.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import chain

from toolcatalog import names
from toolcatalog.api.error_responses import ErrorDetail, invalid_request
from toolcatalog.api.query_params import ListParams, ToolParams, invalid_slug_error
from toolcatalog.snapshot.tables import ToolIds
from toolcatalog.store.store import Store, ToolEntry, ToolkitInfo, VersionPins

_NEARBY_NAMES = 500  # known names before and after an unknown one that are compared with it
_MAX_SUGGESTIONS = 5  # unknown names of a request for which similar ones are searched
_MOST_VERSIONS = 20  # versions that a fix lists
_LOOK_UP = "Look its slug up on the site."
_CHECK = "Check the id with the catalog's owner."


class CatalogView:
    """The part of a catalog that a key may see.

    `visible_toolkits` are the slugs of the visible toolkits; None means all of them.
    """

    def __init__(self, store: Store, visible_toolkits: Collection[str] | None) -> None:
        self.store = store
        self.visible_toolkits = None if visible_toolkits is None else frozenset(visible_toolkits)

    def find_tool(self, slug: str, params: ToolParams) -> int | ErrorDetail:
        """Return the id of a tool in the requested version, or an error."""
        entry = self.store.get_tool(slug)
        if entry is None or self._is_hidden(entry.toolkit):
            return (
                self._unknown_tool(slug)
                if names.is_valid(names.TOOL_SLUG, slug)
                else invalid_slug_error(slug)
            )
        version = self._resolve_version(slug, params, entry)
        return version if isinstance(version, ErrorDetail) else entry.tool_id(version)

    def _unknown_tool(self, slug: str) -> ErrorDetail:
        near = names.find_nearest(
            slug, self.store.similar_slugs(slug, self.visible_toolkits), limit=3
        )
        fix = _did_you_mean(near) or "Search with GET /api/v3/tools?query=..."
        return ErrorDetail(404, "tool_not_found", f"tool_slug: there is no tool {slug}.", fix)

    def _resolve_version(
        self, slug: str, params: ToolParams, entry: ToolEntry
    ) -> str | ErrorDetail:
        toolkit = entry.toolkit
        if params.version is not None:
            line = f"version: {slug} has no version {params.version}."
            return (
                params.version
                if params.version in entry.versions
                else _unknown_version(line, entry.versions)
            )
        at = params.pins.for_toolkit(toolkit)
        if at is None:
            return entry.versions[-1]
        versions = self.store.get_toolkit_versions(toolkit) or []
        if at not in (versions if toolkit in params.pins.toolkits else self._all_versions()):
            return _unknown_version(
                f"toolkit_versions: toolkit {toolkit} has no version {at}.", versions
            )
        return entry.version_at(at) or _unknown_version(
            f"toolkit_versions: {slug} is not yet in toolkit {toolkit} at {at}.", entry.versions
        )

    def find_toolkit(self, slug: str, version: str | None) -> ToolkitInfo | ErrorDetail:
        """Return a toolkit that has this version (None: any), or an error."""
        toolkit = None if self._is_hidden(slug) else self.store.get_toolkit(slug)
        if toolkit is None:
            line = f"toolkit_slug: there is no toolkit {slug[:80]}."
            return ErrorDetail(404, "toolkit_not_found", line, self._suggest_toolkit(slug, ()))
        if version is not None and version not in toolkit.versions:
            line = f"version: toolkit {slug} has no version {version}."
            fix = _versions_hint(toolkit.versions)
            return ErrorDetail(404, "toolkit_version_not_found", line, fix)
        return toolkit

    def list_tools(self, params: ListParams) -> tuple[ToolIds, int]:
        """Return the ids of the tools on the requested page, and the total on all pages."""
        start, size = params.page.start, params.page.size
        if params.slugs is not None:
            named = self.store.resolve_slugs(params.slugs, params.pins, self.visible_toolkits)
            return named[start : start + size], len(named)
        filters = params.filters
        if filters.toolkits is None and self.visible_toolkits is not None:
            filters = filters._replace(toolkits=self.visible_toolkits)
        found = self.store.search(filters, params.pins, self.visible_toolkits)
        page = self.store.select_page(found, params.sort_by, params.descending, start, size)
        return page, found.total

    def suggest_query(self, params: ListParams) -> str:
        """Return a corrected spelling of a query that matched nothing, or an empty string.

        A correction is returned only if it matches something.
        """
        query = params.filters.query if params.slugs is None else ""
        corrected = self.store.correct_query(query, self.visible_toolkits) if query else ""
        return (
            corrected
            if corrected
            and self.list_tools(params._replace(filters=params.filters._replace(query=corrected)))[
                1
            ]
            else ""
        )

    def validate(self, params: ListParams) -> list[ErrorDetail]:
        """Return an error for each named item that does not exist, or is not for this key.

        If slugs are given, the filters are not checked.
        """
        refusals: list[ErrorDetail] = []
        self._check_pins(params.pins, refusals)
        if params.slugs is None:
            self._check_toolkits(params.filters.toolkits or (), refusals)
            self._check_auth_configs(params.filters.auth_configs, refusals)
        return refusals

    def _check_pins(self, pins: VersionPins, refusals: list[ErrorDetail]) -> None:
        if pins.default is not None and pins.default not in (every := self._all_versions()):
            refusals.append(
                invalid_request(
                    f"toolkit_versions: no toolkit has a version {pins.default}.",
                    _versions_hint(every),
                )
            )
        for toolkit, version in pins.toolkits.items():
            if version is None:
                continue  # the newest is the default
            known = None if self._is_hidden(toolkit) else self.store.get_toolkit_versions(toolkit)
            if known is None:
                refusals.append(
                    invalid_request(
                        f"toolkit_versions: there is no toolkit {toolkit[:80]}.",
                        self._suggest_toolkit(toolkit, refusals),
                    )
                )
            elif version not in known:
                refusals.append(
                    invalid_request(
                        f"toolkit_versions: toolkit {toolkit} has no version {version}.",
                        _versions_hint(known),
                    )
                )

    def _check_toolkits(self, toolkits: Collection[str], refusals: list[ErrorDetail]) -> None:
        for toolkit in toolkits:
            if self.store.get_toolkit_versions(toolkit) is None:
                line = f"toolkit_slug: there is no toolkit {toolkit[:80]}."
                refusals.append(
                    ErrorDetail(
                        404, "toolkit_not_found", line, self._suggest_toolkit(toolkit, refusals)
                    )
                )
            elif self._is_hidden(toolkit):
                refusals.append(
                    _forbidden(f"toolkit_slug: this key's project may not use toolkit {toolkit}.")
                )

    def _check_auth_configs(self, ids: Collection[str], refusals: list[ErrorDetail]) -> None:
        for id in ids:
            toolkit = self.store.get_auth_config_toolkit(id)
            if toolkit is None:
                line = f"auth_config_ids: there is no auth config {id[:80]}."
                fix = self._auth_config_like(id, refusals)
                refusals.append(ErrorDetail(404, "auth_config_not_found", line, fix))
            elif self._is_hidden(toolkit):
                refusals.append(
                    _forbidden(
                        f"auth_config_ids: {id} is for a toolkit that this key's project may "
                        "not use."
                    )
                )

    def get_session(self, id: str, project: str | None) -> bytes | ErrorDetail:
        """Return the response body for a session, or an error.

        The session must belong to `project`; None allows any project.
        """
        session = self.store.get_session(id)
        if session is None:
            return ErrorDetail(
                404,
                "session_not_found",
                f"session_id: there is no session {id}.",
                "Check the id with its owner.",
            )
        if project not in (None, session.project):
            return ErrorDetail(
                403,
                "forbidden",
                f"session_id: {id} belongs to another project.",
                "Use a key of its owner.",
            )
        if any(self._is_hidden(toolkit) for toolkit in session.toolkits):
            return _forbidden(f"session_id: {id} allows toolkits that this key may not use.")
        return session.answer

    def _is_hidden(self, toolkit: str) -> bool:
        return self.visible_toolkits is not None and toolkit not in self.visible_toolkits

    def _all_versions(self) -> list[str]:
        if self.visible_toolkits is None:
            return self.store.all_versions()
        return sorted(
            {
                version
                for toolkit in self.visible_toolkits
                for version in self.store.get_toolkit_versions(toolkit) or ()
            }
        )

    def _suggest_toolkit(self, toolkit: str, errors: Sequence[ErrorDetail]) -> str:
        if len(errors) >= _MAX_SUGGESTIONS:
            return _LOOK_UP
        return _suggest_name(toolkit, self._names_near("toolkit", toolkit)) or _LOOK_UP

    def _auth_config_like(self, id: str, before: Sequence[ErrorDetail]) -> str:
        if len(before) >= _MAX_SUGGESTIONS:
            return _CHECK
        return _suggest_name(id, self._names_near("auth_config", id)) or _CHECK

    def _names_near(self, kind: str, name: str) -> Sequence[str]:
        """Return the visible toolkits or auth configs that sort nearest to a name.

        `kind` is `toolkit` or `auth_config`.
        """
        if self.visible_toolkits is None:
            return self.store.nearby_names(kind, name, _NEARBY_NAMES)
        names = self._visible_names[kind]
        place = bisect_left(names, name)
        return names[max(0, place - _NEARBY_NAMES) : place + _NEARBY_NAMES]

    @cached_property
    def _visible_names(self) -> dict[str, list[str]]:
        toolkits = {
            slug
            for slug in self.visible_toolkits or ()
            if self.store.get_toolkit_versions(slug) is not None
        }
        configs = chain.from_iterable(map(self.store.auth_configs, toolkits))
        return {"toolkit": sorted(toolkits), "auth_config": sorted(configs)}


def _unknown_version(message: str, existing: Sequence[str]) -> ErrorDetail:
    return ErrorDetail(404, "tool_version_not_found", message, _versions_hint(existing))


def _forbidden(message: str) -> ErrorDetail:
    return ErrorDetail(
        403, "forbidden", message, "Ask for other toolkits, or use a key of a project that may."
    )


def _versions_hint(existing: Sequence[str]) -> str:
    """Return how to fix a version: the existing ones, oldest first, of many only the newest."""
    if not existing:
        return "Use latest."
    older = len(existing) - _MOST_VERSIONS
    end = f", or one of {older} older versions." if older > 0 else "."
    return f"Use latest, or one of {', '.join(existing[-_MOST_VERSIONS:])}{end}"


def _suggest_name(name: str, candidates: Sequence[str]) -> str:
    return _did_you_mean(names.find_nearest(name[: names.MAX_LENGTH], candidates, limit=3))


def _did_you_mean(matches: Sequence[str]) -> str:
    return f"Did you mean {' or '.join(matches)}?" if matches else ""
