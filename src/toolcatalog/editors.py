"""What editors need to complete and explain the files of a catalog: a JSON Schema of each kind, and
the comments that point to it.

The schemas lie in the package and in the site as `schemas/v1/<kind>.json`, and in a catalog as
`.schemas/v1/<kind>.json`, where its files point to by a relative path: so completion works at once
and without a network. A schema that would refuse a file that it took before goes to a new folder,
`v2`, and the old ones stay.
"""

import json
from collections.abc import Iterator
from importlib import resources

from toolcatalog.formats import SCHEMAS

FOLDER = ".schemas"  # in a catalog: names that begin with a dot are no files of it
VERSION = "v1"
FILES = frozenset(f"{kind}.json" for kind in SCHEMAS)


def paths() -> Iterator[tuple[str, str]]:
    """Each kind of file, and where its schema lies in the package and in the site."""
    return ((kind, f"schemas/{VERSION}/{kind}.json") for kind in SCHEMAS)


def made(kind: str) -> bytes:
    """The text of the schema of a kind of file, made from `formats`; `tests/test_editors.py` writes
    the files of the package with it.
    """
    head = {"$schema": SCHEMAS[kind]["$schema"], "title": SCHEMAS[kind]["title"]}
    return json.dumps({**head, **SCHEMAS[kind]}, indent=2, ensure_ascii=False).encode() + b"\n"


def schema_file(kind: str) -> bytes:
    """The same from the package, as it is delivered."""
    return resources.files("toolcatalog").joinpath("schemas", VERSION, f"{kind}.json").read_bytes()


def in_catalog(kind: str) -> str:
    """Where the schema of a kind of file lies in a catalog."""
    return f"{FOLDER}/{VERSION}/{kind}.json"


def relative(kind: str, path: str) -> str:
    """The same, from a file of this kind at `path` in a catalog."""
    return "../" * path.count("/") + in_catalog(kind)


def comments(kind: str, path: str) -> str:
    """The first lines of a file of this kind at `path` in a catalog: for the YAML language server
    (VS Code, Neovim, ...) and JetBrains.
    """
    schema = relative(kind, path)
    return f"# yaml-language-server: $schema={schema}\n# $schema: {schema}\n"
