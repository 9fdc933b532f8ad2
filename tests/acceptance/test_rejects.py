"""Every rule of `toolcatalog check`, with the cases of tests/data/rejects (see its README.md)."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support import rejects
from support.paths import ROOT
from toolcatalog.errors import Problem
from toolcatalog.validation.checker import check_folder
from toolcatalog.validation.severity import DEFAULT_SEVERITIES

SOURCE = ROOT / "src" / "toolcatalog"


def row(problem: Problem) -> str:
    return f"{problem.path}:{problem.line}:{problem.column} {problem.rule}"


def texts(problem: Problem) -> str:
    return f"{problem.message}\n{problem.expected}\n{problem.help}"


def problems_of(catalog: Path, rule: str = "") -> list[Problem]:
    """What is wrong with a catalog, and of all the advice for it only that by one rule."""
    return [
        problem
        for problem in check_folder(catalog).problems
        if problem.rule not in DEFAULT_SEVERITIES or problem.rule == rule
    ]


def test_base_catalog_is_valid() -> None:
    """So that each case shows only its own problem."""
    assert problems_of(rejects.BASE) == []


@pytest.mark.parametrize("case", rejects.ALL, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_case(case: Path, tmp_path: Path) -> None:
    """Exactly the expected problems, in order, with place and help."""
    expected, contains, without = rejects.expectation(case)
    catalog = tmp_path / "catalog"
    shutil.copytree(rejects.BASE, catalog)
    if (case / "catalog").exists():
        shutil.copytree(case / "catalog", catalog, dirs_exist_ok=True)
    for path in without:
        (catalog / path).unlink()

    problems = problems_of(catalog, case.parent.name)

    assert [row(problem) for problem in problems] == expected
    for text in contains:
        assert any(text in texts(problem) for problem in problems), text


@pytest.mark.parametrize(("make", "expected", "contains"), rejects.MADE.values(), ids=rejects.MADE)
def test_made_case(
    make: Callable[[Path], None], expected: list[str], contains: str, tmp_path: Path
) -> None:
    """Cases that an editor or git would change; texts are escaped in reports."""
    catalog = tmp_path / "catalog"
    shutil.copytree(rejects.BASE, catalog)
    make(catalog)

    problems = problems_of(catalog)

    assert [row(problem) for problem in problems] == expected
    assert any(contains in texts(problem) for problem in problems)
    assert all(
        text.isprintable()
        for problem in problems
        for text in (problem.path, problem.message, problem.expected, problem.help)
    )


def test_unusual_valid_files_pass(tmp_path: Path) -> None:
    """A byte-order mark, CRLF, a symlink within the catalog, 32 levels, 20,000 values, 100 tags and
    exactly 1 MiB.
    """
    catalog = tmp_path / "catalog"
    shutil.copytree(rejects.BASE, catalog)
    deepest = (
        f"{rejects.HEAD}input_parameters: {{a: {{type: array, default: {'[' * 29}{']' * 29}}}}}\n"
    )
    rejects.text_of(rejects.TOOL, f"\ufeff{rejects.HEAD}".replace("\n", "\r\n"))(catalog)
    rejects.text_of("toolkits/mail/MAIL_DEEP/20250202_00.yaml", deepest)(catalog)
    # and seven around them
    maximum = (
        f"{rejects.HEAD}input_parameters: {{a: {{type: array, default: [{'1, ' * 19_992}1]}}}}\n"
    )
    rejects.text_of("toolkits/mail/MAIL_MANY/20250202_00.yaml", maximum)(catalog)
    rejects.text_of(
        "toolkits/mail/MAIL_TAGS/20250202_00.yaml",
        f"{rejects.HEAD}tags: [{', '.join(f't{number}' for number in range(100))}]\n",
    )(catalog)
    rejects.bytes_of(
        "toolkits/mail/MAIL_LONG/20250202_00.yaml", rejects.HEAD.encode().ljust(1024 * 1024, b"#")
    )(catalog)
    rejects.link("toolkits/mail/MAIL_DEEP/20250303_00.yaml", "20250202_00.yaml")(catalog)
    rejects.text_of("toolkits/mail/README.md", "Prose.\n")(catalog)
    rejects.text_of("toolkits/mail/.draft.yaml", "not ready\n")(catalog)

    checked = check_folder(catalog)

    assert problems_of(catalog) == []
    assert [tool.version for tool in checked.catalog.tools if tool.slug == "MAIL_DEEP"] == [
        "20250202_00",
        "20250303_00",
    ]


def test_every_rule_has_a_case() -> None:
    """And every case has a rule."""
    code = "".join(
        file.read_text()
        for file in sorted(
            file
            for folder in (".", "catalog", "validation", "build")
            for file in (SOURCE / folder).glob("*.py")
        )
    )
    literal = {
        *re.findall(r'(?:rule=|finding\(\s*)"([a-z-]+)"', code),
        *re.findall(r'"((?:yaml|file)-[a-z-]+)"', code),
        "name-version",
    }
    formed = {f"misfit-{keyword}" for keyword in ("enum", "examples", "default")}
    formed |= {f"name-{key}" for key in ("toolkit", "tool", "session", "auth-config")}
    assert len(re.findall('rule=f"', code)) == 2, (
        "name here what a third rule id with a variable part can be"
    )

    # those want a revision before: see test_history
    advised = {rule for rule in DEFAULT_SEVERITIES if not rule.startswith("history-")}
    assert rejects.list_rules() == literal | formed | advised


def test_every_lint_rule_has_a_passing_case() -> None:
    fine = {case.parent.name for case in rejects.ALL if not rejects.expectation(case)[0]}
    assert {rule for rule in DEFAULT_SEVERITIES if not rule.startswith("history-")} <= fine


def test_folder_names_are_rules() -> None:
    """`rejects/<rule>/<case>`; `several` has cases with more than one file."""
    for case in rejects.ALL:
        rules = {line.rpartition(" ")[2] for line in rejects.expectation(case)[0]}
        assert case.parent.name in rules | {"several"} or (
            case.parent.name in DEFAULT_SEVERITIES and not rules
        ), case
