"""Content checks of a downloaded snapshot: what no build writes is refused."""

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyroaring import BitMap

from support.paths import DATA
from toolcatalog.build.pipeline import build
from toolcatalog.errors import SnapshotError
from toolcatalog.search.embeddings import vectors
from toolcatalog.search.embeddings.model_files import DIMENSIONS
from toolcatalog.search.index import frequent_terms
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import tables
from toolcatalog.snapshot.tables import Table
from toolcatalog.store.content_checks import check_contents

TOOLS, SETS, FACTS = snapshot_format.TOOLS, snapshot_format.SETS, snapshot_format.FACTS
WORDS, VOCABULARIES = snapshot_format.WORDS, snapshot_format.VOCABULARIES
PATHS = (TOOLS, SETS, FACTS, WORDS, VOCABULARIES)
Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The files of a snapshot with sessions and auth configs, by name."""
    folder = tmp_path_factory.mktemp("snapshot")
    build(DATA / "golden/sessions/catalog", folder / "build", None)
    current = folder / "build/current"
    return {path.name: path.read_bytes() for path in current.iterdir() if path.is_file()}


def read_entries(data: bytes) -> Entries:
    table = Table(data)
    return dict(table.entry_at(index) for index in range(len(table)))


def pack_entries(entries: Entries) -> bytes:
    names = sorted(entries)
    values = [entries[name] for name in names]
    return b"".join(tables.pack_table(names, [*map(len, values)], values))


def check(files: Mapping[str, bytes]) -> None:
    check_contents(files, {path: Table(files[path]) for path in PATHS})


def test_a_snapshot_of_a_build_passes(snapshot: Mapping[str, bytes]) -> None:
    check(snapshot)


def make_session(size: int) -> bytes:
    return b'["p",[]]\n{"items":[' + b" " * size + b"]}"


def make_toolkit(size: int) -> bytes:
    return b'{"description":"' + b"a" * size + b'"}'


def set_first(entries: Entries, value: bytes) -> None:
    entries[min(entries)] = value


def replace_in_first(entries: Entries, old: bytes, new: bytes) -> None:
    name = min(name for name in entries if old in entries[name])
    entries[name] = entries[name].replace(old, new)


def pack_term(entry: bytes, **changes: Any) -> bytes:
    """The entry of a term with other fields of its header."""
    fields = ("start", "frequency", "checksum", "idf", "is_dense", "related_count", "word")
    size = snapshot_format.TERM_HEADER.size
    values = dict(zip(fields, snapshot_format.TERM_HEADER.unpack(entry[:size]), strict=True))
    return snapshot_format.TERM_HEADER.pack(*(values | changes).values()) + entry[size:]


def pack_related(entries: Entries, count: int) -> bytes:
    """The entry of the first term, with this many related terms."""
    entry, size = (
        pack_term(entries[min(entries)], related_count=count),
        snapshot_format.TERM_HEADER.size,
    )
    return entry[:size] + struct.pack("<I", 1) * count + entry[size:]


def share_postings(entries: Entries) -> None:
    """Let a term have the postings of the first one."""
    first, second = sorted(entries)[:2]
    start, frequency, checksum, _, is_dense, *_ = snapshot_format.TERM_HEADER.unpack_from(
        entries[first]
    )
    shared = {"start": start, "frequency": frequency, "checksum": checksum, "is_dense": is_dense}
    entries[second] = pack_term(entries[second], **shared)


def change_term(**changes: Any) -> Callable[[Entries], None]:
    return lambda entries: set_first(entries, pack_term(entries[min(entries)], **changes))


CHANGES: list[tuple[str, str, Callable[[Entries], Any]]] = [
    ("tool: no JSON", TOOLS, lambda entries: set_first(entries, b"\0\0\0\0{")),
    ("tool: empty", TOOLS, lambda entries: set_first(entries, b"")),
    ("tool: numbers", TOOLS, lambda entries: set_first(entries, b"\0\0\0\0[5,7]")),
    ("tool: no versions", TOOLS, lambda entries: set_first(entries, b'\0\0\0\0["alpha",[]]')),
    (
        "tool: other number",
        TOOLS,
        lambda entries: set_first(entries, b'\7\0\0\0["alpha",["20250101_00"]]'),
    ),
    (
        "tool: unsafe slug",
        TOOLS,
        lambda entries: entries.update({"../X": entries.pop(min(entries))}),
    ),
    (
        "tool: unsafe toolkit",
        TOOLS,
        lambda entries: replace_in_first(entries, b'["alpha"', b'["../../a"'),
    ),
    ("tool: unsafe version", TOOLS, lambda entries: replace_in_first(entries, b"_00", b"_/.")),
    ("tool: 64 KiB", TOOLS, lambda entries: set_first(entries, b" " * (1 << 16))),
    ("fact: no JSON", FACTS, lambda entries: entries.update({"toolkit alpha": b"["})),
    ("fact: no list", FACTS, lambda entries: entries.update({"toolkit alpha": b"7"})),
    ("fact: no versions", FACTS, lambda entries: entries.update({"versions": b'["1"]'})),
    ("fact: unsafe toolkit", FACTS, lambda entries: entries.update({"toolkit ../a": b"[]"})),
    (
        "fact: unsafe session",
        FACTS,
        lambda entries: entries.update({"session trs_/../a": b'["p",[]]\n{"items":[]}'}),
    ),
    (
        "fact: no response",
        FACTS,
        lambda entries: entries.update({"session trs_a": b'["p",[]]\nno JSON'}),
    ),
    (
        "fact: unsafe server",
        FACTS,
        lambda entries: entries.update({"mcp_server alpha": b'{"name":"a/../../b","version":"1"}'}),
    ),
    (
        "fact: replacement is no slug",
        FACTS,
        lambda entries: entries.update({"replacement ALPHA_READ": b'["ALPHA_WRITE"]'}),
    ),
    (
        "fact: 5 MiB of lists",
        FACTS,
        lambda entries: entries.update({"toolkit alpha": b"[" + b"[]," * (5 << 18) + b"[]]"}),
    ),
    (
        "fact: a version twice",
        FACTS,
        lambda entries: entries.update({"toolkit alpha": b'["20250101_00","20250101_00"]'}),
    ),
    (
        "fact: 50,000 versions",
        FACTS,
        lambda entries: entries.update(
            {"toolkit alpha": b"[" + b'"20250101_00",' * 50_000 + b'"20250101_00"]'}
        ),
    ),
    (
        "fact: 101 categories",
        FACTS,
        lambda entries: entries.update(
            {"toolkit_info alpha": b'{"categories":[' + b'"a",' * 100 + b'"a"]}'}
        ),
    ),
    (
        "fact: toolkit of 2 MiB",
        FACTS,
        lambda entries: entries.update({"toolkit_info alpha": make_toolkit(2 << 20)}),
    ),
    (
        "fact: toolkits of 70 MiB",
        FACTS,
        lambda entries: entries.update(
            {f"toolkit_info a{number}": make_toolkit(1 << 20) for number in range(70)}
        ),
    ),
    (
        "fact: session of 70 MiB",
        FACTS,
        lambda entries: entries.update({"session trs_a": make_session(70 << 20)}),
    ),
    (
        "fact: sessions of 600 MiB",
        FACTS,
        lambda entries: entries.update(
            {f"session trs_{number}": make_session(60 << 20) for number in range(10)}
        ),
    ),
    ("set: no bitmap", SETS, lambda entries: set_first(entries, b"junk")),
    ("set: id out of range", SETS, lambda entries: set_first(entries, BitMap([9999]).serialize())),
    ("term: empty", WORDS, lambda entries: set_first(entries, b"")),
    ("term: no IDF", WORDS, change_term(idf=0.0)),
    ("term: infinite IDF", WORDS, change_term(idf=float("inf"))),
    ("term: tiny IDF", WORDS, change_term(idf=1.4e-45)),
    ("term: huge IDF", WORDS, change_term(idf=3.4e38)),
    ("term: no IDF at all", WORDS, change_term(idf=float("nan"))),
    ("term: many related", WORDS, change_term(related_count=4_000_000)),
    ("term: 5,000 related", WORDS, lambda entries: set_first(entries, pack_related(entries, 5000))),
    ("term: postings elsewhere", WORDS, change_term(start=1 << 40)),
    ("term: postings of another", WORDS, share_postings),
    ("term: many tools", WORDS, change_term(frequency=9999)),
    ("term: number of its word", WORDS, change_term(word=9)),
    ("term: bad UTF-8", WORDS, lambda entries: set_first(entries, entries[min(entries)] + b"\xff")),
    ("vocabulary: junk", VOCABULARIES, lambda entries: set_first(entries, b"\4\0\0\0junk")),
    (
        "vocabulary: terms out of range",
        VOCABULARIES,
        lambda entries: set_first(
            entries,
            struct.pack("<I", len(BitMap([9999]).serialize()))
            + BitMap([9999]).serialize()
            + BitMap([1]).serialize(),
        ),
    ),
    (
        "vocabulary: words out of range",
        VOCABULARIES,
        lambda entries: set_first(
            entries,
            struct.pack("<I", len(BitMap([1]).serialize()))
            + BitMap([1]).serialize()
            + BitMap([9999]).serialize(),
        ),
    ),
]


@pytest.mark.parametrize(
    ("path", "change"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_an_entry_that_no_build_writes_is_refused(
    snapshot: Mapping[str, bytes], path: str, change: Callable[[Entries], Any]
) -> None:
    """The message names the file and is one printable line."""
    entries = read_entries(snapshot[path])
    change(entries)
    with pytest.raises(SnapshotError) as caught:
        check({**snapshot, path: pack_entries(entries)})
    assert path in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_document_without_its_tag_is_refused(snapshot: Mapping[str, bytes]) -> None:
    """Another document under the same ETag would stay in the caches of clients."""
    documents = bytearray(snapshot[snapshot_format.DOCUMENTS])
    documents[20] ^= 1
    with pytest.raises(SnapshotError):
        check({**snapshot, snapshot_format.DOCUMENTS: bytes(documents)})


@pytest.mark.parametrize("offset", [0, 1 << 30, (1 << 64) - 1])
def test_documents_that_share_bytes_are_refused(snapshot: Mapping[str, bytes], offset: int) -> None:
    """Many documents of the same bytes would be compressed one by one."""
    columns = tables.unpack_columns(memoryview(snapshot[snapshot_format.NUMBERS]))
    offsets = np.full(len(columns["offset"]), offset, np.uint64)
    numbers = tables.pack_columns({**columns, "offset": offsets})
    with pytest.raises(SnapshotError):
        check({**snapshot, snapshot_format.NUMBERS: numbers})


def test_a_very_large_document_is_refused(snapshot: Mapping[str, bytes]) -> None:
    """A server would parse it for one call of a client."""
    columns = tables.unpack_columns(memoryview(snapshot[snapshot_format.NUMBERS]))
    documents = bytearray(snapshot[snapshot_format.DOCUMENTS])
    end = int(columns["offset"][-1]) - 1
    documents[end:end] = b" " * (4 << 20)
    offsets, tags = columns["offset"].copy(), columns["tag"].copy()
    start, offsets[-1] = int(offsets[-2]), len(documents)
    digest = hashlib.sha256(documents[start:-1]).digest()
    tags[-1] = np.void(digest[: snapshot_format.TAG_SIZE])
    numbers = tables.pack_columns({**columns, "offset": offsets, "tag": tags})
    files = {**snapshot, snapshot_format.DOCUMENTS: bytes(documents)}
    with pytest.raises(SnapshotError, match=snapshot_format.DOCUMENTS):
        check({**files, snapshot_format.NUMBERS: numbers})


@pytest.mark.parametrize("column", ["number", "place"])
def test_tools_in_another_order_are_refused(snapshot: Mapping[str, bytes], column: str) -> None:
    """Readers find a tool by the order of the newest versions."""
    columns = tables.unpack_columns(memoryview(snapshot[snapshot_format.NUMBERS]))
    for values in (columns[column][::-1], np.zeros_like(columns[column])):
        numbers = tables.pack_columns({**columns, column: values})
        with pytest.raises(SnapshotError, match=snapshot_format.NUMBERS):
            check({**snapshot, snapshot_format.NUMBERS: numbers})


def make_frequent_terms(snapshot: Mapping[str, bytes]) -> bytes:
    """The file of frequent terms that a build of a large catalog would write."""
    columns = tables.unpack_columns(memoryview(snapshot[snapshot_format.NUMBERS]))
    index = TextIndex(Table(snapshot[WORDS]), snapshot, len(columns["place"]))
    return b"".join(index.pack_frequent_terms())


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let builds of every size write frequent terms."""
    monkeypatch.setattr(frequent_terms, "MIN_TOOLS", 1)


