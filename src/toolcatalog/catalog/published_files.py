"""Published files: logos and fonts in a catalog, which the site publishes as they are.

A logo is `logo.svg` or `logo.png` next to `toolkit.yaml`, or `logo.svg` next to `catalog.yaml`. An
SVG must contain nothing that a browser runs or loads: only elements that draw are allowed.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

LOGO_NAMES = ("logo.svg", "logo.png")  # in order of preference
CATALOG_LOGO = "logo.svg"
FONTS = ("fonts/text.woff2", "fonts/code.woff2")
_WOFF2_SIGNATURE = b"wOF2"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_DRAWING = """
    svg g defs symbol use title desc path rect circle ellipse line polyline polygon text tspan
    linearGradient radialGradient stop pattern clipPath mask marker style
    image
"""
_DRAWING_ELEMENTS = frozenset(_DRAWING.split())
_ALLOWED = """
    url rgb rgba hsl hsla oklch color-mix var calc min max clamp matrix translate translatex
    translatey scale scalex scaley rotate skewx skewy
"""
_ALLOWED_FUNCTIONS = frozenset(_ALLOWED.split())
_RASTER_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,")
# references of a logo, and how many lead from one to the next: a browser draws what they multiply
_MAX_REFERENCES, _MAX_REFERENCE_DEPTH = 200, 2
_TOO_MANY_REFERENCES = f"more than {_MAX_REFERENCES} references are not allowed in a logo"
_GRADIENTS = ("linearGradient", "radialGradient")
_NOT_INHERITED = ("clip-path", "mask")  # attributes that do not apply to each element within
_STRING_START = re.compile(r"/\*|[\"']")  # of a comment or a string in CSS
_CLASS_SELECTOR = re.compile(r"\.([\w-]+)")
# a browser also takes other spellings of an id, such as `%70`; these are not allowed
_URL = re.compile(r"\burl\(", re.IGNORECASE)
_REFERENCE = re.compile(r"\burl\(\s*([\"']?)#(?P<id>[\w.-]+)\1\s*\)", re.IGNORECASE)
_LINK = re.compile(r"#(?P<id>[\w.-]+)")
# only from the start of a name on, or long names would take quadratic time
_FUNCTION = re.compile(r"(?<![\w-])([\w-]*)\(")
_ENCODING = re.compile(r"\A\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([^\"']*)[\"']")


def find_font_fault(data: bytes) -> str:
    """Return why a file cannot be a font of the site, or an empty string if it can."""
    return "" if data.startswith(_WOFF2_SIGNATURE) else "this is not a font in the format WOFF2"


def find_logo_fault(path: str, data: bytes) -> str:
    """Return why a file cannot be a logo, or an empty string if it can."""
    if path.endswith(".png"):
        return "" if data.startswith(_PNG_SIGNATURE) else "this is not a PNG image"
    try:
        return _find_svg_fault(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "this is not an SVG image in UTF-8"


def _find_svg_fault(text: str) -> str:
    encoding = _ENCODING.match(text)
    if encoding and encoding[1].lower() not in ("utf-8", "us-ascii"):
        return f"the encoding {encoding[1][:20]} is not UTF-8"
    for mark in ("<!DOCTYPE", "<!ENTITY", "<?xml-stylesheet"):
        if mark.lower() in text.lower():
            return f"`{mark}` is not allowed in a logo"
    try:
        root = ET.fromstring(text)  # noqa: S314 - without a DTD there are no entities to expand
    except (ET.ParseError, ValueError):
        return "this is not well-formed XML"
    if root.tag != f"{_SVG_NAMESPACE}svg":
        return "the root element is not `svg`"
    return next(_active_content(root), "") or _find_expansion_fault(root)


def _find_expansion_fault(root: ET.Element) -> str:
    """Return why a browser would have to draw very much, or an empty string.

    A `use` draws another element, which can contain ten more of them, and so on. So does a pattern
    that elements are filled with; gradients only color them.
    """
    drawable = _find_drawable_ids(root)
    rules = [*_list_style_rules(root, drawable)]
    if len(rules) > _MAX_REFERENCES:
        return _TOO_MANY_REFERENCES
    listed = {element: _list_references(element, rules, drawable) for element in root.iter()}
    targets = {target for ids in listed.values() for target in (*ids.drawn, *ids.paints)}
    following: dict[str, set[str]] = {target: set() for target in targets}
    count = 0
    remaining = [(root, _References((), ()))]  # the ids around an element, and its inherited paints
    while remaining:
        element, (outer_ids, outer_paints) = remaining.pop()
        drawn, own_paints = listed[element]
        paints = (*dict.fromkeys((*outer_paints, *own_paints)),)
        if paints and _local_name(element) == "use":
            return "a `use` that is filled with a pattern is not allowed in a logo"
        count += len(drawn) + len(paints)
        if count > _MAX_REFERENCES:
            return _TOO_MANY_REFERENCES
        name = element.get("id", "")
        ids = (*outer_ids, name) if name in targets and name not in outer_ids else outer_ids
        for outer in ids:
            following[outer].update(drawn, paints)
        remaining += [(child, _References(ids, paints)) for child in element]
    reached = targets
    for _ in range(_MAX_REFERENCE_DEPTH):
        reached = {target for name in reached for target in following[name]}
    most = _MAX_REFERENCE_DEPTH
    return f"references over more than {most} elements are not allowed in a logo" if reached else ""


class _References(NamedTuple):
    """The ids that an element draws, and those that it and all elements in it draw."""

    drawn: Sequence[str]
    paints: Sequence[str]


class _StyleRule(NamedTuple):
    """A class, or an empty string for any other selector, and the references of its style."""

    class_name: str
    references: _References


def _list_style_rules(root: ET.Element, drawable: Collection[str]) -> Iterator[_StyleRule]:
    """Yield the rules of all `style` elements that refer to something drawable.

    Comments and strings may contain braces: with one, all rules count for all elements.
    """
    for element in root.iter():
        text = (element.text or "") if _local_name(element) == "style" else ""
        has_strings = _STRING_START.search(_REFERENCE.sub("", text))
        for rule in text.split("}"):
            selectors, _, style = rule.rpartition("{")
            references = _select(_list_style_references(style), drawable)
            for selector in selectors.split(",") if any(references) else ():
                match = None if has_strings else _CLASS_SELECTOR.fullmatch(selector.strip())
                yield _StyleRule(match[1] if match else "", references)


def _find_drawable_ids(root: ET.Element) -> set[str]:
    """Return the ids of elements other than gradients, which only color what refers to them."""
    return {
        element.get("id", "") for element in root.iter() if _local_name(element) not in _GRADIENTS
    }


def _list_references(
    element: ET.Element, rules: Iterable[_StyleRule], drawable: Collection[str]
) -> _References:
    """Return the references of an element to something drawable."""
    drawn, paints, name = list[str](), list[str](), _local_name(element)
    if name in (*_GRADIENTS, "stop", "style"):
        return _References((), ())
    classes = element.get("class", "").split()
    styles = [rule.references for rule in rules if rule.class_name in ("", *classes)]
    for key, value in element.attrib.items():
        local_key = _split_name(key)[1]
        if name == "use" and local_key == "href" and (link := _LINK.fullmatch(value)):
            drawn.append(link["id"])
        style = value if local_key == "style" else f"{local_key}:{value}"
        styles.append(_list_style_references(style))
    for references in styles:
        drawn += references.drawn
        paints += references.paints
    return _select(_References(drawn, paints), drawable)


def _list_style_references(style: str) -> _References:
    """Return the references of CSS declarations."""
    drawn, paints = list[str](), list[str]()
    for declaration in style.split(";") if _URL.search(style) else ():
        key = declaration.partition(":")[0]
        is_inherited = key.strip().lower() not in _NOT_INHERITED
        (paints if is_inherited else drawn).extend(
            match["id"] for match in _REFERENCE.finditer(declaration)
        )
    return _References(drawn, paints)


def _select(references: _References, drawable: Collection[str]) -> _References:
    return _References(*([name for name in ids if name in drawable] for ids in references))


def _active_content(root: ET.Element) -> Iterator[str]:
    """Yield what a browser could run or load."""
    for element in root.iter():
        namespace, name = _split_name(str(element.tag))
        if namespace != _SVG_NAMESPACE or name not in _DRAWING_ELEMENTS:
            yield f"the element `{name[:40]}` is not allowed in a logo"
        if name == "style" and (len(element) or not _is_harmless_style(element.text or "")):
            yield "a style that loads something is not allowed in a logo"
        for key, value in element.attrib.items():
            if not _is_harmless_attribute(_split_name(key)[1], value):
                yield f"the attribute `{_split_name(key)[1][:40]}` is not allowed in a logo"


def _is_harmless_attribute(name: str, value: str) -> bool:
    if name in ("href", "src"):
        return bool(_LINK.fullmatch(value) or _RASTER_IMAGE.match(value))
    return name != "base" and not name.lower().startswith("on") and _is_harmless_style(value)


def _is_harmless_style(text: str) -> bool:
    """Return whether CSS loads nothing: no escapes, no imports and only some functions.

    Of URLs, only references to a plain id are allowed.
    """
    return (
        not ("\\" in text or "@" in text)
        and len(_URL.findall(text)) == len(_REFERENCE.findall(text))
        and all(name.lower() in _ALLOWED_FUNCTIONS for name in _FUNCTION.findall(text))
    )


def _local_name(element: ET.Element) -> str:
    return _split_name(str(element.tag))[1]


def _split_name(name: str) -> tuple[str, str]:
    """Return the namespace in braces and the local name."""
    namespace, brace, local = name.rpartition("}")
    return namespace + brace, local
