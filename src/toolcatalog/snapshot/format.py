"""The snapshot format: records, file names, JSON documents, the manifest and its digest.

This module defines the format; `snapshot.tables` defines the bytes of the tables and of the columns
in `query.*`. Tool versions are numbered by slug and then version; "number" and "id" of a tool
version always mean this. A snapshot has few and large files, because a million small ones take
minutes to write, copy and remove. They are memory-mapped, so that readers need not load them.

    manifest.json                     the format, and the size and SHA-256 of every file next to it
    files.json                        the size and SHA-256 of every file in the folders below
    tools.json                        all documents, exactly as the API returns them: the newest of
                                      each tool first, then the older ones
    toolkits/<toolkit>/<version>.json the toolkit at that version: every effective tool, with the
                                      digest of its document
    sessions/<id>.json                exactly the bytes that the API returns
    auth_configs/<id>.json            what the API filter `auth_config_ids` needs
    query.numbers                     the offset of each document, and the rank of each tool version
                                      in each order (see `snapshot.tables`)
    query.tools                       a table: slug to the number of its oldest version, in four
                                      bytes, and [toolkit, versions]
    query.sets                        a table: the filters, each a set of numbers as
                                      a roaring bitmap
    query.facts                       a table: the versions and the description of each toolkit, the
                                      owner, toolkits and response of each session, the auth
                                      configs, the replacements of deprecated tools
    query.words                       a table: term to its postings, the numbers of its related
                                      terms, and its spellings (words, numbered in this order)
    query.vocabularies                a table: toolkit to the terms and the words of its tools, two
                                      sets of numbers as roaring bitmaps
    query.postings                    term by term the numbers of tools and then their values, or a
                                      row with a value for every tool
    query.covers                      by number: sum of IDF over the terms of the name, over those
                                      of the toolkit's name, and a checksum of the name
    query.frequent                    only of large catalogs: the tools of each frequent term and
                                      the levels of their values, as bits (see
                                      `search.index.frequent_terms`)

One more file is optional. The manifest does not list it, because its bytes depend on the version of
a compression library; it can be removed, and made again from the others:

    tools.deflate                     all documents, compressed; see `compressed_documents`
"""

import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from toolcatalog import encoding, names
from toolcatalog.versions import PATTERN as VERSION

FORMAT = 4
MANIFEST = "manifest.json"
FILE_LIST = "files.json"
DOCUMENTS = "tools.json"
COMPRESSED_DOCUMENTS = "tools.deflate"  # optional and not listed
NUMBERS = "query.numbers"
TOOLS = "query.tools"
SETS = "query.sets"
FACTS = "query.facts"
WORDS = "query.words"
POSTINGS = "query.postings"
VOCABULARIES = "query.vocabularies"
COVERS = "query.covers"
FREQUENT = "query.frequent"  # only of large catalogs
# only in builds with semantic search
VECTORS = "query.embeddings"
MODEL = "query.model"
TOKENIZER = "query.tokenizer"

TAG_SIZE = 16  # bytes of a document's SHA-256 that identify it

# The header of a term: offset, number and checksum of its postings, its IDF, whether they are
# dense, how many related terms follow, the number of its first word.
TERM_HEADER = struct.Struct("<QIIf?3xII")
# the mean length of each field (see `search.bm25`), and the checksum of these numbers
POSTINGS_HEADER = struct.Struct("<6dQ")
COVER_SIZE = 12  # bytes of COVERS for each tool version
MAX_ENCODED_IMPACT = (1 << 14) - 1  # the two lowest bits of a value are flags

# Limits on what is read into memory: bytes of the manifest, bytes of the file list, files that
# the file list names.
MAX_MANIFEST_SIZE, MAX_FILE_LIST_SIZE, MAX_FILES = 1 << 22, 1 << 26, 500_000
_PATH = re.compile("(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_LISTED_PATH = re.compile(
    rf"toolkits/{names.TOOLKIT_SLUG}/{VERSION}\.json|sessions/{names.SESSION_ID}\.json"
    rf"|auth_configs/{names.AUTH_CONFIG_ID}\.json"
)
MAX_FOLDER_DEPTH = 2  # in the path of a listed file: each has to be created
_MAX_PATH_LENGTH = 512  # characters; each name in it has at most 255, the limit of file systems
_ENTRY = re.compile(
    rb'"([A-Za-z0-9_./-]{1,512})":\{"size":(0|[1-9][0-9]{0,14}),"sha256":"([0-9a-f]{64})"\}'
)

