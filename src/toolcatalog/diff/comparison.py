"""Comparison of two sides of a catalog, tool by tool, breaking changes first.

A side contains what differs and what is needed to compare it. This module does not know whether it
comes from a git revision or a build. Anything that could not be read on either side gets an entry,
because a failed comparison is not the same as no change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple, get_args

from toolcatalog.diff import tool_changes
from toolcatalog.diff.change import KINDS, Change, Kind, describe_value_change
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
STATUSES: tuple[Status, ...] = get_args(Status)


class ToolVersionKey(NamedTuple):
    """The key of a tool version."""

    toolkit: str
    slug: str
    version: str

    @property
    def path(self) -> str:
        """The path of its file in the catalog."""
        return f"toolkits/{self.toolkit}/{self.slug}/{self.version}.yaml"


class Unreadable(NamedTuple):
    """The reason why something that exists could not be read."""

    reason: str


_NO_AUTH_CHANGES = {
    True: "is true now: tools that do not say otherwise need no authentication any more",
    False: "is false now: tools that do not say otherwise need authentication",
}

Versions = Mapping[tuple[str, str], Sequence[str]]  # toolkit and slug to all versions, oldest first
FileFields = Mapping[str, Any]  # the fields of a file that is not a tool version


class Side(NamedTuple):
    """One side: all versions of the tools that differ, and the content that differs.

    `tools` are the tool versions and `files` the other files, by path, that differ. One of the
    sides also contains the versions that new ones are compared with. What does not exist on this
    side is left out.
    """

    versions: Versions
    tools: Mapping[ToolVersionKey, Tool | Unreadable]
    files: Mapping[str, FileFields | Unreadable]


class Entry(NamedTuple):
    """One difference.

    `slug` is empty for a toolkit, and `toolkit` too for a file outside all toolkits.
    `compared_with` is the version that a new one is compared with, `reason` says why something was
    not compared. `sunset` is the day announced for the removal of something that was removed, or
    that is newly announced for a meta tool.
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
        """The most severe kind of its changes; `unknown` if nothing could be compared."""
        if self.status == "not compared":
            return "unknown"
        return min((change.kind for change in self.changes), key=KINDS.index, default="text")


class Comparison(NamedTuple):
    """All differences, the most severe first; `before` and `after` are titles of the two sides."""

    old_title: str
    new_title: str
    entries: tuple[Entry, ...]

    @property
    def status_counts(self) -> dict[str, int]:
        """The number of entries of each status."""
        counter = Counter(entry.status for entry in self.entries)
        return {status: counter[status] for status in STATUSES}

    @property
    def kind_counts(self) -> dict[str, int]:
        """The number of changes of each kind."""
        counter = Counter(change.kind for entry in self.entries for change in entry.changes)
        return {kind: counter[kind] for kind in KINDS}

    @property
    def by_toolkit(self) -> dict[str, list[Entry]]:
        """The entries by toolkit, the toolkit with the most severe entry first.

        Entries outside all toolkits are under an empty name.
        """
        entries: dict[str, list[Entry]] = {}
        for entry in self.entries:
            entries.setdefault(entry.toolkit, []).append(entry)
        return entries


def compare_sides(
    old: Side,
    new: Side,
    titles: tuple[str, str] = ("before", "after"),
    extra_entries: Iterable[Entry] = (),
) -> Comparison:
    """Compare two sides, and add `extra_entries` that are already known."""
    tools = chain.from_iterable(
        _compare_tool(*tool, old, new) for tool in sorted({*old.versions} | {*new.versions})
    )
    files = (
        _compare_file(path, old.files.get(path), new.files.get(path))
        for path in sorted({*old.files} | {*new.files})
    )
    return Comparison(
        *titles,
        tuple(
            sorted([*tools, *(entry for entry in files if entry), *extra_entries], key=_sort_key)
        ),
    )


