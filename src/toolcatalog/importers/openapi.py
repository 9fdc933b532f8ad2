"""Import the operations of an OpenAPI document, one tool for each.

Supports Swagger 2.0, OpenAPI 3.0 and 3.1. References within the document are expanded, and
recursive references are cut; nothing is fetched. Errors in a document stop the import and are
reported with their locations. What the catalog format cannot hold is reported as a `Loss`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog import names
from toolcatalog.catalog import schema
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.errors import UsageError
from toolcatalog.importers.documents import DocumentReader, SourceDocument
from toolcatalog.importers.json_schema import MAX_SCHEMAS, Loss, Normalizer
from toolcatalog.importers.openapi_bodies import (
    INPUTS,
    OUTPUTS,
    Body,
    body_to_object,
    collect_inputs,
    read_response_schema,
)
from toolcatalog.importers.openapi_operations import Operation, list_operations, read_security
from toolcatalog.importers.slugs import make_slugs, to_snake_case
from toolcatalog.importers.to_parameters import convert_normalized
from toolcatalog.importers.writer import ImportedTool, check_tool_count

_SUPPORTED_VERSION = re.compile(r"2\.0|3\.[01](\.[0-9]+)?(-.*)?")
_MAX_SCHEMAS = 1_000_000  # schemas in a document after resolving references; takes about a minute
# characters of a toolkit slug derived from a title; leaves space for the tool names
_MAX_TOOLKIT_SLUG = 40
_NOISE_WORDS = {
    "api",
    "apis",
    "rest",
    "restful",
    "http",
    "web",
    "openapi",
    "swagger",
    "spec",
    "specification",
    "service",
    "the",
}
_OPERATION_FIELDS = (
    "operationId",
    "summary",
    "description",
    "tags",
    "deprecated",
    "parameters",
    "requestBody",
    "responses",
    "security",
)
_DOCUMENT_FIELDS = (
    "swagger",
    "openapi",
    "info",
    "paths",
    "components",
    "definitions",
    "parameters",
    "responses",
    "security",
    "securityDefinitions",
)


def import_tools(
    source: SourceDocument, toolkit: str = "", name: str = "", logo: str = ""
) -> Iterator[ImportedTool]:
    """Yield the tools of a document one by one, because all of them may not fit in memory.

    They go to `toolkit`, with the display name `name` and the logo `logo`; the defaults are the
    document's title and `x-logo`. Raises UsageError, with a located sentence for each of the first
    few errors, if the document is not an OpenAPI document or has errors.
    """
    _check_version(source)
    paper = DocumentReader(source)
    kit = _toolkit_fields(paper, toolkit, name, logo)
    found = list_operations(paper)
    if not found:
        paper.raise_faults()
        raise UsageError(
            f"{source.name} describes no operation: there is nothing below `paths` to make a "
            "tool of."
        )
    check_tool_count(len(found), len(source.data))
    left = _MAX_SCHEMAS
    for operation, slug in zip(
        found, make_slugs(kit["slug"], [(one.title, one.identity) for one in found]), strict=True
    ):
        readers = [Normalizer(paper.root, budget=min(MAX_SCHEMAS, left)) for _ in range(2)]
        made = _import_operation(paper, operation, slug, kit, *readers)
        if not paper.faults:
            yield made
        left -= sum(min(MAX_SCHEMAS, left) - reader.budget for reader in readers)
        if left <= 0:
            raise UsageError(
                f"{source.name} unfolds to more than {_MAX_SCHEMAS:,} schemas: import a part of it "
                "at a time."
            )
    paper.raise_faults()


def _check_version(source: SourceDocument) -> None:
    """Raise UsageError if the document's format or version is not supported."""
    value = source.value
    said = (
        [str(value[key]) for key in ("swagger", "openapi") if key in value]
        if isinstance(value, dict)
        else []
    )
    if not said:
        raise UsageError(
            f"{source.name} is no OpenAPI document: it says neither `openapi: 3...` nor "
            "`swagger: 2.0`."
        )
    if not _SUPPORTED_VERSION.fullmatch(said[0]):
        raise UsageError(
            f"{source.name} is of version {said[0][:20]!r}: Swagger 2.0, OpenAPI 3.0 and "
            "OpenAPI 3.1 are read."
        )


