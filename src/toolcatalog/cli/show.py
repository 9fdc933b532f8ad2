"""`toolcatalog show`: print a tool or a toolkit."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from toolcatalog.catalog import folder
from toolcatalog.cli import options, output, tool_view
from toolcatalog.errors import REBUILD_HINT, SnapshotError, UsageError
from toolcatalog.site import markdown_pages
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Tool, Toolkit
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store
from toolcatalog.system import files

_EPILOG = """\b
Examples:
  toolcatalog show GITHUB_CREATE_ISSUE
  toolcatalog show GITHUB_CREATE_ISSUE --version 20251027_00 --format json
  toolcatalog show github --format markdown

Exits with 2 if there is no such tool or toolkit.
"""
_NEARBY_NAMES = 5  # names that are compared with a wrong one


@click.command("show", epilog=_EPILOG)
@click.argument("slug", shell_complete=options.complete_slugs)
@options.build
@click.option("--version", default="", metavar="V", help="The version.  [default: the newest]")
@options.output_formats("text", "json", "markdown")
def command(slug: str, build: Path, version: str, output_format: str) -> None:
    """Show the tool or the toolkit SLUG of a build.

    `--format json` prints the document that the API returns.
    """
    store = open_build(build)
    folder = build / "snapshots" / store.digest
    entry, versions = store.get_tool(slug), store.get_toolkit_versions(slug)
    if entry is not None:
        chosen_version = _choose_version(slug, version, entry.versions)
        data = bytes(store.read_document(entry.tool_id(chosen_version))[0])
        _show_tool(folder, data, entry.toolkit, output_format)
    elif versions is not None:
        _show_toolkit(store, folder, slug, _choose_version(slug, version, versions), output_format)
    else:
        raise UsageError(
            f"There is no tool and no toolkit {slug} in {build}: {_suggest_name(store, slug)}"
        )


def _choose_version(slug: str, version: str, versions: list[str]) -> str:
    """Return the version to show. Raises UsageError if there is none."""
    if not versions:
        raise UsageError(
            f"The toolkit {slug} has no tools yet: create one with `toolcatalog new tool`."
        )
    if version and version not in versions:
        newest = ", ".join(versions[:-4:-1])
        raise UsageError(f"{slug} has no version {version}: its newest are {newest}.")
    return version or versions[-1]


def _suggest_name(store: Store, slug: str) -> str:
    candidates = [
        *store.nearby_names("toolkit", slug.lower(), _NEARBY_NAMES),
        *store.similar_slugs(slug, None),
    ]
    nearest = folder.nearest_slug(slug, candidates)
    return f"did you mean {nearest}?" if nearest else "look for it with `toolcatalog search`."


def _show_tool(folder: Path, data: bytes, toolkit: str, output_format: str) -> None:
    document = orjson.loads(data)
    index = _read_toolkit_index(folder, toolkit, document["version"])
    row = next(row for row in index["tools"] if row["slug"] == document["slug"])
    tool, toolkit_facts = (
        snapshot_format.tool_from_document(document, row["deprecation"], row.get("source")),
        _parse_toolkit(index),
    )
    if output_format == "json":
        click.echo(data)
    elif output_format == "markdown":
        click.echo(markdown_pages.render_tool_markdown(tool, toolkit_facts), nl=False)
    else:
        output.print_lines(
            tool_view.format_tool(tool, toolkit_facts, [*_tool_links(folder, tool)], _line_width())
        )


def _show_toolkit(store: Store, folder: Path, slug: str, version: str, output_format: str) -> None:
    index = _read_toolkit_index(folder, slug, version)
    if output_format == "json":
        click.echo(
            files.read_plain_file(folder / snapshot_format.toolkit_index_path(slug, version))
        )
    elif output_format == "markdown":
        toolkit = _parse_toolkit(index)
        for piece in markdown_pages.render_llms_full_txt(
            toolkit,
            (
                markdown_pages.to_markdown(tool, toolkit)
                for tool in _read_tools(store, index["tools"])
            ),
        ):
            click.echo(piece, nl=False)
    else:
        output.print_lines(
            tool_view.format_toolkit(_parse_toolkit(index), version, index["tools"], _line_width())
        )


def _read_tools(store: Store, rows: list[dict[str, Any]]) -> Iterator[Tool]:
    for row in rows:
        entry = store.get_tool(row["slug"])
        assert entry is not None
        yield snapshot_format.tool_from_document(
            orjson.loads(store.read_document(entry.tool_id(row["version"]))[0]), row["deprecation"]
        )


def _parse_toolkit(index: Mapping[str, Any]) -> Toolkit:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in index["toolkit"].items()
    }
    return Toolkit(**fields)


def _read_toolkit_index(folder: Path, toolkit: str, version: str) -> dict[str, Any]:
    """Return the index of a toolkit at a version.

    Unlike a tool's document, it has the reason for a deprecation.
    """
    path = snapshot_format.toolkit_index_path(toolkit, version)
    try:
        index: dict[str, Any] = orjson.loads(files.read_plain_file(folder / path))
    except (OSError, orjson.JSONDecodeError):
        raise SnapshotError(
            f"The build is damaged ({path} cannot be read): {REBUILD_HINT}"
        ) from None
    return index


def _tool_links(folder: Path, tool: Tool) -> Iterator[str]:
    base_url = orjson.loads((folder / snapshot_format.MANIFEST).read_bytes())["about"].get("home")
    if base_url:
        yield f"{base_url.rstrip('/')}/tools/{tool.slug}/index.html"
    yield f"GET /api/v3/tools/{tool.slug}?version={tool.version}"


def _line_width() -> int | None:
    """Return the width of a line, or None without a terminal."""
    return min(shutil.get_terminal_size().columns, 120) if sys.stdout.isatty() else None
