"""Repeated imports: changed tools get a new version, and nothing is overwritten."""

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
    write(tmp_path, import_definitions(tmp_path, definition()))
    return tmp_path


def import_definitions(
    root: Path, *definitions: Any, today: str = TODAY, version: str = ""
) -> writer.ImportResult:
    """Return what an import into the catalog would write on a day."""

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


def test_unchanged_definitions_write_nothing(catalog: Path) -> None:
    repeated = import_definitions(catalog, definition(), definition())
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
def test_only_content_counts_as_change(catalog: Path, text: str) -> None:
    """Not comments, layout, defaults, or a deprecation written by hand."""
    (catalog / FIRST).write_text(text)
    assert counts(import_definitions(catalog, definition())) == (0, 0, 1)


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
def test_changed_tool_gets_a_version_of_today(catalog: Path, extra: dict[str, Any]) -> None:
    """The old one stays."""
    repeated = import_definitions(catalog, definition(**extra))
    assert ([*repeated.files], counts(repeated)) == ([f"toolkits/a/A_DO/{TODAY}.yaml"], (0, 1, 0))
    write(catalog, repeated)
    assert counts(import_definitions(catalog, definition(**extra))) == (0, 0, 1)


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
def test_new_version_follows_all_others(catalog: Path, newest: str, version: str) -> None:
    """A second change on a day, or after a future version, gets the next free one."""
    (catalog / FIRST).with_name(f"{newest}.yaml").write_bytes((catalog / FIRST).read_bytes())
    assert [*import_definitions(catalog, definition(name="New")).files] == [
        f"toolkits/a/A_DO/{version}.yaml"
    ]


def test_tool_without_a_free_version_is_reported(catalog: Path) -> None:
    (catalog / FIRST).with_name("99999999_99.yaml").write_bytes((catalog / FIRST).read_bytes())
    with pytest.raises(
        UsageError, match="A_DO has version 99999999_99 already, and there is none after it"
    ):
        import_definitions(catalog, definition(name="New"))


def test_new_tool_of_an_existing_toolkit_has_todays_version(catalog: Path) -> None:
    """A new toolkit starts with the undated version."""
    repeated = import_definitions(catalog, definition("A_NEW"), definition("B_NEW"))
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
def test_explicit_version_has_priority(
    catalog: Path, text: str, option: str, name: str, expected: list[str]
) -> None:
    """--version, then the definition, then today; unchanged tools keep theirs."""
    new = import_definitions(catalog, definition(name=name, version=text), version=option)
    assert [*new.files] == [f"toolkits/a/A_DO/{version}.yaml" for version in expected]


def test_changed_tool_keeps_its_deprecation(catalog: Path) -> None:
    """Reason and replacement are copied, unless the source has its own."""
    with (catalog / FIRST).open("a") as file:
        file.write("deprecation: {reason: Old., replaced_by: A_NEW}\n")
    changed = f"toolkits/a/A_DO/{TODAY}.yaml"
    sayings: tuple[dict[str, Any], ...] = ({}, {"is_deprecated": True})
    for saying in sayings:
        value = yaml.safe_load(
            import_definitions(catalog, definition(name="New", **saying)).files[changed]
        )
        assert value["deprecation"] == {"reason": "Old.", "replaced_by": "A_NEW"}
        assert [*value] == ["name", "description", "tags", "deprecation", "input_parameters"]
    assert counts(import_definitions(catalog, definition(is_deprecated=True))) == (0, 0, 1)


def test_no_auth_of_the_toolkit_counts(catalog: Path) -> None:
    """A tool that repeats it has not changed."""
    assert counts(import_definitions(catalog, definition(no_auth=False))) == (0, 0, 1)
    with (catalog / "toolkits/a/toolkit.yaml").open("a") as file:
        file.write("no_auth: true\n")
    assert counts(import_definitions(catalog, definition(no_auth=False))) == (0, 1, 0)
    assert counts(import_definitions(catalog, definition(no_auth=True))) == (0, 0, 1)


def test_unreadable_version_is_kept(catalog: Path) -> None:
    """The next import writes a valid one after it."""
    (catalog / FIRST).write_text("name: [")
    assert [*import_definitions(catalog, definition()).files] == [f"toolkits/a/A_DO/{TODAY}.yaml"]


def test_other_files_are_ignored(catalog: Path) -> None:
    """`check` reports them."""
    (catalog / FIRST).with_name("zz.txt").write_text("a note")
    (catalog / "toolkits/a/A_EMPTY").mkdir()
    (catalog / "toolkits/a/A_EMPTY/old.yaml").write_text("name: Old\n")
    assert counts(import_definitions(catalog, definition())) == (0, 0, 1)
    new = import_definitions(catalog, definition(name="New"))
    assert ([*new.files], new.missing) == ([f"toolkits/a/A_DO/{TODAY}.yaml"], ("A_EMPTY",))


def test_removed_tools_are_listed(catalog: Path) -> None:
    """Of the toolkits in the source; not deprecated tools or other toolkits."""
    write(
        catalog,
        import_definitions(
            catalog,
            definition("A_GONE"),
            definition("A_OLD", is_deprecated=True),
            definition("B_OTHER"),
        ),
    )
    assert import_definitions(catalog, definition()).missing == ("A_GONE",)
    assert import_definitions(catalog, definition("C_NEW")).missing == ()


def test_conflicting_definitions_are_refused(catalog: Path) -> None:
    """Even if the catalog has one of them."""
    with pytest.raises(
        UsageError, match="A_DO occurs twice in version 00000000_00, with different"
    ):
        import_definitions(catalog, definition(), definition(name="New"))


def test_import_command_reports_changes(tmp_path: Path) -> None:
    """One tool unchanged, one changed, one removed and one new."""
    page = tmp_path / "page.json"

    def run(*definitions: Any, options: tuple[str, ...] = ()) -> str:
        page.write_text(json.dumps([*definitions]))
        result = run_toolcatalog(
            "import", "wire", page, "--catalog", tmp_path / "catalog", *options
        )
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
        return result.stderr

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


def test_changed_definition_of_a_given_version_is_refused(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    page = tmp_path / "page.json"
    for name, code in (("Do", 0), ("New", 2)):
        page.write_text(
            json.dumps(
                [definition("A_FIRST", name=name), definition(name=name, version="20250101_00")]
            )
        )
        result = run_toolcatalog("import", "wire", page, "--catalog", tmp_path / "catalog")
        assert result.returncode == code
    there = tmp_path / "catalog/toolkits/a/A_DO/20250101_00.yaml"
    assert f"{there} is there and differs: a published version does not change" in result.stderr
    assert yaml.safe_load(there.read_text())["name"] == "Do"
    assert len([*(tmp_path / "catalog/toolkits/a/A_FIRST").iterdir()]) == 1
