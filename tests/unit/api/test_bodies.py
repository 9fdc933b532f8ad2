"""Response bodies: small ones are joined at once, large ones whenever they are sent."""

import pytest

from toolcatalog.api.bodies import SlicedBody, join_body, make_body
from toolcatalog.snapshot.mapped_files import FileSlices

SMALL, LARGE = b"small", bytes(100_000)


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ([], 0),
        ([SMALL, SMALL], 0),
        ([LARGE], 3),  # a page in the order of the files
        ([LARGE, SMALL], 5),
        ([LARGE] * 9, 3),  # a page of documents from everywhere
        ([LARGE] * 25, 5),  # a client that reads slowly holds one of its parts
    ],
)
@pytest.mark.parametrize("separator", [b"", b","])
def test_a_body_has_its_parts_in_few_chunks(
    parts: list[bytes], count: int, separator: bytes
) -> None:
    """A client gets the same bytes in each case; `count` 0 is a body that was joined at once."""
    stops = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    starts = [0, *stops[:-1]][: len(parts)]
    slices = FileSlices(memoryview(b"".join(parts)), starts, stops)
    body = make_body(b"[", slices, separator, b"]")
    expected = b"[" + separator.join(parts) + b"]"
    assert join_body(body) == expected
    assert isinstance(body, SlicedBody) == bool(count)
    if isinstance(body, SlicedBody):
        assert body.size == len(expected)
        assert len([*body.read()]) == (count if separator or len(parts) != 2 else 4)
        assert body.memory < 10_000
