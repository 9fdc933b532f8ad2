"""Suppression comments: remove suppressed lint findings, and report unused comments.

Locating a finding means reading its file again, so lint findings are cached without positions and
located only when they are shown.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from toolcatalog.catalog import comments, file_schemas, folder, loader
from toolcatalog.catalog.comments import Suppression
from toolcatalog.catalog.loader import Document
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Problem
from toolcatalog.lint import security
from toolcatalog.validation import severity


def check_comments(root: Path, document: Document) -> Iterator[Finding]:
    """Yield the findings of a file's comments: hidden characters, and wrong schema comments.

    A file with suppression comments also gets a finding without a message, as a marker: `apply`
    checks then whether the comments are used.
    """
    yield from _check_schema_comments(root, document)
    yield from (
        security.make_comment_finding(document.path, line, characters)
        for line, characters in islice(document.hidden_characters, MAX_FINDINGS_PER_FILE + 1)
    )
    if document.suppressions:
        yield Finding(path=document.path, rule=severity.UNUSED_SUPPRESSION, message="")


def _check_schema_comments(root: Path, document: Document) -> Iterator[Finding]:
    """Yield findings for schema comments that do not name the schema of the file's kind.

    Targets that are URLs or outside the parent of the catalog are not checked.
    """
    right = file_schemas.relative_schema_path(document.location.kind, document.path)
    for line, target in document.schema_comments:
        file = Path(os.path.normpath(root.absolute() / Path(document.path).parent / target))
        if not target:
            message = "this comment names no schema"
        elif "://" in target or not file.is_relative_to(root.absolute().parent):
            continue
        elif not file.is_file():
            message = f"there is no schema `{target}`"
        elif file.name in file_schemas.SCHEMA_FILES and file.name != Path(right).name:
            message = f"`{target}` is the schema of another kind of file"
        else:
            continue
        help = "write this, or remove the comment: an editor completes nothing by it"
        yield Finding(
            path=document.path,
            rule=severity.SCHEMA_COMMENT,
            line=line,
            message=message,
            expected=f"`{right}`",
            help=help,
        )


def find_invalid(root: Path, document: Document) -> Iterator[Problem]:
    """Yield problems for invalid suppression comments, at most MAX_FINDINGS_PER_FILE + 1."""
    wrong = (
        (severity.validate_suppression(document.path, comment), comment)
        for comment in document.suppressions
    )
    yield from islice(
        (_problem_at(root, finding, comment) for finding, comment in wrong if finding),
        MAX_FINDINGS_PER_FILE + 1,
    )


def apply(root: Path, path: str, findings: Sequence[Finding]) -> list[Problem]:
    """Return the lint findings of one file as problems with positions.

    Suppressed findings are left out, and a problem is added for each unused suppression comment.
    """
    problems, said_there = loader.locate_in_file(
        root, path, [finding for finding in findings if finding.rule != severity.UNUSED_SUPPRESSION]
    )
    places = {(problem.rule, problem.line) for problem in problems}
    silenced = places & comments.suppressed_lines(said_there)
    unused = (
        severity.find_unused_suppressions(said_there, silenced)
        if len(problems) < len(findings)
        else ()
    )
    kept = [problem for problem in problems if (problem.rule, problem.line) not in silenced]
    return kept + [
        _unused_problem(root, path, comment)
        for comment in islice(unused, MAX_FINDINGS_PER_FILE + 1)
    ]


def _unused_problem(root: Path, path: str, comment: Suppression) -> Problem:
    message, help = (
        f"there is nothing to ignore: no {' or '.join(f'`{rule}`' for rule in comment.rules)} here",
        "remove the comment",
    )
    return _problem_at(
        root,
        Finding(path=path, rule=severity.UNUSED_SUPPRESSION, message=message, help=help, fix=""),
        comment,
    )


def _problem_at(root: Path, finding: Finding, comment: Suppression) -> Problem:
    return folder.make_problem(
        root,
        finding,
        comment.line,
        comment.column,
        comment.excerpt,
        len(comment.excerpt) - comment.column + 1,
    )


def group_by_path(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings grouped by the path of their file."""
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.path].append(finding)
    return found
