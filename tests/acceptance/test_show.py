"""`toolcatalog show`: a tool or toolkit as text, JSON and Markdown."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run_successfully
from toolcatalog.cli.main import main

SLUG = "GITHUB_CREATE_ISSUE"


def test_text_format(shipped_build: Path) -> None:
    """Without colors in a pipe."""
    displayed = run_successfully(
        "show", SLUG, "--build", shipped_build, env={"TERM": "xterm-256color"}
    )
    assert displayed.startswith(f"{SLUG}  20251027_00\nCreate an issue  GitHub\n")
    for line in ("Toolkit     github", "Inputs", "├── owner  string, required", "Outputs"):
        assert f"\n{line}" in displayed
    assert f"GET /api/v3/tools/{SLUG}?version=20251027_00" in displayed
    assert "\x1b" not in displayed


def test_json_is_the_document(shipped_build: Path) -> None:
    """The bytes of API and site."""
    site = shipped_build.parent / "site" / "tools" / SLUG
    assert (
        run_successfully("show", SLUG, "--build", shipped_build, "--format", "json")
        == (site / "index.json").read_text() + "\n"
    )
    older = json.loads((site / "index.json").read_bytes())["available_versions"][0]
    result = run_successfully(
        "show", SLUG, "--build", shipped_build, "--format", "json", "--version", older
    )
    assert result == (site / f"{older}.json").read_text() + "\n"


@pytest.mark.parametrize("slug", [SLUG, "GITHUB_ADVANCED_SEARCH_ISSUES", "GITHUB_CLOSE_ISSUE"])
def test_markdown_is_the_page_as_markdown(shipped_build: Path, slug: str) -> None:
    """Also of deprecated tools."""
    assert (
        run_successfully("show", slug, "--build", shipped_build, "--format", "markdown")
        == (shipped_build.parent / "site" / "tools" / slug / "index.md").read_text()
    )


def test_deprecated_tool_has_its_reason(shipped_build: Path) -> None:
    """With the replacement, which the document lacks."""
    displayed = run_successfully("show", "GITHUB_ADVANCED_SEARCH_ISSUES", "--build", shipped_build)
    assert (
        "Deprecated since 2025-10-27, until 2026-06-30. Use GITHUB_SEARCH_ISSUES_AND_PULL_REQUESTS"
        " instead.\nGitHub made" in displayed
    )


def test_toolkit(shipped_build: Path) -> None:
    """A lowercase slug: its tools as text, its index as JSON, all tools as Markdown."""
    assert f"\n{SLUG} " in run_successfully("show", "github", "--build", shipped_build)
    index = json.loads(
        run_successfully("show", "github", "--build", shipped_build, "--format", "json")
    )
    assert SLUG in {tool["slug"] for tool in index["tools"]}
    older = json.loads(
        run_successfully(
            "show",
            "github",
            "--build",
            shipped_build,
            "--format",
            "json",
            "--version",
            index["toolkit"]["versions"][0],
        )
    )
    assert len(older["tools"]) < len(index["tools"])
    twin = (shipped_build.parent / "site" / "toolkits" / "github" / "llms-full.txt").read_text()
    assert (
        run_successfully("show", "github", "--build", shipped_build, "--format", "markdown") == twin
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["GITHUB_CREATE_ISUE"],
            (
                "There is no tool and no toolkit GITHUB_CREATE_ISUE in {build}: did you mean"
                " GITHUB_CREATE_ISSUE?"
            ),
        ),
        (["githb"], "There is no tool and no toolkit githb in {build}: did you mean github?"),
        (
            ["qqqq"],
            (
                "There is no tool and no toolkit qqqq in {build}: look for it with `toolcatalog"
                " search`."
            ),
        ),
        (
            [SLUG, "--version", "20000101_00"],
            f"{SLUG} has no version 20000101_00: its newest are 20251027_00, ",
        ),
        (["github", "--version", "x"], "github has no version x: its newest are 20251027_00, "),
        ([SLUG, "--build", "none"], "There is no finished build in none: "),
    ],
)
def test_errors_are_one_sentence(
    shipped_build: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """Exit code 2."""
    assert main(["show", "--build", str(shipped_build), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence.format(build=shipped_build)}")
    assert err.count("\n") == 1


def test_toolkit_without_tools_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "catalog" / "toolkits" / "a"
    folder.mkdir(parents=True)
    (tmp_path / "catalog" / "catalog.yaml").write_text("title: A\n")
    (folder / "toolkit.yaml").write_text("name: A\nlogo: https://example.com/a.png\n")
    run_successfully("build", "--no-site", cwd=tmp_path)
    assert main(["show", "a", "--build", str(tmp_path / "build")]) == 2
    assert "The toolkit a has no tools yet" in capsys.readouterr().err
    (toolkits,) = (
        line
        for line in run_successfully("stats", cwd=tmp_path).splitlines()
        if line.startswith("Toolkits")
    )
    assert toolkits.split() == ["Toolkits", "1"]


@pytest.mark.parametrize(("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors_at_a_terminal(shipped_build: Path, extra: dict[str, str], coloured: bool) -> None:
    """Same words as in a pipe, wrapped to its width."""
    actual, reference = pty.openpty()
    command = [sys.executable, "-m", "toolcatalog", "show", SLUG, "--build", str(shipped_build)]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
        "TERM": "xterm-256color",
        "COLUMNS": "60",
        **extra,
    }
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=reference, stderr=reference, env=environment
    ) as process:
        os.close(reference)
        displayed = b""
        while chunk := _read(actual):
            displayed += chunk
    os.close(actual)
    assert process.returncode == 0
    assert (b"\x1b[1;36m" in displayed) == coloured
    assert "├── ".encode() in displayed


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
