"""The snapshot format: records, file names, JSON documents, the manifest and its digest.

The owner of the format; `table` and `columns` know the bytes of `query.*`. Tool versions are
numbered by slug and then version; whatever speaks of a tool version by number means this one. A
snapshot is few and large files, because a million small ones take minutes to make, to copy and to
remove; it is read through the memory map, so that its size costs the reader nothing.

    manifest.json                     what this is, and the size and SHA-256 of every file beside it
    files.json                        the size and SHA-256 of every file in the folders below
    tools.json                        all documents, the very bytes that the API answers: the newest of each tool first, then the older ones
    toolkits/<toolkit>/<version>.json the toolkit at that version: every tool in force, with the digest of its document
    sessions/<id>.json                the very bytes that the API answers
    auth_configs/<id>.json            what the API's `auth_config_ids` filter goes by
    query.numbers                     where the document of each tool version lies, and its rank in each order (see `columns`)
    query.tools                       a table: slug to the number of its oldest version, in four bytes, and [toolkit, versions]
    query.sets                        a table: what filters go by, each a set of numbers as a roaring bitmap
    query.facts                       a table: the versions of each toolkit, owner, toolkits and answer of each session, the auth configs
    query.words                       a table: term to its postings, its relatives by number, and its spellings (words, numbered in this order)
    query.vocabularies                a table: toolkit to the terms and the words of its tools, two sets of numbers as roaring bitmaps
    query.postings                    term by term the numbers of tools and then their values, or a row with a value for every tool
    query.covers                      by number: rarities of the terms of the name, of the toolkit's, and a checksum of the name
"""

import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolcatalog import encoding

FORMAT = 4
MANIFEST = "manifest.json"
FILE_LIST = "files.json"
DOCUMENTS = "tools.json"
NUMBERS = "query.numbers"
TOOLS = "query.tools"
SETS = "query.sets"
FACTS = "query.facts"
WORDS = "query.words"
POSTINGS = "query.postings"
VOCABULARIES = "query.vocabularies"
COVERS = "query.covers"
VECTORS = "query.vectors"  # only where a build was asked for it

TAG_SIZE = 16  # bytes of a document's SHA-256 that tell it from others

# Of a term: where its postings begin, how many there are, their checksum, its rarity, whether it is
# a row, how many relatives follow, the number of its first word.
TERM_HEADER = struct.Struct("<QIIf?3xII")
# how long each field is on average (see `search.scoring`), and the checksum of that
POSTINGS_HEADER = struct.Struct("<6dQ")
MAX_ENCODED_IMPACT = (1 << 14) - 1  # of a value: its two lowest bits are not of the impact

