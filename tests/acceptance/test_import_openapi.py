"""`import openapi`: the operations of an API's description become catalog files.

Each document in tests/data/openapi is a case; beside it, `<case>.expected.yaml` has the files that
it becomes and all that is told of it, or the sentences that refuse it. A new case is a new
document: `PYTHONPATH=tests python tests/acceptance/test_import_openapi.py` writes what is expected
of it, to be read before it is believed.
"""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from support.command import run_successfully, run_toolcatalog
from support.paths import DATA, SHARED
from support.profile import example_settings
from toolcatalog.catalog import loader, schema, yaml_reader, yaml_writer
from toolcatalog.cli.main import main
from toolcatalog.errors import UsageError
from toolcatalog.importers import documents, openapi, slugs, writer
from toolcatalog.validation import checker

CASES = DATA / "openapi"
DOCUMENTS = sorted(path for path in CASES.iterdir() if not path.name.endswith(".expected.yaml"))
REAL = {
    "slack-openapi2.json": ("slack", 174),
    "agent-platform-openapi3.json": ("composio_platform", 60),
}
SMALL: dict[str, Any] = {"openapi": "3.0.0", "info": {"title": "Small"}, "security": []}


def import_document(
    document: Any, *, present: tuple[str, ...] = (), **options: Any
) -> writer.ImportResult:
    """Import the value of a document."""
    source = documents.SourceDocument("it.yaml", document, b"")
    return writer.build_files(openapi.import_tools(source, **options), present)


def operation(**extra: Any) -> dict[str, Any]:
    """A document of one operation."""
    return {**SMALL, "paths": {"/do": {"get": {"operationId": "do", "responses": {}, **extra}}}}


def import_case(path: Path) -> dict[str, Any]:
    """Return the files and notes of a case, or the sentences that refuse it."""
    try:
        new = writer.build_files(
            openapi.import_tools(documents.read_document(path.read_bytes(), path.name)), ()
        )
    except UsageError as error:
        return {"refused": str(error).splitlines()}
    notes = [
        f"{note.subject} {'.'.join(map(str, note.loss.pointer))}: {note.loss.kind}"
        f" ({note.loss.detail})"
        for note in new.notes
    ]
    return {
        "files": {name: yaml_reader.parse_fast(data) for name, data in sorted(new.files.items())},
        "notes": notes,
    }


def expected(path: Path) -> Path:
    """Return the path of a case's expected result."""
    return path.with_name(f"{path.stem}.expected.yaml")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_documents_give_the_expected_files(path: Path, tmp_path: Path) -> None:
    """Every file and note, for every order of keys; the files pass `check`."""
    result = import_case(path)
    assert json.dumps(result) == json.dumps(
        yaml_reader.parse_fast(expected(path).read_bytes(), documents.MAX_DEPTH)
    )
    if "files" in result:
        for name, value in result["files"].items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(yaml_writer.to_yaml(value))
        assert [
            problem
            for problem in checker.check_folder(tmp_path).problems
            if problem.severity == "error"
        ] == []


def reordered(value: Any) -> Any:
    """A JSON value with the keys of all its mappings the other way round."""
    if isinstance(value, dict):
        return {key: reordered(inner) for key, inner in reversed(value.items())}
    return [reordered(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if "files" in import_case(path)], ids=lambda path: path.stem
)
def test_key_order_of_a_document_does_not_matter(path: Path) -> None:
    """Except for the key order of the files."""
    value = documents.read_document(path.read_bytes(), path.name).value
    item, other = import_document(value).files, import_document(reordered(value)).files
    assert {name: yaml_reader.parse_fast(data) for name, data in item.items()} == {
        name: yaml_reader.parse_fast(data) for name, data in other.items()
    }


