"""Metrics of a server: counters, and their Prometheus exposition."""
