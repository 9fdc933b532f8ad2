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
from html import escape
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from toolcatalog.unseen import visible

MOST_ENTRIES = 100
MOST_URLS = 50_000  # of a sitemap, as the protocol has it
NEVER = "1970-01-01T00:00:00Z"  # when an empty feed was updated
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
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
    head = [
        _leaf("title", title),
        _leaf("id", f"{_root(home)}{path}" if home else f"urn:toolcatalog:{path}"),
        _leaf("updated", updated),
        _element("author", [_leaf("name", title)]),
        _empty("link", rel="self", type="application/atom+xml", href=f"{root}{path}"),
        _empty(
            "link",
            rel="alternate",
            type="text/html",
            href=f"{root}{path.removesuffix('feed.xml')}index.html",
        ),
    ]
    return _file(
        _element(
            "feed",
            [*head, *(_entry(one, home, root) for one in newest)],
            xmlns="http://www.w3.org/2005/Atom",
        )
    )


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
    parts = [
        _leaf("ShortName", _cut(about["title"], 16)),
        _leaf("Description", _cut(about.get("description") or about["title"], 1024)),
        _leaf("InputEncoding", "UTF-8"),
        _empty("Url", type="text/html", template=f"{root}tools/index.html?q={{searchTerms}}"),
        _empty(
            "Url",
            type="application/opensearchdescription+xml",
            rel="self",
            template=f"{root}opensearch.xml",
        ),
    ]
    return _file(
        _element("OpenSearchDescription", parts, xmlns="http://a9.com/-/spec/opensearch/1.1/")
    )


def _entry(one: Changed, home: str, root: str) -> str:
    page = f"tools/{one.slug}/index.html"
    end = ":deprecated" if one.what == "deprecated" else ""
    return _element(
        "entry",
        [
            _leaf(
                "title",
                f"{one.name}: {one.what}"
                + (f" {one.version}" if one.what == "new version" else ""),
            ),
            _leaf(
                "id",
                f"{_root(home)}{page}#{one.version}{end}"
                if home
                else f"urn:toolcatalog:{one.slug}:{one.version}{end}",
            ),
            _leaf("updated", moment(one.version)),
            _empty("link", rel="alternate", type="text/html", href=f"{root}{page}"),
            _empty("category", term=one.toolkit[0], label=one.toolkit[1]),
            _leaf("summary", one.summary or one.slug),
        ],
    )


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
    urls = (f"{_root(home)}{quote(path, errors='replace')}" for path in paths)
    return _file(
        _element(kind, [_element(each, [_leaf("loc", url)]) for url in urls], xmlns=_SITEMAPS)
    )


def _leaf(name: str, text: str) -> str:
    return f"<{name}>{escape(_said(text))}</{name}>\n"


def _empty(name: str, **attributes: str) -> str:
    return f"<{name}{_attributes(attributes)}/>\n"


def _element(name: str, inside: Iterable[str], **attributes: str) -> str:
    return f"<{name}{_attributes(attributes)}>\n{''.join(inside)}</{name}>\n"


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(_said(value))}"' for name, value in attributes.items())


def _file(root: str) -> bytes:
    return f"{_DECLARATION}{root}".encode()
