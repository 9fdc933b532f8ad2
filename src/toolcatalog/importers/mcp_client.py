"""MCP client: start an MCP server and list its tools.

Requires the extra `mcp`.
"""

import contextlib
import logging
import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

from toolcatalog.errors import UsageError

_MAX_PAGES = 1000  # of a list of tools, to stop if a server never ends the list
_MAX_LOG_LINES = 5  # last lines of the server's standard error to show
_MAX_LOG_WIDTH = 200  # characters of each


def fetch_tools(command: Sequence[str], timeout: float) -> dict[str, Any]:
    """Return the `tools/list` result with all pages in one, and `serverInfo` next to it.

    `timeout` is in seconds. Raises UsageError, with the last lines of the server's standard error,
    if the server does not start, does not answer in time, or does not answer with valid MCP.
    """
    try:
        import anyio  # noqa: PLC0415 - installed only with the extra
        import mcp  # noqa: F401, PLC0415 - only to check that it is installed
    except ImportError:
        mend = "run `pip install 'toolcatalog[mcp]'`, or give its answer to tools/list as a file."
        raise UsageError(f"A live server is asked through the package mcp: {mend}") from None
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # its errors are reported below
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            return anyio.run(_fetch_tools, command, timeout, log)
        except Exception as error:
            reason = _describe_failure(error, timeout)
            if not reason:
                raise
            raise UsageError(
                f"`{shlex.join(command)}` {reason}: try the command by itself.{_last_log_lines(log)}"
            ) from None


async def _fetch_tools(command: Sequence[str], timeout: float, log: IO[str]) -> dict[str, Any]:  # noqa: ASYNC109
    import anyio  # noqa: PLC0415
    from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415

    # a shell would also pass the whole environment
    parameters = StdioServerParameters(
        command=command[0], args=[*command[1:]], env=dict(os.environ)
    )
    tools: list[Any] = []
    with anyio.fail_after(timeout):
        async with Client(stdio_client(parameters, errlog=log), cache=None) as client:  # type: ignore[arg-type] # it writes text to it
            cursor = None
            for _ in range(_MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += [
                    tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
                    for tool in page.tools
                ]
                cursor = page.next_cursor
                if cursor is None:
                    server = client.server_info
                    return {
                        "tools": tools,
                        "serverInfo": server.model_dump(mode="json", by_alias=True)
                        if server
                        else None,
                    }
    raise UsageError(
        f"`{shlex.join(command)}` lists its tools on more than {_MAX_PAGES:,} pages: that is no "
        "list with an end."
    )


def _describe_failure(error: BaseException, timeout: float) -> str:
    """Return what the server did wrong, as the end of a sentence.

    Returns an empty string if the server is not the cause.
    """
    from anyio import BrokenResourceError, ClosedResourceError, EndOfStream  # noqa: PLC0415
    from mcp import MCPError  # noqa: PLC0415

    leaves = [*_leaf_exceptions(error)]
    for kind, reason in (
        (UsageError, ""),
        (TimeoutError, f"did not answer within {timeout:g} seconds"),
        (MCPError, "answers with an error ({0})"),
        (OSError, "cannot be started ({0.strerror})"),
        ((BrokenResourceError, ClosedResourceError, EndOfStream), "stopped before it had answered"),
        (ValueError, "answers what is not MCP"),
    ):
        found = next((leaf for leaf in leaves if isinstance(leaf, kind)), None)
        if found:
            return reason.format(getattr(found, "message", found) if kind is MCPError else found)
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
    shown = [
        "".join(
            char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"
            for char in line[:_MAX_LOG_WIDTH]
        )
        for line in lines
    ]
    return "".join(f"\n  {line}" for line in ["It wrote:", *shown]) if shown else ""
