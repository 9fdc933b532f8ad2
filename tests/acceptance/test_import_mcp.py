"""`import mcp`: what an MCP server lists becomes catalog files, from a file or from a live server
of the official SDK.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.command import run_successfully, run_toolcatalog
from support.mcp_server import SERVER
from toolcatalog import names
from toolcatalog.errors import UsageError
from toolcatalog.importers import mcp
from toolcatalog.validation import checker

NONSENSE = '{"jsonrpc": "2.0", "id": 1, "result": {"tools": 5}}'
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where."}},
    "required": ["city"],
}
FORECAST = {
    "name": "getForecast",
    "title": "Forecast",
    "description": "Tell the weather.",
    "inputSchema": SCHEMA,
}


def tool(name: str = "getForecast", **extra: Any) -> dict[str, Any]:
    """A small tool of MCP."""
    return {"name": name, "inputSchema": {"type": "object"}, **extra}


def slugs(*tools: str, toolkit: str = "weather") -> list[str]:
    """The slugs that tools of these names get."""
    return [addition.slug for addition in mcp.import_tools([tool(name) for name in tools], toolkit)]


# What a tool becomes


def test_a_tool() -> None:
    """Title, description, hints that say yes, and both schemas, in the words of the catalog."""
    hints = {"readOnlyHint": True, "openWorldHint": True, "title": "Not this"}
    (item,) = mcp.import_tools(
        [
            {
                **FORECAST,
                "annotations": hints,
                "outputSchema": {"type": "object", "properties": {"sky": {"type": "string"}}},
            }
        ],
        "weather",
    )
    assert (item.slug, item.version, item.losses, item.toolkit) == (
        "WEATHER_GET_FORECAST",
        "",
        (),
        {"slug": "weather"},
    )
    assert item.value == {
        "name": "Forecast",
        "description": "Tell the weather.",
        "tags": ["readOnlyHint", "openWorldHint"],
        "input_parameters": {"city": {"type": "string", "description": "Where.", "required": True}},
        "output_parameters": {"sky": {"type": "string"}},
    }


def test_a_tool_that_says_little() -> None:
    """A name is enough; the title may stand among the annotations."""
    (bare, titled) = mcp.import_tools(
        [{"name": "go"}, tool("stop", annotations={"title": "Stop"})], "car"
    )
    assert bare.value == {"name": "go", "description": ""}
    assert titled.value["name"] == "Stop"


def test_what_is_not_held_is_told() -> None:
    """A hint that says no is no tag, and the same as none; icons and the like have no place."""
    value = tool(
        icons=[],
        _meta={"a": 1},
        execution=None,
        annotations={"destructiveHint": False, "mood": "bright"},
    )
    (item,) = mcp.import_tools([value], "weather")
    assert sorted(loss.what for loss in item.losses) == [
        "`_meta` of a tool",
        "`destructiveHint` that is false",
        "`icons` of a tool",
        "`mood` of annotations",
    ]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("get_forecast", "WEATHER_GET_FORECAST"),
        ("get-forecast", "WEATHER_GET_FORECAST"),
        ("admin.tools/list", "WEATHER_ADMIN_TOOLS_LIST"),
        ("parseHTTPBody2Text", "WEATHER_PARSE_HTTP_BODY2_TEXT"),
        ("weather_get", "WEATHER_GET"),
        ("WEATHER_GET", "WEATHER_GET"),
        ("weatherman", "WEATHER_WEATHERMAN"),
        ("x" * 56, "WEATHER_" + "X" * 56),
    ],
)
def test_slugs(name: str, slug: str) -> None:
    """The toolkit and the words of the name, in capitals."""
    assert slugs(name) == [slug]


def test_names_that_would_have_one_slug_are_told_apart() -> None:
    """By a digest of each, whatever the order."""
    item, other, alone = slugs("getForecast", "get_forecast", "go")
    assert alone == "WEATHER_GO"
    assert item.rpartition("_")[0] == other.rpartition("_")[0] == "WEATHER_GET_FORECAST"
    assert item != other
    assert slugs("get_forecast", "go", "getForecast") == [other, alone, item]


@given(
    st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=5, unique=True),
    st.from_regex(names.TOOLKIT_SLUG, fullmatch=True),
)
def test_slugs_of_any_names(tools: list[str], toolkit: str) -> None:
    """Each is a slug that every provider takes, and no two are alike."""
    result = slugs(*tools, toolkit=toolkit[:40])
    assert all(names.is_valid(names.TOOL_SLUG, slug) and len(slug) <= 64 for slug in result)
    assert len({*result}) == len(tools)


@pytest.mark.parametrize(
    "value",
    [
        [FORECAST],
        {"tools": [FORECAST]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [FORECAST]}},
        {"tools": [FORECAST], "serverInfo": {"name": "other"}},
    ],
)
def test_the_forms_of_a_list(value: Any) -> None:
    """Bare, as a result, in its message; a toolkit that is named goes before the server's name."""
    (item,) = mcp.import_tools(value, "weather")
    assert item.slug == "WEATHER_GET_FORECAST"


