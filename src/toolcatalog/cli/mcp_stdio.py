"""The MCP server on standard input and output; needs the extra `mcp`."""

from collections.abc import Callable

import anyio
from mcp import stdio_server

from toolcatalog.server.mcp import protocol
from toolcatalog.server.mcp.tools import CatalogAccess


def serve_stdio(get_access: Callable[[], CatalogAccess], session: str) -> None:
    """Answer MCP requests until standard input ends; `session` may be empty."""

    async def serve() -> None:
        server = protocol.create_server(get_access, session)
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    anyio.run(serve)
