"""`toolcatalog snapshots`: list, switch, prune and verify the snapshots of a build."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson

from toolcatalog.cli import options, output
from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import retention
from toolcatalog.snapshot.retention import PruneResult, StoredSnapshot

_EPILOG = """\b
Examples:
  toolcatalog snapshots list
  toolcatalog snapshots use 8ee378de73cc
  toolcatalog snapshots prune --keep 5
  toolcatalog snapshots verify

A digest may be shortened as long as it is unique.
"""
_LIST_EPILOG = """\b
Examples:
  toolcatalog snapshots list
  toolcatalog snapshots list --build /srv/catalog/build --format json
"""
_USE_EPILOG = """\b
Example:
  toolcatalog snapshots use 8ee378de73cc

Every byte of the snapshot is verified first; if it is incomplete, nothing changes. A running server
switches to it automatically. The pages of the site stay those of the last build, and the next build
moves forward again to what the catalog says.
"""
_PRUNE_EPILOG = """\b
Examples:
  toolcatalog snapshots prune
  toolcatalog snapshots prune --keep 10 --dry-run

The current snapshot and the newest others are never removed. Incomplete snapshots and leftovers of
killed builds are always removed. A server that has a removed snapshot open continues to read it;
its disk space becomes free when the server closes it.
"""
_VERIFY_EPILOG = """\b
Examples:
  toolcatalog snapshots verify
  toolcatalog snapshots verify 8ee378de73cc e13c728aaa30 --build /srv/catalog/build

Checks size and SHA-256 of every file, and reports files that do not belong there. Exits with 1 if
there is a problem.
"""


@click.group("snapshots", epilog=_EPILOG)
def command() -> None:
    """List, switch, prune and verify the snapshots of a build."""


@command.command("list", epilog=_LIST_EPILOG)
@options.build
@options.output_formats("text", "json")
def list_(build: Path, output_format: str) -> None:
    """List the snapshots, newest first, and mark the current one."""
    snapshots = retention.list_snapshots(build)
    if output_format == "json":
        click.echo(
            orjson.dumps(
                [_to_values(snapshot) for snapshot in snapshots],
                option=orjson.OPT_INDENT_2 | orjson.OPT_OMIT_MICROSECONDS,
            )
        )
        return
    for line in _format_table(snapshots):
        click.echo(line)
    for snapshot in snapshots:
        if snapshot.problem:
            output.print_message(snapshot.problem)


def _to_values(snapshot: StoredSnapshot) -> dict[str, Any]:
    keys = {"installed": "placed", "problem": "wrong"}  # others have the name of the field
    return {keys.get(name, name): value for name, value in asdict(snapshot).items()}


def _format_table(snapshots: Sequence[StoredSnapshot]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("DIGEST", "CREATED (UTC)", "TOOLS", "VERSIONS", "TOOLKITS", "SIZE", "")
    ]
    for digest, snapshot in zip(
        retention.shorten_digests([snapshot.digest for snapshot in snapshots]),
        snapshots,
        strict=True,
    ):
        counts = (
            f"{count:,}" if snapshot.tool_versions or not snapshot.state else "-"
            for count in (snapshot.tools, snapshot.tool_versions, snapshot.toolkits)
        )
        state = ", ".join(filter(None, ("current" if snapshot.current else "", snapshot.state)))
        rows.append(
            (
                digest,
                f"{snapshot.installed:%Y-%m-%d %H:%M}",
                *counts,
                _format_size(snapshot.size),
                state,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    aligned = [str.ljust, str.ljust, str.rjust, str.rjust, str.rjust, str.rjust, str.ljust]
    return [
        "  ".join(
            align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


@command.command(epilog=_USE_EPILOG)
@click.argument("digest")
@options.build
def use(digest: str, build: Path) -> None:
    """Roll back, or forward, to another snapshot."""
    change = retention.switch_current(build, digest, output.show_progress)
    if change.previous == change.current:
        output.print_message(
            f"{build / 'current'} names this snapshot already, and it is complete."
        )
    else:
        previous = (
            f"was {change.previous[: retention.SHORT_DIGEST_LENGTH]}"
            if change.previous
            else "was none"
        )
        output.print_message(
            f"The current snapshot {previous}, and is"
            f" {change.current[: retention.SHORT_DIGEST_LENGTH]} now."
        )
        output.print_message(
            "To roll the site back too, revert the catalog in git and run `toolcatalog build`. "
            "Without the revert, the next build moves forward again."
        )
    click.echo(change.current)


@command.command(epilog=_PRUNE_EPILOG)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Number of snapshots to keep in addition to the current one.",
)
@click.option("--dry-run", is_flag=True, help="Only print which would be removed.")
@options.build
def prune(keep: int, dry_run: bool, build: Path) -> None:
    """Remove old snapshots, except the current one and the newest others."""
    removed, leftover_count = (
        PruneResult(retention.list_prunable(build, keep), 0)
        if dry_run
        else retention.prune_snapshots(build, keep)
    )
    for snapshot in removed:
        click.echo(snapshot.digest)
    summary = (
        f"{_format_count(len(removed))}"
        f" ({_format_size(sum(snapshot.size for snapshot in removed))})"
    )
    leftovers = f", and what {leftover_count:,} killed builds had left" if leftover_count else ""
    output.print_message(
        f"{'Would remove' if dry_run else 'Removed'} {summary}{leftovers}; the current one stays."
    )


@command.command(epilog=_VERIFY_EPILOG)
@click.argument("digests", nargs=-1, metavar="[DIGEST]...")
@options.build
def verify(digests: tuple[str, ...], build: Path) -> int:
    """Verify the checksums of these snapshots, or of all."""
    all_digests = [problem.digest for problem in retention.list_snapshots(build)]
    selected = dict.fromkeys(
        retention.resolve_digest(build, digest) for digest in digests
    ) or dict.fromkeys(all_digests)
    invalid_count = 0
    for digest in selected:
        problems = _find_problems(build, digest)
        invalid_count += bool(problems)
        for problem in problems:
            output.print_message(f"{digest[: retention.SHORT_DIGEST_LENGTH]}: {problem}")
    verdict = f"{invalid_count:,} damaged." if invalid_count else "no problems."
    output.print_message(f"{_format_count(len(selected))} verified: {verdict}")
    return 1 if invalid_count else 0


def _find_problems(build: Path, digest: str) -> list[str]:
    try:
        return retention.verify_by_digest(build, digest, output.show_progress)
    except SnapshotError as error:
        return [str(error)]


def _format_count(number: int) -> str:
    return f"{number:,} snapshot{'' if number == 1 else 's'}"


def _format_size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
