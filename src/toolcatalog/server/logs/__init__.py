"""Logs of a server, and spans of its requests."""
