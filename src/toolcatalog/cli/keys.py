"""`toolcatalog keys`: create, list, rotate and revoke API keys."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import orjson

from toolcatalog.cli import options, output
from toolcatalog.keys import api_keys
from toolcatalog.keys.redis import RedisKeyStorage, merge_keys
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.keys.storage import FileKeyStorage, KeyStorage

_EPILOG = """\b
Examples:
  toolcatalog keys create --project research
  toolcatalog keys create --project partner --toolkit github,slack --expires 90d
  toolcatalog keys list
  toolcatalog keys rotate key_4Fq0aZ9b --overlap 24h
  toolcatalog keys revoke key_4Fq0aZ9b
  toolcatalog keys list --redis redis://10.0.0.5:6379

A key is shown once, when it is created; the file has only its hash. A running server applies a
change within a second. With --redis the keys are shared by all servers that use the same Redis;
they apply a change within two seconds.
"""
_CREATE_EPILOG = """\b
Examples:
  toolcatalog keys create --project research
  toolcatalog keys create --project partner --toolkit github,slack --expires 90d
"""
_LIST_EPILOG = """\b
Examples:
  toolcatalog keys list --keys /etc/toolcatalog/keys.json
  toolcatalog keys list --format json
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


@click.group("keys", epilog=_EPILOG)
def command() -> None:
    """Create, list, rotate and revoke API keys."""


@command.command(epilog=_CREATE_EPILOG)
@click.option(
    "--project",
    required=True,
    help="The project that the key belongs to; it must own the sessions it reads.",
)
@options.toolkits("Limit the key to this toolkit")
@click.option(
    "--build",
    type=options.FOLDER_TYPE,
    default="build",
    show_default=True,
    help="A build to check the toolkits with, if there is one.",
)
@click.option(
    "--expires",
    type=_DurationType(),
    metavar="DURATION",
    help="How long the key is valid, as in 90d.  [default: no expiry]",
)
@options.keys
@options.redis
def create(
    project: str,
    toolkits: tuple[str, ...],
    build: Path,
    expires: timedelta | None,
    keys_file: Path | None,
    redis: str | None,
) -> None:
    """Create a key and print it to standard output. It is not shown again."""
    if not project.strip():
        raise click.BadParameter("a project needs a name", param_hint="--project")
    if expires == timedelta(0):
        raise click.BadParameter(
            "a key needs a duration above zero: leave the option out for a key without expiry",
            param_hint="--expires",
        )
    _warn_unknown_toolkits(build, toolkits)
    storage = _open_storage(keys_file, redis)
    secret, key = api_keys.create(storage, project.strip(), toolkits or None, expires)
    click.echo(secret)
    output.print_message(
        f"{_describe_key(key)} Kept as a hash in {storage.location}: store the key now, it is not"
        " shown again."
    )


def _warn_unknown_toolkits(build: Path, toolkits: Sequence[str]) -> None:
    """Print a warning for each toolkit that a build does not have; without a build, none."""
    if not toolkits or not (build / "current").exists():
        return
    from toolcatalog.cli import selection  # noqa: PLC0415 - imports numpy

    for message in selection.find_unknown_in_build(build, toolkits):
        output.print_warning(f"{message} The key is created anyway.")


@command.command("list", epilog=_LIST_EPILOG)
@options.keys
@options.redis
@options.output_formats("text", "json")
def list_(keys_file: Path | None, redis: str | None, output_format: str) -> None:
    """List the keys, without their secrets."""
    now = datetime.now(UTC)
    keys = api_keys.load_keys(_open_storage(keys_file, redis))
    if output_format == "json":
        click.echo(orjson.dumps([_to_values(key, now) for key in keys], option=orjson.OPT_INDENT_2))
        return
    rows = [("ID", "PROJECT", "TOOLKITS", "ENDS WITH", "CREATED", "EXPIRES", "STATE")]
    for key in keys:
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
    output.print_lines(
        [("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), "")]
        for row in rows
    )


def _to_values(key: api_keys.ApiKey, now: datetime) -> dict[str, Any]:
    """Return the fields of a key that are no secret."""
    return {
        "id": key.id,
        "project": key.project,
        "toolkits": key.toolkits,
        "hint": key.hint,
        "created": key.created,
        "expires": key.expires,
        "state": key.state(now),
    }


@command.command(epilog=_ROTATE_EPILOG)
@click.argument("id")
@click.option(
    "--overlap",
    type=_DurationType(),
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How long the old key stays valid.",
)
@options.keys
@options.redis
def rotate(id: str, overlap: timedelta, keys_file: Path | None, redis: str | None) -> None:
    """Create the successor of a key; the old key ends after the overlap."""
    secret, key = api_keys.rotate(_open_storage(keys_file, redis), id, overlap)
    click.echo(secret)
    output.print_message(
        f"{_describe_key(key)} It replaces {id}, which expires in {overlap}. Store the key now, it "
        "is not shown again."
    )


@command.command(epilog=_REVOKE_EPILOG)
@click.argument("id")
@options.keys
@options.redis
def revoke(id: str, keys_file: Path | None, redis: str | None) -> None:
    """Revoke a key immediately."""
    key = api_keys.revoke(_open_storage(keys_file, redis), id)
    output.print_message(
        f"Revoked {key.id} of project {key.project}: running servers refuse it within "
        f"{'two seconds' if redis else 'a second'}."
    )


@command.command(epilog=_PUSH_EPILOG)
@options.keys
@options.redis
def push(keys_file: Path | None, redis: str | None) -> None:
    """Add the keys of a file to those in Redis. Keys revoked on either side stay revoked."""
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

    count = remote.update(add_keys)
    output.print_message(
        f"{count:,} key{'s' * (count != 1)} in {remote.location} now, {len(file_keys):,} from the "
        "file."
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
    expiry = f"until {key.expires[:16].replace('T', ' ')} UTC" if key.expires else "no expiry"
    return f"Key {key.id} for project {key.project}, {toolkits}, {expiry}."
