"""`toolcatalog new`: new catalogs, toolkits and tools, with schemas for editors."""

import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from support.command import run_successfully, run_toolcatalog
from support.terminal import run_in_terminal
from toolcatalog.catalog import file_schemas, yaml_reader
from toolcatalog.cli.main import main

TOOLKIT = (
    "new",
    "toolkit",
    "github",
    "--name",
    "GitHub",
    "--logo",
    "https://github.com/favicon.ico",
)
TOOL = (
    "new",
    "tool",
    "GITHUB_CREATE_ISSUE",
    "--name",
    "Create an issue",
    "--description",
    "Open a new issue in a repository.",
)
FIRST = "catalog/toolkits/github/GITHUB_CREATE_ISSUE"


@pytest.fixture
def new_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a catalog of one toolkit."""
    monkeypatch.chdir(tmp_path)
    assert main([*TOOLKIT]) == 0
    return tmp_path / "catalog"


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_two_commands_create_a_valid_catalog(tmp_path: Path) -> None:
    """In an empty folder; each prints only the path of its file."""
    folder = tmp_path / "our_tools"
    folder.mkdir()
    first = run_toolcatalog(*TOOLKIT, cwd=folder)
    assert (first.returncode, first.stdout) == (0, "catalog/toolkits/github/toolkit.yaml\n")
    assert "Started a new catalog in catalog" in first.stderr
    assert "toolcatalog new tool GITHUB_DO_SOMETHING" in first.stderr
    previous = f"{datetime.now().astimezone():%Y%m%d}"
    second = run_toolcatalog(*TOOL, cwd=folder)
    current = f"{datetime.now().astimezone():%Y%m%d}"
    assert second.stdout in {f"{FIRST}/{day}_00.yaml\n" for day in (previous, current)}
    assert "toolcatalog check" in second.stderr
    checked = run_toolcatalog("check", "--format", "concise", cwd=folder)
    assert checked.returncode == 0, checked.stdout
    run_successfully("build", "--no-site", cwd=folder)
    assert yaml_reader.parse((folder / "catalog" / "catalog.yaml").read_bytes()).value == {
        "title": "Our Tools"
    }
    value = yaml_reader.parse((folder / second.stdout.strip()).read_bytes()).value
    assert value == {"name": "Create an issue", "description": "Open a new issue in a repository."}


def test_new_files_name_their_schema(new_catalog: Path) -> None:
    """In both comments; the schema in the catalog is that of the package."""
    assert main([*TOOL, "--version", "20250101_00"]) == 0
    kinds = {
        "catalog.yaml": "catalog",
        "toolkits/github/toolkit.yaml": "toolkit",
        "toolkits/github/GITHUB_CREATE_ISSUE/20250101_00.yaml": "tool",
    }
    for path, kind in kinds.items():
        server, jetbrains = (new_catalog / path).read_text().splitlines()[:2]
        for line, start in (
            (server, "# yaml-language-server: $schema="),
            (jetbrains, "# $schema: "),
        ):
            assert line.startswith(start)
            assert (
                (new_catalog / path).parent / line.removeprefix(start)
            ).read_bytes() == file_schemas.render_schema(kind)


def test_existing_catalog_gets_one_file(new_catalog: Path) -> None:
    """Its schemas do not change; `new schemas` updates them."""
    schema = new_catalog / file_schemas.catalog_schema_path("tool")
    schema.write_text("{}")
    before = {*files_of(new_catalog)}
    assert main([*TOOL, "--version", "20250101_00"]) == 0
    new = "toolkits/github/GITHUB_CREATE_ISSUE/20250101_00.yaml"
    assert {*files_of(new_catalog)} - before == {new}
    assert schema.read_bytes() == b"{}"
    assert main(["new", "schemas"]) == 0
    assert schema.read_bytes() == file_schemas.render_schema("tool")


@pytest.mark.parametrize("home", ["", "https://tools.example.com/catalog/"])
def test_catalog_without_schemas(new_catalog: Path, home: str) -> None:
    """The published schema is named if the site has an address."""
    shutil.rmtree(new_catalog / file_schemas.SCHEMA_FOLDER)
    for file in ("catalog.yaml", "toolkits/github/toolkit.yaml"):
        (new_catalog / file).write_text("name: GitHub\n")
    (new_catalog / "catalog.yaml").write_text(f"title: Tools\n{f'home: {home}' if home else ''}\n")
    assert main([*TOOL, "--version", "20250101_00"]) == 0
    text = (new_catalog / "toolkits/github/GITHUB_CREATE_ISSUE/20250101_00.yaml").read_text()
    url = "https://tools.example.com/catalog/schemas/v1/tool.json"
    assert text.startswith(f"# yaml-language-server: $schema={url}\n" if home else "name: ")
    assert not (new_catalog / file_schemas.SCHEMA_FOLDER).exists()
    assert run_toolcatalog("check", "--catalog", new_catalog).returncode == 0


def test_commented_fields_are_valid_examples(new_catalog: Path) -> None:
    assert main([*TOOL, "--version", "20250101_00"]) == 0
    file = new_catalog / "toolkits/github/GITHUB_CREATE_ISSUE/20250101_00.yaml"
    text = file.read_text()
    file.write_text(
        re.sub(r"^# (?= *[a-z_]+:(?! \$schema)(?! \.\.))", "", text, flags=re.MULTILINE).replace(
            "yaml-language-server:", "# "
        )
    )
    value = yaml_reader.parse(file.read_bytes()).value
    assert value["input_parameters"]["owner"]["required"] is True
    assert value["output_parameters"]["number"]["type"] == "integer"
    assert run_toolcatalog("check", "--catalog", new_catalog, "--format", "concise").returncode == 0


def test_all_flags(new_catalog: Path) -> None:
    """Values of flags are in the file, in the order of the format, with any content."""
    arguments = [
        "--name",
        "no",
        "--description",
        "a: b # c",
        "--logo",
        "https://a.example/l.png",
        "--homepage",
        "https://a.example",
    ]
    assert (
        main(
            [
                "new",
                "toolkit",
                "a-b",
                *arguments,
                "--category",
                "x",
                "--category",
                "y",
                "--owner",
                "@team",
                "--no-auth",
            ]
        )
        == 0
    )
    value = yaml_reader.parse((new_catalog / "toolkits/a-b/toolkit.yaml").read_bytes()).value
    assert [*value.items()] == [
        ("name", "no"),
        ("logo", "https://a.example/l.png"),
        ("description", "a: b # c"),
        ("categories", ["x", "y"]),
        ("no_auth", True),
        ("homepage", "https://a.example"),
        ("owners", ["@team"]),
    ]
    assert (
        main(
            [
                "new",
                "tool",
                "A_B_C",
                "--name",
                "1",
                "--description",
                "two\nlines",
                "--scope",
                "s",
                "--tag",
                "t",
                "--tag",
                "u",
            ]
        )
        == 0
    )
    (file,) = (new_catalog / "toolkits/a-b/A_B_C").iterdir()
    value = yaml_reader.parse(file.read_bytes()).value
    assert value == {"name": "1", "description": "two\nlines", "scopes": ["s"], "tags": ["t", "u"]}


def test_toolkit_is_the_longest_matching_slug(new_catalog: Path) -> None:
    """Another one can be named."""
    for slug in ("git", "github_apps", "hub"):
        assert main(["new", "toolkit", slug, *TOOLKIT[3:]]) == 0
    for tool, folder, extra in (
        ("GITHUB_APPS_X", "github_apps", []),
        ("GITHUB_X", "github", []),
        ("GIT-X", "git", []),
        ("GIT_Y", "hub", ["--toolkit", "hub"]),
    ):
        assert main(["new", "tool", tool, *extra, *TOOL[3:]]) == 0
        assert (new_catalog / "toolkits" / folder / tool).is_dir()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["toolkit", "slack"],
            "--name is missing: give it, or run this at a terminal, where it asks.",
        ),
        (
            ["toolkit", "slack", "--name", "Slack", "--logo", "http://a.example"],
            (
                "--logo: the string `http://a.example` does not fit, expected the https URL of an"
                " image."
            ),
        ),
        (
            ["toolkit", "slack", "--name", " ", "--logo", "https://a.example"],
            (
                "--name: the string ` ` does not fit, expected the toolkit's display name, at "
                "most 200 characters."
            ),
        ),
        (
            ["toolkit", "slack", *TOOLKIT[3:], "--category", "a,b"],
            (
                "--category: the string `a,b` does not fit, expected a name of at most 200 "
                "characters, without commas,"
            ),
        ),
        (
            ["toolkit", "github"],
            (
                "catalog/toolkits/github/toolkit.yaml is there already: edit it, or choose another"
                " slug."
            ),
        ),
        (
            ["toolkit", "router", *TOOLKIT[3:]],
            "router is the toolkit of the meta tools: choose another slug.",
        ),
        (
            ["toolkit", "Git Hub"],
            "`Git Hub` in toolkits/ is not a toolkit slug: rename it, for example to `git_hub`.",
        ),
        (
            ["toolkit", "../x"],
            "`..` in toolkits/ is not a toolkit slug: rename it, for example to `_`.",
        ),
        (
            ["tool", "GITHUB_X"],
            (
                "--name and --description are missing: give them, or run this at a terminal, where"
                " it asks."
            ),
        ),
        (
            ["tool", "GITHUB_X", "--name", "X", "--description", ""],
            "--description: it is empty, and should say something.",
        ),
        (
            ["tool", "github_x", *TOOL[3:]],
            (
                "`github_x` in toolkits/github/ is not a tool slug: rename it, for example to"
                " `GITHUB_X`."
            ),
        ),
        (
            ["tool", "GITHUB_X", *TOOL[3:], "--version", "today"],
            "`today` is not a version: name the file like 20251027_00.yaml.",
        ),
        (
            ["tool", "GITHBU_X", *TOOL[3:]],
            (
                "GITHBU_X starts with the slug of no toolkit in catalog: did you mean github? Name"
                " it with --toolkit, or make one with `toolcatalog new toolkit githbu`."
            ),
        ),
        (
            ["tool", "SLACK_X", *TOOL[3:]],
            (
                "SLACK_X starts with the slug of no toolkit in catalog: name one with --toolkit, or"
                " make one with `toolcatalog new toolkit slack`."
            ),
        ),
        (
            ["tool", "GITHUB_X", "--toolkit", "gihtub", *TOOL[3:]],
            "There is no toolkit gihtub in catalog: did you mean github?",
        ),
    ],
)
def test_errors_are_one_sentence(
    new_catalog: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """Exit code 2, one line, and nothing is written."""
    previous = files_of(new_catalog)
    capsys.readouterr()
    assert main(["new", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
    assert files_of(new_catalog) == previous


def test_existing_tool_is_never_changed(
    new_catalog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither today's nor an older version; the message names `bump`."""
    assert main([*TOOL, "--version", "20250101_00"]) == 0
    previous = files_of(new_catalog)
    assert main([*TOOL]) == 2
    assert (
        "create the next one with `toolcatalog bump GITHUB_CREATE_ISSUE`."
        in capsys.readouterr().err
    )
    assert files_of(new_catalog) == previous


