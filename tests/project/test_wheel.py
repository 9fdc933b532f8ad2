"""The wheel and the source distribution: complete, and usable without the repository."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import httpx
import pytest

from support.command import run_successfully
from support.paths import ROOT
from support.server import start_server
from toolcatalog import __version__

PACKAGE = ROOT / "src" / "toolcatalog"
CACHES = ("__pycache__", ".DS_Store")


def run_backend(source: Path, into: Path, *targets: str) -> list[Path]:
    """Run the build back end of a project, and return the file that it creates."""
    options = [word for target in targets for word in ("-t", target)]
    result = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *options, "-d", into],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return sorted(into.iterdir())


def unpacked(wheel: Path, into: Path) -> Path:
    """The folder with a wheel's files."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into)  # noqa: S202 - our own
    return into


def below(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by path, without what Python leaves there."""
    files = [path for path in folder.rglob("*") if path.is_file() and not {*path.parts} & {*CACHES}]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution and the wheel."""
    result = run_backend(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")
    assert [path.name for path in result] == [
        f"toolcatalog-{__version__}-py3-none-any.whl",
        f"toolcatalog-{__version__}.tar.gz",
    ]
    return result[1], result[0]


@pytest.fixture(scope="module")
def installed(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel's files."""
    folder = tmp_path_factory.mktemp("installed")
    return unpacked(distributions[1], folder)


def test_wheel_has_exactly_the_package(installed: Path) -> None:
    """All files, and no tests."""
    assert sorted(path.name for path in installed.iterdir()) == [
        "toolcatalog",
        f"toolcatalog-{__version__}.dist-info",
    ]
    inside = below(installed / "toolcatalog")
    assert inside == below(PACKAGE)
    kinds = {(path.rpartition("/")[0], Path(path).suffix) for path in inside}
    assert {
        ("site/templates", ".html"),
        ("site/styles", ".css"),
        ("site/scripts", ".js"),
        ("validation/rulebook", ".md"),
    } <= kinds
    assert "py.typed" in inside


def test_wheel_metadata(installed: Path) -> None:
    """Command, license and extras."""
    about = installed / f"toolcatalog-{__version__}.dist-info"
    assert "toolcatalog = toolcatalog.__main__:main" in (about / "entry_points.txt").read_text()
    assert (about / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    metadata = (about / "METADATA").read_text().splitlines()
    assert {
        f"Provides-Extra: {extra}"
        for extra in ("cluster", "mcp", "redis", "s3", "semantic", "sign")
    } <= {*metadata}


def test_source_distribution_is_complete(
    distributions: tuple[Path, Path], installed: Path, tmp_path: Path
) -> None:
    """Without generated files; a wheel built from it is the same."""
    with tarfile.open(distributions[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    names = {path.name for path in source.iterdir()}
    assert {
        "src",
        "tests",
        "docs",
        "catalog",
        "benchmarks",
        "scripts",
        "requirements",
        "pyproject.toml",
        "Makefile",
        "README.md",
        "LICENSE",
    } <= names
    assert names & {"build", "site", ".venv", "dist", ".bench"} == set()
    assert not (source / "tests" / "data" / "clients" / "node_modules").exists()
    assert below(source / "catalog") == below(ROOT / "catalog")
    (again,) = run_backend(source, tmp_path / "again", "wheel")
    assert below(unpacked(again, tmp_path / "unpacked")) == below(installed)


def test_wheel_works_alone(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder: a new tool, a build with a site, a server."""
    monkeypatch.setenv("PYTHONPATH", str(installed))  # goes before what is installed
    monkeypatch.chdir(tmp_path)
    where = subprocess.run(
        [sys.executable, "-c", "import toolcatalog; print(toolcatalog.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()) == installed / "toolcatalog" / "__init__.py"
    assert run_successfully("--version") == f"toolcatalog {__version__}\n"
    run_successfully(
        "new",
        "toolkit",
        "chess",
        "--name",
        "Chess",
        "--logo",
        "https://example.com/c.svg",
        "--description",
        "Games.",
        "--no-auth",
        "--owner",
        "@a",
    )
    run_successfully(
        "new",
        "tool",
        "CHESS_MOVE",
        "--name",
        "Make a move",
        "--description",
        "Make a move in a game that is open.",
    )
    digest = run_successfully("build").strip()
    assert run_successfully("explain", "description-brief").startswith("# ")
    with (
        start_server(Path("build"), tmp_path, "--site", "site") as server,
        httpx.Client(base_url=server.url, headers={"x-api-key": server.key}) as client,
    ):
        assert client.get("/api/v3/tools/CHESS_MOVE").json()["name"] == "Make a move"
        assert client.get("/readyz").json()["snapshot"] == digest
        page = client.get("/tools/CHESS_MOVE/").text
        assert "Make a move" in page
    assert {".css", ".js", ".html", ".json"} <= {
        path.suffix for path in (tmp_path / "site").rglob("*")
    }
