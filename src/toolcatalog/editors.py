"""JSON Schemas of the catalog's files for editors, and the comments that point to them.

They are generated from `formats`: the site publishes them as `schemas/v1/<kind>.json`, and
`toolcatalog new` writes them to a catalog's `.schemas/v1/<kind>.json`, which each file names by a
relative path. So completion works offline. A schema that would refuse a file that it accepted before
goes to a new folder, `v2`, and the old ones stay.
"""

import json
from collections.abc import Iterator

from toolcatalog.formats import SCHEMAS

SCHEMA_FOLDER = ".schemas"  # in a catalog: names that begin with a dot are no files of it
SCHEMA_VERSION = "v1"
SCHEMA_FILES = frozenset(f"{kind}.json" for kind in SCHEMAS)


def schema_paths() -> Iterator[tuple[str, str]]:
    """Yield each kind of file with the path of its schema in the site."""
    return ((kind, f"schemas/{SCHEMA_VERSION}/{kind}.json") for kind in SCHEMAS)


def render_schema(kind: str) -> bytes:
    """Generate the JSON Schema (2020-12) of a kind of file, as indented JSON in UTF-8."""
    head = {"$schema": SCHEMAS[kind]["$schema"], "title": SCHEMAS[kind]["title"]}
    return json.dumps({**head, **SCHEMAS[kind]}, indent=2, ensure_ascii=False).encode() + b"\n"


def catalog_schema_path(kind: str) -> str:
    """Where the schema of a kind of file lies in a catalog."""
    return f"{SCHEMA_FOLDER}/{SCHEMA_VERSION}/{kind}.json"


def relative_schema_path(kind: str, path: str) -> str:
    """The same, from a file of this kind at `path` in a catalog."""
    return "../" * path.count("/") + catalog_schema_path(kind)


def render_schema_comments(kind: str, path: str) -> str:
    """The first lines of a file of this kind at `path` in a catalog: for the YAML language server
    (VS Code, Neovim, ...) and JetBrains.
    """
    schema = relative_schema_path(kind, path)
    return f"# yaml-language-server: $schema={schema}\n# $schema: {schema}\n"
