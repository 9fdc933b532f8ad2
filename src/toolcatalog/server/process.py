"""What answers in one process, put together from what a server is told at its start."""

import socket
from dataclasses import dataclass
from pathlib import Path

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from toolcatalog import accepting, keys
from toolcatalog.errors import SnapshotError
from toolcatalog.server import metrics, scraping
from toolcatalog.server.accesslog import AccessLog
from toolcatalog.server.app import create_app
from toolcatalog.server.ledger import Page
from toolcatalog.server.limiting import Counts, Limits, Rate
from toolcatalog.server.live import Flag, Live
from toolcatalog.server.reloading import Reloading, named
from toolcatalog.signing import VerifyKeys
from toolcatalog.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server is told at its start; it travels to every worker. `waits`: there may be no
    build yet, it is being fetched.

    `drain`: seconds for which a server goes on after SIGTERM, while `/readyz` says 503. `mcp`:
    agents are answered at `/mcp`. `scraped_apart`: metrics have a socket of their own. `pages`: the
    folder where several processes write down what they count. `rate`: how often a key may list.
    `redis`: the URL of what several servers share their keys and counts through. `verify_keys`:
    only a snapshot is served that one of them has signed.
    """

    build: Path
    keys: Path
    site: Path | None
    workers: int = 1
    drain: float = 0.0
    waits: bool = False
    mcp: bool = False
    access_log: Path | None = None
    scraped_apart: bool = False
    pages: Path | None = None
    rate: Rate | None = None
    redis: str | None = None
    verify_keys: VerifyKeys | None = None


def application(
    settings: Settings,
    draining: Flag,
    scraped: socket.socket | None = None,
    beside: metrics.Counted | None = None,
) -> ASGIApp:
    """What answers in one process, and follows the build. Raises SnapshotError or KeyFileError."""
    seen = named(settings.build)  # before it is opened: what comes between is opened once more
    store = opened(settings.build, settings.verify_keys, waits=settings.waits)
    live = Live(keys.KeyRing(settings.keys), store, draining, _limits(settings))
    if store is None and settings.verify_keys:
        seen = None  # a snapshot that is here already may still get its signature
    Reloading(live, settings.build, seen, settings.verify_keys).start()
    every = _every(live, settings, beside)
    if scraped:
        metrics.serve(every, scraped)
    more = _mcp(live) if settings.mcp else []
    return create_app(
        live, settings.site, more if settings.scraped_apart else [*more, scraping.route(every)]
    )


def _limits(settings: Settings) -> Limits | None:
    """Who counts in this process: it alone, for its share of the rate, or Redis for all."""
    if settings.rate is None:
        return None
    own = Counts(settings.rate.share(settings.workers))
    if settings.redis is None:
        return own
    from toolcatalog.remote import Address  # noqa: PLC0415 - only where there is a Redis
    from toolcatalog.server.pooled import Pooled  # noqa: PLC0415

    return Pooled(Address(settings.redis), settings.rate, own)


def _every(live: Live, settings: Settings, beside: metrics.Counted | None) -> metrics.Every:
    """What tells the counts of all processes; the access log begins, where there is to be one."""
    if settings.access_log:
        live.witness.log = AccessLog(settings.access_log, live.witness.tallies)
    if settings.pages is None:
        return lambda: [live.counts(), *([beside()] if beside else [])]
    live.witness.page = page = Page(settings.pages, live.counts)
    return page.every


def _mcp(live: Live) -> list[BaseRoute]:
    from toolcatalog.server import mcp_route  # noqa: PLC0415 - it comes with an extra, and takes a while to load

    return [mcp_route.route(live)]


def opened(build: Path, verify_keys: VerifyKeys | None = None, *, waits: bool) -> Store | None:
    """The snapshot in force in a build, signed by one of the keys where there are any. Raises
    SnapshotError where there is none; where one is waited for, None says so.
    """
    try:
        return accepting.open_accepted(build, verify_keys)
    except SnapshotError:
        if waits:
            return None
        raise
