"""Limits on clients: connections, sizes and times of requests, and the rate of lists."""
