"""Gzip fragments: independent of each other, and joined to bodies that gzip readers accept."""

import gzip
import itertools
import random
import zlib

import pytest

from toolcatalog.snapshot import gzip_fragments
from toolcatalog.snapshot.gzip_fragments import Fragments, append_crc32
from toolcatalog.snapshot.mapped_files import FileSlices

RANDOM = random.Random(1).randbytes(3_000_000)  # noqa: S311 - not used for security
PIECES = [b"", b"a", b'{"slug":"A"}' * 40, RANDOM[:200_000], b"x" * 70_000]


def join(pieces: list[bytes]) -> Fragments:
    """The fragments of pieces, with a CRC-32 that was made from those of the pieces."""
    crc, size = 0, 0
    for piece in pieces:
        crc, size = append_crc32(crc, zlib.crc32(piece), len(piece)), size + len(piece)
    fragments = [*gzip_fragments.compress_fragments(pieces)]
    stops = [*itertools.accumulate(map(len, fragments))]
    data = memoryview(b"".join(fragments))
    return Fragments(FileSlices(data, [0, *stops][: len(stops)], stops), crc, size)


def gzip_body(prefix: bytes, fragments: Fragments, suffix: bytes) -> bytes:
    start, end = gzip_fragments.gzip_ends(prefix, fragments, suffix)
    return b"".join((start, *fragments.chunks, end))


def test_fragments_decode_without_those_before_them() -> None:
    fragments = [*gzip_fragments.compress_fragments(PIECES * 2)]
    for piece, fragment in zip(PIECES * 2, fragments, strict=True):
        assert gzip_fragments.decompress_fragment(fragment, len(piece)) == piece
        assert zlib.decompressobj(-15).decompress(fragment) == piece


@pytest.mark.parametrize("order", [range(5), [4, 2, 3, 0, 1], [3, 3, 3], [2], []])
def test_a_body_is_its_parts_in_any_order(order: list[int]) -> None:
    pieces = [PIECES[position] for position in order]
    body = gzip_body(b'{"items":[', join(pieces), b"]}")
    assert gzip.decompress(body) == b'{"items":[' + b"".join(pieces) + b"]}"


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 200_000])
def test_prefix_and_suffix_may_have_any_size(size: int) -> None:
    body = gzip_body(b"p" * size, join([b"{}"]), b"s" * size)
    decompressor = zlib.decompressobj(31)
    assert decompressor.decompress(body) == b"p" * size + b"{}" + b"s" * size
    assert decompressor.eof, "one member"
    assert not decompressor.unused_data


@pytest.mark.parametrize("size", [0, 1, 2047, 32_767, 32_768, 32_769, 3_000_000])
def test_the_checksum_of_two_pieces_follows_from_theirs(size: int) -> None:
    first, second = b"before", RANDOM[:size]
    assert append_crc32(zlib.crc32(first), zlib.crc32(second), size) == zlib.crc32(first + second)


def test_what_is_no_complete_fragment_is_refused() -> None:
    [fragment] = gzip_fragments.compress_fragments([b'{"slug":"A"}' * 40])
    size = len(b'{"slug":"A"}' * 40)
    final = gzip_fragments.store_fragment(b"", is_final=True)
    for invalid in (
        fragment[:-1],
        fragment[1:],
        fragment + final,
        fragment + b"\x07",
        b""[:0] + b"\xff",
    ):
        with pytest.raises(ValueError, match="not a complete fragment"):
            gzip_fragments.decompress_fragment(invalid, size)
    with pytest.raises(ValueError, match="not a complete fragment"):
        gzip_fragments.decompress_fragment(fragment, size - 1)
