"""`toolcatalog new`: create the files of a toolkit, a tool or the schemas."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from toolcatalog.catalog import file_schemas, folder, loader, schema
from toolcatalog.catalog.model import ROUTER, About
from toolcatalog.cli import options, output
from toolcatalog.errors import UsageError
from toolcatalog.scaffold import templates

_NOTE = """
At a terminal it asks for missing values. The path of the new file is printed to standard output. An
existing file is never changed. A new catalog also gets the schemas for editors, `.schemas`; an
existing catalog gets the new file only.
"""
_TOOLKIT_EPILOG = """\b
Examples:
  toolcatalog new toolkit github
  toolcatalog new toolkit github --name GitHub --logo https://github.com/favicon.ico --owner \
@octo-team
"""
_TOOL_EPILOG = """\b
Examples:
  toolcatalog new tool GITHUB_CREATE_ISSUE
  toolcatalog new tool GITHUB_CREATE_ISSUE --name "Create an issue" --description "Open a new \
issue in a repository."
"""
_EPILOG = """\b
Examples:
  toolcatalog new toolkit github
  toolcatalog new tool GITHUB_CREATE_ISSUE
"""
_SCHEMAS_EPILOG = """\b
Examples:
  toolcatalog new schemas
  toolcatalog new schemas --catalog catalog
"""
# the others have the field's own name
_FLAGS = {"categories": "--category", "owners": "--owner", "scopes": "--scope", "tags": "--tag"}


@click.group("new", epilog=_EPILOG + _NOTE)
def command() -> None:
    """Create a toolkit or a tool: a valid file with the schema for your editor."""


@command.command("toolkit", epilog=_TOOLKIT_EPILOG + _NOTE)
@click.argument("slug")
@options.catalog
@click.option("--name", metavar="TEXT", help="The display name.")
@click.option("--logo", metavar="URL", help="The https URL of an image.")
@click.option("--description", metavar="TEXT", help="What the toolkit gives access to.")
@click.option("--homepage", metavar="URL", help="The https URL of the product's own site.")
@click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="NAME",
    help="A category; repeatable.",
)
@click.option(
    "--owner",
    "owners",
    multiple=True,
    metavar="NAME",
    help="An owner, such as @octo-team; repeatable.",
)
@click.option("--no-auth", is_flag=True, help="Its tools need no authentication.")
def new_toolkit(slug: str, catalog: Path, **fields: Any) -> None:
    """Create the toolkit SLUG, such as `github`."""

    path = f"toolkits/{slug}/toolkit.yaml"
    if slug == ROUTER:
        raise UsageError(f"{slug} is the toolkit of the meta tools: choose another slug.")
    _require_absent(catalog / path, "edit it, or choose another slug.")
    templates.render_file(path, {})  # refuses a slug that is none before anything is asked
    _write_new_file(
        catalog,
        path,
        _complete_fields(
            path,
            fields,
            {
                "name": templates.title_from_slug(slug),
                "description": "",
                "homepage": "",
                "logo": "",
            },
        ),
    )
    start = f"{slug.upper().replace('-', '_')}_DO_SOMETHING"
    output.print_message(f"Next: `toolcatalog new tool {start}` for its first tool.")


@command.command("tool", epilog=_TOOL_EPILOG + _NOTE)
@click.argument("slug")
@options.catalog
@click.option("--name", metavar="TEXT", help="The display name.")
@click.option(
    "--description", metavar="TEXT", help="What the tool does, when to use it and when not."
)
@click.option(
    "--toolkit",
    metavar="SLUG",
    help="Its toolkit.  [default: the toolkit whose slug is its prefix]",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="A required scope; repeatable.",
)
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="A tag; repeatable.")
@click.option("--version", metavar="V", help="The version.  [default: today, as in 20251027_00]")
def new_tool(
    slug: str, catalog: Path, toolkit: str | None, version: str | None, **fields: Any
) -> None:
    """Create the tool SLUG, such as `GITHUB_CREATE_ISSUE`."""

    toolkit = _choose_toolkit(catalog, slug, toolkit)
    version = version or f"{options.today_compact()}_00"
    path = f"toolkits/{toolkit}/{slug}/{version}.yaml"
    templates.render_file(path, {})
    if existing := folder.find_tool(catalog, slug):
        newest = catalog / existing.version_path(existing.versions[-1])
        raise UsageError(
            f"{slug} is there already, its newest version in {newest}: create the next one "
            f"with `toolcatalog bump {slug}`."
        )
    _require_absent(catalog / path, "edit it, or choose another slug.")
    name = templates.title_from_slug(slug.partition("_")[2] or slug)
    _write_new_file(
        catalog, path, _complete_fields(path, fields, {"name": name, "description": ""})
    )
    output.print_message(
        "Next: describe in it what the tool takes and returns. Then `toolcatalog check`, `git "
        "add`, `git commit`."
    )


@command.command("schemas", epilog=_SCHEMAS_EPILOG)
@options.catalog
def new_schemas(catalog: Path) -> None:
    """Write the JSON Schemas for editors to the catalog, or update them.

    They belong into git: commit them once, and again after an update.
    """
    if not catalog.is_dir():
        raise UsageError(
            f"No catalog at {catalog}: create one with `toolcatalog new toolkit SLUG`."
        )
    schemas = templates.render_schemas()
    templates.write_files(catalog, schemas)
    for path in schemas:
        click.echo(catalog / path)


def _require_absent(file: Path, hint: str) -> None:
    if file.exists():
        raise UsageError(f"{file} is there already: {hint}")


def _choose_toolkit(catalog: Path, slug: str, requested: str | None) -> str:
    """Return the toolkit of a new tool. Raises UsageError if there is none."""

    toolkits = folder.list_toolkits(catalog)
    if requested in toolkits:
        return requested
    guessed = "" if requested else folder.guess_toolkit(slug, toolkits)
    if guessed:
        return guessed
    slug_to_suggest = requested or slug.partition("_")[0].lower()
    nearest = folder.nearest_slug(slug_to_suggest, toolkits)
    problem = (
        f"There is no toolkit {requested} in {catalog}"
        if requested
        else f"{slug} starts with the slug of no toolkit in {catalog}"
    )
    suggestion = (
        f"did you mean {nearest}? Name it with --toolkit, or"
        if nearest
        else "name one with --toolkit, or"
        if toolkits
        else "first"
    )
    raise UsageError(
        f"{problem}: {suggestion} make one with `toolcatalog new toolkit {slug_to_suggest}`."
    )


def _complete_fields(
    path: str, fields: Mapping[str, Any], prompts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of a new file. At a terminal, prompt for those that are missing.

    `prompts` has the default answer of each field to prompt for. Raises UsageError if a field is
    invalid, or if it is missing and there is no terminal.
    """

    values = {
        key: [*value] if isinstance(value, tuple) else value
        for key, value in fields.items()
        if value not in (None, ())
    }
    missing = [key for key in prompts if key not in values]
    if sys.stdin.isatty():
        for key in missing:
            values[key] = _prompt_field(path, values, key, prompts[key])
    elif required := [
        _option_name(key) for key in missing if key in templates.required_fields(path)
    ]:
        problem = (
            f"{required[0]} is missing: give it"
            if len(required) == 1
            else f"{' and '.join(required)} are missing: give them"
        )
        raise UsageError(f"{problem}, or run this at a terminal, where it asks.")
    for key in values:
        if field_problem := _find_field_problem(path, values, key):
            raise UsageError(f"{_option_name(key)}: {field_problem}.")
    return values


