"""JSON Schemas of the catalog's files, and the schema comments that editors use.

Editors show the `description` of a field, and error messages use it as the expected value. The
three shapes of a parameter description differ only in `required`: a named input may have it; an
unnamed value (`items`, a branch) and an output may not.

The site publishes the schemas as `schemas/v1/<kind>.json`. A new catalog has them in
`.schemas/v1/<kind>.json`, and new files name their schema by a relative path, so that completion
works offline. In a catalog without that folder they name the published one. A schema that rejects a
file which an older one accepted goes to a new folder, `v2`, and the old ones stay.
"""

import json
from collections.abc import Iterator
from typing import Any

from toolcatalog import names, versions
from toolcatalog.parameters import TYPES

Schema = dict[str, Any]
HTTP_METHODS = ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE")
# items of one list of tags, scopes etc.: each tag and each scope has a page of its own
MAX_WORDS = 100
# characters: the memory of a pattern matcher grows with the square of the length, and a matcher
# that runs out of memory ends the process
MAX_PATTERN_LENGTH = 1000


def _string(description: str, **keywords: Any) -> Schema:
    return {"type": "string", "description": description, **keywords}


def _object(properties: Schema, *required: str, **keywords: Any) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **keywords,
    }


def _list(items: Schema, description: str, **keywords: Any) -> Schema:
    return {
        "type": "array",
        "items": items,
        "uniqueItems": True,
        "description": description,
        **keywords,
    }


def _word_list(noun: str) -> Schema:
    return _list(_WORD, f"a list of at most {MAX_WORDS} {noun}", maxItems=MAX_WORDS)


def _map(values: Schema, description: str) -> Schema:
    return {"type": "object", "additionalProperties": values, "description": description}


def _anchored(pattern: str) -> str:
    return f"^{pattern}$"


_LINE = {"pattern": r"\S", "maxLength": names.MAX_LENGTH}
_WORD = _string(
    "a name of at most 200 characters, without commas, line breaks or white space at its ends",
    pattern=r"^[^\s,]([^,\r\n]*[^\s,])?$",
    maxLength=names.MAX_LENGTH,
)
_MAX_URL_LENGTH = 2000
_URL = _string("an https URL", pattern=r"^https://[^\s\"'<>]+$", maxLength=_MAX_URL_LENGTH)
_MAX_LINKS = 50
_DATE = _string(
    "a date as YYYY-MM-DD",
    pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$",
    examples=["2025-10-27"],
)
_VERSION = _string("a version: eight digits, `_`, two digits", pattern=_anchored(versions.PATTERN))
_RELEASE = _string(
    "a version such as 1.2.0, and not a range",
    pattern=r"^v?[0-9][0-9A-Za-z.+_-]*$",
    maxLength=40,
    examples=["1.2.0"],
)
_TOOLKIT = _string(
    "a toolkit slug: lower-case letters, digits, `_` and `-`",
    pattern=_anchored(names.TOOLKIT_SLUG),
    maxLength=names.MAX_LENGTH,
)
_TOOL = _string(
    "a tool slug: capital letters, digits, `_` and `-`",
    pattern=_anchored(names.TOOL_SLUG),
    maxLength=names.MAX_LENGTH,
)
_AUTH_CONFIG = _string(
    "an auth config id: `ac_` and then letters, digits, `_` and `-`",
    pattern=_anchored(names.AUTH_CONFIG_ID),
)


def _number(meaning: str) -> Schema:
    return {"type": "number", "description": f"a number: {meaning}"}


