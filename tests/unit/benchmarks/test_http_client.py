"""Responses: decoded bodies, and the tools in them."""

import gzip
import zlib

import pytest

from benchmarks.http_client import decode_body, extract_slugs
from benchmarks.http_load import has_same_tools
from benchmarks.workload import ToolQuery


def test_bodies_are_decoded() -> None:
    """gzip with several members, and deflate."""
    assert decode_body(gzip.compress(b"a") + gzip.compress(b"b"), "gzip") == b"ab"
    assert decode_body(zlib.compress(b"ab"), "deflate") == b"ab"
    assert decode_body(b"ab", "") == b"ab"


@pytest.mark.parametrize("encoding", ["zstd", "gzip", "deflate"])
def test_undecodable_body_is_kept(encoding: str) -> None:
    """It differs from the plain body, so the benchmark counts it as wrong."""
    assert decode_body(b"ab", encoding) == b"ab"
    assert decode_body(gzip.compress(b"ab")[:-1], "gzip") != b"ab"


@pytest.mark.parametrize(
    "body",
    ['{"slug": "A"}', '{"items": [{"slug": "A"}]}', '[{"slug": "A"}]', '{"rows": [{"slug": "A"}]}'],
)
def test_slugs_are_extracted_from_each_server(body: str) -> None:
    """A tool, a page, rows, and rows in an object."""
    assert extract_slugs(body.encode()) == ["A"]


def test_tools_of_two_servers_are_compared() -> None:
    """Lists must have the same tools; ranked results must both be empty or not."""
    one, other, empty = b'[{"slug": "A"}]', b'[{"slug": "B"}]', b"[]"
    assert has_same_tools(ToolQuery(), one, one)
    assert not has_same_tools(ToolQuery(), one, other)
    assert has_same_tools(ToolQuery(words="x"), one, other)
    assert not has_same_tools(ToolQuery(words="x"), one, empty)
    assert has_same_tools(ToolQuery(words="x", page=2), one, empty)
