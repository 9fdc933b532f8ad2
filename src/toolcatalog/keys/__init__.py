"""API keys and where they are stored."""