def predecessors(
    old_versions: Versions, new_versions: Versions
) -> dict[ToolVersionKey, ToolVersionKey]:
    """Return each new version of an existing tool with the version to compare it with.

    That is the version directly before it, on either side.
    """
    result = {}
    for (toolkit, slug), old in old_versions.items():
        new = new_versions.get((toolkit, slug), ())
        old_set = {*old}
        for previous, version in pairwise(sorted({*old, *new})):
            if version not in old_set:
                result[ToolVersionKey(toolkit, slug, version)] = ToolVersionKey(
                    toolkit, slug, previous
                )
    return result


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


def _compare_tool(toolkit: str, slug: str, old_side: Side, new_side: Side) -> Iterator[Entry]:
    old, new = (
        old_side.versions.get((toolkit, slug), ()),
        new_side.versions.get((toolkit, slug), ()),
    )
    if not new:
        newest = ToolVersionKey(toolkit, slug, old[-1])
        yield _removal_entry("removed", newest, old_side.tools.get(newest), "tool", "was removed")
    elif not old:
        *older, newest = (ToolVersionKey(toolkit, slug, version) for version in new)
        yield _make_entry(
            "added", newest, new_side.tools.get(newest), (Change("additive", "tool", "is new"),)
        )
        for key in older:
            tool = new_side.tools.get(key)
            if isinstance(tool, Unreadable):
                yield _make_entry("added", key, tool, ())
    else:
        yield from _compare_versions(toolkit, slug, old_side, new_side)


def _compare_versions(toolkit: str, slug: str, old_side: Side, new_side: Side) -> Iterator[Entry]:
    old, new = ({*side.versions[toolkit, slug]} for side in (old_side, new_side))
    reference = predecessors({(toolkit, slug): sorted(old)}, {(toolkit, slug): sorted(new)})
    for version in sorted(old | new):
        key = ToolVersionKey(toolkit, slug, version)
        if version not in new:
            yield _removal_entry(
                "version removed", key, old_side.tools.get(key), "version", "was removed"
            )
        elif version not in old:
            yield _new_version_entry(key, reference.get(key), old_side, new_side)
        elif key in old_side.tools and key in new_side.tools:
            yield from _compare_same_version(key, old_side.tools[key], new_side.tools[key])


def _removal_entry(
    status: Status, key: ToolVersionKey, tool: Tool | Unreadable | None, location: str, clause: str
) -> Entry:
    """Return the entry of something removed.

    If it cannot be read on the old side, the entry only lacks the announced removal date.
    """
    deprecation = tool.deprecation if isinstance(tool, Tool) else None
    sunset = (deprecation or {}).get("sunset", "")
    announcement = (
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
        changes=(Change("breaking", location, f"{clause}{announcement}"),),
        sunset=sunset,
    )


def _make_entry(
    status: Status,
    key: ToolVersionKey,
    tool: Tool | Unreadable | None,
    changes: tuple[Change, ...],
    compared_with: str = "",
) -> Entry:
    if isinstance(tool, Unreadable):
        return Entry("not compared", key.path, *key, reason=tool.reason)
    return Entry(status, key.path, *key, compared_with=compared_with, changes=changes)


def _new_version_entry(
    key: ToolVersionKey, reference: ToolVersionKey | None, old_side: Side, new_side: Side
) -> Entry:
    tool = new_side.tools.get(key)
    if reference is None:
        return _make_entry(
            "new version",
            key,
            tool,
            (Change("additive", "version", "is new, and older than all others"),),
        )
    old = new_side.tools.get(reference) or old_side.tools.get(reference)
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
    """Yield what changed within a version that was already published.

    Deprecation has its own entry, because it is the only field that may change.
    """
    if isinstance(old, Unreadable) or isinstance(new, Unreadable):
        yield Entry("not compared", key.path, *key, reason=_unreadable_reasons(old, new))
        return
    changes = tool_changes.compare_tools(old, new)
    deprecation_changes = tuple(change for change in changes if change.location == "deprecation")
    if other_changes := tuple(change for change in changes if change.location != "deprecation"):
        yield Entry("changed", key.path, *key, changes=other_changes)
    if deprecation_changes:
        is_new = old.deprecation is None
        yield Entry(
            "deprecated" if is_new else "deprecation", key.path, *key, changes=deprecation_changes
        )


