"""The JSON Schemas for editors: made from `formats`, in the package, the wheel and the site, and a
description wherever one may hover.

After a change of `formats`: `python tests/test_editors.py` writes the files of the package anew;
read the difference before you commit it.
"""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from running import ROOT, SHIPPED
from toolcatalog import editors, yaml12
from toolcatalog.formats import SCHEMAS

PACKAGE = ROOT / "src" / "toolcatalog"
KINDS = sorted(SCHEMAS)
PATHS = dict(editors.paths())
REFRESH = "if this is meant, run `python tests/test_editors.py` and read what it has changed"
SHIPPED_FILES = {
    "catalog": "catalog.yaml",
    "toolkit": "toolkits/*/toolkit.yaml",
    "tool": "toolkits/*/*/*.yaml",
    "meta_tool": "meta_tools/*/*.yaml",
    "auth_config": "auth_configs/*.yaml",
    "session": "sessions/*.yaml",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_the_package_are_made_from_formats(kind: str) -> None:
    """Each file is what `formats` gives, byte for byte."""
    assert editors.schema_file(kind).decode() == editors.made(kind).decode(), REFRESH
    assert (PACKAGE / PATHS[kind]).read_bytes() == editors.schema_file(kind)


def test_there_is_a_file_for_each_kind_and_no_other() -> None:
    """A kind that goes takes its file along only with a new version of the folder; this test is
    where one notices.
    """
    assert sorted(path.name for path in (PACKAGE / "schemas" / "v1").iterdir()) == [
        f"{kind}.json" for kind in KINDS
    ]


def walk(schema: Any, whole: dict[str, Any], where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that says what some value or name is, with references followed once."""
    yield where, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, whole, f"{where}.{name}")
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], whole, f"{where}/{key}")


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_description(kind: str) -> None:
    """At every level: an editor shows the field's own description, or that of what it refers to."""
    whole = json.loads(editors.schema_file(kind))
    parts = [
        ("", whole),
        *(("$defs/" + name, inner) for name, inner in whole.get("$defs", {}).items()),
    ]
    found = [found for name, part in parts for found in walk(part, whole, name)]
    assert len(found) > len(whole["properties"])
    for where, schema in found:
        told = (
            schema.get("description")
            or whole["$defs"][schema["$ref"].rpartition("/")[2]]["description"]
        )
        assert told.strip(), where


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_schema_of_2020_12_that_stands_alone(kind: str) -> None:
    """It is valid, has a title and no `$id`, and refers to nothing but itself."""
    whole = json.loads(editors.schema_file(kind))
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert whole["title"]
    assert '"$id"' not in editors.schema_file(kind).decode()
    jsonschema.Draft202012Validator.check_schema(whole)
    for _, schema in walk({"properties": whole.get("$defs", {})} | whole, whole, kind):
        assert schema.get("$ref", "#").startswith("#")


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"meta_tool"}))
def test_an_editor_finds_no_fault_in_the_shipped_files(kind: str) -> None:
    """The validator of an editor takes each file of the shipped catalog, and not one with an
    unknown key.
    """
    validator = jsonschema.Draft202012Validator(json.loads(editors.schema_file(kind)))
    files = sorted(SHIPPED.glob(SHIPPED_FILES[kind]))
    assert files
    for file in files:
        value = yaml12.read(file.read_bytes()).value
        assert not [*validator.iter_errors(value)], file
        assert not validator.is_valid({**value, "colour": "red"})


def test_the_wheel_has_them(tmp_path: Path) -> None:
    """What is installed has the schemas of all kinds."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        for kind in KINDS:
            assert packed.read(f"toolcatalog/{PATHS[kind]}") == editors.schema_file(kind)


def test_the_site_has_them(shipped_build: Path) -> None:
    """The build writes the schemas into the site, where editors and programs elsewhere find them."""
    for kind in KINDS:
        assert (shipped_build.parent / "site" / PATHS[kind]).read_bytes() == editors.schema_file(
            kind
        )


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("catalog", "catalog.yaml"),
        ("toolkit", "toolkits/a/toolkit.yaml"),
        ("tool", "toolkits/a/A_B/20250101_00.yaml"),
    ],
)
def test_comments_lead_to_the_schema(tmp_path: Path, kind: str, path: str) -> None:
    """From the file's own folder, both comments name the schema in the catalog's `.schemas`."""
    for comment, start in zip(
        editors.comments(kind, path).splitlines(),
        ("# yaml-language-server: $schema=", "# $schema: "),
        strict=True,
    ):
        assert comment.startswith(start)
        assert (tmp_path / path).parent.joinpath(
            comment.removeprefix(start)
        ).resolve() == tmp_path / editors.in_catalog(kind)


def refresh() -> None:
    for kind, path in PATHS.items():
        (PACKAGE / path).parent.mkdir(parents=True, exist_ok=True)
        (PACKAGE / path).write_bytes(editors.made(kind))
        print(f"wrote {path}")


if __name__ == "__main__":
    refresh()
