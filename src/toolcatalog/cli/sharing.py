"""What `toolcatalog serve` takes to limit lists, and to share limits and keys with other servers."""

from typing import Any

import click

from toolcatalog.errors import UsageError
from toolcatalog.keys.redis import RedisAddress
from toolcatalog.server.rate_limit import Rate, parse_rate


class _RateType(click.ParamType[Rate]):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Rate:
        found = value if isinstance(value, Rate) else parse_rate(value)
        if found is None:
            self.fail(
                f"{value!r} is not a rate: write a number and /s, /m or /h, as in 100/s", param, ctx
            )
        return found


rate_option = click.option(
    "--rate",
    type=_RateType(),
    metavar="N/s",
    help="How often a key may list: N/s, N/m or N/h.  [default: as often as it likes]",
)


def check_rate_options(rate: Rate | None, workers: int, redis: str | None) -> None:
    """Raises UsageError where a worker's share of the rate would be nothing, or where Redis cannot
    be asked.
    """
    if rate and rate.limit < workers:
        raise UsageError(
            f"--rate must be at least 1 for each of {workers} workers: they share it, also "
            "where Redis is away."
        )
    if redis:
        RedisAddress(redis)
