"""Benchmarks that anyone can run: `make bench`.

A synthetic catalog of any size (`words`, `shapes`, `synthetic`), the servers (`servers`,
`constant`, `peers/`), what drives and measures them (`machine`, `wrk`, `paths`, `http`, `inside`,
`building`), and what becomes of the figures (`results`, `table`, `plots`, `report`). Nothing here
is imported by the package.
"""
