"""File templates: the text of a new toolkit, tool or catalog file, and writing it.

The first lines may be schema comments (see `catalog.file_schemas`), so that editors complete and
explain the file from the first key on. Sample parameters are in comments only: a new file is valid
as it is, and made-up values are never published.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcatalog.catalog import file_schemas, loader, schema, yaml_reader, yaml_writer
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.errors import Finding, UsageError, write_error
from toolcatalog.system import files

_TRAILING_COMMENTS = {
    "catalog": "",
    "toolkit": "",
    "tool": (
        """\

# What the tool takes: remove the `# ` before these lines and make them yours. \
An editor that knows the schema completes the keys.
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
"""
    ),
}


def render_file(path: str, fields: Mapping[str, Any], schema_comments: str = "") -> bytes:
    """Return the content of a new file at its path in a catalog, below these schema comments.

    Empty optional fields are left out.
    """
    kind = _locate(path).kind
    schema = SCHEMAS[kind]
    selected = {
        key: fields[key]
        for key in schema["properties"]
        if key in fields and (fields[key] or key in schema["required"])
    }
    return (
        schema_comments.encode() + yaml_writer.to_yaml(selected) + _TRAILING_COMMENTS[kind].encode()
    )


def render_schema_comments(path: str, site: str) -> str:
    """Return the schema comments of a file at a path, see `file_schemas`."""
    return file_schemas.render_schema_comments(_locate(path).kind, path, site)


def render_schemas() -> dict[str, bytes]:
    """Return the schemas of all kinds of files, by their paths in a catalog."""
    return {
        file_schemas.catalog_schema_path(kind): file_schemas.render_schema(kind) for kind in SCHEMAS
    }


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write new files below a folder in their order, and nothing through a link.

    Raises UsageError.
    """
    for name in contents:
        files.require_no_links(folder / name, folder)
    try:
        for name, data in contents.items():
            files.write_if_changed(folder / name, data)
    except OSError as error:
        raise write_error(error.filename or folder, error, ", or name another folder") from None


def required_fields(path: str) -> list[str]:
    """Return the required fields of a file at this path."""
    required: list[str] = SCHEMAS[_locate(path).kind]["required"]
    return required


def validate_file(path: str, data: bytes) -> list[Finding]:
    """Return the findings of a new file; none if it is valid."""
    reading = yaml_reader.parse(data)
    if reading.faults:
        return [
            Finding(path=path, rule=fault.rule, message=fault.message, help=fault.help)
            for fault in reading.faults
        ]
    return schema.validate(Document(path, _locate(path), reading.value, True))[1]


def _locate(path: str) -> Location:
    """Return the location of a path. Raises UsageError if no file is expected at it."""
    location = loader.classify_path(path)
    if isinstance(location, Finding):
        raise UsageError(f"{location.message}: {location.help}.")
    return location


def title_from_slug(slug: str) -> str:
    """Return a slug as a display name: with spaces and capitals."""
    words = slug.replace("_", " ").replace("-", " ").split()
    return (
        " ".join(words).capitalize()
        if slug.isupper()
        else " ".join(word.capitalize() for word in words)
    )
