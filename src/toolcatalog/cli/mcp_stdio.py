"""The MCP server on standard input and output; needs the extra `mcp`."""

from collections.abc import Callable

import anyio
from mcp import stdio_server
from mcp.server.lowlevel import NotificationOptions

from toolcatalog.server.mcp import protocol
from toolcatalog.server.mcp.list_changes import ListChanges
from toolcatalog.server.mcp.tools import CatalogAccess


def serve_stdio(get_access: Callable[[], CatalogAccess], session: str) -> None:
    """Answer MCP requests until standard input ends; `session` may be empty."""

    async def serve() -> None:
        changes = ListChanges(get_access, session)
        server = protocol.create_server(get_access, session, changes=changes, cache_scope="public")
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        async with stdio_server() as (reads, writes), anyio.create_task_group() as tasks:
            tasks.start_soon(changes.watch, await changes.read_state())
            await server.run(reads, writes, options)
            tasks.cancel_scope.cancel()

    anyio.run(serve)
