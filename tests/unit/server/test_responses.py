"""Tests of `server.responses`: header lines."""

import time

import pytest

from toolcatalog.api.answers import Answer
from toolcatalog.server.responses import (
    PreparedAnswer,
    ResponseContext,
    decode_headers,
    encode_headers,
    make_response,
)

HEADERS = [(b"etag", b'"a-gzip"'), (b"x-suggested-query", b"a: b, c"), (b"x-empty", b"")]


def test_header_lines_round_trip() -> None:
    lines = encode_headers(HEADERS)
    assert lines == b'etag: "a-gzip"\r\nx-suggested-query: a: b, c\r\nx-empty: \r\n'
    assert decode_headers(lines) == HEADERS


@pytest.mark.parametrize("character", [b"\r", b"\n", b"\0", b"\x7f", b"\t"])
def test_control_character_is_refused(character: bytes) -> None:
    """It could begin another header."""
    with pytest.raises(ValueError, match=r"x-name.* has a control character"):
        encode_headers([(b"x-name", b"a" + character + b"b")])
    with pytest.raises(ValueError, match="etag"):
        PreparedAnswer(Answer(b"{}", b"a" + character))


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b'"a"', 304),
        (b'W/"a"', 304),
        (b'"b", W/"a-gzip" ,"c"', 304),
        (b"*", 304),
        (b'"b"', 200),
        (b'"a", *', 304),
        (b"a", 200),
        (b"," * 4000 + b'"a"', 304),
        (b"," * 5000 + b'"a"', 200),
    ],
)
def test_if_none_match(header: bytes, status: int) -> None:
    """A header of more than 4 KiB matches nothing."""
    answer = PreparedAnswer(Answer(b"{}", b"a"))
    assert make_response(answer, header, ResponseContext(b"1", b"")).status == status


def test_long_if_none_match_takes_no_time() -> None:
    """Less than that of one header of the size that is compared."""
    answer, context = PreparedAnswer(Answer(b"{}", b"a")), ResponseContext(b"1", b"")

    def measure(size: int) -> float:
        start = time.thread_time()
        for _ in range(200):
            make_response(answer, b"," * size, context)
        return time.thread_time() - start

    assert measure(60_000) < measure(4_000)
