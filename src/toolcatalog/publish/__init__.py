"""Snapshots to and from an object store."""
