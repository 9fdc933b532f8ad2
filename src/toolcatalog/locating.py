"""Where the tools of a catalog lie, by the names of its folders: what a command needs that changes
one tool. No file is read.
"""

import heapq
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from toolcatalog import names, tree, versions
from toolcatalog.errors import UsageError

META_TOOLS = "meta_tools"
_MAX_COMPARED = 200  # slugs that are compared letter by letter


class ToolFolder(NamedTuple):
    """The folder of a tool, relative to the catalog, and its versions, oldest first."""

    folder: str
    versions: list[str]

    def version_path(self, version: str) -> str:
        """The file of a version."""
        return f"{self.folder}/{version}.yaml"

    @property
    def is_meta_tool(self) -> bool:
        """Whether it is a meta tool."""
        return self.folder.startswith(f"{META_TOOLS}/")


def list_toolkits(root: Path) -> list[str]:
    """The slugs of the toolkits that are described, sorted."""
    return sorted(
        folder.name
        for folder in _subfolders(root / "toolkits")
        if (folder / "toolkit.yaml").is_file()
    )


def find_tool(root: Path, slug: str) -> ToolFolder | None:
    """Where a tool lies; None where there is none of this slug, or no version of it."""
    if not names.is_valid(names.TOOL_SLUG, slug):
        return None
    for folder in [
        *(folder / slug for folder in _subfolders(root / "toolkits")),
        root / META_TOOLS / slug,
    ]:
        if folder.is_dir() and not folder.is_symlink():
            found = sorted(
                file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem)
            )
            if found:
                return ToolFolder(folder.relative_to(root).as_posix(), found)
    return None


def get_tool(root: Path, slug: str) -> ToolFolder:
    """The same. Raises UsageError, with the nearest slug, where there is no such tool."""
    found = find_tool(root, slug)
    if found:
        return found
    near = nearest_slug(slug, [path.rpartition("/")[2] for path in list_tools(root)])
    help = (
        f"did you mean {near}?"
        if near
        else "see its slug in the catalog, or add it with `toolcatalog new tool`."
    )
    raise UsageError(f"There is no tool {slug} in {root}: {help}")


def list_tools(root: Path) -> list[str]:
    """The folders of all tools, meta tools too. Raises UsageError where there is no catalog."""
    paths, folders, _ = tree.list_layout(root)
    metas = {
        path.rpartition("/")[0]
        for path in paths
        if path.startswith(f"{META_TOOLS}/") and path.count("/") > 1
    }
    return [*folders, *sorted(metas)]


def nearest_slug(slug: str, candidates: Iterable[str]) -> str:
    """The slug that was probably meant; empty where none is near. Only what shares the most words
    is compared closely.
    """
    words = {*slug.casefold().replace("-", "_").split("_")}
    some = heapq.nlargest(
        _MAX_COMPARED,
        candidates,
        key=lambda one: len(words.intersection(one.casefold().replace("-", "_").split("_"))),
    )
    return next(iter(names.find_nearest(slug, some)), "")


def guess_toolkit(slug: str, toolkits: Iterable[str]) -> str:
    """The toolkit whose slug a tool's begins with, the longest there is; empty where there is none."""
    lower = slug.lower().replace("-", "_")
    return max(
        (one for one in toolkits if lower.startswith(f"{one.replace('-', '_')}_")),
        key=len,
        default="",
    )


def _subfolders(folder: Path) -> list[Path]:
    return (
        sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        if folder.is_dir()
        else []
    )
