"""History rules: what a change does to versions that are already published.

Each rule uses the differences between a revision and the current catalog, and the date: what was
announced for removal may be removed from that day on. This module does not depend on git.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from toolcatalog.diff.change import Change
from toolcatalog.diff.comparison import Comparison, Entry, ToolVersionKey, is_meta_tool
from toolcatalog.errors import Finding, Pointer

_MAX_LISTED_CHANGES = 5  # changes listed in a message
_FIELD_NAMES = {"input": "input_parameters", "output": "output_parameters"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryContext:
    """The input of the history rules.

    `comparison` contains the differences since a revision, and `published` the versions at that
    revision of the tools that differ. `deprecated` contains the current deprecation of each
    deprecated version; `announced` those at that revision. `invalid` are the tool versions that
    cannot be read now; `check` reports why.
    """

    comparison: Comparison
    published: Mapping[tuple[str, str], Sequence[str]]
    deprecated: Mapping[ToolVersionKey, Mapping[str, str]] = field(default_factory=dict)
    announced: Mapping[ToolVersionKey, Mapping[str, str]] = field(default_factory=dict)
    invalid: Collection[ToolVersionKey] = ()
    today: str  # as YYYY-MM-DD


class HistoryRule(NamedTuple):
    """A history rule; `severity` is error, warning or note."""

    rule: str
    severity: str
    check: Callable[[HistoryContext], Iterator[Finding]]


def check_history(history: HistoryContext) -> list[Finding]:
    """Return all findings of all rules.

    A finding about something removed has a path that no longer exists.
    """
    return [*chain.from_iterable(past.check(history) for past in RULES)]


def check_version_unchanged(history: HistoryContext) -> Iterator[Finding]:
    """Check that a published version does not change, apart from its deprecation."""
    for entry in _entries_with(history, "changed"):
        if not entry.slug:
            continue
        consequence = ", which breaks callers" if _breaking_changes(entry) else ""
        yield Finding(
            path=entry.path,
            pointer=_field_pointer(entry.changes[0]),
            at_key=True,
            rule="history-version-changed",
            message=(
                f"this published version was modified{consequence}:"
                f" {_format_changes(entry.changes)}"
            ),
            expected=(
                f"the file as it is in {history.comparison.old_title}, apart from `deprecation`"
            ),
            help=(
                f"restore it, and make the change in a new version: `toolcatalog bump {entry.slug}`"
            ),
        )


def check_meta_tool_unchanged(history: HistoryContext) -> Iterator[Finding]:
    """Check that a version of a meta tool does not change, apart from its deprecation."""
    for entry in _entries_with(history, "changed"):
        changes = [change for change in entry.changes if change.location != "deprecation"]
        if is_meta_tool(entry.path) and changes:
            yield Finding(
                path=entry.path,
                pointer=(changes[0].location,),
                at_key=True,
                rule="history-version-changed",
                message=(
                    "this published version of a meta tool was modified: "
                    f"{_format_changes(changes)}"
                ),
                expected=(
                    f"the file as it is in {history.comparison.old_title}, apart from `deprecation`"
                ),
                help="restore it, and make the change in a new file with a later version",
            )


def check_version_order(history: HistoryContext) -> Iterator[Finding]:
    """Check that a new version is newer than all published ones."""
    for entry in _entries_with(history, "new version", "not compared"):
        published = history.published.get((entry.toolkit, entry.slug), ())
        if (
            entry.version
            and entry.version not in published
            and published
            and entry.version < published[-1]
        ):
            yield Finding(
                path=entry.path,
                rule="history-version-back",
                message=(
                    f"this version is new, and sorts before {published[-1]}, which is published: "
                    "it would not be the newest"
                ),
                expected=f"a version after {published[-1]}",
                help="give the file a later name, such as that of today",
            )


def check_version_removed(history: HistoryContext) -> Iterator[Finding]:
    """Check that a published version is not removed before its announced date."""
    for entry in _entries_with(history, "version removed"):
        if not _has_passed_sunset(entry, history.today):
            yield _removal_finding(
                "history-version-removed",
                entry,
                f"version {entry.version} of `{entry.slug}`",
                history,
            )


def check_meta_tool_removed(history: HistoryContext) -> Iterator[Finding]:
    """Check that a version of a meta tool is not removed before its announced date."""
    for entry in _entries_with(history, "removed"):
        if is_meta_tool(entry.path) and not _has_passed_sunset(entry, history.today):
            yield Finding(
                path=entry.path,
                rule="history-version-removed",
                message="this version of a meta tool was removed before an announced end",
                expected="a deprecation with a `sunset` that has passed",
                help=(
                    f"restore it ({_restore_hint(history, entry.path)}), and announce its end by "
                    "`deprecation` with a `sunset`"
                ),
            )


def check_sunset_ahead(history: HistoryContext) -> Iterator[Finding]:
    """Check that a change announces no end that has already come."""
    for entry in _entries_with(history, "deprecated", "deprecation", "new version"):
        key = ToolVersionKey(entry.toolkit, entry.slug, entry.version)
        sunset = history.deprecated.get(key, {}).get("sunset", "")
        if sunset != history.announced.get(key, {}).get("sunset", ""):
            yield from _check_sunset(entry.path, sunset, history.today)
    for entry in _entries_with(history, "added", "changed"):
        if is_meta_tool(entry.path):
            yield from _check_sunset(entry.path, entry.sunset, history.today)


def _check_sunset(path: str, sunset: str, today: str) -> Iterator[Finding]:
    if sunset and sunset <= today:
        yield Finding(
            path=path,
            pointer=("deprecation", "sunset"),
            rule="history-sunset-past",
            message=f"`sunset` is {sunset}, which has come, and was not announced before",
            expected=f"a day after {today}",
            help="give those who use this version time: choose a later day",
        )


def check_toolkit_auth(history: HistoryContext) -> Iterator[Finding]:
    """Report a toolkit that needs authentication from now on, or no longer.

    That changes all published versions of its tools that do not say otherwise.
    """
    for entry in _entries_with(history, "changed"):
        for change in entry.changes:
            if not entry.slug and change.location == "no_auth" and not is_meta_tool(entry.path):
                yield Finding(
                    path=entry.path,
                    pointer=("no_auth",),
                    at_key=True,
                    rule="history-no-auth",
                    message=(
                        f"`no_auth` {change.text}. Published versions of its tools change with it"
                    ),
                    expected=f"`no_auth` as it is in {history.comparison.old_title}",
                    help="restore it, and say `no_auth` in new versions of the tools",
                )


def check_tool_removed(history: HistoryContext) -> Iterator[Finding]:
    """Check that a published tool is not removed before its announced date.

    `check_toolkit_removed` covers tools of a toolkit that is removed as a whole.
    """
    removed_toolkits = _removed_toolkits(history)
    for entry in _entries_with(history, "removed"):
        if (
            entry.slug
            and entry.toolkit not in removed_toolkits
            and not _has_passed_sunset(entry, history.today)
        ):
            yield _removal_finding(
                "history-tool-removed", entry, f"the tool `{entry.slug}`", history
            )


def check_toolkit_removed(history: HistoryContext) -> Iterator[Finding]:
    """Check that a published toolkit is not removed before the announced dates of all its tools."""
    tools = [entry for entry in _entries_with(history, "removed") if entry.slug]
    for toolkit, path in _removed_toolkits(history).items():
        too_early = [
            entry
            for entry in tools
            if entry.toolkit == toolkit and not _has_passed_sunset(entry, history.today)
        ]
        if too_early:
            count = (
                f"{len(too_early):,} of its tools, `{too_early[0].slug}` first,"
                if len(too_early) > 1
                else f"its tool `{too_early[0].slug}`"
            )
            yield Finding(
                path=path,
                rule="history-toolkit-removed",
                message=(
                    f"the toolkit `{toolkit}` was removed, and {count} had no announced end that "
                    "has passed"
                ),
                expected="tools that are deprecated with a `sunset` that has passed",
                help=(
                    f"restore the toolkit ({_restore_hint(history, f'toolkits/{toolkit}')}), and "
                    "deprecate its tools with a `sunset`"
                ),
            )


def check_breaking_announced(history: HistoryContext) -> Iterator[Finding]:
    """Check that the version before a breaking one is deprecated with a sunset."""
    for entry in _entries_with(history, "new version"):
        previous = ToolVersionKey(entry.toolkit, entry.slug, entry.compared_with)
        if (breaking := _breaking_changes(entry)) and not history.deprecated.get(previous, {}).get(
            "sunset"
        ):
            yield Finding(
                path=entry.path,
                pointer=_field_pointer(breaking[0]),
                at_key=True,
                rule="history-breaking",
                message=(
                    f"this version breaks callers of {entry.compared_with}:"
                    f" {_format_changes(breaking)}"
                ),
                expected=(
                    f"changes that no caller notices, or an announced end of {entry.compared_with}"
                ),
                help=(
                    f"keep what callers rely on, or say in {entry.compared_with}.yaml, by"
                    " `deprecation` with a `sunset`, how long that one stays"
                ),
            )


def check_all_compared(history: HistoryContext) -> Iterator[Finding]:
    """Report what could not be read at the revision and so could not be compared.

    A failed comparison is not the same as no change.
    """
    for entry in _entries_with(history, "not compared"):
        was_there = entry.compared_with or entry.version in history.published.get(
            (entry.toolkit, entry.slug), ()
        )
        concerned = {
            ToolVersionKey(entry.toolkit, entry.slug, version)
            for version in (entry.version, entry.compared_with)
        }
        if entry.slug and was_there and concerned.isdisjoint(history.invalid):
            yield Finding(
                path=entry.path,
                rule="history-not-compared",
                message=(
                    f"this version could not be compared with {history.comparison.old_title}: "
                    f"{entry.reason}"
                ),
                help="compare them yourself: a published version must not change",
            )


RULES = (
    HistoryRule("history-version-changed", "error", check_version_unchanged),
    HistoryRule("history-version-changed", "error", check_meta_tool_unchanged),
    HistoryRule("history-version-back", "error", check_version_order),
    HistoryRule("history-version-removed", "error", check_version_removed),
    HistoryRule("history-version-removed", "error", check_meta_tool_removed),
    HistoryRule("history-tool-removed", "error", check_tool_removed),
    HistoryRule("history-toolkit-removed", "error", check_toolkit_removed),
    HistoryRule("history-sunset-past", "error", check_sunset_ahead),
    HistoryRule("history-no-auth", "warning", check_toolkit_auth),
    HistoryRule("history-breaking", "warning", check_breaking_announced),
    HistoryRule("history-not-compared", "warning", check_all_compared),
)


def _entries_with(history: HistoryContext, *statuses: str) -> Iterator[Entry]:
    return (entry for entry in history.comparison.entries if entry.status in statuses)


def _removed_toolkits(history: HistoryContext) -> dict[str, str]:
    """Return the toolkits that were removed as a whole, with the paths of their own files."""
    return {
        entry.toolkit: entry.path
        for entry in _entries_with(history, "removed")
        if entry.toolkit and not entry.slug
    }


def _has_passed_sunset(entry: Entry, today: str) -> bool:
    return bool(entry.sunset) and entry.sunset <= today


def _removal_finding(rule: str, entry: Entry, subject: str, history: HistoryContext) -> Finding:
    announcement = (
        f"its `sunset` is {entry.sunset}, which is in the future"
        if entry.sunset
        else "no `sunset` had announced that"
    )
    return Finding(
        path=entry.path,
        rule=rule,
        message=f"{subject} was removed, and {announcement}",
        expected="a deprecation with a `sunset` that has passed",
        help=(
            f"restore it ({_restore_hint(history, entry.path)}), and announce its end:"
            f" `toolcatalog deprecate {entry.slug} --sunset DATE`"
        ),
    )


def _restore_hint(history: HistoryContext, path: str) -> str:
    return f"`git checkout {history.comparison.old_title} -- {path}` in the catalog's folder"


def _breaking_changes(entry: Entry) -> list[Change]:
    return [change for change in entry.changes if change.kind == "breaking"]


def _format_changes(changes: Sequence[Change]) -> str:
    versions_text = "; ".join(
        f"{change.location} {change.text}" for change in changes[:_MAX_LISTED_CHANGES]
    )
    return (
        versions_text
        if len(changes) <= _MAX_LISTED_CHANGES
        else f"{versions_text}; and {len(changes) - _MAX_LISTED_CHANGES} more"
    )


def _field_pointer(change: Change) -> Pointer:
    """Return the pointer of the file's field that a change is in."""
    field = change.location.partition(" ")[0]
    return (_FIELD_NAMES.get(field, field),)
