"""Tests of `build.site_overview`: pages about the whole catalog list all tools.

Few tools are in memory at once.
"""

import gc
import re
from collections.abc import Sequence
from pathlib import Path

from toolcatalog import encoding
from toolcatalog.build.site_overview import CatalogPages
from toolcatalog.build.site_pages import ToolkitIndex
from toolcatalog.site.lists import ToolRow
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Toolkit

VERSION = "20250101_00"
TAGS = ("rare", "usual")


def whole(folder: Path, sizes: Sequence[int]) -> CatalogPages:
    """A catalog whose toolkits have so many tools: all are tagged as usual, the last one of each
    toolkit as rare.
    """
    indexes, tools = [], {}
    folder.mkdir(exist_ok=True)
    (folder / snapshot_format.DOCUMENTS).write_bytes(b'[{"slug":"K0_0000"}]')
    for number, size in enumerate(sizes):
        slug = f"k{number}"
        toolkit = Toolkit(
            slug=slug,
            name=slug,
            logo="",
            description="",
            categories=(),
            no_auth=False,
            homepage="",
            owners=(),
            versions=(VERSION,),
        )
        path = folder / snapshot_format.toolkit_index_path(slug, VERSION)
        path.parent.mkdir(parents=True)
        rows = [
            encoding.dump_json(row(f"K{number}_{tool:04}", rare=tool == size - 1))
            for tool in range(size)
        ]
        path.write_bytes(snapshot_format.render_toolkit_index(toolkit, VERSION, rows))
        indexes.append(ToolkitIndex(toolkit, folder))
        tools[slug] = size
    return CatalogPages(
        program_digest="p",
        source_digest="m",
        about={
            "title": "Many",
            "description": "",
            "home": "https://tools.example",
            "repository": "",
        },
        indexes=indexes,
        meta_tools=[],
        sessions=[],
        multi_version_tools={slug: {} for slug in tools},
        tool_counts=tools,
        labels={"tags": TAGS if tools else [], "scopes": []},
    )


def row(slug: str, *, rare: bool) -> dict[str, object]:
    """A tool in the index of its toolkit."""
    output = {
        "slug": slug,
        "version": VERSION,
        "name": slug.title(),
        "description": f"Does {slug}.",
        "tags": TAGS if rare else TAGS[1:],
    }
    return {**output, "scopes": [], "no_auth": False, "deprecation": None, "digest": slug}


def test_every_tool_is_listed_once_in_order(tmp_path: Path) -> None:
    """Lists and shards go across toolkits; labels show the first thousand and count all."""
    sizes = (700, 0, 900, 600)
    slugs = [f"K{number}_{tool:04}" for number, size in enumerate(sizes) for tool in range(size)]
    every = whole(tmp_path, sizes)
    made = {path: make().decode() for path, make, _ in every.files()}
    assert sorted(made) == sorted(every.paths)
    lists = [
        re.findall(r'class="slug">(\w+)<', made[path])
        for path in ("tools/index.html", "tools/page-2.html", "tools/page-3.html")
    ]
    assert [len(some) for some in lists] == [1000, 1000, 200]
    assert [slug for some in lists for slug in some] == slugs
    assert [
        slug
        for number in range(5)
        for slug in re.findall(r"Does (\w+)", made[f"search/{number}.js"])
    ] == slugs
    assert re.findall(r"tools/(\w+)/index.html<", made["sitemap.xml"]) == slugs
    assert "\\n".join(slugs) in made["search-data.js"]
    assert re.findall(r'class="slug">(\w+)<', made["tags/usual/index.html"]) == slugs[:1000]
    assert "2,200 tools, the first 1,000 here" in made["tags/usual/index.html"]
    assert re.findall(r'class="slug">(\w+)<', made["tags/rare/index.html"]) == [
        "K0_0699",
        "K2_0899",
        "K3_0599",
    ]
    assert "2,200 tools" in made["index.html"]


def test_a_catalog_without_tools_has_the_same_pages(tmp_path: Path) -> None:
    """But those of tools, of which there are none."""
    for sizes in ((), (0,)):
        every = whole(tmp_path / str(len(sizes)), sizes)
        made = {path: make().decode() for path, make, _ in every.files()}
        assert sorted(made) == sorted(every.paths)
        assert "There are no tools yet" in made["tools/index.html"]
        assert '"slugs":""' in made["search-data.js"]


def test_few_tools_are_held_at_once(tmp_path: Path) -> None:
    """A page of the list, a toolkit, and those that labels show; however many there are."""
    most = 0
    for path, make, _ in whole(tmp_path, [500] * 30).files():
        make()
        if path.startswith("tools/"):
            most = max(most, sum(type(one) is ToolRow for one in gc.get_objects()))
    assert 1_000 < most < 4_000