def _toolkit_fields(document: DocumentReader, slug: str, name: str, logo: str) -> dict[str, Any]:
    """Return the toolkit's slug, the fields of its file, and fields without a place in the file."""
    info = document.get(document.root, (), "info", dict)
    title = document.get(info, ("info",), "title", str)
    made = slug or _toolkit_slug(title)
    if not made:
        raise UsageError(
            "The document has no title to name a toolkit by: say it with --toolkit SLUG."
        )
    _check_options(name, logo)
    drawn, docs = info.get("x-logo"), document.get(document.root, (), "externalDocs", dict)
    homes = [docs.get("url"), document.get(info, ("info",), "contact", dict).get("url")]
    fields = {
        "name": name or title.strip(),
        "logo": logo or (drawn.get("url") if isinstance(drawn, Mapping) else drawn),
        "description": document.get(info, ("info",), "description", str),
        "homepage": next(
            (home for home in homes if isinstance(home, str) and home.startswith("https://")), ""
        ),
    }
    rest = {
        f"info.{key}": value
        for key, value in info.items()
        if key not in ("title", "description", "x-logo")
    }
    taken = (
        *_DOCUMENT_FIELDS,
        *SCHEMAS["toolkit"]["properties"],
        *(["externalDocs"] if fields["homepage"] == docs.get("url") else []),
    )
    rest |= {key: value for key, value in document.root.items() if key not in taken}
    return {
        "slug": made,
        **{key: value for key, value in fields.items() if value},
        **{key: value for key, value in rest.items() if value},
    }


def _check_options(name: str, logo: str) -> None:
    """Raise UsageError if a toolkit cannot have this name or logo.

    Values that the user gave explicitly are not left out with a note.
    """
    asked = {"name": name or "A", "logo": logo or "https://example.com"}
    _, findings = schema.validate(
        Document("toolkit.yaml", Location("toolkit", {"toolkit": "a"}), asked, True)
    )
    for finding in findings[:1]:
        raise UsageError(
            f"--{finding.pointer[0]}: {finding.message}; give {finding.expected or 'another one'}."
        )


def _toolkit_slug(title: str) -> str:
    """Derive a toolkit slug from the document's title, without common words such as `API`.

    For example, `Slack Web API` gives `slack`.
    """
    said = to_snake_case(title).split("_")
    telling = [
        word for word in said if word not in _NOISE_WORDS and not re.fullmatch("v?[0-9]+", word)
    ] or said
    slug = "_".join(telling)[:_MAX_TOOLKIT_SLUG].strip("_")
    return slug if names.is_valid(names.TOOLKIT_SLUG, slug) else ""


def _import_operation(
    document: DocumentReader,
    operation: Operation,
    slug: str,
    toolkit: dict[str, Any],
    inputs_normalizer: Normalizer,
    outputs_normalizer: Normalizer,
) -> ImportedTool:
    said, at = operation.definition, operation.pointer
    summary, text = (
        document.get(said, at, "summary", str).strip(),
        document.get(said, at, "description", str),
    )
    asks, lost = read_security(document, said, at)
    given = convert_normalized(
        collect_inputs(document, operation, inputs_normalizer), INPUTS, inputs_normalizer
    )
    schema = read_response_schema(document, operation, outputs_normalizer)
    got = (
        convert_normalized(
            body_to_object(outputs_normalizer, Body(schema), OUTPUTS, "result"),
            OUTPUTS,
            outputs_normalizer,
        )
        if schema is not None
        else {}
    )
    tags = [*dict.fromkeys([*document.get_texts(said, at, "tags"), *operation.hints])]
    value: dict[str, Any] = {
        "name": summary
        or to_snake_case(operation.title).replace("_", " ").capitalize()
        or operation.identity,
        "description": text or summary,
        "scopes": asks.get("scopes"),
        "tags": tags,
        "no_auth": asks.get("no_auth"),
        "deprecation": {} if document.get(said, at, "deprecated", bool) else None,
        "input_parameters": given,
        "output_parameters": got,
    }
    kept = {
        key: inner
        for key, inner in value.items()
        if inner or (key == "deprecation" and inner is not None)
    }
    losses = [
        *_operation_losses(operation, slug),
        *lost,
        *inputs_normalizer.losses,
        *outputs_normalizer.losses,
    ]
    return ImportedTool(slug=slug, value=kept, toolkit=toolkit, losses=tuple(losses))


def _operation_losses(operation: Operation, slug: str) -> Iterator[Loss]:
    """Yield what a tool's file cannot hold of an operation and its path item."""
    yield Loss((), "method and path of an operation", operation.identity)
    if not slug.endswith(to_snake_case(operation.title).upper()):
        yield Loss(
            (),
            "a slug with a digest, for the plain one would be too long or another's too",
            operation.title,
        )
    for key in operation.definition:
        if key not in _OPERATION_FIELDS:
            yield Loss((key,), f"`{key}` of an operation")
    for key in ("summary", "description", "servers"):
        if operation.path_item.get(key):
            yield Loss((key,), f"`{key}` of a path")
