"""The catalog as an MCP server."""
