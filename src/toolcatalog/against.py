"""Comparisons of a catalog: with an older revision, of two revisions, of two builds, of two
versions of a tool.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from toolcatalog import comparing, diffing, names, revisions, snapshot, tree, versions, written
from toolcatalog.comparing import Comparison, Entry, Key, Unread
from toolcatalog.errors import Finding, UsageError
from toolcatalog.lints import history
from toolcatalog.model import ToolVersion
from toolcatalog.revisions import Files
from toolcatalog.snapshot import Tool

_VERSION = re.compile(f"({names.TOOL_SLUG})(?:@({versions.PATTERN})?)?")
_SHORT = 12  # digits of a digest that people are shown
_APART = "say `SLUG@` or `SLUG@VERSION` for a tool, `./NAME` for the folder of a build, and `refs/heads/NAME` or a commit for a revision"


class Since(NamedTuple):
    """What history says of a catalog, the files that are not as they were (paths relative to the
    catalog), and all files as they were.
    """

    findings: list[Finding]
    changed: set[str]
    base: Files


# Revisions


def since(catalog: Path, revision: str, today: str) -> Since:
    """Hold a catalog against a revision, at the commit where it left that; `today` is YYYY-MM-DD.

    A finding of what was removed names a path that is not there any more. Raises UsageError, with
    what to do, where there is no git, no repository, no such revision, or only a part of the
    history.
    """
    before, after = _since(catalog, revision)
    old, new = written.sides(catalog, before, after)
    every = {**old.tools, **new.tools}
    known = history.History(
        comparison=comparing.compare(old, new, (before.title, after.title)),
        published=old.versions,
        deprecated={
            key: tool.deprecation
            for key, tool in every.items()
            if isinstance(tool, Tool) and tool.deprecation
        },
        broken={key for key, tool in new.tools.items() if isinstance(tool, Unread)},
        today=today,
    )
    return Since(history.check(known), written.changed(before, after), before)


def _since(catalog: Path, revision: str) -> tuple[Files, Files]:
    repository = revisions.repository(catalog)
    return revisions.at(repository, revisions.fork(repository, revision), revision), revisions.now(
        repository
    )


def of_revisions(catalog: Path, before: str, after: str | None = None) -> Comparison:
    """What differs between two revisions, or one and the working tree. Raises UsageError as `since`
    does, or where no catalog is.
    """
    repository = revisions.repository(catalog)
    old = revisions.at(repository, revisions.commit(repository, before), before)
    new = (
        revisions.now(repository)
        if after is None
        else revisions.at(repository, revisions.commit(repository, after), after)
    )
    if not old.named and not new.named:
        where = repository.inside.rstrip("/") or "the top of the repository"
        raise UsageError(
            f"There is no catalog at {where} in {old.title} or {new.title}: name its folder "
            "with --catalog."
        )
    return comparing.compare(*written.sides(catalog, old, new), (old.title, new.title))


# Builds


def of_builds(before: Path, after: Path) -> Comparison:
    """What differs between two builds, as they are served. Raises SnapshotError where one cannot be
    used.
    """
    from toolcatalog import served  # noqa: PLC0415 - what opens a build takes long to load

    folders = snapshot_of(before) or before, snapshot_of(after) or after
    sides = served.sides(*folders)
    return comparing.compare(*sides, (_built(before, folders[0]), _built(after, folders[1])))


def snapshot_of(folder: Path) -> Path | None:
    """The folder of the snapshot that a folder is, or that the build in it has in force; None where
    it is neither.
    """
    if (folder / snapshot.MANIFEST).is_file():
        return folder
    current = Path(os.path.realpath(folder / "current"))
    return current if (folder / "current").is_symlink() else None


def _built(named: Path, folder: Path) -> str:
    return f"{named} ({folder.name[:_SHORT]})" if named != folder else folder.name[:_SHORT]


# Versions


def of_versions(catalog: Path, before: Key, after: Key) -> Comparison:
    """What changed from one version of a tool to another. Raises UsageError where they are of two
    tools, or one of them has problems.
    """
    if before[:2] != after[:2]:
        raise UsageError(
            f"{before.slug} and {after.slug} are two tools: name two versions of one, as in "
            f"{before.slug}@{before.version}."
        )
    changes = tuple(diffing.changes(_tool(catalog, before), _tool(catalog, after)))
    what = Entry("new version", after.path, *after, before=before.version, changes=changes)
    is_same = not changes and before.version == after.version
    return Comparison(
        f"{before.slug}@{before.version}",
        f"{after.slug}@{after.version}",
        () if is_same else (what,),
    )


def version_of(catalog: Path, said: str) -> Key | None:
    """The tool version that `SLUG@VERSION`, or `SLUG@` or `SLUG` for the newest, names; None where
    there is no such tool.

    Raises UsageError where the tool is there and the version is not.
    """
    found = _VERSION.fullmatch(said)
    if not found or not names.fits(names.TOOL_SLUG, found[1]):
        return None
    folder = next(iter(sorted(catalog.glob(f"toolkits/*/{found[1]}"))), None)
    known = _known(folder) if folder else []
    if not folder or not known:
        return None
    if found[2] and found[2] not in known:
        raise UsageError(f"{found[1]} has no version {found[2]}: it has {', '.join(known)}.")
    return Key(folder.parent.name, found[1], found[2] or known[-1])


def _known(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem))


def _tool(catalog: Path, key: Key) -> Tool:
    record = written.record_of(catalog, key.path, tree.content(catalog, key.path))
    if not isinstance(record, ToolVersion):
        why = record.why if isinstance(record, Unread) else "no tool"
        raise UsageError(
            f"{catalog / key.path} cannot be compared ({why}): mend what `toolcatalog check` "
            "says of it."
        )
    path = f"toolkits/{key.toolkit}/toolkit.yaml"
    return written.tool_of(record, written.record_of(catalog, path, tree.content(catalog, path)))


# Whatever is named


def compare(catalog: Path, before: str, after: str | None = None) -> Comparison:
    """What differs between two things that were named: two versions of a tool, two git revisions or
    two builds.

    Without `after`: from a version to the newest (to that from the one before it), and from a
    revision to the working tree. Raises UsageError where they are not of one sort, or of more than
    one, and says what was tried; and whatever the comparison raises.
    """
    old, new = (
        _Meaning.of(catalog, before),
        _Meaning.of(catalog, after) if after is not None else None,
    )
    sorts = [sort for sort in old.sorts if new is None or sort in new.sorts]
    if new is None and sorts == ["build"]:
        raise UsageError(f"{before} is a build: name the build to compare it with, too.")
    if len(sorts) > 1:
        raise UsageError(f"{old.told(sorts)}: {_APART}.")
    if not sorts:
        raise UsageError(_apart(old, new))
    if old.version and sorts == ["version"]:
        return of_versions(
            catalog,
            *(
                (old.version, new.version)
                if new and new.version
                else _to_newest(catalog, old.version)
            ),
        )
    if sorts == ["build"]:
        return of_builds(Path(before), Path(after or ""))
    return of_revisions(catalog, before, after)


def _to_newest(catalog: Path, key: Key) -> tuple[Key, Key]:
    """A version and the newest; the newest and the one before it."""
    known = _known(catalog / "toolkits" / key.toolkit / key.slug)
    if len(known) == 1:
        raise UsageError(
            f"{key.slug} has one version only, {key.version}: there is none to compare it with."
        )
    return key._replace(version=min(key.version, known[-2])), key._replace(version=known[-1])


class _Meaning(NamedTuple):
    """What a word may mean here, and why it is none of the rest."""

    said: str
    version: Key | None
    sorts: list[str]
    refused: str

    @classmethod
    def of(cls, catalog: Path, said: str) -> "_Meaning":
        version, refused = version_of(catalog, said), ""
        sorts = [
            *(["version"] if version else []),
            *(["build"] if said and snapshot_of(Path(said)) else []),
        ]
        try:
            revisions.commit(revisions.repository(catalog), said)
            sorts.append("revision")
        except UsageError as error:
            refused = str(error)
        return cls(said, version, sorts, refused)

    def told(self, sorts: list[str]) -> str:
        """What it is, in words."""
        words = {"version": "a tool", "build": "a build", "revision": "a git revision"}
        return f"{self.said} is {' and '.join(words[sort] for sort in sorts)}"


def _apart(old: _Meaning, new: _Meaning | None) -> str:
    """Why two words cannot be compared."""
    for one in (old, new):
        if one and not one.sorts:
            tried = f"no version of a tool (as SLUG@VERSION), no folder of a build, and no git revision. {one.refused}"
            return f"{one.said or 'An empty name'} is nothing that can be compared: {tried}"
    assert new is not None
    return f"{old.told(old.sorts)}, {new.told(new.sorts)}: name two of one sort."
