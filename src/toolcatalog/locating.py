"""Where the tools of a catalog lie, by the names of its folders: what a command needs that changes
one tool. No file is read.
"""

import heapq
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from toolcatalog import names, tree, versions
from toolcatalog.errors import UsageError

META = "meta_tools"
_NEAR = 200  # slugs that are compared letter by letter


class Home(NamedTuple):
    """The folder of a tool, relative to the catalog, and its versions, oldest first."""

    folder: str
    versions: list[str]

    def path(self, version: str) -> str:
        """The file of a version."""
        return f"{self.folder}/{version}.yaml"

    @property
    def is_meta(self) -> bool:
        """Whether it is a meta tool."""
        return self.folder.startswith(f"{META}/")


def toolkits(root: Path) -> list[str]:
    """The slugs of the toolkits that are described, sorted."""
    return sorted(
        folder.name for folder in _folders(root / "toolkits") if (folder / "toolkit.yaml").is_file()
    )


def home(root: Path, slug: str) -> Home | None:
    """Where a tool lies; None where there is none of this slug, or no version of it."""
    if not names.fits(names.TOOL_SLUG, slug):
        return None
    for folder in [*(folder / slug for folder in _folders(root / "toolkits")), root / META / slug]:
        if folder.is_dir() and not folder.is_symlink():
            found = sorted(
                file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem)
            )
            if found:
                return Home(folder.relative_to(root).as_posix(), found)
    return None


def the_home(root: Path, slug: str) -> Home:
    """The same. Raises UsageError, with the nearest slug, where there is no such tool."""
    found = home(root, slug)
    if found:
        return found
    near = nearest(slug, [path.rpartition("/")[2] for path in tools(root)])
    help = (
        f"did you mean {near}?"
        if near
        else "see its slug in the catalog, or add it with `toolcatalog new tool`."
    )
    raise UsageError(f"There is no tool {slug} in {root}: {help}")


def tools(root: Path) -> list[str]:
    """The folders of all tools, meta tools too. Raises UsageError where there is no catalog."""
    paths, folders, _ = tree.outline(root)
    metas = {
        path.rpartition("/")[0]
        for path in paths
        if path.startswith(f"{META}/") and path.count("/") > 1
    }
    return [*folders, *sorted(metas)]


def nearest(slug: str, known: Iterable[str]) -> str:
    """The slug that was probably meant; empty where none is near. Only what shares the most words
    is compared closely.
    """
    words = {*slug.casefold().replace("-", "_").split("_")}
    some = heapq.nlargest(
        _NEAR,
        known,
        key=lambda one: len(words.intersection(one.casefold().replace("-", "_").split("_"))),
    )
    return next(iter(names.nearest(slug, some)), "")


def toolkit_of(slug: str, known: Iterable[str]) -> str:
    """The toolkit whose slug a tool's begins with, the longest there is; empty where there is none."""
    lower = slug.lower().replace("-", "_")
    return max(
        (one for one in known if lower.startswith(f"{one.replace('-', '_')}_")), key=len, default=""
    )


def _folders(folder: Path) -> list[Path]:
    return (
        sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        if folder.is_dir()
        else []
    )
