"""Tests of `validation.reports`: annotations, summaries, SARIF and JUnit."""

import json
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from toolcatalog.errors import Problem
from toolcatalog.validation import reports

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")
FORMS = (reports.render_github, reports.render_summary, reports.render_sarif, reports.render_junit)
TOOL = "catalog/toolkits/github/GITHUB_STAR/20250101_00.yaml"


def problem(
    number: int = 1,
    severity: str = "error",
    path: str = TOOL,
    message: str = "there is no tool `X`",
    **more: Any,
) -> Problem:
    output = {
        "expected": "one of A, B",
        "help": "did you mean `A`?",
        "rule": "reference",
        "excerpt": "tools: [X]",
        **more,
    }
    return Problem(
        path=path, line=number, column=9, message=message, severity=severity, length=3, **output
    )


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """The workflow commands of a log as the runner reads them: kind, properties and message,
    unescaped.
    """
    result = [match.groups() for line in text.splitlines() if (match := COMMAND.fullmatch(line))]
    return [
        (kind, dict(map(_pair, rest.split(","))), _unescaped(message))
        for kind, rest, message in result
    ]


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, _unescaped(value)


def _unescaped(text: str) -> str:
    for code, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def sarif_run(
    problems: Sequence[Problem], files: int = 9, changed: Collection[str] = (), **more: Any
) -> Any:
    log = json.loads(reports.render_sarif(problems, files, changed, **more))
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    return run


def cases(text: str) -> list[ET.Element]:
    return [*ET.fromstring(text).iter("testcase")]  # noqa: S314 - our own


# --- GitHub's annotations


def test_annotation_has_place_rule_and_help() -> None:
    [(kind, properties, message)] = commands(reports.render_github([problem(7)], 3))
    assert kind == "error"
    assert properties == {
        "file": TOOL,
        "line": "7",
        "endLine": "7",
        "col": "9",
        "endColumn": "12",
        "title": "reference",
    }
    assert message.splitlines() == [
        "there is no tool `X`",
        "expected: one of A, B",
        "help: did you mean `A`?",
        "why: toolcatalog explain reference",
    ]


def test_severities_map_to_annotation_kinds() -> None:
    result = [problem(severity=severity) for severity in ("note", "warning", "error")]
    assert [kind for kind, *_ in commands(reports.render_github(result, 1))] == [
        "error",
        "warning",
        "notice",
    ]


def test_annotations_are_limited_with_a_count() -> None:
    result = [
        problem(line, severity)
        for severity, many in (("error", 23), ("warning", 11), ("note", 2))
        for line in range(1, many + 1)
    ]
    text = reports.render_github(result, 5)
    kinds = [kind for kind, *_ in commands(text)]
    assert [kinds.count(kind) for kind in ("error", "warning", "notice")] == [10, 10, 2]
    assert "13 errors, 1 warning more than GitHub shows" in text
    assert text.splitlines()[-1] == "23 errors, 11 warnings, 2 notes, 5 files read."


def test_changed_files_come_first_within_a_severity() -> None:
    result = [problem(1, path=f"catalog/sessions/trs_{number:02}.yaml") for number in range(30)]
    shown = [
        properties["file"]
        for _, properties, _ in commands(
            reports.render_github(result, 30, {result[29].path, result[20].path})
        )
    ]
    assert shown[:3] == [result[20].path, result[29].path, result[0].path]


def test_catalog_texts_cannot_start_workflow_commands() -> None:
    hostile = problem(
        path="catalog/a,line=1::b\n::error::c.yaml",
        message="100% of\n::stop-commands::x\r::set-env name=a::b",
        help="\n::warning::d",
    )
    text = reports.render_github([hostile], 1)
    [(_, properties, message)] = commands(text)
    assert properties["file"] == hostile.path
    assert "100% of ::stop-commands::x ::set-env name=a::b" in message
    assert [line for line in text.splitlines() if line.startswith("::")] == [text.splitlines()[0]]


# --- the summary of a step


