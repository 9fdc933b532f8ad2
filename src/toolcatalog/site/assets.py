"""Assets: the style sheet, the scripts and the icon, which are the same on every page.

`styles/` has a file for each component and `scripts/` one for each feature. A site gets them as
one style sheet and two scripts: `theme.js`, which runs before anything is painted, and `site.js`.
"""

from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import PurePosixPath

from toolcatalog.site import colors

ICON = "icon.svg"
NAMES = ("style.css", "theme.js", "site.js", ICON)
_FONT_VARIABLES = {"text": "sans", "code": "mono"}  # of the style sheet, by the name of a file
_ICON_COLOR = "#4340d3"
# in the order of the cascade
_STYLES = (
    "tokens",
    "base",
    "layout",
    "controls",
    "badges",
    "lists",
    "home",
    "tool",
    "parameters",
    "code",
    "search",
    "history",
    "reference",
    "print",
)
_SCRIPTS = (
    "shared",
    "data",
    "theme",
    "search-index",
    "search-dialog",
    "copy",
    "tabs",
    "list-filter",
    "facets",
    "sidebar",
    "slug-links",
    "compare",
    "parameters",
    "api",
    "try-it",
    "start",
)


def read_asset(name: str, about: Mapping[str, str], fonts: Collection[str]) -> bytes:
    """Return the contents of one of `NAMES` for the site of a catalog.

    `fonts` are the paths of the fonts that the catalog has.
    """
    match name:
        case "style.css":
            return render_style(about.get("accent", ""), fonts).encode()
        case "theme.js":
            return _read("scripts", "early-theme.js").encode()
        case "site.js":
            return render_script().encode()
        case "icon.svg":
            icon = _read(ICON)
            return icon.replace(_ICON_COLOR, about.get("accent") or _ICON_COLOR).encode()
        case _:
            raise FileNotFoundError(name)


def render_style(accent: str, fonts: Collection[str]) -> str:
    """Return the style sheet; `accent` is the color of links and buttons, such as `#0a6146`."""
    sheets = [_read("styles", f"{name}.css") for name in _STYLES]
    font_rules = map(_font_rule, fonts)
    return "".join([*sheets, _accent_rule(accent), *font_rules])


def render_script() -> str:
    """Return the script of all pages: the features in one function, so that none is global."""
    features = "\n".join(_read("scripts", f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n\n{features}}})();\n'


def read_template(name: str) -> str:
    """Return the source of a template."""
    return _read("templates", name)


def _accent_rule(accent: str) -> str:
    if not accent:
        return ""
    light, dark = colors.readable_pair(accent)
    return f":root {{ --accent: light-dark({light}, {dark}); }}\n"


def _font_rule(path: str) -> str:
    variable = _FONT_VARIABLES[PurePosixPath(path).stem]
    # `optional`: a font that arrives late does not move the text that a reader has started to read
    return (
        f'@font-face {{ font-family: "catalog-{variable}"; src: url({path}) format("woff2"); '
        f"font-weight: 100 900; font-display: optional; }}\n"
        f':root {{ --{variable}: "catalog-{variable}", var(--system-{variable}); }}\n'
    )


def _read(*path: str) -> str:
    return resources.files("toolcatalog.site").joinpath(*path).read_text("utf-8")