def test_frequent_terms_of_a_small_catalog_are_refused(snapshot: Mapping[str, bytes]) -> None:
    """In a catalog of one tool, every term is frequent, and takes much more memory than disk."""
    with pytest.raises(SnapshotError, match=snapshot_format.FREQUENT):
        check({**snapshot, snapshot_format.FREQUENT: make_frequent_terms(snapshot)})


@pytest.mark.usefixtures("large")
def test_frequent_terms_that_follow_from_the_postings_pass(snapshot: Mapping[str, bytes]) -> None:
    check({**snapshot, snapshot_format.FREQUENT: make_frequent_terms(snapshot)})


def pack_other_terms(snapshot: Mapping[str, bytes]) -> bytes:
    """Frequent terms with valid checksums: no tool contains the only one."""
    columns = tables.unpack_columns(memoryview(snapshot[snapshot_format.NUMBERS]))
    values = np.zeros(len(columns["place"]), np.uint16)
    values[0] = 9
    return b"".join(frequent_terms.pack([(0, values)]))


FREQUENT_CHANGES: Mapping[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "empty": lambda _: b"",
    "other terms": pack_other_terms,
    "no terms": lambda _: b"".join(frequent_terms.pack([])),
    "more at the end": lambda snapshot: make_frequent_terms(snapshot) * 2,
    "another bit": lambda snapshot: b"\xff" + make_frequent_terms(snapshot)[1:],
}


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", FREQUENT_CHANGES)
def test_other_frequent_terms_are_refused(snapshot: Mapping[str, bytes], name: str) -> None:
    """They would change which tools a query finds, or end it with an error."""
    with pytest.raises(SnapshotError):
        check({**snapshot, snapshot_format.FREQUENT: FREQUENT_CHANGES[name](snapshot)})


