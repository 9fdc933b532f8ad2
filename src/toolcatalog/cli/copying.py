"""`--from URL`: a server's own copy of what is published, followed while it runs."""

from pathlib import Path

import click
from click.core import ParameterSource

from toolcatalog.cli import terminal
from toolcatalog.errors import UsageError
from toolcatalog.server import metrics
from toolcatalog.server.tallies import FAILED, FETCHED, REFUSED, Counts

from_ = click.option(
    "--from",
    "url",
    metavar="URL",
    help="Serve what is published there (s3://bucket/prefix), and follow it; not with --build.",
)
cache = click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the copy of it goes.  [default: a folder in the user's cache]",
)


def followed(url: str, folder: Path | None) -> tuple[Path, metrics.Counted]:
    """The folder of a build that follows the URL from now on, as long as this process lives, and
    what tells how that goes.

    There may be no snapshot in it yet. Raises UsageError where that is in vain: no such address, or
    no library for it.
    """
    from toolcatalog import following  # noqa: PLC0415 - it is needed only here

    if click.get_current_context().get_parameter_source("build") == ParameterSource.COMMANDLINE:
        raise UsageError(
            "A server has one source: give --build DIR, or --from URL and --cache DIR."
        )
    follower = following.Follower(url, folder or following.default_cache(url))
    if not follower.has_one():
        terminal.say(f"Fetching the catalog from {url}: until it is here, every call answers 503.")
    follower.start()

    def counted() -> Counts:
        return Counts(
            events={REFUSED: follower.refused, FETCHED: follower.fetched, FAILED: follower.failed}
        )

    return follower.cache, counted
