"""MCP tools: the four tools that agents call to search the catalog, and their answers.

A host shows these descriptions to a model in every prompt, so they are short and say only what the
names do not.

A search returns one line for each tool, and reading a tool returns everything, because a model pays
for each word that it reads. A failed call returns an explanation that a model can act on, never a
traceback. The tools of the catalog itself are described and never run.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from toolcatalog import encoding, names, textutils
from toolcatalog.api.catalog_view import CatalogView
from toolcatalog.api.error_responses import ErrorDetail, RequestError
from toolcatalog.api.query_params import MAX_QUERY_LENGTH, ListParams, Page, ToolParams
from toolcatalog.exports import providers
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.store.store import Filters, Store, VersionPins
from toolcatalog.textutils import first_sentence, pluralize
from toolcatalog.versions import LATEST

DEFAULT_SEARCH_LIMIT, _MAX_SEARCH_LIMIT = 10, 50  # tools that a search returns
DEFAULT_TOOLKIT_LIMIT, _MAX_TOOLKIT_LIMIT = 100, 500
_MAX_ERRORS = 5  # problems of a call that are reported together
# characters of each message, from its end, where the problem is; before it may be a value of any
# length
_MAX_MESSAGE_LENGTH = 300

# bytes of the meta tools of a session: a larger list would take the server long, and no model
# could read it
_MAX_SESSION_SIZE = 1 << 20

ToolDefinition = dict[str, Any]  # a tool as MCP lists it
Arguments = Mapping[str, Any]


def drop_empty(arguments: Arguments) -> dict[str, Any]:
    """Return the arguments that are not empty; an empty one counts as absent, as in the API."""
    return {key: value for key, value in arguments.items() if value not in (None, "")}


def validate_arguments(name: str, arguments: dict[str, Any]) -> list[str]:
    """Return the problems of a call.

    These are values that cannot be written as JSON, and arguments that do not fit the schema of one
    of the catalog's own tools.
    """
    try:
        # fails for a lone surrogate, and for a number beyond 64 bits
        orjson.dumps((name, arguments))
    except orjson.JSONEncodeError as error:
        return [f"arguments: {error}."]
    if name not in TOOL_NAMES:
        return []
    errors = sorted(
        _load_validator(name).iter_errors(arguments), key=lambda error: error.instance_path
    )
    return [
        f"{'.'.join(map(str, ['arguments', *error.instance_path]))}: "
        f"{error.message[-_MAX_MESSAGE_LENGTH:]}."
        for error in errors[:_MAX_ERRORS]
    ]


@cache
def _load_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(INPUT_SCHEMAS[name])


def _define_tool(
    name: str,
    title: str,
    description: str,
    inputs: ToolDefinition,
    outputs: ToolDefinition,
    *required: str,
) -> ToolDefinition:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": inputs,
            "required": [*required],
            "additionalProperties": False,
        },
        "outputSchema": outputs,
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def _text_schema(description: str, max_length: int = names.MAX_LENGTH) -> ToolDefinition:
    return {"type": "string", "description": description, "minLength": 1, "maxLength": max_length}


def _count_schema(description: str, default: int, maximum: int) -> ToolDefinition:
    return {
        "type": "integer",
        "description": description,
        "minimum": 1,
        "maximum": maximum,
        "default": default,
    }


def _object_schema(**properties: ToolDefinition) -> ToolDefinition:
    """Return the schema of an object with all of these properties; others are allowed."""
    return {"type": "object", "properties": properties, "required": [*properties]}


_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_TOOL_ROW_SCHEMA = _object_schema(
    slug=_STRING,
    name=_STRING,
    description=_STRING,
    toolkit=_STRING,
    version=_STRING,
    deprecated={"type": "boolean"},
)

TOOL_DEFINITIONS: tuple[ToolDefinition, ...] = (
    _define_tool(
        "search_tools",
        "Search tools",
        "Find tools by what they do, best first: slug, name, toolkit, newest version and the "
        "first sentence of the description of each.",
        {
            "query": {
                **_text_schema(
                    "What the tool should do, in plain words, or its slug or name.",
                    MAX_QUERY_LENGTH,
                ),
                "pattern": "\\S",
            },
            "toolkit": _text_schema("Only tools of the toolkit with this slug, such as github."),
            "limit": _count_schema(
                "How many tools at most.", DEFAULT_SEARCH_LIMIT, _MAX_SEARCH_LIMIT
            ),
        },
        _object_schema(tools={"type": "array", "items": _TOOL_ROW_SCHEMA}, total=_INTEGER),
        "query",
    ),
    _define_tool(
        "get_tool",
        "Read a tool",
        "Everything about one tool: description, inputs, outputs, scopes, tags, versions, "
        "whether it is deprecated.",
        {
            "slug": _text_schema("The slug of the tool, such as GITHUB_CREATE_ISSUE."),
            "version": _text_schema(
                "A version of it, such as 20251027_00; the newest if none is given.", 20
            ),
        },
        {"type": "object"},
        "slug",
    ),
    _define_tool(
        "list_toolkits",
        "List toolkits",
        "All toolkits by slug, and how many tools each has.",
        {
            "after": _text_schema("Only toolkits after this slug: `next` of the previous answer."),
            "limit": _count_schema(
                "How many toolkits at most.", DEFAULT_TOOLKIT_LIMIT, _MAX_TOOLKIT_LIMIT
            ),
        },
        _object_schema(
            toolkits={"type": "array", "items": _object_schema(slug=_STRING, tools=_INTEGER)},
            total=_INTEGER,
        ),
    ),
    _define_tool(
        "list_session_tools",
        "List a session's tools",
        "The meta tools that a tool router session offers, each as an MCP tool with the "
        "session's own choices in its schema.",
        {"session_id": _text_schema("The id of the session, such as trs_support_desk.")},
        _object_schema(tools={"type": "array", "items": {"type": "object"}}),
        "session_id",
    ),
)
TOOL_NAMES = tuple(tool["name"] for tool in TOOL_DEFINITIONS)
INPUT_SCHEMAS: Mapping[str, dict[str, Any]] = {
    tool["name"]: tool["inputSchema"] for tool in TOOL_DEFINITIONS
}


class CatalogAccess(NamedTuple):
    """What a client may see of a store.

    `toolkits` are the visible toolkits (None: all). Only sessions of `project` are visible (None:
    those of any project).
    """

    store: Store
    toolkits: Collection[str] | None = None
    project: str | None = None

    @property
    def view(self) -> CatalogView:
        """The view of the catalog for the operations of the API."""
        return CatalogView(self.store, self.toolkits)


class CallResult(NamedTuple):
    """The result of a call, as text for a model and as a value for programs.

    `value` is None if the call failed.
    """

    text: str
    value: dict[str, Any] | None = None


# Definitions


def list_definitions(access: CatalogAccess, session: str = "") -> list[ToolDefinition]:
    """Return the listed tools: the catalog's own, then the meta tools of a session.

    Raises RequestError if the client may not see the session.
    """
    return [*TOOL_DEFINITIONS, *(list_session_tools(access, session) if session else ())]


def list_session_tools(access: CatalogAccess, session_id: str) -> list[ToolDefinition]:
    """Return the meta tools of a session as MCP tools, as `export mcp --session` does.

    Raises RequestError if the client may not see the session, or if it is larger than 1 MiB.
    """
    session = access.view.get_session(session_id, access.project)
    if isinstance(session, ErrorDetail):
        raise RequestError(session)
    if len(session) > _MAX_SESSION_SIZE:
        raise RequestError(
            ErrorDetail(
                400,
                "session_too_large",
                f"session_id: the meta tools of {session_id} have {len(session) >> 20} MiB.",
                "List them with the HTTP API, or limit the session to fewer tools.",
            )
        )
    tools = [
        snapshot_format.tool_from_document(document, None)
        for document in orjson.loads(session)["items"]
    ]
    fitted = (providers.fit_definitions(tool)["mcp"].definition for tool in tools)
    return [definition for definition in fitted if definition]


# Calls


def call_tool(
    access: CatalogAccess, name: str, arguments: Arguments, session: str = ""
) -> CallResult | None:
    """Return the result of a call, errors included; None if no tool has this name.

    An empty argument counts as absent, as in the API. A tool of the catalog, or of the listed
    session, is known but not run: the result says so.
    """
    asked, given = _HANDLERS.get(name), drop_empty(arguments)
    if faults := validate_arguments(name, given):
        return CallResult("\n".join(faults))
    try:
        return asked(access, given) if asked else _refuse_execution(access, name, session)
    except RequestError as refused:
        return make_error_result(access, *refused.errors)


def make_error_result(access: CatalogAccess, *errors: ErrorDetail) -> CallResult:
    """Return errors of the API as the result of a call."""
    return CallResult("\n".join(_format_error(access, refusal) for refusal in errors))


def _search_tools(access: CatalogAccess, arguments: Arguments) -> CallResult:
    view, toolkit, query = access.view, arguments.get("toolkit"), arguments["query"].strip()
    filters = Filters(toolkits=(toolkit,) if toolkit else None, query=query)
    question = ListParams(
        None,
        filters,
        VersionPins(),
        Page(1, int(arguments.get("limit", DEFAULT_SEARCH_LIMIT))),
        "relevance",
        True,
    )
    if problems := view.validate(question):
        raise RequestError(*problems)
    numbers, total = view.list_tools(question)
    tools = [
        _tool_row(
            snapshot_format.parse_document_summary(bytes(access.store.read_document(number)[0]))
        )
        for number in numbers.tolist()
    ]
    if tools:
        shown = f"{pluralize(total, 'tool')} found" + (
            f", the best {len(tools)}" if len(tools) < total else ""
        )
        return CallResult(
            "\n".join([f"{shown}:", *map(_format_tool, tools)]), {"tools": tools, "total": total}
        )
    suggested = view.suggest_query(question)
    fix = (
        f"Did you mean: {suggested}"
        if suggested
        else "Try other words" + (", or all toolkits." if toolkit else ".")
    )
    return CallResult(
        f"No tool was found. {fix}",
        {"tools": [], "total": 0, **({"suggestion": suggested} if suggested else {})},
    )


def _get_tool(access: CatalogAccess, arguments: Arguments) -> CallResult:
    version = arguments.get("version", LATEST)
    found = access.view.find_tool(
        arguments["slug"], ToolParams(None if version == LATEST else version, VersionPins())
    )
    if isinstance(found, ErrorDetail):
        raise RequestError(found)
    document = bytes(access.store.read_document(found)[0])
    return CallResult(document.decode(), orjson.loads(document))


def _list_toolkits(access: CatalogAccess, arguments: Arguments) -> CallResult:
    known = access.store.list_toolkits()
    every = (
        known if access.toolkits is None else [slug for slug in known if slug in access.toolkits]
    )
    start = bisect_right(every, arguments.get("after", ""))
    page = every[start : start + int(arguments.get("limit", DEFAULT_TOOLKIT_LIMIT))]
    toolkits = [{"slug": slug, "tools": _count_tools(access.store, slug)} for slug in page]
    is_last = start + len(page) >= len(every)
    lines = [
        f"{len(every):,} toolkits:"
        if is_last and not start
        else f"{len(page):,} of {len(every):,} toolkits:"
    ]
    lines += [f"{one['slug']} ({one['tools']} tools)" for one in toolkits]
    more = {} if is_last else {"next": page[-1]}
    lines += [] if is_last else [f"There are more after {page[-1]}."]
    return CallResult("\n".join(lines), {"toolkits": toolkits, "total": len(every), **more})


def _list_session_tools(access: CatalogAccess, arguments: Arguments) -> CallResult:
    value = {"tools": list_session_tools(access, arguments["session_id"])}
    return CallResult(encoding.dump_json(value).decode(), value)


def _count_tools(store: Store, toolkit: str) -> int:
    return store.search(Filters(toolkits=(toolkit,)), VersionPins()).total


def _tool_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as a search shows it; `document` is at least the summary of its document.

    Invisible characters are escaped: a human reader would not notice them, but a model would.
    """
    return {
        "slug": document["slug"],
        "name": _one_line(document["name"]),
        "description": _one_line(first_sentence(document["description"])),
        "toolkit": document["toolkit"]["slug"],
        "version": document["version"],
        "deprecated": document["is_deprecated"],
    }


