"""Gzip fragments: compressed pieces that join to a gzip body without compressing again.

A fragment is raw deflate data that starts and ends on a byte boundary, refers to no bytes before
it, and has no final block. So fragments can follow each other in any order. A gzip body is a
header, fragments, a final block, and the CRC-32 and size of the plain bytes. It has one member,
because some clients stop after the first. The CRC-32 follows from those of the pieces, so a body
is assembled without its plain bytes.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zlib_ng import zlib_ng

from toolcatalog.snapshot.mapped_files import FileSlices

# Level 4 of zlib-ng compresses documents as well as level 9 of zlib, in two thirds of the time.
_LEVEL = 4
_RAW_DEFLATE, _GZIP = -15, 31  # window bits
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # no name, no time, an unknown system
_TRAILER = struct.Struct("<II")  # CRC-32, size modulo 2**32
_STORED_BLOCK = struct.Struct("<BHH")  # final flag, size, complement of the size
_MAX_STORED_SIZE = 0xFFFF  # bytes in a stored block
_ALL_BITS = 0xFFFFFFFF
_ZEROS = memoryview(bytes(1 << 15))


class Fragments(NamedTuple):
    """Fragments that follow each other, and the CRC-32 and the size of their plain bytes."""

    chunks: FileSlices
    crc: int
    size: int


def compress_fragments(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield each piece as a fragment."""
    compressor = zlib_ng.compressobj(_LEVEL, zlib_ng.DEFLATED, _RAW_DEFLATE)
    for piece in pieces:
        yield compressor.compress(piece) + compressor.flush(zlib_ng.Z_FULL_FLUSH)


def store_fragment(data: bytes, *, is_final: bool = False) -> bytes:
    """Return data as a fragment without compression; `is_final` ends the deflate data."""
    blocks = []
    while len(data) > _MAX_STORED_SIZE:
        blocks.append(_stored_block(data[:_MAX_STORED_SIZE], is_final=False))
        data = data[_MAX_STORED_SIZE:]
    return b"".join(blocks) + _stored_block(data, is_final=is_final)


def _stored_block(data: bytes, *, is_final: bool) -> bytes:
    size = len(data)
    return _STORED_BLOCK.pack(is_final, size, size ^ _MAX_STORED_SIZE) + data


def decompress_fragment(fragment: bytes | memoryview, max_size: int) -> bytes:
    """Return the plain bytes of a fragment, at most `max_size`.

    Raises ValueError if it is no complete fragment or has more bytes.
    """
    decompressor = zlib_ng.decompressobj(_RAW_DEFLATE)
    try:
        # with the final block, the end of the data is found only after a complete fragment
        plain = decompressor.decompress(bytes(fragment) + _EMPTY_FINAL_BLOCK, max_size + 1)
        is_complete = decompressor.eof and not decompressor.unused_data
    except zlib_ng.error:  # type: ignore[misc]  # typed as an instance
        is_complete = False
    if not is_complete or len(plain) > max_size:
        raise ValueError("not a complete fragment")
    return plain


def gzip_ends(prefix: bytes, fragments: Fragments, suffix: bytes) -> tuple[bytes, bytes]:
    """Return what is before and after the chunks of the fragments in a gzip body.

    The plain bytes of the body are the prefix, those of the fragments and the suffix. The prefix
    and the suffix are stored without compression, so they should be short.
    """
    crc = append_crc32(zlib_ng.crc32(prefix), fragments.crc, fragments.size)
    size = len(prefix) + fragments.size + len(suffix)
    trailer = _TRAILER.pack(zlib_ng.crc32(suffix, crc), size & _ALL_BITS)
    return _HEADER + store_fragment(prefix), store_fragment(suffix, is_final=True) + trailer


def compress_gzip(data: bytes) -> bytes:
    """Return data as a gzip body that is compressed as a whole."""
    return zlib_ng.compress(data, _LEVEL, _GZIP)


def is_gzip_of(body: bytes, data: bytes) -> bool:
    """Return whether a gzip body has one member, which decompresses to exactly these bytes."""
    decompressor = zlib_ng.decompressobj(_GZIP)
    try:
        plain = decompressor.decompress(body, len(data) + 1)
    except zlib_ng.error:  # type: ignore[misc]  # typed as an instance
        return False
    return plain == data and decompressor.eof and not decompressor.unused_data


def combine_crc32(before: Iterable[int], through: Iterable[int], sizes: Iterable[int]) -> int:
    """Return the CRC-32 of pieces of longer texts, one after another.

    `before` and `through` are the CRC-32 of such a text up to the start of a piece and up to its
    end; they are 0 and that of the piece if the piece is the whole text. `sizes` are in bytes.
    """
    crc32, zeros, max_size = zlib_ng.crc32, _ZEROS, len(_ZEROS)
    state = _ALL_BITS  # the complement of the CRC-32 so far
    for start_crc, end_crc, size in zip(before, through, sizes, strict=True):
        # Zeros after a piece multiply its CRC-32 as any bytes of that size do.
        if size <= max_size:
            state = crc32(zeros[:size], state ^ start_crc) ^ end_crc
        else:
            crc = state ^ start_crc ^ _ALL_BITS
            state = zlib_ng.crc32_combine(crc, end_crc, size) ^ _ALL_BITS
    return state ^ _ALL_BITS


def append_crc32(crc: int, next_crc: int, next_size: int) -> int:
    """Return the CRC-32 of two pieces from the CRC-32 of each and the size of the second."""
    return combine_crc32((0, 0), (crc, next_crc), (0, next_size))


_EMPTY_FINAL_BLOCK = store_fragment(b"", is_final=True)
