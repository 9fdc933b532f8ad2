"""Tool definitions in the formats of model providers and of MCP."""
