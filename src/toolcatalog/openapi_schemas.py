"""The component schemas of the OpenAPI document: tools, toolkits, pages and errors."""

from typing import Any

from toolcatalog import names, versions
from toolcatalog.parameters import TYPES

JsonObject = dict[str, Any]

_STRING = {"type": "string"}
_LOGO = {"type": "string", "description": "The URL of an image, or an empty string."}
_STRING_LIST = {"type": "array", "items": _STRING}
_NULLABLE_STRING = {"type": ["string", "null"]}
_BOOLEAN = {"type": "boolean"}
_OBJECT_LIST = {"type": "array", "items": {"type": "object"}}
VERSION_SCHEMA = {"type": "string", "pattern": f"^({versions.PATTERN}|{versions.LATEST})$"}
OPTIONAL_VERSION_SCHEMA = {
    "type": "string",
    "pattern": f"^({versions.PATTERN}|{versions.LATEST})?$",
}
_EXACT_VERSION_SCHEMA = {"type": "string", "pattern": f"^{versions.PATTERN}$"}


def build_schemas() -> JsonObject:
    """Return the component schemas, by name."""
    parameter = {
        "type": {"type": "string", "enum": list(TYPES)},
        "description": _STRING,
        "enum": {"type": "array", "items": {}},
        "examples": {"type": "array", "items": {}},
    }
    toolkit = _object_schema({"slug": _STRING, "name": _STRING, "logo": _LOGO})
    tool = {
        "slug": {
            "type": "string",
            "pattern": f"^{names.TOOL_SLUG}$",
            "maxLength": names.MAX_LENGTH,
        },
        "name": _STRING,
        "description": _STRING,
        "toolkit": toolkit,
        "input_parameters": {"type": "object", "additionalProperties": _ref("InputParameter")},
        "output_parameters": {"type": "object", "additionalProperties": _ref("OutputParameter")},
        "no_auth": {"type": "boolean"},
        "available_versions": {
            "type": "array",
            "items": _EXACT_VERSION_SCHEMA,
            "description": "Oldest first.",
        },
        "version": _EXACT_VERSION_SCHEMA,
        "scopes": _STRING_LIST,
        "tags": _STRING_LIST,
        "is_deprecated": {"type": "boolean"},
        "deprecated": _ref("Deprecated"),
    }
    number = {"type": "integer", "minimum": 0}
    paging = {
        "next_cursor": {"type": ["string", "null"]},
        "total_pages": number,
        "current_page": {"type": "integer", "minimum": 1},
        "total_items": number,
    }
    items = {"type": "array", "items": _ref("Tool")}
    error = {
        "message": _STRING,
        "code": number,
        "slug": _STRING,
        "status": number,
        "request_id": _STRING,
        "suggested_fix": _STRING,
        "errors": _STRING_LIST,
    }
    category = {"name": _STRING}
    return {
        "Toolkit": _toolkit_schema(
            {"auth_schemes": {"type": ["array", "null"], "items": _STRING}, "no_auth": _BOOLEAN},
            _object_schema({"id": _STRING, **category}, additionalProperties=False),
        ),
        "ToolkitDetails": _toolkit_schema(
            {
                "enabled": _BOOLEAN,
                "composio_managed_auth": _OBJECT_LIST,
                "auth_config_details": _OBJECT_LIST,
                "base_url": _NULLABLE_STRING,
                "get_current_user_endpoint": _NULLABLE_STRING,
                "get_current_user_endpoint_method": _NULLABLE_STRING,
            },
            _object_schema({"slug": _STRING, **category}, additionalProperties=False),
            available_versions={"type": "array", "items": _EXACT_VERSION_SCHEMA},
        ),
        "Category": _object_schema({"id": _STRING, **category}, additionalProperties=False),
        "ToolkitPage": _object_schema(
            {"items": {"type": "array", "items": _ref("Toolkit")}, **paging},
            additionalProperties=False,
        ),
        "CategoryPage": _object_schema(
            {"items": {"type": "array", "items": _ref("Category")}, **paging},
            additionalProperties=False,
        ),
        "ToolSlugs": _STRING_LIST,
        "Server": _server_schema(),
        "ServerPage": _object_schema(
            {
                "servers": {"type": "array", "items": _ref("Server")},
                "metadata": _object_schema(
                    {"count": number, "nextCursor": _STRING},
                    "nextCursor",
                    additionalProperties=False,
                ),
            },
            additionalProperties=False,
        ),
        "Tool": _object_schema(tool, additionalProperties=False),
        "InputParameter": _object_schema(
            {**parameter, "required": {"type": "boolean"}}, "enum", "examples"
        ),
        "OutputParameter": _object_schema(
            parameter, "enum", "examples", **{"not": {"required": ["required"]}}
        ),
        "Deprecated": _object_schema(
            {
                "displayName": _STRING,
                "version": _EXACT_VERSION_SCHEMA,
                "available_versions": {"type": "array", "items": _EXACT_VERSION_SCHEMA},
                "is_deprecated": {"type": "boolean"},
                "toolkit": _object_schema({"logo": _LOGO}, additionalProperties=False),
            },
            additionalProperties=False,
        ),
        "ToolPage": _object_schema({"items": items, **paging}, additionalProperties=False),
        "SessionTools": _object_schema(
            {"items": items, **paging}, *paging, additionalProperties=False
        ),
        "Error": _object_schema(
            {"error": _object_schema(error, additionalProperties=False)}, additionalProperties=False
        ),
    }


