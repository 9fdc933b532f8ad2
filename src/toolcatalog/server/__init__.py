"""The read API over HTTP and MCP, its metrics, and the development server."""
