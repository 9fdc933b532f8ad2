"""Document sources: a tool's document from a build, a catalog or a server.

All three
give the same one.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from toolcatalog.errors import UsageError
from toolcatalog.lockfile import Document, MissingReason

if TYPE_CHECKING:
    from toolcatalog.store.store import Store

DocumentSource = Callable[
    [str, str], Document | MissingReason
]  # the slug and the version of a tool


def open_build_source(build: Path) -> DocumentSource:
    """The documents of a build."""
    from toolcatalog.store.open import open_build  # noqa: PLC0415 - a server is asked without what reads a build

    return make_store_source(open_build(build))


def make_store_source(store: "Store") -> DocumentSource:
    """The documents of an opened build."""

    def look(slug: str, version: str) -> Document | MissingReason:
        entry = store.get_tool(slug)
        if entry is None or version not in entry.versions:
            return MissingReason.VERSION if entry else MissingReason.TOOL
        document: dict[str, Any] = orjson.loads(store.read_document(entry.tool_id(version))[0])
        return document

    return look


def open_catalog_source(catalog: Path) -> DocumentSource:
    """The documents that a build of this catalog would have. Only the files of the tools that are
    asked for are read.

    Raises UsageError where the catalog is none, and where one of those files has problems.
    """
    from toolcatalog import encoding  # noqa: PLC0415
    from toolcatalog.catalog import folder, model, resolve  # noqa: PLC0415
    from toolcatalog.snapshot import format as snapshot_format  # noqa: PLC0415 - only here is YAML read
    from toolcatalog.validation import checker  # noqa: PLC0415

    # the toolkit of each version of a tool, by slug
    folders: defaultdict[str, dict[str, str]] = defaultdict(dict)
    paths = folder.list_paths(catalog)[0]
    for path in paths:
        steps = path.removesuffix(".yaml").split("/")
        if steps[0] == "toolkits" and len(steps) == 4:
            folders[steps[2]][steps[3]] = steps[1]

    def record(path: str) -> Any:
        examined = checker.check_file(catalog, path)
        if examined.problems or examined.record is None:
            raise UsageError(
                f"{catalog / path} has problems: `toolcatalog check` shows them, and then it "
                "can be verified."
            )
        return examined.record

    def toolkit(slug: str) -> model.Toolkit:
        described = record(f"toolkits/{slug}/toolkit.yaml")
        own = [path for path in paths if path.startswith(f"toolkits/{slug}/logo.")]
        logos = checker.find_logo_files(map(record, own))
        home = record("catalog.yaml").home if logos else ""
        return resolve.with_public_logo(checker.with_logo_file(described, logos), home)

    def look(slug: str, version: str) -> Document | MissingReason:
        versions = folders[slug]
        if version not in versions:
            return MissingReason.VERSION if versions else MissingReason.TOOL
        home = versions[version]
        tool: model.ToolVersion = record(f"toolkits/{home}/{slug}/{version}.yaml")
        kit = toolkit(home)
        served = resolve.resolve_tool(tool, kit, tuple(sorted(versions)))
        document: dict[str, Any] = orjson.loads(
            encoding.dump_json(snapshot_format.tool_to_document(served, kit.name, kit.logo))
        )
        return document

    return look
