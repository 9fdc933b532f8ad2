"""Colors of themes: an accent can be read in both."""

import pytest

from toolcatalog.site import assets, colors


def test_contrast() -> None:
    """As WCAG defines it."""
    assert colors.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colors.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    "color", ["#000000", "#ffffff", "#ffff00", "#0000ff", "#7f7f7f", "#e11d48"]
)
def test_an_accent_can_be_read_in_both_themes(color: str) -> None:
    """Whatever color a catalog chooses."""
    light, dark = colors.readable_pair(color)
    assert colors.contrast(light, "#f6f7f9") > 4.5
    assert colors.contrast(dark, "#1a1f29") > 4.5


def test_a_good_accent_stays() -> None:
    """In the theme where it can be read."""
    assert colors.readable_pair("#0a6146")[0] == "#0a6146"


def test_the_style_sheet_has_the_accent() -> None:
    """After the rule that it replaces."""
    style = assets.render_style("#0a6146", ())
    assert style.rindex("--accent: light-dark(#0a6146,") > style.index("--accent: light-dark(")
    assert assets.render_style("", ()) == style[: style.rindex(":root { --accent")]
