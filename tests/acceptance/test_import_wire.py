"""`import wire`: tool definitions of an API to catalog files, and back through our API."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command import only_errors, run_successfully, run_toolcatalog
from support.paths import SHARED
from support.snapshot_reader import read_newest_documents
from toolcatalog.cli.main import main
from toolcatalog.errors import UsageError
from toolcatalog.importers import wire, writer
from toolcatalog.validation import checker

WIRE = SHARED / "data" / "wire-tools.json"
FIELDS = ("input_parameters", "output_parameters")
ROOT_TYPES = [((field,), "type") for field in FIELDS]
NOTHING = object()
Place = tuple[Any, ...]
OTHER_VERSIONS = "`available_versions` other than the one that is described"
LOGO = "https://example.com/logo.svg"


def definition(slug: str = "GITHUB_STAR", **extra: Any) -> dict[str, Any]:
    """A small tool definition."""
    return {"slug": slug, "name": "Star", "description": "Star a repository.", **extra}


def import_definitions(
    *definitions: Any, present: tuple[str, ...] = (), toolkit: str = "", version: str = ""
) -> writer.ImportResult:
    """Import definitions into a catalog with files at the paths `present`."""
    options = writer.ImportOptions(toolkit=toolkit, version=version)
    return writer.build_files(wire.import_tools([*definitions]), present, options)


def note_kinds(new: writer.ImportResult) -> list[str]:
    """Return the kinds of notes, except those about generated names and logos of toolkits."""
    return [note.loss.kind for note in new.notes if not note.subject.startswith("toolkits/")]


def value(new: writer.ImportResult, path: str) -> Any:
    """One file, read by PyYAML."""
    return yaml.safe_load(new.files[path])


# The 930 real definitions: into a catalog, through a build, and back.


@pytest.fixture(scope="module")
def source() -> list[dict[str, Any]]:
    """The real definitions."""
    if not WIRE.exists():
        pytest.skip("the real tool definitions lie outside the repository, and not here")
    definitions: list[dict[str, Any]] = json.loads(WIRE.read_bytes())
    return definitions


@pytest.fixture(scope="module")
def imported(source: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the catalog made of them, and its build."""
    assert len(source) == 930
    folder = tmp_path_factory.mktemp("wire")
    result = run_toolcatalog("import", "wire", WIRE, "--catalog", folder / "catalog")
    assert (result.returncode, result.stdout) == (0, "")
    (folder / "said").write_text(result.stderr)
    run_successfully(
        "build", "--catalog", folder / "catalog", "--out", folder / "build", "--no-site"
    )
    return folder


def served_documents(build: Path) -> dict[str, dict[str, Any]]:
    """Return the documents of a build by slug."""
    return {
        slug: json.loads(document)
        for slug, document in read_newest_documents(build / "current").items()
    }


def test_imported_catalog_has_no_problems(imported: Path) -> None:
    """`toolcatalog check` passes for all 930 tools."""
    checked = checker.check_folder(imported / "catalog")
    assert (only_errors(checked.problems), checked.file_count) == ([], 930 + 3 + 1)


def facts(schema: Mapping[str, Any], at: Place) -> Iterator[tuple[Place, Any]]:
    """Everything that a schema says, one fact at a time, each with the place where a description
    says it.
    """
    for key, fields in schema.items():
        if key == "properties":
            for name, inner in fields.items():
                yield (*at, key, name), "is described"
                yield from facts(inner, (*at, key, name))
        elif key in ("items", "additionalProperties") and isinstance(fields, dict):
            yield from facts(fields, (*at, key))
        elif key == "required" and at[0] == "input_parameters" and isinstance(fields, list):
            yield from (((*at, "properties", name, "required"), True) for name in fields)
        elif key == "anyOf":
            # there are no other unions in this data
            (branch,) = [branch for branch in fields if branch != {"type": "null"}]
            yield (*at, "nullable"), True
            yield from facts(branch, at)
        elif key == "const":
            yield (*at, "enum"), [fields]
        elif (key, fields) not in (("required", False), ("description", "")) and (
            at,
            key,
        ) not in ROOT_TYPES:
            yield (*at, key), fields


def note_place(note: writer.ImportNote) -> Place:
    """Return the place of a note in the form of `facts`, which has parameters under
    `properties`.
    """
    field, *remaining = note.loss.pointer
    document = len(remaining) == 1 and ("whole" in note.loss.kind or "outputs" in note.loss.kind)
    return (
        (field, *remaining)
        if document or field not in FIELDS
        else (field, "properties", *remaining)
    )


