"""Write docs/explanation/performance.md and its plots from saved results.

`python -m benchmarks.report` writes them without a new measurement.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks import results
from benchmarks.http_load import PEER_ROUNDS, ROUNDS, SHORT_ROUNDS
from benchmarks.plots import render_plots
from benchmarks.results import Results
from benchmarks.servers import ROOT
from benchmarks.tables import make_tables

DOCS = ROOT / "docs" / "explanation"
_ALT = {
    "clients.svg": "Wall time of real clients by number of tools",
    "latency.svg": "Latency by number of tools",
    "memory.svg": "Memory by number of tools",
    "build.svg": "Build time by number of tools",
}

_HEAD = """\
# Performance

`make bench` writes this page from `benchmarks/results/`; do not edit it. Figures belong to one
machine and vary. Ratios between servers that ran in turns are stable.

    make bench                                       # 20,000 tools, everything: about 20 minutes
    make bench SIZES="1000 20000 200000 1000000"     # hours, and about 70 GB below .bench/
    make bench PARTS="clients http"                  # of clients, http, workers, process, build
    .venv/bin/python -m benchmarks.report            # write this page again from the results

*FastAPI + SQLAlchemy* is the service that an engineer would write first: ORM models, JSON columns,
`response_model`, ILIKE, the API key in the database, and `GZipMiddleware`. *Datasette* serves a
SQLite table with a full-text index as JSON. The table is opened as immutable; facets, suggestions
and counts are off. Datasette does not compress.
"""

_CLIENTS = """\
`composio-client` for Python and `@composio/client` for Node list all tools, up to 20,000, by pages.
Wall time contains the client's work: it parses each page and creates its models. Server CPU is the
processor time of the server. Both servers must return the same slugs in the same order.
"""

_HTTP = f"""\
One worker runs on one core; the load comes from another core (wrk, keep-alive, 16 connections, 4
for pages of 1000). Every request has the headers of a real client, an API key, and a
different `X-Request-Id`, so no two requests have the same bytes. The header profiles are in
`benchmarks/profiles.py`.

- *Ceiling*: an ASGI application under the same uvicorn settings that answers everything with one
  body. The body is as large as the mean of our responses, after compression.
- *Share by requests*: our requests per second, divided by the ceiling's. *Share by CPU*: the
  ceiling's processor time per request, divided by ours. A row meets its target if one of the two
  does. They are medians of {ROUNDS} rounds ({SHORT_ROUNDS} for other clients than httpx); in each
  round, all servers run one after another.
- *Repeated* queries are 2,000, drawn at random. *New* queries are 30,000, sent in order and
  then from the start, so that a query comes again only after all others. The table has the number
  of different queries: a catalog has few different pages of 1000.
- A page of 20 is a page of all tools, of one toolkit, or of one tag, in equal shares. A page of
  1000 is a page of all tools, of one tag, or of tools by relevance. New queries for pages have 15
  to 20 and 750 to 1000 tools. One query by words in five is for the second or third page.
- The other services get the same queries with the same headers, in {PEER_ROUNDS} rounds. The
  columns with × show how many times faster our server is. For queries by words, 10 × is the target.
- Before the load, responses are checked. Ours must decode to the bytes of the uncompressed
  response. The other services must return the same tools (for queries by words: some).
  `INVALID` marks a row with a wrong response; it does not count.
"""

_PROFILES = """\
A cell has the share by requests and the share by CPU. Clients without `Accept-Encoding` get
larger bodies; so does their ceiling. Their targets are .05 lower.
"""

_OTHER = """\
`--workers 2` needs two cores for the workers and two others for the load. It is not measured
where they would share cores.
"""

_SIZES = """\
*In the store*: find the documents and join their bytes, without parameters and headers. *Without a
socket*: the whole application, called in its process by ASGI, with queries that it has not seen.
The deep page is the last page of all tools.
"""

_BUILDS = """\
The files have about 3 KB and one version each. *× yaml.load* compares with PyYAML and its C
loader, which read the same files in one process in the same run; of more than 20,000 files it
reads 20,000, and the time is scaled. *Indexes only* and *with site* start without snapshot, site
and cache. *One file changed* changes another file each time; the time ends with the command. Peak
memory is that of all processes together (PSS: shared pages count once).

Each build has separate folders, and nothing is removed in between: ext4 without a journal
creates files slowly for minutes after many were removed. Targets are for a quiet machine.
"""


def render_page(results: Results) -> str:
    """Render the whole page."""
    return "\n".join([_HEAD, *_page_sections(results)])


def _page_sections(results: Results) -> Iterator[str]:
    if not results:
        yield "There are no results yet.\n"
        return
    introductions = {
        "Real clients": _CLIENTS,
        "Load with the headers of httpx": _HTTP,
        "Load by client": _PROFILES,
        "Other targets": _OTHER,
        "By number of tools": _SIZES,
        "Builds": _BUILDS,
    }
    for table in make_tables(results):
        yield f"## {table.title}\n"
        introduction = introductions.pop(table.title.partition(",")[0], "")
        yield from filter(None, [introduction])  # before the first table of its kind
        yield f"{table.markdown()}\n"
    yield from _busy_machine_lines(results)
    for name in render_plots(results):
        yield f"![{_ALT[name]}](plots/{name})\n"
    yield from _machine_lines(results)


def _busy_machine_lines(all_results: Results) -> Iterator[str]:
    """Yield a line for each part that was measured while others used the machine."""
    for tools, figures in all_results.items():
        for part in results.PARTS:
            share = figures.get(part, {}).get("busy", 0.0)
            if share > results.BUSY_THRESHOLD:
                yield (
                    f"**The machine was busy** when {part} of {tools:,} tools was measured: "
                    f"others used {share:.0%} of it.\n"
                )


def _machine_lines(results: Results) -> Iterator[str]:
    """Yield the description of each machine, and what was measured on it."""
    yield "## Machine\n"
    described: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for tools, figures in results.items():
        for part, machine in figures["machine"].items():
            described.setdefault(tuple(machine.items()), []).append(f"{part} of {tools:,}")
    for facts, parts in described.items():
        yield f"{'All figures' if len(described) == 1 else ', '.join(parts)}:\n"
        yield "\n".join(f"- {name}: {value}" for name, value in facts) + "\n"


def write_report(results: Results, docs: Path = DOCS) -> None:
    """Write the page and the plots."""
    folder, plots = docs / "plots", render_plots(results)
    if plots:
        folder.mkdir(exist_ok=True)
    for old in {path.name for path in folder.glob("*.svg")} - {*plots}:
        (folder / old).unlink()
    for name, text in plots.items():
        (folder / name).write_text(text, encoding="utf-8")
    (docs / "performance.md").write_text(render_page(results), encoding="utf-8")


def main() -> None:
    """Write the page and the plots, and print the tables."""
    loaded = results.load_results()
    write_report(loaded)
    print("\n\n".join(table.terminal() for table in make_tables(loaded)))


if __name__ == "__main__":
    main()
