"""`toolcatalog keys`"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from toolcatalog import names
from toolcatalog.cli import options, output
from toolcatalog.keys import api_keys
from toolcatalog.keys.redis import RedisAddress, RedisKeyStorage, merge_keys
from toolcatalog.keys.storage import FileKeyStorage, KeyStorage

_EPILOG = """\b
Examples:
  toolcatalog keys create --project research
  toolcatalog keys create --project partner --toolkits github,slack --expires 90d
  toolcatalog keys list
  toolcatalog keys rotate key_4Fq0aZ9b --overlap 24h
  toolcatalog keys revoke key_4Fq0aZ9b
  toolcatalog keys list --redis redis://10.0.0.5:6379

A key is shown once, when it is made; the file keeps only its hash. A running server takes a change
over within a second. With --redis the keys are those of all servers that were started with the same
--redis, which have a change within two seconds.
"""
_CREATE_EPILOG = """\b
Examples:
  toolcatalog keys create --project research
  toolcatalog keys create --project partner --toolkits github,slack --expires 90d
"""
_LIST_EPILOG = """\b
Example:
  toolcatalog keys list --keys /etc/toolcatalog/keys.json
"""
_ROTATE_EPILOG = """\b
Examples:
  toolcatalog keys rotate key_4Fq0aZ9b
  toolcatalog keys rotate key_4Fq0aZ9b --overlap 0s
"""
_REVOKE_EPILOG = """\b
Example:
  toolcatalog keys revoke key_4Fq0aZ9b
"""
_PUSH_EPILOG = """\b
Example:
  toolcatalog keys push --keys /etc/toolcatalog/keys.json --redis redis://10.0.0.5:6379
"""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class _DurationType(click.ParamType[timedelta]):
    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([0-9]{1,5})([smhdw])", value)
        if not match:
            self.fail(
                (
                    f"{value!r} is not a duration: write a number and s, m, h, d or w, as in 24h "
                    "or 90d"
                ),
                param,
                ctx,
            )
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


class _ToolkitsType(click.ParamType[tuple[str, ...]]):
    name = "slugs"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        slugs = (
            tuple(dict.fromkeys(slug.strip() for slug in value.split(",") if slug.strip()))
            if isinstance(value, str)
            else value
        )
        for slug in slugs:
            if not names.is_valid(names.TOOLKIT_SLUG, slug):
                self.fail(
                    (
                        f"{slug!r} is not a toolkit slug: write lower-case slugs with commas "
                        "between, as in github,slack"
                    ),
                    param,
                    ctx,
                )
        if not slugs:
            self.fail("no toolkit is named: leave the option out for all toolkits", param, ctx)
        return tuple(slugs)


@click.group("keys", epilog=_EPILOG)
def command() -> None:
    """Create, list, rotate and revoke API keys."""


@command.command(epilog=_CREATE_EPILOG)
@click.option(
    "--project",
    required=True,
    help="The project that the key belongs to; it must own the sessions it reads.",
)
@click.option(
    "--toolkits", type=_ToolkitsType(), metavar="A,B", help="Limit the key to these toolkits."
)
@click.option(
    "--expires",
    type=_DurationType(),
    metavar="DURATION",
    help="When the key ends, as in 90d. Never, if left out.",
)
@options.keys
@options.redis
def create(
    project: str,
    toolkits: tuple[str, ...] | None,
    expires: timedelta | None,
    keys_file: Path | None,
    redis: str | None,
) -> None:
    """Make a key: printed alone on standard output, and never again."""
    if not project.strip():
        raise click.BadParameter("a project needs a name", param_hint="--project")
    if expires == timedelta(0):
        raise click.BadParameter(
            "a key must live for a while: leave the option out for a key without end",
            param_hint="--expires",
        )
    storage = _open_storage(keys_file, redis)
    secret, key = api_keys.create(storage, project.strip(), toolkits, expires)
    click.echo(secret)
    output.print_message(
        f"{_describe_key(key)} Kept as a hash in {storage.location}: store the key now, it is not"
        " shown again."
    )


@command.command("list", epilog=_LIST_EPILOG)
@options.keys
@options.redis
def list_(keys_file: Path | None, redis: str | None) -> None:
    """List the keys, without their secrets."""
    now = datetime.now(UTC)
    rows = [("ID", "PROJECT", "TOOLKITS", "ENDS WITH", "CREATED", "EXPIRES", "STATE")]
    for key in api_keys.load_keys(_open_storage(keys_file, redis)):
        toolkits = "all" if key.toolkits is None else ",".join(key.toolkits) or "none"
        rows.append(
            (
                key.id,
                key.project,
                toolkits,
                key.hint,
                key.created[:10],
                (key.expires or "never")[:16],
                key.state(now),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


@command.command(epilog=_ROTATE_EPILOG)
@click.argument("id")
@click.option(
    "--overlap",
    type=_DurationType(),
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How long the old key stays good.",
)
@options.keys
@options.redis
def rotate(id: str, overlap: timedelta, keys_file: Path | None, redis: str | None) -> None:
    """Make the successor of a key; the old one ends after the overlap."""
    secret, key = api_keys.rotate(_open_storage(keys_file, redis), id, overlap)
    click.echo(secret)
    output.print_message(
        f"{_describe_key(key)} It follows {id}, which ends in {overlap}. Store the key now, it is "
        "not shown again."
    )


@command.command(epilog=_REVOKE_EPILOG)
@click.argument("id")
@options.keys
@options.redis
def revoke(id: str, keys_file: Path | None, redis: str | None) -> None:
    """End a key at once."""
    key = api_keys.revoke(_open_storage(keys_file, redis), id)
    output.print_message(
        f"Revoked {key.id} of project {key.project}: running servers refuse it within "
        f"{'two seconds' if redis else 'a second'}."
    )


@command.command(epilog=_PUSH_EPILOG)
@options.keys
@options.redis
def push(keys_file: Path | None, redis: str | None) -> None:
    """Add the keys of a file to those in Redis; nothing that was revoked on either side comes
    back.
    """
    if not redis:
        raise click.MissingParameter(param_hint="'--redis'", param_type="option")
    remote, file_keys = (
        _open_storage(None, redis),
        api_keys.load_keys(keys_file or api_keys.default_key_file()),
    )

    def add_keys(data: bytes | None) -> tuple[bytes, int]:
        all_keys = merge_keys(
            api_keys.parse_keys(data, remote) if data is not None else (), file_keys
        )
        return api_keys.serialize_keys(all_keys), len(all_keys)

    output.print_message(
        f"{remote.update(add_keys):,} keys are in {remote.location} now, {len(file_keys):,} of them"
        " from the file."
    )


def _open_storage(keys_file: Path | None, redis: str | None) -> KeyStorage:
    """Return the storage that the options select."""
    if not redis:
        return FileKeyStorage(keys_file or api_keys.default_key_file())
    return RedisKeyStorage(RedisAddress(redis))


def _describe_key(key: api_keys.ApiKey) -> str:
    toolkits = (
        "all toolkits" if key.toolkits is None else f"toolkits {', '.join(key.toolkits) or 'none'}"
    )
    expiry = f"until {key.expires[:16].replace('T', ' ')} UTC" if key.expires else "without end"
    return f"Key {key.id} for project {key.project}, {toolkits}, {expiry}."
