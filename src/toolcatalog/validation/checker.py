"""The catalog checker: a folder to a valid catalog, or to all of its problems.

Problems in one file never hide those of another: an invalid file is replaced by a stub, which has
only the names in its path, while the rules check the rest.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from toolcatalog.catalog import folder, loader, schema
from toolcatalog.catalog.loader import Document
from toolcatalog.catalog.model import (
    ROUTER,
    UNKNOWN_TOOLKIT,
    About,
    AuthConfig,
    Catalog,
    LogoFile,
    MetaTool,
    Session,
    Toolkit,
    ToolSummary,
    ToolVersion,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Problem
from toolcatalog.progress import Progress, no_progress
from toolcatalog.validation import cross_references, severity, suppressions

_CHUNK_SIZE = 64  # files that go through each step together
_NAME_RULES = ("name-toolkit", "name-tool")  # reported only for the first file of a folder
_sort_key = attrgetter("path", "line", "column", "rule", "message", "expected", "help", "severity")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCatalog:
    """The result of checking a catalog.

    `catalog` has stubs for invalid files, `problems` are sorted by position, and `file_count` is
    the number of files read. `findings` are the lint findings, not located yet: there may be many,
    and locating one means reading its file again.
    """

    catalog: Catalog
    problems: tuple[Problem, ...]
    file_count: int
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """The result of checking one file by itself.

    `record` is None if no file is expected at its path. If the file has problems, the record has
    only its valid values, or only the names in its path; `is_stub` is true for the latter.
    """

    path: str
    record: schema.Record | None
    problems: Sequence[Problem]
    digest: str
    findings: Sequence[Finding] = ()
    is_stub: bool = False


def check_folder(
    root: Path, progress: Progress = no_progress, severities: Collection[str] = severity.SEVERITIES
) -> CheckedCatalog:
    """Read and check every file of a catalog, in this process and without a cache.

    Raises UsageError if `root` is not a folder.
    """
    paths, problems = folder.list_paths(root)
    examined = []
    with progress("Reading", len(paths)) as advance:
        for one in check_files(root, paths):
            examined.append(one)
            advance(1)
    examined = add_version_findings(examined)
    checked = check_catalog(root, examined, [], problems, severities)
    told = [
        problem
        for path, some in suppressions.group_by_path(checked.findings).items()
        for problem in suppressions.apply(root, path, some)
    ]
    return replace(
        checked, problems=apply_severities(checked.catalog.about.rules, [*checked.problems, *told])
    )


def check_file(root: Path, path: str) -> CheckedFile:
    """Read one file and validate it against its schema."""
    (examined,) = check_files(root, [path])
    return examined


def check_files(root: Path, paths: Sequence[str]) -> Iterator[CheckedFile]:
    """Read and validate several files.

    A chunk of files goes through each step together, which makes better use of the processor's
    cache than running all steps for one file after another.
    """
    for start in range(0, len(paths), _CHUNK_SIZE):
        some = paths[start : start + _CHUNK_SIZE]
        loaded = [loader.load_file(root, path) for path in some]
        shaped = [
            schema.validate(document) if document and document.is_readable else (None, [])
            for document, _ in loaded
        ]
        said = [
            severity.check_record(path, record)
            for path, (record, _) in zip(some, shaped, strict=True)
        ]
        yield from map(partial(_combine_results, root), some, loaded, shaped, said)


def _combine_results(
    root: Path,
    path: str,
    loaded: tuple[Document | None, list[Problem]],
    validated: tuple[schema.Record | None, list[Finding]],
    lint_findings: list[Finding],
) -> CheckedFile:
    (document, faults), (record, findings) = loaded, validated
    if document is None:
        return CheckedFile(path=path, record=None, problems=faults, digest="")
    problems = [
        *faults,
        *loader.locate_findings(root, findings),
        *suppressions.find_invalid(root, document),
    ]
    lint_findings = [*lint_findings, *suppressions.check_comments(root, document)]
    record = record or schema.recover(document, findings)
    return CheckedFile(
        path=path,
        record=record or _make_stub(document),
        problems=problems,
        digest=document.digest,
        findings=lint_findings,
        is_stub=record is None,
    )


def add_version_findings(files: Iterable[CheckedFile]) -> list[CheckedFile]:
    """Return these files, which must include all versions of their tools, with more findings.

    The newest version of a tool gets one if it is identical to the previous version.
    """
    checked = [*files]
    versions: defaultdict[str, list[CheckedFile]] = defaultdict(list)
    for file in checked:
        if isinstance(file.record, ToolVersion) and not file.problems:
            versions[file.path.rpartition("/")[0]].append(file)
    identical = {
        newest.path: previous.record.version
        for previous, newest in map(_newest_two, versions.values())
        if isinstance(previous.record, ToolVersion)
        and previous is not newest
        and _content(previous.record) == _content(newest.record)
    }
    return [
        replace(
            file, findings=[*file.findings, _identical_finding(file.path, identical[file.path])]
        )
        if file.path in identical
        else file
        for file in checked
    ]


def _newest_two(files: Sequence[CheckedFile]) -> tuple[CheckedFile, CheckedFile]:
    """Return the previous and the newest version; the same file twice if there is only one."""
    ordered = sorted(files, key=attrgetter("path"))
    return ordered[max(len(ordered) - 2, 0)], ordered[-1]


def _content(tool: schema.Record | None) -> str:
    """Return what a version says, without its name; parameters in their order."""
    return repr(replace(tool, path="", version="")) if isinstance(tool, ToolVersion) else ""


def _identical_finding(path: str, version: str) -> Finding:
    return Finding(
        path=path,
        rule=severity.IDENTICAL_VERSION,
        message=f"this version is identical to {version}",
        help="change what the new version is for, or remove the file",
    )


def select_findings(files: Collection[CheckedFile]) -> list[Finding]:
    """Return the lint findings of these files, which must include all versions of their tools.

    Published versions are immutable. So older versions get only the findings that can still be
    fixed in them.
    """
    newest: dict[str, str] = {}
    for one in files:
        folder = one.path.rpartition("/")[0]
        newest[folder] = max(newest.get(folder, ""), one.path)
    current = {*newest.values()}
    return [
        finding
        for one in files
        for finding in one.findings
        if one.path in current or severity.applies_to_older_versions(finding.rule)
    ]


def apply_severities(rules: Mapping[str, str], problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems with their effective severity, without those turned off.

    They are sorted by position. `rules` are the severity overrides in catalog.yaml.
    """
    levels = ((problem, severity.effective_severity(problem.rule, rules)) for problem in problems)
    told = ((problem, level) for problem, level in levels if level in severity.SEVERITIES)
    return _select_problems(
        problem if problem.severity == level else replace(problem, severity=level)
        for problem, level in told
    )


