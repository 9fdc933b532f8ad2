"""The operations of an OpenAPI document to additions to a catalog, a tool for each. Pure.

Swagger 2.0, OpenAPI 3.0 and 3.1. References within the document are written out, and cut where they
would never end; nothing is fetched. What a document says wrongly stops the import, with its place;
what the catalog format cannot hold is told.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog import names, schema
from toolcatalog.errors import UsageError
from toolcatalog.formats import SCHEMAS
from toolcatalog.importers.additions import Addition, stop_at_many
from toolcatalog.importers.bodies import INPUTS, OUTPUTS, Body, answered, unfolded
from toolcatalog.importers.descriptions import parameters_of
from toolcatalog.importers.dialects import MOST, Loss, Reader
from toolcatalog.importers.documents import Source
from toolcatalog.importers.inputs import inputs
from toolcatalog.importers.operations import Operation, operations
from toolcatalog.importers.paper import Paper
from toolcatalog.importers.security import security
from toolcatalog.importers.slugs import slugs, words
from toolcatalog.source import Document, Place

_READ = re.compile(r"2\.0|3\.[01](\.[0-9]+)?(-.*)?")
_WHOLE = 1_000_000  # schemas that all references of a document may unfold to: a minute's work
# characters of a toolkit's slug that is made of a title, so that room is left for its tools
_LONGEST_KIT = 40
_NOISE = {
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
_OPERATION = (
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
_DOCUMENT = (
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


def additions(
    source: Source, toolkit: str = "", name: str = "", logo: str = ""
) -> Iterator[Addition]:
    """The tools of a document, one by one: there may be more than memory holds.

    They go to `toolkit`, which is called `name` and has `logo`; the document's title and `x-logo`
    stand in. Raises UsageError where the document is none, or is wrong: a sentence with its place
    for each of the first few faults.
    """
    _recognise(source)
    paper = Paper(source)
    kit = _toolkit(paper, toolkit, name, logo)
    found = operations(paper)
    if not found:
        paper.stop()
        raise UsageError(
            f"{source.name} describes no operation: there is nothing below `paths` to make a "
            "tool of."
        )
    stop_at_many(len(found), len(source.data))
    left = _WHOLE
    for operation, slug in zip(
        found, slugs(kit["slug"], [(one.title, one.identity) for one in found]), strict=True
    ):
        readers = [Reader(paper.root, left=min(MOST, left)) for _ in range(2)]
        made = _addition(paper, operation, slug, kit, *readers)
        if not paper.faults:
            yield made
        left -= sum(min(MOST, left) - reader.left for reader in readers)
        if left <= 0:
            raise UsageError(
                f"{source.name} unfolds to more than {_WHOLE:,} schemas: import a part of it "
                "at a time."
            )
    paper.stop()


def _recognise(source: Source) -> None:
    """Raise UsageError where a document is of no kind that is read here."""
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
    if not _READ.fullmatch(said[0]):
        raise UsageError(
            f"{source.name} is of version {said[0][:20]!r}: Swagger 2.0, OpenAPI 3.0 and "
            "OpenAPI 3.1 are read."
        )


def _toolkit(paper: Paper, slug: str, name: str, logo: str) -> dict[str, Any]:
    """What is known of the toolkit: its slug, fields of its file, and what these have no place for."""
    info = paper.held(paper.root, (), "info", dict)
    title = paper.held(info, ("info",), "title", str)
    made = slug or _kit_slug(title)
    if not made:
        raise UsageError(
            "The document has no title to name a toolkit by: say it with --toolkit SLUG."
        )
    _check_flags(name, logo)
    drawn, docs = info.get("x-logo"), paper.held(paper.root, (), "externalDocs", dict)
    homes = [docs.get("url"), paper.held(info, ("info",), "contact", dict).get("url")]
    fields = {
        "name": name or title.strip(),
        "logo": logo or (drawn.get("url") if isinstance(drawn, Mapping) else drawn),
        "description": paper.held(info, ("info",), "description", str),
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
        *_DOCUMENT,
        *SCHEMAS["toolkit"]["properties"],
        *(["externalDocs"] if fields["homepage"] == docs.get("url") else []),
    )
    rest |= {key: value for key, value in paper.root.items() if key not in taken}
    return {
        "slug": made,
        **{key: value for key, value in fields.items() if value},
        **{key: value for key, value in rest.items() if value},
    }


def _check_flags(name: str, logo: str) -> None:
    """Raise UsageError where a toolkit cannot have this name or logo: what somebody asks for is not
    left out with a note.
    """
    asked = {"name": name or "A", "logo": logo or "https://example.com"}
    _, findings = schema.record(
        Document("toolkit.yaml", Place("toolkit", {"toolkit": "a"}), asked, True)
    )
    for finding in findings[:1]:
        raise UsageError(
            f"--{finding.pointer[0]}: {finding.message}; give {finding.expected or 'another one'}."
        )


def _kit_slug(title: str) -> str:
    """The slug of a toolkit by the title of its document, without the words that every such title
    has: `Slack Web API` is `slack`.
    """
    said = words(title).split("_")
    telling = [
        word for word in said if word not in _NOISE and not re.fullmatch("v?[0-9]+", word)
    ] or said
    slug = "_".join(telling)[:_LONGEST_KIT].strip("_")
    return slug if names.fits(names.TOOLKIT_SLUG, slug) else ""


def _addition(
    paper: Paper,
    operation: Operation,
    slug: str,
    kit: dict[str, Any],
    asked: Reader,
    answer: Reader,
) -> Addition:
    said, at = operation.said, operation.at
    summary, text = (
        paper.held(said, at, "summary", str).strip(),
        paper.held(said, at, "description", str),
    )
    asks, lost = security(paper, said, at)
    given = parameters_of(inputs(paper, operation, asked), INPUTS, asked)
    schema = answered(paper, operation, answer)
    got = (
        parameters_of(unfolded(answer, Body(schema), OUTPUTS, "result"), OUTPUTS, answer)
        if schema is not None
        else {}
    )
    tags = [*dict.fromkeys([*paper.texts(said, at, "tags"), *operation.hints])]
    value: dict[str, Any] = {
        "name": summary
        or words(operation.title).replace("_", " ").capitalize()
        or operation.identity,
        "description": text or summary,
        "scopes": asks.get("scopes"),
        "tags": tags,
        "no_auth": asks.get("no_auth"),
        "deprecation": {} if paper.held(said, at, "deprecated", bool) else None,
        "input_parameters": given,
        "output_parameters": got,
    }
    kept = {
        key: inner
        for key, inner in value.items()
        if inner or (key == "deprecation" and inner is not None)
    }
    losses = [*_untaken(operation, slug), *lost, *asked.losses, *answer.losses]
    return Addition(slug=slug, value=kept, toolkit=kit, losses=tuple(losses))


def _untaken(operation: Operation, slug: str) -> Iterator[Loss]:
    """What of an operation, and of the path around it, has no place in a tool's file."""
    yield Loss((), "method and path of an operation", operation.identity)
    if not slug.endswith(words(operation.title).upper()):
        yield Loss(
            (),
            "a slug with a digest, for the plain one would be too long or another's too",
            operation.title,
        )
    for key in operation.said:
        if key not in _OPERATION:
            yield Loss((key,), f"`{key}` of an operation")
    for key in ("summary", "description", "servers"):
        if operation.item.get(key):
            yield Loss((key,), f"`{key}` of a path")