def _format_tool(tool: Mapping[str, Any]) -> str:
    about = f"{tool['version']}, deprecated" if tool["deprecated"] else tool["version"]
    return f"{tool['slug']} ({about}) {tool['name']}: {tool['description']}"


def _one_line(text: str) -> str:
    return textutils.escape_hidden(" ".join(text.split()))


# Errors


def _refuse_execution(access: CatalogAccess, name: str, session: str) -> CallResult | None:
    """Return the result for a tool that the catalog describes but does not run.

    Returns None if the catalog does not describe it.
    """
    refused = f"{name} was not run: this catalog describes tools and does not run them."
    entry = access.store.get_tool(name)
    if entry and (access.toolkits is None or entry.toolkit in access.toolkits):
        return CallResult(f"{refused} Read it with get_tool, and call it at its own service.")
    of_session = list_session_tools(access, session) if session else []
    if any(tool["name"] == name for tool in of_session):
        return CallResult(
            f"{refused} It is a meta tool of session {session}: call it where that session's "
            "tools are run."
        )
    return None


_FIX_OVERRIDES = {  # replace fixes of the API that name HTTP paths
    "tool_not_found": "Find tools with search_tools.",
    "toolkit_not_found": "See list_toolkits for all of them.",
}


def _format_error(access: CatalogAccess, error: ErrorDetail) -> str:
    """Return an error of the API as text for an agent.

    An agent does not know the HTTP parameters and, without a project, has no key.
    """
    _, _, line = error.message.partition(": ")
    fix = error.fix.replace(", as Retry-After says", "")
    if not fix.startswith("Did you mean"):
        fix = _FIX_OVERRIDES.get(error.slug, fix)
    if error.slug == "forbidden" and access.project is None:
        fix = _FIX_OVERRIDES["toolkit_not_found"]
        line = (
            "that session allows toolkits that are not shown here."
            if error.message.startswith("session_id")
            else "that toolkit is not among those that are shown here."
        )
    # an id is not capitalized
    begins = line[:1].upper() if line.partition(" ")[0].isalpha() else line[:1]
    return f"{begins}{line[1:]} {fix}"


_HANDLERS: dict[str, Callable[[CatalogAccess, Arguments], CallResult]] = {
    "search_tools": _search_tools,
    "get_tool": _get_tool,
    "list_toolkits": _list_toolkits,
    "list_session_tools": _list_session_tools,
}
