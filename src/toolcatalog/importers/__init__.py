"""Importers: convert tool definitions of other formats to catalog files."""
