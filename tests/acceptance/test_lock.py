"""`toolcatalog lock` and `verify`: changes of locked tools are found in every source."""

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given

from support.command import run_successfully, run_toolcatalog
from support.paths import SHIPPED_CATALOG
from support.profile import example_settings
from support.reference_model import ReferenceModel
from support.server import Server, create_key, start_server, wait_until
from support.tool_samples import tools
from toolcatalog import lockfile
from toolcatalog.build.pipeline import build
from toolcatalog.cli.document_sources import open_build_source
from toolcatalog.errors import UsageError
from toolcatalog.lockfile import LockedTool, MissingReason
from toolcatalog.snapshot.format import Tool, tool_to_document

TOOL = "name: Do it\ndescription: Does it.\nscopes: [a]\n"
KIT = "name: A\nlogo: https://example.com/a.png\n"
FILES = {
    "catalog.yaml": "title: Small\n",
    "toolkits/a/toolkit.yaml": KIT,
    "toolkits/a/A_DO/20250101_00.yaml": TOOL,
    "toolkits/a/A_DO/20260101_00.yaml": TOOL + "tags: [x]\n",
    "toolkits/a/A_STAY/20250101_00.yaml": TOOL
    + "input_parameters: {x: {type: number, default: 1.0, examples: [1e3], description: Größe}}\n",
    "toolkits/a/A_GO/20250101_00.yaml": TOOL,
}
SLUGS = ("A_DO", "A_GO", "A_STAY")
ANY = LockedTool("20250101_00", f"sha256:{'0' * 64}")