def _whole_number(meaning: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": f"a whole number, 0 or more: {meaning}"}


def _description(nested: str, unnamed: str, required: bool) -> Schema:
    fields: Schema = {
        "type": {"enum": list(TYPES), "description": "one of " + ", ".join(TYPES)},
        "description": _string("what the value means and what a good one is"),
        "examples": {
            "type": "array",
            "items": {"description": "a sample value"},
            "description": "a list of sample values",
        },
        "enum": {
            "type": "array",
            "items": {"description": "an allowed value"},
            "minItems": 1,
            "uniqueItems": True,
            "description": "a list of all allowed values",
        },
        "title": _string("a display name"),
        "default": {"description": "the value used if none is given"},
        "format": _string(
            "a format name such as date-time, email or uri",
            examples=["date-time", "date", "email", "uri", "uuid"],
        ),
        "pattern": _string(
            "a regular expression, of at most 1,000 characters, that the text must match",
            maxLength=MAX_PATTERN_LENGTH,
        ),
        "minimum": _number("the smallest allowed value"),
        "maximum": _number("the largest allowed value"),
        "exclusiveMinimum": _number("the exclusive lower bound"),
        "exclusiveMaximum": _number("the exclusive upper bound"),
        "minLength": _whole_number("the minimum number of characters"),
        "maxLength": _whole_number("the maximum number of characters"),
        "minItems": _whole_number("the minimum number of items"),
        "maxItems": _whole_number("the maximum number of items"),
        "uniqueItems": {
            "type": "boolean",
            "description": "true or false: whether items must be unique",
            "default": False,
        },
        "nullable": {
            "type": "boolean",
            "description": "true or false: whether null is allowed too",
            "default": False,
        },
        "properties": {
            "$ref": f"#/$defs/{nested}s",
            "description": "the fields of an object: a mapping of names to descriptions",
        },
        "items": {
            "$ref": f"#/$defs/{unnamed}",
            "description": "what each item of an array is: a description",
        },
        "additionalProperties": {
            "type": ["boolean", "object"],
            "description": "true, false or a description of the values",
            "if": {"type": "object"},
            "then": {"$ref": f"#/$defs/{unnamed}"},
        },
        "anyOf": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": f"#/$defs/{unnamed}"},
            "description": "a list of descriptions, of which the value fits at least one",
        },
        "oneOf": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": f"#/$defs/{unnamed}"},
            "description": "a list of descriptions, of which the value fits exactly one",
        },
    }
    if required:
        fields["required"] = {
            "type": "boolean",
            "description": "true or false: whether the caller must supply it",
            "default": False,
        }
    typed = {
        "if": {"not": {"anyOf": [{"required": ["anyOf"]}, {"required": ["oneOf"]}]}},
        "then": {"required": ["type"]},
    }
    return {
        **_object(fields),
        **typed,
        "description": "a description: a mapping with at least a `type`",
    }


def _parameter_map(description: str) -> Schema:
    snippet = {"type": "${2:string}", "description": "${3:What it means and what a good one is.}"}
    if description == "input":
        snippet |= {"required": "${4:true}"}
    return {
        "type": "object",
        "propertyNames": {
            "minLength": 1,
            "maxLength": names.MAX_LENGTH,
            "description": "a name of 1 to 200 characters",
        },
        "additionalProperties": {"$ref": f"#/$defs/{description}"},
        "description": "a mapping of parameter names to descriptions",
        # for editors; validators ignore it
        "defaultSnippets": [{"label": f"a new {description}", "body": {"${1:name}": snippet}}],
    }


_DEFS = {
    "inputs": _parameter_map("input"),
    "input": _description("input", "value", required=True),
    "value": _description("input", "value", required=False),
    "outputs": _parameter_map("output"),
    "output": _description("output", "output", required=False),
}

