"""Sides of a comparison from two states of catalog files: git revisions or the working tree.

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


def find_changed_paths(old: FileSet, new: FileSet) -> set[str]:
    """Return the paths of the files that differ between the two sides."""
    paths = old.object_ids.keys() | new.object_ids.keys()
    return {
        path
        for path in paths
        if not old.object_ids.get(path) or old.object_ids[path] != new.object_ids.get(path)
    }


def load_sides(root: Path, old_files: FileSet, new_files: FileSet) -> tuple[Side, Side]:
    """Return the sides for two states of a catalog.

    `root` is the catalog's folder, for messages about files that cannot be read.
    """
    changed_paths = {
        path
        for path in find_changed_paths(old_files, new_files)
        if _is_catalog_path(path) or path in new_files.object_ids
    }
    keys = [key for key in map(key_for_path, changed_paths) if key]
    tools = {(key.toolkit, key.slug) for key in keys}
    old_versions, new_versions = _list_versions(old_files, tools), _list_versions(new_files, tools)
    references = {key.path for key in comparison.predecessors(old_versions, new_versions).values()}
    toolkit_paths = {f"toolkits/{toolkit}/toolkit.yaml" for toolkit, _ in tools}
    old_paths = changed_paths | (references - new_files.object_ids.keys())
    new_paths = changed_paths | references
    old_records = _load_records(root, old_files, old_paths | toolkit_paths)
    new_records = _load_records(root, new_files, new_paths | toolkit_paths)
    all_records = {**old_records, **new_records}
    return (
        _make_side(old_versions, old_paths, changed_paths, old_records, all_records),
        _make_side(new_versions, new_paths, changed_paths, new_records, all_records),
    )


def key_for_path(path: str) -> ToolVersionKey | None:
    """Return the key of the tool version with this path, or None if it is another path."""
    location = loader.classify_path(path)
    if isinstance(location, Finding) or location.kind != "tool":
        return None
    return ToolVersionKey(
        location.names["toolkit"], location.names["tool"], location.names["version"]
    )


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
            f"line {loader.find_line(data, findings[0])}:"
            f" {folder.make_problem(root, findings[0]).message}"
        )
    return record


def to_tool(record: ToolVersion, toolkit: object) -> Tool:
    """Return a tool version as it would be served, apart from the list of other versions.

    If `toolkit` could not be read, its defaults are empty.
    """
    toolkit_record = (
        toolkit if isinstance(toolkit, Toolkit) else Toolkit(slug=record.toolkit, name="")
    )
    return resolve.resolve_tool(record, toolkit_record, (record.version,))


def _is_catalog_path(path: str) -> bool:
    return not isinstance(loader.classify_path(path), Finding)


def _list_versions(
    files: FileSet, tools: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[str]]:
    folders = {f"toolkits/{toolkit}/{slug}" for toolkit, slug in tools}
    tool_versions: dict[tuple[str, str], list[str]] = {}
    for path in sorted(path for path in files.object_ids if path.rpartition("/")[0] in folders):
        if key := key_for_path(path):
            tool_versions.setdefault((key.toolkit, key.slug), []).append(key.version)
    return tool_versions


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
    keys = {path: key_for_path(path) for path in {*paths, *changed_paths} & records.keys()}
    tools = {
        key: _to_tool(records[path], toolkits.get(_toolkit_path(key)))
        for path, key in keys.items()
        if key and path in paths
    }
    files = {
        path: _file_fields(records[path])
        for path, key in keys.items()
        if key is None and path in changed_paths
    }
    return Side(versions, tools, files)


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
