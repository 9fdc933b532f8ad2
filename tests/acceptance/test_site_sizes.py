"""Size limits of pages, scripts and styles."""

import gzip
from pathlib import Path

import pytest

KB = 1024
PAGE, SCRIPTS, STYLE, FIRST_LOAD = 30 * KB, 20 * KB, 20 * KB, 60 * KB
SEARCH_DATA = 40 * KB  # of the shipped catalog, not compressed


def size(file: Path) -> int:
    """How many bytes a host sends."""
    return len(gzip.compress(file.read_bytes(), 6, mtime=0))


@pytest.mark.parametrize(
    "build",
    ["shipped_build", pytest.param("imported_build", marks=pytest.mark.xdist_group("imported"))],
)
def test_page_sizes_are_within_budget(build: str, request: pytest.FixtureRequest) -> None:
    """Pages, script and style, for the shipped catalog and 930 tools with many nested
    parameters.
    """
    folder: Path = request.getfixturevalue(build)
    site = folder.parent / "site"
    scripts, style = size(site / "site.js") + size(site / "theme.js"), size(site / "style.css")
    assert scripts <= SCRIPTS
    assert style <= STYLE
    pages = {file.parent.name: size(file) for file in site.glob("tools/*/index.html")}
    assert pages
    largest = max(pages, key=pages.__getitem__)
    assert pages[largest] <= PAGE, largest
    navigation = max(map(size, site.glob("toolkits/*/tools.js")))
    assert pages[largest] + navigation + scripts + style <= FIRST_LOAD


def test_the_data_of_the_search_is_small(shipped_build: Path) -> None:
    """Names, words and facets of all tools together."""
    site = shipped_build.parent / "site"
    files = ("search-data.js", "search-words.js", "facets.js")
    assert sum((site / file).stat().st_size for file in files) <= SEARCH_DATA
