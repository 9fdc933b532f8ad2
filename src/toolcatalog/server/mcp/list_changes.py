"""List changes: tell MCP clients that the list of tools has changed.

The list changes when a new snapshot changes the meta tools of its session; the catalog's own tools
are always the same. A watcher looks once a second whether there is a new snapshot, and only then
reads the list. Clients of protocol 2026-07-28 get the notification on the stream that they opened
with `subscriptions/listen`. Older clients get it without asking, which only standard input and
output allows: over HTTP, a stateless server has no stream for them.

Needs the extra `mcp`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from toolcatalog import encoding
from toolcatalog.api.error_responses import RequestError
from toolcatalog.server.call_queue import TooManyCallsError
from toolcatalog.server.mcp import tools
from toolcatalog.server.mcp.tools import CatalogAccess
from toolcatalog.server.work_threads import run_in_work_thread

LISTEN_METHOD = "subscriptions/listen"
MAX_STREAMS = 256  # streams of one process that are open at the same time
MAX_STREAMS_OF_KEY = 64
_WATCH_INTERVAL = 1.0  # seconds


class ListState(NamedTuple):
    """The digests of a snapshot and of the list of tools in it, which may have megabytes."""

    snapshot: str
    tools: str


def _always_open() -> bool:
    return True


class ListChanges:
    """The changes of the list that a client sees.

    `get_access` returns what the client may see now. Its streams end as soon as `is_open` returns
    False.
    """

    def __init__(
        self,
        get_access: Callable[[], CatalogAccess],
        session: str = "",
        is_open: Callable[[], bool] = _always_open,
    ) -> None:
        self._get_access = get_access
        self._session = session
        self._is_open = is_open
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus)
        self._listener: ServerSession | None = None

    async def read_state(self) -> ListState:
        """Return the state with which later ones are compared.

        Raises TooManyCallsError if too many other calls wait.
        """
        return await self._read(None)

    async def watch(self, state: ListState) -> None:
        """Notify of each change since this state, until this task is canceled."""
        while True:
            await anyio.sleep(_WATCH_INTERVAL)
            if not self._is_open():
                self._handler.close()
                continue
            previous, state = state, await self._read(state)
            if state.tools != previous.tools:
                await self._notify()

    async def listen(
        self,
        ctx: ServerRequestContext[Any, Any],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Handle `subscriptions/listen`: a stream that lasts until either side ends it."""
        return await self._handler(ctx, params)

    def add_listener(self, listener: ServerSession) -> None:
        """Notify this client, too, if its protocol sends notifications without a subscription."""
        self._listener = listener

    async def _read(self, last: ListState | None) -> ListState:
        """Return the current state, which is the last one if the snapshot is the same."""
        access = self._get_access()
        if last and last.snapshot == access.store.digest:
            return last
        try:
            digest = await run_in_work_thread(_compute_list_digest, access, self._session)
        except TooManyCallsError:
            if last:
                return last  # the next look finds the change
            raise
        return ListState(access.store.digest, digest)

    async def _notify(self) -> None:
        await self._bus.publish(ToolsListChanged())
        if self._listener is not None:
            # does nothing on a connection whose protocol has subscriptions
            await self._listener.send_tool_list_changed()


def _compute_list_digest(access: CatalogAccess, session: str) -> str:
    try:
        listed = tools.list_definitions(access, session)
    except RequestError:  # the session is gone
        listed = tools.list_definitions(access)
    return encoding.sha256_hex(encoding.dump_json(listed))
