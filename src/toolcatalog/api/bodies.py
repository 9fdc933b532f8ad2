"""Response bodies: bytes, or parts of a mapped file that are read when they are sent."""

from collections.abc import Iterator
from itertools import islice

from toolcatalog.snapshot.mapped_files import FileSlices

BodyChunk = bytes | memoryview

_MAX_JOINED = 64 * 1024  # bytes of a body that is made at once
_CHUNK_SIZE = 1024 * 1024  # about the bytes of many slices that are joined at once
_MAX_VIEWS = 8  # slices that are sent one by one, without a copy
_SLICE_OVERHEAD = 100  # bytes of the two numbers of a slice
_OVERHEAD = 1000  # bytes of the object


class SlicedBody:
    """A large body: a start, slices of a mapped file with a separator between them, and an end.

    It takes little memory, so many can be cached. `size` is the number of bytes of the body.
    """

    __slots__ = ("_end", "_separator", "_slices", "_start", "size")

    def __init__(self, start: bytes, slices: FileSlices, separator: bytes, end: bytes) -> None:
        self._start, self._slices, self._separator, self._end = start, slices, separator, end
        between = len(separator) * max(0, len(slices) - 1)
        self.size = len(start) + slices.size + between + len(end)

    @property
    def memory(self) -> int:
        """The memory that it takes, in bytes; the mapped file belongs to the system."""
        return _OVERHEAD + len(self._start) + len(self._end) + len(self._slices) * _SLICE_OVERHEAD

    def read(self) -> Iterator[BodyChunk]:
        """Yield the body in chunks: a few large slices as views, many as copies of about 1 MiB.

        A client that reads slowly then holds one of the copies, and not all.
        """
        yield self._start
        if len(self._slices) <= _MAX_VIEWS:
            for number, view in enumerate(self._slices):
                if number and self._separator:
                    yield self._separator
                yield view
        else:
            yield from self._join_slices()
        yield self._end

    def _join_slices(self) -> Iterator[bytes]:
        views, separator = iter(self._slices), self._separator
        count = max(1, _CHUNK_SIZE * len(self._slices) // max(1, self._slices.size))
        batch: list[BodyChunk] = [*islice(views, count)]
        while batch:
            yield separator.join(batch)
            rest = [*islice(views, count)]
            batch = [b"", *rest] if rest else []  # so that it begins with a separator


Body = bytes | SlicedBody


def make_body(start: bytes, slices: FileSlices, separator: bytes, end: bytes) -> Body:
    """Return a body from a start, slices with a separator between them, and an end."""
    if slices.size > _MAX_JOINED:
        return SlicedBody(start, slices, separator, end)
    if separator:
        return b"".join((start, separator.join(slices), end))
    return b"".join((start, *slices, end))


def join_body(body: Body) -> bytes:
    """Return a body as bytes."""
    return body if isinstance(body, bytes) else b"".join(body.read())