@dataclass(frozen=True)
class Workspace:
    """A catalog, its build, and a lock of its tools, in one folder."""

    folder: Path

    @property
    def lock(self) -> dict[str, Any]:
        """What the lock file says of each tool."""
        results: dict[str, Any] = json.loads((self.folder / "toolcatalog.lock").read_bytes())[
            "tools"
        ]
        return results

    def change(self, path: str, text: str | None) -> None:
        """Write or remove a file of the catalog, and build it again."""
        file = self.folder / "catalog" / path
        if text is None:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        build(self.folder / "catalog", self.folder / "build", None)

    def run(self, *arguments: object, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Run a command there: exit code, standard output, standard error."""
        result = run_toolcatalog(*arguments, cwd=self.folder, env=env)
        assert "Traceback" not in result.stderr
        return result.returncode, result.stdout, result.stderr


@pytest.fixture(scope="module")
def template_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each test copies."""
    location = Workspace(tmp_path_factory.mktemp("locking"))
    for path, text in FILES.items():
        (location.folder / "catalog" / path).parent.mkdir(parents=True, exist_ok=True)
        (location.folder / "catalog" / path).write_text(text)
    run_successfully("build", "--no-site", cwd=location.folder)
    run_successfully("lock", "A_DO@20250101_00", "A_GO", "A_STAY", cwd=location.folder)
    return location.folder


@pytest.fixture
def workspace(template_folder: Path, tmp_path: Path) -> Workspace:
    """A folder with a catalog, its build and a lock."""
    shutil.copytree(template_folder, tmp_path / "place", symlinks=True)
    return Workspace(tmp_path / "place")


# Digests


def test_digest_covers_only_the_definition() -> None:
    """Not deprecation, other versions, the toolkit's name and logo, or the order of fields."""
    entry = next(iter(ReferenceModel(SHIPPED_CATALOG).tools["GITHUB_CREATE_ISSUE"]))
    value = json.loads(entry.body)
    previous = lockfile.lock_tool(value)
    free = {"available_versions": ["x"], "is_deprecated": True, "deprecated": {}, "more": 1}
    assert (
        lockfile.lock_tool(
            {**value, **free, "toolkit": {"slug": "github", "name": "x", "logo": "y"}}
        )
        == previous
    )
    assert lockfile.lock_tool(dict(reversed(value.items()))) == previous
    for field in lockfile.FIELDS:
        assert (
            lockfile.lock_tool({**value, field: f"other {value[field]}"}).digest != previous.digest
        )
    assert lockfile.lock_tool({**value, "toolkit": {"slug": "gitlab"}}).digest != previous.digest


def test_digest_format_is_stable() -> None:
    """It is the SHA-256 of this exact text."""
    tool = Tool(
        slug="A_DO",
        toolkit="a",
        version="20250101_00",
        available_versions=("20250101_00",),
        name="Do",
        description="Does “it”.",
        scopes=("s",),
        tags=("t",),
        no_auth=False,
        deprecation=None,
        input_parameters={"x": {"type": "number", "required": True, "default": 1.0}},
        output_parameters={},
    )
    ordered = (
        '{"slug":"A_DO","version":"20250101_00","name":"Do","description":"Does “it”.",'
        '"input_parameters":{"x":{"type":"number","required":true,"default":1.0}},'
        '"output_parameters":{},"no_auth":false,"scopes":["s"],"tags":["t"],"toolkit":"a"}'
    )
    by_key = (
        '{"description":"Does'
        ' “it”.","input_parameters":{"x":{"default":1.0,"required":true,"type":"number"}},'
        '"name":"Do","no_auth":false,'
        '"output_parameters":{},"scopes":["s"],"slug":"A_DO","tags":["t"],"toolkit":"a",'
        '"version":"20250101_00"}'
    )
    value = json.loads(json.dumps(tool_to_document(tool, "A", "l")))
    for text, is_sorted in ((ordered, False), (by_key, True)):
        digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        assert lockfile.lock_tool(value, is_sorted) == LockedTool("20250101_00", digest, is_sorted)


@example_settings(16)
@given(tools())
def test_lock_of_any_tool_round_trips(tool: Tool) -> None:
    """And its own document matches it."""
    value = json.loads(json.dumps(tool_to_document(tool, "A", "l")))
    lock = {tool.slug: lockfile.lock_tool(value)}
    assert lockfile.load(lockfile.dump(lock), "lock") == lock
    result = lockfile.find_difference(tool.slug, lock[tool.slug], value)
    assert (result.rule if result else None) == (
        "deprecated" if tool.deprecation is not None else None
    )


def test_lock_file_has_a_sorted_line_per_tool() -> None:
    """Branches that add tools merge without conflicts."""
    text = lockfile.dump({"B": ANY, "A": ANY}).decode()
    assert [line.strip()[:4] for line in text.splitlines()] == [
        "{",
        '"for',
        '"too',
        '"A":',
        '"B":',
        "}",
        "}",
    ]
    assert lockfile.load(lockfile.dump({}), "lock") == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "<<<<<<< ours",
        '{"tools": {}}',
        '{"format": 3, "tools": {}}',
        '{"format": true, "tools": {}}',
        '{"format": 2.0, "tools": {}}',
        '{"format": 1, "tools": []}',
        '{"format": 1, "tools": {"A": 1}}',
        '{"format": 1, "tools": {"A": {"version": "20250101_00"}}}',
        '{"format": 1, "tools": {"A": {"version": "1", "digest": "sha256:%s"}}}' % ("0" * 64),
        '{"format": 1, "tools": {"A": {"version": "20250101_00", "digest": "md5:%s"}}}'
        % ("0" * 64),
        '{"format": 1, "tools": {"../a": {"version": "20250101_00", "digest": "sha256:%s"}}}'
        % ("0" * 64),
    ],
)
def test_invalid_lock_file_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match=r"^my\.lock "):
        lockfile.load(text.encode(), "my.lock")


