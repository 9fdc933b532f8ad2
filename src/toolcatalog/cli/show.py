"""`toolcatalog show`"""

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from toolcatalog import locating, portraits, snapshot, twins
from toolcatalog.cli import options, terminal
from toolcatalog.errors import MEND, SnapshotError, UsageError
from toolcatalog.opening import open_build
from toolcatalog.snapshot import Tool, Toolkit
from toolcatalog.store import Store

_EPILOG = """\b
Examples:
  toolcatalog show GITHUB_CREATE_ISSUE
  toolcatalog show GITHUB_CREATE_ISSUE --version 20251027_00 --format json
  toolcatalog show github --format markdown
"""
_NEAR = 5  # names that are compared with a wrong one


@click.command("show", epilog=_EPILOG)
@click.argument("slug", shell_complete=options.slugs)
@options.build
@click.option("--version", default="", metavar="V", help="The version.  [default: the newest]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How it is shown.",
)
def command(slug: str, build: Path, version: str, form: str) -> None:
    """Show the tool, or the toolkit, SLUG of a build: text for people, the very document that the
    API answers, or Markdown.
    """
    store = open_build(build)
    folder = build / "snapshots" / store.digest
    entry, versions = store.tool(slug), store.toolkit(slug)
    if entry is not None:
        chosen = _chosen(slug, version, entry.versions)
        data = bytes(store.document(entry.number(chosen))[0])
        _show_tool(folder, data, entry.toolkit, form)
    elif versions is not None:
        _show_toolkit(store, folder, slug, _chosen(slug, version, versions), form)
    else:
        raise UsageError(
            f"There is no tool and no toolkit {slug} in {build}: {_meant(store, slug)}"
        )


def _chosen(slug: str, version: str, versions: list[str]) -> str:
    """The version to show. Raises UsageError where there is none."""
    if not versions:
        raise UsageError(
            f"The toolkit {slug} has no tools yet: begin one with `toolcatalog new tool`."
        )
    if version and version not in versions:
        newest = ", ".join(versions[:-4:-1])
        raise UsageError(f"{slug} has no version {version}: its newest are {newest}.")
    return version or versions[-1]


def _meant(store: Store, slug: str) -> str:
    near = [*store.names_near("toolkit", slug.lower(), _NEAR), *store.similar(slug, None)]
    found = locating.nearest(slug, near)
    return f"did you mean {found}?" if found else "look for it with `toolcatalog search`."


def _show_tool(folder: Path, data: bytes, toolkit: str, form: str) -> None:
    document = orjson.loads(data)
    index = _index(folder, toolkit, document["version"])
    row = next(row for row in index["tools"] if row["slug"] == document["slug"])
    tool, kit = snapshot.tool_of(document, row["deprecation"]), _toolkit(index)
    if form == "json":
        click.echo(data)
    elif form == "markdown":
        click.echo(twins.tool_markdown(tool, kit), nl=False)
    else:
        terminal.show(portraits.tool(tool, kit, [*_links(folder, tool)], _width()))


def _show_toolkit(store: Store, folder: Path, slug: str, version: str, form: str) -> None:
    index = _index(folder, slug, version)
    if form == "json":
        click.echo((folder / snapshot.index_path(slug, version)).read_bytes())
    elif form == "markdown":
        kit = _toolkit(index)
        for piece in twins.llms_full(
            kit, (twins.twin(tool, kit) for tool in _tools(store, index["tools"]))
        ):
            click.echo(piece, nl=False)
    else:
        terminal.show(portraits.kit(_toolkit(index), version, index["tools"], _width()))


def _tools(store: Store, rows: list[dict[str, Any]]) -> Iterator[Tool]:
    for row in rows:
        entry = store.tool(row["slug"])
        assert entry is not None
        yield snapshot.tool_of(
            orjson.loads(store.document(entry.number(row["version"]))[0]), row["deprecation"]
        )


def _toolkit(index: Mapping[str, Any]) -> Toolkit:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in index["toolkit"].items()
    }
    return Toolkit(**fields)


def _index(folder: Path, toolkit: str, version: str) -> dict[str, Any]:
    """The index of a toolkit at a version, which says why a tool is deprecated: its document does
    not.
    """
    path = snapshot.index_path(toolkit, version)
    try:
        index: dict[str, Any] = orjson.loads((folder / path).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise SnapshotError(f"The build is damaged ({path} cannot be read): {MEND}") from None
    return index


def _links(folder: Path, tool: Tool) -> Iterator[str]:
    home = orjson.loads((folder / snapshot.MANIFEST).read_bytes())["about"].get("home")
    if home:
        yield f"{home.rstrip('/')}/tools/{tool.slug}/index.html"
    yield f"GET /api/v3/tools/{tool.slug}?version={tool.version}"


def _width() -> int | None:
    """How wide a line may be; None where nobody looks."""
    return min(shutil.get_terminal_size().columns, 120) if sys.stdout.isatty() else None
