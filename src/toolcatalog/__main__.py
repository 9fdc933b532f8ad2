"""`python -m toolcatalog` is the `toolcatalog` command."""

from toolcatalog.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
