"""What a server process tells of itself: each answered request is counted, and noted in the access
log where there is one.
"""

from time import perf_counter, time
from typing import NamedTuple

from starlette.types import Scope

from toolcatalog.keys import Key
from toolcatalog.server.accesslog import AccessLog, Entry
from toolcatalog.server.answers import Marks
from toolcatalog.server.ledger import Page
from toolcatalog.server.tallies import NOBODY, Tallies


class Answered(NamedTuple):
    """A request that was answered: `path` with its query, as it came; `size` of the body as sent;
    `began` by `perf_counter`.
    """

    marks: Marks
    method: str
    path: bytes
    client: tuple[str, int] | None
    route: str
    key: Key | None
    status: int
    size: int
    began: float


class Witness:
    """Sees all answers of one process, on its event loop."""

    def __init__(self) -> None:
        self.tallies = Tallies()
        self.log: AccessLog | None = None
        self.page: Page | None = None

    def saw(self, answered: Answered) -> None:
        """Count an answer and note it."""
        self.tallies.answered(
            answered.route,
            answered.status,
            perf_counter() - answered.began,
            answered.key.id if answered.key else NOBODY,
        )
        self.note(answered)

    def note(self, answered: Answered) -> None:
        """Note an answer that is counted already."""
        if self.log is None:
            return
        marks, method, path, client, route, key, status, size, began = answered
        whose = (key.id, key.project) if key else ("", "")
        came = client[0] if client else ""
        told = (
            marks.request_id,
            method,
            path,
            route,
            status,
            size,
            *whose,
            marks.snapshot,
            marks.traceparent,
            came,
        )
        self.log.note(Entry(time(), perf_counter() - began, *told))

    def close(self) -> None:
        """Write down what is still to be: nothing more will be seen."""
        if self.log:
            self.log.close()
        if self.page:
            self.page.write()


def asked(scope: Scope) -> bytes:
    """The path of a request with its query, as it came."""
    path: bytes = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
    return b"%b?%b" % (path, scope["query_string"]) if scope["query_string"] else path