@pytest.mark.parametrize(
    ("previous", "current"),
    [
        ('"format": 2', '"format": 1, "format": 2'),
        ("{{\n    {entry}", "{{\n    {entry},\n    {entry}"),
        ('"version": "', '"version": "20240101_00", "version": "'),
    ],
)
def test_duplicate_key_is_refused(previous: str, current: str) -> None:
    """A reviewer would read the first entry, the program the last."""
    entry = f'"A_DO": {{"version": "20250101_00", "digest": "sha256:{"0" * 64}"}}'
    text = f'{{"format": 2, "tools": {{\n    {entry}\n}}}}'
    assert [*lockfile.load(text.encode(), "a.lock")] == ["A_DO"]
    twice = text.replace(previous.format(entry=entry), current.format(entry=entry))
    assert twice != text
    with pytest.raises(UsageError, match=r"a\.lock has a key twice"):
        lockfile.load(twice.encode(), "a.lock")


@pytest.mark.parametrize(
    ("found", "rule"), [(MissingReason.TOOL, "tool-gone"), (MissingReason.VERSION, "version-gone")]
)
def test_removed_tool_or_version_is_an_error(found: MissingReason, rule: str) -> None:
    difference = lockfile.find_difference("A", ANY, found)
    assert difference is not None
    assert (difference.rule, difference.severity) == (rule, "error")


# Lock


def test_named_tools_are_added_and_updated(workspace: Workspace) -> None:
    """Others stay; each change is printed."""
    previous = workspace.lock
    assert {slug: entry["version"] for slug, entry in previous.items()} == dict.fromkeys(
        SLUGS, "20250101_00"
    )
    assert workspace.run("lock", "A_GO") == (
        0,
        "",
        "A_GO: unchanged, 20250101_00\n3 tools in toolcatalog.lock.\n",
    )
    assert workspace.run("lock", "A_DO") == (
        0,
        "",
        "A_DO: 20250101_00 -> 20260101_00\n3 tools in toolcatalog.lock.\n",
    )
    assert {**workspace.lock, "A_DO": previous["A_DO"]} == previous
    workspace.change("toolkits/a/A_NEW/20250101_00.yaml", TOOL)
    code, _, text = workspace.run("lock", "--toolkit", "a")
    assert (code, "A_NEW: added, 20250101_00" in text, sorted(workspace.lock)) == (
        0,
        True,
        sorted([*SLUGS, "A_NEW"]),
    )


def test_all_entries_are_updated_without_names(workspace: Workspace) -> None:
    """No new tools are added."""
    workspace.change("toolkits/a/A_NEW/20250101_00.yaml", TOOL)
    code, _, text = workspace.run("lock")
    assert (code, text.splitlines()[0], sorted(workspace.lock)) == (
        0,
        "A_DO: 20250101_00 -> 20260101_00",
        [*SLUGS],
    )


@pytest.mark.parametrize("arguments", [[], ["A_DO"], ["--toolkit", "a"]])
def test_changed_definition_is_not_locked_again(arguments: list[str], workspace: Workspace) -> None:
    """Even if there is a newer version: nothing is written until the entry is removed."""
    workspace.change(
        "toolkits/a/A_DO/20250101_00.yaml", TOOL.replace("Does it", "Does it, and sends a copy")
    )
    previous = workspace.lock
    code, _, text = workspace.run("lock", *arguments)
    assert (code, "A_DO: Version 20250101_00 does not match the lock" in text, workspace.lock) == (
        1,
        True,
        previous,
    )
    file = workspace.folder / "toolcatalog.lock"
    file.write_bytes(
        lockfile.dump(
            {slug: LockedTool(**entry) for slug, entry in previous.items() if slug != "A_DO"}
        )
    )
    assert workspace.run("lock", "A_DO")[0] == 0