def differences(
    previous: dict[Place, Any], current: dict[Place, Any], noted: Mapping[Place, str]
) -> Iterator[Place]:
    """The places where what is served is not what the source says."""
    for position, text in previous.items():
        dropped = (
            {(*position, index) for index in range(len(text)) if (*position, index) in noted}
            if isinstance(text, list)
            else set()
        )
        yield from dropped
        remaining = (
            [item for index, item in enumerate(text) if (*position, index) not in dropped]
            if dropped
            else text
        )
        if current.get(position, [] if dropped else NOTHING) != remaining:
            yield position
    yield from current.keys() - previous.keys()


def test_import_keeps_all_supported_fields(source: list[dict[str, Any]], imported: Path) -> None:
    """The served documents of 930 tools differ from the source only as the notes say."""
    documents, notes = served_documents(imported / "build"), import_definitions(*source).notes
    assert documents.keys() == {tool["slug"] for tool in source}
    for tool in source:
        document = documents[tool["slug"]]
        previous, current = (
            {(key,): side[key] for key in ("name", "description", "tags", "available_versions")}
            for side in (tool, document)
        )
        for field in FIELDS:
            previous |= dict(facts(tool[field], (field,)))
            current |= dict(facts({"properties": document[field]}, (field,)))
        noted = {note_place(note): note.loss.kind for note in notes if note.subject == tool["slug"]}
        assert {*differences(previous, current, noted)} == noted.keys(), tool["slug"]


def test_second_import_changes_nothing(imported: Path) -> None:
    result = run_toolcatalog("import", "wire", WIRE, "--catalog", imported / "catalog")
    assert result.returncode == 0
    assert (
        f"Imported 930 tools into {imported / 'catalog'}: 0 new, 0 in a new version, 930 unchanged."
        in result.stderr
    )
    assert len([path for path in imported.rglob("*.yaml") if path.is_file()]) == 930 + 3 + 1


def test_summary_counts_each_kind_of_loss(imported: Path) -> None:
    """With the number and the first case of each kind."""
    text = (imported / "said").read_text()
    assert "Imported 930 tools into" in text
    assert (
        "   1,860  `title` of a whole parameters object; first:"
        " GITHUB_ACCEPT_A_REPOSITORY_INVITATION input_parameters.title\n" in text
    )
    assert (
        "`file_uploadable`; first: GOOGLEDRIVE_UPLOAD_FILE"
        " input_parameters.file_to_upload.file_uploadable\n" in text
    )


def test_own_api_pages_are_imported_without_loss(shipped_build: Path, tmp_path: Path) -> None:
    previous = served_documents(shipped_build)
    (tmp_path / "page.json").write_text(
        json.dumps({"items": [*previous.values()], "next_cursor": None})
    )
    result = run_toolcatalog(
        "import", "wire", tmp_path / "page.json", "--catalog", tmp_path / "catalog"
    )
    assert result.returncode == 0, result.stderr
    assert {
        line.partition("; first: ")[0].split("  ")[-1]
        for line in result.stderr.splitlines()
        if "; first: " in line
    } <= {OTHER_VERSIONS}
    run_successfully(
        "build", "--catalog", tmp_path / "catalog", "--out", tmp_path / "build", "--no-site"
    )
    repeated = served_documents(tmp_path / "build")
    assert repeated.keys() == previous.keys()
    for slug, document in previous.items():
        alone = {"available_versions": [document["version"]]}
        assert repeated[slug] == {
            **document,
            **alone,
            "deprecated": {**document["deprecated"], **alone},
        }


# Small definitions.


def test_complete_definition_gives_three_files() -> None:
    """The files of the tool, its toolkit and the catalog."""
    new = import_definitions(
        definition(
            toolkit={"slug": "github", "name": "GitHub", "logo": LOGO},
            version="20251027_00",
            available_versions=["20251027_00"],
            scopes=["repo"],
            tags=["important", "idempotentHint"],
            no_auth=False,
            is_deprecated=True,
            deprecated={"displayName": "Star", "is_deprecated": True},
            input_parameters={
                "type": "object",
                "properties": {
                    "repo": {"type": "string", "description": "R."},
                    "on": {"type": "boolean"},
                },
                "required": ["repo"],
            },
            output_parameters={},
        )
    )
    assert {path: data.decode() for path, data in new.files.items()} == {
        "toolkits/github/GITHUB_STAR/20251027_00.yaml": """\
name: Star
description: Star a repository.
scopes: [repo]
tags: [important, idempotentHint]
no_auth: false
deprecation: {}
input_parameters:
  repo:
    type: string
    description: R.
    required: true
  'on':
    type: boolean
""",
        "toolkits/github/toolkit.yaml": f"name: GitHub\nlogo: {LOGO}\n",
        "catalog.yaml": "title: Tool catalog\n",
    }
    assert (new.tools, new.notes) == (1, ())


