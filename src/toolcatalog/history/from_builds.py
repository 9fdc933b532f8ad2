"""Compare two builds.

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


def load_sides(before: Path, after: Path) -> tuple[Side, Side]:
    """Return the sides for two snapshot folders.

    Raises SnapshotError if one of them cannot be used.
    """
    old, new = _open_build(before), _open_build(after)
    differing = {
        path
        for path in old.listing.keys() | new.listing.keys()
        if old.listing.get(path) != new.listing.get(path)
    }
    toolkits = {path.split("/")[1] for path in differing if path.startswith("toolkits/")}
    old_kits, new_kits = _read_indexes(old, toolkits), _read_indexes(new, toolkits)
    keys = {
        key
        for key in old_kits.rows.keys() | new_kits.rows.keys()
        if _is_different(old_kits.rows.get(key), new_kits.rows.get(key))
    }
    old_versions, new_versions = _list_versions(old_kits, keys), _list_versions(new_kits, keys)
    references = {*comparison.predecessors(old_versions, new_versions).values()}
    others = {path for path in differing if not path.startswith("toolkits/")}
    return (
        _make_side(old, old_kits, old_versions, keys | (references - new_kits.rows.keys()), others),
        _make_side(new, new_kits, new_versions, keys | references, others),
    )


def _open_build(folder: Path) -> _OpenBuild:
    store = open_snapshot(folder)
    manifest = verify.read_manifest(folder)
    listed = verify.list_files(folder, manifest)
    listing = {path: said.sha256 for path, said in listed.items() if "/" in path}
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
            f"The build in {folder} is damaged ({path} has other bytes than were written): {REBUILD_HINT}"
        )
    return data


def _read_indexes(build: _OpenBuild, toolkits: Collection[str]) -> _ToolkitIndexes:
    found = _ToolkitIndexes({}, {})
    for path in sorted(
        path
        for path in build.listing
        if path.startswith("toolkits/") and path.split("/")[1] in toolkits
    ):
        index = orjson.loads(_read_verified(build.folder, path, build.listing[path]))
        toolkit = index["toolkit"]["slug"]
        found.toolkits[toolkit] = {
            name: value
            for name, value in index["toolkit"].items()
            if name not in ("slug", "versions")
        }
        found.rows.update(
            {ToolVersionKey(toolkit, row["slug"], row["version"]): row for row in index["tools"]}
        )
    return found


def _is_different(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    return (
        old is None
        or new is None
        or (old["digest"], old["deprecation"]) != (new["digest"], new["deprecation"])
    )


def _list_versions(
    kits: _ToolkitIndexes, keys: Iterable[ToolVersionKey]
) -> dict[tuple[str, str], list[str]]:
    tools = {key[:2] for key in keys}
    found: dict[tuple[str, str], list[str]] = {}
    for key in sorted(key for key in kits.rows if key[:2] in tools):
        found.setdefault(key[:2], []).append(key.version)
    return found


def _make_side(
    build: _OpenBuild,
    indexes: _ToolkitIndexes,
    versions: comparison.Versions,
    keys: Collection[ToolVersionKey],
    others: Collection[str],
) -> Side:
    tools = {
        key: _load_tool(build.store, key, indexes.rows[key]) for key in keys if key in indexes.rows
    }
    files: dict[str, FileFields] = {
        f"toolkits/{slug}/toolkit.yaml": facts for slug, facts in indexes.toolkits.items()
    }
    files |= {
        path.removesuffix(".json"): {"answer": build.listing[path]}
        for path in others
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