def test_removed_tool_stops_the_update(workspace: Workspace) -> None:
    """A removed version does not, because there is a newer one."""
    workspace.change("toolkits/a/A_DO/20250101_00.yaml", None)
    assert workspace.run("lock")[0] == 0
    previous = workspace.lock
    workspace.change("toolkits/a/A_GO", None)
    code, _, text = workspace.run("lock")
    assert (code, "A_GO: There is no such tool any more." in text, workspace.lock) == (
        1,
        True,
        previous,
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lock", "new.lock"], "There is no tool in new.lock yet"),
        (["A_NO"], "There is no tool A_NO"),
        (["A_DO@20250101_00", "A_DO"], "A_DO is named in two versions"),
        (["A_DO", "--build", "no"], "There is no finished build in no"),
        (["--lock", "catalog/catalog.yaml"], "catalog/catalog.yaml is not JSON"),
        (["A_DO", "--lock", "catalog/catalog.yaml/x"], "Cannot"),
    ],
)
def test_impossible_lock_is_reported(
    arguments: list[str], sentence: str, workspace: Workspace
) -> None:
    """Exit code 2 and one sentence."""
    code, out, text = workspace.run("lock", *arguments)
    assert (code, out, sentence in text) == (2, "", True), text


# Verify


@pytest.fixture
def run_server(workspace: Workspace) -> Iterator[Server]:
    """Run a server of the workspace's build."""
    with start_server(workspace.folder / "build", workspace.folder) as server:
        yield server


def test_digests_are_the_same_from_all_sources(
    workspace: Workspace, run_server: Server, shipped_build: Path, shipped: Server
) -> None:
    """A build, its catalog and its server."""
    env = {"TOOLCATALOG_KEY": run_server.key}
    for source in (["--build", "build"], ["--catalog", "catalog"], ["--url", run_server.url]):
        code, out, text = workspace.run("lock", "--check", *source, "--format", "json", env=env)
        assert (code, json.loads(out)) == (0, []), text
    file = workspace.folder / "shipped.lock"
    run_successfully(
        "lock",
        "--toolkit",
        "github",
        "--toolkit",
        "slack",
        "--lock",
        file,
        "--build",
        shipped_build,
    )
    env = {"TOOLCATALOG_KEY": shipped.key}
    output = []
    for flag, location in (
        ("--build", shipped_build),
        ("--catalog", SHIPPED_CATALOG),
        ("--url", f"{shipped.url}/"),
    ):
        code, out, text = workspace.run(
            "lock", "--check", "--lock", file, flag, location, "--format", "json", env=env
        )
        assert code == 0, text
        output.append(out)
    assert output[0] == output[1] == output[2]
    assert {item["rule"] for item in json.loads(output[0])} <= {"deprecated"}


@pytest.mark.parametrize("how", ["build", "catalog", "url"])
def test_changes_are_found(how: str, workspace: Workspace) -> None:
    """A changed definition, a removed version or tool; a deprecation is a note."""
    workspace.change(
        "toolkits/a/A_STAY/20250101_00.yaml",
        TOOL + "input_parameters: {x: {type: number, default: 2.0}}\n",
    )
    workspace.change("toolkits/a/A_DO/20250101_00.yaml", None)
    workspace.change("toolkits/a/A_GO", None)
    assert verified(workspace, how) == (
        1,
        {"A_DO": "version-gone", "A_GO": "tool-gone", "A_STAY": "changed"},
    )


# Order, and locks of format 1


TWO = "input_parameters: {%s: {type: string}, %s: {type: string}}\n"
STAY = "toolkits/a/A_STAY/20250101_00.yaml"


@pytest.mark.parametrize("how", ["build", "catalog", "url"])
def test_changed_parameter_order_is_found(how: str, workspace: Workspace) -> None:
    workspace.change(STAY, TOOL + TWO % ("x", "y"))
    (workspace.folder / "toolcatalog.lock").unlink()
    assert workspace.run("lock", "A_STAY")[0] == 0
    assert verified(workspace, how) == (0, {})
    workspace.change(STAY, TOOL + TWO % ("y", "x"))
    assert verified(workspace, how) == (1, {"A_STAY": "changed"})