@pytest.mark.parametrize(
    ("slug", "toolkit", "option", "present", "expected"),
    [
        ("GITHUB_STAR", "hub", "other", ("toolkits/github/toolkit.yaml",), "hub"),
        ("GITHUB_STAR", None, "other", ("toolkits/github/toolkit.yaml",), "other"),
        (
            "GOOGLE_DRIVE_LIST",
            None,
            "",
            (
                "toolkits/google/toolkit.yaml",
                "toolkits/google_drive/toolkit.yaml",
                "toolkits/goo/toolkit.yaml",
            ),
            "google_drive",
        ),
        ("GOOGLE_DRIVE_LIST", None, "", ("toolkits/google-drive/toolkit.yaml",), "google-drive"),
        (
            "GOOGLE_DRIVE_LIST",
            None,
            "",
            ("toolkits/google_dri/toolkit.yaml", "toolkits/google/GOOGLE_X/20250101_00.yaml"),
            "google",
        ),
        ("GOOGLE_DRIVE_LIST", None, "", (), "google"),
        ("PING", None, "", (), "ping"),
        ("_PING", None, "other", (), "other"),
    ],
)
def test_toolkit_selection_order(
    slug: str, toolkit: str | None, option: str, present: tuple[str, ...], expected: str
) -> None:
    """The definition, then --toolkit, then the longest matching toolkit slug, then the
    first word.
    """
    item = definition(slug, toolkit={"slug": toolkit} if toolkit else None)
    assert (
        f"toolkits/{expected}/{slug}/00000000_00.yaml"
        in import_definitions(item, present=present, toolkit=option).files
    )


@pytest.mark.parametrize(
    ("text", "option", "expected", "missing"),
    [
        (None, "", "00000000_00", []),
        ("20250101_01", "", "20250101_01", []),
        ("20250101_01", "20260101_00", "20260101_00", ["`version` other than the one imported"]),
        ("20250101_01", "20250101_01", "20250101_01", []),
        ("latest", "", "00000000_00", ["`version` other than the one imported"]),
        (20250101, "", "00000000_00", ["`version` of a form that is not read"]),
    ],
)
def test_version_selection_order(text: Any, option: str, expected: str, missing: list[str]) -> None:
    """--version, then the definition, then the version of undated tools."""
    new = import_definitions(definition(version=text), version=option)
    assert f"toolkits/github/GITHUB_STAR/{expected}.yaml" in new.files
    assert note_kinds(new) == missing


@pytest.mark.parametrize(
    ("extra", "remaining", "missing"),
    [
        (
            {"tags": ["a,b", "a", "a", " b", "c d"]},
            {"tags": ["a", "c d"]},
            ["a value in `tags` that the catalog refuses"] * 3,
        ),
        ({"tags": [1]}, {}, ["a value in `tags` that the catalog refuses"]),
        ({"tags": "a"}, {}, ["`tags` that the catalog refuses"]),
        ({"no_auth": "yes"}, {}, ["`no_auth` that the catalog refuses"]),
        ({"scopes": []}, {}, []),
        ({"scopes": ["a", "\ud800"]}, {}, ["`scopes` that no file can hold"]),
        ({"name": None}, {"name": "GITHUB_STAR"}, ["no `name` in the source: made up"]),
        ({"name": " "}, {"name": "GITHUB_STAR"}, ["`name` that the catalog refuses"]),
        ({"description": 5}, {"description": ""}, ["`description` that the catalog refuses"]),
        ({"id": "x", "version": "00000000_00"}, {}, ["`id` of a tool"]),
        ({"available_versions": ["latest"]}, {}, [OTHER_VERSIONS]),
        ({"is_deprecated": False, "deprecated": {"is_deprecated": False}}, {}, []),
        ({"is_deprecated": True}, {"deprecation": {}}, []),
        ({"deprecated": {"is_deprecated": True}}, {"deprecation": {}}, []),
        ({"deprecated": {"displayName": "Stern"}}, {}, ["`displayName` other than the name"]),
        ({"toolkit": "github"}, {}, ["`toolkit` of a form that is not read"]),
        ({"toolkit": {"slug": "GitHub"}}, {}, ["a toolkit's slug that no toolkit can have"]),
        ({"input_parameters": None, "output_parameters": {}}, {}, []),
    ],
)
def test_only_invalid_values_are_left_out(
    extra: dict[str, Any], remaining: dict[str, Any], missing: list[str]
) -> None:
    """With a note; the rest of the tool stays."""
    new = import_definitions(definition(**extra))
    expected = {"name": "Star", "description": "Star a repository.", **remaining}
    assert value(new, "toolkits/github/GITHUB_STAR/00000000_00.yaml") == expected
    assert note_kinds(new) == missing


