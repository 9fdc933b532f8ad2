"""`toolcatalog export`: the selection and order of tools, and the same files in the site."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import run_successfully, run_toolcatalog
from support.mcp_server import SERVER
from support.paths import SHIPPED_CATALOG
from support.profile import DEEP_PROFILE
from toolcatalog.exports import definitions
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, VersionPins

TOOL = "name: Do it\ndescription: Does it.\n"
PLAIN = "input_parameters: {x: {type: string, required: true}}\n"
DOLLAR = "input_parameters: {$top: {type: integer}}\n"
LONG = f"A_{'VERY_' * 20}LONG_NAME"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build with a site; some providers refuse some of its tools, and one tool has two
    versions.
    """
    folder = tmp_path_factory.mktemp("small")
    files = {
        "catalog.yaml": "title: Small\n",
        "toolkits/a/toolkit.yaml": "name: A\nlogo: https://example.com/a.png\n",
        "toolkits/a/A_DO/20250101_00.yaml": TOOL,
        "toolkits/a/A_DO/20260101_00.yaml": TOOL + PLAIN,
        "toolkits/a/A_NEW/20260101_00.yaml": TOOL,
        "toolkits/a/A_TOP/20250101_00.yaml": TOOL + DOLLAR,
        f"toolkits/a/{LONG}/20250101_00.yaml": TOOL,
        "toolkits/b/toolkit.yaml": "name: B\nlogo: https://example.com/b.png\n",
    }
    for path, text in files.items():
        (folder / "catalog" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "catalog" / path).write_text(text)
    run_successfully(
        "build",
        "--catalog",
        folder / "catalog",
        "--out",
        folder / "build",
        "--site",
        folder / "site",
    )
    return folder / "build"


def exported(build: Path, *arguments: str) -> list[dict[str, Any]]:
    """What an export that must succeed prints."""
    results: list[dict[str, Any]] = json.loads(
        run_successfully("export", *arguments, "--build", build)
    )
    return results


def name(definition: dict[str, Any]) -> str:
    """The name of a tool in any form."""
    inner = definition.get("function") or definition.get("toolSpec") or definition
    results: str = definition.get("$id") or inner["name"]
    return results


@pytest.mark.parametrize("output_format", definitions.EXPORT_FORMATS)
def test_tools_keep_the_order_of_arguments(output_format: str, shipped_build: Path) -> None:
    """Named tools first, then tools of toolkits by slug, each once."""
    names = ["SLACK_SEND_MESSAGE", "GITHUB_CREATE_ISSUE", "SLACK_SEND_MESSAGE"]
    results = [
        name(item).split("@")[0]
        for item in exported(shipped_build, output_format, *names, "--toolkit", "slack")
    ]
    store = open_build(shipped_build)
    slack = store.select_page(
        store.search(Filters(toolkits=["slack"]), VersionPins()), "slug", False, 0, 1000
    ).tolist()
    slugs = [json.loads(bytes(store.read_document(number)[0]))["slug"] for number in slack]
    assert results == [*names[:2], *(slug for slug in slugs if slug not in names)]
    assert len(results) > 10


def test_deferred_tools(shipped_build: Path) -> None:
    """The search tool comes first; all others are deferred."""
    search, *tools = exported(shipped_build, "anthropic", "--toolkit", "slack", "--defer")
    assert search == {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    plain = exported(shipped_build, "anthropic", "--toolkit", "slack")
    assert tools == [{**tool, "defer_loading": True} for tool in plain]
    result = run_toolcatalog(
        "export", "openai", "SLACK_SEND_MESSAGE", "--defer", "--build", shipped_build
    )
    assert (result.returncode, "use it with `anthropic`" in result.stderr) == (2, True)


@pytest.mark.parametrize("output_format", definitions.FORMATS)
def test_site_has_the_same_bytes(output_format: str, shipped_build: Path) -> None:
    """`toolkits/<slug>/<form>.json` equals the output of the command, and the toolkit page links
    it.
    """
    folders = sorted((SHIPPED_CATALOG / "toolkits").iterdir())
    for folder in folders if DEEP_PROFILE else folders[::3]:
        site = shipped_build.parent / "site" / "toolkits" / folder.name
        assert (site / f"{output_format}.json").read_text() == run_successfully(
            "export", output_format, "--toolkit", folder.name, "--build", shipped_build
        )
        assert f'href="{output_format}.json"' in (site / "index.html").read_text()


def test_session_export_equals_the_api(shipped_build: Path) -> None:
    """Its meta tools, with its toolkits as choices."""
    answer = json.loads(
        (shipped_build / "current" / "sessions" / "trs_issue_triage.json").read_bytes()
    )
    result = exported(shipped_build, "openai", "--session", "trs_issue_triage")
    assert [name(one) for one in result] == [item["slug"] for item in answer["items"]]
    assert result
    assert [one["function"]["parameters"] for one in result] == [
        definitions.input_schema(item["input_parameters"]) for item in answer["items"]
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["A_DO"], ["A_DO@20260101_00"]),
        (["A_DO@20250101_00"], ["A_DO@20250101_00"]),
        (["A_DO@20250101_00", "A_DO"], ["A_DO@20250101_00", "A_DO@20260101_00"]),
        (["A_DO", "--version", "20251231_00"], ["A_DO@20250101_00"]),
        (
            ["--toolkit", "a", "--version", "20251231_00"],
            ["A_DO@20250101_00", "A_TOP@20250101_00", f"{LONG}@20250101_00"],
        ),
        (["--toolkit", "b"], []),
    ],
)
def test_export_of_versions(arguments: list[str], expected: list[str], small: Path) -> None:
    """The newest, a named one, or the one of a pinned toolkit."""
    assert [name(item) for item in exported(small, "json-schema", *arguments)] == expected


