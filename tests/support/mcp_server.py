"""An MCP server of the official SDK over stdio: `mcp_server.py FILE [SIZE]` lists the tools in
FILE, in pages of SIZE.
"""

import json
import sys
from pathlib import Path
from typing import Any

SERVER = Path(__file__)


def main(file: str, size: int = 100) -> None:
    import anyio  # noqa: PLC0415 - tests that name this file need not load the SDK
    from mcp import types  # noqa: PLC0415
    from mcp.server.lowlevel import Server  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    tools = [types.Tool.model_validate(tool) for tool in json.loads(Path(file).read_bytes())]

    async def list_tools(
        _: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        following = str(start + size) if start + size < len(tools) else None
        return types.ListToolsResult(tools=tools[start : start + size], next_cursor=following)

    server: Server[Any] = Server(
        "Test Server/2",
        version="1",
        title="A test",
        website_url="https://example.com",
        on_list_tools=list_tools,
    )

    async def serve() -> None:
        async with stdio_server() as (content, write):
            await server.run(content, write, server.create_initialization_options())

    anyio.run(serve)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