def old_lock(workspace: Workspace, **versions: str) -> None:
    """A lock file of format 1 with these tools of the build."""
    look = open_build_source(workspace.folder / "build")
    tools = {}
    for slug, version in versions.items():
        document = dict(look(slug, version))  # type: ignore[arg-type]
        entry = lockfile.lock_tool(document, is_sorted=True)
        tools[slug] = {"version": entry.version, "digest": entry.digest}
    (workspace.folder / "toolcatalog.lock").write_text(json.dumps({"format": 1, "tools": tools}))


def test_format_1_is_verified_by_its_own_digests(workspace: Workspace) -> None:
    """They ignore order, and `verify` says so."""
    workspace.change(STAY, TOOL + TWO % ("x", "y"))
    old_lock(workspace, A_STAY="20250101_00", A_GO="20250101_00")
    workspace.change(STAY, TOOL + TWO % ("y", "x"))
    code, _, text = workspace.run("lock", "--check")
    assert code == 0
    assert "has format 1, which ignores the order of parameters" in text
    assert "`toolcatalog lock A_GO@20250101_00` writes it in format 2" in text
    workspace.change(STAY, TOOL + TWO % ("y", "z"))
    assert verified(workspace, "build") == (1, {"A_STAY": "changed"})


def test_format_1_is_upgraded_if_unchanged(workspace: Workspace) -> None:
    """All entries keep their versions; a change or a removed version stops it."""
    file, versions = workspace.folder / "toolcatalog.lock", {"A_DO": "20250101_00"}
    old_lock(workspace, A_STAY="20250101_00", **versions)
    previous = file.read_bytes()
    workspace.change(STAY, TOOL + TWO % ("x", "y"))
    assert workspace.run("lock", "A_GO")[0] == 1
    assert file.read_bytes() == previous
    workspace.change(STAY, FILES[STAY])
    workspace.change("toolkits/a/A_DO/20250101_00.yaml", None)
    code, _, text = workspace.run("lock", "A_GO")
    assert code == 1
    assert "A_DO: Version 20250101_00 is no longer there" in text
    assert file.read_bytes() == previous
    workspace.change("toolkits/a/A_DO/20250101_00.yaml", FILES["toolkits/a/A_DO/20250101_00.yaml"])
    code, _, text = workspace.run("lock", "A_STAY@20250101_00")
    assert code == 0
    assert "A_STAY: unchanged, 20250101_00" in text
    assert "had format 1" in text
    look = open_build_source(workspace.folder / "build")
    assert lockfile.load(file.read_bytes(), "lock") == {
        slug: lockfile.lock_tool(dict(look(slug, "20250101_00")))  # type: ignore[arg-type]
        for slug in ("A_DO", "A_STAY")
    }


def test_format_1_is_updated_without_names(workspace: Workspace) -> None:
    """Each entry goes to its newest version, also from a removed one."""
    old_lock(workspace, A_DO="20250101_00")
    workspace.change("toolkits/a/A_DO/20250101_00.yaml", None)
    code, _, text = workspace.run("lock")
    assert code == 0, text
    assert workspace.lock["A_DO"]["version"] == "20260101_00"
    assert json.loads((workspace.folder / "toolcatalog.lock").read_bytes())["format"] == 2


@pytest.mark.parametrize("how", ["build", "catalog", "url"])
def test_allowed_changes_are_no_error(how: str, workspace: Workspace) -> None:
    """A deprecation, and the toolkit's name and logo."""
    workspace.change(
        "toolkits/a/A_STAY/20250101_00.yaml",
        FILES["toolkits/a/A_STAY/20250101_00.yaml"] + "deprecation: {reason: Old.}\n",
    )
    workspace.change("toolkits/a/toolkit.yaml", KIT.replace("A\n", "B\n") + "description: More.\n")
    assert verified(workspace, how) == (0, {"A_STAY": "deprecated"})


