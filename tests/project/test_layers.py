"""Imports: the contracts of layers, documented modules, and lazy imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

MODULES = sorted((ROOT / "src" / "toolcatalog").rglob("*.py"))
PYTHON = sorted(
    file
    for folder in ("src", "tests", "benchmarks")
    for file in (ROOT / folder).rglob("*.py")
    if "node_modules" not in file.parts
)


def test_import_contracts_hold() -> None:
    """As in pyproject.toml."""
    lint_imports = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 kept, 0 broken" in result.stdout


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_has_a_docstring(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text()))


def test_every_module_is_documented() -> None:
    """In docs/explanation/design.md."""
    design = (ROOT / "docs" / "explanation" / "design.md").read_text()
    package = ROOT / "src" / "toolcatalog"
    rooms = {path.stem for path in package.glob("[a-z]*.py")} | {
        f"{path.parent.name}/" for path in package.glob("*/__init__.py")
    }
    assert {room for room in rooms if f"`{room}`" not in design} == set()


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        ("yaml", {"comments", "yaml_reader", "yaml_writer"}),
        ("jinja2", {"pages"}),
        ("jsonschema", {"schema_validator", "schema_errors"}),
    ],
)
def test_library_is_imported_in_one_package_only(library: str, rooms: set[str]) -> None:
    result = {
        path.stem
        for path in MODULES
        for name in imported(path)
        if name.partition(".")[0] == library
    }
    assert result == rooms


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("--help", {"jinja2", "jsonschema", "jsonschema_rs", "orjson", "rich", "yaml"}),
        ("check", {"jinja2", "jsonschema", "rich"}),
        ("build --no-site --out {folder}", {"jinja2", "jsonschema", "rich"}),
    ],
)
def test_heavy_libraries_are_imported_lazily(
    command: str, without: set[str], tmp_path: Path
) -> None:
    """Help imports no library of a command; a check without problems imports none for reports."""
    arguments = command.format(folder=tmp_path / "build").split()
    script = (
        "import sys\nfrom toolcatalog.cli.main import main\nassert main(sys.argv[1:]) =="
        " 0\nprint('', *sys.modules, sep='\\n')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert without & {*result.stdout.splitlines()} == set()


def test_server_imports_no_build_libraries() -> None:
    """A process that opened a store and created the application."""
    script = (
        "import sys, toolcatalog.store.store, toolcatalog.server.app, toolcatalog.keys.api_keys;"
        " print(*sys.modules, sep='\\n')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {*result.stdout.splitlines()}
    assert {"toolcatalog.store.store", "numpy", "starlette"} <= loaded
    assert loaded & {"yaml", "jsonschema", "jsonschema_rs", "jinja2", "rich", "click"} == set()
    builders = ("catalog", "validation", "lint", "importers", "build")
    assert {
        name
        for name in loaded
        if name.startswith("toolcatalog.") and name.split(".")[1] in builders
    } == set()


def test_unchanged_build_imports_no_pipeline(tmp_path: Path) -> None:
    """No checker, compiler, index writer or renderer."""
    arguments = ["build", "--out", str(tmp_path / "build"), "--site", str(tmp_path / "site")]
    script = (
        "import sys\nfrom toolcatalog.cli.main import main\nassert main(sys.argv[1:]) =="
        " 0\nprint('', *sys.modules, sep='\\n')"
    )
    for without in (
        set(),
        {
            "numpy",
            "jinja2",
            "jsonschema",
            "jsonschema_rs",
            "rich",
            "toolcatalog.build.rebuild",
            "toolcatalog.validation.checker",
        },
    ):
        result = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert without & {*result.stdout.splitlines()} == set()


def imported(path: Path) -> list[str]:
    """The modules that a file imports."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [
        node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