# Bounds of what is read into memory: bytes of the manifest, bytes of the listing, files that the
# listing names.
MAX_MANIFEST_SIZE, MAX_FILE_LIST_SIZE, MAX_FILES = 1 << 22, 1 << 26, 500_000
_PATH = re.compile("(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
MOST_FOLDERS = 2  # in the path of a listed file: each is one more folder on the disk
_MAX_PATH_LENGTH = 512  # characters; each name in it is of 255 at most, as file systems want
_ENTRY = re.compile(
    rb'"([A-Za-z0-9_./-]{1,512})":\{"size":(0|[1-9][0-9]{0,14}),"sha256":"([0-9a-f]{64})"\}'
)

NEWEST, DEPRECATED = "newest", "deprecated"  # sets; all others have a kind and a name
ALL_VERSIONS = "versions"  # the fact that lists the versions of all toolkits


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A toolkit as served; `versions` are all the versions of its tools, oldest first."""

    slug: str
    name: str
    logo: str
    description: str
    categories: tuple[str, ...]
    no_auth: bool
    homepage: str
    owners: tuple[str, ...]
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One version of a tool as served. `deprecation` is None, or reason, since, sunset,
    replaced_by, each a text, perhaps empty.
    """

    slug: str
    toolkit: str
    version: str
    available_versions: tuple[str, ...]
    name: str
    description: str
    scopes: tuple[str, ...]
    tags: tuple[str, ...]
    no_auth: bool
    deprecation: Mapping[str, str] | None
    input_parameters: Mapping[str, Any]
    output_parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """Which tools one set of credentials can use; None: no limit."""

    id: str
    toolkit: str
    tools: tuple[str, ...] | None
    scopes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session: its owner, the toolkits that it allows, and its meta tools, filled in for it."""

    id: str
    project: str
    toolkits: tuple[str, ...]
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotContents:
    """All that a snapshot holds but the tools, which are too many to be held at once. Sorted by
    slug or id.
    """

    about: Mapping[str, str]
    toolkits: tuple[Toolkit, ...]
    router: Toolkit | None
    auth_configs: tuple[AuthConfig, ...]
    sessions: tuple[Session, ...]


def tool_to_document(tool: Tool, toolkit_name: str, toolkit_logo: str) -> dict[str, Any]:
    """The thirteen fields of a tool as the interface shows them, in its order; `name` and `logo`
    are its toolkit's.
    """
    return {
        "slug": tool.slug,
        "name": tool.name,
        "description": tool.description,
        "toolkit": {"slug": tool.toolkit, "name": toolkit_name, "logo": toolkit_logo},
        "input_parameters": tool.input_parameters,
        "output_parameters": tool.output_parameters,
        "no_auth": tool.no_auth,
        "available_versions": tool.available_versions,
        "version": tool.version,
        "scopes": tool.scopes,
        "tags": tool.tags,
        "is_deprecated": tool.deprecation is not None,
        "deprecated": {
            "displayName": tool.name,
            "version": tool.version,
            "available_versions": tool.available_versions,
            "is_deprecated": tool.deprecation is not None,
            "toolkit": {"logo": toolkit_logo},
        },
    }


def tool_from_document(document: Mapping[str, Any], deprecation: Mapping[str, str] | None) -> Tool:
    """The record of a document; why it is deprecated is not in that, but in the toolkit's index."""
    return Tool(
        slug=document["slug"],
        toolkit=document["toolkit"]["slug"],
        version=document["version"],
        available_versions=tuple(document["available_versions"]),
        name=document["name"],
        description=document["description"],
        scopes=tuple(document["scopes"]),
        tags=tuple(document["tags"]),
        no_auth=document["no_auth"],
        deprecation=deprecation,
        input_parameters=document["input_parameters"],
        output_parameters=document["output_parameters"],
    )


def pack_postings_header(average_lengths: Sequence[float]) -> bytes:
    """The head of POSTINGS; `usual`: the mean number of words in each of the six fields."""
    return POSTINGS_HEADER.pack(*average_lengths, zlib.crc32(struct.pack("<6d", *average_lengths)))


def make_toolkit_index_row(tool: Tool, document: bytes) -> dict[str, Any]:
    """A tool version in the index of its toolkit."""
    return {
        "slug": tool.slug,
        "version": tool.version,
        "name": tool.name,
        "description": tool.description,
        "tags": tool.tags,
        "scopes": tool.scopes,
        "no_auth": tool.no_auth,
        "deprecation": tool.deprecation,
        "digest": encoding.sha256_hex(document),
    }


def render_toolkit_index(toolkit: Toolkit, version: str, rows: Iterable[bytes]) -> bytes:
    """The index of a toolkit at a version, from the rows of the tools in force."""
    head = encoding.dump_json({"toolkit": asdict(toolkit), "version": version})
    return head[:-1] + b',"tools":[' + b",".join(rows) + b"]}"


def toolkit_index_path(toolkit: str, version: str) -> str:
    """Where the index of a toolkit at a version lies in a snapshot."""
    return f"toolkits/{toolkit}/{version}.json"


def render_session_response(session: Session, router: Toolkit) -> bytes:
    """What the API answers for a session."""
    return encoding.dump_json(
        {"items": [tool_to_document(tool, router.name, router.logo) for tool in session.tools]}
    )


def render_small_files(contents: SnapshotContents) -> dict[str, bytes]:
    """The files of sessions and auth configs, by path."""
    tree = {
        f"auth_configs/{config.id}.json": encoding.dump_json(asdict(config))
        for config in contents.auth_configs
    }
    if contents.router:
        tree |= {
            f"sessions/{session.id}.json": render_session_response(session, contents.router)
            for session in contents.sessions
        }
    return tree


def render_facts(contents: SnapshotContents) -> dict[str, bytes]:
    """The table of facts, by name."""
    every = sorted({version for toolkit in contents.toolkits for version in toolkit.versions})
    found = {ALL_VERSIONS: encoding.dump_json(every)}
    found |= {
        f"toolkit {toolkit.slug}": encoding.dump_json(toolkit.versions)
        for toolkit in contents.toolkits
    }
    found |= {
        f"auth_config {config.id}": encoding.dump_json(config.toolkit)
        for config in contents.auth_configs
    }
    of_toolkit: defaultdict[str, list[str]] = defaultdict(list)
    for config in contents.auth_configs:
        of_toolkit[config.toolkit].append(config.id)
    found |= {
        f"auth_configs {toolkit}": encoding.dump_json(ids) for toolkit, ids in of_toolkit.items()
    }
    if contents.router:
        for session in contents.sessions:
            found[f"session {session.id}"] = (
                encoding.dump_json([session.project, session.toolkits])
                + b"\n"
                + render_session_response(session, contents.router)
            )
    return found


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What the manifest says of a file: its size in bytes and its SHA-256."""

    size: int
    sha256: str


def render_file_list(files: Mapping[str, FileInfo]) -> bytes:
    """`files.json`."""
    return encoding.dump_json(
        {path: {"size": said.size, "sha256": said.sha256} for path, said in sorted(files.items())}
    )


def parse_file_list(data: bytes) -> dict[str, FileInfo]:
    """Read `files.json`: every file in the folders, by path.

    Reads entry by entry, so that memory grows with the number of files and not with what hostile
    JSON of this length could hold. Raises ValueError where it is not what `support.mcp_server` writes, names a
    path twice, unsafely or in more folders than snapshots have, or names more than MOST_FILES files.
    """
    if len(data) > MAX_FILE_LIST_SIZE or data[:1] != b"{" or data[-1:] != b"}":
        raise ValueError("no listing")
    files: dict[str, FileInfo] = {}
    position, end = 1, len(data) - 1
    while position < end:
        match = _ENTRY.match(data, position, end)
        if match is None or len(files) == MAX_FILES:
            raise ValueError("no listing")
        path = match[1].decode()
        if path in files or not is_safe_path(path) or path.count("/") > MOST_FOLDERS:
            raise ValueError("an unsafe path")
        files[path] = FileInfo(int(match[2]), match[3].decode())
        position = match.end()
        if position < end and (data[position] != ord(",") or position + 1 == end):
            raise ValueError("no listing")
        position += 1
    return files


def seal_manifest(
    about: Mapping[str, str], counts: Mapping[str, int], files: Mapping[str, FileInfo]
) -> tuple[str, bytes]:
    """The digest that names a snapshot, and its manifest: equal contents, equal digest, on any
    machine.
    """
    said = {path: {"size": of.size, "sha256": of.sha256} for path, of in sorted(files.items())}
    manifest = {"format": FORMAT, "about": about, "counts": counts, "files": said}
    digest = encoding.sha256_hex(encoding.dump_json(manifest))
    return digest, encoding.dump_json({"digest": digest, **manifest})


def is_manifest_valid(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a manifest is the very one that was written."""
    digest: str = manifest["digest"]
    return (
        encoding.sha256_hex(
            encoding.dump_json({key: value for key, value in manifest.items() if key != "digest"})
        )
        == digest
    )


def is_safe_path(path: str) -> bool:
    """Tell whether a path, as a snapshot states it, names a file below the folder that it is taken
    in: a manifest may come from anybody.

    Only letters, digits, `_`, `-`, dots and slashes are allowed, so that a path can also be shown
    in a log as it is, and names that file systems can hold.
    """
    return (
        len(path) <= _MAX_PATH_LENGTH
        and _PATH.fullmatch(path) is not None
        and all(len(name) <= 255 for name in path.split("/"))
    )
