"""The API reference: the operations of the OpenAPI document, with examples from the catalog."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from toolcatalog.exports import definitions
from toolcatalog.site import highlight

Document = Mapping[str, Any]
_ALIAS = "/api/v3.1"  # the same operations at another address
_FIELD_TEXTS = {  # of fields that the OpenAPI document does not describe
    "slug": "Unique name of the tool in capitals; for a toolkit, its unique name.",
    "name": "Display name.",
    "description": "Text for people and models, in Markdown.",
    "toolkit": "The toolkit that contains the tool.",
    "input_parameters": "Arguments of the tool by name.",
    "output_parameters": "Fields of the result by name.",
    "no_auth": "Whether the tool works without credentials.",
    "version": "Version of this definition.",
    "scopes": "Permissions that the credentials need.",
    "tags": "Subjects, and hints that end in `Hint`.",
    "is_deprecated": "Whether the tool is deprecated.",
    "deprecated": "Fields for clients of older versions of the API.",
    "items": "The results of this page.",
    "next_cursor": "Value of `cursor` for the next page; null on the last page.",
    "total_pages": "Number of pages.",
    "current_page": "Number of this page, from 1.",
    "total_items": "Number of results on all pages.",
    "type": "Type of the value; for a toolkit, where it comes from.",
    "enum": "The values that are allowed.",
    "examples": "Example values.",
    "required": "Whether the argument must be given.",
    "displayName": "Display name of the tool.",
    "available_versions": "All versions, oldest first.",
    "id": "Identifier of the category.",
    "is_local_toolkit": "Always false.",
    "auth_guide_url": "Always null.",
    "auth_schemes": "Always null.",
    "composio_managed_auth": "Always empty.",
    "composio_managed_auth_schemes": "Always empty.",
    "auth_config_details": "Always empty.",
    "base_url": "Always null.",
    "get_current_user_endpoint": "Always null.",
    "get_current_user_endpoint_method": "Always null.",
    "enabled": "Always true.",
    "meta": "Texts, categories, versions and the number of tools.",
    "app_url": "The homepage of the service.",
    "categories": "The categories of the toolkit, each with an id and a name.",
    "tools_count": "Number of tools.",
    "triggers_count": "Always 0.",
    "created_at": "Day of the oldest version.",
    "updated_at": "Day of this version.",
    "servers": "The MCP servers of this page.",
    "server": "The MCP server, in the format of `server.json`.",
    "_meta": "Status and dates of the server.",
    "metadata": "Number of servers on this page, and the cursor of the next one.",
    "error": "What went wrong, and how to fix it.",
}


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A request for an operation, by its path with a query, and the body of the response."""

    path: str
    body: Any


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with its example; `errors` has the statuses that are not a success."""

    id: str
    path: str
    summary: str
    description: str
    needs_key: bool
    parameters: Sequence[Document]
    success: Document
    errors: Sequence[str]
    example_path: str
    request: Markup
    response: Markup


def example_calls(tool: Document, sessions: Mapping[str, Document]) -> dict[str, ExampleCall]:
    """Return example calls by operation, from a tool as served and the responses of sessions."""
    page = {
        "items": [tool],
        "next_cursor": None,
        "total_pages": 1,
        "current_page": 1,
        "total_items": 1,
    }
    slug = tool["slug"]
    calls = {
        "getTool": ExampleCall(f"/api/v3/tools/{slug}", tool),
        "listTools": ExampleCall(f"/api/v3/tools?tool_slugs={slug}", page),
    }
    for session, response in sessions.items():
        path = f"/api/v3/tool_router/session/{session}/tools"
        return {**calls, "listSessionTools": ExampleCall(path, response)}
    return calls


def list_operations(
    document: Document, calls: Mapping[str, ExampleCall], api: str
) -> list[Operation]:
    """Return the operations of an OpenAPI document; `api` is the address of the API, or empty."""
    return [
        _make_operation(path, item["get"], calls, api)
        for path, item in document["paths"].items()
        if not path.startswith(_ALIAS)
    ]


def list_errors(document: Document) -> Iterator[tuple[str, str]]:
    """Yield status and description of each error of the operations, sorted by status."""
    responses = document["components"]["responses"]
    texts = {
        status: responses[response["$ref"].rpartition("/")[2]]["description"]
        for item in document["paths"].values()
        for status, response in item["get"]["responses"].items()
        if "$ref" in response
    }
    yield from sorted(texts.items())


def describe_field(name: str, schema: Document) -> str:
    """Return the description of a field of a schema."""
    return str(schema.get("description") or _FIELD_TEXTS.get(name, ""))


def _make_operation(
    path: str, operation: Document, calls: Mapping[str, ExampleCall], api: str
) -> Operation:
    call = calls.get(operation["operationId"], ExampleCall(path, None))
    needs_key = bool(operation.get("security"))
    return Operation(
        id=operation["operationId"],
        path=path,
        summary=operation["summary"],
        description=operation.get("description", ""),
        needs_key=needs_key,
        parameters=operation.get("parameters", []),
        success=operation["responses"]["200"],
        errors=[status for status in operation["responses"] if status != "200"],
        example_path="" if "{" in call.path else call.path,
        request=_render_request(call.path, needs_key, api),
        response=_render_response(call.body),
    )


def _render_request(path: str, needs_key: bool, api: str) -> Markup:
    key = f'-H "x-api-key: ${definitions.KEY_VARIABLE}" \\\n  ' if needs_key else ""
    text = f"curl {key}{definitions.shell_url(api.rstrip('/'), path)}"
    code = highlight.highlight_code(text)
    html = code if api else highlight.mark_address(code)
    return Markup(html)  # noqa: S704 - highlighting escapes


def _render_response(body: Any) -> Markup:
    html = highlight.highlight_json(body) if body is not None else ""
    return Markup(html)  # noqa: S704 - highlighting escapes
