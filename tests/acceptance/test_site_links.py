"""Links of the site: every target exists."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

# Attributes that name elements of the same page.
REFERENCES = {
    "for",
    "aria-controls",
    "aria-labelledby",
    "aria-describedby",
    "headers",
    "list",
    "form",
    "data-copy",
    "data-filter",
}
# What does nothing without a script is written hidden.
POLICY = ("default-src 'self'", "img-src 'self' data:")


class Page(HTMLParser):
    """What a page has: ids, headings, links with their tags, and what is wrong with it by
    itself.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.headings: list[int] = []
        self.links: list[tuple[str, str]] = []
        self.references: set[str] = set()
        self.policy = ""
        self.wrong: list[str] = []
        self.feed(file.read_text())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        group = {name: value or "" for name, value in attrs}
        if "id" in group:
            self.ids[group["id"]] += 1
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.links += [
            (tag, group[name])
            for name in ("href", "src", "action")
            if name in group and group.get("rel") != "canonical"
        ]
        if group.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = group["content"]
        self.references.update(
            word for name in REFERENCES & group.keys() for word in group[name].split()
        )
        self.wrong += [f"{reason}: {self.get_starttag_text()}" for reason in faults(tag, group)]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)


def faults(tag: str, group: dict[str, str]) -> Iterator[str]:
    """What an element has that none may have, or lacks that it must have."""
    if (
        any(name.startswith("on") for name in group)
        or "style" in group
        or tag in ("style", "base", "iframe", "object", "embed")
    ):
        yield "no page has such an element or attribute"
    if tag == "script" and "src" not in group:
        yield "a script within the page"
    if tag == "img" and "alt" not in group:
        yield "a picture without alt"
    if tag == "button" and "type" not in group:
        yield "a button without type"


@cache
def page_at(file: Path) -> Page:
    return Page(file)


def problems(site: Path, file: Path) -> Iterator[str]:
    """What is wrong with the page in this file, in words."""
    page = page_at(file)
    yield from page.wrong
    yield from (f"id twice: {id}" for id, times in page.ids.items() if times > 1)
    yield from (f"no element {id}" for id in page.references - page.ids.keys())
    if page.headings.count(1) != 1 or any(
        current > previous + 1
        for previous, current in zip([0, *page.headings], page.headings, strict=False)
    ):
        yield f"headings {page.headings}"
    if not all(part in page.policy for part in POLICY):
        yield f"content security policy {page.policy}"
    for tag, address in page.links:
        if reason := astray(site, file, tag, address):
            yield f"{reason}: {address}"


def astray(site: Path, file: Path, tag: str, address: str) -> str:
    """Why a link or source of the page in `file` is none; empty where it is."""
    if re.match("[a-z+.-]+:|//", address, re.IGNORECASE):
        return "" if address.startswith("https://") and tag == "a" else "not of this site"
    path, _, anchor = address.partition("#")
    if file.name == "404.html":  # it is shown at any path, so its links begin at the root
        path = f"{site}{path}" if path.startswith("/") else path
    target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
    if not target.is_file() or not target.is_relative_to(site):
        return "no such file"
    return (
        ""
        if not anchor or target.suffix != ".html" or unquote(anchor) in page_at(target).ids
        else "no such place in it"
    )


def check(site: Path, files: list[Path]) -> None:
    """Every one of these pages of a site is as it should be."""
    page_at.cache_clear()
    results = [
        f"{file.relative_to(site)}: {problem}" for file in files for problem in problems(site, file)
    ]
    assert not results, "\n".join(results[:40])


def test_shipped_catalog_has_no_broken_links(shipped_build: Path) -> None:
    """All pages, with their relative root."""
    site = (shipped_build.parent / "site").resolve()
    files = sorted(site.rglob("*.html"))
    assert len(files) > 200
    check(site, files)
    for file in files:
        root = re.search('data-root="([./]*)"', file.read_text())
        assert root, file
        assert (
            (root[1] == "/")
            if file.name == "404.html"
            else (file.parent / root[1]).resolve() == site
        ), file


@pytest.mark.xdist_group("imported")
def test_imported_catalog_has_no_broken_links(imported_build: Path) -> None:
    """930 real tools: all lists and every fifth page."""
    site = (imported_build.parent / "site").resolve()
    files = sorted(site.rglob("*.html"))
    tools = [file for file in files if file.parent.parent.name == "tools"]
    assert len(tools) >= 930
    check(site, [*(file for file in files if file.parent.parent.name != "tools"), *tools[::5]])


def test_llms_txt_links_exist(shipped_build: Path) -> None:
    site = shipped_build.parent / "site"
    links = re.findall(r"\]\(([^)\s]+)\)", (site / "llms.txt").read_text())
    assert links
    assert [
        link
        for link in links
        if not link.startswith("https://") and not (site / link.partition("#")[0]).is_file()
    ] == []
