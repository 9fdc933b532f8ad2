"""`toolcatalog codeowners`: owners of toolkits as GitHub's CODEOWNERS.

Owners are free text. GitHub accepts only accounts (`@name`), teams (`@organization/team`) and
e-mail addresses; it rejects a line with anything else, and requests no review. So all other owners
are left out.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import click

from toolcatalog.catalog import folder
from toolcatalog.catalog.model import ROUTER, Toolkit
from toolcatalog.cli import options, output
from toolcatalog.errors import InvalidCatalog, UsageError
from toolcatalog.system import files
from toolcatalog.validation.checker import check_file

_EPILOG = """\b
Examples:
  toolcatalog codeowners > .github/CODEOWNERS
  toolcatalog codeowners --check .github/CODEOWNERS     in a workflow

Run it in the root of the repository. Exits with 1 if --check finds that the file is out of date.
"""
_MAX_FILE_SIZE = 4 << 20  # bytes; GitHub reads up to 3 MB
# anything else would mean something in a pattern of CODEOWNERS
_SAFE_PATH = re.compile("[A-Za-z0-9._/-]+")


@click.command("codeowners", epilog=_EPILOG)
@options.catalog
@click.option(
    "--check",
    "expected_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check that this file contains these lines.",
)
def command(catalog: Path, expected_file: Path | None) -> int:
    """Print GitHub's CODEOWNERS from the `owners` of the toolkits.

    Only owners that start with `@` and e-mail addresses are printed; others are not accounts.
    """
    toolkits = _load_toolkits(catalog)
    lines = render_codeowners(toolkits, _relative_folder(catalog))
    if expected_file is None:
        click.echo(lines, nl=False)
        if unowned := find_unowned(toolkits):
            output.print_message(
                "Without an owner that GitHub knows (`@account`, `@organization/team`, an "
                f"e-mail address): {', '.join(unowned)}"
            )
        return 0
    if contains_lines(_read_text(expected_file), lines):
        output.print_message(f"{expected_file} is up to date.")
        return 0
    output.print_error(
        f"{expected_file} does not match the owners of the toolkits: add the output of "
        f"`toolcatalog codeowners`, and commit it."
    )
    return 1


def _load_toolkits(catalog: Path) -> list[Toolkit]:
    """Return the toolkits of a catalog.

    Raises InvalidCatalog if one of their files has problems.
    """
    paths, _, _ = folder.list_layout(catalog)
    results = [check_file(catalog, path) for path in paths if path.endswith("/toolkit.yaml")]
    if problems := sorted(problem for result in results for problem in result.problems):
        raise InvalidCatalog(problems, len(results))
    return [result.record for result in results if isinstance(result.record, Toolkit)]


def _relative_folder(catalog: Path) -> str:
    """Return the catalog's folder relative to the repository's root, the working directory."""
    try:
        folder = catalog.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        raise UsageError(
            f"{catalog} is not below this folder: run `toolcatalog codeowners` where the "
            "repository starts."
        ) from None
    if not _SAFE_PATH.fullmatch(folder):
        raise UsageError(
            f"CODEOWNERS cannot name the folder {catalog}: give it a name of letters, "
            "digits, `.`, `_` and `-`."
        )
    return folder


def _read_text(file: Path) -> str:
    """Return the content of a file, or an empty string if it does not exist."""
    try:
        return files.read_limited(file, _MAX_FILE_SIZE).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(
            f"Cannot read {file} ({error.strerror}): put a plain file there, or name another."
        ) from None


_ACCOUNT = "[A-Za-z0-9][A-Za-z0-9_-]*"
_OWNER = re.compile(
    rf"@{_ACCOUNT}(?:/[A-Za-z0-9_.-]+)?|[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
)
_HEADER = (
    "# Who is asked to review a toolkit: its `owners`. Made by `toolcatalog codeowners`; you can "
    "add lines above or below."
)


def render_codeowners(toolkits: Iterable[Toolkit], folder: str) -> str:
    """Return the lines of a CODEOWNERS file, sorted by toolkit.

    `folder` is the catalog's folder, relative to the repository's root. GitHub uses the last line
    that matches. A toolkit without an owner that GitHub accepts has no line, so a new one does not
    make a file outdated.
    """
    entries = sorted((_owned_path(toolkit), _valid_owners(toolkit)) for toolkit in toolkits)
    lines = [f"/{folder}/{path}/ {' '.join(owners)}" for path, owners in entries if owners]
    return "".join(f"{line}\n" for line in (_HEADER, *lines))


def find_unowned(toolkits: Iterable[Toolkit]) -> list[str]:
    """Return the slugs of the toolkits without an owner that GitHub accepts."""
    return sorted(toolkit.slug for toolkit in toolkits if not _valid_owners(toolkit))


def contains_lines(file: str, lines: str) -> bool:
    """Return whether a CODEOWNERS file contains these lines, together and in this order."""
    return f"\n{lines}" in f"\n{file.rstrip()}\n"


def _valid_owners(toolkit: Toolkit) -> list[str]:
    return [owner for owner in dict.fromkeys(toolkit.owners) if _OWNER.fullmatch(owner)]


def _owned_path(toolkit: Toolkit) -> str:
    return "meta_tools" if toolkit.slug == ROUTER else f"toolkits/{toolkit.slug}"
