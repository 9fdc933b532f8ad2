"""Logos: a file of the catalog, or a tile with a letter."""

from dataclasses import replace

from toolcatalog.site import logos
from toolcatalog.snapshot.format import Toolkit

TOOLKIT = Toolkit(
    slug="mail",
    name="(my) <Mail>",
    logo="",
    description="",
    categories=(),
    no_auth=False,
    homepage="",
    owners=(),
    versions=(),
)


def test_a_tile_has_the_first_letter() -> None:
    """In a color that depends on the slug; for readers of the page it is decoration."""
    html = logos.render_logo(TOOLKIT, "../")
    assert html.startswith('<span class="logo tile-')
    assert html.endswith('" aria-hidden="true">M</span>')
    assert logos.render_logo(replace(TOOLKIT, name="<>"), "").endswith(">·</span>")


def test_a_file_of_the_catalog_is_shown() -> None:
    """An address of another host is not."""
    html = logos.render_logo(replace(TOOLKIT, logo_file="toolkits/mail/logo.svg"), "../")
    assert 'src="../toolkits/mail/logo.svg" alt=""' in html
    assert "<img" not in logos.render_logo(replace(TOOLKIT, logo="https://x.example/a.svg"), "")
