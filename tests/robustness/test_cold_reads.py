"""Cold snapshots: right after a start, a first page reads little of the disk.

Files are mapped, and the kernel by itself reads ahead: 128 KB behind each page by default, and
8 MB on some machines.
"""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import synthetic
from toolcatalog.build.pipeline import build
from toolcatalog.snapshot.gzip_fragments import Fragments
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, VersionPins

TOOLS = 3_000
MOST = 400_000  # bytes
NEWEST = VersionPins()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build whose documents are 30 times what may be read."""
    folder = tmp_path_factory.mktemp("cold")
    synthetic.write_catalog(folder / "catalog", TOOLS)
    build(folder / "catalog", folder / "build", None)
    assert (folder / "build/current/tools.json").stat().st_size > 20 * MOST
    drop(folder / "build")
    before = bytes_read()
    (folder / "build/current/tools.json").read_bytes()
    if bytes_read() - before < MOST:
        pytest.skip("this machine does not count what is read from its disk")
    return folder / "build"


def bytes_read() -> int:
    """The bytes that this process has read from disks; skips where they are not counted."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        pytest.skip("/proc/self/io is not readable here")
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def drop(folder: Path) -> None:
    """Remove the files of a build from the page cache; none may be mapped."""
    gc.collect()
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def read_page(
    store: Store, filters: Filters, sort_by: str, descending: bool, start: int
) -> Fragments:
    ids = store.select_page(store.search(filters, NEWEST), sort_by, descending, start, 20)
    assert len(ids) == 20
    compressed = store.read_fragments(ids)
    assert compressed is not None
    return compressed[0]


def read_plain(store: Store, filters: Filters, sort_by: str, descending: bool, start: int) -> bytes:
    ids = store.select_page(store.search(filters, NEWEST), sort_by, descending, start, 20)
    return b"".join(store.read_documents(ids)[0])


@pytest.mark.parametrize("read", [read_page, read_plain])
@pytest.mark.parametrize(
    ("query", "sort_by", "descending", "start"),
    [
        ("", "slug", False, 0),
        ("", "slug", False, 2_000),
        ("", "slug", True, 0),
        ("", "name", True, 500),
        ("create a new issue", "relevance", True, 0),
    ],
)
def test_first_page_reads_few_blocks(
    large: Path,
    read: Callable[..., object],
    query: str,
    sort_by: str,
    descending: bool,
    start: int,
) -> None:
    read(open_build(large), Filters(query=query), sort_by, descending, start)  # loads all modules
    drop(large)
    store = open_build(large)
    before = bytes_read()
    read(store, Filters(query=query), sort_by, descending, start)
    assert 0 < bytes_read() - before <= MOST


def test_first_document_reads_few_blocks(large: Path) -> None:
    drop(large)
    store = open_build(large)
    before = bytes_read()
    assert store.read_fragments(np.array([store.version_count // 2], np.uint32)) is not None
    assert 0 < bytes_read() - before <= 16_384