@pytest.mark.parametrize("name", REAL)
def test_real_documents_give_valid_catalogs(name: str, tmp_path: Path) -> None:
    """Two real APIs pass `check` and build; a second import changes nothing."""
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"the real document {name} lies outside the repository, and not here")
    toolkit, count = REAL[name]
    text = run_toolcatalog("import", "openapi", path, "--catalog", tmp_path / "catalog").stderr
    assert f"{count} new, 0 in a new version, 0 unchanged." in text
    assert len([*(tmp_path / "catalog" / "toolkits" / toolkit).glob("*/00000000_00.yaml")]) == count
    assert (
        run_toolcatalog("check", "--catalog", tmp_path / "catalog", "--format", "json").returncode
        == 0
    )
    run_successfully(
        "build", "--catalog", tmp_path / "catalog", "--out", tmp_path / "build", "--no-site"
    )
    repeated = run_toolcatalog("import", "openapi", path, "--catalog", tmp_path / "catalog").stderr
    assert f"0 new, 0 in a new version, {count} unchanged." in repeated
    slugs_made = [
        path.name
        for path in (tmp_path / "catalog" / "toolkits" / toolkit).iterdir()
        if path.is_dir()
    ]
    assert max(map(len, slugs_made)) <= slugs.MAX_LENGTH
    assert all(slug.startswith(f"{toolkit.upper()}_") for slug in slugs_made)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (5, "it.yaml is no OpenAPI document: it says neither `openapi: 3...` nor `swagger: 2.0`."),
        (
            {"asyncapi": "2.0"},
            "it.yaml is no OpenAPI document: it says neither `openapi: 3...` nor `swagger: 2.0`.",
        ),
        (
            {"openapi": "4.0.0"},
            "it.yaml is of version '4.0.0': Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1 are read.",
        ),
        (
            {"swagger": "1.2"},
            "it.yaml is of version '1.2': Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1 are read.",
        ),
        (
            {**SMALL, "paths": {}},
            "it.yaml describes no operation: there is nothing below `paths` to make a tool of.",
        ),
        ({**SMALL, "paths": []}, "it.yaml: #/paths: `paths` is not a mapping."),
        (
            {**operation(), "info": {}},
            "The document has no title to name a toolkit by: name it with --toolkit SLUG.",
        ),
        (
            {**operation(), "info": {"title": "宠物"}},
            "The document has no title to name a toolkit by: name it with --toolkit SLUG.",
        ),
    ],
)
def test_other_documents_are_refused(document: Any, sentence: str) -> None:
    """Another kind of document, or one without operations."""
    with pytest.raises(UsageError) as error:
        import_document(document)
    assert str(error.value) == sentence


def test_reading_stops_after_a_thousand_problems() -> None:
    """The rest of a document may be long, and wrong, too."""
    document = operation(
        parameters=[{"name": f"p{number}", "in": "query"} for number in range(3_000)]
    )
    with pytest.raises(UsageError) as error:
        import_document(document)
    assert str(error.value).endswith("... and 991 more like these.")


def test_thousands_of_empty_operations_are_refused() -> None:
    """The allowed number depends on the size of the document."""
    document = {
        **SMALL,
        "paths": {f"/do{number}": {"get": {"responses": {}}} for number in range(2_049)},
    }
    with pytest.raises(UsageError, match="There are 2,049 tools here"):
        import_document(document)
    assert next(
        iter(openapi.import_tools(documents.SourceDocument("it", document, b" " * 2_049 * 512)))
    ).slug.endswith("_GET_DO0")


def test_path_has_only_characters_of_a_url() -> None:
    """Others are percent-encoded; the names of path parameters stay."""
    document = operation()
    document["paths"] = {"/caf\xe9 <a>/{id}/\u202e\ud800": document["paths"]["/do"]}
    (path,) = (name for name in import_document(document).files if name.count("/") == 3)
    value = yaml_reader.parse_fast(import_document(document).files[path])
    assert value["source"]["path"] == "/caf%C3%A9%20%3Ca%3E/{id}/%E2%80%AE?"


def test_toolkit_flags_override_the_document() -> None:
    """--toolkit, --name and --logo; only for a new toolkit."""
    document = operation()
    new = import_document(
        document, toolkit="other-kit", name="Other", logo="https://example.com/logo.png"
    )
    assert [*new.files] == [
        "toolkits/other-kit/OTHER_KIT_DO/00000000_00.yaml",
        "toolkits/other-kit/toolkit.yaml",
        "catalog.yaml",
    ]
    assert yaml_reader.parse_fast(new.files["toolkits/other-kit/toolkit.yaml"]) == {
        "name": "Other",
        "logo": "https://example.com/logo.png",
    }
    assert (
        "toolkits/small/toolkit.yaml"
        not in import_document(document, present=("toolkits/small/toolkit.yaml",)).files
    )


