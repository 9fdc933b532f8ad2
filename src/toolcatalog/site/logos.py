"""Logos of toolkits: a local image if the catalog has one, otherwise a tile with a letter."""

import zlib
from html import escape

from toolcatalog.snapshot.format import Toolkit
from toolcatalog.textutils import escape_hidden

_TILE_COLORS = 8  # classes in `badges.css`


def render_logo(toolkit: Toolkit, root: str) -> str:
    """Render the logo of a toolkit; `root` is the path to the root of the site."""
    if toolkit.logo_file:
        address = escape(root + toolkit.logo_file)
        return f'<img class="logo" src="{address}" alt="" width="32" height="32" loading="lazy">'
    number = zlib.crc32(toolkit.slug.encode()) % _TILE_COLORS
    letter = escape(escape_hidden(first_letter(toolkit.name)))
    return f'<span class="logo tile-{number}" aria-hidden="true">{letter}</span>'


def first_letter(name: str) -> str:
    """Return the letter of a tile."""
    return next((char for char in name.upper() if char.isalnum()), "·")
