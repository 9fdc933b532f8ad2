"""Comparison targets: revisions, builds, versions, or a catalog and its history."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from toolcatalog import names, versions
from toolcatalog.catalog import folder
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.diff import comparison, tool_changes
from toolcatalog.diff.comparison import Comparison, Entry, ToolVersionKey, Unreadable
from toolcatalog.errors import Finding, UsageError
from toolcatalog.history import from_files, git, rules
from toolcatalog.history.git import FileSet
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Tool

_VERSION = re.compile(f"({names.TOOL_SLUG})(?:@({versions.PATTERN})?)?")
_SHORT_DIGEST_LENGTH = 12  # displayed digits of a digest
_AMBIGUITY_HINT = "say `SLUG@` or `SLUG@VERSION` for a tool, `./NAME` for the folder of a build, and `refs/heads/NAME` or a commit for a revision"


class RevisionCheck(NamedTuple):
    """The findings of the history rules, the changed paths, and all files of the base.

    Paths are relative to the catalog.
    """

    findings: list[Finding]
    changed_paths: set[str]
    base: FileSet


# Revisions


def check_against_revision(catalog: Path, revision: str, today: str) -> RevisionCheck:
    """Check a catalog against the commit where it branched off a revision.

    `today` is YYYY-MM-DD. A finding about something removed has a path that no longer exists.
    Raises UsageError, with a way to fix it, if there is no git, no repository or no such revision,
    or if a part of the history is missing.
    """
    before, after = _load_file_sets(catalog, revision)
    old, new = from_files.load_sides(catalog, before, after)
    every = {**old.tools, **new.tools}
    known = rules.HistoryContext(
        comparison=comparison.compare_sides(old, new, (before.title, after.title)),
        published=old.versions,
        deprecated=_deprecations(every),
        announced=_deprecations(old.tools),
        invalid={key for key, tool in new.tools.items() if isinstance(tool, Unreadable)},
        today=today,
    )
    return RevisionCheck(
        rules.check_history(known), from_files.find_changed_paths(before, after), before
    )


def _deprecations(
    tools: Mapping[ToolVersionKey, Tool | Unreadable],
) -> dict[ToolVersionKey, Mapping[str, str]]:
    return {
        key: tool.deprecation
        for key, tool in tools.items()
        if isinstance(tool, Tool) and tool.deprecation
    }


def _load_file_sets(catalog: Path, revision: str) -> tuple[FileSet, FileSet]:
    repository = git.open_repository(catalog)
    git.require_own_history(repository, revision)
    return git.files_at_commit(
        repository, git.find_merge_base(repository, revision), revision
    ), git.files_in_working_tree(repository)


def compare_revisions(catalog: Path, before: str, after: str | None = None) -> Comparison:
    """Compare two revisions, or a revision and the working tree.

    Raises UsageError as `check_against_revision` does, or if there is no catalog.
    """
    repository = git.open_repository(catalog)
    git.require_own_history(repository, before)
    old = git.files_at_commit(repository, git.resolve_commit(repository, before), before)
    new = (
        git.files_in_working_tree(repository)
        if after is None
        else git.files_at_commit(repository, git.resolve_commit(repository, after), after)
    )
    if not old.object_ids and not new.object_ids:
        where = repository.prefix.rstrip("/") or "the top of the repository"
        raise UsageError(
            f"There is no catalog at {where} in {old.title} or {new.title}: name its folder "
            "with --catalog."
        )
    return comparison.compare_sides(
        *from_files.load_sides(catalog, old, new), (old.title, new.title)
    )


# Builds


def compare_builds(before: Path, after: Path) -> Comparison:
    """Compare two builds, as they are served.

    Raises SnapshotError if one of them cannot be used.
    """
    from toolcatalog.history import from_builds  # noqa: PLC0415 - slow to import

    folders = find_snapshot(before) or before, find_snapshot(after) or after
    sides = from_builds.load_sides(*folders)
    return comparison.compare_sides(
        *sides, (_build_title(before, folders[0]), _build_title(after, folders[1]))
    )


def find_snapshot(folder: Path) -> Path | None:
    """Return the folder of a snapshot, or of a build's current snapshot, or None if neither."""
    if (folder / snapshot_format.MANIFEST).is_file():
        return folder
    current = Path(os.path.realpath(folder / "current"))
    return current if (folder / "current").is_symlink() else None


def _build_title(path: Path, folder: Path) -> str:
    return (
        f"{path} ({folder.name[:_SHORT_DIGEST_LENGTH]})"
        if path != folder
        else folder.name[:_SHORT_DIGEST_LENGTH]
    )


# Versions


def compare_versions(catalog: Path, before: ToolVersionKey, after: ToolVersionKey) -> Comparison:
    """Compare two versions of a tool.

    Raises UsageError if they belong to different tools, or if one of them has problems.
    """
    if before[:2] != after[:2]:
        raise UsageError(
            f"{before.slug} and {after.slug} are two tools: name two versions of one, as in "
            f"{before.slug}@{before.version}."
        )
    changes = tuple(
        tool_changes.compare_tools(_load_tool(catalog, before), _load_tool(catalog, after))
    )
    what = Entry("new version", after.path, *after, compared_with=before.version, changes=changes)
    is_same = not changes and before.version == after.version
    return Comparison(
        f"{before.slug}@{before.version}",
        f"{after.slug}@{after.version}",
        () if is_same else (what,),
    )