def test_summary_starts_with_counts_and_the_next_step() -> None:
    first, _, second, *_ = reports.render_summary(
        [problem(1), problem(2, "warning")], 12
    ).splitlines()
    assert first == "### `toolcatalog check`: 1 error, 1 warning, 12 files read"
    assert second.startswith("**You act next:** fix the errors")


@pytest.mark.parametrize(
    ("found", "changed", "said"),
    [
        ([], (), "**A maintainer acts next:** there are no problems"),
        (
            [problem(severity="warning"), problem(severity="note")],
            (),
            "**A maintainer acts next:** nothing here blocks the merge",
        ),
        ([problem()], (TOOL,), "**You act next:** fix the errors"),
        (
            [problem()],
            ("catalog/catalog.yaml",),
            "**You act next:** no error is in a file that you changed",
        ),
    ],
)
def test_next_step_of_a_pull_request(
    found: list[Problem], changed: Collection[str], said: str
) -> None:
    assert said in reports.render_summary(found, 4, changed)


def test_summary_lists_changed_and_worst_files_first() -> None:
    result = [
        problem(severity="note", path="catalog/a"),
        problem(path="catalog/b"),
        problem(severity="warning", path="catalog/c"),
    ]
    headings = re.findall(
        "^#### (.*)", reports.render_summary(result, 3, {"catalog/c"}), re.MULTILINE
    )
    assert headings == [
        "`catalog/c`, changed here: 1 warning",
        "`catalog/b`: 1 error",
        "`catalog/a`: 1 note",
    ]


def test_summary_size_is_limited() -> None:
    result = [
        problem(line % 300, path=f"catalog/{line // 300:03}.yaml", message="m" * 480)
        for line in range(30_000)
    ]
    text = reports.render_summary(result, 20_000)
    assert 900_000 < len(text.encode()) <= 1024 * 1024
    listed = len(re.findall(r"^\d+:9 error", text, re.MULTILINE))
    assert f"There are {30_000 - listed:,} more than are listed here" in text


def test_file_with_many_problems_leaves_room_for_others() -> None:
    result = [
        *(problem(line, path="catalog/a", message="m" * 500) for line in range(1, 1001)),
        problem(path="catalog/b"),
    ]
    text = reports.render_summary(result, 2)
    assert "#### `catalog/a`: 1,000 errors" in text
    assert "#### `catalog/b`: 1 error" in text
    assert "There are 900 more" in text


@given(
    st.lists(
        st.text(alphabet=st.sampled_from("`~<a>#|\n\r\u202e\t @x[](!)-"), max_size=40),
        min_size=4,
        max_size=4,
    )
)
def test_catalog_texts_add_no_markdown(texts: list[str]) -> None:
    """The report has two headings, a paragraph and a fence, as CommonMark reads it."""
    path, message, expected, help = texts
    text = reports.render_summary(
        [problem(path=f"catalog/{path}", message=message, expected=expected, help=help)], 1
    )
    kinds = [
        token.type
        for token in MarkdownIt("commonmark").parse(text)
        if token.type not in ("inline", "heading_close", "paragraph_close")
    ]
    assert kinds == ["heading_open", "paragraph_open", "heading_open", "fence"]
    assert "\u202e" not in text


# --- SARIF


def test_sarif_result_has_rule_place_and_level() -> None:
    run = sarif_run(
        [problem(4, "note", rule="a-rule"), problem(2)],
        rules={"reference": reports.RuleDescription("in a line", "# in full", "warning")},
    )
    assert run["tool"]["driver"]["name"] == "toolcatalog"
    assert run["tool"]["driver"]["rules"] == [
        {"id": "a-rule"},
        {
            "id": "reference",
            "shortDescription": {"text": "in a line"},
            "help": {"text": "# in full", "markdown": "# in full"},
            "defaultConfiguration": {"level": "warning"},
        },
    ]
    error, note = run["results"]
    assert (error["ruleId"], error["ruleIndex"], error["level"]) == ("reference", 1, "error")
    assert (note["ruleId"], note["ruleIndex"], note["level"]) == ("a-rule", 0, "note")
    [place] = error["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": TOOL, "uriBaseId": "%SRCROOT%"}
    assert place["physicalLocation"]["region"] == {
        "startLine": 2,
        "startColumn": 9,
        "endColumn": 12,
    }
    assert error["message"]["text"].splitlines()[0] == "there is no tool `X`"
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_path_is_a_uri() -> None:
    run = sarif_run([problem(path="catalog/a b%\u00e9.yaml")])
    assert (
        run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        == "catalog/a%20b%25%C3%A9.yaml"
    )


