"""The read API over HTTP: three operations, answered from an opened snapshot. No catalog knowledge,
no YAML.

A request goes through these rooms, one way:

    protocol    uvicorn's, which lets front answer before there is any ASGI
    front       the short way for plain gets and lists: straight to the operations; everything else goes on
    edge        request id, snapshot, CORS, and the last word on what went wrong unexpectedly; zstd and gzip by `coding`
    app         routes: a request to an operation
    operations  a key and the facts of a request to bytes and their tag, for both ways
    questions   query string and body to a typed question, or everything that is wrong with them
    answers     bytes to status, headers and body: ETag, 304, caching; refusals to the error envelope

`openapi` describes all that. What is answered from is `live`, exchanged by `reloading`; how often a
key may list, `limiting` counts, or with Redis `pooled`. `process` puts one process together, and
`running` starts, watches and ends as many as are wanted. What they tell of themselves:

    witness     one call for each answered request: counted (`tallies`), and noted where that is wanted (`accesslog`, `tracing`)
    ledger      the counts of several processes, as one
    metrics     counts as Prometheus reads them; `scraping` answers them at the API's own port

Agents are answered beside it, over HTTP or over standard input and output:

    mcp_route   whose message it is, and a transport for it
    speaking    messages of MCP, as the official SDK reads and writes them
    agents      what an agent asks, and what it is answered, by the same view as the operations
    offers      the four tools by which it asks
"""

from toolcatalog.server.app import create_app

__all__ = ["create_app"]
