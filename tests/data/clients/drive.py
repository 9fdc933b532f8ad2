"""Drives the composio-client that is installed: one request as a JSON line on standard input, one
answer as a JSON line on standard output.

Started with the server's address. It says first which client it is; then, until its input ends, a
request is `{"op": "tool" | "tools" | "slugs" | "toolkit" | "toolkits" | "categories" | "session" |
"call", "args": {...}, "options": {"key", "headers", "query", "strict", "raw"}}` and its answer
`{"result"}`, with `raw` also `url` and `headers`, or `{"error": class name, "status", "body",
"request_id"}`. It judges nothing.
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import composio_client
from composio_client import APIStatusError, Composio

TIMEOUT = 20  # seconds


def main(base_url: str) -> None:
    @cache
    def client(key: str | None, strict: bool) -> Composio:
        # No retries: they would hide a fault. Strict: the client's typed models must fit, it is lax
        # by itself.
        return Composio(
            **credential(key),
            base_url=base_url,
            max_retries=0,
            timeout=TIMEOUT,
            _strict_response_validation=strict,
        )

    say({"client": f"composio-client {composio_client.__version__}"})
    for line in sys.stdin:
        request = json.loads(line)
        options = request["options"]
        say(
            answer(
                client(options.get("key"), options.get("strict", True)),
                request["op"],
                request["args"],
                options,
            )
        )


def credential(key: str | None) -> dict[str, Any]:
    """The argument of the constructor that says which key to send: `auth` since 2.0."""
    package: Any = composio_client  # the types are those of 1.35
    if not hasattr(package, "ProjectAuth"):
        return {"api_key": key}
    return {"auth": package.NoAuth() if key is None else package.ProjectAuth(key)}


def answer(
    client: Composio, op: str, args: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    try:
        if op == "call":
            return {"result": getattr(client, args["method"])(args["path"], cast_to=object)}
        answered = operation(client, op, raw=options.get("raw", False))(
            **args, extra_headers=options.get("headers"), extra_query=options.get("query")
        )
        if not options.get("raw"):
            return {"result": plain(answered)}
        return {
            "result": plain(answered.parse()),
            "url": str(answered.http_request.url),
            "headers": dict(answered.headers),
        }
    except APIStatusError as error:
        about = {
            "status": error.status_code,
            "body": error.body,
            "request_id": error.response.headers.get("x-request-id"),
        }
        return {"error": type(error).__name__, **about}
    except Exception as error:  # the test shall see it
        return {
            "error": type(error).__name__,
            "status": None,
            "body": str(error),
            "request_id": None,
        }


def operation(client: Composio, op: str, raw: bool) -> Any:
    toolkits: Any = client.toolkits.with_raw_response if raw else client.toolkits
    tools: Any = client.tools.with_raw_response if raw else client.tools
    session: Any = (
        client.tool_router.session.with_raw_response if raw else client.tool_router.session
    )
    return {
        "tool": tools.retrieve,
        "tools": tools.list,
        "slugs": tools.retrieve_enum,
        "toolkit": toolkits.retrieve,
        "toolkits": toolkits.list,
        "categories": toolkits.retrieve_categories,
        "session": session.tools,
    }[op]


def plain(value: Any) -> Any:
    """The JSON of a typed answer, read attribute by attribute, as a program would; only what the
    server sent.
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    return dict(attributes(value)) if isinstance(value, composio_client.BaseModel) else value


def attributes(model: composio_client.BaseModel) -> Iterator[tuple[str, Any]]:
    fields = type(model).model_fields
    for name, _ in model:
        if name in model.model_fields_set:
            yield (
                (fields[name].alias if name in fields else None) or name,
                plain(getattr(model, name)),
            )


def say(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
