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

from toolcatalog import versions
from toolcatalog.catalog import folder, loader, schema
from toolcatalog.catalog.loader import Document
from toolcatalog.catalog.model import (
    ROUTER,
    UNKNOWN_TOOLKIT,
    About,
    AuthConfig,
    Catalog,
    MetaTool,
    PublishedFile,
    Session,
    Toolkit,
    ToolSummary,
    ToolVersion,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding, Problem
from toolcatalog.progress import Progress, no_progress
from toolcatalog.validation import cross_references, severity, suppressions
from toolcatalog.validation.suppressions import NO_FINDINGS, LintFindings

_CHUNK_SIZE = 64  # files that go through each step together
_NAME_RULES = ("name-toolkit", "name-tool")  # reported only for the first file of a folder
_UNREADABLE_VALUE_RULES = ("yaml-alias", "yaml-number")
_sort_key = attrgetter("path", "line", "column", "rule", "message", "expected", "help", "severity")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCatalog:
    """The result of checking a catalog.

    `catalog` has stubs for invalid files, `problems` are sorted by position, and `file_count` is
    the number of files read. `lint_findings` are not located yet: there may be many, and locating
    one means reading its file again.
    """

    catalog: Catalog
    problems: tuple[Problem, ...]
    file_count: int
    lint_findings: LintFindings = NO_FINDINGS


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
    has_suppressions: bool = False
    is_stub: bool = False


def check_folder(
    root: Path, progress: Progress = no_progress, severities: Collection[str] = severity.SEVERITIES
) -> CheckedCatalog:
    """Read and check every file of a catalog, in this process and without a cache.

    Raises UsageError if `root` is not a folder.
    """
    paths, unreadable = folder.list_paths(root)
    checked_files = []
    with progress("Reading", len(paths)) as advance:
        for checked_file in check_files(root, paths):
            checked_files.append(checked_file)
            advance(1)
    checked_files = add_version_findings(checked_files)
    checked = check_catalog(root, checked_files, [], unreadable, severities)
    located = suppressions.locate_unsuppressed_findings(root, checked.lint_findings)
    problems = apply_severities(checked.catalog.about.rules, [*checked.problems, *located])
    return replace(checked, problems=problems)


def check_file(root: Path, path: str) -> CheckedFile:
    """Read one file and validate it against its schema."""
    (checked_file,) = check_files(root, [path])
    return checked_file


def check_files(root: Path, paths: Sequence[str]) -> Iterator[CheckedFile]:
    """Read and validate several files.

    A chunk of files goes through each step together, which makes better use of the processor's
    cache than running all steps for one file after another.
    """
    for start in range(0, len(paths), _CHUNK_SIZE):
        chunk = paths[start : start + _CHUNK_SIZE]
        loaded = [loader.load_file(root, path) for path in chunk]
        validated = [_validate(document) for document, _ in loaded]
        findings = [
            severity.check_record(path, record)
            for path, (record, _) in zip(chunk, validated, strict=True)
        ]
        yield from map(partial(_combine_results, root), chunk, loaded, validated, findings)


def _validate(document: Document | None) -> tuple[schema.Record | None, list[Finding]]:
    return schema.validate(document) if document and document.is_readable else (None, [])


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
    located = loader.locate_findings(root, findings)
    record = record or schema.recover(document, findings)
    return CheckedFile(
        path=path,
        record=record or _make_stub(document),
        problems=[*faults, *located, *suppressions.find_invalid(root, document)],
        digest=document.digest,
        findings=[*lint_findings, *suppressions.check_comments(root, document)],
        has_suppressions=bool(document.suppressions),
        is_stub=record is None,
    )


def add_version_findings(files: Iterable[CheckedFile]) -> list[CheckedFile]:
    """Return these files, which must include all versions of their tools, with more findings.

    The newest version of a tool gets one if it is identical to the previous version.
    """
    checked_files = [*files]
    versions: defaultdict[str, list[CheckedFile]] = defaultdict(list)
    for file in checked_files:
        if isinstance(file.record, ToolVersion) and not file.problems:
            versions[file.path.rpartition("/")[0]].append(file)
    findings = {
        finding.path: finding
        for tool_files in versions.values()
        for finding in _find_identical_version(tool_files)
    }
    return [
        replace(file, findings=[*file.findings, findings[file.path]])
        if file.path in findings
        else file
        for file in checked_files
    ]


def _find_identical_version(files: Sequence[CheckedFile]) -> Iterator[Finding]:
    """Yield a finding if the newest version of a tool is identical to the previous one."""
    *_, previous, newest = [None, *sorted(files, key=attrgetter("path"))]
    if previous and newest and _is_same_content(previous.record, newest.record):
        version = previous.path.rpartition("/")[2].removesuffix(".yaml")
        yield Finding(
            path=newest.path,
            rule=severity.IDENTICAL_VERSION,
            message=f"this version is identical to {version}",
            help="change what the new version is for, or remove the file",
        )


def _is_same_content(previous: schema.Record | None, newest: schema.Record | None) -> bool:
    """Return whether two versions say the same apart from their names, in the same order."""
    if not (isinstance(previous, ToolVersion) and isinstance(newest, ToolVersion)):
        return False
    renamed = replace(previous, path=newest.path, version=newest.version)
    # values are equal in any order, but they are compared until the first difference
    return renamed == newest and repr(renamed) == repr(newest)


def select_findings(files: Collection[CheckedFile]) -> LintFindings:
    """Return the lint findings of these files, which must include all versions of their tools.

    Published versions are immutable. So older versions get only the findings that can still be
    fixed in them. Each other file counts as the newest of its kind.
    """
    newest: dict[str, str] = {}
    for path in (file.path for file in files):
        parent, _, name = path.rpartition("/")
        tool = parent if versions.is_version(name.removesuffix(".yaml")) else path
        newest[tool] = max(newest.get(tool, ""), path)
    current = {*newest.values()}
    findings = [
        finding
        for file in files
        for finding in file.findings
        if file.path in current or severity.applies_to_older_versions(finding.rule)
    ]
    commented = [file.path for file in files if file.has_suppressions and file.path in current]
    return LintFindings(findings, commented)


def apply_severities(rules: Mapping[str, str], problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems with their effective severity, without those turned off.

    They are sorted by position. `rules` are the severity overrides in catalog.yaml.
    """
    levels = ((problem, severity.effective_severity(problem.rule, rules)) for problem in problems)
    return _select_problems(
        problem if problem.severity == level else replace(problem, severity=level)
        for problem, level in levels
        if level in severity.SEVERITIES
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
    catalog = build_catalog([(file.path, file.record) for file in files if file.record], tools)
    invalid_paths = {file.path for file in files if file.problems}
    stub_paths = {file.path for file in files if file.is_stub}
    findings = [
        *cross_references.check_all(catalog, invalid_paths, stub_paths),
        *severity.find_unknown_rules(catalog.about),
        *_find_missing_about(files),
    ]
    problems = [
        *unreadable,
        *(problem for file in files for problem in file.problems),
        *loader.locate_findings(root, findings),
    ]
    return CheckedCatalog(
        catalog=catalog,
        problems=_select_problems(problems),
        file_count=len(files) + len(tools),
        lint_findings=_lint_catalog(catalog, files, invalid_paths, severities),
    )


def _find_missing_about(files: Iterable[CheckedFile]) -> Iterator[Finding]:
    if not any(isinstance(file.record, About) for file in files):
        yield Finding(
            path="catalog.yaml",
            rule="catalog-missing",
            message="there is no catalog.yaml",
            help="write one with at least `title`",
        )


def _lint_catalog(
    catalog: Catalog,
    files: Collection[CheckedFile],
    invalid_paths: Collection[str],
    severities: Collection[str],
) -> LintFindings:
    """Return the lint findings of the files and of the whole catalog with these severities."""
    rules = severity.rules_with_severities(catalog.about.rules, severities)
    findings, commented_paths = select_findings(files).with_rules(rules)
    catalog_findings = (
        finding
        for finding in severity.iter_catalog_findings(catalog, rules)
        if finding.path not in invalid_paths
    )
    return LintFindings([*findings, *catalog_findings], commented_paths)


def _select_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems sorted by position and without duplicates.

    If a value could not be read, only the YAML problems at its position are kept. For a file with
    very many problems only some are kept.
    """
    # several times faster than sorting the records themselves
    by_key = {_sort_key(problem): problem for problem in problems}
    unique = [by_key[key] for key in sorted(by_key)]
    unreadable = {
        _location(problem) for problem in unique if problem.rule in _UNREADABLE_VALUE_RULES
    }
    readable = [
        problem
        for problem in unique
        if problem.rule.startswith("yaml-") or _location(problem) not in unreadable
    ]
    by_path = groupby(_merge_name_problems(readable), key=attrgetter("path"))
    return tuple(problem for _, group in by_path for problem in _limit_problems([*group]))


def _merge_name_problems(problems: list[Problem]) -> list[Problem]:
    """Return the problems with each wrong folder name reported only for its first file."""
    first = {
        (problem.rule, problem.message): problem
        for problem in reversed(problems)
        if problem.rule in _NAME_RULES
    }
    return [
        problem
        for problem in problems
        if problem.rule not in _NAME_RULES or first[problem.rule, problem.message] is problem
    ]


def _limit_problems(problems: list[Problem]) -> list[Problem]:
    """Return the problems of one file, or the worst of them if there are too many.

    At most MAX_FINDINGS_PER_FILE are kept, sorted by position, and one more says that there are
    more. It has the severity of the worst problem that is left out. Of equally severe problems,
    those of security are kept.
    """
    if len(problems) <= MAX_FINDINGS_PER_FILE:
        return problems
    problems.sort(
        key=lambda problem: (
            severity.SEVERITIES.index(problem.severity),
            problem.rule not in severity.SECURITY_RULES,
        )
    )
    note = replace(
        problems[MAX_FINDINGS_PER_FILE],
        rule="too-many",
        message=f"there are more problems in this file than these {MAX_FINDINGS_PER_FILE}",
        expected="",
        help="fix these and check again",
    )
    return [*sorted(problems[:MAX_FINDINGS_PER_FILE], key=_sort_key), note]


def _location(problem: Problem) -> tuple[str, int, int]:
    return problem.path, problem.line, problem.column


def _make_stub(document: Document) -> schema.Record:
    """Return a record with only the names in the file's path."""
    names, path = document.location.names, document.path
    match document.location.kind:
        case "catalog":
            return About(title="")
        case "toolkit":
            return Toolkit(slug=names.get("toolkit", ROUTER), name="")
        case "logo" | "font":
            return PublishedFile(
                path=path, toolkit=names.get("toolkit", ""), digest=document.digest
            )
        case "tool" | "meta_tool":
            return _make_tool_stub(document)
        case "auth_config":
            return AuthConfig(path=path, id=names["auth_config"], toolkit=UNKNOWN_TOOLKIT)
    return Session(path=path, id=names["session"], tools={}, auth_configs={}, toolkit_versions={})


def _make_tool_stub(document: Document) -> ToolVersion | MetaTool:
    names, path = document.location.names, document.path
    slug, version = names["tool"], names["version"]
    if document.location.kind == "meta_tool":
        return MetaTool(path=path, slug=slug, version=version, template={})
    value: dict[str, Any] = {"name": "", "description": ""}
    return ToolVersion.from_value(
        value, path=path, slug=slug, toolkit=names["toolkit"], version=version
    )


def find_logo_files(records: Iterable[schema.Record | None]) -> dict[str, str]:
    """Return the path of the logo file of each toolkit that has one; SVG is preferred."""
    logos = [record for record in records if isinstance(record, PublishedFile) and record.toolkit]
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
    by_kind: defaultdict[type, list[Any]] = defaultdict(list)
    for _, record in records:
        by_kind[type(record)].append(record)
    summaries = [*tools, *(tool.summary for tool in by_kind[ToolVersion])]
    logo_files = find_logo_files(by_kind[PublishedFile])
    toolkits = [
        (path, with_logo_file(record, logo_files))
        for path, record in records
        if isinstance(record, Toolkit)
    ]
    router = [toolkit for path, toolkit in toolkits if path.startswith("meta_tools/")]
    return Catalog(
        about=next(iter(by_kind[About]), About(title="")),
        toolkits={
            toolkit.slug: toolkit for path, toolkit in toolkits if path.startswith("toolkits/")
        },
        tools=sorted(summaries, key=attrgetter("slug", "version")),
        router=next(iter(router), None),
        meta_tools=tuple(sorted(by_kind[MetaTool], key=attrgetter("slug", "version"))),
        auth_configs=tuple(sorted(by_kind[AuthConfig], key=attrgetter("id"))),
        sessions=tuple(sorted(by_kind[Session], key=attrgetter("id"))),
    )
