"""The command line: the commands, the error boundary and the exit codes.

Exit codes: 0 success, 1 problems in the catalog, 2 wrong usage or something that cannot be used, 3
a bug in this program, 130 interrupted.
"""

import errno
import importlib
import sys
from collections.abc import Sequence

import click

from toolcatalog import __version__, names
from toolcatalog.cli import output
from toolcatalog.errors import InvalidCatalog, ShrunkCatalog, ToolcatalogError, write_error
from toolcatalog.system import threads
from toolcatalog.system.signals import exit_on_interrupt

_COMMAND_TABLE = {  # name: (module, summary, heading in the help)
    "build": ("build", "Validate the catalog and build its snapshot and site.", "Catalog"),
    "check": ("check", "Validate the catalog; write nothing.", "Catalog"),
    "explain": ("explain", "Tell what a rule means and how to mend what it finds.", "Catalog"),
    "dev": ("dev", "Serve the site while the catalog is edited.", "Catalog"),
    "search": ("search", "Find the tools that a sentence asks for, best first.", "Catalog"),
    "new": ("new", "Begin a toolkit or a tool.", "Catalog"),
    "bump": ("bump", "Begin the next version of a tool.", "Catalog"),
    "deprecate": ("deprecate", "Say that a tool should not be used any more.", "Catalog"),
    "show": ("show", "Show a tool or a toolkit.", "Catalog"),
    "stats": ("stats", "Tell what there is, in numbers.", "Catalog"),
    "import": ("import_", "Turn tool definitions of another form into catalog files.", "Catalog"),
    "export": (
        "export",
        "Print tools as a model provider, or an MCP server, takes them.",
        "Catalog",
    ),
    "codeowners": ("codeowners", "Print who GitHub asks to review which toolkit.", "Catalog"),
    "lock": ("lock", "Note which tools an application uses, and what they are.", "Catalog"),
    "verify": ("verify", "Tell whether locked tools are still what they were.", "Catalog"),
    "diff": (
        "diff",
        "Tell what differs between two versions, revisions or builds, and whom it breaks.",
        "Catalog",
    ),
    "serve": ("serve", "Answer the read API, and the site, from a build.", "Service"),
    "publish": (
        "publish",
        "Send a build to an object store, for servers that follow it.",
        "Service",
    ),
    "mirror": (
        "mirror",
        "Write a build as files from which any static host answers the read API.",
        "Service",
    ),
    "snapshots": (
        "snapshots",
        "List, use, prune and verify the snapshots that a build has left.",
        "Service",
    ),
    "keys": ("keys", "Create, list, rotate and revoke API keys.", "Service"),
    "mcp": ("mcp", "Let an agent search the catalog, as a server of MCP.", "Service"),
    "completion": ("completion", "Print the completion script of a shell.", "Help"),
}
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
_EPILOG = """\b
Examples:
  toolcatalog build                     catalog/ to build/ and site/
  toolcatalog keys create --project me  a key, printed once
  toolcatalog serve                     http://127.0.0.1:8000
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
@click.version_option(__version__, package_name="toolcatalog", message="toolcatalog %(version)s")
def cli() -> None:
    """A catalog of tools for AI agents: YAML in git, an immutable snapshot, a small read API."""


def main(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one return per exit code
    """Run one command and return its exit code. Only a bug in this program shows a traceback."""
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
        output.print_error(str(error))
        return 1 if isinstance(error, ShrunkCatalog) else 2
    except OSError as error:
        return _report_os_error(error)
    # from click if the reader of the output is gone, from `serve` when it is told to stop
    except SystemExit:
        return 0
    except Exception as bug:  # noqa: BLE001 - every other exception is a bug
        return _report_thread_limit() if threads.is_limit_error(bug) else _report_bug(bug)
    return code if isinstance(code, int) else 0


def _report_os_error(error: OSError) -> int:
    """Report an error of a disk, most often of the one that the output is written to.

    It is not a bug, wherever it is raised.
    """
    if isinstance(error, BrokenPipeError):  # the reader of the output is gone
        return 0
    if error.errno not in _DISK_ERRORS:
        return _report_bug(error)
    path = error.filename or "standard output"
    output.print_error(str(write_error(path, error, ", and run this again")))
    return 2


def _report_thread_limit() -> int:
    """Report that a library could not start a thread, which is not a bug."""
    output.print_error(threads.LIMIT_MESSAGE)
    return 2


def _report_bug(bug: Exception) -> int:
    sys.excepthook(type(bug), bug, bug.__traceback__)
    output.print_error(
        "This is a bug in toolcatalog, not your mistake. Please report it with the lines "
        "above and what you ran."
    )
    return 3