def test_no_auth_is_part_of_a_definition(workspace: Workspace) -> None:
    """Also if it comes from the toolkit."""
    workspace.change("toolkits/a/toolkit.yaml", KIT + "no_auth: true\n")
    assert verified(workspace, "build") == (1, dict.fromkeys(SLUGS, "changed"))


def verified(workspace: Workspace, how: str) -> tuple[int, dict[str, str]]:
    """Return the exit code of `verify` against a source, and the rule of each tool."""
    with start_server(workspace.folder / "build", workspace.folder) as server:
        source = {"build": "build", "catalog": "catalog", "url": server.url}[how]
        code, out, _ = workspace.run(
            "lock",
            "--check",
            f"--{how}",
            source,
            "--format",
            "json",
            env={"TOOLCATALOG_KEY": server.key},
        )
    return code, {item["slug"]: item["rule"] for item in json.loads(out)}


def test_report_for_people(workspace: Workspace) -> None:
    """A line per problem with a hint on standard output, the summary on standard error."""
    workspace.change("toolkits/a/A_GO", None)
    code, out, text = workspace.run("lock", "--check")
    assert code == 1
    assert "error[tool-gone] A_GO: There is no such tool any more.\n  help: " in out
    assert text.endswith("3 tools verified: 1 changed or gone.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lock", "no.lock"], "Cannot read no.lock"),
        (["--lock", "empty.lock"], "locks no tool"),
        (["--lock", "link.lock"], "Cannot read link.lock (it is a link)"),
        (["--lock", "large.lock"], "Cannot read large.lock (it is larger than 64 MiB)"),
        (["--build", "no"], "There is no finished build in no"),
        (["--catalog", "no"], "no"),
        (["--build", "build", "--catalog", "catalog"], "one source at a time"),
        (["--url", "localhost:8000"], "is not the URL of a server"),
        (["--url", "ftp://127.0.0.1"], "is not the URL of a server"),
        (["--url", "http://a@127.0.0.1/"], "is not the URL of a server"),
        (["--url", "http://[::1"], "is not the URL of a server"),
        (["--url", "http://127.0.0.1:1"], "does not answer (Connection refused)"),
        (["--url", "http://192.0.2.1"], "would get the API key unencrypted"),
    ],
)
def test_unverifiable_lock_is_an_error(
    arguments: list[str], sentence: str, workspace: Workspace
) -> None:
    """Exit code 2 and one sentence."""
    (workspace.folder / "empty.lock").write_bytes(lockfile.dump({}))
    if arguments == ["--lock", "link.lock"]:
        (workspace.folder / "link.lock").symlink_to("empty.lock")
    if arguments == ["--lock", "large.lock"]:
        with (workspace.folder / "large.lock").open("wb") as file:
            file.truncate((64 << 20) + 1)
    code, out, text = workspace.run("lock", "--check", *arguments, env={"TOOLCATALOG_KEY": "k"})
    assert (code, out, sentence in text) == (2, "", True), text


def test_catalog_with_problems_cannot_be_verified(workspace: Workspace) -> None:
    """Only problems in locked tools count."""
    (workspace.folder / "catalog/toolkits/a/A_DO/20260101_00.yaml").write_text("name: [\n")
    assert workspace.run("lock", "--check", "--catalog", "catalog")[0] == 0
    (workspace.folder / "catalog/toolkits/a/A_DO/20250101_00.yaml").write_text("name: [\n")
    code, out, text = workspace.run("lock", "--check", "--catalog", "catalog")
    assert (code, out, "A_DO/20250101_00.yaml has problems" in text) == (2, "", True)


