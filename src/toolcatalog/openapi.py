"""The OpenAPI 3.1 document of the read API, as data."""

from typing import Any

from toolcatalog import __version__, names
from toolcatalog.openapi_schemas import (
    OPTIONAL_VERSION_SCHEMA,
    VERSION_SCHEMA,
    JsonObject,
    build_schemas,
)

API_PREFIXES = ("/api/v3", "/api/v3.1")
# the API of MCP registries
SERVERS_PATH = "/v0.1/servers"
SERVER_VERSIONS_PATH = f"{SERVERS_PATH}/{{server_name}}/versions"
SERVER_PATH = f"{SERVER_VERSIONS_PATH}/{{version}}"

_ERRORS = {
    "400": (
        "Invalid",
        "A parameter, cursor, slug or body is malformed; `errors` has a line for each problem.",
    ),
    "401": ("Unauthorized", "`x-api-key` is missing, unknown, expired or revoked."),
    "403": (
        "Forbidden",
        "The key's project may not use the toolkit asked for, or does not own the session.",
    ),
    "404": (
        "NotFound",
        "There is no such tool, version, toolkit, auth config, session or MCP server.",
    ),
    "429": ("RateLimited", "Too many requests; `Retry-After` has the seconds until the next try."),
    "500": (
        "InternalError",
        "An internal error; the log of the server has the traceback under the request id.",
    ),
    "503": ("NotReady", "No snapshot is open yet, or the server shuts down: ask another one."),
}


def build_document(root_path: str = "") -> JsonObject:
    """Return the whole document, of an API below a root path such as `/catalog`."""
    paths: JsonObject = {}
    for prefix in API_PREFIXES:
        alias = "" if prefix == API_PREFIXES[0] else "_v3_1"
        paths[f"{prefix}/tools/{{tool_slug}}"] = {"get": _get_tool(alias)}
        paths[f"{prefix}/tools"] = {"get": _list_tools(alias)}
        paths[f"{prefix}/tools/enum"] = {"get": _list_slugs(alias)}
        paths[f"{prefix}/toolkits"] = {"get": _list_toolkits(alias)}
        paths[f"{prefix}/toolkits/categories"] = {"get": _list_categories(alias)}
        paths[f"{prefix}/toolkits/{{toolkit_slug}}"] = {"get": _get_toolkit(alias)}
        paths[f"{prefix}/tool_router/session/{{session_id}}/tools"] = {"get": _session_tools(alias)}
    paths[SERVERS_PATH] = {"get": _list_servers()}
    paths[SERVER_VERSIONS_PATH] = {"get": _list_server_versions()}
    paths[SERVER_PATH] = {"get": _get_server()}
    for path, summary, *errors in (
        ("/healthz", "Liveness probe"),
        ("/readyz", "Readiness probe", "503"),
        ("/openapi.json", "This document"),
    ):
        paths[path] = {"get": _public_operation(path, summary, *errors)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tool Catalog",
            "version": __version__,
            "description": (
                "A read-only catalog of tools for AI agents. `/api/v3.1` answers as `/api/v3`."
                " Every operation answers HEAD, and 304 to a matching `If-None-Match`."
            ),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": root_path or "/"}],
        "tags": [
            {"name": "Tools"},
            {"name": "Toolkits"},
            {"name": "Tool router"},
            {"name": "MCP registry"},
            {"name": "Service"},
        ],
        "paths": paths,
        "components": {
            "schemas": build_schemas(),
            "responses": {
                name: _error_response(status, summary)
                for status, (name, summary) in _ERRORS.items()
            },
            "headers": {
                "RequestId": {
                    "description": (
                        "The id of the request: the caller's own `X-Request-Id` if it is valid."
                    ),
                    "schema": {"type": "string"},
                },
                "CatalogSnapshot": {
                    "description": "The digest of the snapshot that the answer comes from.",
                    "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                },
            },
            "securitySchemes": {
                "ProjectKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "A project API key.",
                }
            },
        },
    }


