"""Assets: the style sheet, the scripts and the icon, which are the same on every page.

`styles/` has a file for each component and `scripts/` one for each feature. A site gets them as
one style sheet and two scripts: `theme.js`, which runs before anything is painted, and `site.js`.
"""

from collections.abc import Mapping
from importlib import resources

from toolcatalog.site import colors

NAMES = ("style.css", "theme.js", "site.js", "icon.svg")
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


def read_asset(name: str, about: Mapping[str, str]) -> bytes:
    """Return the contents of one of `NAMES` for the site of a catalog."""
    match name:
        case "style.css":
            return render_style(about.get("accent", "")).encode()
        case "theme.js":
            return _read("scripts", "early-theme.js").encode()
        case "site.js":
            return render_script().encode()
        case "icon.svg":
            icon = _read("icon.svg")
            return icon.replace(_ICON_COLOR, about.get("accent") or _ICON_COLOR).encode()
        case _:
            raise FileNotFoundError(name)


def render_style(accent: str) -> str:
    """Return the style sheet; `accent` is the color of links and buttons, such as `#0a6146`."""
    sheets = [_read("styles", f"{name}.css") for name in _STYLES]
    return "".join([*sheets, _accent_rule(accent)])


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


def _read(*path: str) -> str:
    return resources.files("toolcatalog.site").joinpath(*path).read_text("utf-8")
