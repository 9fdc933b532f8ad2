"""Published files: logos and fonts in a catalog, which the site publishes as they are.

A logo is `logo.svg` or `logo.png` next to `toolkit.yaml`, or `logo.svg` next to `catalog.yaml`. An
SVG must contain nothing that a browser runs or loads: only elements that draw are allowed. Pages
show many logos, so what a browser has to draw is limited too.
"""

import math
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from toolcatalog import textutils

LOGO_NAMES = ("logo.svg", "logo.png")  # in order of preference
CATALOG_LOGO = "logo.svg"
FONTS = ("fonts/text.woff2", "fonts/code.woff2")
_WOFF2_SIGNATURE = b"wOF2"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_PIXELS = 2048  # of the width and of the height of a PNG
# characters of all elements that a browser draws; each reference adds those of its target
_MAX_DRAWN_SIZE = 256 << 10
_REFERENCE_SIZE = 1 << 10  # characters that a reference counts for in itself
_MAX_REFERENCES, _MAX_REFERENCE_DEPTH = _MAX_DRAWN_SIZE // _REFERENCE_SIZE, 8
_SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_DRAWING = """
    svg g defs symbol use title desc path rect circle ellipse line polyline polygon text tspan
    linearGradient radialGradient stop clipPath mask style
"""
_DRAWING_ELEMENTS = frozenset(_DRAWING.split())
_ALLOWED = """
    url rgb rgba hsl hsla oklch color-mix var calc min max clamp matrix translate translatex
    translatey scale scalex scaley rotate skewx skewy
"""
_ALLOWED_FUNCTIONS = frozenset(_ALLOWED.split())
_GRADIENTS = ("linearGradient", "radialGradient")
# CSS properties that draw: the presentation attributes of SVG 2 without markers, filters and dashes
_PROPERTIES = """
    alignment-baseline baseline-shift clip-path clip-rule color color-interpolation
    color-interpolation-filters color-rendering cx cy d direction display dominant-baseline
    enable-background fill fill-opacity fill-rule flood-color flood-opacity font height
    image-rendering isolation letter-spacing line-height mask mask-type mix-blend-mode opacity
    overflow paint-order pointer-events r rx ry shape-rendering solid-color solid-opacity
    stop-color stop-opacity stroke stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity
    stroke-width text-align text-anchor text-decoration text-indent text-orientation text-rendering
    text-transform transform transform-origin unicode-bidi vector-effect visibility white-space
    width word-spacing writing-mode x y
"""
_ALLOWED_PROPERTIES = frozenset(_PROPERTIES.split())
_ALLOWED_PREFIXES = ("--", "-inkscape-", "font-", "text-decoration-")
_STRING = re.compile(r"\"[\w ,.-]*\"|'[\w ,.-]*'")  # a name, as of a font
# a class, an id or an element: others take a browser long for many elements
_SELECTOR = re.compile(r"(?P<sign>[.#]?)(?P<name>[\w-]+)")
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
        return _find_png_fault(data)
    try:
        return _find_svg_fault(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "this is not an SVG image in UTF-8"


def _find_png_fault(data: bytes) -> str:
    if not data.startswith(_PNG_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 24:
        return "this is not a PNG image"
    if max(struct.unpack(">II", data[16:24])) > _MAX_PIXELS:
        return f"a PNG of more than {_MAX_PIXELS:,} pixels in a row or column is not allowed"
    return ""


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
    if any(map(textutils.find_hidden, (text, *_list_texts(root)))):
        return "a hidden character is not allowed in a logo"
    if root.tag != f"{_SVG_NAMESPACE}svg":
        return "the root element is not `svg`"
    return next(_list_faults(root), "") or _find_expansion_fault(root)


def _list_texts(root: ET.Element) -> Iterator[str]:
    """Yield all texts and attributes, in which character references are resolved."""
    for element in root.iter():
        yield from (element.text or "", element.tail or "", *element.attrib.values())


def _find_expansion_fault(root: ET.Element) -> str:
    """Return why a browser would have to draw very much, or an empty string.

    A `use` draws another element, which can contain ten more of them, and so on. So do masks
    and clip paths.
    """
    references = _list_all_references(root)
    if references is not None and _Drawing(references).measure(root) <= _MAX_DRAWN_SIZE:
        return ""
    most = f"{_MAX_DRAWN_SIZE:,} characters"
    return f"a logo that draws more than {most}, again for each reference, is not allowed"


class _Drawing:
    """The elements of an SVG with the elements that they refer to, and their sizes."""

    def __init__(self, targets: Mapping[ET.Element, Sequence[ET.Element]]) -> None:
        self._targets = targets
        self._sizes: dict[ET.Element, float] = {}

    def measure(self, root: ET.Element, depth: int = 0) -> float:
        """Return the characters that a browser draws; infinite if the element refers to itself."""
        if root not in self._sizes:
            self._sizes[root] = math.inf
            if depth <= _MAX_REFERENCE_DEPTH:
                self._sizes[root] = self._add_sizes(root, depth)
        return self._sizes[root]

    def _add_sizes(self, root: ET.Element, depth: int) -> float:
        size = 0.0
        for element in root.iter():
            size += _measure_alone(element)
            for target in self._targets.get(element, ()):
                size += _REFERENCE_SIZE + self.measure(target, depth + 1)
            if size > _MAX_DRAWN_SIZE:
                return math.inf
        return size


def _measure_alone(element: ET.Element) -> int:
    """Return about how many characters an element has without the elements in it."""
    texts = (*element.attrib, *element.attrib.values(), element.text or "", element.tail or "")
    return len("</>") + len(_local_name(element)) + sum(map(len, texts))


def _list_all_references(root: ET.Element) -> Mapping[ET.Element, Sequence[ET.Element]] | None:
    """Return the elements that others refer to, or None if there are too many."""
    targets: dict[str, ET.Element] = {}
    for element in root.iter():
        if _local_name(element) not in _GRADIENTS:  # which only color what refers to them
            targets.setdefault(element.get("id", ""), element)
    rules = [*islice(_list_style_rules(root, targets), _MAX_REFERENCES + 1)]
    references, remaining = {}, _MAX_REFERENCES - len(rules)
    for element in root.iter():
        if ids := [id for id in _list_references(element, rules) if id in targets]:
            references[element] = [targets[id] for id in ids]
            remaining -= len(ids)
        if remaining < 0:
            return None
    return references


class _StyleRule(NamedTuple):
    """A class, or an empty string for any other selector, and the ids in its style."""

    class_name: str
    ids: Sequence[str]


def _list_style_rules(root: ET.Element, targets: Collection[str]) -> Iterator[_StyleRule]:
    """Yield the rules of all `style` elements that refer to one of the targets."""
    styles = (element.text or "" for element in root.iter() if _local_name(element) == "style")
    for style in styles:
        for rule in style.split("}"):
            ids = [match["id"] for match in _REFERENCE.finditer(rule) if match["id"] in targets]
            for selector in rule.partition("{")[0].split(",") if ids else ():
                match = _SELECTOR.fullmatch(selector.strip())
                yield _StyleRule(match["name"] if match and match["sign"] == "." else "", ids)


def _list_references(element: ET.Element, rules: Collection[_StyleRule]) -> Iterator[str]:
    """Yield the ids that an element and the rules for it refer to."""
    name = _local_name(element)
    if name in (*_GRADIENTS, "stop", "style"):
        return
    classes = element.get("class", "").split()
    for key, value in element.attrib.items():
        if name == "use" and _split_name(key)[1] == "href" and (link := _LINK.fullmatch(value)):
            yield link["id"]
        yield from (match["id"] for match in _REFERENCE.finditer(value))
    for rule in rules:
        if rule.class_name in ("", *classes):
            yield from rule.ids


def _list_faults(root: ET.Element) -> Iterator[str]:
    """Yield what a browser could run or load, or would take long to draw."""
    for element in root.iter():
        namespace, name = _split_name(str(element.tag))
        if namespace != _SVG_NAMESPACE or name not in _DRAWING_ELEMENTS:
            yield f"the element `{name[:40]}` is not allowed in a logo"
        if name == "style" and (len(element) or not _is_harmless_style(element.text or "")):
            yield "a style that loads something is not allowed in a logo"
        if name == "style" and (fault := _find_rule_fault(element.text or "")):
            yield fault
        if fault := _find_property_fault(element.get("style", "")):
            yield fault
        for key, value in element.attrib.items():
            if not _is_harmless_attribute(_split_name(key)[1], value):
                yield f"the attribute `{_split_name(key)[1][:40]}` is not allowed in a logo"


def _is_harmless_attribute(name: str, value: str) -> bool:
    if name in ("href", "src"):
        return _LINK.fullmatch(value) is not None
    if name == "stroke-dasharray":
        return value == "none"
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


def _find_rule_fault(style: str) -> str:
    """Return why the rules of a style may take a browser long, or an empty string."""
    *rules, rest = style.split("}")
    if rest.strip():
        return "a style that is no list of rules is not allowed in a logo"
    for rule in rules:
        selectors, _, declarations = rule.partition("{")
        for selector in selectors.split(","):
            if not _SELECTOR.fullmatch(selector.strip()):
                return f"the selector `{selector.strip()[:40]}` is not allowed in a logo"
        if fault := _find_property_fault(declarations):
            return fault
    return ""


def _find_property_fault(declarations: str) -> str:
    """Return which property of a rule or an attribute is not allowed, or an empty string."""
    plain = _REFERENCE.sub("", _STRING.sub("", declarations))
    if any(mark in plain for mark in ("{", "'", '"', "/*")):
        return "a style with a comment, a string or another rule is not allowed in a logo"
    for declaration in plain.split(";"):
        name, _, value = (part.strip().lower() for part in declaration.partition(":"))
        is_allowed = name in _ALLOWED_PROPERTIES or name.startswith(_ALLOWED_PREFIXES)
        if name and not is_allowed and value != "none":
            return f"the property `{name[:40]}` is not allowed in a logo"
    return ""


def _local_name(element: ET.Element) -> str:
    return _split_name(str(element.tag))[1]


def _split_name(name: str) -> tuple[str, str]:
    """Return the namespace in braces and the local name."""
    namespace, brace, local = name.rpartition("}")
    return namespace + brace, local
