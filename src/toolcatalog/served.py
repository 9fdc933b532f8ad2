"""Two builds to the two sides of a comparison, as they are served: only the toolkits that differ
are looked into.

So a toolkit whose `no_auth` changes is one change of its file, and here one more of each tool that
goes by it; a session is told of where what the API answers for it is another.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog import comparing, snapshot, verifying
from toolcatalog.comparing import Facts, Key, Side
from toolcatalog.errors import MEND, SnapshotError
from toolcatalog.opening import open_snapshot
from toolcatalog.snapshot import Tool
from toolcatalog.store import Store


class _Built(NamedTuple):
    """An opened snapshot, and the SHA-256 of each file in its folders."""

    folder: Path
    store: Store
    about: Mapping[str, str]
    listing: Mapping[str, str]


class _Kits(NamedTuple):
    """What the indexes of some toolkits say: of each tool version, and of each toolkit."""

    rows: dict[Key, Mapping[str, Any]]
    toolkits: dict[str, Facts]


def sides(before: Path, after: Path) -> tuple[Side, Side]:
    """The sides of two snapshots, by their folders. Raises SnapshotError where one cannot be used."""
    old, new = _built(before), _built(after)
    differing = {
        path
        for path in old.listing.keys() | new.listing.keys()
        if old.listing.get(path) != new.listing.get(path)
    }
    toolkits = {path.split("/")[1] for path in differing if path.startswith("toolkits/")}
    old_kits, new_kits = _kits(old, toolkits), _kits(new, toolkits)
    keys = {
        key
        for key in old_kits.rows.keys() | new_kits.rows.keys()
        if _differ(old_kits.rows.get(key), new_kits.rows.get(key))
    }
    old_versions, new_versions = _versions_of(old_kits, keys), _versions_of(new_kits, keys)
    references = {*comparing.predecessors(old_versions, new_versions).values()}
    others = {path for path in differing if not path.startswith("toolkits/")}
    return (
        _served(old, old_kits, old_versions, keys | (references - new_kits.rows.keys()), others),
        _served(new, new_kits, new_versions, keys | references, others),
    )


def _built(folder: Path) -> _Built:
    store = open_snapshot(folder)
    manifest = verifying.read(folder)
    listed = verifying.contents(folder, manifest)
    listing = {path: said.sha256 for path, said in listed.items() if "/" in path}
    return _Built(folder, store, manifest.about, listing)


def _sound(folder: Path, path: str, digest: str) -> bytes:
    """The bytes of a file that are the ones that were written."""
    try:
        data = (folder / path).read_bytes()
    except OSError as error:
        raise SnapshotError(
            f"The build in {folder} is damaged ({path}: {error.strerror}): {MEND}"
        ) from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise SnapshotError(
            f"The build in {folder} is damaged ({path} has other bytes than were written): {MEND}"
        )
    return data


def _kits(built: _Built, toolkits: Collection[str]) -> _Kits:
    found = _Kits({}, {})
    for path in sorted(
        path
        for path in built.listing
        if path.startswith("toolkits/") and path.split("/")[1] in toolkits
    ):
        index = orjson.loads(_sound(built.folder, path, built.listing[path]))
        toolkit = index["toolkit"]["slug"]
        found.toolkits[toolkit] = {
            name: value
            for name, value in index["toolkit"].items()
            if name not in ("slug", "versions")
        }
        found.rows.update(
            {Key(toolkit, row["slug"], row["version"]): row for row in index["tools"]}
        )
    return found


def _differ(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    return (
        old is None
        or new is None
        or (old["digest"], old["deprecation"]) != (new["digest"], new["deprecation"])
    )


def _versions_of(kits: _Kits, keys: Iterable[Key]) -> dict[tuple[str, str], list[str]]:
    tools = {key[:2] for key in keys}
    found: dict[tuple[str, str], list[str]] = {}
    for key in sorted(key for key in kits.rows if key[:2] in tools):
        found.setdefault(key[:2], []).append(key.version)
    return found


def _served(
    built: _Built,
    kits: _Kits,
    versions: comparing.Versions,
    keys: Collection[Key],
    others: Collection[str],
) -> Side:
    tools = {
        key: _document(built.store, key, kits.rows[key]["deprecation"])
        for key in keys
        if key in kits.rows
    }
    files: dict[str, Facts] = {
        f"toolkits/{slug}/toolkit.yaml": facts for slug, facts in kits.toolkits.items()
    }
    files |= {
        path.removesuffix(".json"): {"answer": built.listing[path]}
        for path in others
        if path in built.listing
    }
    return Side(versions, tools, {**files, "catalog.yaml": built.about})


def _document(store: Store, key: Key, deprecation: Mapping[str, str] | None) -> Tool:
    entry = store.tool(key.slug)
    assert entry is not None
    return snapshot.tool_of(orjson.loads(store.document(entry.number(key.version))[0]), deprecation)
