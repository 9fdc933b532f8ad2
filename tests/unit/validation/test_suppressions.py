"""Suppression comments: what they suppress, and which of them are unused."""

from pathlib import Path

import pytest

from support.catalogs import generate_catalog
from toolcatalog.errors import Finding
from toolcatalog.validation import checker, suppressions
from toolcatalog.validation.suppressions import LintFindings

FOLDER = "toolkits/kit0/KIT0_DO_0"
OLDER, NEWEST = f"{FOLDER}/20250101_00.yaml", f"{FOLDER}/20250102_00.yaml"
TEXT = """\
name: Do it
description: Do it.  # toolcatalog: ignore[{}] a good reason
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A catalog of one tool with two versions, with a comment in each."""
    root = generate_catalog(tmp_path / "catalog", 1, 1)
    for path in (OLDER, NEWEST):
        (root / path).write_text(TEXT.format("slug-long, description-brief"))
    return root


def test_comments_of_the_newest_version_count(root: Path) -> None:
    """Older versions are published, and nobody can change a comment there."""
    checked_files = [*checker.check_files(root, [OLDER, NEWEST])]
    assert [file.has_suppressions for file in checked_files] == [True, True]
    selected = checker.select_findings(checked_files)
    assert selected.commented_paths == [NEWEST]
    assert all(finding.message for finding in selected.findings)
    assert selected.with_rules(["ignore-unused"]).commented_paths == [NEWEST]
    assert selected.with_rules(["secret"]) == LintFindings([], ())


def test_comments_count_in_files_without_versions(root: Path) -> None:
    """All sessions are in one folder."""
    paths = [f"sessions/trs_{name}.yaml" for name in "ab"]
    (root / "sessions").mkdir(exist_ok=True)
    for path in paths:
        (root / path).write_text("description: Do.  # toolcatalog: ignore[secret] a good reason\n")
    selected = checker.select_findings([*checker.check_files(root, [OLDER, *paths, NEWEST])])
    assert selected.commented_paths == [*paths, NEWEST]


def test_schema_comment_with_a_long_name_is_reported(root: Path) -> None:
    """No file system has names of 300 letters."""
    text = (root / NEWEST).read_text()
    (root / NEWEST).write_text(f"# $schema: ../{'a' * 300}/x.json\n{text}")
    (checked,) = checker.check_files(root, [NEWEST])
    assert any("there is no schema" in finding.message for finding in checked.findings)


@pytest.mark.parametrize("rule", ["description-brief", "secret"])
@pytest.mark.parametrize("commented_paths", [[], [NEWEST]])
def test_comment_suppresses_its_rules_or_is_unused(
    root: Path, rule: str, commented_paths: list[str]
) -> None:
    """A file without findings is read only for its comments."""
    finding = Finding(path=NEWEST, pointer=("description",), rule=rule, message="wrong")
    lint_findings = LintFindings([finding], commented_paths)
    problems = [*suppressions.locate_unsuppressed_findings(root, lint_findings)]
    expected = [] if rule == "description-brief" else ["secret"]
    if commented_paths and rule == "secret":
        expected.append("ignore-unused")
    assert [problem.rule for problem in problems] == expected
    unread = LintFindings([], [])
    assert [*suppressions.locate_unsuppressed_findings(root / "missing", unread)] == []
