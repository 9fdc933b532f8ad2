"""`python -m toolcatalog` is the `toolcatalog` command.

Serves: "console script `toolcatalog`" of issue 2.
"""

from toolcatalog.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
