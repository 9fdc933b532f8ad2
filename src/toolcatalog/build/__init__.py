"""The build pipeline: compile and check a catalog, write its snapshot and its site."""
