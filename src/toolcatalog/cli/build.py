"""`toolcatalog build`: build the snapshot and the site of a catalog."""

from functools import partial
from pathlib import Path

import click

from toolcatalog.build.pipeline import WorkerSource, build
from toolcatalog.cli import options, output
from toolcatalog.errors import UsageError
from toolcatalog.snapshot import directory, retention
from toolcatalog.system.processes import available_cpus, tune_garbage_collection
from toolcatalog.textutils import pluralize

_EPILOG = """\b
Examples:
  toolcatalog build
  toolcatalog build --catalog my-catalog --out /srv/build --no-site
  toolcatalog build --semantic
  toolcatalog build --semantic=models/all-MiniLM-L12-v2
  toolcatalog build --cluster tcp://scheduler:8786

Prints the digest of the snapshot to standard output. Exits with 1 if the catalog has problems: all
are reported, nothing is built, and the last good build stays. The same applies if more than 10 % of
the tools of the last build would be missing, unless --allow-shrink is given.
"""

_DEFAULT_MODEL = "default"


def _parse_model(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> bool | Path:
    """Return whether to build vectors; the folder of another model if one is given.

    An environment variable may have the values of a flag.
    """
    if value is None or value.casefold() in {"0", "false", "no", "off"}:
        return False
    is_default = value.casefold() in {_DEFAULT_MODEL, "1", "true", "yes", "on"}
    return True if is_default else Path(value)


def _load_worker_source(url: str) -> WorkerSource:
    """Return the source of a cluster's workers."""
    try:
        from toolcatalog.build import cluster  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise UsageError(
            "A cluster needs the package distributed: run `pip install 'toolcatalog[cluster]'`."
        ) from None
    return partial(cluster.connect, url)


@click.command("build", epilog=_EPILOG)
@options.catalog
@options.out
@options.site
@click.option("--no-site", is_flag=True, help="Write no HTML pages.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Number of worker processes.  [default: the number of cores]",
)
@click.option(
    "--cluster",
    metavar="URL",
    help="A dask scheduler whose workers replace --jobs; needs the extra `cluster`.",
)
@click.option(
    "--semantic",
    is_flag=False,
    flag_value=_DEFAULT_MODEL,
    callback=_parse_model,
    metavar="[=MODEL]",
    help="Make the tools searchable by meaning too; needs the extra `semantic`. MODEL is a folder "
    "with a sentence model in the ONNX format and its tokenizer.",
)
@click.option(
    "--allow-shrink",
    is_flag=True,
    help="Build even if more than 10 % of the tools would be missing.",
)
def command(
    catalog: Path,
    out: Path,
    site: Path,
    no_site: bool,
    jobs: int | None,
    cluster: str | None,
    semantic: bool | Path,
    allow_shrink: bool,
) -> None:
    """Validate the catalog and build its snapshot and site."""
    tune_garbage_collection()
    max_loss_percent = (
        directory.UNLIMITED_LOSS_PERCENT if allow_shrink else directory.DEFAULT_MAX_LOSS_PERCENT
    )
    worker_source = _load_worker_source(cluster) if cluster else None
    site_folder = None if no_site else site
    result = build(
        catalog,
        out,
        site_folder,
        output.show_progress,
        jobs or available_cpus(),
        semantic=semantic,
        worker_source=worker_source,
        max_loss_percent=max_loss_percent,
    )
    counts = (
        f"{pluralize(result.tools, 'tool')} in {pluralize(result.tool_versions, 'version')}, "
        f"{pluralize(result.toolkits, 'toolkit')}, {pluralize(result.sessions, 'session')}, "
        f"{pluralize(result.pages, 'page')}"
    )
    output.print_message(f"{'Built' if result.changed else 'Nothing has changed:'} {counts}.")
    if result.foreign_pages:
        output.print_message(
            f"{site} contains {result.foreign_pages:,} pages that are no longer built and were not "
            f"built by you on this machine: they are kept. To remove them, delete the folder and "
            f"build again."
        )
    if (
        result.changed
        and (snapshot_count := len(retention.list_digests(out))) > retention.PRUNE_HINT_THRESHOLD
    ):
        output.print_message(
            f"{out} contains {snapshot_count} snapshots: `toolcatalog snapshots prune --build "
            f"{out}` removes old ones."
        )
    click.echo(result.digest)
