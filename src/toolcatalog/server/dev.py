"""The development server: rebuild the site after each change and reload browsers.

If the catalog has problems, the last good pages stay and show what is wrong, where, and how to fix
it. The server adds one script to each page; the site on disk is the same as that of any build.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib import resources
from ipaddress import ip_address
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from watchfiles import awatch

from toolcatalog.errors import InvalidCatalog, Problem, ToolcatalogError
from toolcatalog.server.lifespan import receive_lifespan

_MAX_PROBLEMS = 20  # problems sent to a browser
_SCRIPT = b'<script src="/_dev/live.js"></script></head>'
_PORT = re.compile(r":[0-9]*\Z")
_MISDIRECTED = (
    "This server answers only to localhost and to the host given with --host: open the address "
    "that `toolcatalog dev` shows.\n"
)
_MAX_PATH_LENGTH = 1024  # characters, as in `server.app`: looking up a longer one takes long
_DEBOUNCE_MS = 100  # milliseconds without a change; editors write a file in several steps
BuildFunction = Callable[[], str]  # builds the site and returns the digest of the snapshot
ReportFunction = Callable[[str], None]


class LiveReload:
    """The events for browsers: how often the site has changed, and the current problems."""

    def __init__(self) -> None:
        self.change_count = 0
        self.problems: Sequence[dict[str, object]] = ()
        self._changed = asyncio.Event()

    def notify(self, problems: Sequence[dict[str, object]], *, changed: bool) -> None:
        """Send an event to all browsers."""
        self.change_count += changed
        self.problems = problems
        self._changed.set()
        self._changed = asyncio.Event()

    async def stream_events(self) -> AsyncIterator[bytes]:
        """Yield the current state, and then each new one, as server-sent events."""
        while True:
            news = self._changed
            yield b"data: %b\n\n" % orjson.dumps(
                {"changes": self.change_count, "problems": self.problems}
            )
            await news.wait()


def rebuild(build: BuildFunction) -> tuple[str, list[dict[str, object]]]:
    """Build the site; return the digest, empty if the build failed, and the problems."""
    try:
        return build(), []
    except InvalidCatalog as invalid:
        return "", [_problem_to_dict(problem) for problem in invalid.problems[:_MAX_PROBLEMS]]
    except ToolcatalogError as error:
        return "", [{"path": "", "message": str(error)}]


def _problem_to_dict(problem: Problem) -> dict[str, object]:
    return asdict(problem)


def create_dev_app(
    catalog: Path,
    site: Path,
    build: BuildFunction,
    digest: str,
    report: ReportFunction,
    host: str = "127.0.0.1",
) -> ASGIApp:
    """Return the application that serves the site and rebuilds it when the catalog changes.

    `digest` is that of the current build; `host` is the address that the server listens on. A
    request whose `Host` is neither this machine nor `host` gets 421: a web page can point its own
    host name to the address of this machine, and could then read the catalog and its problems. No
    other site may load files of this one, such as the scripts with the data of the search.
    """
    live = LiveReload()

    @asynccontextmanager
    async def watching(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001 - required
        task = asyncio.create_task(_watch_catalog(catalog, build, digest, live, report))
        yield
        task.cancel()

    async def events(request: Request) -> Response:  # noqa: ARG001 - required
        return StreamingResponse(
            live.stream_events(),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )

    async def script(request: Request) -> Response:  # noqa: ARG001 - required
        return Response(
            (resources.files("toolcatalog.server") / "live.js").read_bytes(),
            media_type="text/javascript",
        )

    app = Starlette(
        routes=[Route("/_dev/events", events), Route("/_dev/live.js", script)], lifespan=watching
    )
    app.router.default = _ReloadingPages(StaticFiles(directory=site, html=True))

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_trusted(Headers(scope=scope).get("host", ""), host):
            await PlainTextResponse(_MISDIRECTED, 421)(scope, receive, send)
            return

        async def send_to_this_site(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["cross-origin-resource-policy"] = "same-origin"
            await send(message)

        await app(
            scope,
            partial(receive_lifespan, receive) if scope["type"] == "lifespan" else receive,
            send_to_this_site,
        )

    return answer


def is_trusted(header: str, host: str) -> bool:
    """Return whether a `Host` header names this machine.

    That is a loopback address, `localhost`, or the host given with `--host`. If that is an address
    for all interfaces (0.0.0.0, ::), any address is accepted.
    """
    name = _PORT.sub("", header.strip().lower()).strip("[]")
    if name in ("localhost", host.lower()):
        return True
    try:
        return ip_address(name).is_loopback or ip_address(host).is_unspecified
    except ValueError:
        return False


async def _watch_catalog(
    catalog: Path,
    build: BuildFunction,
    digest: str,
    live_reload: LiveReload,
    report: ReportFunction,
) -> None:
    async for _ in awatch(catalog, step=_DEBOUNCE_MS):
        now, problems = await run_in_threadpool(rebuild, build)
        changed = now not in ("", digest)
        digest = now or digest
        report(_format_status(problems, changed=changed))
        live_reload.notify(problems, changed=changed)


def _format_status(problems: Sequence[dict[str, object]], *, changed: bool) -> str:
    if not problems:
        return "Built again." if changed else "No visible change."
    first = problems[0]
    where = f"{first['path']}:{first['line']}:{first['column']}: " if first["path"] else ""
    return f"{where}{first['message']}" + (
        f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    )


class _ReloadingPages:
    """Serves files, and adds the reload script to pages."""

    def __init__(self, files: ASGIApp) -> None:
        self.files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(scope["path"]) > _MAX_PATH_LENGTH:
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
            return
        start: Message = {}
        body = b""

        async def send_on(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
            if not dict(start["headers"]).get(b"content-type", b"").startswith(b"text/html"):
                await send(message)
            elif message is not start:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    await _send_page(start, body.replace(b"</head>", _SCRIPT, 1), send)

        fresh = [
            header
            for header in scope["headers"]
            if header[0] not in (b"if-none-match", b"if-modified-since")
        ]
        await self.files({**scope, "headers": fresh}, receive, send_on)


async def _send_page(start: Message, body: bytes, send: Send) -> None:
    others = [
        header
        for header in start["headers"]
        if header[0] not in (b"content-length", b"etag", b"last-modified")
    ]
    await send(
        {
            **start,
            "headers": [
                *others,
                (b"content-length", b"%d" % len(body)),
                (b"cache-control", b"no-store"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
