"""The JSON Schemas for editors: generated, in the site, with a description of each field."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support.paths import SHIPPED_CATALOG
from toolcatalog.catalog import file_schemas, yaml_reader
from toolcatalog.catalog.file_schemas import SCHEMAS

KINDS = sorted(SCHEMAS)
PATHS = dict(file_schemas.schema_paths())
SHIPPED_FILES = {
    "catalog": "catalog.yaml",
    "toolkit": "toolkits/*/toolkit.yaml",
    "tool": "toolkits/*/*/*.yaml",
    "meta_tool": "meta_tools/*/*.yaml",
    "auth_config": "auth_configs/*.yaml",
    "session": "sessions/*.yaml",
}


def walk(
    schema: Any, document: dict[str, Any], location: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that says what some value or name is, with references followed once."""
    yield location, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, document, f"{location}.{name}")
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], document, f"{location}/{key}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_description(kind: str) -> None:
    """At every level, for editors."""
    document = json.loads(file_schemas.render_schema(kind))
    parts = [
        ("", document),
        *(("$defs/" + name, inner) for name, inner in document.get("$defs", {}).items()),
    ]
    results = [results for name, part in parts for results in walk(part, document, name)]
    assert len(results) > len(document["properties"])
    for location, schema in results:
        output = (
            schema.get("description")
            or document["$defs"][schema["$ref"].rpartition("/")[2]]["description"]
        )
        assert output.strip(), location


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_valid_and_self_contained(kind: str) -> None:
    """JSON Schema 2020-12 with a title, without `$id` and external references."""
    document = json.loads(file_schemas.render_schema(kind))
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["title"]
    assert '"$id"' not in file_schemas.render_schema(kind).decode()
    jsonschema.Draft202012Validator.check_schema(document)
    for _, schema in walk({"properties": document.get("$defs", {})} | document, document, kind):
        assert schema.get("$ref", "#").startswith("#")


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"meta_tool"}))
def test_editor_validator_accepts_shipped_files(kind: str) -> None:
    """And refuses a file with an unknown key."""
    validator = jsonschema.Draft202012Validator(json.loads(file_schemas.render_schema(kind)))
    files = sorted(SHIPPED_CATALOG.glob(SHIPPED_FILES[kind]))
    assert files
    for file in files:
        value = yaml_reader.parse(file.read_bytes()).value
        assert not [*validator.iter_errors(value)], file
        assert not validator.is_valid({**value, "colour": "red"})


def test_site_contains_the_schemas(shipped_build: Path) -> None:
    for kind in KINDS:
        assert (
            shipped_build.parent / "site" / PATHS[kind]
        ).read_bytes() == file_schemas.render_schema(kind)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("catalog", "catalog.yaml"),
        ("toolkit", "toolkits/a/toolkit.yaml"),
        ("tool", "toolkits/a/A_B/20250101_00.yaml"),
    ],
)
def test_comments_point_to_the_schema(tmp_path: Path, kind: str, path: str) -> None:
    """Relative to the file, into `.schemas` of the catalog."""
    for comment, start in zip(
        file_schemas.render_schema_comments(kind, path).splitlines(),
        ("# yaml-language-server: $schema=", "# $schema: "),
        strict=True,
    ):
        assert comment.startswith(start)
        assert (tmp_path / path).parent.joinpath(
            comment.removeprefix(start)
        ).resolve() == tmp_path / file_schemas.catalog_schema_path(kind)
