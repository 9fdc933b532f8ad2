"""Two states of a catalog's files to the two sides of a comparison: only what differs is read, and
what that is compared with.

Files are compared as they are written: what a toolkit says for its tools is told of the toolkit,
and tools of both sides are read under the newer one. `served` does the same for builds.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path

from toolcatalog import comparing, resolve, schema, source, tree
from toolcatalog.comparing import Facts, Key, Side, Unread
from toolcatalog.errors import Finding
from toolcatalog.model import Toolkit, ToolVersion
from toolcatalog.revisions import Files
from toolcatalog.snapshot import Tool

_NOT_OF_A_FILE = ("path", "slug", "id")  # fields of records that a path gives

Records = Mapping[str, schema.Record | Unread]


def changed(before: Files, after: Files) -> set[str]:
    """The paths of the files that are not the same on both sides."""
    paths = before.named.keys() | after.named.keys()
    return {
        path
        for path in paths
        if not before.named.get(path) or before.named[path] != after.named.get(path)
    }


def sides(root: Path, before: Files, after: Files) -> tuple[Side, Side]:
    """The sides of two states of a catalog. `root` is its folder, for the words in which files that
    cannot be read are told of.
    """
    differing = {path for path in changed(before, after) if _is_placed(path) or path in after.named}
    tools = {key[:2] for path in differing if (key := key_of(path))}
    old_versions, new_versions = _versions(before, tools), _versions(after, tools)
    references = {key.path for key in comparing.predecessors(old_versions, new_versions).values()}
    kits = {f"toolkits/{toolkit}/toolkit.yaml" for toolkit, _ in tools}
    wanted = differing | (references - after.named.keys()), differing | references
    old, new = (
        _records(root, files, some | kits)
        for files, some in zip((before, after), wanted, strict=True)
    )
    both = {**old, **new}
    return _side(old_versions, wanted[0], differing, old, both), _side(
        new_versions, wanted[1], differing, new, both
    )


def key_of(path: str) -> Key | None:
    """The tool version whose file lies at a path; None where it is no such path."""
    place = source.place_of(path)
    if isinstance(place, Finding) or place.kind != "tool":
        return None
    return Key(place.names["toolkit"], place.names["tool"], place.names["version"])


def record_of(root: Path, path: str, data: bytes | Finding) -> schema.Record | Unread:
    """The record of one file, or what is wrong with it first."""
    document, problems = source.parsed(root, path, data)
    if document is None or isinstance(data, Finding):
        return Unread(problems[0].message)
    if problems:
        return Unread(f"line {problems[0].line}: {problems[0].message}")
    record, findings = schema.record(document)
    if record is None:
        return Unread(
            f"line {source.line_of(data, findings[0])}: {tree.problem(root, findings[0]).message}"
        )
    return record


def tool_of(record: ToolVersion, toolkit: object) -> Tool:
    """A tool version as it would be served, but for the versions beside it. A toolkit that cannot
    be read says nothing of it.
    """
    described = (
        toolkit if isinstance(toolkit, Toolkit) else Toolkit(slug=record.toolkit, name="", logo="")
    )
    return resolve.tool(record, described, (record.version,))


def _is_placed(path: str) -> bool:
    return not isinstance(source.place_of(path), Finding)


def _versions(files: Files, tools: Collection[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    folders = {f"toolkits/{toolkit}/{slug}" for toolkit, slug in tools}
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(path for path in files.named if path.rpartition("/")[0] in folders):
        if key := key_of(path):
            found.setdefault((key.toolkit, key.slug), []).append(key.version)
    return found


def _records(
    root: Path, files: Files, wanted: Collection[str]
) -> dict[str, schema.Record | Unread]:
    contents = files.read([path for path in wanted if path in files.named])
    return {path: record_of(root, path, data) for path, data in contents.items()}


def _side(
    versions: comparing.Versions,
    wanted: Collection[str],
    differing: Collection[str],
    records: Records,
    kits: Records,
) -> Side:
    tools = {
        key: _tool(records[path], kits.get(_kit(key)))
        for path in wanted
        if path in records and (key := key_of(path))
    }
    return Side(
        versions,
        tools,
        {
            path: _facts(records[path])
            for path in differing
            if path in records and key_of(path) is None
        },
    )


def _tool(record: schema.Record | Unread, toolkit: object) -> Tool | Unread:
    if isinstance(record, Unread):
        return record
    assert isinstance(record, ToolVersion)
    return tool_of(record, toolkit)


def _kit(key: Key) -> str:
    return f"toolkits/{key.toolkit}/toolkit.yaml"


def _facts(record: schema.Record | Unread) -> Facts | Unread:
    if isinstance(record, Unread):
        return record
    return {name: value for name, value in asdict(record).items() if name not in _NOT_OF_A_FILE}
