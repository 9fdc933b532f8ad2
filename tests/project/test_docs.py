"""Documentation: references, links, examples and named tests are current."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from support import flags
from support.doc_references import find_missing_tests, find_test_references, parse_table_rows
from support.paths import ROOT
from support.rejects import list_rules
from toolcatalog import __version__, openapi
from toolcatalog.cli.main import cli
from toolcatalog.validation.severity import DEFAULT_SEVERITIES

DOCS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
}


def test_cli_reference_is_current() -> None:
    """docs/reference/cli.md and its pages are the output of `scripts/cli-reference`."""
    command = [sys.executable, str(ROOT / "scripts" / "cli-reference"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_option_is_documented() -> None:
    folder = ROOT / "docs" / "reference"
    pages = {path.stem: path.read_text() for path in (folder / "cli").glob("*.md")}
    reference = "".join([(folder / "cli.md").read_text(), *pages.values()])
    assert {flag for flag in flags.flags(cli) if flag not in reference} == set()
    assert {*pages} == {*cli.list_commands(click.Context(cli))}
    assert all(page.startswith(f"# toolcatalog {name}\n") for name, page in pages.items())


def test_every_rule_is_documented() -> None:
    """Those with a case in tests/data/rejects or that need a history, and no others."""
    output = re.findall(r"^\| \[`([a-z-]+)`\]", DOCS["docs/reference/rules.md"], re.MULTILINE)
    assert sorted(output) == sorted(list_rules() | {*DEFAULT_SEVERITIES})


def test_every_query_parameter_is_documented() -> None:
    """Of the OpenAPI document, in docs/reference/http-api.md."""
    reference = DOCS["docs/reference/http-api.md"]
    operations = [path["get"] for path in openapi.build_document()["paths"].values()]
    names = {
        parameter["name"]
        for operation in operations
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    }
    assert {
        name for name in names if f"`{name}`" not in reference and f"`{name}=" not in reference
    } == set()


def test_every_dependency_has_a_decision() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [
        project["project"]["dependencies"],
        *project["dependency-groups"].values(),
        *project["project"]["optional-dependencies"].values(),
        project["build-system"]["requires"],
    ]
    names = {re.split("[<>=;]", package)[0] for group in groups for package in group}
    names = {name for name in names if not name.startswith("toolcatalog[")}  # its own extras
    decisions = [text for name, text in DOCS.items() if name.startswith("docs/decisions/")]
    output = " ".join(decisions).lower()
    assert {name for name in names if name not in output} == set()


def heading_anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("name", sorted(DOCS))
def test_links_and_anchors_exist(name: str) -> None:
    folder = (ROOT / name).parent
    text = re.sub(r"(?ms)^```.*?^```", "", DOCS[name])
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    broken = set()
    for link in links:
        file, _, anchor = link.partition("#")
        target = (folder / file).resolve() if file else ROOT / name
        if not target.exists() or (anchor and anchor not in heading_anchors(target)):
            broken.add(link)
    assert broken == set()


@pytest.mark.parametrize("name", sorted(name for name in DOCS if find_test_references(DOCS[name])))
def test_named_tests_exist(name: str) -> None:
    assert find_missing_tests(DOCS[name]) == []


def test_reliability_claims_are_complete() -> None:
    """Each has a test or make target, a figure and a date."""
    doors = {
        *re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    }
    result = parse_table_rows(DOCS["docs/evidence/reliability.md"])
    assert len(result) > 30
    assert [
        row
        for row in result
        if len(row) != 4 or not all(row) or not re.fullmatch(r"2\d{3}-\d\d-\d\d", row[3])
    ] == []
    assert [
        row
        for row in result
        if not find_test_references(row[1])
        and not {*re.findall(r"`make ([\w-]+)`", row[1])} & doors
    ] == []


def test_versions_agree() -> None:
    """The package, pyproject.toml and the OpenAPI document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert project == __version__ == openapi.build_document()["info"]["version"]


def test_every_fault_has_a_test() -> None:
    """Or docs/evidence/faults.md says that there is none."""
    result = re.findall(r"(?ms)^- \*\*.*?(?=\n\n)", DOCS["docs/evidence/faults.md"])
    assert len(result) > 10
    assert [
        item for item in result if not find_test_references(item) and "Test: none." not in item
    ] == []
