"""Environment variables and the options of every command."""

import json
import logging
from pathlib import Path

import click
import pytest

from toolcatalog.cli import environment
from toolcatalog.cli.main import cli, main

TOOL = "name: Do it\ndescription: Does it for every item in the list.\n"
REPORT_ALL = ("--min-severity", "note", "--format", "json")


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog with one tool that has an error, and one that has a warning."""
    folder = tmp_path / "catalog"
    tool = write_tool(folder, "A_DO", TOOL)
    write_tool(folder, "A_GO", "name: Go\ndescription: Goes.\n")
    (folder / "catalog.yaml").write_text("title: Small\n")
    (folder / "toolkits" / "a" / "toolkit.yaml").write_text("name: A\n")
    tool.write_text(TOOL + "color: red\n")
    return folder


def write_tool(catalog: Path, slug: str, text: str) -> Path:
    """Write the version of a tool; return its file."""
    file = catalog / "toolkits" / "a" / slug / "20250101_00.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def find_rules(out: str) -> set[str]:
    """The rules of the problems that `check --format json` prints."""
    return {problem["rule"] for problem in json.loads(out)}


@pytest.mark.parametrize(
    ("path", "option", "variables"),
    [
        (["serve"], "port", ["TOOLCATALOG_SERVE_PORT"]),
        (["check"], "output_format", ["TOOLCATALOG_CHECK_FORMAT"]),
        (["keys", "create"], "project", ["TOOLCATALOG_KEYS_CREATE_PROJECT"]),
        (["serve"], "redis", ["TOOLCATALOG_SERVE_REDIS", "TOOLCATALOG_REDIS"]),
        (["build"], "quiet", ["TOOLCATALOG_QUIET"]),
    ],
)
def test_environment_variable_names(path: list[str], option: str, variables: list[str]) -> None:
    """Of command and long option."""
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        subcommand = command.get_command(click.Context(command), name)
        assert subcommand is not None
        command = subcommand
    (result,) = [item for item in command.params if item.name == option]
    assert isinstance(result, click.Option)
    assert environment.list_variables(result) == variables


def test_environment_variable_sets_an_option(
    catalog: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line has priority."""
    monkeypatch.setenv("TOOLCATALOG_CHECK_CATALOG", str(catalog))
    monkeypatch.setenv("TOOLCATALOG_CHECK_FORMAT", "json")
    assert main(["check"]) == 1
    assert "unknown-key" in find_rules(capsys.readouterr().out)
    assert main(["check", "--format", "concise"]) == 1
    assert ": unknown-key: " in capsys.readouterr().out


def test_select_and_ignore(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rules by pattern; only selected ones are reported and set the exit code."""
    arguments = ["check", "--catalog", str(catalog), *REPORT_ALL]
    assert main([*arguments]) == 1
    everything = find_rules(capsys.readouterr().out)
    assert {"unknown-key", "description-short"} <= everything
    assert main([*arguments, "--select", "unknown-*,placeholder"]) == 1
    assert find_rules(capsys.readouterr().out) == {"unknown-key"}
    assert main([*arguments, "--ignore", "unknown-key"]) == 0
    assert find_rules(capsys.readouterr().out) == everything - {"unknown-key"}
    assert main([*arguments, "--select", "unknown-kye"]) == 2
    assert "There is no rule unknown-kye: did you mean unknown-key?" in capsys.readouterr().err


def test_quiet(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No messages and progress, but findings and errors; only for this call."""
    for slug in ("A_DO", "A_GO"):
        write_tool(catalog, slug, TOOL)
    least = ("--min-severity", "error")
    assert main(["check", "--catalog", str(catalog), "-q", *least]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["-q", "check", "--catalog", str(catalog / "none")]) == 2
    assert "No catalog at" in capsys.readouterr().err
    assert main(["check", "--catalog", str(catalog), *least]) == 0
    assert "No problems in 4 files." in capsys.readouterr().err


def test_verbose(
    catalog: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has exit code, times, and tracebacks."""
    logger = logging.getLogger("toolcatalog")
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    try:
        assert main(["check", "--catalog", str(catalog / "none"), "--verbose"]) == 2
    finally:
        logger.setLevel(logging.NOTSET)
    assert any(record.exc_info for record in caplog.records)
    assert "exit code 2 after" in caplog.text