def _unreadable_reasons(old: object, new: object) -> str:
    labeled_sides = ((old, "before"), (new, "after"))
    return "; ".join(
        f"{when}: {side.reason}" for side, when in labeled_sides if isinstance(side, Unreadable)
    )


# Toolkits and other files


def is_meta_tool(path: str) -> bool:
    """Return whether this is the path of a version of a meta tool."""
    return path.startswith("meta_tools/") and path.count("/") > 1


def _compare_file(
    path: str, old: FileFields | Unreadable | None, new: FileFields | Unreadable | None
) -> Entry | None:
    toolkit = path.split("/")[1] if path.startswith("toolkits/") else ""
    if isinstance(new, Unreadable) or (isinstance(old, Unreadable) and new is not None):
        return Entry("not compared", path, toolkit, reason=_unreadable_reasons(old, new))
    subject = "toolkit" if toolkit else "file"
    if new is None:
        removal = Change("breaking", subject, "was removed")
        return Entry("removed", path, toolkit, changes=(removal,), sunset=_announced_end(old))
    if old is None:
        addition = Change("additive", subject, "is new")
        return Entry("added", path, toolkit, changes=(addition,), sunset=_announced_end(new))
    assert not isinstance(old, Unreadable)
    changes = tuple(_compare_fields(path, old, new))
    sunset = _announced_end(new)
    sunset = "" if sunset == _announced_end(old) else sunset
    return Entry("changed", path, toolkit, changes=changes, sunset=sunset) if changes else None


def _announced_end(fields: FileFields | Unreadable | None) -> str:
    """Return the `sunset` of a meta tool; empty for any other file."""
    template = {} if isinstance(fields, Unreadable) else (fields or {}).get("template", {})
    sunset: str = (template.get("deprecation") or {}).get("sunset", "")
    return sunset


def _identity(value: Any) -> Any:
    return value


def _compare_fields(path: str, old: FileFields, new: FileFields) -> Iterator[Change]:
    """Yield the changed fields of a file that is not a tool version.

    Sessions and auth configs are only known to define what may be used. Meta tools are not
    analyzed; the order of their parameters is served, so it matters.
    """
    kind = path.partition("/")[0]
    old, new = (fields.get("template", fields) for fields in (old, new))
    normalize = repr if kind == "meta_tools" else _identity
    keys = (
        key for key in old.keys() | new.keys() if normalize(old.get(key)) != normalize(new.get(key))
    )
    for key in sorted(keys):
        if kind in ("sessions", "auth_configs"):
            yield Change("scope", key, "is another: it says what may be used")
        elif is_meta_tool(path) and key != "deprecation":
            yield Change("breaking", key, "changed in a way that cannot be compared")
        elif key == "no_auth":
            yield Change(
                "additive" if new[key] else "breaking", key, _NO_AUTH_CHANGES[bool(new[key])]
            )
        elif key == "mcp_server" and old.get(key) and new.get(key):
            yield from _compare_servers(key, old[key], new[key])
        else:
            yield Change("text", key, describe_value_change(old.get(key), new.get(key)))


def _compare_servers(
    location: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Change]:
    """Yield the changed fields of an MCP server; all but versions say which server is used."""
    for key in sorted({*old, *new}):
        old_value, new_value = old.get(key), new.get(key)
        if isinstance(old_value, Mapping) and isinstance(new_value, Mapping):
            yield from _compare_servers(f"{location}.{key}", old_value, new_value)
        elif old_value != new_value:
            kind: Kind = "text" if key == "version" else "scope"
            yield Change(kind, f"{location}.{key}", describe_value_change(old_value, new_value))