@pytest.mark.parametrize(
    ("schema", "remaining"),
    [
        ({"type": "string", "examples": ["a", 1, None]}, {"type": "string", "examples": ["a"]}),
        ({"type": "integer", "examples": ["1"], "default": "1"}, {"type": "integer"}),
        ({"type": "string", "default": None}, {"type": "string"}),
        (
            {"type": "string", "default": None, "nullable": True},
            {"type": "string", "default": None, "nullable": True},
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "examples": [[1, "2"], [3]]},
            {"type": "array", "items": {"type": "integer"}, "examples": [[3]]},
        ),
        ({"type": "string", "enum": ["a", 1]}, {"type": "string", "enum": ["a"]}),
        (
            {"type": "string", "enum": [1, 2], "examples": ["a"]},
            {"type": "string", "examples": ["a"]},
        ),
        ({"type": "string", "pattern": "("}, {"type": "string"}),
        ({"type": "string", "minLength": -1, "format": 5}, {"type": "string"}),
        (
            {"type": "object", "properties": {"": {"type": "string"}}},
            {"type": "object", "properties": {}},
        ),
        (
            {"type": "object", "properties": {"examples": {"type": "string", "examples": [1]}}},
            {"type": "object", "properties": {"examples": {"type": "string"}}},
        ),
    ],
)
def test_misfit_values_are_removed_not_changed(
    schema: dict[str, Any], remaining: dict[str, Any]
) -> None:
    """Examples, defaults, enum values and limits that do not fit, each with a note."""
    new = import_definitions(
        definition(input_parameters={"type": "object", "properties": {"p": schema}})
    )
    result = value(new, "toolkits/github/GITHUB_STAR/00000000_00.yaml")["input_parameters"]["p"]
    assert result == remaining
    assert bool(note_kinds(new)) is (remaining != schema)


def test_slugs_are_uppercased_or_refused() -> None:
    """A lowercase slug is converted; a tool with an impossible one is left out with a note."""
    new = import_definitions(
        definition("github_star"),
        definition("GITHUB STAR"),
        definition("-X"),
        definition("_X"),
        definition("X" * 201),
    )
    assert [path for path in new.files if path.count("/") == 3] == [
        "toolkits/github/GITHUB_STAR/00000000_00.yaml"
    ]
    assert new.tools == 1
    assert [note.subject[:11] for note in new.notes if "left out" in note.loss.kind] == [
        "GITHUB STAR",
        "-X",
        "_X",
        "X" * 11,
    ]
    assert "a slug that is in capitals now" in note_kinds(new)


def test_toolkit_file_is_created_from_definitions() -> None:
    """Missing or invalid fields get reported defaults; an existing file does not change."""
    tools = [
        definition("A_ONE", toolkit={"slug": "a", "logo": "http://example.com/logo.svg"}),
        definition(
            "A_TWO",
            toolkit={"slug": "a", "name": "The A", "description": "Letters.", "color": "red"},
        ),
        definition("A_THREE", toolkit={"slug": "a", "name": "Another A"}),
        definition("BIG_DEAL_ONE", toolkit={"slug": "big-deal_2"}),
        definition("C_ONE", toolkit={"slug": "c", "name": "C", "logo": LOGO}),
    ]
    new = import_definitions(*tools, present=("catalog.yaml", "toolkits/c/toolkit.yaml"))
    description = {path: value(new, path) for path in new.files if path.endswith("toolkit.yaml")}
    assert description == {
        "toolkits/a/toolkit.yaml": {
            "name": "The A",
            "description": "Letters.",
        },
        "toolkits/big-deal_2/toolkit.yaml": {
            "name": "Big Deal 2",
        },
    }
    assert [(note.subject, note.loss.kind) for note in new.notes] == [
        ("A_THREE", "`name` of the toolkit other than the first"),
        ("toolkits/a/toolkit.yaml", "`color`"),
        ("toolkits/a/toolkit.yaml", "`logo` that the catalog refuses"),
        ("toolkits/big-deal_2/toolkit.yaml", "no `name` in the source: made up"),
    ]


