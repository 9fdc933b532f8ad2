"""Import the operations of an OpenAPI document, one tool for each.

Supports Swagger 2.0, OpenAPI 3.0 and 3.1. References within the document are expanded, and
recursive references are cut; nothing is fetched. Errors in a document stop the import and are
reported with their locations. What the catalog format cannot hold is reported as a `Loss`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcatalog.catalog import schema
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.loader import Document, Location
from toolcatalog.errors import UsageError
from toolcatalog.importers import slugs
from toolcatalog.importers.documents import BUNDLE_KEY, DocumentReader, SourceDocument
from toolcatalog.importers.json_schema import MAX_TOTAL_SCHEMAS, Loss, Normalizer, SchemaBudget
from toolcatalog.importers.openapi_bodies import INPUTS, OUTPUTS, OperationReader
from toolcatalog.importers.openapi_operations import Operation, list_operations, read_tags
from toolcatalog.importers.openapi_security import credential_parameters, read_security
from toolcatalog.importers.to_parameters import convert_normalized
from toolcatalog.importers.writer import ImportedTool, check_tool_count

_SUPPORTED_VERSION = re.compile(r"2\.0|3\.[01](\.[0-9]+)?(-.*)?")
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
    BUNDLE_KEY,
)


def import_tools(
    source: SourceDocument,
    toolkit: str = "",
    name: str = "",
    logo: str = "",
    *,
    no_auth: bool = False,
) -> Iterator[ImportedTool]:
    """Yield the tools of a document one by one, because all of them may not fit in memory.

    They go to `toolkit`, with the display name `name` and the logo `logo`; the defaults are the
    document's title and `x-logo`. `no_auth` is whether operations without `security` need no
    authentication. Raises UsageError, with a located sentence for each of the first few errors, if
    the document is not an OpenAPI document or has errors.
    """
    _check_version(source)
    document = DocumentReader(source)
    fields = _toolkit_fields(document, toolkit, name, logo)
    operations = list_operations(document)
    if not operations:
        document.raise_faults()
        raise UsageError(
            f"{source.name} describes no operation: there is nothing below `paths` to make a "
            "tool of."
        )
    check_tool_count(len(operations), len(source.data))
    importer = _OperationImporter(
        document, fields, no_auth, credential_parameters(document), SchemaBudget(MAX_TOTAL_SCHEMAS)
    )
    yield from importer.import_all(operations)
    document.raise_faults()


def _check_version(source: SourceDocument) -> None:
    """Raise UsageError if the document's format or version is not supported."""
    value = source.value if isinstance(source.value, dict) else {}
    versions = [str(value[key]) for key in ("swagger", "openapi") if key in value]
    if not versions:
        raise UsageError(
            f"{source.name} is no OpenAPI document: it says neither `openapi: 3...` nor "
            "`swagger: 2.0`."
        )
    if not _SUPPORTED_VERSION.fullmatch(versions[0]):
        raise UsageError(
            f"{source.name} is of version {versions[0][:20]!r}: Swagger 2.0, OpenAPI 3.0 and "
            "OpenAPI 3.1 are read."
        )


# Toolkit


def _toolkit_fields(document: DocumentReader, slug: str, name: str, logo: str) -> dict[str, Any]:
    """Return the toolkit's slug, the fields of its file, and fields without a place in the file."""
    info = document.get(document.root, (), "info", dict)
    title = document.get(info, ("info",), "title", str)
    slug = slug or slugs.toolkit_slug_from_title(title)
    if not slug:
        raise UsageError(
            "The document has no title to name a toolkit by: name it with --toolkit SLUG."
        )
    _check_options(name, logo)
    image, homepage = info.get("x-logo"), _homepage(document, info)
    fields: dict[str, Any] = {
        "name": name or slugs.product_name(title),
        "logo": logo or (image.get("url") if isinstance(image, Mapping) else image),
        "description": document.get(info, ("info",), "description", str),
        "homepage": homepage,
        **_other_fields(document, info, homepage),
    }
    return {"slug": slug, **{key: value for key, value in fields.items() if value}}


def _homepage(document: DocumentReader, info: Mapping[str, Any]) -> str:
    """Return the first https URL of the external documentation and the contact, or ""."""
    external = document.get(document.root, (), "externalDocs", dict)
    contact = document.get(info, ("info",), "contact", dict)
    urls = [external.get("url"), contact.get("url")]
    return next((url for url in urls if isinstance(url, str) and url.startswith("https://")), "")


