"""Feeds: Atom, the sitemap and the OpenSearch description.

Dates come from versions and never from the clock, so equal catalogs give equal feeds. All files are
UTF-8 and end with a line break.
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

from toolcatalog.textutils import escape_hidden

MAX_ENTRIES = 100
MAX_SITEMAP_URLS = 50_000  # per file, a limit of the protocol
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
EPOCH = "1970-01-01T00:00:00Z"  # the update time of an empty feed
_SITEMAP_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0


class ToolChange(NamedTuple):
    """A change of a tool in one of its versions.

    `toolkit` is slug and name; `what` is "new tool", "new version" or "deprecated".
    """

    slug: str
    name: str
    toolkit: tuple[str, str]
    version: str
    what: str
    summary: str


def render_atom(title: str, path: str, home: str, changes: Iterable[ToolChange]) -> bytes:
    """Render the Atom feed at `path`: the newest 100 changes, newest first, in whatever order
    given.

    With `home`, the URL of the site, addresses and ids are below it. Without it, addresses are
    relative to the feed, and ids are URNs.
    """
    newest = nsmallest(
        MAX_ENTRIES, changes, key=lambda one: (-_version_number(one.version), one.slug, one.what)
    )
    root = _site_root(home) or "../" * path.count("/")
    updated = version_timestamp(newest[0].version) if newest else EPOCH
    feed = ET.Element("feed", xmlns="http://www.w3.org/2005/Atom")
    _add(feed, "title", title)
    _add(feed, "id", f"{_site_root(home)}{path}" if home else f"urn:toolcatalog:{path}")
    _add(feed, "updated", updated)
    _add(ET.SubElement(feed, "author"), "name", title)
    _add(feed, "link", rel="self", type="application/atom+xml", href=f"{root}{path}")
    page = f"{root}{path.removesuffix('feed.xml')}index.html"
    _add(feed, "link", rel="alternate", type="text/html", href=page)
    for change in newest:
        _add_entry(feed, change, home, root)
    return _serialize(feed)


def version_timestamp(version: str) -> str:
    """Return the RFC 3339 time of a version.

    The last two digits of a version count as minutes, so that later versions of a day have later
    times. A date that does not exist becomes the nearest one before it, or the first date of all.
    """
    hours, minutes = divmod(int(version[9:]), 60)
    day = _nearest_date(int(version[:4]), int(version[4:6]), int(version[6:8]))
    return f"{day.isoformat()}T{hours:02}:{minutes:02}:00Z"


def sitemap_paths(page_count: int) -> list[str]:
    """Return the paths of the sitemap files for this number of pages.

    More than 50,000 pages need `sitemap-1.xml` and so on, with `sitemap.xml` as their index.
    """
    parts = -(-page_count // MAX_SITEMAP_URLS)
    return [
        "sitemap.xml",
        *(f"sitemap-{number}.xml" for number in range(1, parts + 1) if parts > 1),
    ]


class SitemapFile(NamedTuple):
    """A sitemap file: its path, the site paths that it lists, and a function that renders it."""

    path: str
    targets: Sequence[str]
    render: Callable[[], bytes]


def render_sitemaps(home: str, paths: Iterable[str], page_count: int) -> Iterator[SitemapFile]:
    """Yield the sitemap files for these site paths, reading `paths` lazily.

    `page_count` is the number of paths.
    """
    first, *names = sitemap_paths(page_count)
    left = iter(paths)
    for name in names or [first]:
        some = [*islice(left, MAX_SITEMAP_URLS)]
        yield SitemapFile(name, some, partial(_render_sitemap, "urlset", "url", home, some))
    if names:
        yield SitemapFile(
            first, names, partial(_render_sitemap, "sitemapindex", "sitemap", home, names)
        )


def render_opensearch(about: Mapping[str, str]) -> bytes:
    """Render the OpenSearch description of the list of all tools, for a site with a `home`.

    Names are cut to the lengths that the standard allows.
    """
    # braces have a meaning in URL templates
    root = _site_root(about["home"]).replace("{", "%7B").replace("}", "%7D")
    description = ET.Element("OpenSearchDescription", xmlns="http://a9.com/-/spec/opensearch/1.1/")
    _add(description, "ShortName", _truncate(about["title"], 16))
    _add(description, "Description", _truncate(about.get("description") or about["title"], 1024))
    _add(description, "InputEncoding", "UTF-8")
    template = f"{root}tools/index.html?q={{searchTerms}}"
    _add(description, "Url", type="text/html", template=template)
    kind = "application/opensearchdescription+xml"
    _add(description, "Url", type=kind, rel="self", template=f"{root}opensearch.xml")
    return _serialize(description)


def _add_entry(feed: ET.Element, change: ToolChange, home: str, root: str) -> None:
    page = f"tools/{change.slug}/index.html"
    suffix = ":deprecated" if change.what == "deprecated" else ""
    version = f" {change.version}" if change.what == "new version" else ""
    urn = f"urn:toolcatalog:{change.slug}:{change.version}{suffix}"
    entry = ET.SubElement(feed, "entry")
    _add(entry, "title", f"{change.name}: {change.what}{version}")
    _add(entry, "id", f"{_site_root(home)}{page}#{change.version}{suffix}" if home else urn)
    _add(entry, "updated", version_timestamp(change.version))
    _add(entry, "link", rel="alternate", type="text/html", href=f"{root}{page}")
    _add(entry, "category", term=change.toolkit[0], label=change.toolkit[1])
    _add(entry, "summary", change.summary or change.slug)


def _version_number(version: str) -> int:
    return int(version[:8] + version[9:])


def _nearest_date(year: int, month: int, day: int) -> date:
    """Return the date with these numbers, or the nearest one before it."""
    if month > 12:
        month, day = 12, 31
    if month == 0:
        month, day = 1, 0
    if year == 0 or (year, month, day) == (1, 1, 0):
        return date.min
    return date(year, month, 1) + timedelta(days=min(day, monthrange(year, month)[1]) - 1)


def _site_root(home: str) -> str:
    return f"{home.rstrip('/')}/" if home else ""


def _truncate(text: str, max_length: int) -> str:
    """Return as many whole words as fit; if the first word does not fit, its beginning."""
    text = _clean_text(text)
    return (
        text
        if len(text) <= max_length
        else text[: max_length + 1].rpartition(" ")[0] or text[:max_length]
    )


def _clean_text(text: str) -> str:
    """Return a text on one line, without hidden characters and characters that XML forbids."""
    return escape_hidden(" ".join(_FORBIDDEN.sub("", text).split()))


def _render_sitemap(kind: str, item: str, home: str, paths: Iterable[str]) -> bytes:
    root = ET.Element(kind, xmlns=_SITEMAP_NAMESPACE)
    for path in paths:
        url = f"{_site_root(home)}{quote(path, errors='replace')}"
        ET.SubElement(ET.SubElement(root, item), "loc").text = url
    return _serialize(root)


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> None:
    """Append an element with a text and attributes, without characters that XML forbids."""
    cleaned = {key: _clean_text(value) for key, value in attributes.items()}
    ET.SubElement(parent, name, cleaned).text = _clean_text(text) or None


def _serialize(root: ET.Element) -> bytes:
    """Serialize a document as UTF-8, one element per line."""
    ET.indent(root, space="")
    return f"{_DECLARATION}{ET.tostring(root, encoding='unicode')}\n".encode()