def test_api_key_is_checked(workspace: Workspace, run_server: Server) -> None:
    """Missing and wrong keys are reported; tools that a key may not see count as removed."""
    key = create_key(run_server.keys_file, "--project", "other", "--toolkit", "b")
    # it holds within a second
    wait_until(
        lambda: (
            httpx.get(f"{run_server.url}/api/v3/tools", headers={"x-api-key": key}).status_code
            == 200
        )
    )
    for with_key, code, sentence in (
        ("", 2, "refuses the key (401)"),
        ("wrong", 2, "refuses the key (401)"),
        (key, 1, "tool-gone"),
        ("a\nb", 2, "characters"),
    ):
        result, out, text = workspace.run(
            "lock", "--check", "--url", run_server.url, env={"TOOLCATALOG_KEY": with_key}
        )
        assert (result, sentence in out + text) == (code, True), text


GOOD = json.dumps(
    {
        "slug": "A_DO",
        "version": "20250101_00",
        "name": "Do it",
        "description": "",
        "input_parameters": {},
        "output_parameters": {},
        "no_auth": False,
        "scopes": [],
        "tags": [],
        "is_deprecated": False,
        "toolkit": {"slug": "a"},
    }
).encode()
NOT_FOUND = b'{"error": {"slug": "%s", "message": "no"}}'


@pytest.mark.parametrize(
    ("status", "body", "code", "sentence"),
    [
        (200, GOOD, 1, "error[changed]"),
        (404, NOT_FOUND % b"tool_not_found", 1, "error[tool-gone]"),
        (
            404,
            NOT_FOUND % b"route_not_found",
            2,
            "answers 404, which is no answer of a tool catalog's API to that: no",
        ),
        (404, b"<html>", 2, "answers 404"),
        (200, b"<html>", 2, "answers 200"),
        (200, b"[]", 2, "answers 200"),
        (200, GOOD.replace(b"A_DO", b"A_GO"), 2, "answers 200"),
        (200, GOOD.replace(b"20250101_00", b"20260101_00"), 2, "answers 200"),
        (200, GOOD.replace(b"scopes", b"scope"), 2, "answers 200"),
        pytest.param(
            200, b'"' + b"x" * (9 << 20) + b'"', 2, "answers with too much", id="too much"
        ),
        (302, b"", 2, "answers 302"),
        (500, b'{"error": 5}', 2, "answers 500"),
        (0, b"", 2, "does not answer"),
    ],
)
def test_unexpected_server_responses_are_refused(
    status: int, body: bytes, code: int, sentence: str, workspace: Workspace
) -> None:
    """Only a tool or a 404 of the API counts; redirects are not followed."""
    (workspace.folder / "one.lock").write_bytes(lockfile.dump({"A_DO": ANY}))
    with stub_server(status, body) as (url, request):
        result, out, text = workspace.run(
            "lock",
            "--check",
            "--lock",
            "one.lock",
            "--url",
            url,
            env={"TOOLCATALOG_KEY": "k", "NO_PROXY": "*"},
        )
    assert (result, sentence in out + text) == (code, True), text
    assert request == ["/api/v3/tools/A_DO?version=20250101_00"]


def test_deeply_nested_document_is_refused(workspace: Workspace) -> None:
    """It can be read, and not be written again for its digest."""
    (workspace.folder / "one.lock").write_bytes(lockfile.dump({"A_DO": ANY}))
    nested = b'{"a":' * 500 + b"1" + b"}" * 500
    body = GOOD.replace(b'"output_parameters": {}', b'"output_parameters": ' + nested)
    with stub_server(200, body) as (url, _):
        arguments = ("lock", "--check", "--lock", "one.lock", "--url", url)
        result, _, text = workspace.run(*arguments, env={"TOOLCATALOG_KEY": "k"})
    assert (result, "A_DO 20250101_00 is nested more deeply" in text) == (2, True), text


@contextmanager
def stub_server(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Run a server that always responds like this (status 0: closes the connection)."""
    request: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            request.append(self.path)
            if status:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                port = self.server.server_port  # type: ignore[attr-defined]
                self.send_header("Location", f"http://127.0.0.1:{port}/elsewhere")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", request
        server.shutdown()
        thread.join()
