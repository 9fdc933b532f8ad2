"""MCP client: list the tools of an MCP server, started as a command or reached over HTTP.

Requires the extra `mcp`.
"""

import contextlib
import ipaddress
import logging
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import IO, Any
from urllib.parse import urlsplit

import anyio
import httpx2  # a dependency of mcp
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from toolcatalog.errors import UsageError

logging.getLogger("mcp").addHandler(logging.NullHandler())  # its errors are reported here

_MAX_RESPONSE_SIZE = 64 << 20  # bytes of all responses
_MAX_PAGES = 1000  # of a list of tools, to stop if a server never ends the list
_MAX_LOG_LINES = 5  # last lines of the server's standard error to show
_MAX_LOG_WIDTH = 200  # characters of each


def fetch_tools_from_command(command: Sequence[str], timeout: float) -> dict[str, Any]:
    """Start an MCP server and return its `tools/list` result.

    The result has all pages in one, and `serverInfo` next to it. `timeout` is in seconds. Raises
    UsageError, with the last lines of the server's standard error, if the server does not start,
    does not answer in time, or does not answer with valid MCP.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            return _run(_ask_command, command, timeout, log)
        except Exception as error:
            reason = _describe_failure(error, timeout)
            if not reason:
                raise
            raise UsageError(
                f"`{shlex.join(command)}` {reason}: run the command alone to see why."
                f"{_last_log_lines(log)}"
            ) from None


def fetch_tools_from_url(url: str, headers: Mapping[str, str], timeout: float) -> dict[str, Any]:
    """Return the `tools/list` result of an MCP server over streamable HTTP.

    The result has all pages in one, and `serverInfo` next to it. `headers` are sent with each
    request, such as a key. `timeout` is in seconds. Raises UsageError if the URL is not safe for
    these headers, or if the server does not answer in time or with valid MCP.
    """
    check_url(url, headers)
    try:
        return _run(_ask_url, url, headers, timeout)
    except Exception as error:
        reason = _describe_failure(error, timeout)
        if not reason:
            raise
        help = (
            "check the address, and give a key with --header"
            if not headers
            else "check the address and the headers"
        )
        raise UsageError(f"{url} {reason}: {help}.") from None


def check_url(url: str, headers: Mapping[str, str]) -> None:
    """Raise UsageError if a URL names no HTTP server, or would send headers unencrypted.

    Without TLS, headers go only to a server on this machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url} is not an http or https URL of an MCP server.")
    if headers and parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise UsageError(f"{url} would send the headers unencrypted: use an https URL.")


def parse_headers(texts: Sequence[str]) -> dict[str, str]:
    """Parse headers such as `Authorization: Bearer KEY`. Raises UsageError."""
    headers = {}
    for text in texts:
        name, colon, value = text.partition(":")
        if not (colon and name.strip().isascii() and value.strip().isprintable()):
            raise UsageError("--header needs the form `Name: value`, such as `X-API-Key: $KEY`.")
        headers[name.strip()] = value.strip()
    return headers


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _run(ask: Any, *arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = anyio.run(ask, *arguments)
    return result


async def _ask_command(command: Sequence[str], timeout: float, log: IO[str]) -> dict[str, Any]:  # noqa: ASYNC109
    # a shell would also pass the whole environment
    parameters = StdioServerParameters(
        command=command[0], args=[*command[1:]], env=dict(os.environ)
    )
    with anyio.fail_after(timeout):
        async with Client(stdio_client(parameters, errlog=log), cache=None) as client:  # type: ignore[arg-type] # it writes text to it
            return await _list_all_tools(client)


async def _ask_url(url: str, headers: Mapping[str, str], timeout: float) -> dict[str, Any]:  # noqa: ASYNC109
    with anyio.fail_after(timeout):
        async with (
            httpx2.AsyncClient(
                headers={"accept-encoding": "identity", **headers},
                timeout=timeout,
                transport=_LimitedTransport(),
            ) as http_client,
            Client(streamable_http_client(url, http_client=http_client), cache=None) as client,
        ):
            return await _list_all_tools(client)


class _RefusedResponse(httpx2.TransportError):
    """A response that is not read; the text is the end of a sentence about the server."""


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """Transport that reads a limited number of bytes from a server, and decompresses nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.remaining = _MAX_RESPONSE_SIZE

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the response with a limited stream."""
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise _RefusedResponse("compresses its answers, although it was asked not to")
        response.stream = _LimitedStream(self, response.stream)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, transport: _LimitedTransport, stream: httpx2.AsyncByteStream) -> None:
        self._transport, self._stream = transport, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._transport.remaining -= len(chunk)
            if self._transport.remaining < 0:
                raise _RefusedResponse(f"answers with more than {_MAX_RESPONSE_SIZE >> 20} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _list_all_tools(client: Client) -> dict[str, Any]:
    """Return all tools of a connected server. Raises UsageError if the list never ends."""
    tools: list[Any] = []
    cursor = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [
            tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in page.tools
        ]
        cursor = page.next_cursor
        if cursor is None:
            server = client.server_info
            info = server.model_dump(mode="json", by_alias=True) if server else None
            return {"tools": tools, "serverInfo": info}
    raise UsageError(f"The server lists its tools on more than {_MAX_PAGES:,} pages.")


def _describe_failure(error: BaseException, timeout: float) -> str:
    """Return what the server did wrong, as the end of a sentence.

    Returns an empty string if the server is not the cause.
    """
    leaves = [*_leaf_exceptions(error)]
    for kind, reason in (
        (UsageError, ""),
        (TimeoutError, f"did not answer within {timeout:g} seconds"),
        (_RefusedResponse, "{0}"),
        (httpx2.HTTPStatusError, "answers with status {0.response.status_code}"),
        (httpx2.TransportError, "cannot be reached ({0})"),
        (MCPError, "answers with an error ({0.message})"),
        (OSError, "cannot be started ({0.strerror})"),
        ((BrokenResourceError, ClosedResourceError, EndOfStream), "stopped before it had answered"),
        (ValueError, "does not answer with MCP"),
    ):
        leaf = next((leaf for leaf in leaves if isinstance(leaf, kind)), None)
        if leaf:
            return _printable(reason.format(leaf))
    return ""


def _leaf_exceptions(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions within nested groups, or the exception itself if it is not a group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaf_exceptions(inner)
    else:
        yield error


def _last_log_lines(log: IO[str]) -> str:
    """Return the last lines of a server's standard error, each on its own line."""
    with contextlib.suppress(OSError):
        log.seek(max(0, os.fstat(log.fileno()).st_size - _MAX_LOG_LINES * 4 * _MAX_LOG_WIDTH))
    lines = [line.rstrip() for line in log.read().splitlines() if line.strip()][-_MAX_LOG_LINES:]
    shown = [_printable(line[:_MAX_LOG_WIDTH]) for line in lines]
    return "".join(f"\n  {line}" for line in ["It wrote:", *shown]) if shown else ""


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
