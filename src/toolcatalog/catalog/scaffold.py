"""Scaffolding: the text of a new toolkit, tool or catalog file.

The first lines tell editors of the schema (see `catalog.file_schemas`), so a file is completed and explained
from the first key on. What stands in comments is no part of the value: a new file is sound as it
is, and nothing that was made up is ever published.
"""

from collections.abc import Mapping
from typing import Any

from toolcatalog.catalog import file_schemas, loader, schema, yaml_reader, yaml_writer
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.errors import Finding, UsageError

_TRAILING_COMMENTS = {
    "catalog": "",
    "toolkit": "",
    "tool": """\

# What the tool takes: remove the `# ` before these lines and make them yours. An editor that knows the schema completes the keys.
# input_parameters:
#   owner:
#     type: string
#     description: Account that owns the repository.
#     required: true
#     examples: [octocat]

# What it gives.
# output_parameters:
#   number:
#     type: integer
#     description: Number of the new issue, which its address ends with.
""",
}


def render_file(path: str, fields: Mapping[str, Any]) -> bytes:
    """The text of a new file at its path in a catalog; fields that say nothing are left out, but
    for those that must be there.
    """
    kind = _locate(path).kind
    whole = SCHEMAS[kind]
    told = {
        key: fields[key]
        for key in whole["properties"]
        if key in fields and (fields[key] or key in whole["required"])
    }
    return (
        file_schemas.render_schema_comments(kind, path).encode()
        + yaml_writer.to_yaml(told)
        + _TRAILING_COMMENTS[kind].encode()
    )


def required_fields(path: str) -> list[str]:
    """The fields that a file at this path must have."""
    needed: list[str] = SCHEMAS[_locate(path).kind]["required"]
    return needed


def validate_file(path: str, data: bytes) -> list[Finding]:
    """What is wrong with a new file; nothing where the catalog takes it."""
    reading = yaml_reader.parse(data)
    if reading.faults:
        return [
            Finding(path=path, rule=fault.rule, message=fault.message, help=fault.help)
            for fault in reading.faults
        ]
    return schema.validate(Document(path, _locate(path), reading.value, True))[1]


def _locate(path: str) -> Location:
    """The kind of file that lies there. Raises UsageError where the path has a name that no such
    file can have.
    """
    place = loader.classify_path(path)
    if isinstance(place, Finding):
        raise UsageError(f"{place.message}: {place.help}.")
    return place


def title_from_slug(slug: str) -> str:
    """A slug as people would write it: a name to begin with."""
    words = slug.replace("_", " ").replace("-", " ").split()
    return (
        " ".join(words).capitalize()
        if slug.isupper()
        else " ".join(word.capitalize() for word in words)
    )
