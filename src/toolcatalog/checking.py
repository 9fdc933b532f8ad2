"""A folder to a catalog, or to everything that is wrong with it: source, schema and rules, in this order.

One file with problems never hides those of another: it is replaced by a stub of its name while the rules look at the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from toolcatalog import rules, schema, source
from toolcatalog.errors import MOST, Finding, Problem
from toolcatalog.model import ROUTER, UNKNOWN, About, AuthConfig, Catalog, MetaTool, Session, Toolkit, ToolVersion
from toolcatalog.progress import Track, quietly
from toolcatalog.source import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The catalog (with stubs where there are problems), all problems sorted by place, and how many files were read."""

    catalog: Catalog
    problems: tuple[Problem, ...]
    files: int


def check(root: Path, track: Track = quietly) -> Checked:
    """Read and check every file of a catalog. Raises UsageError where `root` is not a folder."""
    paths, problems = source.scan(root)
    records: list[tuple[Document, schema.Record]] = []
    broken: set[str] = set()
    findings: list[Finding] = []
    for path in track("Reading", paths):
        document, faults = source.load(root, path)
        problems += faults
        if document is None:
            continue
        record, found = schema.record(document) if document.readable else (None, [])
        if found or faults:
            broken.add(path)
        findings += found
        records.append((document, record or _stub(document)))
    catalog = _assemble(records)
    if not any(document.place.kind == "catalog" for document, _ in records):
        help = "write one with at least `title`"
        findings.append(Finding(path="catalog.yaml", rule="catalog-missing", message="there is no catalog.yaml", help=help))
    findings += rules.check(catalog, broken)
    return Checked(catalog=catalog, problems=_worth_telling([*problems, *source.locate(root, findings)]), files=len(paths))


def _worth_telling(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems sorted by place, each once.

    A misnamed folder is told of at the first of its files only; of a value that could not be read only that is told; and of a file
    with very many problems only the first.
    """
    found = sorted({*problems})
    valueless = {_place(problem) for problem in found if problem.rule in ("yaml-alias", "yaml-number")}
    found = [problem for problem in found if problem.rule.startswith("yaml-") or _place(problem) not in valueless]
    first = {(one.rule, one.message) if one.rule in ("name-toolkit", "name-tool") else one: one for one in reversed(found)}
    by_path = groupby(sorted(first.values()), key=attrgetter("path"))
    return tuple(problem for _, some in by_path for problem in _at_most([*some]))


def _at_most(problems: list[Problem]) -> list[Problem]:
    """The problems of one file, but where they are more than `MOST` the first of them and one that says so."""
    if len(problems) <= MOST:
        return problems
    message, help = f"there are more problems in this file than these {MOST}", "mend these and check again"
    return [*problems[:MOST], replace(problems[MOST], rule="too-many", message=message, expected="", help=help)]


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
            return ToolVersion.of(empty, path=path, slug=place["tool"], toolkit=place["toolkit"], version=place["version"])
        case "meta_tool":
            return MetaTool(path=path, slug=place["tool"], version=place["version"], template={})
        case "auth_config":
            return AuthConfig(path=path, id=place["auth_config"], toolkit=UNKNOWN)
        case _:
            return Session(path=path, id=place["session"], tools={}, auth_configs={}, toolkit_versions={})


def _assemble(records: Sequence[tuple[Document, schema.Record]]) -> Catalog:
    def of(kind: type) -> list[Any]:
        return [record for _, record in records if isinstance(record, kind)]

    described = [(document.path, record) for document, record in records if isinstance(record, Toolkit)]
    return Catalog(
        about=next(iter(of(About)), About(title="")),
        toolkits={record.slug: record for path, record in described if path.startswith("toolkits/")},
        tools=tuple(sorted(of(ToolVersion), key=lambda tool: (tool.slug, tool.version))),
        router=next((record for path, record in described if path.startswith("meta_tools/")), None),
        meta_tools=tuple(sorted(of(MetaTool), key=lambda tool: (tool.slug, tool.version))),
        auth_configs=tuple(sorted(of(AuthConfig), key=lambda config: config.id)),
        sessions=tuple(sorted(of(Session), key=lambda session: session.id)),
    )
