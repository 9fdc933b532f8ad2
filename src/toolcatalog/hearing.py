"""Advice and the comments of the file that it is for: what a comment silences, and which comments
are of no use themselves.

A place is found by reading a file once more, so advice is kept without places until somebody wants
to see it.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from toolcatalog import advice, comments, editors, source, tree
from toolcatalog.comments import Comment
from toolcatalog.errors import MOST, Finding, Problem
from toolcatalog.lints import security
from toolcatalog.source import Document


def of_comments(root: Path, document: Document) -> Iterator[Finding]:
    """What there is to say of a file's comments: what they hide, and which schema they name. Whether
    one silences anything is told by `heard`, which this asks to look.
    """
    yield from _of_schemas(root, document)
    yield from (
        security.in_comment(document.path, line, characters)
        for line, characters in islice(document.hidden, MOST + 1)
    )
    if document.comments:
        yield Finding(path=document.path, rule=advice.UNUSED, message="")


def _of_schemas(root: Path, document: Document) -> Iterator[Finding]:
    """Comments that should name the file's schema to an editor, and do not. What does not lie
    beside the catalog is not looked at.
    """
    right = editors.relative(document.place.kind, document.path)
    for line, target in document.schemas:
        file = Path(os.path.normpath(root.absolute() / Path(document.path).parent / target))
        if not target:
            message = "this comment names no schema"
        elif "://" in target or not file.is_relative_to(root.absolute().parent):
            continue
        elif not file.is_file():
            message = f"there is no schema `{target}`"
        elif file.name in editors.FILES and file.name != Path(right).name:
            message = f"`{target}` is the schema of another kind of file"
        else:
            continue
        help = "write this, or remove the comment: an editor completes nothing by it"
        yield Finding(
            path=document.path,
            rule=advice.SCHEMA,
            line=line,
            message=message,
            expected=f"`{right}`",
            help=help,
        )


def misheard(root: Path, document: Document) -> Iterator[Problem]:
    """The comments for us that silence nothing, as many as are told of one file, and one more."""
    wrong = ((advice.unheard(document.path, comment), comment) for comment in document.comments)
    yield from islice(
        (_at(root, finding, comment) for finding, comment in wrong if finding), MOST + 1
    )


def heard(root: Path, path: str, said: Sequence[Finding]) -> list[Problem]:
    """The advice for one file at its places, without what the file's comments silence, and with the
    comments that silence nothing.
    """
    problems, said_there = source.placed(
        root, path, [finding for finding in said if finding.rule != advice.UNUSED]
    )
    places = {(problem.rule, problem.line) for problem in problems}
    silenced = places & comments.silenced(said_there)
    unused = advice.unused(said_there, silenced) if len(problems) < len(said) else ()
    kept = [problem for problem in problems if (problem.rule, problem.line) not in silenced]
    return kept + [_unused(root, path, comment) for comment in islice(unused, MOST + 1)]


def _unused(root: Path, path: str, comment: Comment) -> Problem:
    message, help = (
        f"there is nothing to ignore: no {' or '.join(f'`{rule}`' for rule in comment.rules)} here",
        "remove the comment",
    )
    return _at(
        root, Finding(path=path, rule=advice.UNUSED, message=message, help=help, fix=""), comment
    )


def _at(root: Path, finding: Finding, comment: Comment) -> Problem:
    return tree.problem(
        root,
        finding,
        comment.line,
        comment.column,
        comment.excerpt,
        len(comment.excerpt) - comment.column + 1,
    )


def by_path(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by the file that they are of."""
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.path].append(finding)
    return found