ANYTHING = st.recursive(
    st.sampled_from(
        [
            None,
            True,
            0,
            2.5,
            "",
            "a",
            "#",
            "#/paths",
            "#/components/schemas/Order",
            "get",
            "object",
            "body",
            "\ud800",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["$ref", "type", "properties", "items", "allOf", "schema", "in", "name", "a"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)
WHOLE = [
    documents.read_document(path.read_bytes(), path.name).value
    for path in DOCUMENTS
    if path.stem in ("swagger-2", "openapi-3.0", "openapi-3.1")
]


def list_pointers(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the pointer of every value in a JSON value."""
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*at, key)
        yield from list_pointers(inner, (*at, key))


@example_settings(100, *HealthCheck)
@given(
    st.sampled_from(WHOLE).flatmap(
        lambda full_value: st.tuples(
            st.just(full_value), st.sampled_from([*list_pointers(full_value)])
        )
    ),
    ANYTHING,
)
def test_mutated_documents_are_imported_or_refused(
    selected: tuple[Any, tuple[Any, ...]], anything: Any
) -> None:
    """With any value in any place; written files are valid."""
    document, (*outer, last) = copy.deepcopy(selected[0]), selected[1]
    around = document
    for step in outer:
        around = around[step]
    around[last] = anything
    try:
        new = import_document(document)
    except UsageError:
        return
    for path, data in new.files.items():
        kind, _, remaining = path.partition("/")
        if kind == "toolkits" and remaining.count("/") == 2:
            location = loader.Location(
                "tool", {"toolkit": "a", "tool": "A", "version": "00000000_00"}
            )
            assert (
                schema.validate(
                    loader.Document(path, location, yaml_reader.parse_fast(data), True)
                )[1]
                == []
            )


@pytest.mark.parametrize(
    ("flag", "value"), [("logo", "http://example.com/logo.png"), ("name", " ")]
)
def test_invalid_flags_are_refused(flag: str, value: str) -> None:
    """Such as a logo or name that no toolkit can have."""
    with pytest.raises(UsageError, match=f"^--{flag}: the string `{value}`"):
        import_document(
            operation(), name=value if flag == "name" else "", logo=value if flag == "logo" else ""
        )


def test_exponential_references_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few definitions expand to billions of schemas; the test uses a small limit."""
    monkeypatch.setattr(openapi, "MAX_TOTAL_SCHEMAS", 30_000)
    row = {
        f"d{number}": {
            "properties": {
                side: {"$ref": f"#/components/schemas/d{number + 1}"} for side in "abcdefgh"
            }
        }
        for number in range(9)
    }
    answer = {
        "200": {
            "description": "",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/d0"}}},
        }
    }
    paths = {f"/{number}": {"get": {"responses": answer}} for number in range(100)}
    openapi_of = {**SMALL, "components": {"schemas": row}, "paths": paths}
    with pytest.raises(UsageError, match="unfold to more than"):
        import_document(openapi_of)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "Cannot read"),
        (b"", "it.json:1:1: the file has no content"),
        (b"{", "is not JSON"),
        (b'{"openapi": "3.0.0", "openapi": "3.0.0"}', "key 'openapi' occurs twice in one object"),
        (b"openapi: 3.0.0\nopenapi: 3.0.0\n", "it.json:2:1: key `openapi` is repeated"),
        (b"openapi: [", "it.json:2:1: while parsing a flow node"),
        (b"{" * 100_000, "is not JSON"),
        (b'{"a":' * 100_000, "nests too deeply"),
        (b"- " * 300 + b"a", "nested more than 200 levels deep"),
        (b"\xff", "is not UTF-8"),
        (b"text", "is no OpenAPI document"),
    ],
)
def test_unreadable_input_is_reported(
    content: bytes | None, sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one sentence with the place, no traceback, no files."""
    if content is not None:
        (tmp_path / "it.json").write_bytes(content)
    assert (
        main(
            ["import", "openapi", str(tmp_path / "it.json"), "--catalog", str(tmp_path / "catalog")]
        )
        == 2
    )
    text = capfd.readouterr()
    assert (text.out, len(text.err.splitlines())) == ("", 1)
    assert sentence in text.err
    assert not (tmp_path / "catalog").exists()


def test_standard_input_is_read(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "import",
        "openapi",
        "-",
        "--catalog",
        str(tmp_path),
        "--version",
        "20251027_00",
    ]
    subprocess.run(
        command, input=json.dumps(operation()), capture_output=True, text=True, check=True
    )
    assert (tmp_path / "toolkits/small/SMALL_DO/20251027_00.yaml").exists()


def test_deep_document_is_read() -> None:
    """It may nest deeper than a catalog file; the excess is cut."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"type": "object", "properties": {"x": schema}}
    answer = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    for data in (
        json.dumps(operation(responses=answer)).encode(),
        yaml_writer.to_yaml(operation(responses=answer)),
    ):
        new = writer.build_files(openapi.import_tools(documents.read_document(data, "it")), ())
        assert "nesting beyond 32 levels" in {note.loss.kind for note in new.notes}


def test_help_has_examples() -> None:
    assert "toolcatalog import openapi openapi.json" in run_successfully(
        "import", "openapi", "--help"
    )


if __name__ == "__main__":
    for document in DOCUMENTS:
        expected(document).write_bytes(yaml_writer.to_yaml(import_case(document)))
