"""Cold snapshots: what the first page after a start reads of the disk, and how long it takes.

Each question is measured in a process of its own (`python -m benchmarks.cold BUILD KIND`, one line
of JSON) that has opened the build after its files were dropped from the page cache.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, VersionPins

PAGE = 20
# by kind: the query, the order, whether it descends, and the share of the tools before the page
KINDS: dict[str, tuple[str, str, bool, float]] = {
    "first page": ("", "slug", False, 0.0),
    "deep page": ("", "slug", False, 0.9),
    "page by name": ("", "name", True, 0.3),
    "query": ("create a new issue", "relevance", True, 0.0),
}


def drop_page_cache(build: Path) -> None:
    """Remove the files of a build from the page cache; a file that is mapped stays."""
    for path in (build / "current").resolve().rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def read_page(store: Store, kind: str) -> None:
    """Read the documents of a page as a server would answer them to a client that takes gzip."""
    query, sort_by, descending, share = KINDS[kind]
    matches = store.search(Filters(query=query), VersionPins())
    start = int(share * matches.total)
    ids = store.select_page(matches, sort_by, descending, start, PAGE)
    assert len(ids) == PAGE
    assert store.read_fragments(ids) is not None


def measure(build: Path, kind: str) -> dict[str, Any]:
    """Kilobytes read from the disk by the first page, and its milliseconds."""
    read_page(open_build(build), kind)  # loads the program, which is not what is measured
    drop_page_cache(build)
    store = open_build(build)
    before, begin = _bytes_read(), time.perf_counter()
    read_page(store, kind)
    seconds = time.perf_counter() - begin
    return {"kb": round((_bytes_read() - before) / 1000), "ms": round(seconds * 1000, 2)}


def _bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def main() -> None:
    """The command line: one question."""
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2])))


if __name__ == "__main__":
    main()
