"""`toolcatalog deprecate`"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from toolcatalog import files, locating, rewriting, tree, yaml12
from toolcatalog.cli import clock, options, terminal
from toolcatalog.errors import UsageError, remedy
from toolcatalog.formats import SCHEMAS
from toolcatalog.locating import Home

_EPILOG = """\b
Examples:
  toolcatalog deprecate GITHUB_CREATE_ISSUE --replaced-by GITHUB_CREATE_ISSUE_FROM_FORM
  toolcatalog deprecate GITHUB_CREATE_ISSUE --reason "The API it calls goes away." --sunset 2026-06-30
  toolcatalog deprecate GITHUB_CREATE_ISSUE --undo

Only the deprecation is written; all else in the file stays as it is, comments too. What it said before stays unless it is said anew.
"""
_KEY = "deprecation"
_DATE = click.DateTime(["%Y-%m-%d"])
_BEFORE = (*SCHEMAS["tool"]["properties"],)[: [*SCHEMAS["tool"]["properties"]].index(_KEY)]


@click.command("deprecate", epilog=_EPILOG)
@click.argument("slug", shell_complete=options.slugs)
@options.catalog
@click.option(
    "--replaced-by",
    default="",
    metavar="SLUG",
    shell_complete=options.slugs,
    help="The tool to use instead.",
)
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@click.option("--since", type=_DATE, metavar="DATE", help="Since when.  [default: today]")
@click.option("--sunset", type=_DATE, metavar="DATE", help="From when on the tool may be gone.")
@click.option(
    "--all-versions", is_flag=True, help="Older versions too: whoever has pinned one hears of it."
)
@click.option("--undo", is_flag=True, help="Take the deprecation back.")
def command(slug: str, catalog: Path, all_versions: bool, undo: bool, **said: Any) -> None:
    """Say that the tool SLUG should not be used any more: in its newest version, which is in force
    where none is pinned.
    """
    told = {
        key: f"{value:%Y-%m-%d}" if hasattr(value, "strftime") else value
        for key, value in said.items()
        if value
    }
    if undo and told:
        raise UsageError("--undo takes the whole deprecation back: give it alone.")
    home = locating.the_home(catalog, slug)
    if "replaced_by" in told:
        _see_replacement(catalog, slug, home, told["replaced_by"])
    chosen = home.versions if all_versions else home.versions[-1:]
    texts = {home.path(version): _text(catalog, home.path(version)) for version in chosen}
    changed = {
        path: _changed(catalog / path, data, None if undo else told) for path, data in texts.items()
    }
    _write(catalog, {path: data for path, data in changed.items() if data != texts[path]})
    left = len(home.versions) - len(chosen)
    if left and not undo:
        others = "1 older version is" if left == 1 else f"{left:,} older versions are"
        terminal.say(
            f"{others} as before, for whoever has pinned one: --all-versions deprecates those too."
        )


def _see_replacement(catalog: Path, slug: str, home: Home, replacement: str) -> None:
    """Raises UsageError where a tool cannot be replaced by another: that is not there, or of
    another kind, or deprecated itself.
    """
    if replacement == slug:
        raise UsageError(
            f"{slug} cannot replace itself: name another tool, or leave --replaced-by out."
        )
    other = locating.the_home(catalog, replacement)
    if other.is_meta != home.is_meta:
        raise UsageError(
            "A meta tool is replaced by a meta tool, and any other tool by one that is none: "
            "name another."
        )
    path = other.path(other.versions[-1])
    value = yaml12.read(_text(catalog, path)).value
    block = value.get(_KEY) if isinstance(value, dict) else None
    if block is not None:
        instead = block.get("replaced_by") if isinstance(block, dict) else None
        help = (
            f"name {instead}, which replaces it."
            if instead and instead != slug
            else "name one that is not."
        )
        raise UsageError(f"{replacement} is deprecated itself: {help}")


def _text(catalog: Path, path: str) -> bytes:
    data = tree.content(catalog, path)
    if not isinstance(data, bytes):
        raise UsageError(f"{catalog / path}: {data.message}. Try `toolcatalog check`.")
    return data


def _changed(file: Path, data: bytes, told: Mapping[str, str] | None) -> bytes:
    """The text of a file with its deprecation as told beside what it said before; None: without.
    Raises UsageError.
    """
    try:
        if told is None:
            return rewriting.drop(data, (_KEY,))
        value = yaml12.read(data).value
        before = value.get(_KEY) if isinstance(value, dict) else None
        block = {**(before if isinstance(before, dict) else {"since": clock.date()}), **told}
        if "since" in block and "sunset" in block and str(block["sunset"]) < str(block["since"]):
            raise UsageError(
                f"A tool that is deprecated since {block['since']} cannot go on "
                f"{block['sunset']}: give a later --sunset."
            )
        ordered = {
            key: block[key]
            for key in (*SCHEMAS["tool"]["properties"][_KEY]["properties"], *block)
            if key in block
        }
        return data if ordered == before else rewriting.put(data, (_KEY,), ordered, _BEFORE)
    except rewriting.Unsure as reason:
        raise UsageError(f"{file} is left as it is, for {reason}. Edit it by hand.") from None


def _write(catalog: Path, changed: Mapping[str, bytes]) -> None:
    for path in changed:
        files.refuse_links(catalog / path, catalog)
    try:
        for path, data in changed.items():
            files.write_changed(catalog / path, data)
            click.echo(catalog / path)
    except OSError as error:
        raise UsageError(
            f"Cannot write {error.filename or catalog} ({error.strerror}): {remedy(error)}."
        ) from None
    terminal.say(
        "Next: `toolcatalog check`, `git add`, `git commit`."
        if changed
        else "Nothing to change: it is so already."
    )
