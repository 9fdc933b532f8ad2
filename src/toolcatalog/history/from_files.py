"""Compare two states of catalog files.

Files are compared as they are written: a change of a toolkit's defaults is reported for the toolkit
only, and tools of both sides are resolved with the newer toolkit. `from_builds` compares builds.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path

from toolcatalog.catalog import folder, loader, resolve, schema
from toolcatalog.catalog.model import Toolkit, ToolVersion
from toolcatalog.diff import comparison
from toolcatalog.diff.comparison import FileFields, Side, ToolVersionKey, Unreadable
from toolcatalog.errors import Finding
from toolcatalog.history.git import FileSet
from toolcatalog.snapshot.format import Tool

_PATH_FIELDS = ("path", "slug", "id")  # fields of records that come from the path

Records = Mapping[str, schema.Record | Unreadable]


def find_changed_paths(before: FileSet, after: FileSet) -> set[str]:
    """Return the paths of the files that differ between the two sides."""
    paths = before.object_ids.keys() | after.object_ids.keys()
    return {
        path
        for path in paths
        if not before.object_ids.get(path) or before.object_ids[path] != after.object_ids.get(path)
    }


def load_sides(root: Path, before: FileSet, after: FileSet) -> tuple[Side, Side]:
    """Return the sides for two states of a catalog.

    `root` is the catalog's folder, for messages about files that cannot be read.
    """
    differing = {
        path
        for path in find_changed_paths(before, after)
        if _is_catalog_path(path) or path in after.object_ids
    }
    tools = {key[:2] for path in differing if (key := key_for_path(path))}
    old_versions, new_versions = _list_versions(before, tools), _list_versions(after, tools)
    references = {key.path for key in comparison.predecessors(old_versions, new_versions).values()}
    kits = {f"toolkits/{toolkit}/toolkit.yaml" for toolkit, _ in tools}
    wanted = differing | (references - after.object_ids.keys()), differing | references
    old, new = (
        _load_records(root, files, some | kits)
        for files, some in zip((before, after), wanted, strict=True)
    )
    both = {**old, **new}
    return _make_side(old_versions, wanted[0], differing, old, both), _make_side(
        new_versions, wanted[1], differing, new, both
    )


def key_for_path(path: str) -> ToolVersionKey | None:
    """Return the key of the tool version with this path, or None if it is another path."""
    place = loader.classify_path(path)
    if isinstance(place, Finding) or place.kind != "tool":
        return None
    return ToolVersionKey(place.names["toolkit"], place.names["tool"], place.names["version"])


def load_record(root: Path, path: str, data: bytes | Finding) -> schema.Record | Unreadable:
    """Return the record of one file, or its first error."""
    document, problems = loader.parse_file(root, path, data)
    if document is None or isinstance(data, Finding):
        return Unreadable(problems[0].message)
    if problems:
        return Unreadable(f"line {problems[0].line}: {problems[0].message}")
    record, findings = schema.validate(document)
    if record is None:
        return Unreadable(
            f"line {loader.find_line(data, findings[0])}: {folder.make_problem(root, findings[0]).message}"
        )
    return record


def to_tool(record: ToolVersion, toolkit: object) -> Tool:
    """Return a tool version as it would be served, apart from the list of other versions.

    If `toolkit` could not be read, its defaults are empty.
    """
    described = toolkit if isinstance(toolkit, Toolkit) else Toolkit(slug=record.toolkit, name="")
    return resolve.resolve_tool(record, described, (record.version,))


def _is_catalog_path(path: str) -> bool:
    return not isinstance(loader.classify_path(path), Finding)


def _list_versions(
    files: FileSet, tools: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[str]]:
    folders = {f"toolkits/{toolkit}/{slug}" for toolkit, slug in tools}
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(path for path in files.object_ids if path.rpartition("/")[0] in folders):
        if key := key_for_path(path):
            found.setdefault((key.toolkit, key.slug), []).append(key.version)
    return found


def _load_records(
    root: Path, files: FileSet, paths: Collection[str]
) -> dict[str, schema.Record | Unreadable]:
    contents = files.read([path for path in paths if path in files.object_ids])
    return {path: load_record(root, path, data) for path, data in contents.items()}


def _make_side(
    versions: comparison.Versions,
    paths: Collection[str],
    changed_paths: Collection[str],
    records: Records,
    toolkits: Records,
) -> Side:
    tools = {
        key: _to_tool(records[path], toolkits.get(_toolkit_path(key)))
        for path in paths
        if path in records and (key := key_for_path(path))
    }
    return Side(
        versions,
        tools,
        {
            path: _file_fields(records[path])
            for path in changed_paths
            if path in records and key_for_path(path) is None
        },
    )


def _to_tool(record: schema.Record | Unreadable, toolkit: object) -> Tool | Unreadable:
    if isinstance(record, Unreadable):
        return record
    assert isinstance(record, ToolVersion)
    return to_tool(record, toolkit)


def _toolkit_path(key: ToolVersionKey) -> str:
    return f"toolkits/{key.toolkit}/toolkit.yaml"


def _file_fields(record: schema.Record | Unreadable) -> FileFields | Unreadable:
    if isinstance(record, Unreadable):
        return record
    return {name: value for name, value in asdict(record).items() if name not in _PATH_FIELDS}