def _other_fields(
    document: DocumentReader, info: Mapping[str, Any], homepage: str
) -> dict[str, Any]:
    """Return what a document says about the whole API and no file has a place for."""
    external = document.get(document.root, (), "externalDocs", dict)
    used = {*_DOCUMENT_FIELDS, *SCHEMAS["toolkit"]["properties"]}
    if homepage == external.get("url"):
        used.add("externalDocs")
    return {
        f"info.{key}": value
        for key, value in info.items()
        if key not in ("title", "description", "x-logo")
    } | {key: value for key, value in document.root.items() if key not in used}


def _check_options(name: str, logo: str) -> None:
    """Raise UsageError if a toolkit cannot have this name or logo.

    Values that the user gave explicitly are not left out with a note.
    """
    fields = {"name": name or "A", "logo": logo or "https://example.com"}
    _, findings = schema.validate(
        Document("toolkit.yaml", Location("toolkit", {"toolkit": "a"}), fields, True)
    )
    for finding in findings[:1]:
        raise UsageError(
            f"--{finding.pointer[0]}: {finding.message}; give {finding.expected or 'another one'}."
        )


# Operations


@dataclass(slots=True)
class _OperationImporter:
    """Imports the operations of a document.

    `toolkit` are the fields of their toolkit, `no_auth` is whether operations without `security`
    need no authentication, `credentials` are the declared API keys, and `budget` is the number of
    schemas that may still be converted.
    """

    document: DocumentReader
    toolkit: dict[str, Any]
    no_auth: bool
    credentials: set[tuple[str, str]]
    budget: SchemaBudget

    def import_all(self, operations: Sequence[Operation]) -> Iterator[ImportedTool]:
        """Yield the tool of each operation. Raises UsageError if there are too many schemas."""
        names = [(operation.title, operation.identity) for operation in operations]
        tool_slugs = slugs.make_slugs(self.toolkit["slug"], names)
        for operation, slug in zip(operations, tool_slugs, strict=True):
            tool = self.import_operation(operation, slug)
            if not self.document.faults:
                yield tool

    def import_operation(self, operation: Operation, slug: str) -> ImportedTool:
        """Return the tool of an operation."""
        losses = [*_operation_losses(operation)]
        if slug != slugs.plain_slug(self.toolkit["slug"], operation.title):
            kind = "a slug with a digest, because the plain one is too long or not unique"
            losses.append(Loss((), kind, operation.title))
        value: dict[str, Any] = self.read_texts(operation)
        security, lost = read_security(
            self.document, operation.definition, operation.pointer, self.no_auth
        )
        losses += lost
        value["tags"], lost = read_tags(self.document, operation)
        losses += lost
        value |= security
        if self.document.get(operation.definition, operation.pointer, "deprecated", bool):
            value["deprecation"] = {}
        value["source"] = operation.source
        for field in (INPUTS, OUTPUTS):
            value[field], lost = self.read_parameters(operation, field)
            losses += lost
        non_empty = {key: inner for key, inner in value.items() if inner or key == "deprecation"}
        return ImportedTool(slug=slug, value=non_empty, toolkit=self.toolkit, losses=tuple(losses))

    def read_texts(self, operation: Operation) -> dict[str, Any]:
        """Return the name and the description of an operation's tool."""
        definition, pointer = operation.definition, operation.pointer
        summary = self.document.get(definition, pointer, "summary", str).strip()
        text = self.document.get(definition, pointer, "description", str)
        words = slugs.to_snake_case(operation.title).replace("_", " ").capitalize()
        return {
            "name": summary or words or operation.identity,
            "description": text or summary,
        }

    def read_parameters(
        self, operation: Operation, field: str
    ) -> tuple[dict[str, Any], list[Loss]]:
        """Return the inputs or the outputs of an operation, and the losses."""
        normalizer = Normalizer(self.document.root)
        reader = OperationReader(self.document, operation, normalizer, self.credentials)
        schema = reader.read_inputs() if field == INPUTS else reader.read_outputs()
        described = {} if schema is None else convert_normalized(schema, field, normalizer)
        self.budget.charge(normalizer)
        return described, normalizer.losses


def _operation_losses(operation: Operation) -> Iterator[Loss]:
    """Yield what a tool's file cannot hold of an operation and its path item."""
    for key in operation.definition:
        if key not in _OPERATION_FIELDS:
            yield Loss((key,), f"`{key}` of an operation")
    for key in ("summary", "description", "servers"):
        if operation.path_item.get(key):
            yield Loss((key,), f"`{key}` of a path")
