"""Tests with all tools of the shipped catalog, and 930 real ones where these are at hand."""

import json
from pathlib import Path

import pytest

from support.command import run_successfully
from support.paths import SHARED, SHIPPED_CATALOG
from support.provider_checks import check_definitions, check_single_formats
from support.reference_model import ReferenceModel
from toolcatalog.catalog import folder
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.exports import providers
from toolcatalog.lint import secrets, security
from toolcatalog.lint.views import ToolView
from toolcatalog.snapshot.format import Tool, tool_from_document
from toolcatalog.validation import checker

pytestmark = pytest.mark.xdist_group("real tools")  # imported once
WIRE = SHARED / "data" / "wire-tools.json"
CHECKS = {lint.rule: lint.check for lint in (*security.TOOL_RULES, *secrets.TOOL_RULES)}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog of the 930 tools; an empty folder if they are not here."""
    catalog = tmp_path_factory.mktemp("wire")
    if WIRE.exists():
        run_successfully("import", "wire", WIRE, "--catalog", catalog)
    return catalog


@pytest.fixture(scope="module")
def real(imported: Path) -> list[ToolVersion]:
    """Return all tools."""
    records = (
        checker.check_file(root, path).record
        for root in (SHIPPED_CATALOG, imported)
        for path in folder.list_paths(root)[0]
    )
    return [record for record in records if isinstance(record, ToolVersion)]


@pytest.mark.parametrize("rule", CHECKS)
def test_security_rules_give_no_false_positives(rule: str, real: list[ToolVersion]) -> None:
    assert [finding for tool in real for finding in CHECKS[rule](ToolView(tool))] == []


def test_shipped_tools_are_complete_for_every_provider() -> None:
    """Nothing is left out, cut or renamed."""
    shipped = list_versions(SHIPPED_CATALOG)
    assert len(shipped) >= 190
    assert {
        tool.slug: remaining for tool in shipped if (remaining := check_definitions(tool))
    } == {}
    assert [tool.slug for tool in shipped if check_single_formats(tool)] == []
    assert [
        note
        for tool in shipped
        for result in providers.fit_definitions(tool).values()
        for note in result.notes
    ] == []


def test_real_tools_are_exported_or_left_out(imported: Path) -> None:
    """Of 930 tools, two have an argument that Anthropic refuses, and four a too long name for two
    providers.
    """
    if not WIRE.exists():
        pytest.skip("the real tool definitions lie outside the repository, and not here")
    real = list_versions(imported)
    assert len(real) == 930
    remaining = {tool.slug: remaining for tool in real if (remaining := check_definitions(tool))}
    assert remaining == {
        "GITHUB_UPDATE_A_REPOSITORY": ["anthropic"],
        "GITHUB_UPDATE_BRANCH_PROTECTION": ["anthropic"],
    }
    rejected = {tool.slug: missing for tool in real if (missing := check_single_formats(tool))}
    assert {*remaining} <= {*rejected}
    assert {form for missing in rejected.values() for form in missing} == {"gemini"}
    notes = [
        note
        for tool in real
        for result in providers.fit_definitions(tool).values()
        for note in result.notes
    ]
    assert (
        sorted(note.split(":")[0].split(" ", 1)[1].split(" of ")[0] for note in notes)
        == ["is left out"] * 2 + ["is the name"] * 8
    )


def list_versions(catalog: Path) -> list[Tool]:
    """Return every version of every tool of a catalog."""
    return [
        tool_from_document(json.loads(entry.body), None)
        for entries in ReferenceModel(catalog).tools.values()
        for entry in entries
    ]
