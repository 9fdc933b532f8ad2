"""The `toolcatalog` command, also as `python -m toolcatalog`."""

import os

from toolcatalog.system.signals import exit_on_interrupt, stop_handling_interrupts


def main() -> int:
    """Load the command line and run it: its exit code."""
    # As it loads, numpy's library for matrices begins a thread for each core, and ends the process
    # where it may not; none is needed here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with exit_on_interrupt():
        from toolcatalog.cli import main as cli_main  # noqa: PLC0415 - under the protection of the line above
    code = cli_main.main()
    stop_handling_interrupts()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
