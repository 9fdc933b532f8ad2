"""What `toolcatalog serve` takes to limit lists, and to share limits and keys with other servers."""

from typing import Any

import click

from toolcatalog.errors import UsageError
from toolcatalog.remote import Address
from toolcatalog.server.limiting import Rate, rate_of


class _Rate(click.ParamType[Rate]):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Rate:
        found = value if isinstance(value, Rate) else rate_of(value)
        if found is None:
            self.fail(
                f"{value!r} is not a rate: write a number and /s, /m or /h, as in 100/s", param, ctx
            )
        return found


rate = click.option(
    "--rate",
    type=_Rate(),
    metavar="N/s",
    help="How often a key may list: N/s, N/m or N/h.  [default: as often as it likes]",
)


def check(rate: Rate | None, workers: int, redis: str | None) -> None:
    """Raises UsageError where a worker's share of the rate would be nothing, or where Redis cannot
    be asked.
    """
    if rate and rate.amount < workers:
        raise UsageError(
            f"--rate must be at least 1 for each of {workers} workers: they share it, also "
            "where Redis is away."
        )
    if redis:
        Address(redis)
