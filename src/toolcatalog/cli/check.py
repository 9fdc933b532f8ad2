"""`toolcatalog check`"""

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from toolcatalog import build, files
from toolcatalog.cli import options, terminal
from toolcatalog.crew import calm, cores
from toolcatalog.errors import Problem, UsageError, remedy
from toolcatalog.memory import Verdict

_EPILOG = """\b
Examples:
  toolcatalog check
  toolcatalog check catalog/toolkits/github
  toolcatalog check --fix
  toolcatalog check --watch
  toolcatalog check --against origin/main
  toolcatalog check --format github --against origin/main --strict

The command `explain` says more about a rule. Exits with 0 where all is well, with 1 where there are errors (with --strict: or
warnings), with 2 where something could not be checked.
"""
_FORMATS = ("full", "concise", "json", "github", "sarif", "junit")
_SEVERITIES = ("error", "warning", "note")
_SHOWN = ("path", "line", "column", "rule", "severity", "message", "help")


class Asked(NamedTuple):
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
    watch: bool
    jobs: int | None
    out: Path | None


class Seen(NamedTuple):
    """The problems to be shown; how many there are elsewhere; files read; paths that have changed."""

    problems: Sequence[Problem]
    elsewhere: int
    files: int
    changed: Collection[str]


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
@click.option("--fix", is_flag=True, help="Mend what has one right answer, in the files.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Processes to work with.  [default: the number of cores]",
)
@click.option(
    "--out",
    type=options.FOLDER,
    help="Whose .cache remembers what has been checked.  [default: build, beside the catalog]",
)
def command(**said: Any) -> int:
    """Validate the catalog, or show only what is wrong at PATHS; write nothing but what is
    remembered for the next time.
    """
    asked = Asked(**said)
    _see_accepted(asked)
    calm()
    code = _once(asked)
    if asked.watch:
        _watched(asked)
    return code


def _see_accepted(asked: Asked) -> None:
    """Raise UsageError where --accept would mean nothing."""
    if not asked.accept:
        return
    from toolcatalog import suppressions  # noqa: PLC0415 - only here is it needed

    if asked.against is None:
        raise UsageError("--accept goes with --against REV: without it all comments count.")
    if unknown := sorted({*asked.accept} - suppressions.PROTECTED):
        raise UsageError(
            f"--accept {unknown[0]} is for rules that a change cannot silence itself only: "
            f"{', '.join(sorted(suppressions.PROTECTED))}."
        )


def _once(asked: Asked) -> int:
    seen = _seen(asked)
    if asked.fix and (mended := _mended(asked.catalog, seen.problems)):
        terminal.say(
            f"Mended {sum(mended.values()):,} problem(s) in {len(mended):,} file(s): "
            f"{', '.join(sorted(mended)[:5])}"
        )
        seen = _seen(asked)
    _show(seen, asked)
    failing = {"error", "warning"} if asked.strict else {"error"}
    return 1 if any(problem.severity in failing for problem in seen.problems) else 0


def _watched(asked: Asked) -> None:
    from watchfiles import watch  # noqa: PLC0415 - only here is it needed

    terminal.say(f"Watching {asked.catalog}; Ctrl-C ends.")
    for _ in watch(asked.catalog, raise_interrupt=True):
        terminal.say(f"--- {datetime.now(UTC).astimezone():%H:%M:%S}")
        _once(asked)


def _seen(asked: Asked) -> Seen:
    verdict = _verdict(asked)
    problems, changed = verdict.problems, frozenset[str]()
    if asked.against is not None:
        problems, changed = _with_history(asked, verdict)
    within = _within(asked)
    shown = [problem for problem in problems if _is_at(problem.path, within)]
    ordered = sorted(shown, key=lambda problem: problem.path not in changed)
    return Seen(ordered, len(problems) - len(shown), verdict.files, changed)


def _verdict(asked: Asked) -> Verdict:
    """Where nothing can be written, nothing is remembered, and that is all."""
    out = asked.out or asked.catalog.resolve().parent / "build"
    if os.access(out if out.exists() else out.parent, os.W_OK):
        return build.check(
            asked.catalog, out, _severities(asked), terminal.track, asked.jobs or cores()
        )
    from toolcatalog import checking  # noqa: PLC0415 - where nothing has changed, nobody needs all that checks

    checked = checking.check(asked.catalog, terminal.track, _severities(asked))
    return Verdict(checked.problems, checked.files, checked.catalog.about.rules)