def test_skipped_tools_are_reported(small: Path) -> None:
    """They set the exit code; shortened names are reported only."""
    result = run_toolcatalog("export", "anthropic", "--toolkit", "a", "--build", small)
    shortened = f"{LONG[:47]}_"
    names = [name(item) for item in json.loads(result.stdout)]
    assert (result.returncode, names[:2], names[2][:48]) == (1, ["A_DO", "A_NEW"], shortened)
    assert result.stderr.splitlines() == [
        "A_TOP is left out: anthropic refuses the name of its argument '$top'.",
        f"{names[2]} is the name of {LONG}: anthropic takes names of 64 characters.",
    ]
    assert (
        small.parent / "site" / "toolkits" / "a" / "anthropic.json"
    ).read_text() == result.stdout
    assert (small.parent / "site" / "toolkits" / "b" / "anthropic.json").read_text() == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["openai"], "Name the tools: their slugs, or --toolkit SLUG, or --session ID."),
        (["openai", "A_DO", "--session", "trs_x"], "give --session alone"),
        (["openai", "--session", "trs_x"], "There is no session trs_x"),
        (["openai", "NEW_A"], "There is no tool NEW_A (did you mean A_NEW?)"),
        (["openai", "a_do"], "There is no tool a_do (did you mean A_DO?)"),
        (
            ["openai", "A_DO@20240101_00"],
            "A_DO has no version 20240101_00: it has 20250101_00, 20260101_00.",
        ),
        (["openai", "A_NEW", "--version", "20250101_00"], "A_NEW has no version 20250101_00"),
        (["openai", "A_DO", "--version", "today"], "`today` is not a version"),
        (["openai", "--toolkit", "c"], "There is no toolkit c"),
        (["openai", "", "\x00", "é" * 300], "There is no tool"),
        (["cohere", "A_DO"], "'cohere' is not one of 'openai', 'anthropic', 'openai-responses'"),
    ],
)
def test_wrong_usage_is_reported(arguments: list[str], sentence: str, small: Path) -> None:
    """Exit code 2, and nothing on standard output."""
    if "\x00" in arguments:
        arguments.remove("\x00")  # no shell can hand it over
    result = run_toolcatalog("export", *arguments, "--build", small)
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_all_unknown_names_are_reported_at_once(small: Path) -> None:
    result = run_toolcatalog("export", "mcp", "A_DI", "B_DO", "--toolkit", "c", "--build", small)
    assert [line.removeprefix("error: ")[:28] for line in result.stderr.splitlines()] == [
        "There is no toolkit c.",
        "There is no tool A_DI (did y",
        "There is no tool B_DO (did y",
    ]


def test_mcp_client_reads_the_export(shipped_build: Path, tmp_path: Path) -> None:
    """Served by the official SDK and listed by its client, page by page."""
    toolkits = [
        word
        for folder in (SHIPPED_CATALOG / "toolkits").iterdir()
        for word in ("--toolkit", folder.name)
    ]
    text = run_successfully("export", "mcp", *toolkits, "--build", shipped_build)
    (tmp_path / "tools.json").write_text(text)
    script = (
        "import json, sys\nfrom toolcatalog.importers.mcp_client import"
        " fetch_tools_from_command as fetch\n"
        "print(json.dumps(fetch([sys.executable, *sys.argv[1:]], 60)))"
    )
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        script,
        str(SERVER),
        str(tmp_path / "tools.json"),
        "50",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["tools"] == json.loads(text)
    assert len(json.loads(text)) >= 140
