"""A folder to a catalog, or to everything that is wrong with it: source, schema and rules, in this
order.

One file with problems never hides those of another: it is replaced by a stub of its name while the
rules look at the rest.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from toolcatalog import advice, hearing, rules, schema, source, tree
from toolcatalog.errors import MOST, Finding, Problem
from toolcatalog.model import (
    ROUTER,
    UNKNOWN,
    About,
    AuthConfig,
    Catalog,
    Listed,
    MetaTool,
    Session,
    Toolkit,
    ToolVersion,
)
from toolcatalog.progress import Track, quietly
from toolcatalog.source import Document

_AT_ONCE = 64  # files that go through a step together
_NAMED = ("name-toolkit", "name-tool")  # told of at the first file of a folder only
_key = attrgetter("path", "line", "column", "rule", "message", "expected", "help", "severity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The catalog (with stubs where there are problems), all problems sorted by place, and how many
    files were read.

    `advice` is what else there is to say, without places yet; it may be much, and finding a place
    means to read a file once more.
    """

    catalog: Catalog
    problems: tuple[Problem, ...]
    files: int
    advice: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One file by itself: its record, or a stub of it where it has problems; None where no file
    belongs at its path.
    """

    path: str
    record: schema.Record | None
    problems: Sequence[Problem]
    digest: str
    advice: Sequence[Finding] = ()


def check(
    root: Path, track: Track = quietly, severities: Collection[str] = advice.SEVERITIES
) -> Checked:
    """Read and check every file of a catalog, here and without a cache. Raises UsageError where
    `root` is not a folder.
    """
    paths, problems = tree.scan(root)
    examined = []
    with track("Reading", len(paths)) as advance:
        for one in examine_all(root, paths):
            examined.append(one)
            advance(1)
    checked = conclude(root, examined, [], problems, severities)
    told = [
        problem
        for path, some in hearing.by_path(checked.advice).items()
        for problem in hearing.heard(root, path, some)
    ]
    return replace(
        checked, problems=weighed(checked.catalog.about.rules, [*checked.problems, *told])
    )


def examine(root: Path, path: str) -> Examined:
    """Read one file and hold it against its schema."""
    (examined,) = examine_all(root, [path])
    return examined


def examine_all(root: Path, paths: Sequence[str]) -> Iterator[Examined]:
    """The same for each of several files. Some go through each step together: a processor's caches
    do not hold the code of all steps.
    """
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        loaded = [source.load(root, path) for path in some]
        shaped = [
            schema.record(document) if document and document.readable else (None, [])
            for document, _ in loaded
        ]
        said = [
            advice.of_record(path, record) for path, (record, _) in zip(some, shaped, strict=True)
        ]
        yield from map(partial(_examined, root), some, loaded, shaped, said)


def _examined(
    root: Path,
    path: str,
    loaded: tuple[Document | None, list[Problem]],
    shaped: tuple[schema.Record | None, list[Finding]],
    said: list[Finding],
) -> Examined:
    (document, faults), (record, findings) = loaded, shaped
    if document is None:
        return Examined(path=path, record=None, problems=faults, digest="")
    problems = [*faults, *source.locate(root, findings), *hearing.misheard(root, document)]
    said = [*said, *hearing.of_comments(root, document)]
    return Examined(
        path=path,
        record=record or _stub(document),
        problems=problems,
        digest=document.digest,
        advice=said,
    )


def advised(examined: Collection[Examined]) -> list[Finding]:
    """The advice for these files, which hold all versions of their tools. What is published stays
    as it is, so of a tool's older versions only that is told which is still to be mended.
    """
    newest: dict[str, str] = {}
    for one in examined:
        folder = one.path.rpartition("/")[0]
        newest[folder] = max(newest.get(folder, ""), one.path)
    current = {*newest.values()}
    return [
        finding
        for one in examined
        for finding in one.advice
        if one.path in current or advice.holds_for_older(finding.rule)
    ]


def weighed(rules: Mapping[str, str], problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems with the severity that they have where catalog.yaml says this of rules: those worth
    telling, sorted by place.
    """
    levels = ((problem, advice.severity(problem.rule, rules)) for problem in problems)
    told = ((problem, level) for problem, level in levels if level in advice.SEVERITIES)
    return _worth_telling(
        problem if problem.severity == level else replace(problem, severity=level)
        for problem, level in told
    )


