"""`toolcatalog deprecate`: change the deprecation of tool versions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from toolcatalog.catalog import folder, yaml_editor, yaml_reader
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.folder import ToolFolder
from toolcatalog.cli import options, output
from toolcatalog.errors import UsageError, write_error
from toolcatalog.system import files

_EPILOG = """\b
Examples:
  toolcatalog deprecate GITHUB_CREATE_ISSUE --replaced-by GITHUB_CREATE_ISSUE_FROM_FORM
  toolcatalog deprecate GITHUB_CREATE_ISSUE --reason "The API it calls goes away." --sunset \
2026-06-30
  toolcatalog deprecate GITHUB_CREATE_ISSUE --undo

Only the deprecation is written; everything else in the file stays, including comments. Fields of an
earlier deprecation stay unless they are given again.
"""
_DEPRECATION_KEY = "deprecation"
_DATE_TYPE = click.DateTime(["%Y-%m-%d"])
_PRECEDING_KEYS = (*SCHEMAS["tool"]["properties"],)[
    : [*SCHEMAS["tool"]["properties"]].index(_DEPRECATION_KEY)
]


@click.command("deprecate", epilog=_EPILOG)
@click.argument("slug", shell_complete=options.complete_slugs)
@options.catalog
@click.option(
    "--replaced-by",
    default="",
    metavar="SLUG",
    shell_complete=options.complete_slugs,
    help="The tool to use instead.",
)
@click.option("--reason", default="", metavar="TEXT", help="The reason.")
@click.option(
    "--since",
    type=_DATE_TYPE,
    metavar="DATE",
    help="The date of the deprecation.  [default: today]",
)
@click.option(
    "--sunset",
    type=_DATE_TYPE,
    metavar="DATE",
    help="The date after which the tool may be removed.",
)
@click.option(
    "--all-versions", is_flag=True, help="Also deprecate older versions, for clients that pin one."
)
@click.option("--undo", is_flag=True, help="Remove the deprecation.")
def command(slug: str, catalog: Path, all_versions: bool, undo: bool, **values: Any) -> None:
    """Mark the tool SLUG as deprecated in its newest version."""
    fields = {
        key: f"{value:%Y-%m-%d}" if hasattr(value, "strftime") else value
        for key, value in values.items()
        if value
    }
    if undo and fields:
        raise UsageError("--undo removes the whole deprecation: use it alone.")
    tool = folder.get_tool(catalog, slug)
    if "replaced_by" in fields:
        _check_replacement(catalog, slug, tool, fields["replaced_by"])
    selected = tool.versions if all_versions else tool.versions[-1:]
    texts = {
        tool.version_path(version): _read_file(catalog, tool.version_path(version))
        for version in selected
    }
    changed = {
        path: _update_deprecation(catalog / path, data, None if undo else fields)
        for path, data in texts.items()
    }
    _write_files(catalog, {path: data for path, data in changed.items() if data != texts[path]})
    remaining = len(tool.versions) - len(selected)
    if remaining and not undo:
        older_versions = (
            "1 older version is" if remaining == 1 else f"{remaining:,} older versions are"
        )
        output.print_message(
            f"{older_versions} as before, for anyone who has pinned one: --all-versions deprecates"
            " those too."
        )


def _check_replacement(catalog: Path, slug: str, tool: ToolFolder, replacement: str) -> None:
    """Raise UsageError unless the replacement exists, has the same kind and is not deprecated."""
    if replacement == slug:
        raise UsageError(
            f"{slug} cannot replace itself: name another tool, or leave --replaced-by out."
        )
    other = folder.get_tool(catalog, replacement)
    if other.is_meta_tool != tool.is_meta_tool:
        raise UsageError(
            "Only a meta tool can replace a meta tool, and it can replace no other tool: name "
            "another."
        )
    path = other.version_path(other.versions[-1])
    value = yaml_reader.parse(_read_file(catalog, path)).value
    block = value.get(_DEPRECATION_KEY) if isinstance(value, dict) else None
    if block is not None:
        successor = block.get("replaced_by") if isinstance(block, dict) else None
        help = (
            f"name {successor}, which replaces it."
            if successor and successor != slug
            else "name one that is not."
        )
        raise UsageError(f"{replacement} is deprecated itself: {help}")


def _read_file(catalog: Path, path: str) -> bytes:
    data = folder.read_file(catalog, path)
    if not isinstance(data, bytes):
        raise UsageError(f"{catalog / path}: {data.message}. Try `toolcatalog check`.")
    return data


def _update_deprecation(file: Path, data: bytes, deprecation: Mapping[str, str] | None) -> bytes:
    """Return the text of a file with its deprecation updated, or removed if it is None.

    Raises UsageError.
    """
    try:
        if deprecation is None:
            return yaml_editor.remove_key(data, (_DEPRECATION_KEY,))
        value = yaml_reader.parse(data).value
        previous = value.get(_DEPRECATION_KEY) if isinstance(value, dict) else None
        block = {
            **(previous if isinstance(previous, dict) else {"since": options.today_iso()}),
            **deprecation,
        }
        if "since" in block and "sunset" in block and str(block["sunset"]) < str(block["since"]):
            raise UsageError(
                f"A tool that is deprecated since {block['since']} cannot go on "
                f"{block['sunset']}: give a later --sunset."
            )
        sorted_block = {
            key: block[key]
            for key in (*SCHEMAS["tool"]["properties"][_DEPRECATION_KEY]["properties"], *block)
            if key in block
        }
        return (
            data
            if sorted_block == previous
            else yaml_editor.set_value(data, (_DEPRECATION_KEY,), sorted_block, _PRECEDING_KEYS)
        )
    except yaml_editor.UnsafeEdit as error:
        raise UsageError(f"{file} is unchanged, because {error}. Edit it by hand.") from None


def _write_files(catalog: Path, changed: Mapping[str, bytes]) -> None:
    for path in changed:
        files.require_no_links(catalog / path, catalog)
    try:
        for path, data in changed.items():
            files.write_if_changed(catalog / path, data)
            click.echo(catalog / path)
    except OSError as error:
        raise write_error(error.filename or catalog, error) from None
    output.print_message(
        "Next: `toolcatalog check`, `git add`, `git commit`."
        if changed
        else "Nothing to change: the file already says so."
    )
