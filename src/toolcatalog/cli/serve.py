"""`toolcatalog serve`: start the server of the API and the site."""

import socket
from functools import partial
from pathlib import Path

import click

from toolcatalog.cli import listeners, options, output, serve_options
from toolcatalog.cli import mcp as mcp_command
from toolcatalog.keys import api_keys
from toolcatalog.keys.storage import FileKeyStorage
from toolcatalog.search.embeddings import model_files
from toolcatalog.server import process, supervisor
from toolcatalog.server.limits import connection_limit
from toolcatalog.server.limits.rate_limit import Rate
from toolcatalog.server.logs import server_log
from toolcatalog.server.logs.access_log import check_writable
from toolcatalog.server.process import ServerSettings
from toolcatalog.store.store import Store

_EPILOG = """\b
Examples:
  toolcatalog serve
  toolcatalog serve --port 9000 --keys /etc/toolcatalog/keys.json
  toolcatalog serve --host 0.0.0.0 --build /srv/build --site /srv/site --workers 4
  toolcatalog serve --rate 100/s --redis redis://10.0.0.5:6379
  toolcatalog serve --from s3://tools/catalog --cache /var/cache/toolcatalog
  toolcatalog serve --from s3://tools/catalog --verify-key verify.pem --max-snapshot-size 20GiB
  toolcatalog serve --uds /run/toolcatalog.sock --root-path /catalog --log-format json
  toolcatalog serve --metrics 127.0.0.1:9100 --access-log /var/log/toolcatalog/access.log

Switches to a new build automatically. After SIGTERM or Ctrl-C it answers the requests in progress
and stops.
"""


@click.command("serve", epilog=_EPILOG)
@options.build
@serve_options.from_option
@serve_options.cache_option
@serve_options.verify_key_option
@serve_options.allow_rollback_option
@serve_options.max_size_option
@options.site
@serve_options.host_option
@serve_options.port_option
@serve_options.uds_option
@serve_options.fd_option
@serve_options.root_path_option
@serve_options.forwarded_option
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of worker processes: use one for each core.",
)
@click.option(
    "--drain",
    type=click.FloatRange(0, 3600),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="Keep serving for this long after SIGTERM, while /readyz returns 503.",
)
@click.option("--mcp", is_flag=True, help="Also serve MCP at /mcp, with the same keys.")
@click.option(
    "--metrics", metavar="HOST:PORT", help="Serve /metrics at this address instead of the API port."
)
@click.option(
    "--access-log",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Log each request to this file; - is standard output.",
)
@serve_options.log_level_option
@serve_options.log_format_option
@click.option("--otel", is_flag=True, help="Send a trace of each request with OpenTelemetry.")
@options.keys
@serve_options.rate_option
@options.redis
def command(  # noqa: PLR0913, PLR0917 - its flags
    build: Path,
    url: str | None,
    cache: Path | None,
    key_file: Path | None,
    allow_rollback: bool,
    max_size: int | None,
    site: Path,
    host: str | None,
    port: int | None,
    uds: Path | None,
    fd: int | None,
    root_path: str,
    forwarded_allow_ips: str | None,
    workers: int,
    drain: float,
    mcp: bool,
    metrics: str | None,
    access_log: Path | None,
    log_level: server_log.LogLevel,
    log_format: server_log.LogFormat,
    otel: bool,
    keys_file: Path | None,
    rate: Rate | None,
    redis: str | None,
) -> None:
    """Serve the read API and the site from a build."""
    connection_limit.check_limit()
    if mcp:
        mcp_command.require_mcp()
    if otel:
        serve_options.require_tracing()
    log = server_log.LogSettings(log_level, log_format)
    serve_options.check_rate_options(rate, workers, redis)
    verify_keys = serve_options.load_verify_keys(
        url, max_size, key_file, allow_rollback=allow_rollback
    )
    # before any thread starts, see `open_unix_listener`
    context = click.get_current_context()
    listener = context.with_resource(serve_options.open_listener(host, port, uds, fd))
    if uds:
        context.call_on_close(partial(uds.unlink, missing_ok=True))
    follower_counts = None
    if url:
        server_log.configure_logging(log)
        build, follower_counts = serve_options.start_follower(
            url, cache, max_bytes=max_size, keys=verify_keys, allow_rollback=allow_rollback
        )
    store = process.open_or_wait(build, verify_keys, wait_for_build=url is not None)
    file = _resolve_key_file(keys_file, redis)
    metrics_listener = (
        listeners.open_listener(*listeners.parse_address(metrics), "--metrics") if metrics else None
    )
    if access_log:
        check_writable(access_log)
    pages = serve_options.find_pages(site, url)
    supervisor.exit_on_sigterm()
    _print_startup(store, listener, pages)
    if metrics_listener:
        output.print_message(f"Metrics at {listeners.listener_url(metrics_listener)}/metrics.")
    del store  # each process opens its own
    settings = ServerSettings(
        build=build,
        keys=file,
        site=pages,
        workers=workers,
        drain_seconds=drain,
        mcp=mcp,
        access_log=access_log,
        separate_metrics=metrics_listener is not None,
        rate=rate,
        redis=redis,
        wait_for_build=url is not None,
        verify_keys=verify_keys,
        root_path=root_path,
        forwarded_allow_ips=forwarded_allow_ips,
        log=log,
        tracing=otel,
    )
    supervisor.run_server(settings, listener, metrics_listener, follower_counts)


def _resolve_key_file(keys_file: Path | None, redis: str | None) -> Path:
    """Return the key file.

    A file that the user named must exist and be valid. The default file, or any file if Redis is
    used, may be created later.
    """
    file = keys_file or api_keys.default_key_file()
    if FileKeyStorage(file).read() is not None or (keys_file and not redis):
        api_keys.load_keys(file)
    elif not redis:
        output.print_message(
            "No keys yet: every API call answers 401 until you run `toolcatalog keys create "
            f"--project default` ({file})."
        )
    return file


def _print_startup(store: Store | None, listener: socket.socket, pages: Path | None) -> None:
    subject = "API and site" if pages else "API (no site was built)"
    origin = f"snapshot {store.digest[:12]}" if store else "a snapshot that is being fetched"
    output.print_message(
        f"Serving {subject} at {listeners.listener_url(listener)} from {origin}. Stop with Ctrl-C."
    )
    if store and store.is_model_missing and not model_files.has_runtime():
        output.print_message(
            "Searching by words only. To search by meaning too, run `pip install "
            "'toolcatalog[semantic]'`."
        )
