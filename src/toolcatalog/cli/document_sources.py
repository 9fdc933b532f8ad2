"""Document sources: functions that return a tool's document from a build, a catalog or a server.

All three return the same document. That of a server is in `cli.http_client`.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from toolcatalog import encoding
from toolcatalog.catalog import folder, model, published_files, resolve
from toolcatalog.errors import UsageError
from toolcatalog.lockfile import Document, DocumentSource, MissingReason
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store
from toolcatalog.validation import checker


def open_build_source(build: Path) -> DocumentSource:
    """Return the source of the documents of a build."""
    return make_store_source(open_build(build))


def make_store_source(store: Store) -> DocumentSource:
    """Return the source of the documents of an open build."""

    def get_document(slug: str, version: str) -> Document | MissingReason:
        entry = store.get_tool(slug)
        if entry is None or version not in entry.versions:
            return MissingReason.VERSION if entry else MissingReason.TOOL
        document: dict[str, Any] = orjson.loads(store.read_document(entry.tool_id(version))[0])
        return document

    return get_document


def open_catalog_source(catalog: Path) -> DocumentSource:
    """Return the source of the documents of a catalog. It reads only the files of requested tools.

    Raises UsageError if there is no catalog, and the source does so if a file has problems.
    """
    toolkits_by_slug = _list_tool_versions(catalog)

    def get_document(slug: str, version: str) -> Document | MissingReason:
        toolkits = toolkits_by_slug.get(slug, {})
        if version not in toolkits:
            return MissingReason.VERSION if toolkits else MissingReason.TOOL
        folder_of_toolkit = f"toolkits/{toolkits[version]}"
        tool: model.ToolVersion = _load_record(
            catalog, f"{folder_of_toolkit}/{slug}/{version}.yaml"
        )
        toolkit = _load_toolkit(catalog, folder_of_toolkit)
        resolved = resolve.resolve_tool(tool, toolkit, tuple(sorted(toolkits)))
        document: dict[str, Any] = orjson.loads(
            encoding.dump_json(
                snapshot_format.tool_to_document(resolved, toolkit.name, toolkit.logo)
            )
        )
        return document

    return get_document


def _list_tool_versions(catalog: Path) -> Mapping[str, Mapping[str, str]]:
    """Return for each tool slug its versions, each with the slug of the toolkit."""
    tool_versions: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in folder.list_paths(catalog)[0]:
        parts = path.removesuffix(".yaml").split("/")
        if parts[0] == "toolkits" and len(parts) == 4:
            _, toolkit, slug, version = parts
            tool_versions[slug][version] = toolkit
    return tool_versions


def _load_toolkit(catalog: Path, folder_of_toolkit: str) -> model.Toolkit:
    """Return a toolkit with the logo that the API returns."""
    toolkit = _load_record(catalog, f"{folder_of_toolkit}/toolkit.yaml")
    paths = [f"{folder_of_toolkit}/{name}" for name in published_files.LOGO_NAMES]
    logos = [_load_record(catalog, path) for path in paths if (catalog / path).exists()]
    home = _load_record(catalog, "catalog.yaml").home if logos else ""
    logo_files = checker.find_logo_files(logos)
    return resolve.with_public_logo(checker.with_logo_file(toolkit, logo_files), home)


def _load_record(catalog: Path, path: str) -> Any:
    result = checker.check_file(catalog, path)
    if result.problems or result.record is None:
        raise UsageError(
            f"{catalog / path} has problems: `toolcatalog check` shows them, and then it can be "
            "verified."
        )
    return result.record
