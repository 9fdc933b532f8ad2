"""The rulebook: a true page for every rule, and docs/reference/rules.md made of them.

After a change of pages: `PYTHONPATH=tests python tests/acceptance/test_rule_pages.py` writes the
tables of docs/reference/rules.md anew.
"""

import re
import shutil
from pathlib import Path

import click
import pytest

from support.command import run_toolcatalog
from support.paths import ROOT
from support.rejects import BASE, HEAD, TOOL, list_rules
from toolcatalog.cli.main import cli
from toolcatalog.errors import UsageError
from toolcatalog.validation import rule_pages
from toolcatalog.validation.checker import check_folder
from toolcatalog.validation.severity import DEFAULT_SEVERITIES, SEVERITIES, effective_severity

PAGES = {file.stem: file for file in (Path(rule_pages.__file__).parent / "rulebook").glob("*.md")}
DOCUMENT = ROOT / "docs" / "reference" / "rules.md"
MARK = (
    "<!-- What follows is made from src/toolcatalog/validation/rulebook/: `PYTHONPATH=tests python"
    " tests/acceptance/test_rule_pages.py` -->\n"
)
FILLINGS = {
    "toolkits/": HEAD,
    "meta_tools/": HEAD,
    "sessions/": "user_id: user\n",
    "auth_configs/": "toolkit: mail\n",
}
# what is wrong with their example is its length
SHORTENED = {"description-long", "parameters-many", "definition-large", "enum-large"}
PARTS = ["## Why", "## Wrong", "## Right", "## Fix"]
_FILE = re.compile(r"# ((?:toolkits|sessions|auth_configs|meta_tools)/\S+\.yaml|catalog\.yaml)")
_PATH = re.compile(r"(?:toolkits|sessions|auth_configs|meta_tools)/\S+")


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    assert (
        sorted(rule_pages.rule_ids())
        == sorted(PAGES)
        == sorted(list_rules() | {*DEFAULT_SEVERITIES})
    )


@pytest.mark.parametrize("rule", rule_pages.rule_ids())
def test_page_has_its_sections(rule: str) -> None:
    """Id, one sentence, a severity, and four non-empty parts."""
    lines = rule_pages.load_page(rule).splitlines()
    assert lines[0] == f"# {rule}"
    assert re.fullmatch(r"[A-Z`].*[^.]\.", lines[2])
    assert [lines[1], lines[3], lines[5]] == ["", "", ""]
    assert lines[4].startswith("Severity: ")
    assert [line for line in lines if line.startswith("## ")] == PARTS
    assert all(part(rule, name).strip() for name in PARTS)
    assert "```" in part(rule, "## Wrong")
    assert "```" in part(rule, "## Right")


@pytest.mark.parametrize("rule", rule_pages.rule_ids())
def test_page_has_the_current_severity(rule: str) -> None:
    assert rule_pages.default_severity(rule) == effective_severity(rule, {})
    suffix = "" if rule in DEFAULT_SEVERITIES else " (always)"
    severity = f"Severity: {rule_pages.default_severity(rule)}{suffix}"
    assert severity in rule_pages.load_page(rule).splitlines()


def part(rule: str, heading: str) -> str:
    """Return the text below a heading of a page."""
    return rule_pages.load_page(rule).partition(f"{heading}\n")[2].partition("\n## ")[0]


def files_of(rule: str, heading: str) -> dict[str, str]:
    """The files that an example shows: YAML behind a comment with its path, parts of a tool, or
    nothing but paths.

    Empty where it shows something else.
    """
    kind, text = re.findall("```(yaml|text)\n(.*?)```", part(rule, heading), re.DOTALL)[0]
    lines = text.splitlines()
    if kind == "text":
        return _filled(lines) if all(map(_PATH.fullmatch, lines)) else {}
    results: dict[str, list[str]] = {}
    for line in lines:
        if match := _FILE.fullmatch(line):
            results[match[1]] = []
        elif results:
            results[[*results][-1]].append(line)
    if not results and not any(line.startswith("#") for line in lines):
        return {
            TOOL: "".join(
                line
                for line in HEAD.splitlines(keepends=True)
                if not re.search(f"^{line.partition(':')[0]}:", text, re.MULTILINE)
            )
            + text
        }
    return {path: "".join(f"{line}\n" for line in items) for path, items in results.items()}


def _filled(paths: list[str]) -> dict[str, str]:
    """Valid files at these paths, and the toolkits that they are of."""
    toolkits = {
        "/".join([*path.split("/")[:2], "toolkit.yaml"])
        for path in paths
        if path.startswith("toolkits/")
    }
    return {
        path: next(text for begins, text in FILLINGS.items() if path.startswith(begins))
        for path in paths
    } | dict.fromkeys(toolkits, "name: A\nlogo: https://a.example/a.png\n")


