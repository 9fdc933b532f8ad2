"""Whatever the documents, the page and its order: the compressed page is the plain one, and no
changed bit is decoded to anything else.
"""

import contextlib
import gzip
import zlib
from array import array
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import gzip_fragments
from toolcatalog.snapshot.compressed_documents import SEPARATOR, CompressedDocuments, pack_table

SHA256 = "ab" * 32
DOCUMENTS = st.lists(st.binary(max_size=3_000) | st.binary(max_size=9).map(lambda b: b * 8_000))


def pack(documents: list[bytes]) -> bytes:
    """The file of these documents."""
    slices = [part + SEPARATOR for part in gzip_fragments.compress_fragments(documents)]
    before, through = array("I", [0]), array("I")
    for document in documents:
        through.append(zlib.crc32(document, before[-1]))
        before.append(zlib.crc32(b",", through[-1]))
    starts = array("Q", accumulate(map(len, slices), initial=0))
    checks = array("I", map(zlib.crc32, slices))
    return b"".join(slices) + pack_table(SHA256, starts, before, through, checks)


def offsets(documents: list[bytes]) -> list[int]:
    return [*accumulate((len(document) + 1 for document in documents), initial=1)]


def read(data: bytes, documents: list[bytes], runs: list[tuple[int, int]]) -> bytes:
    fragments = CompressedDocuments(data, SHA256).read_runs(runs, offsets(documents))
    body = gzip.decompress(b"".join(gzip_fragments.gzip_body(b"[", fragments, b"]")))
    assert len(body) == fragments.size + 2
    return body


def plain(documents: list[bytes], runs: list[tuple[int, int]]) -> bytes:
    parts = [document for first, last in runs for document in documents[first : last + 1]]
    return b"[" + b",".join(parts) + b"]"


def draw_runs(draw: st.DataObject, count: int) -> list[tuple[int, int]]:
    """Runs of positions, which may overlap and repeat."""
    place = st.integers(0, count - 1)
    pairs = draw.draw(st.lists(st.tuples(place, place), max_size=20)) if count else []
    return [(min(pair), max(pair)) for pair in pairs]


@given(DOCUMENTS, st.data())
def test_every_page_is_the_plain_one(documents: list[bytes], draw: st.DataObject) -> None:
    runs = draw_runs(draw, len(documents))
    assert read(pack(documents), documents, runs) == plain(documents, runs)


@given(DOCUMENTS.filter(len), st.data())
def test_no_changed_bit_gives_another_page(documents: list[bytes], draw: st.DataObject) -> None:
    data = bytearray(pack(documents))
    bit = draw.draw(st.integers(0, 8 * len(data) - 1))
    data[bit // 8] ^= 1 << bit % 8
    runs = draw_runs(draw, len(documents))
    with contextlib.suppress(SnapshotError):  # noticed
        assert read(bytes(data), documents, runs) == plain(documents, runs)


@given(DOCUMENTS, st.data())
def test_no_truncated_file_is_opened(documents: list[bytes], draw: st.DataObject) -> None:
    data = pack(documents)
    cut = data[: draw.draw(st.integers(0, len(data) - 1))]
    try:
        CompressedDocuments(cut, SHA256)
    except SnapshotError:
        return
    raise AssertionError(cut)