NEWEST, DEPRECATED = (
    "newest",
    "deprecated",
)  # names of sets; those of all others are a kind and a name
ALL_VERSIONS = "versions"  # the fact that lists the versions of all toolkits


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A toolkit as served; `versions` are all versions of its tools, oldest first.

    `logo_file` is the path of its logo in the site, or empty. `mcp_server` is its MCP server with
    name, version and perhaps url, transport and package; None if it names none.
    """

    slug: str
    name: str
    logo: str
    description: str
    categories: tuple[str, ...]
    no_auth: bool
    homepage: str
    owners: tuple[str, ...]
    versions: tuple[str, ...]
    logo_file: str = ""
    mcp_server: Mapping[str, Any] | None = field(default=None, hash=False)  # a dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One version of a tool as served.

    `deprecation` is None, or has the texts reason, since, sunset and replaced_by, perhaps empty.
    `source` is None, or has the method and path of the HTTP operation that the tool calls.
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
    source: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """The tools and scopes that a set of credentials can use; None: no limit."""

    id: str
    toolkit: str
    tools: tuple[str, ...] | None
    scopes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session: its owner, the toolkits it allows, and its meta tools, filled in for it."""

    id: str
    project: str
    toolkits: tuple[str, ...]
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotContents:
    """The contents of a snapshot except the tools, which are too many to keep in memory.

    All are sorted by slug or id. Sessions may be resolved when they are iterated.
    """

    about: Mapping[str, str]
    toolkits: tuple[Toolkit, ...]
    router: Toolkit | None
    auth_configs: tuple[AuthConfig, ...]
    sessions: Collection[Session]


def tool_to_document(tool: Tool, toolkit_name: str, toolkit_logo: str) -> dict[str, Any]:
    """Return the 13 fields of a tool as the API returns them, in its order.

    `toolkit_name` and `toolkit_logo` are those of its toolkit.
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


def parse_document_summary(document: bytes) -> dict[str, Any]:
    """Return slug, name, description, toolkit, version and `is_deprecated` of a document.

    It parses only what is before the parameters, and the last field. No text can contain the keys
    that separate them, because a quotation mark in a text is escaped.
    """
    head: dict[str, Any] = orjson.loads(document[: document.index(b',"input_parameters":')] + b"}")
    last = orjson.loads(b"{" + document[document.rindex(b',"deprecated":') + 1 :])["deprecated"]
    return head | {name: last[name] for name in ("version", "is_deprecated")}


def tool_from_document(
    document: Mapping[str, Any],
    deprecation: Mapping[str, str] | None,
    source: Mapping[str, str] | None = None,
) -> Tool:
    """Return the record of a document; `deprecation` and `source` come from the toolkit's index."""
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
        source=source,
    )


def pack_postings_header(average_lengths: Sequence[float]) -> bytes:
    """Return the header of POSTINGS from the mean number of words in each of the six fields."""
    return POSTINGS_HEADER.pack(*average_lengths, zlib.crc32(struct.pack("<6d", *average_lengths)))


def make_toolkit_index_row(tool: Tool, document: bytes) -> dict[str, Any]:
    """Return the row of a tool version in the index of its toolkit."""
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
        **({"source": tool.source} if tool.source else {}),
    }


def render_toolkit_index(toolkit: Toolkit, version: str, rows: Iterable[bytes]) -> bytes:
    """Return the index of a toolkit at a version, from the rows of the effective tools."""
    fields = asdict(toolkit)
    for key in ("logo_file", "mcp_server"):
        if not fields[key]:
            del fields[key]
    head = encoding.dump_json({"toolkit": fields, "version": version})
    return head[:-1] + b',"tools":[' + b",".join(rows) + b"]}"


def toolkit_index_path(toolkit: str, version: str) -> str:
    """Return the path of the index of a toolkit at a version in a snapshot."""
    return f"toolkits/{toolkit}/{version}.json"


def render_session_response(session: Session, router: Toolkit) -> bytes:
    """Return the API response for a session."""
    return encoding.dump_json(
        {"items": [tool_to_document(tool, router.name, router.logo) for tool in session.tools]}
    )