def examples() -> list[tuple[str, str]]:
    both = [
        (rule, heading) for rule in rule_pages.rule_ids() for heading in ("## Wrong", "## Right")
    ]
    return [
        (rule, heading)
        for rule, heading in both
        if files_of(rule, heading) and (rule not in SHORTENED or heading == "## Right")
    ]


@pytest.mark.parametrize(("rule", "heading"), examples())
def test_examples_are_true(rule: str, heading: str, tmp_path: Path) -> None:
    """In a valid catalog, the wrong example gives exactly its rule, and the right one nothing."""
    catalog = tmp_path / "catalog"
    shutil.copytree(BASE, catalog)
    for path, text in files_of(rule, heading).items():
        (catalog / path).parent.mkdir(parents=True, exist_ok=True)
        (catalog / path).write_text(text)

    results = {rule for _, rule in find_problems(catalog, rule) - find_problems(BASE, rule)}

    assert results == ({rule} if heading == "## Wrong" else set())


def find_problems(catalog: Path, rule: str) -> set[tuple[str, str]]:
    """Return the findings of a rule, and all errors except those of files that an example does not
    show.
    """
    apart = {*rule_pages.GROUPS["Between files"]} - {rule}
    return {
        (problem.path, problem.rule)
        for problem in check_folder(catalog).problems
        if problem.rule == rule or (problem.severity == "error" and problem.rule not in apart)
    }


def test_most_pages_have_tested_examples() -> None:
    """Except where git, an editor or a history is needed."""
    tried = {rule for rule, _ in examples()}
    assert {
        *rule_pages.GROUPS["Security"],
        *rule_pages.GROUPS["Shape"],
        *rule_pages.GROUPS["Between files"],
        *rule_pages.GROUPS["Rules"],
    } <= tried


def test_unknown_rule_suggests_the_nearest() -> None:
    for invalid in ("misfit-enums", "MISFIT-ENUM", "../misfit-enum"):
        with pytest.raises(UsageError, match="did you mean misfit-enum"):
            rule_pages.load_page(invalid)
    with pytest.raises(UsageError, match="lists all"):
        rule_pages.load_page("zzz")


def test_explain_prints_a_page_or_all_rules() -> None:
    """Plain text on standard output; an unknown rule exits with 2."""
    result = run_toolcatalog("explain", "reference")
    assert (result.returncode, result.stdout, result.stderr) == (
        0,
        rule_pages.load_page("reference"),
        "",
    )
    lines = run_toolcatalog("explain").stdout.splitlines()
    rows = [line.split(maxsplit=2) for line in lines if line.startswith("  ")]
    assert rows == [
        [rule, rule_pages.default_severity(rule), rule_pages.load_summary(rule)]
        for rule in rule_pages.rule_ids()
    ]
    assert [line for line in lines if line and not line.startswith("  ")] == [*rule_pages.GROUPS]
    invalid = run_toolcatalog("explain", "refrence")
    assert (invalid.returncode, invalid.stdout) == (2, "")
    assert "did you mean reference?" in invalid.stderr


def test_explain_completes_rules() -> None:
    command = cli.get_command(click.Context(cli), "explain")
    assert command is not None
    result = command.params[0].shell_complete(click.Context(command), "yaml-d")
    assert [item.value for item in result] == ["yaml-documents", "yaml-duplicate-key", "yaml-depth"]
    assert result[0].help == rule_pages.load_summary("yaml-documents")


def tables() -> str:
    """All rules by group, with a link to the page of each."""
    return "".join(
        f"\n## {group}\n\n| rule | severity | what is wrong |\n|---|---|---|\n{rows(group)}"
        for group in rule_pages.GROUPS
    )


def rows(group: str) -> str:
    output = (
        (
            rule,
            rule_pages.default_severity(rule) + ("" if rule in DEFAULT_SEVERITIES else ", always"),
        )
        for rule in rule_pages.GROUPS[group]
    )
    cells = (
        (rule, text, rule_pages.load_summary(rule).replace("|", "\\|")) for rule, text in output
    )
    return "".join(
        f"| [`{rule}`](../../src/toolcatalog/validation/rulebook/{rule}.md) | {text} | {label} |\n"
        for rule, text, label in cells
    )


def test_reference_is_generated_from_the_pages() -> None:
    """docs/reference/rules.md ends with these tables and has every severity."""
    content, mark, result = DOCUMENT.read_text().partition(MARK)
    assert mark, "docs/reference/rules.md has lost the line that says what it is made from"
    assert result == tables(), (
        "run `PYTHONPATH=tests python tests/acceptance/test_rule_pages.py`, and read what it has"
        " changed"
    )
    assert all(severity in content for severity in (*SEVERITIES, "off"))


def refresh() -> None:
    content, mark, _ = DOCUMENT.read_text().partition(MARK)
    DOCUMENT.write_text(content + mark + tables())
    print("wrote docs/reference/rules.md")


if __name__ == "__main__":
    refresh()
