"""The command line: exit codes, errors in one sentence, and clean standard output."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import httpx
import pytest

from support.command import run_successfully, run_toolcatalog
from support.paths import SHIPPED_CATALOG
from support.server import create_key, start_server
from toolcatalog.cli.main import cli, main
from toolcatalog.keys import api_keys
from toolcatalog.system import files

BIN = Path(sys.executable).parent
TOOLKIT = "name: A\nlogo: https://example.com/a.png\n"
TOOL = "name: Do it\ndescription: Does it.\n"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog of one tool, without a fault."""
    folder = tmp_path / "catalog"
    tool = folder / "toolkits" / "a" / "A_DO" / "20250101_00.yaml"
    tool.parent.mkdir(parents=True)
    (folder / "catalog.yaml").write_text("title: Small\n")
    (folder / "toolkits" / "a" / "toolkit.yaml").write_text(TOOLKIT)
    tool.write_text(TOOL)
    return folder


@pytest.fixture
def faulty(catalog: Path) -> Path:
    """The same with two faults in one file."""
    (catalog / "toolkits" / "a" / "A_DO" / "20250101_00.yaml").write_text(
        TOOL + "colour: red\nscopes: read\n"
    )
    return catalog


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below a group, with the words that lead to it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(cli))


# Exit codes


def test_exit_code_0_for_a_good_catalog(catalog: Path, tmp_path: Path) -> None:
    assert run_toolcatalog("check", "--catalog", catalog).returncode == 0
    assert (
        run_toolcatalog(
            "build", "--catalog", catalog, "--out", tmp_path / "build", "--no-site"
        ).returncode
        == 0
    )


