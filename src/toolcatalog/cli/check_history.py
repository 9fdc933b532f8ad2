"""`toolcatalog check --against`: problems that only a comparison with a published revision shows.

What protects against a change cannot be suppressed by that change.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from toolcatalog.build.state import CheckResult
from toolcatalog.catalog import folder
from toolcatalog.errors import Problem, UsageError
from toolcatalog.history import base_suppressions, targets
from toolcatalog.validation import checker


def check_accepted_rules(rules: Collection[str], revision: str | None) -> None:
    """Raise UsageError if `--accept` has no effect."""
    if not rules:
        return
    if revision is None:
        raise UsageError("--accept goes with --against REV: without it all comments count.")
    if unknown := sorted({*rules} - base_suppressions.PROTECTABLE_RULES):
        raise UsageError(
            f"--accept {unknown[0]} is for rules that a change cannot silence itself only: "
            f"{', '.join(sorted(base_suppressions.PROTECTABLE_RULES))}."
        )


def add_history(
    catalog: Path, result: CheckResult, revision: str, accepted_rules: Collection[str]
) -> tuple[list[Problem], frozenset[str]]:
    """Return the problems with those of the history, and the paths that changed since a revision.

    The paths are as problems name them.
    """
    comparison = targets.check_against_revision(catalog, revision, f"{datetime.now(UTC):%Y-%m-%d}")
    base = comparison.base
    rules = base_suppressions.protect_severities(catalog, base, result.rules, accepted_rules)
    lowered = base_suppressions.find_lowered_rules(rules, result.rules)
    findings = base_suppressions.check_security(
        catalog,
        base,
        comparison.changed_paths,
        everywhere=bool(lowered & base_suppressions.SECURITY_RULES),
    )
    history_problems = base_suppressions.locate_unsuppressed(
        catalog, base, [*comparison.findings, *findings], accepted_rules
    )
    problems = [problem for problem in result.problems if problem.rule not in lowered]
    problems += [
        base_suppressions.explain_lowered(problem, base) if problem.rule in lowered else problem
        for problem in history_problems
    ]
    changed_paths = frozenset(
        folder.display_path(catalog, path) for path in comparison.changed_paths
    )
    return [*checker.apply_severities(rules, problems)], changed_paths
