"""Benchmarks: `make bench` measures the server and the build with synthetic catalogs of any size.

- `synthetic`, `parameters`, `vocabulary`: the catalogs
- `workload`, `urls`, `profiles`: operations and their queries, paths, and headers of clients
- `servers`, `constant`, `peers`, `datasets`: the servers under test, and their data
- `clients`, `http_load`, `workers`, `in_process`, `builds`: what is measured
- `machine`, `wrk`, `http_client`: tools for measurements
- `results`, `tables`, `http_tables`, `table`, `plots`, `report`: the figures, and their page
- `search`, `vector_search`, `site_pages`: search quality and page rendering, measured on their own

The package imports nothing of it.
"""
