"""`toolcatalog mcp`"""

import importlib.util
from collections.abc import Callable, Collection
from pathlib import Path

import click

from toolcatalog import names
from toolcatalog.cli import options
from toolcatalog.errors import UsageError
from toolcatalog.keys import api_keys
from toolcatalog.server import reload, supervisor
from toolcatalog.server.mcp.tools import CatalogAccess
from toolcatalog.server.state import AppState
from toolcatalog.store import open as store_open
from toolcatalog.store.store import Store

_EPILOG = """\b
Examples:
  toolcatalog mcp --build /srv/catalog/build
  toolcatalog mcp --toolkits github,slack
  toolcatalog mcp --session trs_support_desk

A host of agents starts it by itself. What it needs to know:
  {"mcpServers": {"toolcatalog": {"command": "toolcatalog", "args": ["mcp", "--build", "/srv/catalog/build"]}}}

No key is asked for: who can start this can read the build. Ends when its standard input does.
"""


@click.command("mcp", epilog=_EPILOG)
@options.build
@click.option(
    "--session",
    metavar="ID",
    default="",
    help="List this session's meta tools too, as tools of this server.",
)
@click.option(
    "--toolkits", metavar="A,B", default="", help="Show only these toolkits.  [default: all]"
)
def command(build: Path, session: str, toolkits: str) -> None:
    """Let an agent search the catalog and read its tools: a server of MCP over standard input and
    output.

    It offers search_tools, get_tool, list_toolkits and list_session_tools, and takes new builds
    over. The tools of the catalog are told of, and not run.
    """
    require_mcp()
    supervisor.configure_logging()
    named = reload.read_current_identity(build)
    store = store_open.open_build(build)
    shown = _parse_toolkits(store, toolkits)
    _require_session(store, session, shown)
    live = AppState(api_keys.KeyRing(None), store)
    del store  # the next one takes its place
    reload.SnapshotReloader(live, build, named).start()

    def look() -> CatalogAccess:
        assert live.current
        return CatalogAccess(live.current.store, shown)

    _serve_stdio(look, session)


def require_mcp() -> None:
    """Raise UsageError, which says what to install, where the extra is not there."""
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("MCP is spoken by the package mcp: run `pip install 'toolcatalog[mcp]'`.")


def _parse_toolkits(store: Store, toolkits: str) -> tuple[str, ...] | None:
    """The toolkits to show; None for all."""
    wanted = tuple(dict.fromkeys(slug.strip() for slug in toolkits.split(",") if slug.strip()))
    for slug in wanted:
        if store.get_toolkit_versions(slug) is None:
            near = names.find_nearest(slug, store.nearby_names("toolkit", slug, 500))
            meant = (
                f" Did you mean {near[0]}?" if near else " `toolcatalog stats` tells what there is."
            )
            raise UsageError(f"There is no toolkit {slug} in this build.{meant}")
    return wanted or None


def _require_session(store: Store, session: str, shown: Collection[str] | None) -> None:
    """Raise UsageError where there is no such session, or where it allows toolkits that are not
    shown.
    """
    if not session:
        return
    found = store.get_session(session)
    if found is None:
        raise UsageError(
            f"There is no session {session} in this build: its sessions are the files in "
            "`sessions/` of the catalog."
        )
    hidden = [] if shown is None else [slug for slug in found.toolkits if slug not in shown]
    if hidden:
        raise UsageError(
            f"Session {session} allows toolkits that --toolkits does not name: "
            f"{', '.join(hidden)}. Name them too, or leave --toolkits out."
        )


def _serve_stdio(get_access: Callable[[], CatalogAccess], session: str) -> None:
    """Speak until the standard input ends."""
    import anyio  # noqa: PLC0415 - both come with the extra
    from mcp import stdio_server  # noqa: PLC0415

    from toolcatalog.server.mcp import protocol  # noqa: PLC0415

    async def speak() -> None:
        server = protocol.create_server(get_access, session)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(speak)
