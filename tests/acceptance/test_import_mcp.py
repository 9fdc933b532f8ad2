"""`import mcp`: tools of an MCP server to catalog files, from a file or a live server."""

import contextlib
import importlib.util
import itertools
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.command import run_successfully, run_toolcatalog
from support.mcp_server import SERVER
from support.server import Server, start_server
from toolcatalog import names
from toolcatalog.errors import UsageError
from toolcatalog.exports.definitions import HINT_TAGS
from toolcatalog.importers import mcp, mcp_client
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
NAMES = [f"p{number}" for number in range(21)]


def tool(name: str = "getForecast", **extra: Any) -> dict[str, Any]:
    """A small tool of MCP."""
    return {"name": name, "inputSchema": {"type": "object"}, **extra}


def slugs(*tools: str, toolkit: str = "weather") -> list[str]:
    """Return the slugs of tools with these names."""
    return [addition.slug for addition in mcp.import_tools([tool(name) for name in tools], toolkit)]


def test_exponential_references_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of a server can unfold to gigabytes; the test uses a small limit."""
    monkeypatch.setattr(mcp, "MAX_TOTAL_SCHEMAS", 30_000)
    inner: dict[str, Any] = {"type": "string"}
    definitions = {"c": inner}
    for name, other in (("b", "c"), ("a", "b")):
        reference = {"$ref": f"#/$defs/{other}"}
        definitions[name] = {"type": "object", "properties": dict.fromkeys(NAMES, reference)}
    schema = {**definitions["a"], "$defs": definitions}
    with pytest.raises(UsageError, match="import a part of them at a time"):
        mcp.import_tools([tool(f"t{number}", inputSchema=schema) for number in range(100)], "kit")


# What a tool becomes


def test_tool_is_imported_with_all_fields() -> None:
    """Title, description, true hints and both schemas."""
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
        "tags": ["readOnlyHint", "openWorldHint", "partialHints"],
        "input_parameters": {"city": {"type": "string", "description": "Where.", "required": True}},
        "output_parameters": {"sky": {"type": "string"}},
    }


def test_name_alone_is_enough() -> None:
    """The title may be among the annotations."""
    (bare, titled) = mcp.import_tools(
        [{"name": "go"}, tool("stop", annotations={"title": "Stop"})], "car"
    )
    assert bare.value == {"name": "go", "description": ""}
    assert titled.value["name"] == "Stop"


def test_unsupported_fields_are_reported() -> None:
    """Icons, and annotations that MCP does not define."""
    value = tool(
        icons=[],
        _meta={"a": 1},
        execution=None,
        annotations={"destructiveHint": False, "mood": "bright"},
    )
    (item,) = mcp.import_tools([value], "weather")
    assert sorted(loss.kind for loss in item.losses) == [
        "`_meta` of a tool",
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
def test_slug_has_toolkit_and_name(name: str, slug: str) -> None:
    assert slugs(name) == [slug]


def test_colliding_slugs_get_a_digest() -> None:
    """In any order of the tools."""
    item, other, alone = slugs("getForecast", "get_forecast", "go")
    assert alone == "WEATHER_GO"
    assert item.rpartition("_")[0] == other.rpartition("_")[0] == "WEATHER_GET_FORECAST"
    assert item != other
    assert slugs("get_forecast", "go", "getForecast") == [other, alone, item]


@given(
    st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=5, unique=True),
    st.from_regex(names.TOOLKIT_SLUG, fullmatch=True),
)
def test_slugs_of_any_names_are_valid_and_unique(tools: list[str], toolkit: str) -> None:
    """For every provider."""
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
def test_accepted_forms_of_a_list(value: Any) -> None:
    """A bare list, a result, or its message; a named toolkit has priority over the server name."""
    (item,) = mcp.import_tools(value, "weather")
    assert item.slug == "WEATHER_GET_FORECAST"


def test_server_names_the_toolkit() -> None:
    """Slug, title and website."""
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
            "This is an error of an MCP server, not a list of tools: Nothing here",
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
def test_invalid_list_is_reported(value: Any, sentence: str) -> None:
    """One sentence per problem."""
    with pytest.raises(UsageError) as error:
        mcp.import_tools(value, "weather")
    assert sentence in str(error.value)


def test_list_of_thousands_of_empty_tools_is_refused() -> None:
    """One sentence, before any tool is read."""
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
def test_toolkit_is_not_guessed(value: Any, toolkit: str) -> None:
    """The first word of a name may be `get`."""
    with pytest.raises(UsageError, match="--toolkit SLUG"):
        mcp.import_tools(value, toolkit)


# The command


def test_imported_file_passes_check(tmp_path: Path) -> None:
    """A second import changes nothing."""
    (tmp_path / "tools.json").write_text(json.dumps({"tools": [FORECAST, tool("other")]}))
    for text in ("2 new", "0 new"):
        result = run_toolcatalog(
            "import",
            "mcp",
            tmp_path / "tools.json",
            "--catalog",
            tmp_path / "catalog",
            "--toolkit",
            "weather",
        )
        assert (result.returncode, result.stdout) == (0, "")
        assert text in result.stderr
    assert [
        problem
        for problem in checker.check_folder(tmp_path / "catalog").problems
        if problem.severity == "error"
    ] == []


def test_export_and_import_round_trip(shipped_build: Path, tmp_path: Path) -> None:
    """Every tool of a toolkit, exported as MCP and imported, has the same export."""
    text = run_successfully("export", "mcp", "--toolkit", "github", "--build", shipped_build)
    (tmp_path / "tools.json").write_text(text)
    run_successfully(
        "import",
        "mcp",
        tmp_path / "tools.json",
        "--catalog",
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
    """Import from a command; return the exit code and the messages."""
    result = run_toolcatalog(
        "import", "mcp", "--catalog", tmp_path / "catalog", "--timeout", seconds, "--", *command
    )
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.returncode, result.stderr


def test_live_server_is_imported(tmp_path: Path) -> None:
    """All pages of its list, under its own name; the process ends afterwards."""
    (tmp_path / "tools.json").write_text(
        json.dumps(
            [tool(f"do_{number}", annotations={"readOnlyHint": True}) for number in range(7)]
        )
    )
    code, text = live(tmp_path, sys.executable, SERVER, tmp_path / "tools.json", 3)
    assert (code, "Imported 7 tools" in text) == (0, True)
    home = tmp_path / "catalog" / "toolkits" / "test_2"
    assert sorted(path.name for path in home.iterdir()) == [
        *(f"TEST_2_DO_{number}" for number in range(7)),
        "toolkit.yaml",
    ]
    assert (home / "toolkit.yaml").read_text().startswith("name: A test\n")
    assert (
        "tags: [readOnlyHint, partialHints]"
        in (home / "TEST_2_DO_3" / "00000000_00.yaml").read_text()
    )


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
def test_silent_server_is_stopped(
    script: str, seconds: float, sentence: str, tmp_path: Path
) -> None:
    """One sentence with its last lines; nothing is written."""
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
        (["'"], "is not a command"),
        ([""], "There is no file"),
    ],
)
def test_source_must_be_a_file_or_a_program(
    source: list[str], sentence: str, tmp_path: Path
) -> None:
    code, text = live(tmp_path, *source)
    assert (code, sentence in text) == (2, True), text


def test_folder_is_no_source(tmp_path: Path) -> None:
    code, text = live(tmp_path, tmp_path)
    assert (code, "There is no file" in text) == (2, True), text


def test_missing_extra_is_reported(tmp_path: Path) -> None:
    """A live server needs the SDK; a file does not."""
    (tmp_path / "mcp.py").write_text("raise ImportError\n")
    (tmp_path / "tools.json").write_text(json.dumps([FORECAST]))
    env = {"PYTHONPATH": str(tmp_path)}
    result = run_toolcatalog(
        "import", "mcp", "--catalog", tmp_path / "catalog", "--", sys.executable, "-V", env=env
    )
    assert (result.returncode, "pip install 'toolcatalog[mcp]'" in result.stderr) == (2, True)
    result = run_toolcatalog(
        "import",
        "mcp",
        tmp_path / "tools.json",
        "--toolkit",
        "weather",
        "--catalog",
        tmp_path / "catalog",
        env=env,
    )
    assert result.returncode == 0


REMOTE = {"type": "streamable-http", "url": "https://mcp.example.com/mcp"}
NPM = {"registryType": "npm", "identifier": "@example/mail", "version": "1.2.0"}
PYPI = {"registryType": "pypi", "identifier": "mail-server", "version": "1.2.0"}


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"remotes": [REMOTE], "packages": [NPM]}, "import mcp https://mcp.example.com/mcp`."),
        ({"remotes": [{"type": "sse", "url": "https://a"}], "packages": [NPM]}, "-- npx -y"),
        ({"packages": [NPM]}, "import mcp -- npx -y @example/mail@1.2.0`, with the"),
        ({"packages": [PYPI]}, "import mcp -- uvx mail-server==1.2.0`, with the"),
        ({"packages": [{**NPM, "identifier": "a; b"}]}, "-- npx -y 'a; b@1.2.0'`, with the"),
        ({"packages": [{"registryType": "oci"}]}, "start the server, and give its answer"),
        ({"packages": None, "remotes": [5]}, "start the server, and give its answer"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_server_json_has_no_tools(about: dict[str, Any], said: str, wrapped: bool) -> None:
    """The message says how to ask the server that it describes."""
    value = {"name": "com.example/mail", "version": "1.2.0", **about}
    with pytest.raises(UsageError) as error:
        mcp.import_tools({"server": value, "_meta": {}} if wrapped else value, "mail")
    assert "describes the MCP server com.example/mail" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize("imports", [1, 2])
def test_hints_round_trip(tmp_path: Path, imports: int) -> None:
    """Each hint is true, false or absent, also after a second import."""
    hints = {
        f"go_{number}": {
            hint: state for hint, state in zip(HINT_TAGS, states, strict=True) if state is not None
        }
        for number, states in enumerate(itertools.product((True, False, None), repeat=4))
    }
    source = tmp_path / "tools.json"
    source.write_text(
        json.dumps([tool(name, annotations=annotations) for name, annotations in hints.items()])
    )
    for _ in range(imports):
        run_successfully(
            "import", "mcp", source, "--toolkit", "walk", "--catalog", tmp_path / "catalog"
        )
    assert {item["name"]: item.get("annotations", {}) for item in exported(tmp_path, "walk")} == {
        f"WALK_{name.upper()}": annotations for name, annotations in hints.items()
    }


# Live servers of others


def require_server(module: str) -> None:
    """Skip visibly where a published MCP server is not installed."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"the MCP server {module} is not installed")