def _operation(
    id: str,
    tag: str,
    summary: str,
    description: str,
    parameters: list[JsonObject],
    schema_name: str,
    errors: tuple[str, ...],
    headers: tuple[str, ...] = (),
    **extra: Any,
) -> JsonObject:
    ok = {
        "description": "Success.",
        "headers": _header_refs("ETag", *headers),
        "content": _json_content({"$ref": f"#/components/schemas/{schema_name}"}),
    }
    error_responses = {
        status: {"$ref": f"#/components/responses/{_ERRORS[status][0]}"} for status in errors
    }
    summary_fields = {
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        "description": description,
    }
    return {
        **summary_fields,
        "security": [{"ProjectKey": []}],
        "parameters": parameters,
        **extra,
        "responses": {"200": ok, **error_responses},
    }


def _get_tool(alias: str) -> JsonObject:
    parameters = [
        _path_parameter(
            "tool_slug",
            "The tool's slug.",
            names.TOOL_SLUG,
            "GITHUB_CREATE_ISSUE",
            maxLength=names.MAX_LENGTH,
        ),
        _query_parameter(
            "version",
            "The version to return; `latest` or nothing for the newest.",
            VERSION_SCHEMA,
            example="20251027_00",
        ),
        _TOOLKIT_VERSIONS,
    ]
    description = "All of one tool: inputs, outputs, versions, toolkit."
    return _operation(
        f"getTool{alias}",
        "Tools",
        "Get tool by slug",
        description,
        parameters,
        "Tool",
        ("400", "401", "404", "500"),
    )


def _list_tools(alias: str) -> JsonObject:
    string_list = {"type": "array", "items": {"type": "string"}}  # empty items are ignored
    parameters = [
        _query_parameter(
            "toolkit_slug",
            "One toolkit, or several separated by commas.",
            {"type": "string"},
            example="github",
        ),
        _query_parameter(
            "tool_slugs",
            "Exactly these tools, comma-separated, in this order; other filters are ignored.",
            {"type": "string"},
        ),
        _query_parameter(
            "auth_config_ids",
            "Tools usable with any of these auth configs.",
            string_list,
            explode=False,
        ),
        _query_parameter(
            "important",
            "`true`: only tools that carry the tag `important`.",
            {"type": "string", "enum": ["true", "false"]},
        ),
        _query_parameter(
            "tags",
            "Tools with at least one of these tags. Comma-separated or repeated.",
            string_list,
            explode=False,
        ),
        _query_parameter(
            "scopes", "Tools that list at least one of these scopes.", string_list, explode=False
        ),
        _query_parameter(
            "query",
            "A sentence, words, or a slug: tools that share a word with it, best first.",
            {"type": "string", "maxLength": 4000},
        ),
        _query_parameter(
            "search",
            "Older spelling of `query`.",
            {"type": "string", "maxLength": 4000},
            deprecated=True,
        ),
        _query_parameter(
            "include_deprecated",
            "Whether deprecated tools are included.",
            {"type": "boolean", "default": True},
        ),
        _TOOLKIT_VERSIONS,
        *_PAGE_PARAMETERS,
        _query_parameter(
            "sort_by",
            "`relevance` if there is a `query`, else `slug`.",
            {"type": "string", "enum": ["relevance", "slug", "name", "version"]},
        ),
        _query_parameter(
            "order",
            "`desc` for relevance and version, else `asc`.",
            {"type": "string", "enum": ["asc", "desc"]},
        ),
    ]
    description = "Tools by page, filtered, searched and sorted."
    errors = ("400", "401", "403", "404", "429", "500")
    return _operation(
        f"listTools{alias}",
        "Tools",
        "List available tools",
        description,
        parameters,
        "ToolPage",
        errors,
        ("X-Suggested-Query", *_RATE_LIMIT_HEADERS),
    )


def _list_slugs(alias: str) -> JsonObject:
    return _operation(
        f"listToolSlugs{alias}",
        "Tools",
        "List the slugs of all tools",
        "The slugs of all tools in one array, sorted.",
        [],
        "ToolSlugs",
        ("401", "429", "500"),
        _RATE_LIMIT_HEADERS,
    )


