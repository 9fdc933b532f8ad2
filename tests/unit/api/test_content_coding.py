"""`accepts_gzip` follows RFC 9110, 12.5.3, and never fails."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.api.content_coding import accepts_gzip, compress


@pytest.mark.parametrize(
    "header",
    [
        b"gzip",
        b"GZIP",
        b"gzip, deflate",
        b"br, gzip, deflate",
        b"gzip, deflate, br, zstd",
        b"*",
        b"x-gzip",
        b"gzip;q=0.001",
        b"gzip ; q=1",
        b"br;q=1.0, gzip;q=0.8, *;q=0.1",
        b"identity;q=0, *",
        b"identity;q=0.5, gzip;q=0.5",
        b"gzip;q=x",
        b",,gzip,",
    ],
)
def test_gzip_is_accepted(header: bytes) -> None:
    """By name, as `x-gzip` or as `*`, with any weight above 0."""
    assert accepts_gzip(header)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"identity",
        b"deflate, br, zstd",
        b"gzip;q=0",
        b"gzip;q=0.000, *;q=0",
        b"*;q=0",
        b"gzip;q=0, *",
        b"gzip; Q=0.0",
        b"identity, gzip;q=0.5",
        b"gzipped",
        b"g zip",
        b"gzip" + b"," * 1000,
        b"identity;q=0",
    ],
)
def test_gzip_is_not_accepted(header: bytes) -> None:
    """If it is not named, has the weight 0, or less weight than the plain body."""
    assert not accepts_gzip(header)


@given(st.binary(max_size=200) | st.text("gzip*q=01.;, \t", max_size=60).map(str.encode))
def test_any_header_is_decided(header: bytes) -> None:
    """Malformed headers too."""
    assert accepts_gzip(header) in (True, False)


def test_compress_is_reproducible() -> None:
    """The same body gives the same bytes, so its ETag is a strong one."""
    body = b"some text " * 500
    assert gzip.decompress(compress(body)) == body
    assert compress(body) == compress(body)
