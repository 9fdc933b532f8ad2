"""`toolcatalog check`"""

import os
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from toolcatalog.build import pipeline
from toolcatalog.build.state import CheckResult
from toolcatalog.cli import options, output
from toolcatalog.errors import Problem, UsageError, remedy
from toolcatalog.system import files
from toolcatalog.system.processes import available_cpus, tune_garbage_collection

_EPILOG = """\b
Examples:
  toolcatalog check
  toolcatalog check catalog/toolkits/github
  toolcatalog check --fix
  toolcatalog check --fix --unsafe      also likely keys, lists, `.yml` and the case of folders
  toolcatalog check --watch
  toolcatalog check --against origin/main
  toolcatalog check --format github --against origin/main --strict

The command `explain` says more about a rule. Exits with 0 where all is well, with 1 where there are errors (with --strict: or
warnings), with 2 where something could not be checked.
"""
_FORMATS = ("full", "concise", "json", "github", "sarif", "junit")
_SEVERITIES = ("error", "warning", "note")
_JSON_FIELDS = ("path", "line", "column", "rule", "severity", "message", "help")


class CheckOptions(NamedTuple):
    """What is to be checked, which problems are to be shown, in which form, and what is to be done
    about them: the options.
    """

    paths: Sequence[Path]
    catalog: Path
    form: str
    against: str | None
    accept: Sequence[str]
    least: str
    strict: bool
    fix: bool
    unsafe: bool
    watch: bool
    jobs: int | None
    out: Path | None


class ShownProblems(NamedTuple):
    """The problems to be shown; how many there are elsewhere; files read; paths that have changed."""

    problems: Sequence[Problem]
    hidden_count: int
    files: int
    changed_paths: Collection[str]


@click.command("check", epilog=_EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@options.catalog
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="full",
    show_default=True,
    help="How problems are shown.",
)
@click.option(
    "--against",
    metavar="REV",
    help="A revision of git: what has been published may not change, and changed files come first.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="RULE",
    help="With --against: let the change itself silence this rule of security or history.",
)
@click.option(
    "--least",
    type=click.Choice(_SEVERITIES),
    default="warning",
    show_default=True,
    help="The least that is shown.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@click.option(
    "--unsafe",
    is_flag=True,
    help="With --fix: apply fixes that are probably right too, and rename files.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Processes to work with.  [default: the number of cores]",
)
@click.option(
    "--out",
    type=options.FOLDER_TYPE,
    help="Whose .cache remembers what has been checked.  [default: build, beside the catalog]",
)
def command(**values: Any) -> int:
    """Validate the catalog, or show only what is wrong at PATHS; write nothing but what is
    remembered for the next time.
    """
    asked = CheckOptions(**values)
    _check_accept_option(asked)
    if asked.unsafe and not asked.fix:
        raise UsageError("--unsafe goes with --fix: it allows more fixes.")
    tune_garbage_collection()
    code = _check_once(asked)
    if asked.watch:
        _watch_catalog(asked)
    return code


def _check_accept_option(asked: CheckOptions) -> None:
    """Raise UsageError where --accept would mean nothing."""
    if not asked.accept:
        return
    from toolcatalog.history import base_suppressions  # noqa: PLC0415 - only here is it needed

    if asked.against is None:
        raise UsageError("--accept goes with --against REV: without it all comments count.")
    if unknown := sorted({*asked.accept} - base_suppressions.PROTECTED_RULES):
        raise UsageError(
            f"--accept {unknown[0]} is for rules that a change cannot silence itself only: "
            f"{', '.join(sorted(base_suppressions.PROTECTED_RULES))}."
        )


def _check_once(check_options: CheckOptions) -> int:
    if check_options.fix and check_options.unsafe:
        _rename_files(check_options)
    seen = _run_check(check_options)
    if check_options.fix and (fixed := _apply_fixes(check_options, seen.problems)):
        problem_count, file_count = sum(fixed.values()), len(fixed)
        output.print_message(
            f"Fixed {problem_count:,} problem{'s' * (problem_count != 1)} in {file_count:,} "
            f"file{'s' * (file_count != 1)}: {', '.join(sorted(fixed)[:5])}"
        )
        seen = _run_check(check_options)
    _print_result(seen, check_options)
    failing = {"error", "warning"} if check_options.strict else {"error"}
    return 1 if any(problem.severity in failing for problem in seen.problems) else 0


def _watch_catalog(check_options: CheckOptions) -> None:
    from watchfiles import watch  # noqa: PLC0415 - only here is it needed

    output.print_message(f"Watching {check_options.catalog}; Ctrl-C ends.")
    for _ in watch(check_options.catalog, raise_interrupt=True):
        output.print_message(f"--- {datetime.now(UTC).astimezone():%H:%M:%S}")
        _check_once(check_options)