def test_exit_code_1_for_problems(faulty: Path, tmp_path: Path) -> None:
    """All problems are shown with place, rule and source line; nothing is built; no traceback."""
    for command in (["check"], ["build", "--out", tmp_path / "build", "--site", tmp_path / "site"]):
        result = run_toolcatalog(*command, "--catalog", faulty)
        assert result.returncode == 1
        shown, other = (
            (result.stdout, result.stderr)
            if command == ["check"]
            else (result.stderr, result.stdout)
        )
        assert "error" not in other
        assert "catalog/toolkits/a/A_DO/20250101_00.yaml:3:1: error[unknown-key]" in shown
        assert "catalog/toolkits/a/A_DO/20250101_00.yaml:4:9: error[wrong-type]" in shown
        assert " 3 | colour: red\n   | ^^^^^^\n" in shown
        assert "2 errors in 1 file, of 3 files read." in shown
        assert "Traceback" not in result.stderr
    assert not (tmp_path / "build" / "snapshots").exists()
    assert not (tmp_path / "build" / "current").is_symlink()
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["check", "--catalog", "{tmp}/none"],
            (
                "error: No catalog at {tmp}/none: name its folder with --catalog, or start one with"
                " a {tmp}/none/catalog.yaml."
            ),
        ),
        (
            ["build", "--catalog", "{tmp}/none"],
            (
                "error: No catalog at {tmp}/none: name its folder with --catalog, or start one with"
                " a {tmp}/none/catalog.yaml."
            ),
        ),
        (
            ["serve", "--build", "{tmp}/none"],
            (
                "error: There is no finished build in {tmp}/none: run `toolcatalog build`, or name"
                " another build with --build."
            ),
        ),
        (
            ["serve", "--build", "{tmp}"],
            (
                "error: There is no finished build in {tmp}: run `toolcatalog build`, or name"
                " another build with --build."
            ),
        ),
        (
            ["serve", "--build", "{build}", "--keys", "{tmp}/none.json"],
            (
                "error: There is no key file {tmp}/none.json: run `toolcatalog keys create"
                " --project default --keys {tmp}/none.json`."
            ),
        ),
        (
            ["serve", "--build", "{build}", "--keys", "{tmp}/damaged.json"],
            (
                "error: The key file {tmp}/damaged.json is damaged: restore it from a backup, or"
                " move it away and create new keys."
            ),
        ),
        (
            ["serve", "--build", "{build}", "--keys", "{tmp}/damaged.json/keys.json"],
            (
                "error: The key file {tmp}/damaged.json/keys.json cannot be read (Not a directory):"
                " move what is in its way, or name another with --keys."
            ),
        ),
        (
            ["serve", "--build", "{build}", "--host", "nowhere.invalid"],
            (
                "error: Cannot listen on nowhere.invalid:8000 (*): choose another with --port or"
                " --host."
            ),
        ),
        (
            ["serve", "--build", "{build}", "--host", "203.0.113.1"],
            "error: Cannot listen on 203.0.113.1:8000 (*): choose another with --port or --host.",
        ),
        (
            ["serve", "--build", "{build}", "--port", "{port}"],
            (
                "error: Cannot listen on 127.0.0.1:{port} (the port is in use): choose another with"
                " --port or --host."
            ),
        ),
        (
            ["keys", "list", "--keys", "{tmp}/none.json"],
            "error: There is no key file {tmp}/none.json: run *",
        ),
    ],
)
def test_exit_code_2_for_unusable_input(
    tmp_path: Path,
    shipped_build: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    """One sentence on standard error says what is wrong and what to do; standard output stays
    empty.
    """
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "damaged.json").write_text("{")
    with socket.create_server(("127.0.0.1", 0)) as used:
        paths = {"tmp": tmp_path, "build": shipped_build, "port": used.getsockname()[1]}
        assert main([argument.format(**paths) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    (line,) = [line for line in err.splitlines() if not line.startswith("No keys yet")]
    assert out == ""
    assert re.fullmatch(re.escape(sentence.format(**paths)).replace(re.escape("*"), ".+"), line)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["biuld"], "No such command 'biuld'. Did you mean 'build'?"),
        (["key", "list"], "No such command 'key'. Did you mean 'keys'?"),
        (["frobnicate"], "No such command 'frobnicate'."),
        (["keys", "revok"], "Did you mean 'revoke'?"),
        (["check", "--agianst"], "Did you mean '--against'?"),
        (
            ["check", "--format", "xml"],
            "'xml' is not one of 'full', 'concise', 'json', 'github', 'sarif', 'junit'.",
        ),
        (["serve", "--port", "http"], "'http' is not a valid integer range."),
        (["serve", "--port", "65536"], "65536 is not in the range"),
        (["serve", "--port", "-1"], "-1 is not in the range"),
        (["keys", "create"], "Missing option '--project'."),
        (["keys", "rotate"], "Missing argument 'ID'."),
        (
            ["keys", "rotate", "key_1", "--overlap", "soon"],
            "'soon' is not a duration: write a number and s, m, h, d or w, as in 24h or 90d",
        ),
        (["build", "extra"], "Got unexpected extra argument (extra)"),
        (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
        (["--nope"], "No such option '--nope'."),
        (["build", "--catalog", "{file}"], "is a file."),
    ],
)
def test_exit_code_2_for_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    """The last line says what is wrong and suggests a fix; standard output stays empty."""
    (tmp_path / "file").write_text("")
    assert main([argument.format(file=tmp_path / "file") for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err.splitlines()[-1]
    assert err.startswith("Usage: toolcatalog")


@pytest.mark.parametrize("arguments", [[], ["keys"], ["import"]])
def test_exit_code_2_and_help_without_a_command(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: toolcatalog")


def test_exit_code_3_for_a_bug(catalog: Path, tmp_path: Path) -> None:
    """A traceback and a line that says that it is a bug; nothing is built."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "pyroaring.py").write_text(
        "raise RuntimeError('broken installation')\n"
    )
    (tmp_path / "installed" / "jinja2.py").write_text("raise RuntimeError('broken installation')\n")
    for command in (
        ["build", "--catalog", catalog, "--out", tmp_path / "build"],
        ["serve", "--build", tmp_path / "build"],
    ):
        result = run_toolcatalog(
            *command, env={"PYTHONPATH": str(tmp_path / "installed")}, cwd=tmp_path
        )
        assert (result.returncode, result.stdout) == (3, "")
        assert "RuntimeError: broken installation" in result.stderr
        assert result.stderr.splitlines()[-1].startswith(
            "error: This is a bug in toolcatalog, not your mistake. Please report it"
        )
    assert not (tmp_path / "build" / "snapshots").exists()


def test_exit_code_130_for_an_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends a waiting command without a traceback and without a partial change."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("only /proc tells when a process waits for the key file")
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "keys",
        "create",
        "--project",
        "p",
        "--keys",
        str(tmp_path / "keys.json"),
    ]
    with (
        files.lock(tmp_path / ".keys.json.lock") as acquired,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        assert acquired
        while not any(path.name == ".keys.json.lock" for path in open_files(process.pid)):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
    assert not (tmp_path / "keys.json").exists()


def open_files(pid: int) -> list[Path]:
    """The files that a process has open."""
    try:
        return [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # one was closed meanwhile
        return []


# Output


def test_standard_output_has_only_the_key(tmp_path: Path) -> None:
    """`keys create` and `keys rotate` print hints on standard error."""
    file = tmp_path / "keys.json"
    result = run_toolcatalog("keys", "create", "--project", "p", "--keys", file)
    assert re.fullmatch(r"tc_[0-9A-Za-z]{36}\n", result.stdout)
    (key,) = api_keys.load_keys(file)
    assert (
        result.stderr
        == f"Key {key.id} for project p, all toolkits, no expiry. Kept as a hash in {file}: store"
        " the key now, it is not shown again.\n"
    )
    rotated = run_toolcatalog("keys", "rotate", key.id, "--keys", file)
    assert re.fullmatch(r"tc_[0-9A-Za-z]{36}\n", rotated.stdout)
    assert f"It replaces {key.id}, which expires in 1 day, 0:00:00." in rotated.stderr
    revoked = run_toolcatalog("keys", "revoke", key.id, "--keys", file)
    assert (revoked.stdout, revoked.stderr) == (
        "",
        f"Revoked {key.id} of project p: running servers refuse it within a second.\n",
    )


def test_standard_output_has_only_the_digest(catalog: Path, tmp_path: Path) -> None:
    """`build` prints the digest of `build/current`."""
    for text in ("Built 1 tool in", "Nothing has changed: 1 tool in"):
        result = run_toolcatalog(
            "build", "--catalog", catalog, "--out", tmp_path / "build", "--site", tmp_path / "site"
        )
        assert re.fullmatch(r"[0-9a-f]{64}\n", result.stdout)
        assert (tmp_path / "build" / "current").readlink().name == result.stdout.strip()
        assert text in result.stderr


def test_problems_as_json(faulty: Path) -> None:
    """An array of objects with seven fields, and nothing else on standard output."""
    process = run_toolcatalog("check", "--catalog", faulty, "--format", "json")
    assert process.returncode == 1
    path = "catalog/toolkits/a/A_DO/20250101_00.yaml"
    result = json.loads(process.stdout)
    assert [[*problem] for problem in result] == [
        ["path", "line", "column", "rule", "severity", "message", "help"]
    ] * 2
    assert [[*problem.values()][:5] for problem in result] == [
        [path, 3, 1, "unknown-key", "error"],
        [path, 4, 9, "wrong-type", "error"],
    ]
    assert all(isinstance(problem[name], str) for problem in result for name in ("message", "help"))
    assert "colour" in result[0]["message"]


def test_no_problems_as_json_are_an_empty_array(catalog: Path) -> None:
    assert (
        json.loads(
            run_successfully(
                "check", "--catalog", catalog, "--format", "json", "--min-severity", "error"
            )
        )
        == []
    )


def test_concise_format_has_a_line_per_problem(faulty: Path) -> None:
    """In the form that editors parse."""
    result = run_toolcatalog("check", "--catalog", faulty, "--format", "concise")
    assert [
        re.match(r"catalog/toolkits/a/A_DO/20250101_00\.yaml:\d:\d: [a-z-]+: .", line) is not None
        for line in result.stdout.splitlines()
    ] == [True, True]


def test_no_colors_in_a_pipe(faulty: Path, tmp_path: Path) -> None:
    create_key(tmp_path / "keys.json")
    for arguments in (
        ["check", "--catalog", faulty],
        ["check", "--catalog", tmp_path / "none"],
        ["--help"],
        ["biuld"],
        ["keys", "list", "--keys", tmp_path / "keys.json"],
    ):
        result = run_toolcatalog(
            *arguments, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        )
        assert "\x1b" not in result.stdout + result.stderr
        assert result.stdout + result.stderr


@pytest.mark.parametrize(("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors_at_a_terminal(faulty: Path, extra: dict[str, str], coloured: bool) -> None:
    """Unless NO_COLOR is set."""
    actual, reference = pty.openpty()
    command = [sys.executable, "-m", "toolcatalog", "check", "--catalog", str(faulty)]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
        "TERM": "xterm-256color",
        **extra,
    }
    with subprocess.Popen(command, stderr=reference, stdout=reference, env=environment) as process:
        os.close(reference)
        displayed = b""
        while chunk := _read(actual):
            displayed += chunk
    os.close(actual)
    assert process.returncode == 1
    assert b"unknown-key" in displayed
    assert (b"\x1b[1;31m" in displayed) == coloured


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def test_errors_are_not_wrapped(tmp_path: Path) -> None:
    """Even on a narrow terminal, so that they can be copied and searched for."""
    result = run_toolcatalog("check", "--catalog", tmp_path / "none", env={"COLUMNS": "20"})
    assert result.stderr.count("\n") == 1


def test_closed_pipe_is_no_error() -> None:
    """As in `... | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [sys.executable, "-m", "toolcatalog", "completion", "bash"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")


# Help


@pytest.mark.parametrize("path", [(), *COMMANDS], ids=" ".join)
def test_help_examples_use_existing_flags(
    capsys: pytest.CaptureFixture[str], path: tuple[str, ...]
) -> None:
    """`--help` of every command exits with 0 and has examples."""
    assert main([*path, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: {' '.join(('toolcatalog', *path))} ")
    examples = [
        shlex.split(result)[1:]
        for result in re.findall(
            r"^ .*?(toolcatalog (?:(?!  |[|>]).)+)", text[text.index("Example") :], re.MULTILINE
        )
    ]
    assert examples
    for words in examples:
        assert tuple(words[: len(path)]) == path
        called, remaining = called_by(words)
        flags = {flag for parameter in called.params for flag in parameter.opts}
        # what follows is another program's
        actual = remaining[: remaining.index("--")] if "--" in remaining else remaining
        used = {word.partition("=")[0] for word in actual if word.startswith("--")}
        assert used <= flags


def called_by(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that a line calls, and the rest of the line."""
    called: click.Command = cli
    for index, word in enumerate(words):
        if not isinstance(called, click.Group):
            return called, words[index:]
        called = COMMANDS_OF[id(called)][word]
    return called, []


COMMANDS_OF = {
    id(group): {path[-1]: command for path, command in commands(group) if len(path) == 1}
    for group in (cli, *COMMANDS.values())
    if isinstance(group, click.Group)
}


def test_help_imports_no_command(tmp_path: Path) -> None:
    """`--help` works even if dependencies of the commands are broken."""
    for name in ("jinja2", "starlette", "uvicorn", "jsonschema", "pyroaring", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('loaded')\n")
    result = run_toolcatalog("--help", env={"PYTHONPATH": str(tmp_path)})
    assert (result.returncode, result.stderr) == (0, "")
    assert all(name in result.stdout for (name, *extra) in COMMANDS if not extra)


def test_module_script_and_function_are_the_same_program() -> None:
    as_module = run_successfully("--version")
    as_command = subprocess.run(
        [BIN / "toolcatalog", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert as_module == as_command
    assert re.fullmatch(r"toolcatalog \d+\.\d+\.\d+\n", as_module)
    assert main(["--version"]) == 0


# Completion


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ch"], ["check"]),
        (["keys", "r"], ["revoke", "rotate"]),
        (["check", "--format", "j"], ["json", "junit"]),
        (["serve", "--p"], ["--port"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
    ],
)
def test_completion_in_bash(typed: list[str], offered: list[str]) -> None:
    """In a real bash: commands, flags and choices."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    words = " ".join(shlex.quote(word) for word in ["toolcatalog", *typed])
    script = f"""
        eval "$(toolcatalog completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={len(typed)}; COMPREPLY=()
        $(complete -p toolcatalog | sed 's/.*-F \\([^ ]*\\) .*/\\1/') toolcatalog
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(
        [bash, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        check=False,
    )
    assert (sorted(result.stdout.split()), result.stderr) == (offered, "")


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "#compdef toolcatalog"),
        (
            "fish",
            'complete --no-files --command toolcatalog --arguments "(_toolcatalog_completion)";',
        ),
    ],
)
def test_completion_in_other_shells(shell: str, line: str) -> None:
    """zsh and fish accept the scripts, if they are installed."""
    script = run_successfully("completion", shell)
    assert line in script.splitlines()
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True, check=False).returncode == 0


# The end of a server


def test_server_stops_cleanly_on_sigterm(shipped_build: Path, tmp_path: Path) -> None:
    """It finishes the running request, accepts no new one, and exits with 0."""
    with start_server(shipped_build, tmp_path) as server:
        host, port = server.url.removeprefix("http://").split(":")
        path = "/api/v3/tool_router/session/trs_playground/tools"
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            headers = (
                f"Host: a\r\nx-api-key: {server.key}\r\nContent-Length: 2\r\nExpect: 100-continue"
            )
            connection.sendall(f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
            # the operation waits for its body
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(b"{")
            server.process.terminate()
            deadline = time.monotonic() + 5
            while takes_connections(host, int(port)):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert server.process.poll() is None
            connection.sendall(b"}")
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
            while connection.recv(65536):
                pass
        assert server.process.wait(timeout=10) == 0
        assert server.log.read_text().splitlines()[1:] == []


def takes_connections(host: str, port: int) -> bool:
    """Whether anybody listens there."""
    with socket.socket() as another:
        return another.connect_ex((host, port)) == 0


def test_server_stops_on_ctrl_c(shipped_build: Path, tmp_path: Path) -> None:
    """Exit code 130, at once and without a traceback."""
    with start_server(shipped_build, tmp_path) as server:
        # it says where it will answer before it does
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        start = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=10) == 130
        assert time.monotonic() - start < 5
        assert "Traceback" not in server.log.read_text()


def test_server_prints_its_address(shipped_build: Path, tmp_path: Path) -> None:
    """With the snapshot, and that there is only the API if there is no site."""
    with start_server(shipped_build, tmp_path, "--site", str(tmp_path / "none")) as server:
        digest = (shipped_build / "current").readlink().name
        assert (
            server.log.read_text()
            == f"Serving API (no site was built) at {server.url} from snapshot {digest[:12]}. Stop"
            " with Ctrl-C.\n"
        )
        assert httpx.get(f"{server.url}/").status_code == 404


def test_server_starts_without_keys(shipped_build: Path, tmp_path: Path) -> None:
    """It says so, answers 401, and reads the key file when it appears."""
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "serve",
        "--build",
        str(shipped_build),
        "--port",
        "0",
    ]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "TOOLCATALOG_KEYS": ""}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith(
                "No keys yet: every API call answers 401 until you run `toolcatalog keys create"
                " --project default`"
            )
            url = re.findall(r"http://[0-9.:]+", process.stderr.readline())[0]
            assert httpx.get(f"{url}/api/v3/tools").status_code == 401
            key = create_key(tmp_path / "toolcatalog" / "keys.json")
            time.sleep(0.6)
            assert httpx.get(f"{url}/api/v3/tools", headers={"x-api-key": key}).status_code == 200
        finally:
            process.terminate()


def test_shipped_catalog_has_no_problems() -> None:
    assert (
        json.loads(run_successfully("check", "--catalog", SHIPPED_CATALOG, "--format", "json"))
        == []
    )


# search


def test_search_prints_the_best_match_first(shipped_build: Path) -> None:
    """Slugs and names on standard output, the number of matches on standard error; in the order of
    the API.
    """
    result = run_toolcatalog(
        "search", "refund", "a customer", "--build", shipped_build, "--limit", 2
    )
    assert (result.returncode, [line.split()[0] for line in result.stdout.splitlines()][:1]) == (
        0,
        ["STRIPE_CREATE_REFUND"],
    )
    assert len(result.stdout.splitlines()) == 2
    assert re.fullmatch(r"\d+ tools found, the first 2 shown.\n", result.stderr)
    narrowed = run_toolcatalog(
        "search",
        "create",
        "--build",
        shipped_build,
        "--toolkit",
        "linear",
        "--toolkit",
        "jira",
        "--limit",
        100,
    )
    assert {line.partition("_")[0] for line in narrowed.stdout.splitlines()} == {"LINEAR", "JIRA"}


def test_search_explains_scores(shipped_build: Path) -> None:
    """The points of each word by field, as text and as JSON."""
    result = run_toolcatalog(
        "search", "create an issue on github", "--build", shipped_build, "--limit", 1, "--explain"
    )
    lines = [line.split() for line in result.stdout.splitlines() if line]
    assert lines[0][0] == "GITHUB_CREATE_ISSUE"
    assert {line[0] for line in lines[1:-1]} >= {"github", "create", "issue"}
    assert (lines[-1][0], "100% covered" in result.stdout) == ("score", True)
    output = json.loads(
        run_toolcatalog(
            "search",
            "create an issue on github",
            "--build",
            shipped_build,
            "--limit",
            1,
            "--format",
            "json",
        ).stdout
    )
    assert [tool["slug"] for tool in output] == ["GITHUB_CREATE_ISSUE"]
    assert {word["word"] for word in output[0]["words"]} == {line[0] for line in lines[1:-1]}
    made_of = output[0]["made_of"]
    score = (made_of["whole"] + made_of["sentence"]) * made_of["labels"] + made_of["typed"]
    assert score == pytest.approx(output[0]["score"])


def test_search_without_a_match_exits_with_1(shipped_build: Path, tmp_path: Path) -> None:
    """With a hint; unusable input exits with 2 and one sentence."""
    result = run_toolcatalog("search", "mesagges", "--build", shipped_build, "--toolkit", "stripe")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Nothing found for 'mesagges'. Did you mean: message\n"
    assert (
        run_toolcatalog("search", "zzzzqq", "--build", shipped_build).stderr
        == "Nothing found for 'zzzzqq'. Try other words.\n"
    )
    for arguments, text in (
        (("x", "--build", tmp_path), "There is no finished build in"),
        (("x", "--build", shipped_build, "--toolkit", "nope"), "There is no toolkit nope in"),
        ((" ", "--build", shipped_build), "The query is empty: say what the tool should do."),
    ):
        rejected = run_toolcatalog("search", *arguments)
        assert rejected.returncode == 2
        assert text in rejected.stderr
        assert "Traceback" not in rejected.stderr
