"""`toolcatalog publish`: upload a snapshot to an object store."""

from pathlib import Path

import click

from toolcatalog.cli import options, output
from toolcatalog.publish import upload
from toolcatalog.publish.object_store import ObjectStorage
from toolcatalog.publish.signatures import SigningKey
from toolcatalog.textutils import pluralize

_EPILOG = """\b
Examples:
  toolcatalog publish s3://tools/catalog                   the current snapshot
  toolcatalog publish s3://tools/catalog --build /srv/build
  toolcatalog publish s3://tools/catalog --keep 10         also remove old snapshots
  AWS_ENDPOINT_URL=https://minio.example.com toolcatalog publish s3://tools/catalog
  toolcatalog publish s3://tools/catalog --verify          also repair damaged objects
  toolcatalog publish file:///mnt/shared/catalog           a shared disk
  toolcatalog publish s3://tools/catalog --sign sign.pem   for servers with --verify-key

\b
Create a pair of keys once, and keep the first file secret:
  openssl genpkey -algorithm ed25519 -out sign.pem && chmod 600 sign.pem
  openssl pkey -in sign.pem -pubout -out verify.pem

Servers read it with `serve --from s3://tools/catalog`.
"""


@click.command("publish", epilog=_EPILOG)
@click.argument("url")
@options.build
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Number of parallel uploads.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help="Then remove old snapshots from the store, except the N newest.",
)
@click.option(
    "--sign",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Sign the snapshot with this Ed25519 private key (PEM).",
)
@click.option(
    "--verify",
    "verify_objects",
    is_flag=True,
    help="Also read the objects in the store, and send damaged ones again.",
)
def command(
    url: str,
    build: Path,
    jobs: int,
    keep: int | None,
    key_file: Path | None,
    *,
    verify_objects: bool,
) -> None:
    """Upload the current snapshot of a build to an object store.

    Only missing objects are sent, and the pointer to the snapshot last. Run it again to resume an
    interrupted upload, and with --verify to repair a snapshot that servers refuse. With --keep,
    objects that no kept snapshot needs are removed, unless they were written within a day. The
    digest is printed to standard output.
    """

    key = SigningKey(key_file) if key_file else None
    objects = ObjectStorage(url)
    result = upload.upload_snapshot(
        objects, build, jobs, output.show_progress, key, verify_objects=verify_objects
    )
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
            f"Removed {pluralize(pruned.snapshot_count, 'snapshot')}, "
            f"{pluralize(pruned.object_count, 'object')}, "
            f"{pruned.bytes_freed:,} bytes."
        )
    click.echo(result.digest)
