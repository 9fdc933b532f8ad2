"""Suppression comments: remove suppressed lint findings, and report unused comments.

Locating a finding means reading its file again, so lint findings are cached without positions and
located only when they are shown.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from toolcatalog.catalog import comments, file_schemas, folder, loader
from toolcatalog.catalog.comments import Suppression
from toolcatalog.catalog.loader import Document
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Problem
from toolcatalog.lint import security
from toolcatalog.system import files
from toolcatalog.validation import severity


class LintFindings(NamedTuple):
    """Lint findings, not located yet, and the files whose unused comments are to be reported."""

    findings: Sequence[Finding] = ()
    commented_paths: Sequence[str] = ()

    def with_rules(self, rules: Collection[str]) -> "LintFindings":
        """Return what concerns these rules only."""
        return LintFindings(
            [finding for finding in self.findings if finding.rule in rules],
            self.commented_paths if severity.UNUSED_SUPPRESSION in rules else (),
        )


NO_FINDINGS = LintFindings()


def check_comments(root: Path, document: Document) -> Iterator[Finding]:
    """Yield the findings of a file's comments: hidden characters, and wrong schema comments."""
    yield from _check_schema_comments(root, document)
    yield from (
        security.make_comment_finding(document.path, line, characters)
        for line, characters in islice(document.hidden_characters, MAX_FINDINGS_PER_FILE + 1)
    )


def _check_schema_comments(root: Path, document: Document) -> Iterator[Finding]:
    """Yield findings for schema comments that do not name the schema of the file's kind."""
    expected = file_schemas.relative_schema_path(document.location.kind, document.path)
    for line, target in document.schema_comments:
        message = _schema_comment_error(root, document.path, target, Path(expected).name)
        if message:
            yield Finding(
                path=document.path,
                rule=severity.SCHEMA_COMMENT,
                line=line,
                message=message,
                expected=f"`{expected}`",
                help="write this, or remove the comment: an editor completes nothing by it",
            )


def _schema_comment_error(root: Path, path: str, target: str, expected_name: str) -> str:
    """Return what is wrong with a schema comment; empty if nothing is.

    Targets that are URLs or outside the parent of the catalog are not checked.
    """
    if not target:
        return "this comment names no schema"
    file = Path(os.path.normpath(root.absolute() / Path(path).parent / target))
    if "://" in target or not file.is_relative_to(root.absolute().parent):
        return ""
    if not files.is_file(file):
        return f"there is no schema `{target}`"
    if file.name in file_schemas.SCHEMA_FILES and file.name != expected_name:
        return f"`{target}` is the schema of another kind of file"
    return ""


def find_invalid(root: Path, document: Document) -> Iterator[Problem]:
    """Yield problems for invalid suppression comments, at most MAX_FINDINGS_PER_FILE + 1."""
    problems = (
        _problem_at(root, finding, comment)
        for comment in document.suppressions
        for finding in severity.check_suppression(document.path, comment)
    )
    return islice(problems, MAX_FINDINGS_PER_FILE + 1)


def locate_unsuppressed_findings(root: Path, lint_findings: LintFindings) -> Iterator[Problem]:
    """Yield the findings that no comment suppresses, located, and the unused comments.

    Each file is read once.
    """
    by_path = group_by_path(lint_findings.findings)
    commented_paths = {*lint_findings.commented_paths}
    for path in dict.fromkeys([*by_path, *commented_paths]):
        findings = by_path.get(path, [])
        problems, suppressions = loader.locate_in_file(root, path, findings)
        lines = comments.suppressed_lines(suppressions)
        yield from (problem for problem in problems if (problem.rule, problem.line) not in lines)
        if path in commented_paths:
            yield from _find_unused(root, path, suppressions, problems)


def _find_unused(
    root: Path, path: str, suppressions: Iterable[Suppression], problems: Iterable[Problem]
) -> Iterator[Problem]:
    """Yield a problem for each comment that suppresses none of the problems of its file."""
    findings = {(problem.rule, problem.line) for problem in problems}
    unused = severity.find_unused_suppressions(suppressions, findings)
    for comment in islice(unused, MAX_FINDINGS_PER_FILE + 1):
        rules = " or ".join(f"`{rule}`" for rule in comment.rules)
        finding = Finding(
            path=path,
            rule=severity.UNUSED_SUPPRESSION,
            message=f"there is nothing to ignore: no {rules} here",
            help="remove the comment",
            fix="",
        )
        yield _problem_at(root, finding, comment)


def _problem_at(root: Path, finding: Finding, comment: Suppression) -> Problem:
    length = len(comment.excerpt) - comment.column + 1
    return folder.make_problem(root, finding, comment.line, comment.column, comment.excerpt, length)


def group_by_path(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings grouped by the path of their file."""
    groups: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.path].append(finding)
    return groups
