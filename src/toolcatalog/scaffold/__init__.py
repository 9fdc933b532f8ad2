"""Scaffolding: new catalogs, and new files of a catalog."""
