"""Feeds, sitemaps and the OpenSearch description, as an XML parser reads them."""

import re
from datetime import date, datetime
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.site import feeds
from toolcatalog.site.feeds import ToolChange

ATOM = "{http://www.w3.org/2005/Atom}"
MAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"
HOME = "https://tools.example/catalog"


def changed(
    slug: str = "MAIL_SEND",
    version: str = "20251027_00",
    what: str = "new tool",
    text: str = "Send",
) -> ToolChange:
    return ToolChange(slug, text, ("mail", text), version, what, text)


def read(data: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(data)  # noqa: S314 - made by this program


def one(parent: ElementTree.Element, name: str) -> str:
    (found,) = parent.findall(ATOM + name)
    return found.text or ""


def links(parent: ElementTree.Element) -> dict[str, str]:
    return {link.get("rel", ""): link.get("href", "") for link in parent.findall(f"{ATOM}link")}


def seen_to_be_atom(data: bytes) -> ElementTree.Element:
    """What RFC 4287 asks of a feed."""
    assert data.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    feed = read(data)
    assert feed.tag == f"{ATOM}feed"
    assert feed.findall(f"{ATOM}author/{ATOM}name")
    assert "self" in links(feed)
    entries = feed.findall(f"{ATOM}entry")
    for part in (feed, *entries):
        assert one(part, "title") or part is feed
        assert re.fullmatch(r"(urn:[a-z]+:|https://)\S+", one(part, "id"))
        assert datetime.fromisoformat(one(part, "updated")).tzinfo
        assert "alternate" in links(part)
    assert len({one(entry, "id") for entry in entries}) == len(entries)
    return feed


def test_a_feed_without_a_home() -> None:
    feed = seen_to_be_atom(
        feeds.render_atom(
            "Mail: changes",
            "toolkits/mail/feed.xml",
            "",
            [
                changed(),
                changed(version="20251028_01", what="new version"),
                changed(version="20251028_01", what="deprecated"),
            ],
        )
    )
    assert one(feed, "id") == "urn:toolcatalog:toolkits/mail/feed.xml"
    assert one(feed, "updated") == "2025-10-28T00:01:00Z"
    assert links(feed) == {
        "self": "../../toolkits/mail/feed.xml",
        "alternate": "../../toolkits/mail/index.html",
    }
    entries = feed.findall(f"{ATOM}entry")
    assert [one(entry, "id") for entry in entries] == [
        "urn:toolcatalog:MAIL_SEND:20251028_01:deprecated",
        "urn:toolcatalog:MAIL_SEND:20251028_01",
        "urn:toolcatalog:MAIL_SEND:20251027_00",
    ]
    assert [one(entry, "title") for entry in entries] == [
        "Send: deprecated",
        "Send: new version 20251028_01",
        "Send: new tool",
    ]
    assert one(entries[2], "updated") == "2025-10-27T00:00:00Z"
    assert links(entries[2]) == {"alternate": "../../tools/MAIL_SEND/index.html"}
    assert [entry.find(f"{ATOM}category").attrib for entry in entries] == [  # type: ignore[union-attr]
        {"term": "mail", "label": "Send"}
    ] * 3


@pytest.mark.parametrize("home", [HOME, f"{HOME}/"])
def test_a_feed_with_a_home(home: str) -> None:
    feed = seen_to_be_atom(
        feeds.render_atom("Changes", "feed.xml", home, [changed(what="deprecated")])
    )
    assert one(feed, "id") == f"{HOME}/feed.xml"
    assert links(feed) == {"self": f"{HOME}/feed.xml", "alternate": f"{HOME}/index.html"}
    (entry,) = feed.findall(f"{ATOM}entry")
    assert one(entry, "id") == f"{HOME}/tools/MAIL_SEND/index.html#20251027_00:deprecated"
    assert links(entry) == {"alternate": f"{HOME}/tools/MAIL_SEND/index.html"}


def test_an_empty_feed_has_a_fixed_date() -> None:
    feed = seen_to_be_atom(feeds.render_atom("Changes", "feed.xml", "", []))
    assert one(feed, "updated") == "1970-01-01T00:00:00Z"
    assert links(feed) == {"self": "feed.xml", "alternate": "index.html"}


def test_a_feed_has_the_newest_hundred_whatever_their_order() -> None:
    every = [
        changed(f"MAIL_{number % 7}", f"{20250101 + number % 28}_{number:02}")
        for number in range(100)
    ] + [changed(f"OLD_{number}", "20240101_00") for number in range(50)]
    data = feeds.render_atom("Changes", "feed.xml", "", iter(every))
    assert data == feeds.render_atom("Changes", "feed.xml", "", reversed(every))
    entries = seen_to_be_atom(data).findall(f"{ATOM}entry")
    updated = [one(entry, "updated") for entry in entries]
    assert len(entries) == 100
    assert updated == sorted(updated, reverse=True)
    assert not any("OLD" in one(entry, "id") for entry in entries)


@given(st.text(st.characters(), max_size=30))
def test_no_text_breaks_the_xml(text: str) -> None:
    """Nor passes on what cannot be seen, what XML forbids among it."""
    data = [
        feeds.render_atom(text, "feed.xml", HOME, [changed(text=text)]),
        feeds.render_opensearch({"title": text, "description": text, "home": HOME}),
        *(part.render() for part in feeds.render_sitemaps(HOME, [text], 1)),
    ]
    seen_to_be_atom(data[0])
    for file in data:
        read(file)
        assert not re.search("[\0-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ufeff]", file.decode())


def test_texts_are_said_as_they_are() -> None:
    text = "]]><b a='x'>&amp;\x00\n\"y\"</b> \u202e"
    (entry,) = seen_to_be_atom(
        feeds.render_atom(text, "feed.xml", "", [changed(text=text)])
    ).findall(f"{ATOM}entry")
    assert one(entry, "summary") == "]]><b a='x'>&amp; \"y\"</b> U+202E"
    assert entry.find(f"{ATOM}category").get("label") == "]]><b a='x'>&amp; \"y\"</b> U+202E"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("version", "moment"),
    [
        ("20251027_00", "2025-10-27T00:00:00Z"),
        ("20251027_07", "2025-10-27T00:07:00Z"),
        ("20251027_99", "2025-10-27T01:39:00Z"),
        ("20250230_00", "2025-02-28T00:00:00Z"),
        ("20240230_00", "2024-02-29T00:00:00Z"),
        ("20251399_00", "2025-12-31T00:00:00Z"),
        ("20250400_00", "2025-03-31T00:00:00Z"),
        ("20250017_00", "2024-12-31T00:00:00Z"),
        ("00000000_00", "0001-01-01T00:00:00Z"),
        ("00010000_00", "0001-01-01T00:00:00Z"),
        ("99999999_99", "9999-12-31T01:39:00Z"),
    ],
)
def test_the_moment_of_a_version(version: str, moment: str) -> None:
    assert feeds.version_timestamp(version) == moment