def check_catalog(
    root: Path,
    files: Collection[CheckedFile],
    tools: Sequence[ToolSummary],
    unreadable: Iterable[Problem],
    severities: Collection[str] = severity.SEVERITIES,
) -> CheckedCatalog:
    """Combine checked files with tools that are known to be valid, and check the whole catalog.

    Lint findings are limited to rules with one of the `severities`. Findings that rules for single
    tools have for `tools` are not included.
    """
    catalog = build_catalog([(one.path, one.record) for one in files if one.record], tools)
    broken = {one.path for one in files if one.problems}
    stubs = {one.path for one in files if one.is_stub}
    findings = [
        *cross_references.check_all(catalog, broken, stubs),
        *severity.find_unknown_rules(catalog.about),
    ]
    heeded = severity.rules_with_severity(catalog.about, severities)
    said = [finding for finding in select_findings(files) if finding.rule in heeded]
    said += [
        finding
        for finding in severity.iter_catalog_findings(catalog, heeded)
        if finding.path not in broken
    ]
    if not any(isinstance(one.record, About) for one in files):
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
        *(problem for one in files for problem in one.problems),
        *loader.locate_findings(root, findings),
    ]
    return CheckedCatalog(
        catalog=catalog,
        problems=_select_problems(problems),
        file_count=len(files) + len(tools),
        findings=said,
    )


