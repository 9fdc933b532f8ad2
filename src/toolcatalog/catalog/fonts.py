"""Fonts of the site: `fonts/text.woff2` and `fonts/code.woff2` in the catalog folder."""

TEXT, CODE = "fonts/text.woff2", "fonts/code.woff2"
PATHS = (TEXT, CODE)
_SIGNATURE = b"wOF2"


def find_fault(data: bytes) -> str:
    """Return why a file cannot be a font of the site, or an empty string if it can."""
    return "" if data.startswith(_SIGNATURE) else "this is not a font in the format WOFF2"