@given(
    st.from_regex("[0-9]{4}[0-4][0-9]{3}_[0-9]{2}", fullmatch=True),
    st.from_regex("[0-9]{8}_[0-9]{2}", fullmatch=True),
)
def test_moments_are_real_and_in_the_order_of_versions(some: str, other: str) -> None:
    before, after = sorted((some, other))
    assert feeds.version_timestamp(before)[:10] <= feeds.version_timestamp(after)[:10]
    day = date.fromisoformat(feeds.version_timestamp(some)[:10])
    said = f"{day:%Y%m%d}".rjust(8, "0")
    assert said <= some[:8] or day == date.min
    assert (
        day.toordinal() == date.max.toordinal()
        or f"{date.fromordinal(day.toordinal() + 1).isoformat().replace('-', '')}" > some[:8]
    )


def test_a_sitemap() -> None:
    paths = ["index.html", "tags/a b&c/index.html"]
    ((name, leads_to, make),) = feeds.render_sitemaps(f"{HOME}/", paths, 2)
    assert (name, leads_to) == ("sitemap.xml", paths)
    assert [loc.text for loc in read(make()).findall(f"{MAP}url/{MAP}loc")] == [
        f"{HOME}/index.html",
        f"{HOME}/tags/a%20b%26c/index.html",
    ]


def test_a_long_sitemap_is_split() -> None:
    """No file has more than 50,000 addresses, and together they have all, in order."""
    paths = [f"tools/T{number}/index.html" for number in range(100_001)]
    files = {
        part.path: part.render for part in feeds.render_sitemaps(HOME, iter(paths), len(paths))
    }
    names = ["sitemap-1.xml", "sitemap-2.xml", "sitemap-3.xml"]
    assert sorted(files) == [*names, "sitemap.xml"]
    index = read(files["sitemap.xml"]())
    assert index.tag == f"{MAP}sitemapindex"
    assert [loc.text for loc in index.findall(f"{MAP}sitemap/{MAP}loc")] == [
        f"{HOME}/{name}" for name in names
    ]
    parts = [[loc.text for loc in read(files[name]()).iter(f"{MAP}loc")] for name in names]
    assert [len(part) for part in parts] == [50_000, 50_000, 1]
    assert [loc for part in parts for loc in part] == [f"{HOME}/{path}" for path in paths]
    assert [part.path for part in feeds.render_sitemaps(HOME, paths[:50_000], 50_000)] == [
        "sitemap.xml"
    ]
    assert sorted(feeds.sitemap_paths(len(paths))) == sorted(files)


def test_opensearch() -> None:
    found = read(
        feeds.render_opensearch(
            {
                "title": "A catalog of many tools",
                "description": "word " * 300,
                "home": "https://x.example/{a}",
            }
        )
    )
    assert found.tag == f"{SEARCH}OpenSearchDescription"
    assert found.findtext(f"{SEARCH}ShortName") == "A catalog of"
    assert len(found.findtext(f"{SEARCH}Description") or "") == 1_024
    assert found.findall(f"{SEARCH}Url")[0].attrib == {
        "type": "text/html",
        "template": "https://x.example/%7Ba%7D/tools/index.html?q={searchTerms}",
    }
    assert (
        read(
            feeds.render_opensearch({"title": "W" * 40, "description": "", "home": HOME})
        ).findtext(f"{SEARCH}ShortName")
        == "W" * 16
    )
