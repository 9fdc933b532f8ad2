"""Where a command finds the document of a tool version: a build, a catalog, a server. All three
give the same one.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from toolcatalog.errors import UsageError
from toolcatalog.locking import Document, Gone

if TYPE_CHECKING:
    from toolcatalog.store import Store

Look = Callable[[str, str], Document | Gone]  # the slug and the version of a tool


def of_build(build: Path) -> Look:
    """The documents of a build."""
    from toolcatalog.opening import open_build  # noqa: PLC0415 - a server is asked without what reads a build

    return of_store(open_build(build))


def of_store(store: "Store") -> Look:
    """The documents of an opened build."""

    def look(slug: str, version: str) -> Document | Gone:
        entry = store.tool(slug)
        if entry is None or version not in entry.versions:
            return Gone.VERSION if entry else Gone.TOOL
        document: dict[str, Any] = orjson.loads(store.document(entry.number(version))[0])
        return document

    return look


def of_catalog(catalog: Path) -> Look:
    """The documents that a build of this catalog would have. Only the files of the tools that are
    asked for are read.

    Raises UsageError where the catalog is none, and where one of those files has problems.
    """
    from toolcatalog import checking, model, resolve, snapshot, tree  # noqa: PLC0415 - only here is YAML read

    # the toolkit of each version of a tool, by slug
    folders: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in tree.scan(catalog)[0]:
        steps = path.removesuffix(".yaml").split("/")
        if steps[0] == "toolkits" and len(steps) == 4:
            folders[steps[2]][steps[3]] = steps[1]

    def record(path: str) -> Any:
        examined = checking.examine(catalog, path)
        if examined.problems or examined.record is None:
            raise UsageError(
                f"{catalog / path} has problems: `toolcatalog check` shows them, and then it "
                "can be verified."
            )
        return examined.record

    def look(slug: str, version: str) -> Document | Gone:
        versions = folders[slug]
        if version not in versions:
            return Gone.VERSION if versions else Gone.TOOL
        home = versions[version]
        tool: model.ToolVersion = record(f"toolkits/{home}/{slug}/{version}.yaml")
        toolkit: model.Toolkit = record(f"toolkits/{home}/toolkit.yaml")
        served = resolve.tool(tool, toolkit, tuple(sorted(versions)))
        document: dict[str, Any] = orjson.loads(
            snapshot.dump(snapshot.document(served, toolkit.name, toolkit.logo))
        )
        return document

    return look