def exported(folder: Path, toolkit: str) -> list[dict[str, Any]]:
    """The tools of a toolkit, after a build, as MCP."""
    run_successfully("build", "--catalog", folder / "catalog", "--out", folder / "b", "--no-site")
    text = run_successfully("export", "mcp", "--toolkit", toolkit, "--build", folder / "b")
    tools: list[dict[str, Any]] = json.loads(text)
    return tools


@pytest.mark.parametrize(
    ("module", "toolkit", "slug"),
    [("mcp_server_git", "git", "GIT_COMMIT"), ("mcp_server_time", "time", "TIME_CONVERT_TIME")],
)
def test_published_server_is_imported(module: str, toolkit: str, slug: str, tmp_path: Path) -> None:
    """Its slugs have no repeated words; the files pass `check` and keep the hints."""
    require_server(module)
    code, output = live(tmp_path, sys.executable, "-m", module)
    assert code == 0, output
    home = tmp_path / "catalog" / "toolkits" / toolkit
    assert (home / slug).is_dir()
    assert "logo" not in (home / "toolkit.yaml").read_text()
    assert run_toolcatalog("check", "--catalog", tmp_path / "catalog").returncode == 0
    tools = exported(tmp_path, toolkit)
    command = [sys.executable, "-m", module]
    listed = mcp_client.fetch_tools_from_command(command, 60)["tools"]
    slugs_made = slugs(*(tool["name"] for tool in listed), toolkit=toolkit)
    hints = dict(zip(slugs_made, (tool.get("annotations", {}) for tool in listed), strict=True))
    assert {tool["name"]: tool.get("annotations", {}) for tool in tools} == {
        name: {hint: annotations[hint] for hint in HINT_TAGS if hint in annotations}
        for name, annotations in hints.items()
    }


