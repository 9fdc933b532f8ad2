"""Datasette with a SQLite table and a full-text index: an API without a server of one's own.

It runs with the uvicorn settings of our server, opens the database as immutable, and answers with
JSON only. `python -m benchmarks.peers.tables load DATABASE ROWS` and `... serve DATABASE`.
"""

import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from datasette.app import Datasette

from benchmarks.constant import serve

_COLUMNS = """
slug name description toolkit version is_deprecated no_auth tags scopes available_versions
input_parameters output_parameters
""".split()
_FLAGS = ("is_deprecated", "no_auth")
_SEARCH = """
select tools.* from tools_fts join tools on tools.rowid = tools_fts.rowid
where tools_fts match :q order by rank limit :size offset :skip
"""
_LIMITS = {"sql_time_limit_ms": 60_000, "max_returned_rows": 1000}


def load(database: Path, rows: Path) -> None:
    """Create the database."""
    with sqlite3.connect(database) as connection:
        typed = [f"{column} {'integer' if column in _FLAGS else 'text'}" for column in _COLUMNS]
        connection.execute(f"create table tools ({', '.join(typed)}, primary key (slug))")
        with rows.open("rb") as lines:
            connection.executemany(
                f"insert into tools values ({', '.join('?' * len(_COLUMNS))})",  # noqa: S608
                _records(lines),
            )
        connection.execute("create index tools_by_toolkit on tools (toolkit)")
        connection.execute(
            "create virtual table tools_fts using fts5(slug, name, description, content='tools')"
        )
        connection.execute("insert into tools_fts(tools_fts) values ('rebuild')")
    connection.close()


def _records(lines: Iterable[bytes]) -> Iterator[list[Any]]:
    for line in lines:
        tool = orjson.loads(line)
        tool["toolkit"] = tool["toolkit"]["slug"]
        yield [_plain(tool[column]) for column in _COLUMNS]


def _plain(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value


def run(database: Path) -> None:
    """Serve the database. The ranked search is a query of the configuration, as documented."""
    queries = {"databases": {database.stem: {"queries": {"search": {"sql": _SEARCH}}}}}
    serve(
        Datasette([], immutables=[str(database)], metadata=queries, settings=_LIMITS).app(),
        lifespan="on",
    )


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    database = Path(paths[0])
    load(database, Path(paths[1])) if command == "load" else run(database)