def test_a_server_names_the_toolkit() -> None:
    """Its name as a slug, its title and its page."""
    server = {
        "name": "Acme Weather/2",
        "title": "Acme Weather",
        "websiteUrl": "https://example.com",
        "version": "2",
    }
    (item,) = mcp.import_tools({"tools": [FORECAST], "serverInfo": server})
    assert item.slug == "ACME_WEATHER_2_GET_FORECAST"
    assert item.toolkit == {
        "slug": "acme_weather_2",
        "name": "Acme Weather",
        "homepage": "https://example.com",
    }


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("tools", "There is no list of MCP tools here"),
        ({"tools": {}}, "There is no list of MCP tools here"),
        (
            {"error": {"code": 1, "message": "Nothing here"}},
            "This is an error of an MCP server and no list of tools: Nothing here",
        ),
        ({"tools": [FORECAST], "nextCursor": "2"}, "This is one page of several"),
        ([1], "Item 1 is not a JSON object"),
        ([FORECAST, {"name": 5}], "Item 2 has no name"),
        (
            [tool(inputSchema={"type": "array"})],
            "`inputSchema` of item 1 ('getForecast') is not the JSON Schema of an object",
        ),
        (
            [tool(outputSchema=[])],
            "`outputSchema` of item 1 ('getForecast') is not the JSON Schema of an object",
        ),
    ],
)
def test_what_is_no_list_of_tools(value: Any, sentence: str) -> None:
    """One sentence for each thing that is wrong."""
    with pytest.raises(UsageError) as error:
        mcp.import_tools(value, "weather")
    assert sentence in str(error.value)


def test_a_list_of_thousands_that_say_nothing() -> None:
    """One sentence, before any of them is looked at."""
    with pytest.raises(UsageError, match="There are 2,049 tools here"):
        mcp.import_tools([tool(f"t{number}") for number in range(2_049)], "weather")


@pytest.mark.parametrize(
    ("value", "toolkit"),
    [
        ([FORECAST], ""),
        ({"tools": [FORECAST], "serverInfo": {"name": "日本"}}, ""),
        ([FORECAST], "Big One"),
    ],
)
def test_without_a_toolkit_nothing_is_guessed(value: Any, toolkit: str) -> None:
    """A first word such as `get` would be none."""
    with pytest.raises(UsageError, match="--toolkit SLUG"):
        mcp.import_tools(value, toolkit)


# The command


