"""Logo files: which images the site may publish."""

import pytest

from toolcatalog.catalog.published_files import find_logo_fault

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{}</svg>'


@pytest.mark.parametrize(
    "text",
    [
        '<path d="M0 0h8v8z" fill="#fff" style="opacity:.5"/>',
        '<defs><g id="a"/></defs><use xlink:href="#a" fill="url(#b)"/>',
        "<style>.a { fill: url(#b) }</style>",
        """<g fill="URL( '#b' )"/>""",
        # as drawing programs export them
        "<style>.a{fill:url(#g)}.b,.c{clip-path:url(#c)}</style>"
        '<linearGradient id="g"><stop class="a"/></linearGradient>'
        '<clipPath id="c"><path/></clipPath>'
        '<g class="b">' + '<path class="a"/>' * 500 + '</g><use href="#c" fill="url(#g)"/>',
        '<image href="data:image/png;base64,AAAA"/>',
    ],
)
def test_plain_svg_is_accepted(text: str) -> None:
    """Shapes, styles and internal references."""
    assert find_logo_fault("toolkits/mail/logo.svg", SVG.format(text).encode()) == ""


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '<g onclick="alert(1)"/>',
        '<a href="https://example.com"/>',
        '<use xlink:href="https://example.com/a.svg#b"/>',
        '<use href="javascript:alert(1)"/>',
        '<image href="data:image/svg+xml;base64,AAAA"/>',
        "<foreignObject/>",
        "<style>@import 'https://example.com/a.css';</style>",
        '<g style="fill: url(https://example.com/a.svg)"/>',
        "<style>.a { fill: u\\72l(https://example.com) }</style>",
        '<use href="#%61"/>',
        '<g fill="url(#%61)"/>',
        """<g fill="url('#a b')"/>""",
    ],
)
def test_active_svg_is_refused(text: str) -> None:
    """What a browser would run or load."""
    fault = find_logo_fault("toolkits/mail/logo.svg", SVG.format(text).encode())
    assert "is not allowed in a logo" in fault


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b'<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG.format("&a;").encode(), "`<!DOCTYPE`"),
        (b'<?xml version="1.0" encoding="utf-7"?>' + SVG.format("").encode(), "utf-7 is not UTF-8"),
        (SVG.format("").encode("utf-16"), "not an SVG image in UTF-8"),
        (b"<svg/>", "the root element is not `svg`"),
        (SVG.format("<g>").encode(), "not well-formed"),
        (b"<?xml-stylesheet href='a.css'?>" + SVG.format("").encode(), "`<?xml-stylesheet`"),
    ],
)
def test_other_documents_are_refused(data: bytes, fault: str) -> None:
    """Document types, other encodings, other root elements."""
    assert fault in find_logo_fault("toolkits/mail/logo.svg", data)


def make_patterns(rectangle: str, count: int = 10) -> str:
    """Patterns of rectangles that are filled with the pattern before."""
    return "".join(
        f'<pattern id="p{level}">{rectangle.format(level - 1) * count}</pattern>'
        for level in range(1, 9)
    )


DEEP = "references over more than 2 elements"
MANY = "more than 200 references"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (make_patterns('<rect fill="url(#p{})"/>'), DEEP),
        (make_patterns("""<rect style="fill: URL( '#p{}' )"/>"""), DEEP),
        (make_patterns('<g fill="url(#p{})"><rect/></g>'), DEEP),
        (
            make_patterns('<rect class="l{}"/>') + "<style>.l0,.l1,.l2,.l3{fill:url(#p1)}</style>",
            DEEP,
        ),
        (make_patterns("<rect/>") + "<style>rect { fill: url(#p1) }</style>", DEEP),
        (f'<pattern id="p"/><g fill="url(#p)">{"<rect/>" * 300}</g>', MANY),
        ('<pattern id="p"/><style>.a{fill:url(#p)}</style>' + '<rect class="a"/>' * 300, MANY),
        (make_patterns("<rect/>") + "<style>rect{/*}.x{*/fill:url(#p1)}</style>", DEEP),
        (make_patterns("<rect/>") + "<style>rect{fill:/*;*/url(#p1)}</style>", DEEP),
        (make_patterns("<rect/>") + "<style>rect{a:'}.x{';fill:url(#p1)}</style>", DEEP),
        ("<style>" + ".a{fill:url(#p)}" * 300 + '</style><pattern id="p"/>', MANY),
        ('<pattern id="p"/><g id="g"/><use href="#g" fill="url(#p)"/>', "filled with a pattern"),
    ],
)
def test_references_that_multiply_are_refused(text: str, fault: str) -> None:
    """A browser would draw millions of shapes."""
    assert fault in find_logo_fault("logo.svg", SVG.format(text).encode())


def test_png_signature_is_checked() -> None:
    assert find_logo_fault("toolkits/mail/logo.png", b"\x89PNG\r\n\x1a\n...") == ""
    assert find_logo_fault("toolkits/mail/logo.png", SVG.encode()) == "this is not a PNG image"


@pytest.mark.timeout(60)
def test_long_svg_is_checked_in_linear_time() -> None:
    """A path of a million characters, and nested styles."""
    for text in (f'<path d="{"a" * 1_000_000}"/>', f"<style>{'a' * 1_000_000}</style>"):
        assert find_logo_fault("toolkits/mail/logo.svg", SVG.format(text).encode()) == ""
    nested = "<style>" * 500 + "a" * 500_000 + "</style>" * 500
    fault = find_logo_fault("toolkits/mail/logo.svg", SVG.format(nested).encode())
    assert fault == "a style that loads something is not allowed in a logo"
