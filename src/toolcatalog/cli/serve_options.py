"""Options of `toolcatalog serve`: socket, rate limit, Redis and an object store to follow."""

import errno
import os
import re
import socket
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from toolcatalog.cli import output
from toolcatalog.errors import UsageError
from toolcatalog.keys.redis import RedisAddress
from toolcatalog.publish.follower import MAX_SNAPSHOT_SIZE, Follower, default_cache
from toolcatalog.publish.signatures import VerifyKeys
from toolcatalog.server.metrics import prometheus
from toolcatalog.server.metrics.counters import (
    REFUSED_SNAPSHOTS,
    SNAPSHOTS_FETCHED,
    STORE_FAILURES,
    CounterValues,
)
from toolcatalog.server.rate_limit import Rate, parse_rate


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
    help="How often a key may list: N/s, N/m or N/h.  [default: unlimited]",
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


_BACKLOG = 2048  # connections that may wait to be taken


def open_listener(host: str, port: int, option_names: str = "--port or --host") -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises UsageError with the reason and `option_names` if the socket cannot be opened.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # errors of name look-up have numbers of their own
        has_errno = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno or 0) if has_errno else error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "the port is in use"
        raise UsageError(
            f"Cannot listen on {host}:{port} ({reason}): choose another with {option_names}."
        ) from None


def parse_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT` or `[HOST]:PORT`. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and re.fullmatch("[0-9]{1,5}", port) and int(port) <= 65535) or (
        ":" in host and not host.startswith("[")
    ):
        raise UsageError(
            f"{text!r} is not an address: write HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100."
        )
    return host.strip("[]"), int(port)


def listener_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket, as a user enters it in a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