def test_prompts_for_missing_values(tmp_path: Path) -> None:
    """With a default where possible; an invalid value is asked for again."""
    answers = ["", "Issues and more.", "https://github.com/", "nonsense", "", "My tools"]
    terminal = run_in_terminal(["new", "toolkit", "github"], answers, tmp_path)
    assert (terminal.code, terminal.out) == (
        0,
        "catalog/toolkits/github/toolkit.yaml\n",
    )
    assert "Name [Github]: " in terminal.terminal_output
    assert "Description (or nothing): " in terminal.terminal_output
    assert "Logo (or nothing): " in terminal.terminal_output
    assert (
        "Error: the string `nonsense` does not fit, expected the https URL of an image"
        in terminal.terminal_output
    )
    value = yaml_reader.parse(
        (tmp_path / "catalog/toolkits/github/toolkit.yaml").read_bytes()
    ).value
    expected = {
        "name": "Github",
        "description": "Issues and more.",
        "homepage": "https://github.com/",
    }
    assert value == expected
    assert yaml_reader.parse((tmp_path / "catalog/catalog.yaml").read_bytes()).value == {
        "title": "My tools"
    }
    terminal = run_in_terminal(
        ["new", "tool", "GITHUB_CLOSE_ISSUE", "--version", "20250101_00"],
        ["", "", "Close it."],
        tmp_path,
    )
    assert terminal.code == 0
    assert "Name [Close issue]: " in terminal.terminal_output
    value = yaml_reader.parse((tmp_path / terminal.out.strip()).read_bytes()).value
    assert value == {"name": "Close issue", "description": "Close it."}


def test_unwritable_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in place of a folder."""
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "toolkits").write_text("")
    assert main([*TOOLKIT, "--catalog", str(tmp_path / "catalog")]) == 2
    assert capsys.readouterr().err.startswith("error: Cannot write ")
