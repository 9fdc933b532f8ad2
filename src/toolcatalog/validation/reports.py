"""Problem reports: GitHub annotations, step summaries, SARIF and JUnit.

All functions take the problems of a catalog, the number of files read, and the changed paths, in
the form of `Problem.path`: problems in files that a contributor changed come first. The same
problems give the same report, in whatever order they are passed.

Text from a catalog cannot break the structure of a report: it is escaped as the format requires,
put into a code fence longer than any in the text, and invisible characters are named (`U+202E`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from toolcatalog import __version__
from toolcatalog.encoding import dump_json
from toolcatalog.errors import Problem
from toolcatalog.textutils import escape_hidden, pluralize

# worst first, with GitHub's name for each
_SEVERITIES = {"error": "error", "warning": "warning", "note": "notice"}
_MAX_ANNOTATIONS = 10  # GitHub's limit per severity and step; it silently drops the rest
_MAX_SUMMARY_SIZE = 1024 * 1024  # bytes: GitHub does not show a longer step summary
_MAX_SARIF_RESULTS = 25_000  # per run: code scanning rejects a file with more
_SUMMARY_RESERVE = 500  # bytes reserved for the note after the list of a summary
# problems of one file that a summary lists: more would push other files out of the summary
_MAX_LISTED_PER_FILE = 100
_FENCE = re.compile("`{3,}")
_XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_INVALID_XML = re.compile("[\ufffe\uffff]")


class RuleDescription(NamedTuple):
    """A rule's summary in one line, its full text in Markdown, and its default severity."""

    summary: str
    text: str
    level: str = "error"


def format_counts(problems: Iterable[Problem]) -> str:
    """Return the number of problems by severity, worst first.

    For example `2 errors, 1 warning`, or `no problems`.
    """
    counts = Counter(problem.severity for problem in problems)
    parts = [pluralize(counts[level], level) for level in _SEVERITIES if counts[level]]
    return ", ".join(parts) or "no problems"


def render_github(
    problems: Sequence[Problem], file_count: int, changed_paths: Collection[str] = ()
) -> str:
    """Return GitHub workflow commands, one per line.

    There are as many of each severity as GitHub shows, and then the number of the others. Paths
    must be relative to the repository. The last line has the totals, so that the log contains them
    too.
    """
    ordered = _sort_problems(problems, changed_paths)
    groups = [
        [problem for problem in ordered if problem.severity == level] for level in _SEVERITIES
    ]
    shown = chain.from_iterable(group[:_MAX_ANNOTATIONS] for group in groups)
    hidden = [*chain.from_iterable(group[_MAX_ANNOTATIONS:] for group in groups)]
    lines = [*map(_render_annotation, shown)]
    if hidden:
        lines.append(
            f"{format_counts(hidden)} more than GitHub shows next to the files: all of them are in "
            "the summary of this step."
        )
    lines.append(f"{format_counts(ordered)}, {pluralize(file_count, 'file')} read.")
    return "".join(f"{line}\n" for line in lines)


def render_summary(
    problems: Sequence[Problem], file_count: int, changed_paths: Collection[str] = ()
) -> str:
    """Return Markdown for a step summary: counts, who acts next, and the problems by file.

    The list is cut, with a note, at the size that GitHub accepts.
    """
    counts = f"{format_counts(problems)}, {pluralize(file_count, 'file')} read"
    next_step = _next_step(problems, changed_paths)
    parts = [f"### `toolcatalog check`: {counts}\n\n{next_step}\n"]
    size, listed_count = len(parts[0].encode()) + _SUMMARY_RESERVE, 0
    for group in _group_by_file(problems, changed_paths):
        section = _render_file_section(group, group[0].path in changed_paths)
        size += len(section.encode())
        if size > _MAX_SUMMARY_SIZE:
            break
        listed_count += min(len(group), _MAX_LISTED_PER_FILE)
        parts.append(section)
    if listed_count < len(problems):
        parts.append(
            f"\n**There are {len(problems) - listed_count:,} more than are listed here: "
            "`toolcatalog check` on your machine shows all of them.**\n"
        )
    return "".join(parts)