_TOOL_FIELDS: Schema = {
    "name": _string("the tool's display name, at most 200 characters", **_LINE),
    "description": _string("what the tool does, when to use it and when not"),
    "scopes": _word_list("scopes, which the tool needs"),
    "tags": _word_list(
        "labels; `important` features the tool, hints such as `readOnlyHint` are ordinary tags"
    ),
    "no_auth": {
        "type": "boolean",
        "description": "true or false; default: that of the toolkit",
    },
    "deprecation": _object(
        {
            "reason": _string("why the tool is deprecated"),
            "since": {**_DATE, "description": "a date as YYYY-MM-DD: deprecated since then"},
            "sunset": {
                **_DATE,
                "description": "a date as YYYY-MM-DD: the tool may be gone from then on",
            },
            "replaced_by": {
                **_TOOL,
                "description": (
                    "a tool slug: capital letters, digits, `_` and `-`; the tool to use instead"
                ),
            },
        },
        description=(
            "a mapping with any of reason, since, sunset, replaced_by; `{}` if there is nothing "
            "to say"
        ),
    ),
    "source": _object(
        {
            "method": {"enum": list(HTTP_METHODS), "description": "an HTTP method in capitals"},
            "path": _string(
                "the path of the operation: `/`, then at most 2,000 characters without white "
                'space, `"`, `<` and `>`',
                pattern=r"^/[^\s\"<>]*$",
                maxLength=_MAX_URL_LENGTH,
            ),
        },
        "method",
        "path",
        description="a mapping of `method` and `path`: the HTTP operation that the tool calls",
    ),
    "input_parameters": {
        "$ref": "#/$defs/inputs",
        "description": "the inputs of the tool: a mapping of parameter names to descriptions",
    },
    "output_parameters": {
        "$ref": "#/$defs/outputs",
        "description": "the outputs of the tool: a mapping of parameter names to descriptions",
    },
}
_MCP_SERVER = _object(
    {
        "name": _string(
            "a name in reverse-DNS form, such as com.example/mail",
            pattern=_anchored(names.SERVER_NAME),
            minLength=3,
            maxLength=names.MAX_LENGTH,
            examples=["com.example/mail"],
        ),
        "version": _RELEASE,
        "url": {**_URL, "description": "the https URL of the server"},
        "transport": {
            "enum": ["streamable-http", "sse"],
            "description": "streamable-http (default) or sse: how the server at `url` is reached",
            "default": "streamable-http",
        },
        "package": _object(
            {
                "registry": {
                    "enum": ["npm", "pypi", "oci", "nuget"],
                    "description": "npm, pypi, oci or nuget: where the package is published",
                },
                "identifier": _string(
                    "the name of the package, or of the image with its tag, of letters, digits "
                    "and @ . _ / : -",
                    pattern="^[A-Za-z0-9@][A-Za-z0-9@._/:-]*$",
                ),
                "version": {
                    **_RELEASE,
                    "description": "the version of the package, if it is not that of the server",
                },
            },
            "registry",
            "identifier",
            description="a mapping of `registry` and `identifier`: the package with the server",
        ),
    },
    "name",
    "version",
    description="a mapping of `name`, `version` and `url` or `package`: the toolkit's MCP server",
)
_SEVERITY = {
    "enum": ["error", "warning", "note", "off"],
    "description": "error, warning, note or off",
}
_WHEN = {
    "enum": ["manage_connections"],
    "description": "`manage_connections`: only in sessions that enable it",
}


def _selection(items: Schema, noun: str) -> Schema:
    fields = {
        "enable": _list(items, f"a list of the only {noun} to take"),
        "disable": _list(items, f"a list of {noun} to leave out"),
    }
    return _object(
        fields, description=f"a mapping with `enable` or `disable`, each a list of {noun}"
    )


_NOT_BOTH = {"not": {"type": "object", "required": ["enable", "disable"]}}
_TAGS = _selection(_WORD, "tags")
_SESSION_TOOLS = _selection(_TOOL, "tools")
_SESSION_TOOLS = {
    **_SESSION_TOOLS,
    "properties": {**_SESSION_TOOLS["properties"], "tags": _TAGS},
    "maxProperties": 1,
}

