"""Content checks of a downloaded snapshot: whether it contains what a build writes.

Anyone who can write to a store can compute valid checksums of any content. So the documents, names,
sets and entries of a downloaded snapshot are checked once, before it is served: each document
against its tag, each entry against the largest size and the shape of its kind. What passes can be
read later without surprises: an entry takes little memory, and every number is in range.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from struct import error as struct_error
from typing import Any

import jsonschema_rs
import numpy as np
import orjson
from numpy.typing import NDArray
from pyroaring import BitMap

from toolcatalog import names
from toolcatalog.errors import SnapshotError
from toolcatalog.search import analysis
from toolcatalog.search.embeddings import vectors
from toolcatalog.search.index import frequent_terms
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import tables as snapshot_tables
from toolcatalog.snapshot.mapped_files import Buffer
from toolcatalog.snapshot.tables import Table
from toolcatalog.versions import PATTERN as VERSION

# bytes, as `check` accepts for all sessions together, and for each, with its frame
_MAX_SESSIONS_SIZE, _MAX_SESSION_SIZE = 1 << 29, (1 << 26) + (1 << 20)
_MAX_DOCUMENT_SIZE = 1 << 22  # bytes; the file of a tool has at most 1 MiB and 20,000 values
_IDF_RANGE = 1e-9, 32.0  # of builds with up to some billion tools
_MAX_ENTRY_SIZES = {  # bytes; what a build writes is much smaller
    snapshot_format.TOOLS: 1 << 16,
    snapshot_format.SETS: 1 << 26,
    snapshot_format.FACTS: _MAX_SESSION_SIZE + (1 << 22),
    snapshot_format.WORDS: 1 << 18,
    snapshot_format.VOCABULARIES: 1 << 26,
}
_MAX_FACT_SIZE = 1 << 22  # bytes of the JSON of a fact; for a session, without its response
_MAX_TOOLKIT_SIZE, _MAX_TOOLKITS_SIZE = 5 << 18, 1 << 26  # bytes of what a list of toolkits has
_MAX_VERSIONS_SIZE = 1 << 18  # bytes of the versions of a toolkit, as `check` limits them
_MAX_CATEGORIES = 100  # of a toolkit, as in its file
_SESSION_START, _SESSION_END = b'{"items":[', b"]}"

_STRING = {"type": "string"}
_STRINGS = {"type": "array", "items": _STRING}
_VERSIONS = {"type": "array", "items": {"type": "string", "pattern": f"^{VERSION}$"}}
_TOOLKIT_INFO = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "logo": _STRING,
        "description": _STRING,
        "categories": {**_STRINGS, "maxItems": _MAX_CATEGORIES},
        "no_auth": {"type": "boolean"},
        "homepage": _STRING,
    },
}
_MCP_SERVER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": f"^{names.SERVER_NAME}$"},
        "version": {"type": "string", "pattern": "^[^/]+$"},
        "url": _STRING,
        "transport": _STRING,
        "package": {
            "type": "object",
            "properties": {"registry": _STRING, "identifier": _STRING, "version": _STRING},
            "required": ["registry", "identifier"],
        },
    },
    "required": ["name", "version"],
}
_SESSION = {"type": "array", "prefixItems": [_STRING, _STRINGS], "minItems": 2, "maxItems": 2}
_TOOL = {
    "type": "array",
    "prefixItems": [_STRING, {**_VERSIONS, "minItems": 1}],
    "minItems": 2,
    "maxItems": 2,
}
# by the kind of a fact, which is the first word of its name: the pattern of the rest of the name,
# and the shape of the value
_FACTS: Mapping[str, tuple[str, Any]] = {
    snapshot_format.ALL_VERSIONS: ("", _VERSIONS),
    "toolkit": (names.TOOLKIT_SLUG, _VERSIONS),
    "toolkit_info": (names.TOOLKIT_SLUG, _TOOLKIT_INFO),
    "mcp_server": (names.TOOLKIT_SLUG, _MCP_SERVER),
    "auth_config": (names.AUTH_CONFIG_ID, _STRING),
    "auth_configs": (names.TOOLKIT_SLUG, _STRINGS),
    "session": (names.SESSION_ID, _SESSION),
    "replacement": (names.TOOL_SLUG, _STRING),
}
_HEADER_SIZE = snapshot_format.TERM_HEADER.size


def check_contents(data: Mapping[str, Buffer], tables: Mapping[str, Table]) -> None:
    """Check files and tables, by path; raise SnapshotError for what no build writes."""
    for path, table in tables.items():
        if table.largest_entry > _MAX_ENTRY_SIZES[path]:
            raise SnapshotError(f"{path} has an entry of {table.largest_entry:,} bytes")
    try:
        columns = snapshot_tables.unpack_columns(memoryview(data[snapshot_format.NUMBERS]))
    except ValueError:
        raise _not_as_built(snapshot_format.NUMBERS, 0) from None
    version_count = len(columns["place"])
    _check_documents(memoryview(data[snapshot_format.DOCUMENTS]), columns)
    words = tables[snapshot_format.WORDS]
    posting_count = len(data[snapshot_format.POSTINGS])
    tool_check = _ToolCheck(version_count)
    term_check = _TermCheck(len(words), version_count, posting_count)
    checks: Mapping[str, Callable[[str, bytes], bool]] = {
        snapshot_format.TOOLS: tool_check,
        snapshot_format.FACTS: _FactCheck(),
        snapshot_format.SETS: lambda _, entry: _is_set(entry, version_count),
        snapshot_format.WORDS: term_check,  # before the vocabularies, which have its numbers
        snapshot_format.VOCABULARIES: lambda _, entry: _is_vocabulary(
            entry, len(words), term_check.word_count
        ),
    }
    for path, is_valid in checks.items():
        _check_entries(path, tables[path], is_valid)
    if not tool_check.is_order(columns["number"], columns["place"]):
        raise _not_as_built(snapshot_format.NUMBERS, 0)
    _check_index(TextIndex(words, data, version_count), data)
    if snapshot_format.VECTORS in data:
        try:
            vectors.read_vectors(data[snapshot_format.VECTORS], version_count)
        except ValueError:
            raise _not_as_built(snapshot_format.VECTORS, 0) from None


def _check_documents(data: memoryview, columns: Mapping[str, NDArray[Any]]) -> None:
    """Raise SnapshotError if a document is very large, or does not have its tag.

    Its ETag is made from the tag.
    """
    offsets, tags = columns["offset"].tolist(), columns["tag"].tobytes()
    if offsets[-1] > len(data):
        raise _not_as_built(snapshot_format.DOCUMENTS, 0)
    size = snapshot_format.TAG_SIZE
    for index, (start, end) in enumerate(pairwise(offsets)):
        if end - start > _MAX_DOCUMENT_SIZE:
            raise _not_as_built(snapshot_format.DOCUMENTS, index)
        tag = hashlib.sha256(data[start : end - 1]).digest()[:size]
        if tag != tags[index * size : (index + 1) * size]:
            raise _not_as_built(snapshot_format.DOCUMENTS, index)


def _check_index(index: TextIndex, data: Mapping[str, Buffer]) -> None:
    """Raise SnapshotError for postings that name no tool, and for other frequent terms.

    The frequent terms follow from the postings, and queries rely on that.
    """
    number = index.find_unsound_postings()
    if number is not None:
        raise _not_as_built(snapshot_format.POSTINGS, number)
    if snapshot_format.FREQUENT in data:
        if index.tool_count < frequent_terms.MIN_TOOLS:
            raise _not_as_built(snapshot_format.FREQUENT, 0)
        content, end = memoryview(data[snapshot_format.FREQUENT]), 0
        for piece in index.pack_frequent_terms():
            start, end = end, end + len(piece)
            if content[start:end] != piece:
                raise _not_as_built(snapshot_format.FREQUENT, 0)
        if end != len(content):
            raise _not_as_built(snapshot_format.FREQUENT, 0)


def _check_entries(path: str, table: Table, is_valid: Callable[[str, bytes], bool]) -> None:
    for index in range(len(table)):
        try:
            is_sound = is_valid(*table.entry_at(index))
        # what pyroaring, orjson and struct raise for bytes that they cannot read
        except (ValueError, IndexError, TypeError, KeyError, OverflowError, struct_error):
            is_sound = False
        if not is_sound:
            raise _not_as_built(path, index)


def _not_as_built(path: str, index: int) -> SnapshotError:
    return SnapshotError(f"entry {index} of {path} is not one that a build writes")


class _ToolCheck:
    """Checks the entries of tools in order: their versions have consecutive numbers."""

    def __init__(self, version_count: int) -> None:
        self._next_id, self._version_count = 0, version_count
        self._newest_ids: list[int] = []

    def __call__(self, slug: str, entry: bytes) -> bool:
        first_id, value = int.from_bytes(entry[:4], "little"), orjson.loads(entry[4:])
        if first_id != self._next_id or not _validator("tool").is_valid(value):
            return False
        toolkit, versions = value
        self._next_id += len(versions)
        self._newest_ids.append(self._next_id - 1)
        return (
            self._next_id <= self._version_count
            and all(older < newer for older, newer in pairwise(versions))
            and names.is_valid(names.TOOL_SLUG, slug)
            and _is_toolkit(toolkit)
        )

    def is_order(self, numbers: NDArray[Any], places: NDArray[Any]) -> bool:
        """Return whether `numbers` are all ids, the newest of each tool first, and `places` theirs.

        Call it after all tools.
        """
        count = len(self._newest_ids)
        return (
            self._next_id == self._version_count == len(numbers)
            and np.array_equal(numbers[:count], self._newest_ids)
            and np.array_equal(places.take(numbers, mode="clip"), np.arange(len(numbers)))
        )


def _is_toolkit(slug: str) -> bool:
    return names.is_valid(names.TOOLKIT_SLUG, slug)


class _FactCheck:
    """Checks facts; all sessions together have a maximum size, and so have all toolkits."""

    def __init__(self) -> None:
        self._sessions_size, self._toolkits_size = 0, 0

    def __call__(self, name: str, entry: bytes) -> bool:
        if name.startswith("session "):
            self._sessions_size += len(entry)
        if name.startswith("toolkit_info "):
            self._toolkits_size += len(entry)
            if len(entry) > _MAX_TOOLKIT_SIZE:
                return False
        if name.startswith("toolkit ") and len(entry) > _MAX_VERSIONS_SIZE:
            return False
        return (
            self._sessions_size <= _MAX_SESSIONS_SIZE
            and self._toolkits_size <= _MAX_TOOLKITS_SIZE
            and _is_fact(name, entry)
        )


def _is_fact(name: str, entry: bytes) -> bool:
    kind, _, rest = name.partition(" ")
    if kind not in _FACTS:
        return True  # a newer release may write more facts
    value, is_session_sound = entry, True
    if kind == "session":
        value, _, answer = entry.partition(b"\n")
        is_session_sound = answer.startswith(_SESSION_START) and answer.endswith(_SESSION_END)
    pattern, shape = _FACTS[kind]
    if not (
        is_session_sound
        and len(value) <= _MAX_FACT_SIZE
        and (rest == pattern == "" or names.is_valid(pattern, rest))
    ):
        return False
    parsed = orjson.loads(value)
    is_sorted = shape is not _VERSIONS or all(older < newer for older, newer in pairwise(parsed))
    return is_sorted and _validator(kind).is_valid(parsed)


@cache
def _validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    shape = _TOOL if kind == "tool" else _FACTS[kind][1]
    return jsonschema_rs.Draft202012Validator(shape)


def _is_set(entry: bytes, end: int) -> bool:
    """Return whether a roaring bitmap has only numbers below `end`."""
    numbers = BitMap.deserialize(entry)
    return not numbers or numbers.max() < end


class _TermCheck:
    """Checks the entries of terms in order: numbers of spellings, and postings, are consecutive."""

    def __init__(self, term_count: int, version_count: int, postings_size: int) -> None:
        self._term_count, self._version_count = term_count, version_count
        self._postings_size = postings_size
        self._next_start, self._next_word = snapshot_format.POSTINGS_HEADER.size, 0

    @property
    def word_count(self) -> int:
        """The number of spellings of all terms so far."""
        return self._next_word

    def __call__(self, text: str, entry: bytes) -> bool:
        start, document_frequency, _, idf, is_dense, related_count, word = (
            snapshot_format.TERM_HEADER.unpack_from(entry)
        )
        end = _HEADER_SIZE + 4 * related_count
        related = np.frombuffer(entry[_HEADER_SIZE:end], "<u4")
        spellings = entry[end:].decode().split("\t")
        size = 2 * self._version_count if is_dense else 6 * document_frequency
        is_next = (start, word) == (self._next_start, self._next_word)
        self._next_start, self._next_word = start + size + size % 4, word + len(spellings)
        return (
            is_next
            and text != ""
            and all(spellings)
            and len(related) == related_count <= analysis.MAX_RELATED_TERMS
            and (not related_count or related.max() < self._term_count)
            and 0 < document_frequency <= self._version_count
            and self._next_start <= self._postings_size
            and _IDF_RANGE[0] <= idf <= _IDF_RANGE[1]
        )


def _is_vocabulary(entry: bytes, term_count: int, word_count: int) -> bool:
    end = 4 + int.from_bytes(entry[:4], "little")
    is_sound = 4 < end < len(entry)
    return is_sound and _is_set(entry[4:end], term_count) and _is_set(entry[end:], word_count)
