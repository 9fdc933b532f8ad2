"""The read API over HTTP: three operations, answered from an opened snapshot. No catalog knowledge, no YAML.

A request goes through these rooms, one way:

    protocol    uvicorn's, which lets front answer before there is any ASGI
    front       the short way for plain gets and lists: straight to the operations; everything else goes on
    edge        request id, gzip, CORS, and the last word on what went wrong unexpectedly
    app         routes: a request to an operation
    operations  a key and the facts of a request to bytes and their tag, for both ways
    questions   query string and body to a typed question, or everything that is wrong with them
    answers     bytes to status, headers and body: ETag, 304, caching; refusals to the error envelope

`openapi` describes all that.
"""

from toolcatalog.server.app import create_app

__all__ = ["create_app"]