def test_sarif_fingerprints_ignore_line_numbers_and_are_unique() -> None:
    before, after = (
        [problem(line), problem(line + 1), problem(3, message="another")] for line in (1, 50)
    )
    prints = [
        sorted(
            one["partialFingerprints"]["primaryLocationLineHash"]
            for one in sarif_run(some)["results"]
        )
        for some in (before, after)
    ]
    assert prints[0] == prints[1]
    assert len({*prints[0]}) == 3


def test_sarif_results_are_limited() -> None:
    run = sarif_run(
        [problem(line, path=f"catalog/{line % 7}", severity="warning") for line in range(1, 25_002)]
        + [problem()]
    )
    assert len(run["results"]) == 25_000
    assert run["results"][0]["level"] == "error"
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].startswith(
        "2 problems more"
    )


# --- JUnit


def test_junit_file_with_an_error_is_a_failed_test() -> None:
    text = reports.render_junit(
        [problem(5, "warning"), problem(9), problem(1, "note", path="catalog/catalog.yaml")], 10
    )
    wrong, advised, others = cases(text)
    failure = wrong.find("failure")
    assert failure is not None
    assert failure.get("message") == "1 error, 1 warning; first, line 9: there is no tool `X`"
    assert (failure.text or "").splitlines()[0] == "5:9 warning[reference] there is no tool `X`"
    assert wrong.get("name") == wrong.get("file") == TOOL
    assert advised.find("failure") is None
    assert "1:9 note[reference]" in (advised.findtext("system-out") or "")
    assert others.get("name") == "8 files without problems"
    suites = ET.fromstring(text)  # noqa: S314
    assert {**suites.attrib} == {"tests": "3", "failures": "1", "errors": "0", "skipped": "0"}


def test_junit_valid_catalog_is_one_passed_test() -> None:
    [only] = cases(reports.render_junit([], 3))
    assert (only.get("name"), [*only]) == ("3 files without problems", [])


# --- all of them


@given(st.lists(st.text(max_size=30), min_size=4, max_size=4))
def test_reports_are_well_formed_for_any_text(texts: list[str]) -> None:
    path, message, expected, help = texts
    result = [
        problem(
            path=f"catalog/{path.encode(errors='replace').decode()}",
            message=message,
            expected=expected,
            help=help,
            excerpt=message,
        )
    ]
    assert (
        len(commands(reports.render_github(result, 1).replace("\x0b", " ").replace("\x0c", " ")))
        == 1
    )
    assert reports.render_summary(result, 1).encode()
    assert len(sarif_run(result)["results"]) == 1
    assert len(cases(reports.render_junit(result, 1))) == 2


@pytest.mark.parametrize("form", FORMS)
def test_order_of_problems_does_not_matter(form: Any) -> None:
    result = [
        problem(line, severity, path=f"catalog/{line % 3}")
        for line in range(1, 30)
        for severity in ("error", "warning", "note")
    ]
    assert form(result, 9, {"catalog/1"}) == form(result[::-1], 9, {"catalog/1"})


@pytest.mark.parametrize("form", FORMS)
def test_ten_thousand_problems_are_reported_quickly(form: Any) -> None:
    result = [
        problem(line % 50 + 1, path=f"catalog/toolkits/t/T_{line // 5}/20250101_00.yaml")
        for line in range(10_000)
    ]
    start = time.process_time()
    form(result, 20_000, {result[5].path})
    # a tenth of it on a quiet machine: what is not linear takes minutes
    assert time.process_time() - start < 5
