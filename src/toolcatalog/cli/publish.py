"""`toolcatalog publish`"""

from pathlib import Path

import click

from toolcatalog.cli import options, output
from toolcatalog.publish import upload
from toolcatalog.publish.object_store import ObjectStorage
from toolcatalog.publish.signatures import SigningKey

_EPILOG = """\b
Examples:
  toolcatalog publish s3://tools/catalog                   what `build` made, for all who follow \
that address
  toolcatalog publish s3://tools/catalog --build /srv/build
  toolcatalog publish s3://tools/catalog --keep 10         and old snapshots out of the store
  AWS_ENDPOINT_URL=https://minio.example.com toolcatalog publish s3://tools/catalog
  toolcatalog publish file:///mnt/shared/catalog           a disk that several machines see
  toolcatalog publish s3://tools/catalog --sign sign.pem   for servers with --verify-key

\b
Make the two halves of a key once, and keep the first one secret:
  openssl genpkey -algorithm ed25519 -out sign.pem && chmod 600 sign.pem
  openssl pkey -in sign.pem -pubout -out verify.pem

Servers take it over with `serve --from s3://tools/catalog`.
"""


@click.command("publish", epilog=_EPILOG)
@click.argument("url")
@options.build
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Objects that are sent at a time.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help="Then remove all but the N newest other snapshots from the store.",
)
@click.option(
    "--sign",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Sign the snapshot with this Ed25519 private key (PEM).",
)
def command(url: str, build: Path, jobs: int, keep: int | None, key_file: Path | None) -> None:
    """Send a build's snapshot to an object store: only what is not there yet, and the pointer to it
    last.

    One that was cut off is gone on with by running it again. With --keep, what no kept snapshot
    needs is removed, but nothing that was written within a day. Prints the digest on standard
    output.
    """

    key = SigningKey(key_file) if key_file else None
    objects = ObjectStorage(url)
    result = upload.upload_snapshot(objects, build, jobs, output.show_progress, key)
    if result.object_count:
        output.print_message(f"Sent {result.object_count:,} objects, {result.bytes_sent:,} bytes.")
    elif result.pointer_moved:
        output.print_message("Nothing to send but the pointer.")
    else:
        output.print_message("Nothing to send: this snapshot is published already.")
    if result.signature_removed:
        output.print_message(
            "The snapshot before was signed and this one is not: servers with --verify-key refuse "
            "it. Publish again with --sign KEYFILE."
        )
    if keep is not None:
        pruned = upload.prune_storage(objects, keep)
        output.print_message(
            f"Removed {pruned.snapshot_count:,} snapshots, {pruned.object_count:,} objects, "
            f"{pruned.bytes_freed:,} bytes."
        )
    click.echo(result.digest)