def _list_toolkits(alias: str) -> JsonObject:
    parameters = [
        _query_parameter(
            "category",
            "Toolkits of this category, by its id.",
            {"type": "string"},
            example="developer-tools",
        ),
        _query_parameter(
            "search",
            "Words that all occur in the slug, name or description.",
            {"type": "string", "maxLength": 4000},
        ),
        _query_parameter(
            "sort_by",
            "`alphabetically` by name, or `usage`: most tools first.",
            {"type": "string", "enum": ["usage", "alphabetically"], "default": "alphabetically"},
        ),
        _query_parameter(
            "include_deprecated",
            "Whether toolkits whose tools are all deprecated are included.",
            {"type": "boolean", "default": True},
        ),
        _query_parameter(
            "managed_by",
            "`project` matches nothing, because a catalog has no toolkits of a project.",
            {"type": "string", "enum": ["composio", "all", "project"]},
        ),
        _query_parameter(
            "type",
            "`custom` matches nothing, because all toolkits of a catalog are native.",
            {"type": "string", "enum": ["native", "custom", "all"]},
        ),
        *_PAGE_PARAMETERS,
    ]
    return _operation(
        f"listToolkits{alias}",
        "Toolkits",
        "List toolkits",
        "Toolkits by page, filtered and sorted.",
        parameters,
        "ToolkitPage",
        ("400", "401", "429", "500"),
        _RATE_LIMIT_HEADERS,
    )


def _list_categories(alias: str) -> JsonObject:
    return _operation(
        f"listToolkitCategories{alias}",
        "Toolkits",
        "List the categories of toolkits",
        "The categories of all toolkits by page, sorted by id.",
        [*_PAGE_PARAMETERS],
        "CategoryPage",
        ("400", "401", "429", "500"),
        _RATE_LIMIT_HEADERS,
    )


def _get_toolkit(alias: str) -> JsonObject:
    parameters = [
        _path_parameter(
            "toolkit_slug",
            "The toolkit's slug.",
            names.TOOLKIT_SLUG,
            "github",
            maxLength=names.MAX_LENGTH,
        ),
        _query_parameter(
            "version",
            "The version to describe; `latest` or nothing for the newest.",
            VERSION_SCHEMA,
        ),
    ]
    return _operation(
        f"getToolkit{alias}",
        "Toolkits",
        "Get toolkit by slug",
        "All of one toolkit: texts, categories, versions, number of tools.",
        parameters,
        "ToolkitDetails",
        ("400", "401", "404", "500"),
    )


def _list_servers() -> JsonObject:
    parameters = [
        _query_parameter(
            "search",
            "A part of the name, in any case.",
            {"type": "string", "maxLength": 4000},
            example="github",
        ),
        _query_parameter(
            "version",
            "`latest`, or servers with exactly this version.",
            {"type": "string"},
            example="latest",
        ),
        _query_parameter(
            "updated_since",
            "Servers whose toolkit has a version of this time or later.",
            {"type": "string", "format": "date-time"},
            example="2025-10-27T00:00:00Z",
        ),
        _PAGE_PARAMETERS[0],
        _query_parameter(
            "cursor",
            "`nextCursor` of the page before; its page size wins over `limit`.",
            {"type": "string"},
        ),
    ]
    return _operation(
        "listServers",
        "MCP registry",
        "List MCP servers",
        "The MCP servers that toolkits name, by page, sorted by name.",
        parameters,
        "ServerPage",
        ("400", "401", "429", "500"),
        _RATE_LIMIT_HEADERS,
    )


def _list_server_versions() -> JsonObject:
    return _operation(
        "listServerVersions",
        "MCP registry",
        "List the versions of an MCP server",
        "The one version that the catalog has of a server, as a list.",
        [_SERVER_NAME],
        "ServerPage",
        ("401", "404", "500"),
    )


def _get_server() -> JsonObject:
    version = {
        "name": "version",
        "in": "path",
        "required": True,
        "description": "`latest`, or the version of the server.",
        "example": "latest",
        "schema": {"type": "string", "pattern": "^[^/]+$"},
    }
    return _operation(
        "getServer",
        "MCP registry",
        "Get MCP server by name and version",
        "One MCP server, as in the list.",
        [_SERVER_NAME, version],
        "Server",
        ("401", "404", "500"),
    )


