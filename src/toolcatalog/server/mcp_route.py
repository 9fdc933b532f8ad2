"""`POST /mcp`: MCP over streamable HTTP, to the holders of keys. Needs the extra `mcp`.

Each request stands by itself: whose key it is, from which snapshot it is answered, and a transport
of the SDK that lives as long as the request. Nothing is kept between two, so any worker and any
replica may answer the next one, and the server needs no lifespan. Who is no guest here is refused
in the API's envelope; what is wrong with a message is answered in MCP's own way.
"""

import re
from functools import partial

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from toolcatalog.keys import Key
from toolcatalog.server import speaking
from toolcatalog.server.agents import Seen
from toolcatalog.server.live import Live, Serving
from toolcatalog.server.operations import stranger
from toolcatalog.server.questions import LARGEST_BODY
from toolcatalog.server.refusals import Refusal, Refused, invalid, not_ready

PATH = "/mcp"
_OWN_MACHINE = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


def route(live: Live) -> Route:
    """The route to the endpoint. A GET would open a stream of news, and a DELETE end a session:
    there are none, so both are 405.
    """
    return Route(PATH, Mcp(live), methods=["POST"])


class Mcp:
    """The endpoint, an ASGI application for POST."""

    def __init__(self, live: Live) -> None:
        self.live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises Refused for one without a good key, and from a page of another
        origin.
        """
        request = Request(scope, receive)
        _refuse_pages(request.headers.get("origin"))
        key = self._key(request)
        seen, session = _seen(request, key), request.query_params.get("session", "")
        if session and isinstance(refusal := seen.view.session(session, seen.project), Refusal):
            raise Refused(refusal)
        body = await _body(request)
        talking = StreamableHTTPSessionManager(
            speaking.server(lambda: seen, session, partial(self._count, key)),
            json_response=True,
            stateless=True,
        )
        async with talking.run():
            await talking.handle_request(scope, _Replayed(body, receive), send)

    def _key(self, request: Request) -> Key:
        """Whose request it is: by the header of the API, or by the one that clients of MCP send."""
        bearer = _BEARER.fullmatch(request.headers.get("authorization", ""))
        secret = request.headers.get("x-api-key") or (bearer[1] if bearer else "")
        request.scope["key"] = key = self.live.keys.find(secret.encode("latin-1")) or stranger()
        return key

    async def _count(self, key: Key) -> Refusal | None:
        """Count a search as a list of this key, where lists are counted; what is said to one too
        many.
        """
        if self.live.limits is None:
            return None
        now = await self.live.limits.hit(key.id)
        return None if now.is_within else now.refusal()


def _seen(request: Request, key: Key) -> Seen:
    serving: Serving | None = request.scope["serving"]
    if serving is None:
        raise Refused(not_ready())
    return Seen(serving.store, key.toolkits, key.project)


class _Replayed:
    """A body that has been read, and then whatever else comes from the client."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        body, self.body = self.body, None
        return (
            await self.receive()
            if body is None
            else {"type": "http.request", "body": body, "more_body": False}
        )


def _refuse_pages(origin: str | None) -> None:
    """Refuse what a page in a browser sends, unless it is a page of the own machine, as inspectors
    of MCP are.
    """
    if origin and not _OWN_MACHINE.fullmatch(origin):
        fix = "Call it from a program, or from a page at localhost."
        raise Refused(
            Refusal(403, "forbidden", f"origin: pages of {origin[:200]} may not call {PATH}.", fix)
        )


async def _body(request: Request) -> bytes:
    """The request's body. Raises Refused as soon as it is too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            raise Refused(
                invalid(
                    "body: more than 64 KiB.",
                    "Send one message of MCP at a time, without what is not needed.",
                )
            )
    return data
