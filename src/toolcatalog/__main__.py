"""The `toolcatalog` command, also as `python -m toolcatalog`.

Serves: "console script `toolcatalog`" of issue 2.
"""

from toolcatalog.loading import loading


def main() -> int:
    """Load the command line and run it: its exit code."""
    with loading():
        from toolcatalog import cli  # noqa: PLC0415 - under the protection of the line above
    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
