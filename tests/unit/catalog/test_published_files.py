"""Logo files: which images the site may publish."""

import struct

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
        '<path stroke-dasharray="none" style="marker:none;font-variant-caps:normal;--a:1"/>',
        "<style>.a{font-family:'Open Sans', Arial;fill:red;}\n#b, g { opacity: 0.5 }</style>",
        '<mask id="m"><path/></mask>' + '<path mask="url(#m)"/>' * 50,
        f'<path id="p" d="{"M0 0" * 20_000}"/><use href="#p"/>',
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
        '<image href="data:image/png;base64,AAAA"/>',
        '<marker id="m"/>',
        '<pattern id="p"/>',
        '<filter id="f"/>',
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
        (SVG.format("<desc>a\u200b</desc>").encode(), "a hidden character"),
        (SVG.format("<desc>a&#xE0041;</desc>").encode(), "a hidden character"),
        (SVG.format('<g id="a&#8203;"/>').encode(), "a hidden character"),
        (SVG.format("<!-- \U000e0041 -->").encode(), "a hidden character"),
        (b"<?xml-stylesheet href='a.css'?>" + SVG.format("").encode(), "`<?xml-stylesheet`"),
    ],
)
def test_other_documents_are_refused(data: bytes, fault: str) -> None:
    """Document types, other encodings, other root elements."""
    assert fault in find_logo_fault("toolkits/mail/logo.svg", data)


def make_masks(rectangle: str, count: int = 10) -> str:
    """Masks of rectangles that are masked by the mask before."""
    return "".join(
        f'<mask id="m{level}">{rectangle.format(level - 1) * count}</mask>' for level in range(1, 9)
    )


CLASS = "<style>.l0,.l1,.l2,.l3{mask:url(#m1)}</style>"


@pytest.mark.parametrize(
    "text",
    [
        make_masks('<rect mask="url(#m{})"/>'),
        make_masks("""<rect style="mask: URL( '#m{}' )"/>"""),
        make_masks('<g mask="url(#m{})"><rect/></g>'),
        make_masks('<rect class="l{}"/>') + CLASS,
        make_masks("<rect/>") + "<style>rect { mask: url(#m1) }</style>",
        '<clipPath id="c"><path/></clipPath>' + '<rect clip-path="url(#c)"/>' * 300,
        '<mask id="m"/><style>.a{mask:url(#m)}</style>' + '<rect class="a"/>' * 300,
        f'<path id="p" d="{"M0 0" * 20_000}"/>' + '<use href="#p"/>' * 5,
        f'<path d="{"M0 0" * 100_000}"/>',
        '<g id="a"><use href="#a"/></g>',
        '<mask id="m"/><g class="a"/><style>' + ".b{mask:url(#m)}" * 300 + "</style>",
        "".join(f'<g id="a{n}"><use href="#a{n + 1}"/></g>' for n in range(2_000)),
    ],
)
def test_references_that_multiply_are_refused(text: str) -> None:
    """A browser would draw millions of shapes."""
    fault = find_logo_fault("logo.svg", SVG.format(text).encode())
    assert "262,144 characters" in fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<style>.a{fill:red; .b{fill:red}}</style>", "a comment, a string or another rule"),
        ("<style>.a{mask:url(#m); .b{fill:red} }</style>", "a comment, a string or another rule"),
        ("<style>rect{/*}.x{*/mask:url(#m1)}</style>", "a comment, a string or another rule"),
        ("<style>rect{mask:/*;*/url(#m1)}</style>", "a comment, a string or another rule"),
        ("<style>rect{fill:'}.x{';mask:url(#m1)}</style>", "a comment, a string or another rule"),
        ("""<style>rect{fill:"}";mask:url(#m1)}</style>""", "a comment, a string or another rule"),
        ("<style>.a{fill:red}.b</style>", "no list of rules"),
        ("<style>i~*,.a{fill:red}</style>", "the selector `i~*`"),
        ("<style>*{fill:red}</style>", "the selector `*`"),
        ("<style>g .a{fill:red}</style>", "the selector `g .a`"),
        ("<style>.a:hover{fill:red}</style>", "the selector `.a:hover`"),
        ('<g style="box-shadow: 0 0 9px red"/>', "the property `box-shadow`"),
        ("<style>.a{Text-Shadow:0 0 9px}</style>", "the property `text-shadow`"),
        ('<path stroke-dasharray="0.0004"/>', "the attribute `stroke-dasharray`"),
        ('<path style="Stroke-Dasharray: 0.0004"/>', "the property `stroke-dasharray`"),
        ("<style>path{stroke-dasharray:0.0004}</style>", "the property `stroke-dasharray`"),
    ],
)
def test_styles_that_take_long_to_draw_are_refused(text: str, fault: str) -> None:
    """Dashes, shadows, selectors of relatives, and rules that hide references."""
    assert fault in find_logo_fault("logo.svg", SVG.format(text).encode())


def make_png(width: int, height: int) -> bytes:
    """The beginning of a PNG."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (make_png(2048, 2048), ""),
        (make_png(2049, 1), "more than 2,048 pixels"),
        (make_png(1, 16_000), "more than 2,048 pixels"),
        (make_png(1, 1)[:-1], "this is not a PNG image"),
        (b"\x89PNG\r\n\x1a\n", "this is not a PNG image"),
        (SVG.encode(), "this is not a PNG image"),
    ],
)
def test_size_of_a_png_is_limited(data: bytes, fault: str) -> None:
    """A file of 30 KB could take a gigabyte in a browser."""
    found = find_logo_fault("toolkits/mail/logo.png", data)
    assert fault in found if fault else found == ""


@pytest.mark.timeout(60)
def test_long_svg_is_checked_in_linear_time() -> None:
    """A path of a million characters, and nested styles."""
    style = f"<style>{'a' * 500_000}{{}}{'a{}' * 200_000}</style>"
    for text in (f'<path d="{"a" * 1_000_000}"/>', style):
        fault = find_logo_fault("toolkits/mail/logo.svg", SVG.format(text).encode())
        assert "262,144 characters" in fault
    nested = "<style>" * 500 + "a" * 500_000 + "</style>" * 500
    fault = find_logo_fault("toolkits/mail/logo.svg", SVG.format(nested).encode())
    assert fault == "a style that loads something is not allowed in a logo"