def conclude(
    root: Path,
    examined: Collection[Examined],
    tools: Sequence[Listed],
    unreadable: Iterable[Problem],
    severities: Collection[str] = advice.SEVERITIES,
) -> Checked:
    """Put the examined files together with tools that were found sound before, and hold them all
    against each other.

    Advice is given as far as it weighs as much as one of the `severities`; that for the tools found
    sound before is not among it.
    """
    catalog = assemble([(one.path, one.record) for one in examined if one.record], tools)
    broken = {one.path for one in examined if one.problems}
    findings = [*rules.check(catalog, broken), *advice.misnamed(catalog.about)]
    heeded = advice.heeded(catalog.about, severities)
    said = [finding for finding in advised(examined) if finding.rule in heeded]
    said += [
        finding for finding in advice.of_catalog(catalog, heeded) if finding.path not in broken
    ]
    if not any(isinstance(one.record, About) for one in examined):
        help = "write one with at least `title`"
        findings.append(
            Finding(
                path="catalog.yaml",
                rule="catalog-missing",
                message="there is no catalog.yaml",
                help=help,
            )
        )
    problems = [
        *unreadable,
        *(problem for one in examined for problem in one.problems),
        *source.locate(root, findings),
    ]
    return Checked(
        catalog=catalog,
        problems=_worth_telling(problems),
        files=len(examined) + len(tools),
        advice=said,
    )


def _worth_telling(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems sorted by place, each once.

    A misnamed folder is told of at the first of its files only; of a value that could not be read
    only that is told; and of a file with very many problems only the first.
    """
    # several times quicker than to sort the records themselves
    by_key = {_key(problem): problem for problem in problems}
    found = [by_key[key] for key in sorted(by_key)]
    valueless = {
        _place(problem) for problem in found if problem.rule in ("yaml-alias", "yaml-number")
    }
    found = [
        problem
        for problem in found
        if problem.rule.startswith("yaml-") or _place(problem) not in valueless
    ]
    named = {(one.rule, one.message): one for one in reversed(found) if one.rule in _NAMED}
    found = [one for one in found if one.rule not in _NAMED or named[one.rule, one.message] is one]
    by_path = groupby(found, key=attrgetter("path"))
    return tuple(problem for _, some in by_path for problem in _at_most([*some]))


def _at_most(problems: list[Problem]) -> list[Problem]:
    """The problems of one file, but where they are more than `MOST` the worst of them, by place, and
    one that says so.
    """
    if len(problems) <= MOST:
        return problems
    problems.sort(key=lambda problem: advice.SEVERITIES.index(problem.severity))
    message, help = (
        f"there are more problems in this file than these {MOST}",
        "mend these and check again",
    )
    return [
        *sorted(problems[:MOST], key=_key),
        replace(
            problems[MOST],
            rule="too-many",
            message=message,
            expected="",
            help=help,
            severity="error",
        ),
    ]


def _place(problem: Problem) -> tuple[str, int, int]:
    return problem.path, problem.line, problem.column


def _stub(document: Document) -> schema.Record:
    """A record that has nothing but the identity that its path gives."""
    place, path = document.place.names, document.path
    match document.place.kind:
        case "catalog":
            return About(title="")
        case "toolkit":
            return Toolkit(slug=place.get("toolkit", ROUTER), name="", logo="")
        case "tool":
            empty: dict[str, Any] = {"name": "", "description": ""}
            return ToolVersion.of(
                empty,
                path=path,
                slug=place["tool"],
                toolkit=place["toolkit"],
                version=place["version"],
            )
        case "meta_tool":
            return MetaTool(path=path, slug=place["tool"], version=place["version"], template={})
        case "auth_config":
            return AuthConfig(path=path, id=place["auth_config"], toolkit=UNKNOWN)
        case _:
            return Session(
                path=path, id=place["session"], tools={}, auth_configs={}, toolkit_versions={}
            )


def assemble(records: Sequence[tuple[str, schema.Record]], tools: Sequence[Listed] = ()) -> Catalog:
    """The catalog of these records, by their paths, and of tools that were found sound before."""

    def of(kind: type) -> list[Any]:
        return [record for _, record in records if isinstance(record, kind)]

    described = [(path, record) for path, record in records if isinstance(record, Toolkit)]
    return Catalog(
        about=next(iter(of(About)), About(title="")),
        toolkits={
            record.slug: record for path, record in described if path.startswith("toolkits/")
        },
        tools=sorted(
            [*tools, *(tool.listed for tool in of(ToolVersion))], key=attrgetter("slug", "version")
        ),
        router=next((record for path, record in described if path.startswith("meta_tools/")), None),
        meta_tools=tuple(sorted(of(MetaTool), key=lambda tool: (tool.slug, tool.version))),
        auth_configs=tuple(sorted(of(AuthConfig), key=lambda config: config.id)),
        sessions=tuple(sorted(of(Session), key=lambda session: session.id)),
    )