POSTINGS_CHANGES: Mapping[str, Callable[[NDArray[np.uint32], NDArray[np.uint16]], None]] = {
    "a tool that is not there": lambda tools, _: tools.__setitem__(-1, 9999),
    "a tool twice": lambda tools, _: tools.__setitem__(0, tools[1]),
    "no value": lambda _, values: values.__setitem__(0, 0),
}


@pytest.mark.parametrize("name", POSTINGS_CHANGES)
def test_postings_that_no_build_writes_are_refused(
    snapshot: Mapping[str, bytes], name: str
) -> None:
    """Their checksum in the table of terms is that of the changed bytes."""
    entries, data = read_entries(snapshot[WORDS]), bytearray(snapshot[snapshot_format.POSTINGS])
    size = snapshot_format.TERM_HEADER.size
    headers = {
        text: snapshot_format.TERM_HEADER.unpack(entry[:size]) for text, entry in entries.items()
    }
    text = next(text for text, header in headers.items() if header[1] > 1 and not header[4])
    start, count, *_ = headers[text]
    tools = np.frombuffer(data, np.uint32, count, start)
    POSTINGS_CHANGES[name](tools, np.frombuffer(data, np.uint16, count, start + 4 * count))
    end = start + 6 * count + 6 * count % 4
    entries[text] = pack_term(entries[text], checksum=zlib.crc32(data[start:end]))
    with pytest.raises(SnapshotError, match=snapshot_format.POSTINGS):
        check({**snapshot, WORDS: pack_entries(entries), snapshot_format.POSTINGS: bytes(data)})


