"""`toolcatalog check`: validate a catalog and report all problems."""

import fnmatch
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from toolcatalog import names
from toolcatalog.build import pipeline
from toolcatalog.build.state import CheckResult
from toolcatalog.cli import options, output
from toolcatalog.errors import Problem, UsageError
from toolcatalog.system.processes import available_cpus, tune_garbage_collection
from toolcatalog.validation import reports, rule_pages

_EPILOG = """\b
Examples:
  toolcatalog check
  toolcatalog check catalog/toolkits/github
  toolcatalog check --fix
  toolcatalog check --fix --unsafe      also likely keys, lists, `.yml` and the case of folders
  toolcatalog check --watch
  toolcatalog check --against origin/main
  toolcatalog check --format github --against origin/main --strict
  toolcatalog check --select "history-*,link-*" --min-severity note
  toolcatalog check --ignore description-short > findings.txt

Problems are printed to standard output, progress to standard error. The command `explain` explains
a rule. Exits with 1 if there are errors (with --strict: or warnings), and with 2 if something
cannot be checked.
"""
_FORMATS = ("full", "concise", "json", "github", "sarif", "junit")
_SEVERITIES = ("error", "warning", "note")
_JSON_FIELDS = ("path", "line", "column", "rule", "severity", "message", "help")


class CheckOptions(NamedTuple):
    """The options of the command: what to check, which problems to show and how, and what to do."""

    paths: Sequence[Path]
    catalog: Path
    output_format: str
    against: str | None
    accept: Sequence[str]
    minimum_severity: str
    select: Sequence[str]
    ignore: Sequence[str]
    strict: bool
    fix: bool
    unsafe: bool
    watch: bool
    jobs: int | None
    cache_folder: Path | None


class ShownProblems(NamedTuple):
    """The problems to show, the number of other problems, files read, and the changed paths."""

    problems: Sequence[Problem]
    hidden_count: int
    files: int
    changed_paths: Collection[str]


