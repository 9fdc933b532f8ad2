"""`--from URL`: a server's own copy of what is published, followed while it runs."""

import re
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from toolcatalog.cli import terminal
from toolcatalog.errors import UsageError
from toolcatalog.publish.signatures import VerifyKeys
from toolcatalog.server.metrics import prometheus
from toolcatalog.server.metrics.counters import (
    REFUSED_SNAPSHOTS,
    SNAPSHOTS_FETCHED,
    STORE_FAILURES,
    CounterValues,
)

from_option = click.option(
    "--from",
    "url",
    metavar="URL",
    help="Serve what is published there (s3://bucket/prefix), and follow it; not with --build.",
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
    "most",
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
    help="With --verify-key: take a snapshot that was signed before the last one.",
)
cache_option = click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the copy of it goes.  [default: a folder in the user's cache]",
)


def load_verify_keys(
    url: str | None, max_bytes: int | None, key_file: Path | None, *, allow_rollback: bool
) -> VerifyKeys | None:
    """The keys of `--verify-key`. Raises UsageError where there are none in the file, or where an
    option has nothing to go with.
    """
    if allow_rollback and not key_file:
        raise UsageError(
            "--allow-rollback goes with --verify-key FILE: without a key every snapshot is taken."
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
    """The folder of a build that follows the URL from now on, as long as this process lives, and
    what tells how that goes. `most`, in bytes, `keys` and `allow_rollback` are as `Follower` takes
    them.

    There may be no snapshot in it yet. Raises UsageError where that is in vain: no such address, or
    no library for it.
    """
    from toolcatalog.publish import follower as publish_follower  # noqa: PLC0415 - it is needed only here

    if click.get_current_context().get_parameter_source("build") == ParameterSource.COMMANDLINE:
        raise UsageError(
            "A server has one source: give --build DIR, or --from URL and --cache DIR."
        )
    follower = publish_follower.Follower(
        url,
        folder or publish_follower.default_cache(url),
        max_size=max_bytes or publish_follower.MAX_SNAPSHOT_SIZE,
        keys=keys,
        allow_rollback=allow_rollback,
    )
    if not follower.has_snapshot():
        terminal.print_message(
            f"Fetching the catalog from {url}: until it is here, every call answers 503."
        )
    follower.start()

    def counted() -> CounterValues:
        return CounterValues(
            events={
                REFUSED_SNAPSHOTS: follower.snapshots_rejected,
                SNAPSHOTS_FETCHED: follower.snapshots_fetched,
                STORE_FAILURES: follower.failed_polls,
            }
        )

    return follower.cache, counted
