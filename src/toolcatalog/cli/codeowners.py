"""`toolcatalog codeowners`: owners of toolkits as GitHub's CODEOWNERS."""

import re
from pathlib import Path

import click

from toolcatalog import ownership
from toolcatalog.catalog import folder
from toolcatalog.catalog.model import Toolkit
from toolcatalog.cli import options, terminal
from toolcatalog.errors import InvalidCatalog, UsageError, remedy
from toolcatalog.validation.checker import check_file

_EPILOG = """\b
Examples:
  toolcatalog codeowners > .github/CODEOWNERS
  toolcatalog codeowners --check .github/CODEOWNERS     in a workflow: is it up to date?

Run it where the repository begins. Exits with 1 where --check finds that the file is not up to date.
"""
# anything else would mean something in a pattern of CODEOWNERS
_SAFE_PATH = re.compile("[A-Za-z0-9._/-]+")


@click.command("codeowners", epilog=_EPILOG)
@options.catalog
@click.option(
    "--check",
    "checked",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that must hold these lines.",
)
def command(catalog: Path, checked: Path | None) -> int:
    """Print who GitHub asks to review which toolkit, from the `owners` of the toolkits.

    Owners that begin with `@`, and e-mail addresses, are told to GitHub; others are no accounts.
    """
    toolkits = _load_toolkits(catalog)
    lines = ownership.render_codeowners(toolkits, _relative_folder(catalog))
    if checked is None:
        click.echo(lines, nl=False)
        if unowned := ownership.find_unowned(toolkits):
            terminal.print_message(
                "Without an owner that GitHub knows (`@account`, `@organization/team`, an "
                f"e-mail address): {', '.join(unowned)}"
            )
        return 0
    if ownership.contains_lines(_read_text(checked), lines):
        terminal.print_message(f"{checked} is up to date.")
        return 0
    terminal.print_error(
        f"{checked} is not what the owners of the toolkits say: put in it what `toolcatalog "
        "codeowners` prints, and commit it."
    )
    return 1


def _load_toolkits(catalog: Path) -> list[Toolkit]:
    """The toolkits of a catalog. Raises InvalidCatalog where one of their files has problems: its
    owners may be among them.
    """
    paths, _, _ = folder.list_layout(catalog)
    examined = [check_file(catalog, path) for path in paths if path.endswith("/toolkit.yaml")]
    if problems := sorted(problem for one in examined for problem in one.problems):
        raise InvalidCatalog(problems, len(examined))
    return [one.record for one in examined if isinstance(one.record, Toolkit)]


def _relative_folder(catalog: Path) -> str:
    """The catalog's folder as the repository sees it, which is where the command runs."""
    try:
        folder = catalog.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        raise UsageError(
            f"{catalog} is not below this folder: run `toolcatalog codeowners` where the "
            "repository begins."
        ) from None
    if not _SAFE_PATH.fullmatch(folder):
        raise UsageError(
            f"CODEOWNERS cannot name the folder {catalog}: give it a name of letters, "
            "digits, `.`, `_` and `-`."
        )
    return folder


def _read_text(file: Path) -> str:
    """What a file says; nothing where there is none yet."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(
            f"Cannot read {file} ({error.strerror}): {remedy(error)}, or name another file."
        ) from None
