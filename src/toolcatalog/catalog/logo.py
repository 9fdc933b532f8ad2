"""Logo files of toolkits: `logo.svg` or `logo.png` next to `toolkit.yaml`.

The site publishes these files, so an SVG must contain nothing that a browser runs or loads.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

NAMES = ("logo.svg", "logo.png")  # in order of preference
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_ACTIVE_ELEMENTS = frozenset(
    ("script", "foreignObject", "iframe", "embed", "object", "handler", "audio", "video", "a")
)
_LINK_ATTRIBUTES = frozenset(("href", "src"))
_SAFE_LINK = re.compile(r"#|data:image/(?:png|jpeg|gif|webp);base64,", re.IGNORECASE)
_EXTERNAL_STYLE = re.compile(
    r"@import|url\(\s*[\"']?(?!#|data:image/)|expression\(|\\", re.IGNORECASE
)
_ENCODING = re.compile(r"\A\s*<\?xml[^>]*\bencoding\s*=\s*[\"']([^\"']*)[\"']")


def find_fault(path: str, data: bytes) -> str:
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
    return next(_active_content(root), "")


def _active_content(root: ET.Element) -> Iterator[str]:
    """Yield what a browser would run or load."""
    for element in root.iter():
        name = _local_name(str(element.tag))
        if name in _ACTIVE_ELEMENTS:
            yield f"the element `{name}` is not allowed in a logo"
        if name == "style" and _EXTERNAL_STYLE.search(element.text or ""):
            yield "a style that loads something is not allowed in a logo"
        for key, value in element.attrib.items():
            if _is_active_attribute(_local_name(key), value):
                yield f"the attribute `{_local_name(key)}` is not allowed in a logo"


def _is_active_attribute(name: str, value: str) -> bool:
    if name in _LINK_ATTRIBUTES:
        return not _SAFE_LINK.match(value.strip())
    return name.lower().startswith("on") or bool(_EXTERNAL_STYLE.search(value))


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]
