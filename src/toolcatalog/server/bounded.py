"""uvicorn's HTTP protocol with bounds on what one client may take: memory for a request, and a
connection that nothing comes of.

uvicorn reads a head of any length, waits for the rest of a request for ever, and keeps an answer
until somebody takes it; so a few lines of somebody's script would hold all memory or all
descriptors. Time is bounded by a look at each connection every so often, which costs a request next
to nothing. A request that is still the same one, and not whole, at the second look ends its
connection, and so does a client that has taken nothing of its answer for six. A connection for
which there is no descriptor (`descriptors`) is refused.
"""

from asyncio import Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from toolcatalog.server.answers import Header, Marks, lines, refuse
from toolcatalog.server.descriptors import CLIENTS
from toolcatalog.server.edge import identify
from toolcatalog.server.refusals import Refusal, crowded, invalid

LARGEST_HEAD = 64 * 1024  # bytes, beside the packet in which it begins
# bytes of a request with its body, of which nobody here needs more than 64 KiB
LARGEST = 8 * 1024 * 1024
# bytes of an answer whose taking counts: systems tell in lumps that there is room again
LEAST = 64 * 1024
_LOOKS = 6  # for which a client may take nothing
_CLOSE: Header = (b"connection", b"close")


class Bounded(HttpToolsProtocol):
    """One connection."""

    patience = 10.0  # seconds between two looks
    descriptors = CLIENTS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._between = True  # requests: nothing of a next one has been read
        self._in_head = False  # of a request
        self._size = 0  # bytes of the request at hand, beside the packet in which it began
        # grows with each request that begins, and each time that a client has taken what there was
        self._steps = 0
        # steps, and bytes still to be taken, when something had last changed
        self._looked = (-1, 0)
        self._still = 0  # looks since
        self._look_task: Any = None
        self._running: Any = None  # what answers just now; `cycle` is what came last

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as the library has it
        """Begin to look, where there is room."""
        super().connection_made(transport)
        self._look_task = self.loop.call_later(self.patience, self._look)
        if not self.descriptors.take():
            self._refuse(crowded())

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more; and tell what answers, which uvicorn does only where nothing came after it."""
        self.descriptors.give_back()
        self._look_task.cancel()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and end what is too large."""
        self._size += len(data)
        super().data_received(data)
        if self._between or self.transport.is_closing():
            return
        if self._in_head and self._size > LARGEST_HEAD:
            self._refuse(
                Refusal(
                    431,
                    "head_too_large",
                    f"head: more than {LARGEST_HEAD // 1024} KiB.",
                    "Send fewer and shorter headers.",
                )
            )
        elif self._size > LARGEST:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Note it."""
        self._between, self._in_head, self._size = False, True, 0
        self._steps += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note it."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note it; after an upgrade nothing is as before."""
        self._between = not self.parser.should_upgrade()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def resume_writing(self) -> None:
        """Note that the client has taken what there was."""
        self._steps += 1
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the same text for all that is no HTTP
        """Refuse what is no HTTP in the envelope of all errors, and close."""
        self._refuse(
            invalid(
                "request: not HTTP/1.1.",
                "Send HTTP/1.1, as RFC 9112 has it; TLS ends in a proxy before this server.",
            )
        )

    def _look(self) -> None:
        """End the connection where it waits for its client, and nothing has changed."""
        steps, left = self._steps, self.transport.get_write_buffer_size()
        if steps == self._looked[0] and self._looked[1] - LEAST < left <= self._looked[1]:
            self._still += 1
        else:
            self._looked, self._still = (steps, left), 0
        if left and self._still >= _LOOKS:
            self.transport.abort()  # what is left has nobody to take it
        elif (
            self._still
            and not left
            and not self.flow.read_paused
            and (not self._between or not steps)
        ):
            self._end()
        self._look_task = self.loop.call_later(self.patience, self._look)

    def _end(self) -> None:
        """Tell a client that it took too long for a head, and close; others know what they were
        about.
        """
        if self._in_head:
            self._refuse(
                Refusal(
                    408, "request_timeout", "head: not whole in time.", "Send a request in one go."
                )
            )
        else:
            self.transport.close()

    def _is_idle(self) -> bool:
        """Tell whether nothing is to be sent before an answer."""
        cycle = self.cycle
        return (cycle is None or cycle.response_complete) and not self.flow.write_paused

    def _snapshot(self) -> bytes:
        """What an answer names as its snapshot; nothing is known of that here."""
        return b""

    def _may_answer(self) -> bool:
        """Tell whether an answer would stand alone: nothing of another has been sent, and none
        comes before it.
        """
        running = self._running
        is_first = (
            running is None
            or running.response_complete
            or (running is self.cycle and not running.response_started)
        )
        return is_first and not self.flow.write_paused

    def _refuse(self, refusal: Refusal) -> None:
        """Close, with a last answer where it would stand alone."""
        if self._may_answer():
            if self._running is not None:
                self._running.disconnected = True  # whatever it was about to say
            status, headers, body = refuse(
                [refusal], Marks(identify(None), self._snapshot()), _CLOSE
            )
            self.transport.write(
                b"%b%b%b\r\n%b"
                % (
                    STATUS_LINE[status],
                    lines(self.server_state.default_headers),
                    lines(headers),
                    body,
                )
            )
        self.transport.close()
