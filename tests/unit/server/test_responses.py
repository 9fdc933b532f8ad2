"""Tests of `server.responses`: header lines."""

import pytest

from toolcatalog.api.answers import Answer
from toolcatalog.server.responses import PreparedAnswer, decode_headers, encode_headers

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
