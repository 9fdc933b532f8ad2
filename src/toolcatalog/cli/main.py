"""The command line: the commands, the error boundary and the exit codes.

Exit codes: 0 success, 1 a negative result such as problems in the catalog, 2 wrong usage or
something that cannot be used, 3 a bug in this program, 130 interrupted.
"""

import errno
import importlib
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import click

from toolcatalog import __version__, names
from toolcatalog.cli import environment, options, output
from toolcatalog.errors import InvalidCatalog, ShrunkCatalog, ToolcatalogError, write_error
from toolcatalog.system import threads
from toolcatalog.system.signals import exit_on_interrupt

_COMMAND_TABLE = {  # name: (module, summary, heading in the help)
    "init": ("init", "Create a catalog with an example toolkit and a CI workflow.", "Catalog"),
    "new": ("new", "Create a toolkit or a tool.", "Catalog"),
    "check": ("check", "Validate the catalog; write nothing.", "Catalog"),
    "explain": ("explain", "Explain a rule and how to fix its findings.", "Catalog"),
    "bump": ("bump", "Create the next version of a tool.", "Catalog"),
    "deprecate": ("deprecate", "Mark a tool as deprecated.", "Catalog"),
    "diff": (
        "diff",
        "Compare two versions, revisions or builds, and find breaking changes.",
        "Catalog",
    ),
    "import": (
        "import_",
        "Import tools from MCP servers, OpenAPI documents or API responses.",
        "Catalog",
    ),
    "codeowners": ("codeowners", "Print GitHub's CODEOWNERS for the toolkits.", "Catalog"),
    "build": ("build", "Validate the catalog and build its snapshot and site.", "Build"),
    "dev": ("dev", "Serve the site, and rebuild it when the catalog changes.", "Build"),
    "search": ("search", "Find tools by a description of a task, best first.", "Build"),
    "show": ("show", "Show a tool or a toolkit.", "Build"),
    "stats": ("stats", "Show statistics of a build.", "Build"),
    "export": ("export", "Print tools in the format of a model provider or of MCP.", "Build"),
    "lock": ("lock", "Lock the tools that an application uses, or check its lock file.", "Build"),
    "serve": ("serve", "Serve the read API and the site from a build.", "Service"),
    "mcp": ("mcp", "Serve the catalog to an agent: MCP over standard input and output.", "Service"),
    "keys": ("keys", "Create, list, rotate and revoke API keys.", "Service"),
    "snapshots": (
        "snapshots",
        "List, switch, prune and verify the snapshots of a build.",
        "Service",
    ),
    "publish": ("publish", "Upload a build to an object store.", "Service"),
    "mirror": ("mirror", "Write the read API as files for a static host.", "Service"),
    "completion": ("completion", "Print the completion script of a shell.", "Help"),
}
_log = logging.getLogger("toolcatalog.cli")
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
EXIT_CODES = {
    0: "success",
    1: "the result is negative: problems in the catalog, a changed lock, nothing found",
    2: "wrong usage, or something that cannot be read, written or reached",
    3: "an internal error",
    130: "interrupted",
}
_EPILOG = f"""\b
Examples:
  toolcatalog build                     catalog/ to build/ and site/
  toolcatalog keys create --project me  a key, printed once
  toolcatalog serve                     http://127.0.0.1:8000

\b
Exit codes:
{"".join(f"  {code:<3}  {meaning}{chr(10)}" for code, meaning in EXIT_CODES.items())}
Each option has an environment variable: --port of `serve` is TOOLCATALOG_SERVE_PORT. `COMMAND
--help` explains a command.
"""


class _LazyGroup(click.Group):
    """Group that imports a command's module when it is called, so `--help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*_COMMAND_TABLE]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in _COMMAND_TABLE:
            return None
        with exit_on_interrupt():
            command: click.Command = importlib.import_module(
                f"toolcatalog.cli.{_COMMAND_TABLE[cmd_name][0]}"
            ).command
        environment.add_common_options(command, [cmd_name])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, and suggest the nearest name for an unknown one.

        click itself knows only the commands that were imported.
        """
        nearest = (
            names.find_nearest(args[0], _COMMAND_TABLE) if args[0] not in _COMMAND_TABLE else []
        )
        if nearest and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {nearest[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        for heading in dict.fromkeys(row[2] for row in _COMMAND_TABLE.values()):
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, row[1]) for name, row in _COMMAND_TABLE.items() if row[2] == heading]
                )


@click.group(
    cls=_LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(
    __version__, "-V", "--version", package_name="toolcatalog", message="toolcatalog %(version)s"
)
def cli() -> None:
    """A catalog of tools for AI agents: YAML in git, an immutable snapshot, a small read API."""


cli.params += options.make_output_options()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Only a bug in this program shows a traceback."""
    output.set_quiet(quiet=False)
    start = time.perf_counter()
    code = _run_command(argv)
    _log.debug("exit code %d after %.3f s", code, time.perf_counter() - start)
    return code


def _run_command(argv: Sequence[str] | None) -> int:  # noqa: PLR0911 - one return per exit code
    try:
        code = cli.main(args=argv, prog_name="toolcatalog", standalone_mode=False)
        sys.stdout.flush()  # an error of writing can still be reported here
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except InvalidCatalog as error:
        output.print_problems(error.problems, error.file_count, "Nothing was built.")
        return 1
    except ToolcatalogError as error:
        _log.debug("", exc_info=True)
        output.print_error(str(error))
        return 1 if isinstance(error, ShrunkCatalog) else 2
    except OSError as error:
        return _report_os_error(error)
    # from click if the reader of the output is gone, from `serve` when it must stop
    except SystemExit:
        return 0
    except Exception as bug:  # noqa: BLE001 - every other exception is a bug
        return _report_thread_limit() if threads.is_limit_error(bug) else _report_bug(bug)
    return code if isinstance(code, int) else 0


def _report_os_error(error: OSError) -> int:
    """Report an error of a disk, most often of the one that the output is written to.

    It is not a bug, wherever it is raised.
    """
    if error.filename is None:
        _discard_output()
    if isinstance(error, BrokenPipeError):  # the reader of the output is gone
        return 0
    if error.errno not in _DISK_ERRORS:
        return _report_bug(error)
    path = error.filename or "standard output"
    output.print_error(str(write_error(path, error, ", and run this again")))
    return 2


def _discard_output() -> None:
    """Discard what is left in the buffer of standard output.

    Otherwise Python tries to write it again when it exits, and fails with code 120.
    """
    with suppress(OSError, ValueError):  # closed, or not a file
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _report_thread_limit() -> int:
    """Report that a library could not start a thread, which is not a bug."""
    output.print_error(threads.LIMIT_MESSAGE)
    return 2


def _report_bug(bug: Exception) -> int:
    output.print_traceback(bug)
    output.print_error(
        "This is a bug in toolcatalog, not your mistake. Please report it with the lines "
        "above and what you ran."
    )
    return 3