def _run_check(check_options: CheckOptions) -> ShownProblems:
    verdict = _check_catalog(check_options)
    problems, changed = verdict.problems, frozenset[str]()
    if check_options.against is not None:
        problems, changed = _add_history(check_options, verdict)
    within = _selected_paths(check_options)
    shown = [problem for problem in problems if _is_selected(problem.path, within)]
    ordered = sorted(shown, key=lambda problem: problem.path not in changed)
    return ShownProblems(ordered, len(problems) - len(shown), verdict.files, changed)


def _check_catalog(check_options: CheckOptions) -> CheckResult:
    """Where nothing can be written, nothing is remembered, and that is all."""
    out = check_options.out or check_options.catalog.resolve().parent / "build"
    if os.access(out if out.exists() else out.parent, os.W_OK):
        return pipeline.check(
            check_options.catalog,
            out,
            _shown_severities(check_options),
            output.show_progress,
            check_options.jobs or available_cpus(),
        )
    from toolcatalog.validation import checker  # noqa: PLC0415 - where nothing has changed, nobody needs all that checks

    checked = checker.check_folder(
        check_options.catalog, output.show_progress, _shown_severities(check_options)
    )
    return CheckResult(checked.problems, checked.file_count, checked.catalog.about.rules)


def _add_history(
    check_options: CheckOptions, verdict: CheckResult
) -> tuple[Sequence[Problem], frozenset[str]]:
    """The problems with those that only a revision before can tell, and the paths that have changed
    since, as they are shown. What protects against a change is not silenced by that change.
    """
    from toolcatalog.catalog import folder  # noqa: PLC0415 - only here are they all needed
    from toolcatalog.history import base_suppressions, targets  # noqa: PLC0415
    from toolcatalog.validation import checker  # noqa: PLC0415

    since = targets.check_against_revision(
        check_options.catalog, check_options.against or "", f"{datetime.now(UTC):%Y-%m-%d}"
    )
    changed = frozenset(
        folder.display_path(check_options.catalog, path) for path in since.changed_paths
    )
    rules = base_suppressions.protect_severities(
        check_options.catalog, since.base, verdict.rules, check_options.accept
    )
    lowered = base_suppressions.find_lowered_rules(rules, verdict.rules)
    found = base_suppressions.check_security(
        check_options.catalog,
        since.base,
        since.changed_paths,
        everywhere=bool(lowered & base_suppressions.SECURITY_RULES),
    )
    more = base_suppressions.locate_unsuppressed(
        check_options.catalog, since.base, [*since.findings, *found], check_options.accept
    )
    kept = [problem for problem in verdict.problems if problem.rule not in lowered]
    more = [
        base_suppressions.explain_lowered(problem, since.base)
        if problem.rule in lowered
        else problem
        for problem in more
    ]
    weighed = checker.apply_severities(rules, [*kept, *more])
    return [
        problem for problem in weighed if problem.severity in _shown_severities(check_options)
    ], changed


def _selected_paths(check_options: CheckOptions) -> list[str]:
    """The paths whose problems are shown, as they are shown; none: all."""
    parent = check_options.catalog.resolve().parent
    for path in check_options.paths:
        if not path.resolve().is_relative_to(check_options.catalog.resolve()):
            raise UsageError(
                f"{path} is not in {check_options.catalog}: name files or folders of the catalog, or "
                "another one with --catalog."
            )
    return [str(path.resolve().relative_to(parent)) for path in check_options.paths]


def _is_selected(path: str, selected: Sequence[str]) -> bool:
    return not selected or any(path == one or path.startswith(f"{one}/") for one in selected)


def _shown_severities(check_options: CheckOptions) -> Sequence[str]:
    """Those that are shown."""
    return _SEVERITIES[: _SEVERITIES.index(check_options.least) + 1]


def _rename_files(check_options: CheckOptions) -> None:
    """Rename files whose names are probably meant otherwise, such as `.yml`."""
    from toolcatalog.catalog import folder  # noqa: PLC0415 - only here are they needed
    from toolcatalog.validation import fixes  # noqa: PLC0415

    root = check_options.catalog.resolve()
    within = _selected_paths(check_options)
    for path in folder.list_paths(root)[0]:
        target = fixes.suggest_path(path)
        if target is None or not _is_selected(folder.display_path(root, path), within):
            continue
        if os.path.lexists(root / target):
            output.print_message(f"{path} stays: {target} is there already.")
            continue
        for name in (path, target):
            files.require_no_links(root / name, root)
        _move_file(root, path, target)
        output.print_message(f"Renamed {path} to {target}")


