"""The figures for people: docs/performance.md and docs/plots/, made from the results that are kept
and from nothing else.

`python -m benchmarks.report` makes them again without measuring anything.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks import results
from benchmarks.plots import render_plots
from benchmarks.results import Results
from benchmarks.servers import ROOT
from benchmarks.table import P99_TARGET, TARGET_SIZE, format_target, make_tables

DOCS = ROOT / "docs"
_ALT = {
    "latency.svg": "Latency by number of tools",
    "memory.svg": "Memory by number of tools",
    "build.svg": "Build time by number of tools",
}

_HEAD = """\
# Performance

This page is made from `benchmarks/results/` by `make bench`; nobody writes it by hand. Figures are of one machine and drift; ratios to
what ran beside them hold.

    make bench                                       # 20,000 tools, everything: about 20 minutes
    make bench SIZES="1000 20000 200000 1000000"     # hours, and some 70 GB below .bench/
    make bench SIZES=200000 PARTS="http inside"      # of http, inside, building
    python -m benchmarks.report                      # this page again, from the results
"""

_HTTP = """\
One worker, one core; the load (wrk, keep-alive, {connections} connections, {long_connections} for pages of 1000) comes from another core.
Slugs, pages, filters and words are drawn from the catalog, the same for every server, with an API key: 2,000 questions for each operation,
so that most have been asked before when they come again, which our server makes use of; and 30,000, more than it remembers, where the row
says "mostly not asked before". The servers take turns; figures are medians of five rounds, of two for peers. One question at a time, which
the plot of latency shows, comes before the rounds: what is not in memory by then comes from the disk, as documents of a million tools do.

- *Ceiling*: a bare ASGI application under the same uvicorn settings that answers everything with one body of the mean size of ours.
- *By CPU*: the processor time that a request costs the ceiling's process, divided by what it costs ours; for peers, theirs divided by
  ours. It is steadier than requests per second. Targets are for 20,000 tools; by CPU, 15 times Datasette and 30 times the plain service.
- *Datasette*: a SQLite table with a full-text index, opened as immutable, JSON without facets, suggestions or counts; queries are ranked
  and any word may match, as with us.
- *FastAPI + SQLAlchemy*: the service that one would write first: ORM models, JSON columns, `response_model`, ILIKE, the key looked up in
  the database.
- Before an operation is measured, the peers' answers are held against ours: the same tools must come back (for queries: some).
  `INVALID` stands where answers were wrong: such a row does not count.
"""

_INSIDE = """\
*In the store*: finding and joining bytes, no more, for questions that have gone through the application just before: what they touch has
been read, checked and, of tools, remembered. *Without a socket*: the whole application, called in the process by ASGI, where no answer is
remembered. The deep page is the last of all, the first page the first.
"""

_BUILDING = """\
Files of about 3 KB with one version each. `yaml.load` is PyYAML's with its C loader, reading the same files in one process in the same run
and keeping nothing; above 20,000 files it reads 20,000 and its time is scaled. From nothing: no snapshot, no site, no cache. Peak memory
is that of all processes of the build together (PSS: a page that they share counts once). One file changed: another one each time, until
the new snapshot is in force and the command has ended. Before each run, what was written before it is brought to the disk. Each build from
nothing goes into folders of its own, and nothing is removed in between: ext4 without a journal makes files slowly for minutes after many
were removed, and a build with its site took 23.9 s then that took 15.3 s before. Of more than 50,000 files the build by indexes only goes
before the one with the site is made, and that before the next size: a disk has no room for both.

Targets are for a quiet machine. Where others use the same cores all takes longer: on 2026-11-23, while `yaml.load` took 10.9 s for the
20,000 files, a change took 0.97 s by indexes only and 1.36 s with the site, and 0.39 s told that nothing had changed.
"""


def render_page(results: Results) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_page_sections(results)])


def _page_sections(results: Results) -> Iterator[str]:
    if not results:
        yield "No results are kept yet.\n"
        return
    about = {
        "Over HTTP": _HTTP.format(connections=16, long_connections=4),
        "By number of tools": _INSIDE,
        "Building": _BUILDING,
    }
    for table in make_tables(results):
        yield f"## {table.title}\n"
        # before the first table of its kind
        yield from filter(None, [about.pop(table.title.partition(",")[0], "")])
        yield f"{table.markdown()}\n"
    yield from _latency_lines(results)
    yield from _busy_machine_lines(results)
    for name in render_plots(results):
        yield f"![{_ALT[name]}](plots/{name})\n"
    yield from _machine_lines(results)


def _latency_lines(results: Results) -> Iterator[str]:
    """The one target that is neither of throughput nor of a build."""
    if "http" in results.get(TARGET_SIZE, {}):
        get = results[TARGET_SIZE]["http"]["operations"]["get"]
        ratio = get["ours"]["p99"] / get["ceiling"]["p99"]
        target = format_target(ratio <= P99_TARGET, f"≤ {P99_TARGET:.0f}", TARGET_SIZE)
        yield f"With {TARGET_SIZE:,} tools, p99 of get is {ratio:.1f} times the ceiling's ({target}).\n"


def _busy_machine_lines(all_results: Results) -> Iterator[str]:
    """Which figures were taken while others used the machine."""
    for tools, figures in all_results.items():
        for part in results.PARTS:
            share = figures.get(part, {}).get("busy", 0.0)
            if share > results.BUSY_THRESHOLD:
                yield f"**The machine was busy** when {part} of {tools:,} tools was measured: others used {share:.0%} of it.\n"


def _machine_lines(results: Results) -> Iterator[str]:
    """What the figures were measured on, each machine once."""
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
    folder, drawn = docs / "plots", render_plots(results)
    if drawn:
        folder.mkdir(exist_ok=True)
    for old in {path.name for path in folder.glob("*.svg")} - {*drawn}:
        (folder / old).unlink()
    for name, text in drawn.items():
        (folder / name).write_text(text, encoding="utf-8")
    (docs / "performance.md").write_text(render_page(results), encoding="utf-8")


def main() -> None:
    """Make the page and the plots, and print the tables."""
    found = results.load_results()
    write_report(found)
    print("\n\n".join(table.terminal() for table in make_tables(found)))


if __name__ == "__main__":
    main()
