"""What is told to programs that follow a site: Atom feeds, the list of all pages, and how to search
from a browser. Pure.

Dates come from versions and never from the clock, so equal catalogs give equal feeds. Everything is
UTF-8 and ends with a line break.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from toolcatalog.unseen import visible

MOST_ENTRIES = 100
MOST_URLS = 50_000  # of a sitemap, as the protocol has it
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
NEVER = "1970-01-01T00:00:00Z"  # when an empty feed was updated
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0


class Changed(NamedTuple):
    """What happened to a tool with a version. `toolkit` is slug and name; `what` is "new tool",
    "new version" or "deprecated".
    """

    slug: str
    name: str
    toolkit: tuple[str, str]
    version: str
    what: str
    summary: str


def atom(title: str, path: str, home: str, changes: Iterable[Changed]) -> bytes:
    """The Atom feed at `path` of the site: the newest hundred changes, newest first, whatever their
    order.

    With `home`, the URL of the site, addresses and ids lie under it; without, addresses are
    relative to the feed, and ids are URNs.
    """
    newest = nsmallest(
        MOST_ENTRIES, changes, key=lambda one: (-_number(one.version), one.slug, one.what)
    )
    root = _root(home) or "../" * path.count("/")
    updated = moment(newest[0].version) if newest else NEVER
    feed = ET.Element("feed", xmlns="http://www.w3.org/2005/Atom")
    _add(feed, "title", title)
    _add(feed, "id", f"{_root(home)}{path}" if home else f"urn:toolcatalog:{path}")
    _add(feed, "updated", updated)
    _add(ET.SubElement(feed, "author"), "name", title)
    _add(feed, "link", rel="self", type="application/atom+xml", href=f"{root}{path}")
    page = f"{root}{path.removesuffix('feed.xml')}index.html"
    _add(feed, "link", rel="alternate", type="text/html", href=page)
    for change in newest:
        _add_entry(feed, change, home, root)
    return _serialize(feed)


def moment(version: str) -> str:
    """The time that a version stands for, as in RFC 3339; its last two digits are minutes, so that
    later versions of a day are later.

    A day that no calendar has is the nearest one before it; where there is none, the first of all.
    """
    hours, minutes = divmod(int(version[9:]), 60)
    return f"{_day(int(version[:4]), int(version[4:6]), int(version[6:8])).isoformat()}T{hours:02}:{minutes:02}:00Z"


def sitemap_paths(pages: int) -> list[str]:
    """The files of the sitemap of so many pages: `sitemap.xml`, and for more than 50,000 also
    `sitemap-1.xml` and so on, which it names.
    """
    parts = -(-pages // MOST_URLS)
    return [
        "sitemap.xml",
        *(f"sitemap-{number}.xml" for number in range(1, parts + 1) if parts > 1),
    ]


class Part(NamedTuple):
    """A file of the sitemap: where it lies, what it leads to (paths of the site), and what makes
    it.
    """

    path: str
    leads_to: Sequence[str]
    make: Callable[[], bytes]


def sitemap(home: str, paths: Iterable[str], count: int) -> Iterator[Part]:
    """The files of the sitemap for so many pages at these paths of the site, which are taken as
    they are needed.
    """
    first, *names = sitemap_paths(count)
    left = iter(paths)
    for name in names or [first]:
        some = [*islice(left, MOST_URLS)]
        yield Part(name, some, partial(_sitemap, "urlset", "url", home, some))
    if names:
        yield Part(first, names, partial(_sitemap, "sitemapindex", "sitemap", home, names))


def opensearch(about: Mapping[str, str]) -> bytes:
    """The OpenSearch description of the list of all tools, for a site that has a `home`. Names are
    as short as the standard wants them.
    """
    # braces mean something in a template
    root = _root(about["home"]).replace("{", "%7B").replace("}", "%7D")
    description = ET.Element("OpenSearchDescription", xmlns="http://a9.com/-/spec/opensearch/1.1/")
    _add(description, "ShortName", _cut(about["title"], 16))
    _add(description, "Description", _cut(about.get("description") or about["title"], 1024))
    _add(description, "InputEncoding", "UTF-8")
    template = f"{root}tools/index.html?q={{searchTerms}}"
    _add(description, "Url", type="text/html", template=template)
    kind = "application/opensearchdescription+xml"
    _add(description, "Url", type=kind, rel="self", template=f"{root}opensearch.xml")
    return _serialize(description)


def _add_entry(feed: ET.Element, change: Changed, home: str, root: str) -> None:
    page = f"tools/{change.slug}/index.html"
    suffix = ":deprecated" if change.what == "deprecated" else ""
    version = f" {change.version}" if change.what == "new version" else ""
    urn = f"urn:toolcatalog:{change.slug}:{change.version}{suffix}"
    entry = ET.SubElement(feed, "entry")
    _add(entry, "title", f"{change.name}: {change.what}{version}")
    _add(entry, "id", f"{_root(home)}{page}#{change.version}{suffix}" if home else urn)
    _add(entry, "updated", moment(change.version))
    _add(entry, "link", rel="alternate", type="text/html", href=f"{root}{page}")
    _add(entry, "category", term=change.toolkit[0], label=change.toolkit[1])
    _add(entry, "summary", change.summary or change.slug)


def _number(version: str) -> int:
    return int(version[:8] + version[9:])


def _day(year: int, month: int, day: int) -> date:
    """The day with these numbers, or the nearest one before it."""
    if month > 12:
        month, day = 12, 31
    if month == 0:
        month, day = 1, 0
    if year == 0 or (year, month, day) == (1, 1, 0):
        return date.min
    return date(year, month, 1) + timedelta(days=min(day, monthrange(year, month)[1]) - 1)


def _root(home: str) -> str:
    return f"{home.rstrip('/')}/" if home else ""


def _cut(text: str, most: int) -> str:
    """As many whole words as fit; of a first word that does not fit its beginning."""
    text = _said(text)
    return text if len(text) <= most else text[: most + 1].rpartition(" ")[0] or text[:most]


def _said(text: str) -> str:
    """A text on one line, with nothing hidden in it and nothing that XML forbids."""
    return visible(" ".join(_FORBIDDEN.sub("", text).split()))


def _sitemap(kind: str, each: str, home: str, paths: Iterable[str]) -> bytes:
    root = ET.Element(kind, xmlns=_SITEMAPS)
    for path in paths:
        url = f"{_root(home)}{quote(path, errors='replace')}"
        ET.SubElement(ET.SubElement(root, each), "loc").text = url
    return _serialize(root)


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> None:
    """Append an element with a text and attributes, without characters that XML forbids."""
    cleaned = {key: _said(value) for key, value in attributes.items()}
    ET.SubElement(parent, name, cleaned).text = _said(text) or None


def _serialize(root: ET.Element) -> bytes:
    """Serialize a document as UTF-8, one element a line."""
    ET.indent(root, space="")
    return f"{_DECLARATION}{ET.tostring(root, encoding='unicode')}\n".encode()