@click.command("check", epilog=_EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@options.catalog
@click.option(
    "--format",
    "output_format",
    type=click.Choice(_FORMATS),
    default="full",
    show_default=True,
    help="The output format.",
)
@click.option(
    "--against",
    metavar="REV",
    help="Compare with a git revision: published versions may not change.",
)
@options.name_list(
    "--accept",
    metavar="RULE",
    help="With --against: accept suppressions of this security or history rule in the change",
)
@click.option(
    "--min-severity",
    "minimum_severity",
    type=click.Choice(_SEVERITIES),
    default="warning",
    show_default=True,
    help="The lowest severity to report.",
)
@options.name_list(
    "--select", metavar="RULE", help="Report these rules only; `history-*` selects several"
)
@options.name_list("--ignore", metavar="RULE", help="Do not report these rules")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@click.option(
    "--unsafe",
    is_flag=True,
    help="With --fix: also apply fixes that are probably right, and rename files.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Number of worker processes.  [default: the number of cores]",
)
@click.option(
    "--cache-dir",
    "cache_folder",
    type=options.FOLDER_TYPE,
    help="The folder of the cache.  [default: the build folder next to the catalog]",
)
def command(**values: Any) -> int:
    """Validate the catalog and print its problems, or only those at PATHS.

    Nothing is written except the cache.
    """
    check_options = CheckOptions(**values)
    if check_options.unsafe and not check_options.fix:
        raise UsageError("--unsafe goes with --fix: it allows more fixes.")
    tune_garbage_collection()
    code = _check_once(check_options)
    if check_options.watch:
        _watch_catalog(check_options)
    return code


def _check_once(check_options: CheckOptions) -> int:
    report = _run_check(check_options)
    if check_options.fix:
        from toolcatalog.cli import check_fixes  # noqa: PLC0415 - loads the whole checker

        catalog, unsafe = check_options.catalog, check_options.unsafe
        is_selected = partial(_is_selected, selected=_selected_paths(check_options))
        if unsafe and check_fixes.rename_files(catalog, is_selected):
            report = _run_check(check_options)
        fix_counts = check_fixes.apply_fixes(catalog, report.problems, unsafe=unsafe)
        if fix_counts:
            problem_count, file_count = sum(fix_counts.values()), len(fix_counts)
            output.print_message(
                f"Fixed {problem_count:,} problem{'s' * (problem_count != 1)} in {file_count:,} "
                f"file{'s' * (file_count != 1)}: {', '.join(sorted(fix_counts)[:5])}"
            )
            report = _run_check(check_options)
    _print_result(report, check_options)
    failing = {"error", "warning"} if check_options.strict else {"error"}
    return 1 if any(problem.severity in failing for problem in report.problems) else 0


def _watch_catalog(check_options: CheckOptions) -> None:
    from watchfiles import watch  # noqa: PLC0415 - slow import

    output.print_message(f"Watching {check_options.catalog}; Ctrl-C ends.")
    for _ in watch(check_options.catalog, raise_interrupt=True):
        output.print_message(f"--- {datetime.now(UTC).astimezone():%H:%M:%S}")
        _check_once(check_options)


def _run_check(check_options: CheckOptions) -> ShownProblems:
    if check_options.against is None and not check_options.accept:
        result = _check_catalog(check_options)
        return _select_problems(check_options, result.problems, result.files, frozenset())
    from toolcatalog.cli import check_history  # noqa: PLC0415 - loads git and the whole checker

    check_history.check_accepted_rules(check_options.accept, check_options.against)
    result = _check_catalog(check_options)
    problems, changed_paths = check_history.add_history(
        check_options.catalog, result, check_options.against or "", check_options.accept
    )
    severities = _shown_severities(check_options)
    problems = [problem for problem in problems if problem.severity in severities]
    return _select_problems(check_options, problems, result.files, changed_paths)


def _select_problems(
    check_options: CheckOptions,
    problems: Sequence[Problem],
    file_count: int,
    changed_paths: Collection[str],
) -> ShownProblems:
    """Return the problems at the selected paths, those of changed files first."""
    selected = _selected_paths(check_options)
    problems = [*_filter_rules(problems, check_options.select, check_options.ignore)]
    visible = [problem for problem in problems if _is_selected(problem.path, selected)]
    visible.sort(key=lambda problem: problem.path not in changed_paths)
    return ShownProblems(visible, len(problems) - len(visible), file_count, changed_paths)


def _filter_rules(
    problems: Sequence[Problem], select: Sequence[str], ignore: Sequence[str]
) -> Iterator[Problem]:
    """Yield the problems of rules that are selected and not ignored.

    Raises UsageError if a pattern fits no rule.
    """
    if not (select or ignore):
        yield from problems
        return
    for pattern in (*select, *ignore):
        if not fnmatch.filter(rule_pages.rule_ids(), pattern):
            nearest = names.find_nearest(pattern, rule_pages.rule_ids())
            hint = f"did you mean {nearest[0]}?" if nearest else "`toolcatalog explain` lists all."
            raise UsageError(f"There is no rule {pattern}: {hint}")
    for problem in problems:
        is_selected = not select or _fits_any(problem.rule, select)
        if is_selected and not _fits_any(problem.rule, ignore):
            yield problem


def _fits_any(rule: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(rule, pattern) for pattern in patterns)


def _check_catalog(check_options: CheckOptions) -> CheckResult:
    """Check with the cache, or without one if the folder for it cannot be written."""
    cache_folder = check_options.cache_folder or check_options.catalog.resolve().parent / "build"
    if os.access(cache_folder if cache_folder.exists() else cache_folder.parent, os.W_OK):
        return pipeline.check(
            check_options.catalog,
            cache_folder,
            _shown_severities(check_options),
            output.show_progress,
            check_options.jobs or available_cpus(),
        )
    from toolcatalog.validation import checker  # noqa: PLC0415 - slow import, rarely needed

    result = checker.check_folder(
        check_options.catalog, output.show_progress, _shown_severities(check_options)
    )
    return CheckResult(result.problems, result.file_count, result.catalog.about.rules)


def _selected_paths(check_options: CheckOptions) -> list[str]:
    """Return the selected paths as problems name them. An empty list selects all."""
    parent = check_options.catalog.resolve().parent
    for path in check_options.paths:
        if not path.resolve().is_relative_to(check_options.catalog.resolve()):
            raise UsageError(
                f"{path} is not in {check_options.catalog}: name files or folders of the catalog,"
                " or another one with --catalog."
            )
    return [str(path.resolve().relative_to(parent)) for path in check_options.paths]


def _is_selected(path: str, selected: Sequence[str]) -> bool:
    return not selected or any(
        path == prefix or path.startswith(f"{prefix}/") for prefix in selected
    )


def _shown_severities(check_options: CheckOptions) -> Sequence[str]:
    """Return the severities to show."""
    return _SEVERITIES[: _SEVERITIES.index(check_options.minimum_severity) + 1]


def _print_result(report: ShownProblems, check_options: CheckOptions) -> None:
    match check_options.output_format:
        case "json":
            rows = [
                {name: getattr(problem, name) for name in _JSON_FIELDS}
                for problem in report.problems
            ]
            click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
        case "concise":
            click.echo(
                "".join(
                    f"{_format_location(problem)}: {problem.rule}: {problem.message}\n"
                    for problem in report.problems
                ),
                nl=False,
            )
        case "full":
            output.print_problems(
                report.problems, report.files, _summarize_hidden(report), to_stdout=True
            )
        case _:
            _print_report(report, check_options)


def _summarize_hidden(report: ShownProblems) -> str:
    return f"{report.hidden_count:,} elsewhere in the catalog." if report.hidden_count else ""


def _format_location(problem: Problem) -> str:
    return f"{problem.path}:{problem.line}:{problem.column}"


def _print_report(report: ShownProblems, check_options: CheckOptions) -> None:
    """Print a report for another program, with paths relative to the root of the repository."""
    root = _repository_prefix(check_options.catalog.resolve().parent)
    problems = [replace(problem, path=f"{root}{problem.path}") for problem in report.problems]
    changed = {f"{root}{path}" for path in report.changed_paths}
    if check_options.output_format == "sarif":
        rules = {
            rule: reports.RuleDescription(
                rule_pages.load_summary(rule),
                rule_pages.load_page(rule),
                rule_pages.default_severity(rule),
            )
            for rule in {problem.rule for problem in problems}
        }
        click.echo(reports.render_sarif(problems, report.files, changed, rules))
    elif check_options.output_format == "junit":
        click.echo(reports.render_junit(problems, report.files, changed), nl=False)
    else:
        click.echo(reports.render_github(problems, report.files, changed), nl=False)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as page:
                page.write(reports.render_summary(problems, report.files, changed))


def _repository_prefix(folder: Path) -> str:
    """Return the path of a folder in its repository, with a final slash.

    It is empty for the root, and outside a repository.
    """
    root = next(
        (parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder
    )
    return "" if root == folder else f"{folder.relative_to(root).as_posix()}/"