def test_every_table_of_a_snapshot_is_checked(snapshot: Mapping[str, bytes]) -> None:
    assert {*PATHS} == {
        name for name in snapshot if name.startswith("query.") and _is_table(snapshot[name])
    }


def _is_table(data: bytes) -> bool:
    try:
        Table(data)
    except SnapshotError:
        return False
    return True


def test_vectors_of_a_build_pass(snapshot: Mapping[str, bytes]) -> None:
    check({**snapshot, snapshot_format.VECTORS: pack_vectors(count_versions(snapshot))})


@pytest.mark.parametrize("surplus", [-1, 1])
def test_vectors_of_other_tools_are_refused(snapshot: Mapping[str, bytes], surplus: int) -> None:
    data = pack_vectors(count_versions(snapshot) + surplus)
    with pytest.raises(SnapshotError, match=snapshot_format.VECTORS):
        check({**snapshot, snapshot_format.VECTORS: data})


def test_vectors_with_an_id_of_no_tool_are_refused(snapshot: Mapping[str, bytes]) -> None:
    """Native code uses the ids as they are."""
    data = pack_vectors(count_versions(snapshot))
    forged = data[:16] + (1 << 40).to_bytes(8, "little") + data[24:]
    with pytest.raises(SnapshotError, match=snapshot_format.VECTORS):
        check({**snapshot, snapshot_format.VECTORS: forged})


def count_versions(snapshot: Mapping[str, bytes]) -> int:
    columns = tables.unpack_columns(memoryview(snapshot[snapshot_format.NUMBERS]))
    return len(columns["place"])


def pack_vectors(count: int) -> bytes:
    return b"".join(vectors.pack_vectors([bytes(count * DIMENSIONS)]))