def session_path(id: str) -> str:
    """Return the path of the response for a session in a snapshot."""
    return f"sessions/{id}.json"


def render_auth_configs(contents: SnapshotContents) -> dict[str, bytes]:
    """Return the files of auth configs, by path."""
    return {
        f"auth_configs/{config.id}.json": encoding.dump_json(asdict(config))
        for config in contents.auth_configs
    }


def render_facts(contents: SnapshotContents) -> dict[str, bytes]:
    """Return the entries of the table of facts by name, except for those of sessions."""
    all_versions = sorted(
        {version for toolkit in contents.toolkits for version in toolkit.versions}
    )
    facts = {ALL_VERSIONS: encoding.dump_json(all_versions)}
    facts |= {
        f"toolkit {toolkit.slug}": encoding.dump_json(toolkit.versions)
        for toolkit in contents.toolkits
    }
    facts |= {
        f"toolkit_info {toolkit.slug}": encoding.dump_json(_toolkit_info(toolkit))
        for toolkit in contents.toolkits
    }
    facts |= {
        f"mcp_server {toolkit.slug}": encoding.dump_json(toolkit.mcp_server)
        for toolkit in contents.toolkits
        if toolkit.mcp_server
    }
    facts |= {
        f"auth_config {config.id}": encoding.dump_json(config.toolkit)
        for config in contents.auth_configs
    }
    config_ids: defaultdict[str, list[str]] = defaultdict(list)
    for config in contents.auth_configs:
        config_ids[config.toolkit].append(config.id)
    facts |= {
        f"auth_configs {toolkit}": encoding.dump_json(ids) for toolkit, ids in config_ids.items()
    }
    return facts


def render_session_head(session: Session) -> bytes:
    """Return the start of the fact of a session; its response follows."""
    return encoding.dump_json([session.project, session.toolkits]) + b"\n"


def _toolkit_info(toolkit: Toolkit) -> dict[str, Any]:
    return {
        "name": toolkit.name,
        "logo": toolkit.logo,
        "description": toolkit.description,
        "categories": toolkit.categories,
        "no_auth": toolkit.no_auth,
        "homepage": toolkit.homepage,
    }


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The size in bytes and the SHA-256 of a file, as the manifest states them."""

    size: int
    sha256: str


def render_file_list(files: Mapping[str, FileInfo]) -> bytes:
    """Return the bytes of `files.json`."""
    return encoding.dump_json(
        {path: {"size": info.size, "sha256": info.sha256} for path, info in sorted(files.items())}
    )


def parse_file_list(data: bytes) -> dict[str, FileInfo]:
    """Parse `files.json`: every file in the folders, by path.

    It is parsed entry by entry, so that memory grows with the number of files and not with what
    malicious JSON of this length could contain. Raises ValueError if it is not what
    `render_file_list` writes, if a path occurs twice or is not one that builds write, and if it
    names more than MAX_FILES files.
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
        if path in files or not is_safe_path(path) or not _LISTED_PATH.fullmatch(path):
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
    """Return the digest that names a snapshot, and the manifest with it.

    Equal contents give equal digests on any machine.
    """
    file_infos = {
        path: {"size": info.size, "sha256": info.sha256} for path, info in sorted(files.items())
    }
    manifest = {"format": FORMAT, "about": about, "counts": counts, "files": file_infos}
    digest = encoding.sha256_hex(encoding.dump_json(manifest))
    return digest, encoding.dump_json({"digest": digest, **manifest})


def is_manifest_valid(manifest: Mapping[str, Any]) -> bool:
    """Return whether the digest in a manifest is that of its contents."""
    digest: str = manifest["digest"]
    return (
        encoding.sha256_hex(
            encoding.dump_json({key: value for key, value in manifest.items() if key != "digest"})
        )
        == digest
    )


def is_safe_path(path: str) -> bool:
    """Return whether a path of a snapshot names a file below the snapshot's folder.

    A manifest may come from anybody. Only letters, digits, `_`, `-`, dots and slashes are allowed,
    so that a path can be logged unchanged, and names must fit the limits of file systems.
    """
    return (
        len(path) <= _MAX_PATH_LENGTH
        and _PATH.fullmatch(path) is not None
        and all(len(name) <= 255 for name in path.split("/"))
    )
