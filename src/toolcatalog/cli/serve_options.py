"""Options of `toolcatalog serve`: sockets, proxies, logs, rate limit and a store to follow."""

import importlib.util
import re
import socket
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from toolcatalog.cli import listeners, output
from toolcatalog.errors import UsageError
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.publish.follower import MAX_SNAPSHOT_SIZE, Follower, default_cache
from toolcatalog.publish.signatures import VerifyKeys
from toolcatalog.server.limits.rate_limit import Rate, parse_rate
from toolcatalog.server.logs import server_log
from toolcatalog.server.metrics import prometheus
from toolcatalog.server.metrics.counters import (
    REFUSED_SNAPSHOTS,
    SNAPSHOTS_FETCHED,
    STORE_FAILURES,
    CounterValues,
)


class _RateType(click.ParamType[Rate]):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Rate:
        rate = value if isinstance(value, Rate) else parse_rate(value)
        if rate is None:
            self.fail(
                f"{value!r} is not a rate: write a number and /s, /m or /h, as in 100/s", param, ctx
            )
        return rate


rate_option = click.option(
    "--rate",
    type=_RateType(),
    metavar="N/s",
    help="How many list requests a key may send: N/s, N/m or N/h.  [default: unlimited]",
)


def check_rate_options(rate: Rate | None, workers: int, redis: str | None) -> None:
    """Raise UsageError if a worker's share of the rate would be zero, or if Redis is unusable."""
    if rate and rate.limit < workers:
        raise UsageError(
            f"--rate must be at least 1 for each of {workers} workers: they share it, also while "
            f"Redis is down."
        )
    if redis:
        RedisAddress(redis)


from_option = click.option(
    "--from",
    "url",
    metavar="URL",
    help="Serve the snapshots published at this URL (s3://bucket/prefix); not with --build.",
)
_SIZE_UNITS = {
    "": 1,
    "B": 1,
    **{f"{prefix}iB": 1 << 10 * power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}B": 10 ** (3 * power) for power, prefix in enumerate("kMGT", 1)},
}


class _SizeType(click.ParamType[int]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([1-9][0-9]{0,14}) ?([kKMGT]?i?B?)", str(value))
        if not match or match[2] not in _SIZE_UNITS:
            self.fail(
                f"{value!r} is not a size: write a whole number and B, MiB or GiB, as in 8GiB",
                param,
                ctx,
            )
        unit: int = _SIZE_UNITS[match[2]]
        return int(match[1]) * unit


max_size_option = click.option(
    "--max-snapshot-size",
    "max_size",
    type=_SizeType(),
    metavar="SIZE",
    help="Refuse to fetch a snapshot that is larger, as in 20GiB.  [default: 8GiB]",
)
verify_key_option = click.option(
    "--verify-key",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Serve only what was published with --sign and the private half of this key (PEM).",
)
allow_rollback_option = click.option(
    "--allow-rollback",
    is_flag=True,
    help="With --verify-key: accept a snapshot that was signed before the last one.",
)
cache_option = click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for fetched snapshots.  [default: a folder in the user's cache]",
)


def load_verify_keys(
    url: str | None, max_bytes: int | None, key_file: Path | None, *, allow_rollback: bool
) -> VerifyKeys | None:
    """Return the keys of `--verify-key`.

    Raises UsageError if the file has none, or if an option needs another one.
    """
    if allow_rollback and not key_file:
        raise UsageError(
            "--allow-rollback goes with --verify-key FILE: without a key every snapshot is "
            "accepted."
        )
    for value, option in ((max_bytes, "--max-snapshot-size"), (key_file, "--verify-key")):
        if value is not None and not url:
            raise UsageError(f"{option} goes with --from URL: a build of this machine is trusted.")
    return VerifyKeys.load(key_file) if key_file else None


def start_follower(
    url: str,
    folder: Path | None,
    *,
    max_bytes: int | None = None,
    keys: VerifyKeys | None = None,
    allow_rollback: bool = False,
) -> tuple[Path, prometheus.ReadCounts]:
    """Start to follow a URL; return the folder of the build and a function that returns counters.

    The follower runs as long as this process. `max_bytes`, `keys` and `allow_rollback` are passed
    to `Follower`. The folder may have no snapshot yet. Raises UsageError if the address is invalid
    or the library for it is not installed.
    """
    if click.get_current_context().get_parameter_source("build") == ParameterSource.COMMANDLINE:
        raise UsageError(
            "A server has one source: give --build DIR, or --from URL and --cache DIR."
        )
    follower = Follower(
        url,
        folder or default_cache(url),
        max_size=max_bytes or MAX_SNAPSHOT_SIZE,
        keys=keys,
        allow_rollback=allow_rollback,
    )
    if not follower.has_snapshot():
        output.print_message(
            f"Fetching the catalog from {url}: until then, every request returns 503."
        )
    follower.start()

    def read_counts() -> CounterValues:
        return CounterValues(
            events={
                REFUSED_SNAPSHOTS: follower.snapshots_rejected,
                SNAPSHOTS_FETCHED: follower.snapshots_fetched,
                STORE_FAILURES: follower.failed_polls,
            }
        )

    return follower.cache, read_counts


DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000
host_option = click.option("--host", help=f"The address to listen on.  [default: {DEFAULT_HOST}]")
port_option = click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port to listen on; 0 selects a free port.  [default: {DEFAULT_PORT}]",
)
uds_option = click.option(
    "--uds",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Listen on a Unix domain socket instead of an address.",
)
fd_option = click.option(
    "--fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Listen on an open socket with this file descriptor, as systemd passes it (3).",
)


