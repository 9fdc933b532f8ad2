"""Comparison of two sides of a catalog, tool by tool, breaking changes first.

A side has what differs and what is needed to tell how; where that comes from, a revision of git or
a build, is not known here. What could not be read on either side is an entry like any other,
because a comparison that could not be made is not the same as no change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from toolcatalog.diff import tool_changes
from toolcatalog.diff.change import KINDS, Change, describe_value_change
from toolcatalog.snapshot.format import Tool

Status = Literal[
    "not compared",
    "removed",
    "version removed",
    "changed",
    "new version",
    "added",
    "deprecated",
    "deprecation",
]
STATUSES: tuple[Status, ...] = (
    "not compared",
    "removed",
    "version removed",
    "changed",
    "new version",
    "added",
    "deprecated",
    "deprecation",
)


class ToolVersionKey(NamedTuple):
    """A version of a tool."""

    toolkit: str
    slug: str
    version: str

    @property
    def path(self) -> str:
        """Where its file lies."""
        return f"toolkits/{self.toolkit}/{self.slug}/{self.version}.yaml"


class Unreadable(NamedTuple):
    """Why something that is there could not be read."""

    reason: str


_NO_AUTH_CHANGES = {
    True: "is true now: tools that do not say otherwise need no authentication any more",
    False: "is false now: tools that do not say otherwise need authentication",
}

Versions = Mapping[tuple[str, str], Sequence[str]]  # toolkit and slug to all versions, oldest first
FileFields = Mapping[str, Any]  # the fields of a file that is not a tool's


class Side(NamedTuple):
    """One side: all versions of the tools that differ, those of their versions and the other files,
    by path, that differ.

    Beside them, on one side only, the versions that new ones are compared with. What is not there
    on this side is left out.
    """

    versions: Versions
    tools: Mapping[ToolVersionKey, Tool | Unreadable]
    files: Mapping[str, FileFields | Unreadable]


class Entry(NamedTuple):
    """One thing that differs. `slug` is empty for a toolkit, and `toolkit` too for a file of no
    toolkit.

    `before` is the version that a new one is compared with, `why` says why something was not
    compared, `sunset` is the day from which something removed was announced to be gone.
    """

    status: Status
    path: str
    toolkit: str = ""
    slug: str = ""
    version: str = ""
    compared_with: str = ""
    changes: tuple[Change, ...] = ()
    reason: str = ""
    sunset: str = ""

    @property
    def kind(self) -> str:
        """The worst kind of its changes; `unknown` where nothing is known of them."""
        if self.status == "not compared":
            return "unknown"
        return min((change.kind for change in self.changes), key=KINDS.index, default="text")


class Comparison(NamedTuple):
    """What differs, the worst first; `before` and `after` say in words what was compared."""

    before: str
    after: str
    entries: tuple[Entry, ...]

    @property
    def status_counts(self) -> dict[str, int]:
        """How many entries there are of each sort."""
        counted = Counter(entry.status for entry in self.entries)
        return {what: counted[what] for what in STATUSES}

    @property
    def kind_counts(self) -> dict[str, int]:
        """How many changes there are of each kind."""
        counted = Counter(change.kind for entry in self.entries for change in entry.changes)
        return {kind: counted[kind] for kind in KINDS}

    @property
    def by_toolkit(self) -> dict[str, list[Entry]]:
        """The entries by toolkit, the toolkit with the worst one first; those of no toolkit under
        an empty name.
        """
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.toolkit, []).append(entry)
        return found


def compare_sides(
    before: Side,
    after: Side,
    titles: tuple[str, str] = ("before", "after"),
    extra_entries: Iterable[Entry] = (),
) -> Comparison:
    """What differs between two sides, and `more` that is known already."""
    tools = chain.from_iterable(
        _compare_tool(*tool, before, after)
        for tool in sorted({*before.versions} | {*after.versions})
    )
    files = (
        _compare_file(path, before.files.get(path), after.files.get(path))
        for path in sorted({*before.files} | {*after.files})
    )
    return Comparison(
        *titles,
        tuple(
            sorted([*tools, *(entry for entry in files if entry), *extra_entries], key=_sort_key)
        ),
    )


def predecessors(before: Versions, after: Versions) -> dict[ToolVersionKey, ToolVersionKey]:
    """Each new version of a tool that was there, and the version that it is compared with: the one
    before it, on whichever side.
    """
    found = {}
    for (toolkit, slug), old in before.items():
        new = after.get((toolkit, slug), ())
        for version in {*new} - {*old}:
            if earlier := [one for one in (*old, *new) if one < version]:
                found[ToolVersionKey(toolkit, slug, version)] = ToolVersionKey(
                    toolkit, slug, max(earlier)
                )
    return found


def _sort_key(entry: Entry) -> tuple[int, str, int, str, str, str]:
    kinds = ("unknown", *KINDS)
    return (
        kinds.index(entry.kind),
        entry.toolkit,
        STATUSES.index(entry.status),
        entry.slug,
        entry.version,
        entry.path,
    )


# Tools


def _compare_tool(toolkit: str, slug: str, before: Side, after: Side) -> Iterator[Entry]:
    old, new = before.versions.get((toolkit, slug), ()), after.versions.get((toolkit, slug), ())
    if not new:
        newest = ToolVersionKey(toolkit, slug, old[-1])
        yield _removal_entry("removed", newest, before.tools.get(newest), "tool", "was removed")
    elif not old:
        *older, newest = (ToolVersionKey(toolkit, slug, version) for version in new)
        yield _make_entry(
            "added", newest, after.tools.get(newest), (Change("additive", "tool", "is new"),)
        )
        yield from (
            _make_entry("added", key, tool, ())
            for key in older
            if isinstance(tool := after.tools.get(key), Unreadable)
        )
    else:
        yield from _compare_versions(toolkit, slug, before, after)


def _compare_versions(toolkit: str, slug: str, before: Side, after: Side) -> Iterator[Entry]:
    old, new = ({*side.versions[toolkit, slug]} for side in (before, after))
    reference = predecessors({(toolkit, slug): sorted(old)}, {(toolkit, slug): sorted(new)})
    for version in sorted(old | new):
        key = ToolVersionKey(toolkit, slug, version)
        if version not in new:
            yield _removal_entry(
                "version removed", key, before.tools.get(key), "version", "was removed"
            )
        elif version not in old:
            yield _new_version_entry(key, reference.get(key), before, after)
        elif key in before.tools and key in after.tools:
            yield from _compare_same_version(key, before.tools[key], after.tools[key])


def _removal_entry(
    status: Status, key: ToolVersionKey, tool: Tool | Unreadable | None, place: str, clause: str
) -> Entry:
    """Something removed. That it cannot be read any more matters to nobody but to who asks whether
    its removal was announced.
    """
    deprecation = tool.deprecation if isinstance(tool, Tool) else None
    sunset = (deprecation or {}).get("sunset", "")
    said = (
        f", announced for {sunset}"
        if sunset
        else ", and was deprecated without a sunset"
        if deprecation is not None
        else ""
    )
    return Entry(
        status,
        key.path,
        *key,
        changes=(Change("breaking", place, f"{clause}{said}"),),
        sunset=sunset,
    )


def _make_entry(
    status: Status,
    key: ToolVersionKey,
    tool: Tool | Unreadable | None,
    changes: tuple[Change, ...],
    before: str = "",
) -> Entry:
    if isinstance(tool, Unreadable):
        return Entry("not compared", key.path, *key, reason=tool.reason)
    return Entry(status, key.path, *key, compared_with=before, changes=changes)


def _new_version_entry(
    key: ToolVersionKey, reference: ToolVersionKey | None, before: Side, after: Side
) -> Entry:
    tool = after.tools.get(key)
    if reference is None:
        return _make_entry(
            "new version",
            key,
            tool,
            (Change("additive", "version", "is new, and older than all others"),),
        )
    old = after.tools.get(reference) or before.tools.get(reference)
    if isinstance(tool, Tool) and isinstance(old, Unreadable):
        return Entry(
            "not compared",
            key.path,
            *key,
            compared_with=reference.version,
            reason=f"{reference.version}, before it: {old.reason}",
        )
    changes = (
        tool_changes.compare_tools(old, tool)
        if isinstance(tool, Tool) and isinstance(old, Tool)
        else ()
    )
    return _make_entry("new version", key, tool, tuple(changes), reference.version)


def _compare_same_version(
    key: ToolVersionKey, old: Tool | Unreadable, new: Tool | Unreadable
) -> Iterator[Entry]:
    """What changed under a version that was published already. Deprecation is an entry of its own:
    only that may change.
    """
    if isinstance(old, Unreadable) or isinstance(new, Unreadable):
        yield Entry("not compared", key.path, *key, reason=_unreadable_reasons(old, new))
        return
    changes = tool_changes.compare_tools(old, new)
    said = tuple(change for change in changes if change.place == "deprecation")
    if other := tuple(change for change in changes if change.place != "deprecation"):
        yield Entry("changed", key.path, *key, changes=other)
    if said:
        is_new = old.deprecation is None
        yield Entry("deprecated" if is_new else "deprecation", key.path, *key, changes=said)


def _unreadable_reasons(old: object, new: object) -> str:
    sides = ((old, "before"), (new, "after"))
    return "; ".join(f"{when}: {one.reason}" for one, when in sides if isinstance(one, Unreadable))


# Toolkits and other files


def _compare_file(
    path: str, old: FileFields | Unreadable | None, new: FileFields | Unreadable | None
) -> Entry | None:
    toolkit = path.split("/")[1] if path.startswith("toolkits/") else ""
    if isinstance(new, Unreadable) or (isinstance(old, Unreadable) and new is not None):
        return Entry("not compared", path, toolkit, reason=_unreadable_reasons(old, new))
    whole = "toolkit" if toolkit else "file"
    if new is None:
        return Entry("removed", path, toolkit, changes=(Change("breaking", whole, "was removed"),))
    if old is None:
        return Entry("added", path, toolkit, changes=(Change("additive", whole, "is new"),))
    assert not isinstance(old, Unreadable)
    changes = tuple(_compare_fields(path, old, new))
    return Entry("changed", path, toolkit, changes=changes) if changes else None


def _identity(value: Any) -> Any:
    return value


def _compare_fields(path: str, old: FileFields, new: FileFields) -> Iterator[Change]:
    """Sessions and auth configs say what may be used; nothing else is known of them here. Meta
    tools are not looked into; the order of their parameters is served, so it counts.
    """
    kind = path.partition("/")[0]
    form = repr if kind == "meta_tools" else _identity
    keys = (key for key in old.keys() | new.keys() if form(old.get(key)) != form(new.get(key)))
    for key in sorted(keys):
        if kind in ("sessions", "auth_configs"):
            yield Change("scope", key, "is another: it says what may be used")
        elif kind == "meta_tools" and not path.endswith("/toolkit.yaml"):
            yield Change("breaking", key, "changed in a way that is not looked into")
        elif key == "no_auth":
            yield Change(
                "additive" if new[key] else "breaking", key, _NO_AUTH_CHANGES[bool(new[key])]
            )
        else:
            yield Change("text", key, describe_value_change(old.get(key), new.get(key)))
