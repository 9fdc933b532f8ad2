"""`toolcatalog mcp`: serve a build to an MCP host on standard input and output."""

import importlib.util
from collections.abc import Collection
from pathlib import Path

import click

from toolcatalog import names
from toolcatalog.cli import options
from toolcatalog.errors import UsageError
from toolcatalog.keys import api_keys
from toolcatalog.server import reload
from toolcatalog.server.logs import server_log
from toolcatalog.server.mcp.tools import CatalogAccess
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store

_EPILOG = """\b
Examples:
  toolcatalog mcp --build /srv/catalog/build
  toolcatalog mcp --toolkit github,slack
  toolcatalog mcp --session trs_support_desk

The host of an agent starts it. Its settings: {"mcpServers": {"toolcatalog": {"command":
"toolcatalog", "args": ["mcp", "--build", "/srv/catalog/build"]}}}

It needs no key: anyone who can start it can read the build. It stops at the end of its standard
input.
"""


@click.command("mcp", epilog=_EPILOG)
@options.build
@click.option(
    "--session",
    metavar="ID",
    default="",
    help="Also list the meta tools of this session.",
)
@options.toolkits("Show only this toolkit")
def command(build: Path, session: str, toolkits: tuple[str, ...]) -> None:
    """Serve the catalog to an agent: an MCP server over standard input and output.

    It has the tools search_tools, get_tool, list_toolkits and list_session_tools, and reloads new
    builds. It lists the tools of the catalog and does not run them.
    """
    require_mcp()
    server_log.configure_logging()
    identity = reload.read_current_identity(build)
    store = open_build(build)
    visible_toolkits = _require_toolkits(store, toolkits)
    _require_session(store, session, visible_toolkits)
    state = AppState(api_keys.KeyRing(None), store)
    del store  # the next one takes its place
    reload.SnapshotReloader(state, build, identity).start()

    def get_access() -> CatalogAccess:
        assert state.current
        return CatalogAccess(state.current.store, visible_toolkits)

    from toolcatalog.cli import mcp_stdio  # noqa: PLC0415 - loads the optional extra

    mcp_stdio.serve_stdio(get_access, session)


def require_mcp() -> None:
    """Raise UsageError with install instructions if the extra is not installed."""
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("MCP needs the package mcp: run `pip install 'toolcatalog[mcp]'`.")


def _require_toolkits(store: Store, slugs: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the toolkits to show; None for all. Raises UsageError if one is unknown."""
    for slug in slugs:
        if store.get_toolkit_versions(slug) is None:
            nearest = names.find_nearest(slug, store.nearby_names("toolkit", slug, 500))
            suggestion = (
                f" Did you mean {nearest[0]}?"
                if nearest
                else " `toolcatalog stats` shows what the build contains."
            )
            raise UsageError(f"There is no toolkit {slug} in this build.{suggestion}")
    return slugs or None


def _require_session(store: Store, session: str, visible_toolkits: Collection[str] | None) -> None:
    """Raise UsageError if there is no such session, or if it allows toolkits that are not shown."""
    if not session:
        return
    stored_session = store.get_session(session)
    if stored_session is None:
        raise UsageError(
            f"There is no session {session} in this build: its sessions are the files in "
            "`sessions/` of the catalog."
        )
    hidden_toolkits = (
        []
        if visible_toolkits is None
        else [slug for slug in stored_session.toolkits if slug not in visible_toolkits]
    )
    if hidden_toolkits:
        raise UsageError(
            f"Session {session} allows toolkits that --toolkit does not name: "
            f"{', '.join(hidden_toolkits)}. Name them too, or leave --toolkit out."
        )
