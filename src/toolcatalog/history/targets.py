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
_AMBIGUITY_HINT = (
    "say `SLUG@` or `SLUG@VERSION` for a tool, `./NAME` for the folder of a build, and"
    " `refs/heads/NAME` or a commit for a revision"
)


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
    old_files, new_files = _load_file_sets(catalog, revision)
    old_side, new_side = from_files.load_sides(catalog, old_files, new_files)
    tools = {**old_side.tools, **new_side.tools}
    context = rules.HistoryContext(
        comparison=comparison.compare_sides(old_side, new_side, (old_files.title, new_files.title)),
        published=old_side.versions,
        deprecated=_deprecations(tools),
        announced=_deprecations(old_side.tools),
        invalid={key for key, tool in new_side.tools.items() if isinstance(tool, Unreadable)},
        today=today,
    )
    return RevisionCheck(
        rules.check_history(context), from_files.find_changed_paths(old_files, new_files), old_files
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


def compare_revisions(catalog: Path, old: str, new: str | None = None) -> Comparison:
    """Compare two revisions, or a revision and the working tree.

    Raises UsageError as `check_against_revision` does, or if there is no catalog.
    """
    repository = git.open_repository(catalog)
    git.require_own_history(repository, old)
    old_files = git.files_at_commit(repository, git.resolve_commit(repository, old), old)
    new_files = (
        git.files_in_working_tree(repository)
        if new is None
        else git.files_at_commit(repository, git.resolve_commit(repository, new), new)
    )
    if not old_files.object_ids and not new_files.object_ids:
        location = repository.prefix.rstrip("/") or "the top of the repository"
        raise UsageError(
            f"There is no catalog at {location} in {old_files.title} or {new_files.title}: name its"
            " folder with --catalog."
        )
    return comparison.compare_sides(
        *from_files.load_sides(catalog, old_files, new_files), (old_files.title, new_files.title)
    )


# Builds


def compare_builds(old: Path, new: Path) -> Comparison:
    """Compare two builds, as they are served.

    Raises SnapshotError if one of them cannot be used.
    """
    from toolcatalog.history import from_builds  # noqa: PLC0415 - slow to import

    folders = find_snapshot(old) or old, find_snapshot(new) or new
    sides = from_builds.load_sides(*folders)
    return comparison.compare_sides(
        *sides, (_build_title(old, folders[0]), _build_title(new, folders[1]))
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


def compare_versions(catalog: Path, old: ToolVersionKey, new: ToolVersionKey) -> Comparison:
    """Compare two versions of a tool.

    Raises UsageError if they belong to different tools, or if one of them has problems.
    """
    if old[:2] != new[:2]:
        raise UsageError(
            f"{old.slug} and {new.slug} are two tools: name two versions of one, as in "
            f"{old.slug}@{old.version}."
        )
    changes = tuple(tool_changes.compare_tools(_load_tool(catalog, old), _load_tool(catalog, new)))
    entry = Entry("new version", new.path, *new, compared_with=old.version, changes=changes)
    is_same = not changes and old.version == new.version
    return Comparison(
        f"{old.slug}@{old.version}",
        f"{new.slug}@{new.version}",
        () if is_same else (entry,),
    )


def parse_tool_version(catalog: Path, text: str) -> ToolVersionKey | None:
    """Parse `SLUG@VERSION`, or `SLUG@` or `SLUG` for the newest version.

    Returns None if there is no such tool. Raises UsageError if the tool exists and the version does
    not.
    """
    match = _VERSION.fullmatch(text)
    if not match or not names.is_valid(names.TOOL_SLUG, match[1]):
        return None
    folder = next(iter(sorted(catalog.glob(f"toolkits/*/{match[1]}"))), None)
    tool_versions = _list_versions(folder) if folder else []
    if not folder or not tool_versions:
        return None
    if match[2] and match[2] not in tool_versions:
        raise UsageError(
            f"{match[1]} has no version {match[2]}: it has {', '.join(tool_versions)}."
        )
    return ToolVersionKey(folder.parent.name, match[1], match[2] or tool_versions[-1])


def _list_versions(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem))


def _load_tool(catalog: Path, key: ToolVersionKey) -> Tool:
    record = from_files.load_record(catalog, key.path, folder.read_file(catalog, key.path))
    if not isinstance(record, ToolVersion):
        reason = record.reason if isinstance(record, Unreadable) else "no tool"
        raise UsageError(
            f"{catalog / key.path} cannot be compared ({reason}): fix what `toolcatalog check` "
            "says of it."
        )
    path = f"toolkits/{key.toolkit}/toolkit.yaml"
    return from_files.to_tool(
        record, from_files.load_record(catalog, path, folder.read_file(catalog, path))
    )


# Targets of any kind


def compare_targets(catalog: Path, old: str, new: str | None = None) -> Comparison:
    """Compare two named targets: two versions of a tool, two git revisions or two builds.

    Without `new`, a version is compared with the newest one, the newest one with the version
    before it, and a revision with the working tree. Raises UsageError, with what was tried, if the
    targets are not of the same kind or are ambiguous, and any error of the comparison itself.
    """
    old_target, new_target = (
        _Target.parse(catalog, old),
        _Target.parse(catalog, new) if new is not None else None,
    )
    kinds = [kind for kind in old_target.kinds if new_target is None or kind in new_target.kinds]
    if new_target is None and kinds == ["build"]:
        raise UsageError(f"{old} is a build: name the build to compare it with, too.")
    if len(kinds) > 1:
        raise UsageError(f"{old_target.describe(kinds)}: {_AMBIGUITY_HINT}.")
    if not kinds:
        raise UsageError(_incomparable_message(old_target, new_target))
    if old_target.version and kinds == ["version"]:
        return compare_versions(
            catalog,
            *(
                (old_target.version, new_target.version)
                if new_target and new_target.version
                else _pair_with_newest(catalog, old_target.version)
            ),
        )
    if kinds == ["build"]:
        return compare_builds(Path(old), Path(new or ""))
    return compare_revisions(catalog, old, new)


def _pair_with_newest(catalog: Path, key: ToolVersionKey) -> tuple[ToolVersionKey, ToolVersionKey]:
    """Return a version and the newest one; for the newest one, the version before it and itself."""
    tool_versions = _list_versions(catalog / "toolkits" / key.toolkit / key.slug)
    if len(tool_versions) == 1:
        raise UsageError(
            f"{key.slug} has one version only, {key.version}: there is none to compare it with."
        )
    return key._replace(version=min(key.version, tool_versions[-2])), key._replace(
        version=tool_versions[-1]
    )


class _Target(NamedTuple):
    """A word that names a target: its possible kinds, and why it is not a revision."""

    text: str
    version: ToolVersionKey | None
    kinds: list[str]
    revision_error: str

    @classmethod
    def parse(cls, catalog: Path, text: str) -> "_Target":
        version, revision_error = parse_tool_version(catalog, text), ""
        kinds = [
            *(["version"] if version else []),
            *(["build"] if text and find_snapshot(Path(text)) else []),
        ]
        try:
            git.resolve_commit(git.open_repository(catalog), text)
            kinds.append("revision")
        except UsageError as error:
            revision_error = str(error)
        return cls(text, version, kinds, revision_error)

    def describe(self, kinds: list[str]) -> str:
        """Return a description of the target's kinds."""
        words = {"version": "a tool", "build": "a build", "revision": "a git revision"}
        return f"{self.text} is {' and '.join(words[kind] for kind in kinds)}"


def _incomparable_message(old: _Target, new: _Target | None) -> str:
    """Return why two targets cannot be compared."""
    for target in (old, new):
        if target and not target.kinds:
            reason = (
                "no version of a tool (as SLUG@VERSION), no folder of a build, and no git"
                f" revision. {target.revision_error}"
            )
            return f"{target.text or 'An empty name'} cannot be compared: {reason}"
    assert new is not None
    return f"{old.describe(old.kinds)}, {new.describe(new.kinds)}: name two of one kind."