def _with_history(asked: Asked, verdict: Verdict) -> tuple[Sequence[Problem], frozenset[str]]:
    """The problems with those that only a revision before can tell, and the paths that have changed
    since, as they are shown. What protects against a change is not silenced by that change.
    """
    from toolcatalog import against, checking, suppressions, tree  # noqa: PLC0415 - only here are they all needed

    since = against.since(asked.catalog, asked.against or "", f"{datetime.now(UTC):%Y-%m-%d}")
    changed = frozenset(tree.shown(asked.catalog, path) for path in since.changed)
    rules = suppressions.severities(asked.catalog, since.base, verdict.rules, asked.accept)
    lowered = suppressions.lowered(rules, verdict.rules)
    found = suppressions.security(
        asked.catalog,
        since.base,
        since.changed,
        everywhere=bool(lowered & suppressions.SECURITY),
    )
    more = suppressions.heard(asked.catalog, since.base, [*since.findings, *found], asked.accept)
    kept = [problem for problem in verdict.problems if problem.rule not in lowered]
    more = [
        suppressions.explained(problem, since.base) if problem.rule in lowered else problem
        for problem in more
    ]
    weighed = checking.weighed(rules, [*kept, *more])
    return [problem for problem in weighed if problem.severity in _severities(asked)], changed


def _within(asked: Asked) -> list[str]:
    """The paths whose problems are shown, as they are shown; none: all."""
    parent = asked.catalog.resolve().parent
    for path in asked.paths:
        if not path.resolve().is_relative_to(asked.catalog.resolve()):
            raise UsageError(
                f"{path} is not in {asked.catalog}: name files or folders of the catalog, or "
                "another one with --catalog."
            )
    return [str(path.resolve().relative_to(parent)) for path in asked.paths]


def _is_at(path: str, within: Sequence[str]) -> bool:
    return not within or any(path == one or path.startswith(f"{one}/") for one in within)


def _severities(asked: Asked) -> Sequence[str]:
    """Those that are shown."""
    return _SEVERITIES[: _SEVERITIES.index(asked.least) + 1]


def _mended(catalog: Path, problems: Sequence[Problem]) -> Counter[str]:
    """Mend what can be mended, file by file: how many problems of each file that were. A file that
    becomes no better stays as it was.
    """
    from toolcatalog import checking, fixing  # noqa: PLC0415 - only here is it needed

    mended: Counter[str] = Counter()
    paths = {problem.path: None for problem in problems if problem.fix is not None}
    for path in paths:
        files.refuse_links(catalog.resolve().parent / path, catalog.resolve())
    for path in paths:
        file, name = catalog.resolve().parent / path, path.partition("/")[2]
        before = file.read_bytes()
        old = Counter(problem.rule for problem in checking.examine(catalog, name).problems)
        fixed = fixing.settled(
            before,
            [problem for problem in problems if problem.path == path],
            partial(_looked, catalog, name),
        )
        new = Counter(problem.rule for problem in _looked(catalog, name, fixed.data))
        if new - old or (new == old and fixed.errors):
            _write(file, before)
        else:
            mended[path] = fixed.mended
    return mended


def _looked(catalog: Path, name: str, data: bytes) -> Sequence[Problem]:
    """The problems of one file, once it holds these bytes."""
    from toolcatalog import checking  # noqa: PLC0415 - only here is it needed

    _write(catalog.resolve() / name, data)
    return checking.examine(catalog, name).problems


def _write(file: Path, data: bytes) -> None:
    try:
        files.write_changed(file, data)
    except OSError as error:
        raise UsageError(
            f"Cannot write {file} ({error.strerror}): {remedy(error)}, and check again."
        ) from None


def _show(seen: Seen, asked: Asked) -> None:
    match asked.form:
        case "json":
            rows = [{name: getattr(problem, name) for name in _SHOWN} for problem in seen.problems]
            click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
        case "concise":
            click.echo(
                "".join(
                    f"{_place(problem)}: {problem.rule}: {problem.message}\n"
                    for problem in seen.problems
                ),
                nl=False,
            )
        case "full":
            terminal.problems(seen.problems, seen.files, _rest(seen))
        case _:
            _report(seen, asked)


def _rest(seen: Seen) -> str:
    return f"{seen.elsewhere:,} elsewhere in the catalog." if seen.elsewhere else ""


def _place(problem: Problem) -> str:
    return f"{problem.path}:{problem.line}:{problem.column}"


def _report(seen: Seen, asked: Asked) -> None:
    """What other programs read. Paths are relative to the root of the repository, as those expect
    it.
    """
    from toolcatalog import reports, rulebook  # noqa: PLC0415 - only here are they needed

    root = _root(asked.catalog.resolve().parent)
    problems = [replace(problem, path=f"{root}{problem.path}") for problem in seen.problems]
    changed = {f"{root}{path}" for path in seen.changed}
    if asked.form == "sarif":
        rules = {
            rule: reports.Advice(
                rulebook.summary(rule), rulebook.page(rule), rulebook.severity(rule)
            )
            for rule in {problem.rule for problem in problems}
        }
        click.echo(reports.sarif(problems, seen.files, changed, rules))
    elif asked.form == "junit":
        click.echo(reports.junit(problems, seen.files, changed), nl=False)
    else:
        click.echo(reports.github(problems, seen.files, changed), nl=False)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as page:
                page.write(reports.summary(problems, seen.files, changed))


def _root(folder: Path) -> str:
    """The path of a folder in its repository, with a slash behind it; empty where it is the root,
    or in no repository.
    """
    root = next(
        (parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder
    )
    return "" if root == folder else f"{folder.relative_to(root).as_posix()}/"