def _move_file(root: Path, path: str, target: str) -> None:
    """Move a file within the catalog, and remove the folders that are empty then."""
    try:
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (root / path).rename(root / target)
    except OSError as error:
        raise UsageError(
            f"Cannot rename {root / path} ({error.strerror}): {remedy(error)}, and check again."
        ) from None
    for parent in Path(path).parents:
        with suppress(OSError):
            (root / parent).rmdir()


def _apply_fixes(check_options: CheckOptions, problems: Sequence[Problem]) -> Counter[str]:
    """Fix files, and return the number of problems fixed in each.

    A file that becomes no better stays as it was.
    """
    from toolcatalog.validation import checker, fixes  # noqa: PLC0415 - only here is it needed

    catalog, unsafe = check_options.catalog, check_options.unsafe
    fix_counts: Counter[str] = Counter()
    paths = {
        problem.path: None
        for problem in problems
        if fixes.select_fix(problem, unsafe=unsafe) is not None
    }
    for path in paths:
        files.require_no_links(catalog.resolve().parent / path, catalog.resolve())
    for path in paths:
        file, name = catalog.resolve().parent / path, path.partition("/")[2]
        before = file.read_bytes()
        old = Counter(problem.rule for problem in checker.check_file(catalog, name).problems)
        fixed = fixes.fix_until_stable(
            before,
            [problem for problem in problems if problem.path == path],
            partial(_check_file, catalog, name),
            unsafe=unsafe,
        )
        new = Counter(problem.rule for problem in _check_file(catalog, name, fixed.data))
        if new - old or (new == old and fixed.error_count):
            _write_file(file, before)
        else:
            fix_counts[path] = fixed.fix_count
    return fix_counts


def _check_file(catalog: Path, name: str, data: bytes) -> Sequence[Problem]:
    """The problems of one file, once it holds these bytes."""
    from toolcatalog.validation import checker  # noqa: PLC0415 - only here is it needed

    _write_file(catalog.resolve() / name, data)
    return checker.check_file(catalog, name).problems


def _write_file(file: Path, data: bytes) -> None:
    try:
        files.write_if_changed(file, data)
    except OSError as error:
        raise UsageError(
            f"Cannot write {file} ({error.strerror}): {remedy(error)}, and check again."
        ) from None


def _print_result(shown: ShownProblems, check_options: CheckOptions) -> None:
    match check_options.form:
        case "json":
            rows = [
                {name: getattr(problem, name) for name in _JSON_FIELDS}
                for problem in shown.problems
            ]
            click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
        case "concise":
            click.echo(
                "".join(
                    f"{_format_location(problem)}: {problem.rule}: {problem.message}\n"
                    for problem in shown.problems
                ),
                nl=False,
            )
        case "full":
            output.print_problems(shown.problems, shown.files, _summarize_hidden(shown))
        case _:
            _print_report(shown, check_options)


def _summarize_hidden(shown: ShownProblems) -> str:
    return f"{shown.hidden_count:,} elsewhere in the catalog." if shown.hidden_count else ""


def _format_location(problem: Problem) -> str:
    return f"{problem.path}:{problem.line}:{problem.column}"


def _print_report(shown: ShownProblems, check_options: CheckOptions) -> None:
    """What other programs read. Paths are relative to the root of the repository, as those expect
    it.
    """
    from toolcatalog.validation import reports, rule_pages  # noqa: PLC0415 - only here are they needed

    root = _repository_prefix(check_options.catalog.resolve().parent)
    problems = [replace(problem, path=f"{root}{problem.path}") for problem in shown.problems]
    changed = {f"{root}{path}" for path in shown.changed_paths}
    if check_options.form == "sarif":
        rules = {
            rule: reports.RuleDescription(
                rule_pages.load_summary(rule),
                rule_pages.load_page(rule),
                rule_pages.default_severity(rule),
            )
            for rule in {problem.rule for problem in problems}
        }
        click.echo(reports.render_sarif(problems, shown.files, changed, rules))
    elif check_options.form == "junit":
        click.echo(reports.render_junit(problems, shown.files, changed), nl=False)
    else:
        click.echo(reports.render_github(problems, shown.files, changed), nl=False)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as page:
                page.write(reports.render_summary(problems, shown.files, changed))


def _repository_prefix(folder: Path) -> str:
    """The path of a folder in its repository, with a slash behind it; empty where it is the root,
    or in no repository.
    """
    root = next(
        (parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder
    )
    return "" if root == folder else f"{folder.relative_to(root).as_posix()}/"