SCHEMAS: dict[str, Schema] = {
    "catalog": _object(
        {
            "title": _string("the catalog's name, at most 200 characters", **_LINE),
            "description": _string("what this catalog is"),
            "home": {**_URL, "description": "the https URL at which the site is published"},
            "repository": {
                **_URL,
                "description": "the https URL of the repository that this catalog is edited in",
            },
            "api": {**_URL, "description": "the https URL of the API, for requests on the site"},
            "headline": _string(
                "the large heading of the home page, at most 200 characters", **_LINE
            ),
            "accent": _string(
                "the color of links and buttons of the site, as six hexadecimal digits after `#`",
                pattern="^#[0-9A-Fa-f]{6}$",
                examples=["#0a6146"],
            ),
            "links": {
                **_map(
                    _URL, "a mapping of at most 50 texts to https URLs, for the end of each page"
                ),
                "propertyNames": {
                    "maxLength": names.MAX_LENGTH,
                    "description": "a text of at most 200 characters",
                },
                "maxProperties": _MAX_LINKS,
            },
            "rules": _map(_SEVERITY, "a mapping of lint rules to error, warning, note or off"),
        },
        "title",
    ),
    "toolkit": _object(
        {
            "name": _string("the toolkit's display name, at most 200 characters", **_LINE),
            "logo": {**_URL, "description": "the https URL of an image"},
            "description": _string("what the toolkit reaches"),
            "categories": _word_list("categories"),
            "no_auth": {
                "type": "boolean",
                "description": "true or false: whether its tools need no authentication",
                "default": False,
            },
            "homepage": {**_URL, "description": "the https URL of the product's own site"},
            "owners": _word_list("people or teams, who answer for it"),
            "mcp_server": _MCP_SERVER,
        },
        "name",
    ),
    "tool": _object(_TOOL_FIELDS, "name", "description", **{"$defs": _DEFS}),
    "meta_tool": _object(
        {**_TOOL_FIELDS, "when": _WHEN}, "name", "description", **{"$defs": _DEFS}
    ),
    "auth_config": _object(
        {
            "toolkit": _TOOLKIT,
            "tools": _list(_TOOL, "a list of the only tools that these credentials may use"),
            "scopes": _list(
                _WORD,
                "a list of the scopes granted: only tools whose scopes are all granted are usable",
            ),
        },
        "toolkit",
    ),
    "session": _object(
        {
            "project": _string(
                "the project that owns the session, at most 200 characters", **_LINE
            ),
            "user_id": _string(
                "the user that the session acts for, at most 200 characters", **_LINE
            ),
            "toolkits": {**_selection(_TOOLKIT, "toolkits"), **_NOT_BOTH},
            "tools": _map(
                _SESSION_TOOLS,
                "a mapping of toolkits to {enable: [...]}, {disable: [...]} or {tags: ...}",
            ),
            "tags": _TAGS,
            "auth_configs": _map(_AUTH_CONFIG, "a mapping of toolkits to auth config ids"),
            "toolkit_versions": _map(_VERSION, "a mapping of toolkits to versions"),
            "manage_connections": _object(
                {"enable": {"type": "boolean", "description": "true or false"}},
                "enable",
                description="a mapping: `{enable: true}` or `{enable: false}`",
            ),
            "meta_tools": _list(_TOOL, "a list of the meta tools to offer, in order"),
        }
    ),
}
for _kind, _schema in SCHEMAS.items():
    _schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _schema["description"] = "a mapping of " + ", ".join(_schema["properties"])
    _schema["title"] = f"toolcatalog {_kind.replace('_', ' ')} file"


SCHEMA_FOLDER = ".schemas"  # hidden, so its files are not part of the catalog
SCHEMA_VERSION = "v1"
SCHEMA_FILES = frozenset(f"{kind}.json" for kind in SCHEMAS)


def schema_paths() -> Iterator[tuple[str, str]]:
    """Yield each kind of file with the path of its schema on the site."""
    return ((kind, f"schemas/{SCHEMA_VERSION}/{kind}.json") for kind in SCHEMAS)


def render_schema(kind: str) -> bytes:
    """Generate the JSON Schema (2020-12) of a kind of file, as indented JSON in UTF-8."""
    head = {"$schema": SCHEMAS[kind]["$schema"], "title": SCHEMAS[kind]["title"]}
    return json.dumps({**head, **SCHEMAS[kind]}, indent=2, ensure_ascii=False).encode() + b"\n"


def catalog_schema_path(kind: str) -> str:
    """Return the path, within a catalog, of the schema of a kind of file."""
    return f"{SCHEMA_FOLDER}/{SCHEMA_VERSION}/{kind}.json"


def relative_schema_path(kind: str, path: str) -> str:
    """Return the path of the schema of a kind, relative to a file at `path` in a catalog."""
    return "../" * path.count("/") + catalog_schema_path(kind)


def render_schema_comments(kind: str, path: str, site: str = "") -> str:
    """Return the schema comments for a file of this kind at `path` in a catalog.

    They name the schema in the catalog, or if `site` is not empty, the one at that address of a
    site. There is one for the YAML language server (VS Code, Neovim, ...) and one for JetBrains.
    """
    published = f"{site.rstrip('/')}/{dict(schema_paths())[kind]}"
    schema = published if site else relative_schema_path(kind, path)
    return f"# yaml-language-server: $schema={schema}\n# $schema: {schema}\n"
