"""Document sources: functions that return a tool's document from a build, a catalog or a server.

All three return the same document.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from toolcatalog.lockfile import Document, MissingReason
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store

# slug and version of a tool to its document
DocumentSource = Callable[[str, str], Document | MissingReason]


def open_build_source(build: Path) -> DocumentSource:
    """Return the source of the documents of a build."""
    return make_store_source(open_build(build))


def make_store_source(store: Store) -> DocumentSource:
    """Return the source of the documents of an open build."""

    def get_document(slug: str, version: str) -> Document | MissingReason:
        entry = store.get_tool(slug)
        if entry is None or version not in entry.versions:
            return MissingReason.VERSION if entry else MissingReason.TOOL
        document: dict[str, Any] = orjson.loads(store.read_document(entry.tool_id(version))[0])
        return document

    return get_document