def test_executable_file_is_a_command_after_dashes(tmp_path: Path) -> None:
    """Without `--` it is read as a file, and the message says how to start it."""
    (tmp_path / "tools.json").write_text(json.dumps([tool("go")]))
    script = tmp_path / "server"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER} {tmp_path / 'tools.json'}\n")
    script.chmod(0o700)
    code, output = live(tmp_path, script)
    assert (code, "Imported 1 tool " in output) == (0, True), output
    result = run_toolcatalog("import", "mcp", script, "--catalog", tmp_path / "other")
    assert result.returncode == 2
    assert f"To start it as a server, write it after `--`: import mcp -- {script}" in result.stderr


# Over HTTP


@pytest.fixture(scope="module")
def http_server(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Our own MCP server over streamable HTTP, which wants a key."""
    with start_server(shipped_build, tmp_path_factory.mktemp("mcp-http"), "--mcp") as server:
        yield server


def over_http(server: Server, catalog: Path, *options: object) -> tuple[int, str]:
    """Import from the server; return the exit code and the messages."""
    result = run_toolcatalog("import", "mcp", f"{server.url}/mcp", "--catalog", catalog, *options)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.returncode, result.stderr


@pytest.mark.parametrize("header", ["x-api-key: {}", "Authorization: Bearer {}"])
def test_server_over_http(http_server: Server, header: str, tmp_path: Path) -> None:
    """With streamable HTTP and the given headers."""
    key = header.format(http_server.key)
    code, output = over_http(http_server, tmp_path / "catalog", "--header", key)
    assert (code, "Imported" in output) == (0, True), output
    (toolkit,) = (tmp_path / "catalog" / "toolkits").iterdir()
    assert len([*toolkit.glob("*/00000000_00.yaml")]) >= 3


def test_http_server_that_refuses_is_reported(http_server: Server, tmp_path: Path) -> None:
    """Without a key, or with an invalid header."""
    code, output = over_http(http_server, tmp_path / "catalog")
    assert (code, "give a key with --header" in output) == (2, True), output
    code, output = over_http(http_server, tmp_path / "catalog", "--header", "nonsense")
    assert (code, "--header needs the form `Name: value`" in output) == (2, True), output
    assert not (tmp_path / "catalog").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["http://192.0.2.1/mcp", "--header", "x-api-key: a"],
            "would send the headers unencrypted",
        ),
        (["http://127.0.0.1:9/mcp"], "cannot be reached"),
        (["https:///mcp"], "is not an http or https URL of an MCP server"),
        (["tools.json", "--header", "x-api-key: a"], "--header is for a URL"),
    ],
)
def test_unsupported_urls_are_refused(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """One sentence each, and nothing is sent to another host."""
    result = run_toolcatalog("import", "mcp", *arguments, "--catalog", tmp_path / "catalog")
    assert (result.returncode, sentence in result.stderr) == (2, True), result.stderr
    assert "Traceback" not in result.stderr


class _HostileHandler(BaseHTTPRequestHandler):
    """Answers by path: an error with control characters, compressed data, or an endless text."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        """Answer a request of an MCP client."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        if self.path == "/compressed":
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        if self.path == "/control":
            error = {"code": -1, "message": "a\x1b[31mb\n::error::c"}
            answer = {"jsonrpc": "2.0", "id": request.get("id"), "error": error}
            self.wfile.write(json.dumps(answer).encode())
        else:
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b" " * (1 << 20))


@pytest.fixture(scope="module")
def hostile_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _HostileHandler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("control", "answers with an error (a\N{REPLACEMENT CHARACTER}[31mb"),
        ("compressed", "compresses its answers, although it was asked not to"),
        ("endless", "answers with more than 64 MiB"),
    ],
)
def test_hostile_http_server_is_harmless(
    path: str, sentence: str, hostile_server: str, tmp_path: Path
) -> None:
    """Its texts have no terminal escapes and no lines of their own, and memory is limited."""
    catalog = tmp_path / "catalog"
    result = run_toolcatalog("import", "mcp", f"{hostile_server}/{path}", "--catalog", catalog)
    assert (result.returncode, sentence in result.stderr) == (2, True), result.stderr
    assert "\x1b" not in result.stderr
    assert result.stderr.count("\n") == 1
