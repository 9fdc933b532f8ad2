"""What is served: the records of a snapshot, the files that hold them, and the manifest that vouches for those. Pure.

The only owner of the format: `files` turns contents into a tree of path and bytes, `store` reads it back. A tree is
sealed by `manifest.json`, which lists the size and SHA-256 of every other file; the digest of the manifest names the snapshot.

    manifest.json                     what this is, and the size and SHA-256 of every file below
    toolkits/<toolkit>/<version>.json the toolkit at that version: every tool in force, with the place and digest of its document
    tools/<SLUG>/<version>.json       the very bytes that the API answers
    sessions/<id>.json                likewise
    auth_configs/<id>.json            what the API's `auth_config_ids` filter goes by
    query.tools.json                  a row for each tool version, sorted by slug and version: what filters need
    query.text.json                   the text index (made by `search`)

Serves: "Snapshot" of the design, and the tool's fields of the interface.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

FORMAT = 1
MANIFEST = "manifest.json"
TOOLS = "query.tools.json"
TEXT = "query.text.json"

Tree = Mapping[str, bytes]


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
    """One version of a tool as served. `deprecation` is None, or reason, since, sunset, replaced_by, each a text, perhaps empty."""

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
    """A session: its owner and its meta tools, filled in for it."""

    id: str
    project: str
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All that a snapshot holds. Tools are sorted by slug and version, oldest first; the rest by slug or id."""

    about: Mapping[str, str]
    toolkits: tuple[Toolkit, ...]
    router: Toolkit | None
    tools: tuple[Tool, ...]
    auth_configs: tuple[AuthConfig, ...]
    sessions: tuple[Session, ...]


def document(tool: Tool, toolkit: Toolkit) -> dict[str, Any]:
    """The thirteen fields of a tool as the interface shows them, in its order."""
    return {
        "slug": tool.slug,
        "name": tool.name,
        "description": tool.description,
        "toolkit": {"slug": toolkit.slug, "name": toolkit.name, "logo": toolkit.logo},
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
            "toolkit": {"logo": toolkit.logo},
        },
    }


def tool_path(slug: str, version: str) -> str:
    """Where the document of one tool version lies in the tree."""
    return f"tools/{slug}/{version}.json"


def session_path(id: str) -> str:
    """Where the answer for one session lies in the tree."""
    return f"sessions/{id}.json"


def files(contents: Contents) -> dict[str, bytes]:
    """All files of a snapshot but the text index and the manifest."""
    toolkits = {toolkit.slug: toolkit for toolkit in contents.toolkits}
    tree = {tool_path(tool.slug, tool.version): dump(document(tool, toolkits[tool.toolkit])) for tool in contents.tools}
    by_toolkit: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in contents.tools:
        by_toolkit[tool.toolkit].append(tool)
    for toolkit in contents.toolkits:
        tree |= _toolkit_files(toolkit, by_toolkit[toolkit.slug], tree)
    for config in contents.auth_configs:
        tree[f"auth_configs/{config.id}.json"] = dump(asdict(config))
    for session in contents.sessions:
        items = [document(tool, contents.router) for tool in session.tools if contents.router]
        tree[session_path(session.id)] = dump({"items": items})
    tree[TOOLS] = dump(_query(contents))
    return tree


def _query(contents: Contents) -> dict[str, Any]:
    return {
        "toolkits": {toolkit.slug: toolkit.versions for toolkit in contents.toolkits},
        "tools": [
            [tool.slug, tool.version, tool.toolkit, tool.name, tool.tags, tool.scopes, tool.deprecation is not None]
            for tool in contents.tools
        ],
        "auth_configs": {config.id: asdict(config) for config in contents.auth_configs},
        "sessions": {session.id: session.project for session in contents.sessions},
    }


def _toolkit_files(toolkit: Toolkit, tools: list[Tool], documents: Tree) -> dict[str, bytes]:
    head = asdict(toolkit)
    answer = {}
    for version in toolkit.versions:
        rows = [_row(tool, documents[tool_path(tool.slug, tool.version)]) for tool in in_force(tools, version)]
        answer[f"toolkits/{toolkit.slug}/{version}.json"] = dump({"toolkit": head, "version": version, "tools": rows})
    return answer


def in_force(tools: Iterable[Tool], at: str) -> list[Tool]:
    """Of each tool the newest version not newer than `at`. `tools` is sorted by slug and version."""
    return [*{tool.slug: tool for tool in tools if tool.version <= at}.values()]


def _row(tool: Tool, document: bytes) -> dict[str, Any]:
    return {
        "slug": tool.slug,
        "version": tool.version,
        "name": tool.name,
        "description": tool.description,
        "tags": tool.tags,
        "scopes": tool.scopes,
        "deprecation": tool.deprecation,
        "digest": sha256(document),
        "path": tool_path(tool.slug, tool.version),
    }


def seal(tree: Tree, contents: Contents) -> tuple[str, bytes]:
    """The digest that names a snapshot, and its manifest: equal contents, equal digest, on any machine."""
    manifest = {
        "format": FORMAT,
        "about": contents.about,
        "counts": {
            "toolkits": len(contents.toolkits),
            "tools": len({tool.slug for tool in contents.tools}),
            "tool_versions": len(contents.tools),
            "sessions": len(contents.sessions),
        },
        "toolkits": {toolkit.slug: {"name": toolkit.name, "versions": toolkit.versions} for toolkit in contents.toolkits},
        "files": {path: {"size": len(data), "sha256": sha256(data)} for path, data in sorted(tree.items())},
    }
    digest = sha256(dump(manifest))
    return digest, dump({"digest": digest, **manifest})


def faults(manifest: Mapping[str, Any], tree: Tree) -> list[str]:
    """What is wrong with a tree by its manifest, a line each; empty: it is whole. Says nothing of files that it does not list."""
    said = {key: value for key, value in manifest.items() if key != "digest"}
    if sha256(dump(said)) != manifest["digest"]:
        return [f"{MANIFEST} is not the one that was written"]
    wrong = []
    for path, of in manifest["files"].items():
        data = tree.get(path)
        if data is None:
            wrong.append(f"{path} is missing")
        elif len(data) != of["size"]:
            wrong.append(f"{path} has {len(data)} bytes and should have {of['size']}")
        elif sha256(data) != of["sha256"]:
            wrong.append(f"{path} has other bytes than were written")
    return wrong


def dump(value: Any) -> bytes:
    """A value as JSON in UTF-8, in the order given: the one spelling of everything in a snapshot."""
    return orjson.dumps(value)


def sha256(data: bytes) -> str:
    """The SHA-256 of the bytes in lower-case hex."""
    return hashlib.sha256(data).hexdigest()