def _select_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems sorted by position and without duplicates.

    A wrong folder name is reported only for the first file of the folder. If a value could not be
    read, only the YAML problems at its position are kept. For a file with very many problems only
    some are kept.
    """
    # several times faster than sorting the records themselves
    by_key = {_sort_key(problem): problem for problem in problems}
    found = [by_key[key] for key in sorted(by_key)]
    valueless = {
        _location(problem) for problem in found if problem.rule in ("yaml-alias", "yaml-number")
    }
    found = [
        problem
        for problem in found
        if problem.rule.startswith("yaml-") or _location(problem) not in valueless
    ]
    named = {(one.rule, one.message): one for one in reversed(found) if one.rule in _NAME_RULES}
    found = [
        one for one in found if one.rule not in _NAME_RULES or named[one.rule, one.message] is one
    ]
    by_path = groupby(found, key=attrgetter("path"))
    return tuple(problem for _, some in by_path for problem in _limit_problems([*some]))


def _limit_problems(problems: list[Problem]) -> list[Problem]:
    """Return the problems of one file, or the worst of them if there are too many.

    At most MAX_FINDINGS_PER_FILE are kept, sorted by position, and one more says that there are
    more. It has the severity of the worst problem that is left out.
    """
    if len(problems) <= MAX_FINDINGS_PER_FILE:
        return problems
    problems.sort(key=lambda problem: severity.SEVERITIES.index(problem.severity))
    message, help = (
        f"there are more problems in this file than these {MAX_FINDINGS_PER_FILE}",
        "mend these and check again",
    )
    return [
        *sorted(problems[:MAX_FINDINGS_PER_FILE], key=_sort_key),
        replace(
            problems[MAX_FINDINGS_PER_FILE],
            rule="too-many",
            message=message,
            expected="",
            help=help,
        ),
    ]


def _location(problem: Problem) -> tuple[str, int, int]:
    return problem.path, problem.line, problem.column


def _make_stub(document: Document) -> schema.Record:
    """Return a record with only the names in the file's path."""
    place, path = document.location.names, document.path
    match document.location.kind:
        case "catalog":
            return About(title="")
        case "toolkit":
            return Toolkit(slug=place.get("toolkit", ROUTER), name="")
        case "tool" | "meta_tool" | "logo":
            return _make_folder_stub(document)
        case "auth_config":
            return AuthConfig(path=path, id=place["auth_config"], toolkit=UNKNOWN_TOOLKIT)
        case _:
            return Session(
                path=path, id=place["session"], tools={}, auth_configs={}, toolkit_versions={}
            )


def _make_folder_stub(document: Document) -> ToolVersion | MetaTool | LogoFile:
    """Return the stub of a file in a toolkit's folder."""
    place, path = document.location.names, document.path
    if document.location.kind == "logo":
        return LogoFile(path=path, toolkit=place["toolkit"], digest=document.digest)
    slug, version = place["tool"], place["version"]
    if document.location.kind == "meta_tool":
        return MetaTool(path=path, slug=slug, version=version, template={})
    empty: dict[str, Any] = {"name": "", "description": ""}
    return ToolVersion.from_value(
        empty, path=path, slug=slug, toolkit=place["toolkit"], version=version
    )


def find_logo_files(records: Iterable[schema.Record | None]) -> dict[str, str]:
    """Return the path of the logo file of each toolkit that has one; SVG is preferred."""
    logos = [record for record in records if isinstance(record, LogoFile)]
    # sorted so that logo.svg comes last
    return {logo.toolkit: logo.path for logo in sorted(logos, key=attrgetter("path"))}


def with_logo_file(toolkit: Toolkit, logo_files: Mapping[str, str]) -> Toolkit:
    """Return a toolkit with the path of its logo file."""
    path = logo_files.get(toolkit.slug, "")
    return replace(toolkit, logo_file=path) if path else toolkit


def build_catalog(
    records: Sequence[tuple[str, schema.Record]], tools: Sequence[ToolSummary] = ()
) -> Catalog:
    """Return the catalog of these (path, record) pairs and of tools that are known to be valid."""

    def of(kind: type) -> list[Any]:
        return [record for _, record in records if isinstance(record, kind)]

    logos = find_logo_files(record for _, record in records)
    described = [
        (path, with_logo_file(record, logos))
        for path, record in records
        if isinstance(record, Toolkit)
    ]
    return Catalog(
        about=next(iter(of(About)), About(title="")),
        toolkits={
            record.slug: record for path, record in described if path.startswith("toolkits/")
        },
        tools=sorted(
            [*tools, *(tool.summary for tool in of(ToolVersion))], key=attrgetter("slug", "version")
        ),
        router=next((record for path, record in described if path.startswith("meta_tools/")), None),
        meta_tools=tuple(sorted(of(MetaTool), key=lambda tool: (tool.slug, tool.version))),
        auth_configs=tuple(sorted(of(AuthConfig), key=lambda config: config.id)),
        sessions=tuple(sorted(of(Session), key=lambda session: session.id)),
    )
