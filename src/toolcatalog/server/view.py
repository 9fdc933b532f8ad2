"""The store as one key sees it: a question in, documents out, or what stands in the way. No HTTP.

A toolkit that the key may not see behaves as if it were not there, with three exceptions that are
403: to list its tools by `toolkit_slug`, to list by an auth config of it, and to ask for a session
that allows it.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import chain

from toolcatalog import names
from toolcatalog.postings import Numbers
from toolcatalog.server.questions import ListQuestion, ToolQuestion, no_slug
from toolcatalog.server.refusals import Refusal, invalid
from toolcatalog.store import Entry, Pins, Store

_NEAR = 500  # known names before and after an unknown one that are compared with it
_SUGGESTED = 5  # unknown names of a request for which the nearest known ones are looked up
_MOST_VERSIONS = 20  # that a fix names
_LOOK_UP = "Look its slug up on the site."
_CHECK = "Check the id with the catalog's owner."


class View:
    """`visible` are the toolkits that may be seen; None: all of them."""

    def __init__(self, store: Store, visible: Collection[str] | None) -> None:
        self.store = store
        self.visible = None if visible is None else frozenset(visible)

    def tool(self, slug: str, question: ToolQuestion) -> int | Refusal:
        """The number of one tool in the version asked for."""
        entry = self.store.tool(slug)
        if entry is None or self._hidden(entry.toolkit):
            return self._no_tool(slug) if names.fits(names.TOOL_SLUG, slug) else no_slug(slug)
        version = self._version(slug, question, entry)
        return version if isinstance(version, Refusal) else entry.number(version)

    def _no_tool(self, slug: str) -> Refusal:
        near = names.nearest(slug, self.store.similar(slug, self.visible), most=3)
        fix = _did_you_mean(near) or "Search with GET /api/v3/tools?query=..."
        return Refusal(404, "tool_not_found", f"tool_slug: there is no tool {slug}.", fix)

    def _version(self, slug: str, question: ToolQuestion, entry: Entry) -> str | Refusal:
        toolkit = entry.toolkit
        if question.version is not None:
            line = f"version: {slug} has no version {question.version}."
            return (
                question.version
                if question.version in entry.versions
                else _no_version(line, entry.versions)
            )
        at = question.pins.of(toolkit)
        if at is None:
            return entry.versions[-1]
        versions = self.store.toolkit(toolkit) or []
        if at not in (versions if toolkit in question.pins.toolkits else self._all_versions()):
            return _no_version(
                f"toolkit_versions: toolkit {toolkit} has no version {at}.", versions
            )
        return entry.at(at) or _no_version(
            f"toolkit_versions: {slug} is not yet in toolkit {toolkit} at {at}.", entry.versions
        )

    def tools(self, question: ListQuestion) -> tuple[Numbers, int]:
        """The numbers of the tools on the page that a list question asks for, and how many tools
        there are on all pages.
        """
        start, size = question.page.start, question.page.size
        if question.slugs is not None:
            named = self.store.named(question.slugs, question.pins, self.visible)
            return named[start : start + size], len(named)
        filters = question.filters
        if filters.toolkits is None and self.visible is not None:
            filters = filters._replace(toolkits=self.visible)
        found = self.store.matching(filters, question.pins, self.visible)
        return self.store.page(found, question.sort_by, question.descending, start, size), len(
            found.numbers
        )

    def suggestion(self, question: ListQuestion) -> str:
        """A corrected spelling of a query that found nothing, if with that it finds something; else
        empty.
        """
        query = question.filters.query if question.slugs is None else ""
        corrected = self.store.corrected(query, self.visible) if query else ""
        return (
            corrected
            if corrected
            and self.tools(question._replace(filters=question.filters._replace(query=corrected)))[1]
            else ""
        )

    def refusals(self, question: ListQuestion) -> list[Refusal]:
        """What a list question names that is not there, or not for this key. Where slugs are asked
        for, the filters do not count.
        """
        refusals: list[Refusal] = []
        self._check_pins(question.pins, refusals)
        if question.slugs is None:
            self._check_toolkits(question.filters.toolkits or (), refusals)
            self._check_auth_configs(question.filters.auth_configs, refusals)
        return refusals

    def _check_pins(self, pins: Pins, refusals: list[Refusal]) -> None:
        if pins.everywhere is not None and pins.everywhere not in (every := self._all_versions()):
            refusals.append(
                invalid(
                    f"toolkit_versions: no toolkit has a version {pins.everywhere}.", _one_of(every)
                )
            )
        for toolkit, version in pins.toolkits.items():
            if version is None:
                continue  # the newest is in force anyway
            known = None if self._hidden(toolkit) else self.store.toolkit(toolkit)
            if known is None:
                refusals.append(
                    invalid(
                        f"toolkit_versions: there is no toolkit {toolkit[:80]}.",
                        self._toolkit_like(toolkit, refusals),
                    )
                )
            elif version not in known:
                refusals.append(
                    invalid(
                        f"toolkit_versions: toolkit {toolkit} has no version {version}.",
                        _one_of(known),
                    )
                )

    def _check_toolkits(self, toolkits: Collection[str], refusals: list[Refusal]) -> None:
        for toolkit in toolkits:
            if self.store.toolkit(toolkit) is None:
                line = f"toolkit_slug: there is no toolkit {toolkit[:80]}."
                refusals.append(
                    Refusal(404, "toolkit_not_found", line, self._toolkit_like(toolkit, refusals))
                )
            elif self._hidden(toolkit):
                refusals.append(
                    _forbidden(f"toolkit_slug: this key's project may not use toolkit {toolkit}.")
                )

    def _check_auth_configs(self, ids: Collection[str], refusals: list[Refusal]) -> None:
        for id in ids:
            toolkit = self.store.auth_config(id)
            if toolkit is None:
                line = f"auth_config_ids: there is no auth config {id[:80]}."
                fix = self._auth_config_like(id, refusals)
                refusals.append(Refusal(404, "auth_config_not_found", line, fix))
            elif self._hidden(toolkit):
                refusals.append(
                    _forbidden(
                        f"auth_config_ids: {id} is for a toolkit that this key's project may "
                        "not use."
                    )
                )

    def session(self, id: str, project: str | None) -> bytes | Refusal:
        """What is answered for a session of this project (None: of any)."""
        session = self.store.session(id)
        if session is None:
            return Refusal(
                404,
                "session_not_found",
                f"session_id: there is no session {id}.",
                "Check the id with its owner.",
            )
        if project not in (None, session.project):
            return Refusal(
                403,
                "forbidden",
                f"session_id: {id} belongs to another project.",
                "Use a key of its owner.",
            )
        if any(self._hidden(toolkit) for toolkit in session.toolkits):
            return _forbidden(f"session_id: {id} allows toolkits that this key may not use.")
        return session.answer

    def _hidden(self, toolkit: str) -> bool:
        return self.visible is not None and toolkit not in self.visible

    def _all_versions(self) -> list[str]:
        if self.visible is None:
            return self.store.every_version()
        return sorted(
            {version for toolkit in self.visible for version in self.store.toolkit(toolkit) or ()}
        )

    def _toolkit_like(self, toolkit: str, before: Sequence[Refusal]) -> str:
        if len(before) >= _SUGGESTED:
            return _LOOK_UP
        return _like(toolkit, self._names_near("toolkit", toolkit)) or _LOOK_UP

    def _auth_config_like(self, id: str, before: Sequence[Refusal]) -> str:
        if len(before) >= _SUGGESTED:
            return _CHECK
        return _like(id, self._names_near("auth_config", id)) or _CHECK

    def _names_near(self, kind: str, name: str) -> Sequence[str]:
        """The visible toolkits or auth configs (`kind`) whose names sort nearest to this one."""
        if self.visible is None:
            return self.store.names_near(kind, name, _NEAR)
        names = self._visible_names[kind]
        place = bisect_left(names, name)
        return names[max(0, place - _NEAR) : place + _NEAR]

    @cached_property
    def _visible_names(self) -> dict[str, list[str]]:
        toolkits = {slug for slug in self.visible or () if self.store.toolkit(slug) is not None}
        configs = chain.from_iterable(map(self.store.auth_configs, toolkits))
        return {"toolkit": sorted(toolkits), "auth_config": sorted(configs)}


def _no_version(line: str, existing: Sequence[str]) -> Refusal:
    return Refusal(404, "tool_version_not_found", line, _one_of(existing))


def _forbidden(line: str) -> Refusal:
    return Refusal(
        403, "forbidden", line, "Ask for other toolkits, or use a key of a project that may."
    )


def _one_of(existing: Sequence[str]) -> str:
    """How to fix a version: the existing versions, oldest first, of many only the newest."""
    if not existing:
        return "Use latest."
    older = len(existing) - _MOST_VERSIONS
    end = f", or one of {older} older versions." if older > 0 else "."
    return f"Use latest, or one of {', '.join(existing[-_MOST_VERSIONS:])}{end}"


def _like(name: str, known: Sequence[str]) -> str:
    return _did_you_mean(names.nearest(name[: names.LONGEST], known, most=3))


def _did_you_mean(near: Sequence[str]) -> str:
    return f"Did you mean {' or '.join(near)}?" if near else ""