def _server_schema() -> JsonObject:
    """Return the schema of an MCP server as registries describe it."""
    text = {"type": "string", "minLength": 1, "maxLength": 100}
    package = {
        "registryType": {"type": "string", "enum": ["npm", "pypi", "oci", "nuget"]},
        "identifier": _STRING,
        "version": _STRING,
        "transport": _object_schema({"type": {"const": "stdio"}}, additionalProperties=False),
    }
    remote = {"type": {"type": "string", "enum": ["streamable-http", "sse"]}, "url": _STRING}
    server = {
        "$schema": _STRING,
        "name": {
            "type": "string",
            "pattern": f"^{names.SERVER_NAME}$",
            "maxLength": names.MAX_LENGTH,
        },
        "title": text,
        "description": text,
        "version": _STRING,
        "websiteUrl": _STRING,
        "icons": {"type": "array", "items": _object_schema({"src": _STRING})},
        "packages": {
            "type": "array",
            "items": _object_schema(package, "version", additionalProperties=False),
        },
        "remotes": {"type": "array", "items": _object_schema(remote, additionalProperties=False)},
    }
    official = {
        "status": {"type": "string", "enum": ["active", "deprecated"]},
        "publishedAt": {"type": "string", "format": "date-time"},
        "updatedAt": {"type": "string", "format": "date-time"},
        "isLatest": {"const": True},
    }
    meta = {
        "io.modelcontextprotocol.registry/official": _object_schema(
            official, "publishedAt", "updatedAt", additionalProperties=False
        )
    }
    optional = ("websiteUrl", "icons", "packages", "remotes")
    return _object_schema(
        {
            "server": _object_schema(server, *optional, additionalProperties=False),
            "_meta": _object_schema(meta),
        },
        additionalProperties=False,
    )


def _toolkit_schema(extra: JsonObject, category: JsonObject, **extra_meta: Any) -> JsonObject:
    """Return the schema of a toolkit; `extra` and `extra_meta` are the fields of one operation."""
    number = {"type": "integer", "minimum": 0}
    time = {"type": "string", "description": "An RFC 3339 time; empty without a version."}
    meta = {
        "description": _STRING,
        "logo": _LOGO,
        "app_url": _NULLABLE_STRING,
        "categories": {"type": "array", "items": category},
        "tools_count": number,
        "triggers_count": number,
        "version": {"type": "string", "description": "Empty for a toolkit without tools."},
        "created_at": time,
        "updated_at": time,
        **extra_meta,
    }
    details = {
        "slug": _STRING,
        "name": _STRING,
        "type": {"type": "string", "enum": ["native", "custom"]},
        "is_local_toolkit": _BOOLEAN,
        "auth_guide_url": _NULLABLE_STRING,
        "composio_managed_auth_schemes": _STRING_LIST,
        "meta": _object_schema(meta, additionalProperties=False),
        "deprecated": _object_schema({"toolkitId": _STRING}),
        **extra,
    }
    return _object_schema(details, additionalProperties=False)


def _object_schema(properties: JsonObject, *optional: str, **keywords: Any) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        **keywords,
    }


def _ref(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}