def test_a_file_becomes_a_catalog(tmp_path: Path) -> None:
    """It passes `check`, and a second time changes nothing."""
    (tmp_path / "tools.json").write_text(json.dumps({"tools": [FORECAST, tool("other")]}))
    for text in ("2 new", "0 new"):
        done = run_toolcatalog(
            "import",
            "mcp",
            tmp_path / "tools.json",
            "--into",
            tmp_path / "catalog",
            "--toolkit",
            "weather",
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert text in done.stderr
    assert [
        problem
        for problem in checker.check_folder(tmp_path / "catalog").problems
        if problem.severity == "error"
    ] == []


def test_what_is_exported_comes_back(shipped_build: Path, tmp_path: Path) -> None:
    """Every tool of a toolkit, exported as MCP and imported again, is exported the same: nothing
    that MCP holds is lost on the way.
    """
    text = run_successfully("export", "mcp", "--toolkit", "github", "--build", shipped_build)
    (tmp_path / "tools.json").write_text(text)
    run_successfully(
        "import",
        "mcp",
        tmp_path / "tools.json",
        "--into",
        tmp_path / "catalog",
        "--toolkit",
        "github",
    )
    run_successfully(
        "build", "--catalog", tmp_path / "catalog", "--out", tmp_path / "build", "--no-site"
    )
    assert json.loads(
        run_successfully("export", "mcp", "--toolkit", "github", "--build", tmp_path / "build")
    ) == json.loads(text)


def live(tmp_path: Path, *command: object, seconds: float = 60) -> tuple[int, str]:
    """Import from a command: the exit code, and what is told."""
    done = run_toolcatalog(
        "import", "mcp", "--into", tmp_path / "catalog", "--timeout", seconds, "--", *command
    )
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_a_live_server(tmp_path: Path) -> None:
    """All pages of what it lists come in, under its own name, and it is gone afterwards."""
    (tmp_path / "tools.json").write_text(
        json.dumps(
            [tool(f"do_{number}", annotations={"readOnlyHint": True}) for number in range(7)]
        )
    )
    code, text = live(tmp_path, sys.executable, SERVER, tmp_path / "tools.json", 3)
    assert (code, "Imported 7 tools" in text) == (0, True)
    home = tmp_path / "catalog" / "toolkits" / "test_server_2"
    assert sorted(path.name for path in home.iterdir()) == [
        *(f"TEST_SERVER_2_DO_{number}" for number in range(7)),
        "toolkit.yaml",
    ]
    assert (home / "toolkit.yaml").read_text().startswith("name: A test\n")
    assert "tags: [readOnlyHint]" in (home / "TEST_SERVER_2_DO_3" / "00000000_00.yaml").read_text()


@pytest.mark.parametrize(
    ("script", "seconds", "sentence"),
    [
        (
            "import sys; print('no licence', file=sys.stderr); sys.exit(3)",
            30,
            "answers with an error (Connection closed)",
        ),
        (
            "import sys, time; print('no licence', file=sys.stderr, flush=True); time.sleep(60)",
            3,
            "did not answer within 3 seconds",
        ),
        (
            (
                "import sys, time; print('no licence', file=sys.stderr); print('hello',"
                " flush=True); time.sleep(60)"
            ),
            3,
            "did not answer within 3 seconds",
        ),
        (
            (
                "import sys; print('no licence', file=sys.stderr)\nfor line in sys.stdin:"
                f" print({NONSENSE!r}, flush=True)"
            ),
            5,
            "answer",
        ),
    ],
)
def test_a_server_that_does_not_answer(
    script: str, seconds: float, sentence: str, tmp_path: Path
) -> None:
    """One sentence with its last lines, nothing written, and it is stopped."""
    noted = "import os, sys\nopen(sys.argv[1], 'w').write(str(os.getpid()))\n"
    code, text = live(
        tmp_path, sys.executable, "-c", noted + script, tmp_path / "pid", seconds=seconds
    )
    assert (code, sentence in text) == (2, True), text
    assert text.endswith("  It wrote:\n  no licence\n")
    assert not (tmp_path / "catalog").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (["nothing.json"], "There is no file nothing.json, and no program nothing.json"),
        (["no-such-program", "--flag"], "There is no program no-such-program"),
        (["no-such-program --flag"], "no program no-such-program"),
        (["'"], "is no command"),
        ([""], "There is no file"),
    ],
)
def test_a_source_that_is_none(source: list[str], sentence: str, tmp_path: Path) -> None:
    """Neither a file nor a program."""
    code, text = live(tmp_path, *source)
    assert (code, sentence in text) == (2, True), text


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    """It is there, and cannot be run."""
    code, text = live(tmp_path, tmp_path)
    assert (code, "There is no file" in text) == (2, True), text


def test_without_the_extra_it_is_named(tmp_path: Path) -> None:
    """A live server needs the SDK; a file does not."""
    (tmp_path / "mcp.py").write_text("raise ImportError\n")
    (tmp_path / "tools.json").write_text(json.dumps([FORECAST]))
    env = {"PYTHONPATH": str(tmp_path)}
    done = run_toolcatalog(
        "import", "mcp", "--into", tmp_path / "catalog", "--", sys.executable, "-V", env=env
    )
    assert (done.returncode, "pip install 'toolcatalog[mcp]'" in done.stderr) == (2, True)
    done = run_toolcatalog(
        "import",
        "mcp",
        tmp_path / "tools.json",
        "--toolkit",
        "weather",
        "--into",
        tmp_path / "catalog",
        env=env,
    )
    assert done.returncode == 0