def parse_tool_version(catalog: Path, text: str) -> ToolVersionKey | None:
    """Parse `SLUG@VERSION`, or `SLUG@` or `SLUG` for the newest version.

    Returns None if there is no such tool. Raises UsageError if the tool exists and the version does
    not.
    """
    found = _VERSION.fullmatch(text)
    if not found or not names.is_valid(names.TOOL_SLUG, found[1]):
        return None
    folder = next(iter(sorted(catalog.glob(f"toolkits/*/{found[1]}"))), None)
    known = _list_versions(folder) if folder else []
    if not folder or not known:
        return None
    if found[2] and found[2] not in known:
        raise UsageError(f"{found[1]} has no version {found[2]}: it has {', '.join(known)}.")
    return ToolVersionKey(folder.parent.name, found[1], found[2] or known[-1])


def _list_versions(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem))


def _load_tool(catalog: Path, key: ToolVersionKey) -> Tool:
    record = from_files.load_record(catalog, key.path, folder.read_file(catalog, key.path))
    if not isinstance(record, ToolVersion):
        why = record.reason if isinstance(record, Unreadable) else "no tool"
        raise UsageError(
            f"{catalog / key.path} cannot be compared ({why}): mend what `toolcatalog check` "
            "says of it."
        )
    path = f"toolkits/{key.toolkit}/toolkit.yaml"
    return from_files.to_tool(
        record, from_files.load_record(catalog, path, folder.read_file(catalog, path))
    )


# Targets of any kind


def compare_targets(catalog: Path, before: str, after: str | None = None) -> Comparison:
    """Compare two named targets: two versions of a tool, two git revisions or two builds.

    Without `after`, a version is compared with the newest one, the newest one with the version
    before it, and a revision with the working tree. Raises UsageError, with what was tried, if the
    targets are not of the same kind or are ambiguous, and any error of the comparison itself.
    """
    old, new = (
        _Target.parse(catalog, before),
        _Target.parse(catalog, after) if after is not None else None,
    )
    sorts = [sort for sort in old.kinds if new is None or sort in new.kinds]
    if new is None and sorts == ["build"]:
        raise UsageError(f"{before} is a build: name the build to compare it with, too.")
    if len(sorts) > 1:
        raise UsageError(f"{old.describe(sorts)}: {_AMBIGUITY_HINT}.")
    if not sorts:
        raise UsageError(_incomparable_message(old, new))
    if old.version and sorts == ["version"]:
        return compare_versions(
            catalog,
            *(
                (old.version, new.version)
                if new and new.version
                else _pair_with_newest(catalog, old.version)
            ),
        )
    if sorts == ["build"]:
        return compare_builds(Path(before), Path(after or ""))
    return compare_revisions(catalog, before, after)


def _pair_with_newest(catalog: Path, key: ToolVersionKey) -> tuple[ToolVersionKey, ToolVersionKey]:
    """Return a version and the newest one; for the newest one, the version before it and itself."""
    known = _list_versions(catalog / "toolkits" / key.toolkit / key.slug)
    if len(known) == 1:
        raise UsageError(
            f"{key.slug} has one version only, {key.version}: there is none to compare it with."
        )
    return key._replace(version=min(key.version, known[-2])), key._replace(version=known[-1])


class _Target(NamedTuple):
    """A word that names a target: its possible kinds, and why it is not a revision."""

    text: str
    version: ToolVersionKey | None
    kinds: list[str]
    revision_error: str

    @classmethod
    def parse(cls, catalog: Path, text: str) -> "_Target":
        version, refused = parse_tool_version(catalog, text), ""
        sorts = [
            *(["version"] if version else []),
            *(["build"] if text and find_snapshot(Path(text)) else []),
        ]
        try:
            git.resolve_commit(git.open_repository(catalog), text)
            sorts.append("revision")
        except UsageError as error:
            refused = str(error)
        return cls(text, version, sorts, refused)

    def describe(self, kinds: list[str]) -> str:
        """Return a description of the target's kinds."""
        words = {"version": "a tool", "build": "a build", "revision": "a git revision"}
        return f"{self.text} is {' and '.join(words[sort] for sort in kinds)}"


def _incomparable_message(old: _Target, new: _Target | None) -> str:
    """Return why two targets cannot be compared."""
    for one in (old, new):
        if one and not one.kinds:
            tried = f"no version of a tool (as SLUG@VERSION), no folder of a build, and no git revision. {one.revision_error}"
            return f"{one.text or 'An empty name'} is nothing that can be compared: {tried}"
    assert new is not None
    return f"{old.describe(old.kinds)}, {new.describe(new.kinds)}: name two of one sort."
