"""The read API over HTTP: three operations, answered from an opened snapshot. No catalog knowledge, no YAML.

A request goes through four rooms, one way:

    edge       request id, gzip, CORS, and the last word on what went wrong unexpectedly
    app        routes of a few lines: key, question, answer
    questions  query string and body to a typed question, or everything that is wrong with them
    answers    bytes to a response: ETag, 304, caching; refusals to the error envelope

`openapi` describes all that.
"""

from toolcatalog.server.app import create_app

__all__ = ["create_app"]
