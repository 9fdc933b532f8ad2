"""Two sides of a catalog, older and newer, to what differs between them: tool by tool, the worst
first. Pure.

A side has what differs and what is needed to tell how; where that comes from, a revision of git or
a build, is not known here. What could not be read on either side is an entry like any other,
because a comparison that could not be made is not the same as no change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from toolcatalog import diffing
from toolcatalog.snapshot import Tool
from toolcatalog.wording import KINDS, Change, turned

What = Literal[
    "not compared",
    "removed",
    "version removed",
    "changed",
    "new version",
    "added",
    "deprecated",
    "deprecation",
]
WHATS: tuple[What, ...] = (
    "not compared",
    "removed",
    "version removed",
    "changed",
    "new version",
    "added",
    "deprecated",
    "deprecation",
)


class Key(NamedTuple):
    """A version of a tool."""

    toolkit: str
    slug: str
    version: str

    @property
    def path(self) -> str:
        """Where its file lies."""
        return f"toolkits/{self.toolkit}/{self.slug}/{self.version}.yaml"


class Unread(NamedTuple):
    """Why something that is there could not be read."""

    why: str


_AUTH = {
    True: "is true now: tools that do not say otherwise need no authentication any more",
    False: "is false now: tools that do not say otherwise need authentication",
}

Versions = Mapping[tuple[str, str], Sequence[str]]  # toolkit and slug to all versions, oldest first
Facts = Mapping[str, Any]  # the fields of a file that is not a tool's


class Side(NamedTuple):
    """One side: all versions of the tools that differ, those of their versions and the other files,
    by path, that differ.

    Beside them, on one side only, the versions that new ones are compared with. What is not there
    on this side is left out.
    """

    versions: Versions
    tools: Mapping[Key, Tool | Unread]
    files: Mapping[str, Facts | Unread]


class Entry(NamedTuple):
    """One thing that differs. `slug` is empty for a toolkit, and `toolkit` too for a file of no
    toolkit.

    `before` is the version that a new one is compared with, `why` says why something was not
    compared, `sunset` is the day from which something removed was announced to be gone.
    """

    what: What
    path: str
    toolkit: str = ""
    slug: str = ""
    version: str = ""
    before: str = ""
    changes: tuple[Change, ...] = ()
    why: str = ""
    sunset: str = ""

    @property
    def kind(self) -> str:
        """The worst kind of its changes; `unknown` where nothing is known of them."""
        if self.what == "not compared":
            return "unknown"
        return min((change.kind for change in self.changes), key=KINDS.index, default="text")


class Comparison(NamedTuple):
    """What differs, the worst first; `before` and `after` say in words what was compared."""

    before: str
    after: str
    entries: tuple[Entry, ...]

    @property
    def whats(self) -> dict[str, int]:
        """How many entries there are of each sort."""
        counted = Counter(entry.what for entry in self.entries)
        return {what: counted[what] for what in WHATS}

    @property
    def kinds(self) -> dict[str, int]:
        """How many changes there are of each kind."""
        counted = Counter(change.kind for entry in self.entries for change in entry.changes)
        return {kind: counted[kind] for kind in KINDS}

    @property
    def toolkits(self) -> dict[str, list[Entry]]:
        """The entries by toolkit, the toolkit with the worst one first; those of no toolkit under
        an empty name.
        """
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.toolkit, []).append(entry)
        return found


def compare(
    before: Side,
    after: Side,
    titles: tuple[str, str] = ("before", "after"),
    more: Iterable[Entry] = (),
) -> Comparison:
    """What differs between two sides, and `more` that is known already."""
    tools = chain.from_iterable(
        _tool(*tool, before, after) for tool in sorted({*before.versions} | {*after.versions})
    )
    files = (
        _file(path, before.files.get(path), after.files.get(path))
        for path in sorted({*before.files} | {*after.files})
    )
    return Comparison(
        *titles, tuple(sorted([*tools, *(entry for entry in files if entry), *more], key=_rank))
    )


def predecessors(before: Versions, after: Versions) -> dict[Key, Key]:
    """Each new version of a tool that was there, and the version that it is compared with: the one
    before it, on whichever side.
    """
    found = {}
    for (toolkit, slug), old in before.items():
        new = after.get((toolkit, slug), ())
        for version in {*new} - {*old}:
            if earlier := [one for one in (*old, *new) if one < version]:
                found[Key(toolkit, slug, version)] = Key(toolkit, slug, max(earlier))
    return found


def _rank(entry: Entry) -> tuple[int, str, int, str, str, str]:
    kinds = ("unknown", *KINDS)
    return (
        kinds.index(entry.kind),
        entry.toolkit,
        WHATS.index(entry.what),
        entry.slug,
        entry.version,
        entry.path,
    )


# Tools


def _tool(toolkit: str, slug: str, before: Side, after: Side) -> Iterator[Entry]:
    old, new = before.versions.get((toolkit, slug), ()), after.versions.get((toolkit, slug), ())
    if not new:
        newest = Key(toolkit, slug, old[-1])
        yield _gone("removed", newest, before.tools.get(newest), "tool", "was removed")
    elif not old:
        *older, newest = (Key(toolkit, slug, version) for version in new)
        yield _found(
            "added", newest, after.tools.get(newest), (Change("additive", "tool", "is new"),)
        )
        yield from (
            _found("added", key, tool, ())
            for key in older
            if isinstance(tool := after.tools.get(key), Unread)
        )
    else:
        yield from _versions(toolkit, slug, before, after)


def _versions(toolkit: str, slug: str, before: Side, after: Side) -> Iterator[Entry]:
    old, new = ({*side.versions[toolkit, slug]} for side in (before, after))
    reference = predecessors({(toolkit, slug): sorted(old)}, {(toolkit, slug): sorted(new)})
    for version in sorted(old | new):
        key = Key(toolkit, slug, version)
        if version not in new:
            yield _gone("version removed", key, before.tools.get(key), "version", "was removed")
        elif version not in old:
            yield _new_version(key, reference.get(key), before, after)
        elif key in before.tools and key in after.tools:
            yield from _same_version(key, before.tools[key], after.tools[key])


def _gone(what: What, key: Key, tool: Tool | Unread | None, place: str, how: str) -> Entry:
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
        what, key.path, *key, changes=(Change("breaking", place, f"{how}{said}"),), sunset=sunset
    )


def _found(
    what: What, key: Key, tool: Tool | Unread | None, changes: tuple[Change, ...], before: str = ""
) -> Entry:
    if isinstance(tool, Unread):
        return Entry("not compared", key.path, *key, why=tool.why)
    return Entry(what, key.path, *key, before=before, changes=changes)


def _new_version(key: Key, reference: Key | None, before: Side, after: Side) -> Entry:
    tool = after.tools.get(key)
    if reference is None:
        return _found(
            "new version",
            key,
            tool,
            (Change("additive", "version", "is new, and older than all others"),),
        )
    old = after.tools.get(reference) or before.tools.get(reference)
    if isinstance(tool, Tool) and isinstance(old, Unread):
        return Entry(
            "not compared",
            key.path,
            *key,
            before=reference.version,
            why=f"{reference.version}, before it: {old.why}",
        )
    changes = diffing.changes(old, tool) if isinstance(tool, Tool) and isinstance(old, Tool) else ()
    return _found("new version", key, tool, tuple(changes), reference.version)


def _same_version(key: Key, old: Tool | Unread, new: Tool | Unread) -> Iterator[Entry]:
    """What changed under a version that was published already. Deprecation is an entry of its own:
    only that may change.
    """
    if isinstance(old, Unread) or isinstance(new, Unread):
        yield Entry("not compared", key.path, *key, why=_whys(old, new))
        return
    changes = diffing.changes(old, new)
    said = tuple(change for change in changes if change.place == "deprecation")
    if other := tuple(change for change in changes if change.place != "deprecation"):
        yield Entry("changed", key.path, *key, changes=other)
    if said:
        is_new = old.deprecation is None
        yield Entry("deprecated" if is_new else "deprecation", key.path, *key, changes=said)


def _whys(old: object, new: object) -> str:
    sides = ((old, "before"), (new, "after"))
    return "; ".join(f"{when}: {one.why}" for one, when in sides if isinstance(one, Unread))


# Toolkits and other files


def _file(path: str, old: Facts | Unread | None, new: Facts | Unread | None) -> Entry | None:
    toolkit = path.split("/")[1] if path.startswith("toolkits/") else ""
    if isinstance(new, Unread) or (isinstance(old, Unread) and new is not None):
        return Entry("not compared", path, toolkit, why=_whys(old, new))
    whole = "toolkit" if toolkit else "file"
    if new is None:
        return Entry("removed", path, toolkit, changes=(Change("breaking", whole, "was removed"),))
    if old is None:
        return Entry("added", path, toolkit, changes=(Change("additive", whole, "is new"),))
    assert not isinstance(old, Unread)
    changes = tuple(_fields(path, old, new))
    return Entry("changed", path, toolkit, changes=changes) if changes else None


def _as_it_is(value: Any) -> Any:
    return value


def _fields(path: str, old: Facts, new: Facts) -> Iterator[Change]:
    """Sessions and auth configs say what may be used; nothing else is known of them here. Meta
    tools are not looked into; the order of their parameters is served, so it counts.
    """
    kind = path.partition("/")[0]
    form = repr if kind == "meta_tools" else _as_it_is
    keys = (key for key in old.keys() | new.keys() if form(old.get(key)) != form(new.get(key)))
    for key in sorted(keys):
        if kind in ("sessions", "auth_configs"):
            yield Change("scope", key, "is another: it says what may be used")
        elif kind == "meta_tools" and not path.endswith("/toolkit.yaml"):
            yield Change("breaking", key, "changed in a way that is not looked into")
        elif key == "no_auth":
            yield Change("additive" if new[key] else "breaking", key, _AUTH[bool(new[key])])
        else:
            yield Change("text", key, turned(old.get(key), new.get(key)))
