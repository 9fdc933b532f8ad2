"""Real git repositories with a catalog in them."""

import os
import subprocess
from pathlib import Path

from support.catalogs import add_tool, add_toolkit

TOOL = "name: Do it\ndescription: Does it.\n"
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@b.example"))
}
CLEAN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def run_git(folder: Path, *arguments: str, stdin: str | None = None) -> str:
    """Run git; what it says, without the last line end."""
    environment = {**os.environ, **IDENTITY, **CLEAN}
    result = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def commit(folder: Path, message: str = "a change") -> str:
    """Commit all that is in the working tree: the commit."""
    run_git(folder, "add", "--all", ".")
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return run_git(folder, "rev-parse", "HEAD")


def create_repository(folder: Path, catalog_name: str = "catalog") -> Path:
    """A new repository, with a committed catalog of one toolkit with two tools in it: the folder of
    the catalog.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main", ".")
    catalog = folder / catalog_name
    (catalog / "toolkits").mkdir(parents=True)
    (catalog / "catalog.yaml").write_text("title: Small\n")
    add_toolkit(catalog, "a")
    for number, slug in enumerate(("A_DO", "A_SEE")):
        add_tool(catalog, "a", slug, number)
    commit(folder, "the first")
    return catalog


def write_tool(
    catalog: Path,
    slug: str,
    version: str = "20250101_00",
    text: str | None = None,
    toolkit: str = "a",
) -> Path:
    """Write a file of a tool version, with this text or a default."""
    file = catalog / "toolkits" / toolkit / slug / f"{version}.yaml"
    if text is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return file
