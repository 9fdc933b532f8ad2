"""The same tools behind other services, each configured as fairly as possible.

They run in a Python of their own (`requirements/bench.txt`). Each has two commands: `load DATABASE
ROWS` (a file with a tool's JSON on each line) and `serve DATABASE`.
"""