def test_tool_with_an_oversized_file_is_left_out() -> None:
    """More than 1 MiB; its toolkit is not created."""
    new = import_definitions(definition(description="x" * 1024 * 1024))
    assert [*new.files] == ["catalog.yaml"]
    assert note_kinds(new) == ["a tool left out: its file would be larger than 1 MiB"]


def test_tool_with_too_many_values_is_left_out() -> None:
    """A catalog file has a limit of values; a long text is one value."""
    new = import_definitions(
        definition(
            input_parameters={
                "type": "object",
                "properties": {"a": {"type": "string", "enum": [f"e{n}" for n in range(20_000)]}},
            }
        )
    )
    assert [*new.files] == ["catalog.yaml"]
    assert note_kinds(new) == ["a tool left out: its file would have more than 20,000 values"]
    assert len(import_definitions(definition(description="a, b: " * 20_000)).files) == 3


def test_tool_with_too_many_examples_is_left_out_at_once() -> None:
    """Without trying to repair twenty thousand examples."""
    count = {
        "type": "object",
        "properties": {"a": {"type": "string", "examples": [*range(20_000)]}},
    }
    there = "toolkits/github/GITHUB_STAR/20250101_00.yaml"
    new = import_definitions(
        definition(input_parameters=count), definition("GITHUB_FORK"), present=(there,)
    )
    assert note_kinds(new)[0] == "a tool left out: its file would have more than 20,000 values"
    assert new.missing == ()


def test_number_of_tools_depends_on_document_size() -> None:
    """At least half a KiB for each on average, from 1 MiB on."""
    shortened = [definition(f"GITHUB_T{number}") for number in range(2_049)]
    with pytest.raises(
        UsageError,
        match=(
            r"There are 2,049 tools here, and a document of this size may bring 2,048: import a"
            r" part of them"
        ),
    ):
        wire.import_tools(shortened)
    assert len(wire.import_tools(shortened[1:])) == 2_048
    assert (
        len(wire.import_tools([{**item, "description": "x" * 500} for item in shortened])) == 2_049
    )


@pytest.mark.parametrize(
    ("definitions", "sentences"),
    [
        (
            "text",
            [
                (
                    "There is no list of tool definitions here: give a JSON array, or a page as "
                    "the API"
                    ' sends it, {"items": [...]}.'
                )
            ],
        ),
        (
            {"tools": []},
            [
                (
                    "There is no list of tool definitions here: give a JSON array, or a page as "
                    "the API"
                    ' sends it, {"items": [...]}.'
                )
            ],
        ),
        (
            [5],
            [
                (
                    "Item 1 is not a JSON object: a tool definition has at least a slug, a name "
                    "and a"
                    " description."
                )
            ],
        ),
        (
            [
                definition(),
                {"name": "x"},
                {"slug": 5},
                {"slug": "", "input_parameters": [], "output_parameters": {"type": "array"}},
            ],
            [
                "Item 2 has no slug: give it one, or remove the item.",
                "Item 3 has no slug: give it one, or remove the item.",
                "Item 4 has no slug: give it one, or remove the item.",
                (
                    "`input_parameters` of item 4 ('') is not the JSON Schema of an object: fix"
                    " it, or remove it."
                ),
                (
                    "`output_parameters` of item 4 ('') is not the JSON Schema of an object: fix"
                    " it, or remove it."
                ),
            ],
        ),
        (
            [{}] * 12,
            [
                *(
                    f"Item {number} has no slug: give it one, or remove the item."
                    for number in range(1, 11)
                ),
                "... and 2 more like these.",
            ],
        ),
    ],
)
def test_invalid_definitions_are_reported(definitions: Any, sentences: list[str]) -> None:
    """One sentence for each."""
    with pytest.raises(UsageError) as error:
        wire.import_tools(definitions)
    assert str(error.value).splitlines() == sentences


