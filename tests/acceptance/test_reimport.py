"""Importing again: what has not changed is left alone, what has changed gets a version of its own,
and nothing is overwritten.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command import run_toolcatalog
from toolcatalog.catalog import folder, loader, schema
from toolcatalog.errors import UsageError
from toolcatalog.importers import wire, writer

TODAY = "20251121_00"
FIRST = "toolkits/a/A_DO/00000000_00.yaml"


def definition(slug: str = "A_DO", **extra: Any) -> dict[str, Any]:
    """A small tool definition."""
    parameters = {
        "type": "object",
        "properties": {"x": {"type": "integer", "default": 1}, "y": {"type": "string"}},
        "required": ["x"],
    }
    return {
        "slug": slug,
        "name": "Do",
        "description": "Does it.",
        "tags": ["b", "a"],
        "input_parameters": parameters,
        **extra,
    }


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog into which one definition has been imported."""
    write(tmp_path, added(tmp_path, definition()))
    return tmp_path


def added(
    root: Path, *definitions: Any, today: str = TODAY, version: str = ""
) -> writer.ImportResult:
    """What an import of these into the catalog would write, on that day."""

    def record(path: str) -> Any:
        document, _ = loader.load_file(root, path)
        return schema.validate(document)[0] if document and document.is_readable else None

    return writer.build_files(
        wire.import_tools([*definitions]),
        folder.list_paths(root)[0],
        writer.ImportOptions(version=version, read=record, today=today),
    )


def write(root: Path, new: writer.ImportResult) -> None:
    """Put the files there."""
    for path, data in new.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def counts(new: writer.ImportResult) -> tuple[int, int, int]:
    """New, renewed, unchanged."""
    return new.new, new.updated, new.unchanged


def test_the_same_again_writes_nothing(catalog: Path) -> None:
    """An import of what is there already gives no file."""
    repeated = added(catalog, definition(), definition())
    assert (dict(repeated.files), counts(repeated), repeated.tools) == ({}, (0, 0, 1), 1)


@pytest.mark.parametrize(
    "text",
    [
        (
            "# A comment\nname: 'Do'\ndescription: >-\n  Does it.\ntags:\n- b\n-"
            " a\ninput_parameters: {y: {type: string}, x: {default: 1, type: integer, required:"
            " true}}\n"
        ),
        (
            "name: Do\ndescription: Does it.\ntags: [b, a]\nscopes: []\nno_auth:"
            " false\ninput_parameters:\n  x: {type: integer, default: 1, required: true,"
            " description: ''}\n  y: {type: string, required: false}\n"
        ),
        (
            "name: Do\ndescription: Does it.\ntags: [b, a]\ndeprecation: {reason:"
            " Old.}\ninput_parameters: {x: {type: integer, default: 1, required: true}, y: {type:"
            " string}}\n"
        ),
    ],
    ids=["layout", "defaults", "deprecation"],
)
def test_only_content_counts(catalog: Path, text: str) -> None:
    """Comments, layout, what would be there anyway and a deprecation written by hand are no
    change.
    """
    (catalog / FIRST).write_text(text)
    assert counts(added(catalog, definition())) == (0, 0, 1)


@pytest.mark.parametrize(
    "extra",
    [
        {"name": "Do it"},
        {"tags": ["a", "b"]},
        {"scopes": ["s"]},
        {"no_auth": True},
        {"is_deprecated": True},
        {
            "input_parameters": {
                "type": "object",
                "properties": {"x": {"type": "integer", "default": 1}, "y": {"type": "string"}},
            }
        },
        {
            "input_parameters": {
                "type": "object",
                "properties": {"x": {"type": "number", "default": True}, "y": {"type": "string"}},
                "required": ["x"],
            }
        },
        {"output_parameters": {"type": "object", "properties": {"z": {"type": "string"}}}},
    ],
)
def test_a_change_is_a_version_of_the_day(catalog: Path, extra: dict[str, Any]) -> None:
    """A tool of which anything has changed gets a version of its own, and the old one stays."""
    repeated = added(catalog, definition(**extra))
    assert ([*repeated.files], counts(repeated)) == ([f"toolkits/a/A_DO/{TODAY}.yaml"], (0, 1, 0))
    write(catalog, repeated)
    assert counts(added(catalog, definition(**extra))) == (0, 0, 1)


