"""Sides of a comparison from two builds.

Builds are compared as they are served. A toolkit whose `no_auth` changes is therefore one change of
its file and one more for each tool that inherits it. A session is reported if the API's response
for it changes.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog.diff import comparison
from toolcatalog.diff.comparison import FileFields, Side, ToolVersionKey
from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import verify
from toolcatalog.snapshot.format import Tool
from toolcatalog.store.open import open_snapshot
from toolcatalog.store.store import Store
from toolcatalog.system import files


class _OpenBuild(NamedTuple):
    """An opened snapshot, and the SHA-256 of each file in its folders."""

    folder: Path
    store: Store
    about: Mapping[str, str]
    listing: Mapping[str, str]


class _ToolkitIndexes(NamedTuple):
    """Index entries of some toolkits: a row for each tool version, and fields for each toolkit."""

    rows: dict[ToolVersionKey, Mapping[str, Any]]
    toolkits: dict[str, FileFields]


def load_sides(old_folder: Path, new_folder: Path) -> tuple[Side, Side]:
    """Return the sides for two snapshot folders.

    Raises SnapshotError if one of them cannot be used.
    """
    old_build, new_build = _open_build(old_folder), _open_build(new_folder)
    changed_paths = {
        path
        for path in old_build.listing.keys() | new_build.listing.keys()
        if old_build.listing.get(path) != new_build.listing.get(path)
    }
    toolkits = {path.split("/")[1] for path in changed_paths if path.startswith("toolkits/")}
    old_indexes, new_indexes = (
        _read_indexes(old_build, toolkits),
        _read_indexes(new_build, toolkits),
    )
    keys = {
        key
        for key in old_indexes.rows.keys() | new_indexes.rows.keys()
        if _is_different(old_indexes.rows.get(key), new_indexes.rows.get(key))
    }
    old_versions, new_versions = (
        _list_versions(old_indexes, keys),
        _list_versions(new_indexes, keys),
    )
    references = {*comparison.predecessors(old_versions, new_versions).values()}
    other_paths = {path for path in changed_paths if not path.startswith("toolkits/")}
    return (
        _make_side(
            old_build,
            old_indexes,
            old_versions,
            keys | (references - new_indexes.rows.keys()),
            other_paths,
        ),
        _make_side(new_build, new_indexes, new_versions, keys | references, other_paths),
    )


def _open_build(folder: Path) -> _OpenBuild:
    store = open_snapshot(folder)
    manifest = verify.read_manifest(folder)
    files = verify.list_files(folder, manifest)
    listing = {path: file.sha256 for path, file in files.items() if "/" in path}
    return _OpenBuild(folder, store, manifest.about, listing)


def _read_verified(folder: Path, path: str, digest: str) -> bytes:
    """Return the bytes of a file after verifying its digest."""
    try:
        data = files.read_plain_file(folder / path)
    except OSError as error:
        raise SnapshotError(
            f"The build in {folder} is damaged ({path}: {error.strerror}): {REBUILD_HINT}"
        ) from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise SnapshotError(
            f"The build in {folder} is damaged ({path} has other bytes than were written):"
            f" {REBUILD_HINT}"
        )
    return data


def _read_indexes(build: _OpenBuild, toolkits: Collection[str]) -> _ToolkitIndexes:
    indexes = _ToolkitIndexes({}, {})
    for path in sorted(
        path
        for path in build.listing
        if path.startswith("toolkits/") and path.split("/")[1] in toolkits
    ):
        document = orjson.loads(_read_verified(build.folder, path, build.listing[path]))
        toolkit = document["toolkit"]["slug"]
        indexes.toolkits[toolkit] = {
            name: value
            for name, value in document["toolkit"].items()
            if name not in ("slug", "versions")
        }
        indexes.rows.update(
            {ToolVersionKey(toolkit, row["slug"], row["version"]): row for row in document["tools"]}
        )
    return indexes


def _is_different(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    return (
        old is None
        or new is None
        or (old["digest"], old["deprecation"]) != (new["digest"], new["deprecation"])
    )


def _list_versions(
    indexes: _ToolkitIndexes, keys: Iterable[ToolVersionKey]
) -> dict[tuple[str, str], list[str]]:
    tools = {key[:2] for key in keys}
    tool_versions: dict[tuple[str, str], list[str]] = {}
    for key in sorted(key for key in indexes.rows if key[:2] in tools):
        tool_versions.setdefault(key[:2], []).append(key.version)
    return tool_versions


def _make_side(
    build: _OpenBuild,
    indexes: _ToolkitIndexes,
    versions: comparison.Versions,
    keys: Collection[ToolVersionKey],
    other_paths: Collection[str],
) -> Side:
    tools = {
        key: _load_tool(build.store, key, indexes.rows[key]) for key in keys if key in indexes.rows
    }
    files: dict[str, FileFields] = {
        f"toolkits/{slug}/toolkit.yaml": facts for slug, facts in indexes.toolkits.items()
    }
    files |= {
        path.removesuffix(".json"): {"answer": build.listing[path]}
        for path in other_paths
        if path in build.listing
    }
    return Side(versions, tools, {**files, "catalog.yaml": build.about})


def _load_tool(store: Store, key: ToolVersionKey, row: Mapping[str, Any]) -> Tool:
    entry = store.get_tool(key.slug)
    assert entry is not None
    return snapshot_format.tool_from_document(
        orjson.loads(store.read_document(entry.tool_id(key.version))[0]),
        row["deprecation"],
        row.get("source"),
    )