@pytest.mark.parametrize(
    ("definitions", "options", "sentence"),
    [
        (
            [definition("A_B"), definition("A_B", name="Other")],
            {},
            (
                "A_B occurs twice in version 00000000_00, with different definitions: "
                "remove one of the two."
            ),
        ),
        (
            [definition("X_B", toolkit={"slug": "x"})],
            {},
            "X_B is a tool of `y` already and cannot be one of `x` too: rename one of the two.",
        ),
        (
            [definition("META")],
            {},
            (
                "META is a tool of `meta_tools` already and cannot be one of `meta` too: rename one"
                " of the two."
            ),
        ),
        (
            [],
            {"toolkit": "A"},
            (
                "`A` is not a toolkit slug: it needs lower-case letters, digits, `_` and `-`, at"
                " most 200."
            ),
        ),
        (
            [],
            {"version": "1"},
            "`1` is not a version: it needs eight digits, `_` and two digits, such as 20251027_00.",
        ),
    ],
)
def test_conflicting_tools_are_refused(
    definitions: list[Any], options: dict[str, str], sentence: str
) -> None:
    """A slug is one tool of the catalog, and a version one definition."""
    present = ("toolkits/y/X_B/20250101_00.yaml", "meta_tools/META/20250101_00.yaml")
    with pytest.raises(UsageError) as error:
        import_definitions(*definitions, present=present, **options)
    assert str(error.value) == sentence


def test_repeated_definition_is_one_tool() -> None:
    """Overlapping pages are harmless."""
    assert import_definitions(definition(), definition()).tools == 1


# The command.


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "Cannot read"),
        (b"", "is not JSON"),
        (b"[{]", "is not JSON"),
        (b"\xff\xfe\xfa", "is not JSON"),
        (b'[{"slug": "A", "slug": "B"}]', "key 'slug' occurs twice in one object"),
        (b'[{"slug": "A", "x": NaN}]', "NaN is not a JSON number"),
        (b"[" * 100_000, "nests too deeply"),
        (b'{"slug": "A"}', "There is no list of tool definitions here"),
    ],
)
def test_bad_input_exits_with_2(
    content: bytes | None, sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One sentence, no traceback, and nothing is written."""
    if content is not None:
        (tmp_path / "tools.json").write_bytes(content)
    assert (
        main(
            ["import", "wire", str(tmp_path / "tools.json"), "--catalog", str(tmp_path / "catalog")]
        )
        == 2
    )
    text = capfd.readouterr()
    assert (text.out, len(text.err.splitlines())) == ("", 1)
    assert sentence in text.err
    assert not (tmp_path / "catalog").exists()


def test_standard_input_is_read(tmp_path: Path) -> None:
    """Terminal escapes in it are never printed."""
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "import",
        "wire",
        "-",
        "--catalog",
        str(tmp_path / "catalog"),
    ]
    result = subprocess.run(
        command,
        input=json.dumps([definition(), definition("\x1b[31mX")]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "catalog/toolkits/github/GITHUB_STAR/00000000_00.yaml").exists()
    assert "a tool left out for its slug" in result.stderr
    assert "\x1b" not in result.stderr


def test_published_file_is_never_overwritten(tmp_path: Path) -> None:
    """The import stops and names the file; with a new version it succeeds."""
    (tmp_path / "tools.json").write_text(
        json.dumps([definition("GITHUB_A"), definition("GITHUB_STAR", name="New name")])
    )
    (tmp_path / "catalog/toolkits/github/GITHUB_STAR").mkdir(parents=True)
    there = tmp_path / "catalog/toolkits/github/GITHUB_STAR/00000000_00.yaml"
    there.write_text("name: Star\n")
    result = run_toolcatalog(
        "import",
        "wire",
        tmp_path / "tools.json",
        "--catalog",
        tmp_path / "catalog",
        "--version",
        "00000000_00",
    )
    assert result.returncode == 2
    assert (
        f"{there} is there and differs: a published version does not change, so give a new one with"
        " --version." in result.stderr
    )
    assert [path for path in (tmp_path / "catalog").rglob("*") if path.is_file()] == [there]
    run_successfully(
        "import",
        "wire",
        tmp_path / "tools.json",
        "--catalog",
        tmp_path / "catalog",
        "--version",
        "20251027_00",
    )
    assert yaml.safe_load(there.with_name("20251027_00.yaml").read_bytes())["name"] == "New name"
    assert there.read_text() == "name: Star\n"


def test_help_has_examples() -> None:
    text = run_successfully("import", "wire", "--help")
    assert "toolcatalog import wire tools.json" in text