@pytest.mark.parametrize(
    ("newest", "version"),
    [
        ("20250101_00", TODAY),
        (TODAY, "20251121_01"),
        ("20251121_98", "20251121_99"),
        ("20251121_99", "20251122_00"),
        ("20300101_00", "20300101_01"),
    ],
)
def test_a_version_is_newer_than_all_before(catalog: Path, newest: str, version: str) -> None:
    """A second change on one day, and one after a version of the future, get the next version that
    is free.
    """
    (catalog / FIRST).with_name(f"{newest}.yaml").write_bytes((catalog / FIRST).read_bytes())
    assert [*added(catalog, definition(name="New")).files] == [f"toolkits/a/A_DO/{version}.yaml"]


def test_where_no_version_is_left_it_is_reported(catalog: Path) -> None:
    """After the last version that can be written there is none."""
    (catalog / FIRST).with_name("99999999_99.yaml").write_bytes((catalog / FIRST).read_bytes())
    with pytest.raises(
        UsageError, match="A_DO has version 99999999_99 already, and there is none after it"
    ):
        added(catalog, definition(name="New"))


def test_new_tools_are_of_the_day_where_their_toolkit_has_tools(catalog: Path) -> None:
    """A new tool of a toolkit that is there is not in what that toolkit was before; a new toolkit
    starts without a date.
    """
    repeated = added(catalog, definition("A_NEW"), definition("B_NEW"))
    assert [*repeated.files] == [
        f"toolkits/a/A_NEW/{TODAY}.yaml",
        "toolkits/b/B_NEW/00000000_00.yaml",
        "toolkits/b/toolkit.yaml",
    ]
    assert counts(repeated) == (2, 0, 0)


@pytest.mark.parametrize(
    ("text", "option", "name", "expected"),
    [
        ("20250101_00", "", "New", ["20250101_00"]),  # its own version
        ("20250101_00", "", "Do", []),  # ... but the content of the newest one
        ("", "20250101_00", "New", ["20250101_00"]),
        ("", "20250101_00", "Do", []),
        ("00000000_00", "", "New", [TODAY]),  # no date at all: like none
        ("", "00000000_00", "Do", []),
    ],
)
def test_a_version_that_is_said_counts(
    catalog: Path, text: str, option: str, name: str, expected: list[str]
) -> None:
    """--version, then the definition's own version, then the day's; what has not changed gets none
    of them.
    """
    new = added(catalog, definition(name=name, version=text), version=option)
    assert [*new.files] == [f"toolkits/a/A_DO/{version}.yaml" for version in expected]


def test_a_change_keeps_what_the_catalog_says_of_its_deprecation(catalog: Path) -> None:
    """Where the source says nothing of it, or only that it is so, reason and replacement are
    carried over; else the source counts.
    """
    with (catalog / FIRST).open("a") as file:
        file.write("deprecation: {reason: Old., replaced_by: A_NEW}\n")
    changed = f"toolkits/a/A_DO/{TODAY}.yaml"
    sayings: tuple[dict[str, Any], ...] = ({}, {"is_deprecated": True})
    for saying in sayings:
        value = yaml.safe_load(added(catalog, definition(name="New", **saying)).files[changed])
        assert value["deprecation"] == {"reason": "Old.", "replaced_by": "A_NEW"}
        assert [*value] == ["name", "description", "tags", "deprecation", "input_parameters"]
    assert counts(added(catalog, definition(is_deprecated=True))) == (0, 0, 1)


def test_what_the_toolkit_says_of_authentication_counts(catalog: Path) -> None:
    """A tool that says what its toolkit says anyway has not changed."""
    assert counts(added(catalog, definition(no_auth=False))) == (0, 0, 1)
    with (catalog / "toolkits/a/toolkit.yaml").open("a") as file:
        file.write("no_auth: true\n")
    assert counts(added(catalog, definition(no_auth=False))) == (0, 1, 0)
    assert counts(added(catalog, definition(no_auth=True))) == (0, 0, 1)


