"""Plots of the results: small SVGs for light and dark backgrounds. Pure.

Both axes are logarithmic. Each line has a color, a shape of its points, and a name.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchmarks.profiles import MAIN
from benchmarks.results import Results

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 330, 240, 52, 34, 30, 14
_NAME, _LINE = 180, 18  # pixels for a name in the legend
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #57606a } .title { font-weight: 600 }
.grid { stroke: #8c959f; stroke-opacity: .3 }
.line { fill: none; stroke: currentColor; stroke-width: 2 } .dot { fill: currentColor }
.c0 { color: #0969da } .c1 { color: #bc4c00 } .c2 { color: #8250df } .c3 { color: #57606a }
.c4 { color: #1a7f37 } .c5 { color: #bf3989 } .c6 { color: #9a6700 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .c0 { color: #58a6ff } .c1 { color: #f0883e } .c2 { color: #bc8cff }
.c3 { color: #9198a1 } .c4 { color: #3fb950 } .c5 { color: #f778ba } .c6 { color: #d29922 } }
"""
_SHAPES = (
    '<circle class="dot" cx="{x}" cy="{y}" r="3.5"/>',
    '<rect class="dot" x="{x}" y="{y}" width="7" height="7" transform="translate(-3.5 -3.5)"/>',
    '<path class="dot" d="M{x} {y}m0 -4.5l4.5 8h-9z"/>',
    '<path class="dot" d="M{x} {y}m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z"/>',
)
_NAMES = {
    "ours": "toolcatalog",
    "datasette": "Datasette",
    "fastapi": "FastAPI + SQLAlchemy",
    "ceiling": "constant body",
}

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: its title, its unit, and named lines of (tools, value)."""

    title: str
    unit: str
    lines: Mapping[str, Points]


def render_plots(results: Results) -> dict[str, str]:
    """Return all plots for which there are figures: file name to text."""
    plots = {
        "clients.svg": _client_panels(results),
        "latency.svg": _latency_panels(results),
        "memory.svg": _memory_panels(results),
        "build.svg": _build_panels(results),
    }
    drawn = {
        name: [panel for panel in panels if any(panel.lines.values())]
        for name, panels in plots.items()
    }
    return {name: render_panels(panels) for name, panels in drawn.items() if panels}


def _client_panels(results: Results) -> list[Panel]:
    titles = {"python": "composio-client (Python)", "node": "@composio/client (Node)"}
    return [
        Panel(
            f"{title}, pages of {page}",
            "s for all tools, at most 20,000",
            {
                _NAMES[name]: _row_points(
                    results,
                    "clients",
                    {"language": language, "page": page},
                    ("servers", name, "seconds"),
                )
                for name in ("ours", "fastapi")
            },
        )
        for language, title in titles.items()
        for page in (20, 1000)
    ]


def _latency_panels(results: Results) -> list[Panel]:
    titles = {
        "get": "Get a tool",
        "list20": "Page of 20",
        "filter": "Filter",
        "query": "Query of 1 to 4 words",
    }
    return [
        Panel(
            title,
            "ms, one at a time, headers of httpx",
            {
                _NAMES[name]: _row_points(
                    results,
                    "http",
                    {"operation": operation, "profile": MAIN, "queries": "repeated"},
                    ("servers", name, "alone"),
                )
                for name in _NAMES
            },
        )
        for operation, title in titles.items()
    ]


def _memory_panels(results: Results) -> list[Panel]:
    places = {name: ("http", "servers", name) for name in ("ours", "datasette", "fastapi")}
    return [
        Panel(
            title,
            "MB",
            {_NAMES[name]: _points(results, (*place, key)) for name, place in places.items()},
        )
        for key, title in (
            ("private", "Private memory"),
            ("pss", "Memory with a share of files (PSS)"),
        )
    ]


def _build_panels(results: Results) -> list[Panel]:
    ours = {
        "indexes only": ("build", "index", "seconds"),
        "with site": ("build", "site", "seconds"),
    }
    rebuilds = {
        "nothing changed": ("build", "unchanged", "seconds"),
        "one file changed": ("build", "one changed", "seconds"),
    }
    others = {"yaml.load alone": ("build", "yaml.load")}
    peers = {
        f"{_NAMES[name]}, rows": ("http", "servers", name, "load")
        for name in ("datasette", "fastapi")
    }
    return [
        Panel(title, "s", {name: _points(results, place) for name, place in lines.items()})
        for title, lines in (("First build", ours | others | peers), ("Rebuild", rebuilds))
    ]


def _points(results: Results, keys: Iterable[str]) -> Points:
    """Return the points of a figure, which all sizes have at the same path."""
    values = [(tools, _value(parts, keys)) for tools, parts in results.items()]
    return [(float(tools), value) for tools, value in values if value]


def _row_points(
    results: Results, part: str, fields: Mapping[str, object], keys: Iterable[str]
) -> Points:
    """Return the points of a figure of the row of a part that has these fields."""
    points = []
    for tools, parts in results.items():
        for row in parts.get(part, {}).get("rows", []):
            value = _value(row, keys) if fields.items() <= row.items() else None
            if value:
                points.append((float(tools), value))
    return points


def _value(figures: Any, keys: Iterable[str]) -> float | None:
    """Return the figure at a path, if there is one."""
    for name in keys:
        figures = figures.get(name) if isinstance(figures, Mapping) else None
    return float(figures) if isinstance(figures, int | float) else None


def render_panels(panels: Sequence[Panel]) -> str:
    """Render panels, two in a row, with the names of the lines below."""
    names = [
        *dict.fromkeys(name for panel in panels for name, points in panel.lines.items() if points)
    ]
    width, foot = _WIDTH * min(2, len(panels)), _HEIGHT * -(-len(panels) // 2)
    shifts = [f"{_WIDTH * (number % 2)} {_HEIGHT * (number // 2)}" for number in range(len(panels))]
    parts = [
        f'<g transform="translate({shift})">{_panel(panel, names)}</g>'
        for shift, panel in zip(shifts, panels, strict=True)
    ]
    columns = width // _NAME
    for number, name in enumerate(names):
        x, y = 16 + _NAME * (number % columns), foot + 14 + _LINE * (number // columns)
        parts.append(
            f'<g class="c{number}">{_dot(number, x, y - 4)}</g><text x="{x + 10}" '
            f'y="{y}">{escape(name)}</text>'
        )
    height, body = foot + _LINE * -(-len(names) // columns) + 4, "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _panel(panel: Panel, names: Sequence[str]) -> str:
    every = [point for points in panel.lines.values() for point in points]
    across, up = (
        _scale([x for x, _ in every], _LEFT, _WIDTH - _RIGHT),
        _scale([y for _, y in every], _HEIGHT - _BOTTOM, _TOP),
    )
    parts = [
        (
            f'<text class="title" x="{_LEFT}" y="16">{escape(panel.title)}</text><text '
            f'x="{_LEFT}" y="29">{escape(panel.unit)}</text>'
        )
    ]
    for value, x in across.ticks():
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - 14}" text-anchor="middle">'
            f"{_format_short(value)}</text>"
        )
    for value, y in up.ticks():
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_format_short(value)}</text>'
        )
    for name, points in panel.lines.items():
        if points:
            parts.append(
                _line(
                    names.index(name), [(across.to_pixels(x), up.to_pixels(y)) for x, y in points]
                )
            )
    return "".join(parts)


def _line(number: int, points: Points) -> str:
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = "".join(_dot(number, x, y) for x, y in points)
    return f'<g class="c{number}"><path class="line" d="M{line}"/>{dots}</g>'


def _dot(number: int, x: float, y: float) -> str:
    return _SHAPES[number % len(_SHAPES)].format(x=f"{x:.1f}", y=f"{y:.1f}")


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float  # powers of ten
    high: float
    start: float  # pixels
    stop: float

    def to_pixels(self, value: float) -> float:
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (
            self.stop - self.start
        )

    def ticks(self) -> list[tuple[float, float]]:
        step = max(1, math.ceil((self.high - self.low) / 6))
        return [
            (10.0**power, self.to_pixels(10.0**power))
            for power in range(int(self.low), int(self.high) + 1, step)
        ]


def _scale(values: Sequence[float], start: float, stop: float) -> _Scale:
    """Return the scale between the powers of ten around all values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return _Scale(low, max(high, low + 1), start, stop)


def _format_short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
