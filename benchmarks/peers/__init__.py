"""The same tools behind other programs, each set up as fairly as it can be. They run in a Python of
their own (`requirements/bench.txt`).

Each has two commands: `load DATABASE ROWS` (a file with a tool's JSON on each line) and `serve
DATABASE`.
"""