def render_sarif(
    problems: Sequence[Problem],
    file_count: int,
    changed_paths: Collection[str] = (),
    rules: Mapping[str, RuleDescription] | None = None,
) -> bytes:
    """Return a SARIF 2.1.0 log of one run, as JSON.

    It includes only those `rules` that have results.
    """
    ordered = _sort_problems(problems, changed_paths)
    shown = ordered[:_MAX_SARIF_RESULTS]
    names = sorted({problem.rule for problem in shown})
    driver = {
        "name": "toolcatalog",
        "semanticVersion": __version__,
        "rules": [_sarif_rule(name, (rules or {}).get(name)) for name in names],
    }
    notes = _sarif_notes(len(ordered) - len(shown))
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "columnKind": "unicodeCodePoints",
        "results": [*_sarif_results(shown, {name: index for index, name in enumerate(names)})],
        "properties": {"files": file_count},
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return dump_json({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _sarif_notes(hidden_count: int) -> list[dict[str, Any]]:
    if not hidden_count:
        return []
    count = pluralize(hidden_count, "problem")
    text = f"{count} more than code scanning takes: run `toolcatalog check`"
    return [{"level": "warning", "message": {"text": text}}]


def render_junit(
    problems: Sequence[Problem], file_count: int, changed_paths: Collection[str] = ()
) -> str:
    """Return JUnit XML with one test case per file with problems, and one for all other files.

    A test case fails if its file has an error.
    """
    groups = list(_group_by_file(problems, changed_paths))
    failed = len({problem.path for problem in problems if problem.severity == "error"})
    totals = {"tests": f"{len(groups) + 1}", "failures": f"{failed}", "errors": "0", "skipped": "0"}
    root = ET.Element("testsuites", totals)
    suite = ET.SubElement(root, "testsuite", {"name": "toolcatalog check", **totals})
    for group in groups:
        _add_problem_case(suite, group)
    others = pluralize(max(0, file_count - len(groups)), "file")
    _add_testcase(suite, f"{others} without problems")
    ET.indent(root, space="")
    return f"{_XML_DECLARATION}{ET.tostring(root, encoding='unicode')}\n"


def _rank(problem: Problem) -> int:
    return [*_SEVERITIES].index(problem.severity)


def _sort_problems(problems: Iterable[Problem], changed: Collection[str]) -> list[Problem]:
    """Return the problems, worst first; within a severity, those of changed files come first."""
    touched = frozenset(changed)
    return sorted(
        problems, key=lambda problem: (_rank(problem), problem.path not in touched, problem)
    )


def _group_by_file(
    problems: Iterable[Problem], changed: Collection[str]
) -> Iterator[list[Problem]]:
    """Yield the problems of each file by position.

    Changed files come first, then files with the worst problems.
    """
    by_path: defaultdict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        by_path[problem.path].append(problem)
    touched = frozenset(changed)
    ranked = sorted(
        by_path, key=lambda path: (path not in touched, min(map(_rank, by_path[path])), path)
    )
    return (sorted(by_path[path]) for path in ranked)


def _message_lines(problem: Problem) -> list[str]:
    """Return message, expectation and help, one line each.

    No line contains line breaks or hidden characters.
    """
    more = [
        f"{label}: {text}"
        for label, text in (("expected", problem.expected), ("help", problem.help))
        if text
    ]
    return [escape_hidden(" ".join(line.split())) for line in (problem.message, *more)]


def _render_annotation(problem: Problem) -> str:
    properties = {
        "file": problem.path,
        "line": problem.line,
        "endLine": problem.line,
        "col": problem.column,
        "endColumn": problem.column + problem.length,
        "title": problem.rule,
    }
    pairs = (
        f"{name}={_escape_property(escape_hidden(str(value)))}"
        for name, value in properties.items()
    )
    message = "\n".join((*_message_lines(problem), f"why: toolcatalog explain {problem.rule}"))
    return f"::{_SEVERITIES[problem.severity]} {','.join(pairs)}::{_escape_data(message)}"


def _escape_data(text: str) -> str:
    """Return a message escaped for a workflow command.

    A line end ends a message, and `%` begins an escape.
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    """Return a property value escaped for a workflow command.

    A comma ends a property, and a colon ends the list of properties.
    """
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _next_step(problems: Collection[Problem], changed: Collection[str]) -> str:
    """Return the paragraph that says who acts next, so that contributors need not guess."""
    errors = {problem.path for problem in problems if problem.severity == "error"}
    if errors and changed and errors.isdisjoint(changed):
        return (
            "**You act next:** no error is in a file that you changed. If you removed or renamed "
            "what these files name, fix them too; if not, the branch was broken before, and a "
            "maintainer fixes it: say so in the pull request."
        )
    if errors:
        return (
            "**You act next:** fix the errors, then push to the same branch: this runs again. "
            "`toolcatalog explain RULE` says why a rule is there."
        )
    if problems:
        return (
            "**A maintainer acts next:** nothing here blocks the merge. "
            "Warnings and notes are advice: fixing them makes the review shorter."
        )
    return "**A maintainer acts next:** there are no problems, and this can be reviewed and merged."


def _render_file_section(problems: Sequence[Problem], is_changed: bool) -> str:
    """Return a heading and a code fence with the problems of one file, not parsed as Markdown."""
    lines = [
        line for problem in problems[:_MAX_LISTED_PER_FILE] for line in _problem_lines(problem)
    ]
    fence = "`" * (1 + max((len(run) for line in lines for run in _FENCE.findall(line)), default=2))
    path, note = _code_span(problems[0].path), ", changed here" if is_changed else ""
    heading = f"{path}{note}: {format_counts(problems)}"
    return "\n".join((f"\n#### {heading}\n", f"{fence}text", *lines, fence, ""))


def _problem_lines(problem: Problem) -> Iterator[str]:
    first, *others = _message_lines(problem)
    yield f"{problem.line}:{problem.column} {problem.severity}[{problem.rule}] {first}"
    yield from (f"    {line}" for line in others)


def _code_span(name: str) -> str:
    """Return a path as a Markdown code span.

    Backticks, which no path of a catalog file should contain, are replaced by `?`.
    """
    return f"`{escape_hidden(' '.join(name.split())).replace('`', '?')}`"


def _sarif_rule(name: str, description: RuleDescription | None) -> dict[str, Any]:
    if description is None:
        return {"id": name}
    return {
        "id": name,
        "shortDescription": {"text": description.summary},
        "help": {"text": description.text, "markdown": description.text},
        "defaultConfiguration": {"level": description.level},
    }


def _sarif_results(
    problems: Iterable[Problem], rule_indexes: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield one result per problem.

    The fingerprint does not contain the line number, so it survives changes of lines. A counter
    distinguishes equal problems in a file.
    """
    counts: Counter[str] = Counter()
    for problem in problems:
        text = f"{problem.path}\0{problem.rule}\0{problem.message}\0{problem.excerpt.strip()}"
        fingerprint = sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
        counts[fingerprint] += 1
        yield {
            "ruleId": problem.rule,
            "ruleIndex": rule_indexes[problem.rule],
            "level": problem.severity,
            "message": {"text": "\n".join(_message_lines(problem))},
            "locations": [{"physicalLocation": _sarif_location(problem)}],
            "partialFingerprints": {
                "primaryLocationLineHash": f"{fingerprint}:{counts[fingerprint]}"
            },
        }


def _sarif_location(problem: Problem) -> dict[str, Any]:
    uri = quote(problem.path, errors="surrogateescape")
    region = {
        "startLine": problem.line,
        "startColumn": problem.column,
        "endColumn": problem.column + problem.length,
    }
    return {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}, "region": region}


def _add_problem_case(suite: ET.Element, problems: Sequence[Problem]) -> None:
    """Append the test case of one file: a failure if it has an error, else output only."""
    errors = [problem for problem in problems if problem.severity == "error"]
    first = (errors or problems)[0]
    case = _add_testcase(suite, _escape_xml(problems[0].path), file=_escape_xml(problems[0].path))
    title = _escape_xml(
        f"{format_counts(problems)}; first, line {first.line}: {_message_lines(first)[0]}"
    )
    result = (
        ET.SubElement(case, "failure", type=_escape_xml(first.rule), message=title)
        if errors
        else ET.SubElement(case, "system-out")
    )
    result.text = _escape_xml(
        "\n".join(line for problem in problems for line in _problem_lines(problem))
    )


def _add_testcase(suite: ET.Element, name: str, **attributes: str) -> ET.Element:
    attributes = {"classname": "toolcatalog.check", "name": name, **attributes}
    return ET.SubElement(suite, "testcase", attributes)


def _escape_xml(text: str) -> str:
    """Replace characters that XML forbids, and make hidden characters visible."""
    return _INVALID_XML.sub("\N{REPLACEMENT CHARACTER}", escape_hidden(text))