def test_a_file_that_cannot_be_read_is_left_and_followed(catalog: Path) -> None:
    """A newest version that is no YAML stays as it is; the next import puts a sound one after
    it.
    """
    (catalog / FIRST).write_text("name: [")
    assert [*added(catalog, definition()).files] == [f"toolkits/a/A_DO/{TODAY}.yaml"]


def test_files_that_are_no_versions_do_not_count(catalog: Path) -> None:
    """What else lies among the versions of a tool is the affair of `check`."""
    (catalog / FIRST).with_name("zz.txt").write_text("a note")
    (catalog / "toolkits/a/A_EMPTY").mkdir()
    (catalog / "toolkits/a/A_EMPTY/old.yaml").write_text("name: Old\n")
    assert counts(added(catalog, definition())) == (0, 0, 1)
    new = added(catalog, definition(name="New"))
    assert ([*new.files], new.missing) == ([f"toolkits/a/A_DO/{TODAY}.yaml"], ("A_EMPTY",))


def test_what_is_gone_is_listed(catalog: Path) -> None:
    """Tools of the toolkits that a source shows, which it does not show, are named; deprecated ones
    and other toolkits' are not.
    """
    write(
        catalog,
        added(
            catalog,
            definition("A_GONE"),
            definition("A_OLD", is_deprecated=True),
            definition("B_OTHER"),
        ),
    )
    assert added(catalog, definition()).missing == ("A_GONE",)
    assert added(catalog, definition("C_NEW")).missing == ()


def test_two_unlike_definitions_of_one_tool_are_refused(catalog: Path) -> None:
    """One of them may be in the catalog already: that does not make the other a change."""
    with pytest.raises(
        UsageError, match="A_DO occurs twice in version 00000000_00, with different"
    ):
        added(catalog, definition(), definition(name="New"))


def test_the_command_writes_what_has_changed_and_says_so(tmp_path: Path) -> None:
    """The whole way: three tools, then one the same, one changed, one gone and one new."""
    page = tmp_path / "page.json"

    def run(*definitions: Any, options: tuple[str, ...] = ()) -> str:
        page.write_text(json.dumps([*definitions]))
        done = run_toolcatalog("import", "wire", page, "--catalog", tmp_path / "catalog", *options)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return done.stderr

    def paths() -> dict[str, bytes]:
        root = tmp_path / "catalog"
        return {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.yaml")
        }

    text = run(definition("A_SAME"), definition("A_CHANGED"), definition("A_GONE"))
    assert "3 new, 0 in a new version, 0 unchanged." in text
    assert "New tools were added" not in text
    previous = paths()
    text = run(definition("A_SAME"), definition("A_CHANGED", name="New"), definition("A_NEW"))
    assert "Imported 3 tools into" in text
    assert "1 new, 1 in a new version, 1 unchanged." in text
    assert "New tools were added to toolkits of the catalog: a." in text
    assert "In the catalog and not in this source, 1: A_GONE." in text
    assert "toolcatalog deprecate SLUG" in text
    current = paths()
    assert {path: current[path] for path in previous} == previous
    assert all(
        re.fullmatch(r"toolkits/a/A_(CHANGED|NEW)/20[0-9]{6}_00\.yaml", path)
        for path in current.keys() - previous.keys()
    )
    assert len(current) == len(previous) + 2


def test_a_changed_definition_under_a_version_that_is_there_is_refused(tmp_path: Path) -> None:
    """A source that says the version itself and changes what it stands for stops the import:
    nothing is overwritten.
    """
    page = tmp_path / "page.json"
    for name, code in (("Do", 0), ("New", 2)):
        page.write_text(
            json.dumps(
                [definition("A_FIRST", name=name), definition(name=name, version="20250101_00")]
            )
        )
        done = run_toolcatalog("import", "wire", page, "--catalog", tmp_path / "catalog")
        assert done.returncode == code
    there = tmp_path / "catalog/toolkits/a/A_DO/20250101_00.yaml"
    assert f"{there} is there and differs: a published version does not change" in done.stderr
    assert yaml.safe_load(there.read_text())["name"] == "Do"
    assert len([*(tmp_path / "catalog/toolkits/a/A_FIRST").iterdir()]) == 1
