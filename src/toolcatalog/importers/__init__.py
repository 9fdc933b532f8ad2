"""Importers: tool definitions of other formats to files of a catalog."""
