"""Colors of a theme: shades of one color that can be read on a light and on a dark page."""

from collections.abc import Iterator

_LIGHT_PAGE, _DARK_PAGE = "#f6f7f9", "#1a1f29"  # the panels, which are harder than the pages
_MIN_CONTRAST = 4.7  # WCAG AA wants 4.5
_STEPS = 40

Rgb = tuple[int, int, int]


def readable_pair(color: str) -> tuple[str, str]:
    """Return the shades of a color, such as `#0a6146`, for text in the light and the dark theme."""
    return _readable(color, _LIGHT_PAGE, (0, 0, 0)), _readable(color, _DARK_PAGE, (255, 255, 255))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors as WCAG defines it, from 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _readable(color: str, page: str, toward: Rgb) -> str:
    """Return the first shade on the way to black or white that has enough contrast."""
    return next(shade for shade in _shades(color, toward) if contrast(shade, page) > _MIN_CONTRAST)


def _shades(color: str, toward: Rgb) -> Iterator[str]:
    start = _parse(color)
    for step in range(_STEPS + 1):
        mixed = (round(a + (b - a) * step / _STEPS) for a, b in zip(start, toward, strict=True))
        yield "#" + "".join(f"{part:02x}" for part in mixed)


def _luminance(color: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parse(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    linear: float = part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
    return linear


def _parse(color: str) -> Rgb:
    value = int(color.removeprefix("#"), 16)
    return value >> 16, value >> 8 & 255, value & 255