def _session_tools(alias: str) -> JsonObject:
    parameters = [
        _path_parameter(
            "session_id",
            "The session's id.",
            names.SESSION_ID,
            "trs_playground",
            format="toolRouterSessionId",
            maxLength=names.MAX_LENGTH,
        ),
        _query_parameter(
            "limit",
            "Items on a page; all of them without this and `cursor`.",
            {"type": "integer", "minimum": 1},
        ),
        _query_parameter("cursor", "`next_cursor` of the page before.", {"type": "string"}),
    ]
    body = {
        "required": False,
        "content": _json_content({"type": "object"}),
        "description": "An optional JSON object of at most 64 KiB; its fields are ignored.",
    }
    description = "The meta tools of a session, their schemas filled in for it."
    errors = ("400", "401", "403", "404", "500")
    summary = "List meta tools for a tool router session"
    return _operation(
        f"listSessionTools{alias}",
        "Tool router",
        summary,
        description,
        parameters,
        "SessionTools",
        errors,
        requestBody=body,
    )


def _public_operation(path: str, summary: str, *errors: str) -> JsonObject:
    ok = {
        "description": summary,
        "headers": _header_refs("ETag"),
        "content": _json_content({"type": "object"}),
    }
    error_responses = {
        status: {"$ref": f"#/components/responses/{_ERRORS[status][0]}"}
        for status in (*errors, "500")
    }
    return {
        "operationId": path.strip("/").partition(".")[0],
        "tags": ["Service"],
        "summary": summary,
        "security": [],
        "responses": {"200": ok, **dict(sorted(error_responses.items()))},
    }


def _path_parameter(
    name: str, description: str, pattern: str, example: str, **keywords: Any
) -> JsonObject:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "example": example,
        "schema": {"type": "string", "pattern": f"^{pattern}$", **keywords},
    }


def _query_parameter(
    name: str, description: str, schema: JsonObject, **keywords: Any
) -> JsonObject:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "allowEmptyValue": True,
        "description": description,
        "schema": schema,
        **keywords,
    }


def _json_content(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


def _header_refs(*header_names: str) -> JsonObject:
    components = {"X-Request-Id": "RequestId", "X-Catalog-Snapshot": "CatalogSnapshot"}
    refs: JsonObject = {
        name: {"$ref": f"#/components/headers/{component}"}
        for name, component in components.items()
    }
    return refs | {name: {"schema": {"type": "string"}} for name in header_names}


def _error_response(status: str, description: str) -> JsonObject:
    headers = (
        _header_refs("Retry-After", *_RATE_LIMIT_HEADERS) if status == "429" else _header_refs()
    )
    return {
        "description": description,
        "headers": headers,
        "content": _json_content({"$ref": "#/components/schemas/Error"}),
    }


_RATE_LIMIT_HEADERS = ("RateLimit", "RateLimit-Policy")  # of rate-limited lists
_PAGE_PARAMETERS = (
    _query_parameter(
        "limit",
        "Items on a page; more than 1000 counts as 1000.",
        {"type": "integer", "minimum": 1, "default": 20},
    ),
    _query_parameter(
        "cursor",
        "`next_cursor` of the page before; its page size wins over `limit`.",
        {"type": "string"},
    ),
)
_SERVER_NAME = _path_parameter(
    "server_name",
    "The server's name; its slash can be sent as `%2F`.",
    names.SERVER_NAME,
    "com.example/mail",
    maxLength=names.MAX_LENGTH,
)
_TOOLKIT_VERSIONS = {
    "name": "toolkit_versions",
    "in": "query",
    "required": False,
    "allowEmptyValue": True,
    "description": (
        "`latest`, a version for every toolkit, or `toolkit_versions[github]=20251027_00`,"
        " repeatable over toolkits: each tool's newest version that is not newer."
    ),
    "style": "deepObject",
    "explode": True,
    "schema": {
        "oneOf": [
            VERSION_SCHEMA,
            {"type": "object", "additionalProperties": OPTIONAL_VERSION_SCHEMA},
        ]
    },
}