class _RootPathType(click.ParamType[str]):
    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", value):
            self.fail(
                f"{value!r} is not a root path: write names, each after a slash, as in /catalog",
                param,
                ctx,
            )
        path: str = value
        return path.rstrip("/")


root_path_option = click.option(
    "--root-path",
    type=_RootPathType(),
    default="",
    metavar="PATH",
    help="The path below which a proxy publishes the server. The proxy removes it from requests.",
)
forwarded_option = click.option(
    "--forwarded-allow-ips",
    metavar="IPS",
    envvar="FORWARDED_ALLOW_IPS",
    help="Proxies whose X-Forwarded-For is trusted: addresses, networks or *, with commas.",
)
log_level_option = click.option(
    "--log-level",
    type=click.Choice(server_log.LEVELS),
    default="info",
    show_default=True,
    help="The lowest level that the server log contains.",
)
log_format_option = click.option(
    "--log-format",
    type=click.Choice(server_log.FORMATS),
    default="text",
    show_default=True,
    help="The format of the server log on standard error.",
)


def open_listener(
    host: str | None, port: int | None, path: Path | None, descriptor: int | None
) -> socket.socket:
    """Return the listening socket of `--host` and `--port`, `--uds` or `--fd`.

    Raises UsageError if there is more than one of them, or if the socket cannot be opened.
    """
    has_address = host is not None or port is not None
    if sum((has_address, path is not None, descriptor is not None)) > 1:
        raise UsageError(
            "A server listens on one socket: give --host and --port, --uds PATH, or --fd N."
        )
    if path is not None:
        return listeners.open_unix_listener(path)
    if descriptor is not None:
        return listeners.inherit_listener(descriptor)
    return listeners.open_listener(host or DEFAULT_HOST, DEFAULT_PORT if port is None else port)


def find_pages(site: Path, url: str | None) -> Path | None:
    """Return the folder of the site, or None if no site was built there.

    A server that follows a store serves a site only if the user names it: the default folder can
    have the site of another catalog.
    """
    source = click.get_current_context().get_parameter_source("site")
    if url and source in {None, ParameterSource.DEFAULT}:
        return None
    return site if (site / "index.html").is_file() else None


def require_tracing() -> None:
    """Raise UsageError with install instructions if the extra `otel` is not installed."""
    if importlib.util.find_spec("opentelemetry.instrumentation.asgi") is None:
        raise UsageError("--otel needs OpenTelemetry: run `pip install 'toolcatalog[otel]'`.")