def _option_name(key: str) -> str:
    return _FLAGS.get(key, f"--{key.replace('_', '-')}")


def _prompt_field(path: str, values: Mapping[str, Any], key: str, default: str) -> str:
    """Prompt for a field until the answer is valid, and return it."""

    is_required = key in templates.required_fields(path)

    def validate(answer: str) -> str:
        if problem := _find_field_problem(path, {**values, key: answer}, key):
            raise click.BadParameter(problem)
        return answer

    question = key.capitalize() if is_required else f"{key.capitalize()} (or nothing)"
    answer: str = click.prompt(
        question,
        default or (None if is_required else ""),
        show_default=bool(default),
        value_proc=validate,
        err=True,
    )
    return answer


def _find_field_problem(path: str, values: Mapping[str, Any], key: str) -> str:
    """Return why a field is invalid, or an empty string."""

    if not values[key]:
        return (
            "it is empty, and should say something"
            if key in templates.required_fields(path)
            else ""
        )
    finding = next(
        (
            problem
            for problem in templates.validate_file(path, templates.render_file(path, values))
            if problem.pointer[:1] == (key,)
        ),
        None,
    )
    return (
        ""
        if finding is None
        else ", expected ".join(filter(None, (finding.message, finding.expected)))
    )


def _write_new_file(catalog: Path, path: str, fields: Mapping[str, Any]) -> None:
    """Write a new file, and in a new catalog first its `catalog.yaml` and the schemas for editors.

    The new file comes last: as long as it does not exist, the command can be run again.
    """
    is_new_catalog = not (catalog / "catalog.yaml").exists()
    contents: dict[str, bytes] = {}
    if is_new_catalog:
        comments = templates.render_schema_comments("catalog.yaml", "")
        title = {"title": _prompt_title(catalog)}
        about = templates.render_file("catalog.yaml", title, comments)
        contents = {"catalog.yaml": about, **templates.render_schemas()}
    comments = _schema_comments(catalog, path, is_new_catalog=is_new_catalog)
    templates.write_files(
        catalog, {**contents, path: templates.render_file(path, fields, comments)}
    )
    if is_new_catalog:
        about_file = catalog / "catalog.yaml"
        output.print_message(f"Started a new catalog in {catalog}: say in {about_file} what it is.")
    elif not comments:
        output.print_message(
            "Editors complete its keys after `toolcatalog new schemas`, once for a catalog."
        )
    output.print_message("Wrote:")
    click.echo(catalog / path)


def _schema_comments(catalog: Path, path: str, *, is_new_catalog: bool) -> str:
    """Return the comments that name the schema in the catalog, else the published one, or none.

    Only a schema that is there is named, so that a new tool is one new file in git.
    """
    if is_new_catalog or (catalog / file_schemas.SCHEMA_FOLDER).is_dir():
        return templates.render_schema_comments(path, "")
    document, _ = loader.load_file(catalog, "catalog.yaml")
    about = schema.validate(document)[0] if document and document.is_readable else None
    home = about.home if isinstance(about, About) else ""
    return templates.render_schema_comments(path, home) if home else ""


def _prompt_title(catalog: Path) -> str:
    """Return the title of a new catalog: the user's answer, or one made from the folder's name."""

    folder = catalog.resolve()
    hint = (
        templates.title_from_slug(folder.parent.name if folder.name == "catalog" else folder.name)
        or "Tool catalog"
    )
    answer: str = (
        click.prompt("There is no catalog yet. Its title", default=hint, err=True)
        if sys.stdin.isatty()
        else hint
    )
    return answer
