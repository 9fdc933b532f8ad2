"""`toolcatalog check`: its report, formats, fixes, cache and exit codes."""

import json
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.command import run_successfully, run_toolcatalog
from support.paths import DATA

BASE = DATA / "rejects" / "_base" / "catalog"
TOOL = "toolkits/mail/MAIL_SEND/20250202_00.yaml"
EMPTY = "name: Send\ndescription: ''\n"  # a warning
# an error with one right answer
WRONG = "name: 5\ndescription: Send a message to somebody, now or at a time that is given.\n"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A small catalog without errors."""
    shutil.copytree(BASE, tmp_path / "catalog")
    return tmp_path / "catalog"


def rules(catalog: Path, *arguments: object) -> list[tuple[str, str]]:
    result = run_toolcatalog("check", "--catalog", catalog, "--format", "json", *arguments)
    return [(problem["rule"], problem["severity"]) for problem in json.loads(result.stdout)]


def test_warnings_do_not_fail(catalog: Path) -> None:
    """Exit code 0, or 1 with `--strict`."""
    (catalog / TOOL).write_text(EMPTY)
    result = run_toolcatalog("check", "--catalog", catalog)
    assert result.returncode == 0
    assert (
        f"catalog/{TOOL}:2:14: warning[description-empty] the description is empty" in result.stdout
    )
    assert "1 warning in 1 file, of 10 files read." in result.stdout
    assert run_toolcatalog("check", "--catalog", catalog, "--strict").returncode == 1


def test_build_succeeds_with_warnings(catalog: Path, tmp_path: Path) -> None:
    """Unless the catalog raises the rule to an error."""
    (catalog / TOOL).write_text(EMPTY)
    paths = ("--catalog", catalog, "--out", tmp_path / "build", "--no-site")
    run_successfully("build", *paths)
    (catalog / "catalog.yaml").write_text("title: Base\nrules: {description-empty: error}\n")
    result = run_toolcatalog("build", *paths)
    assert result.returncode == 1
    assert "error[description-empty]" in result.stderr
    assert "Nothing was built." in result.stderr


def test_catalog_sets_severities(catalog: Path) -> None:
    """error, warning, note or off, for each lint rule."""
    (catalog / TOOL).write_text(EMPTY)
    for severity, displayed in (
        ("error", True),
        ("note", False),
        ("off", False),
        ("warning", True),
    ):
        (catalog / "catalog.yaml").write_text(
            f"title: Base\nrules: {{description-empty: {severity}}}\n"
        )
        assert rules(catalog) == [("description-empty", severity)] * displayed
        assert rules(catalog, "--min-severity", "note").count(("description-empty", severity)) == (
            severity != "off"
        )


def test_comment_suppresses_a_finding(catalog: Path) -> None:
    """On its line, with a reason, also for cached files."""
    (catalog / TOOL).write_text(
        EMPTY.replace("''", "'' # toolcatalog: ignore[description-empty] the name says it")
    )
    assert rules(catalog) == rules(catalog) == []
    (catalog / TOOL).write_text(EMPTY)
    assert rules(catalog) == rules(catalog) == [("description-empty", "warning")]


def test_only_the_newest_version_is_linted(catalog: Path) -> None:
    """Older versions may not change any more."""
    (catalog / TOOL).write_text(EMPTY)
    newer = (
        "name: Send\ndescription: Send a message to one person, or to several at once; not for"
        " drafts.\n"
    )
    (catalog / TOOL).with_name("20250303_00.yaml").write_text(newer)
    assert rules(catalog) == []


def test_paths_limit_the_report(catalog: Path) -> None:
    """Only problems there are shown and count; the number of others is printed."""
    (catalog / TOOL).write_text(WRONG)
    for location in (catalog / TOOL, catalog / "toolkits" / "mail", catalog):
        assert rules(catalog, location) == [("wrong-type", "error")]
    result = run_toolcatalog("check", "--catalog", catalog, catalog / "sessions")
    assert (result.returncode, result.stdout) == (0, "")
    assert "No problems in 10 files. 1 elsewhere in the catalog." in result.stderr
    result = run_toolcatalog("check", "--catalog", catalog, catalog.parent)
    assert result.returncode == 2
    assert "is not in" in result.stderr


def test_fix(catalog: Path) -> None:
    """Problems with one right answer are fixed, others reported; a second run changes nothing."""
    (catalog / TOOL).write_text(f"{WRONG}tagz: []\n")
    result = run_toolcatalog("check", "--catalog", catalog, "--fix")
    assert result.returncode == 1
    assert f"Fixed 1 problem in 1 file: catalog/{TOOL}" in result.stderr
    assert "unknown-key" in result.stdout
    mended = (catalog / TOOL).read_text()
    assert mended == f"{WRONG}tagz: []\n".replace("5", '"5"', 1)
    assert "Fixed" not in run_toolcatalog("check", "--catalog", catalog, "--fix").stderr
    assert (catalog / TOOL).read_text() == mended


def test_unsafe_fixes(catalog: Path) -> None:
    """They rename files and fix likely mistakes, and lose no data; `--fix` alone does not
    run them.
    """
    folder = catalog / "toolkits/Parcels/parcels_track"
    folder.mkdir(parents=True)
    (folder.parent / "toolkit.yml").write_text("name: Parcels\ncategories: post\n")
    (folder / "20250202_00.yml").write_text("name: Track\ndescripton: Track a parcel.\n")
    taken = catalog / "catalog.yml"
    taken.write_text("title: Another\n")
    before = run_toolcatalog("check", "--catalog", catalog, "--fix")
    assert before.returncode == 1
    assert (folder / "20250202_00.yml").exists()
    result = run_toolcatalog("check", "--catalog", catalog, "--fix", "--unsafe")
    assert "catalog.yml stays: catalog.yaml is there already." in result.stderr
    assert "Renamed toolkits/Parcels/toolkit.yml to toolkits/parcels/toolkit.yaml" in result.stderr
    assert "Fixed 2 problems in 2 files" in result.stderr
    assert not folder.parent.exists()
    home = catalog / "toolkits/parcels"
    assert (home / "toolkit.yaml").read_text() == "name: Parcels\ncategories: [post]\n"
    tool = (home / "PARCELS_TRACK/20250202_00.yaml").read_text()
    assert tool == "name: Track\ndescription: Track a parcel.\n"
    taken.unlink()
    assert run_toolcatalog("check", "--catalog", catalog).returncode == 0
    refused = run_toolcatalog("check", "--catalog", catalog, "--unsafe")
    assert (refused.returncode, "--unsafe goes with --fix" in refused.stderr) == (2, True)


def test_fix_that_does_not_help_is_not_written(catalog: Path) -> None:
    """In quotes the number is a string, but still no value of the enum."""
    text = f"{EMPTY}input_parameters: {{a: {{type: string, enum: [x], default: 5}}}}\n"
    (catalog / TOOL).write_text(text)
    result = run_toolcatalog("check", "--catalog", catalog, "--fix")
    assert result.returncode == 1
    assert "Fixed" not in result.stderr
    assert (catalog / TOOL).read_text() == text


def test_github_format(catalog: Path, tmp_path: Path) -> None:
    """Annotations on standard output, all problems in the job summary, paths relative to the
    repository.
    """
    (tmp_path / ".git").mkdir()
    nested = tmp_path / "data" / "catalog"
    nested.parent.mkdir()
    catalog.rename(nested)
    (nested / TOOL).write_text(WRONG)
    summary = tmp_path / "summary.md"
    result = run_toolcatalog(
        "check",
        "--catalog",
        nested,
        "--format",
        "github",
        env={"GITHUB_STEP_SUMMARY": str(summary)},
    )
    assert result.returncode == 1
    assert result.stdout.startswith(f"::error file=data/catalog/{TOOL},line=1,")
    assert "1 error, 10 files read" in summary.read_text()


def test_sarif_and_junit_formats(catalog: Path) -> None:
    (catalog / TOOL).write_text(WRONG)
    log = json.loads(run_toolcatalog("check", "--catalog", catalog, "--format", "sarif").stdout)
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["wrong-type"]
    assert log["runs"][0]["tool"]["driver"]["rules"][0]["id"] == "wrong-type"
    tests = ET.fromstring(  # noqa: S314 - our own
        run_toolcatalog("check", "--catalog", catalog, "--format", "junit").stdout
    )
    assert tests.find(".//failure") is not None


def test_cache_is_next_to_the_catalog(catalog: Path) -> None:
    """Git ignores it, and deleting it only costs time."""
    (catalog / TOOL).write_text(EMPTY)
    expected = rules(catalog)
    cache = catalog.parent / "build" / ".cache"
    assert (cache / ".gitignore").read_text() == "*\n"
    output = [*cache.glob("parts/*/*.findings")]
    assert output
    for files in (
        (cache / "check-result",),
        (cache / "check-result", *output),
        (cache / "check-result", cache / "rule-facts"),
    ):
        for file in files:
            file.write_bytes(b"damaged")
        assert rules(catalog) == expected
    shutil.rmtree(cache)
    assert rules(catalog) == expected


def test_cached_report_is_used_only_if_nothing_changed(catalog: Path) -> None:
    """A tool, a file next to the tools, the options or the path of the catalog."""
    (catalog / TOOL).write_text(EMPTY)
    expected = run_check(catalog)
    assert "description-empty" in expected
    assert run_check(catalog) == expected
    assert "description-empty" not in run_check(catalog, "--min-severity", "error")
    assert run_check(catalog) == expected
    moved = catalog.rename(catalog.with_name("moved"))
    assert run_check(moved) == expected.replace("catalog/toolkits", "moved/toolkits")
    (moved / "catalog.yaml").write_text("title: Base\nrules: {description-empty: 'off'}\n")
    assert "description-empty" not in run_check(moved)
    (moved / "catalog.yaml").write_text("title: Base\n")
    assert "description-empty" in run_check(moved)
    (moved / TOOL).write_text(
        EMPTY.replace("''", "Send a message to somebody, now or at a time that is given.")
    )
    assert "description-empty" not in run_check(moved)
    (moved / TOOL).write_text(WRONG)
    for _ in range(2):
        assert ("wrong-type", "error") in rules(moved)


def run_check(catalog: Path, *arguments: object) -> str:
    """Return the output of a check without errors."""
    result = run_toolcatalog("check", "--catalog", catalog, "--format", "concise", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_read_only_folder_disables_the_cache(catalog: Path) -> None:
    assert rules(catalog, "--cache-dir", "/proc/nowhere/build") == []
    assert not (catalog.parent / "build").exists()


def test_watch_checks_again_after_each_change(catalog: Path, tmp_path: Path) -> None:
    """Until it is interrupted."""
    command, log = (
        [sys.executable, "-m", "toolcatalog", "check", "--catalog", str(catalog), "--watch"],
        tmp_path / "log",
    )
    with log.open("w") as sink, subprocess.Popen(command, stdout=sink, stderr=sink) as process:
        deadline = time.monotonic() + 60
        while "wrong-type" not in log.read_text() and time.monotonic() < deadline:
            if "Watching" in log.read_text():
                (catalog / TOOL).write_text(f"{WRONG}# {time.monotonic()}\n")
            time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        finally:
            process.kill()
    assert "Watching" in log.read_text()
    assert "wrong-type" in log.read_text()
    assert process.returncode == 130


def test_ten_thousand_problems_print_within_seconds(catalog: Path) -> None:
    keys = "".join(f"key{number}: 1\n" for number in range(500))
    for number in range(20):
        folder = catalog / "toolkits" / "mail" / f"MAIL_{number}"
        folder.mkdir()
        (folder / "20250101_00.yaml").write_text(f"{EMPTY}{keys}")
    result = run_toolcatalog("check", "--catalog", catalog)
    assert result.returncode == 1
    assert "\n10,000 errors, 1 warning in 21 files, of 29 files read." in result.stdout
