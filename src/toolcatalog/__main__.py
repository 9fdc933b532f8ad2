"""The `toolcatalog` command, also as `python -m toolcatalog`."""

import os

from toolcatalog.system.signals import exit_on_interrupt, stop_handling_interrupts


def main() -> int:
    """Import and run the command line; return its exit code."""
    # On import, numpy's linear algebra library starts a thread per core, and ends the process if
    # the system allows none. No such thread is needed here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with exit_on_interrupt():
        from toolcatalog.cli import main as cli_main  # noqa: PLC0415 - must be in this block
    code = cli_main.main()
    stop_handling_interrupts()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
