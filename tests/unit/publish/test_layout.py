"""Tests of `publish.layout`: pointers and chunk lists, and what is refused."""

import orjson
import pytest

from toolcatalog.publish import chunks, layout
from toolcatalog.publish.layout import Chunk, InvalidRemoteSnapshot

SHA = "0123456789abcdef" * 4


def test_pack_and_unpack_round_trip() -> None:
    """Chunk lists and the pointer."""
    files = {
        "tools.json": [Chunk(SHA, 3), Chunk(SHA[::-1], 4)],
        "toolkits/a/20250101_00.json": [],
        "sessions/b.json": [Chunk(SHA, 3)],
    }
    assert layout.parse_chunk_list(layout.render_chunk_list(files)) == files
    assert layout.parse_pointer(layout.render_pointer(SHA)) == SHA


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"digest":"' + SHA.encode() + b'"}',
        orjson.dumps({"format": 1, "digest": SHA.upper()}),
        orjson.dumps({"format": 1, "digest": f"../{SHA}"}),
        orjson.dumps({"format": 1, "digest": 5}),
        orjson.dumps({"format": 1}),
        layout.render_pointer(SHA)[:-10],
    ],
)
def test_invalid_pointer_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRemoteSnapshot, match=r"publish again"):
        layout.parse_pointer(data)


def test_newer_format_is_refused_with_a_hint() -> None:
    """Of a pointer or a chunk list."""
    with pytest.raises(InvalidRemoteSnapshot, match=r"has format 2, this program reads 1: upgrade"):
        layout.parse_pointer(orjson.dumps({"format": 2, "digest": SHA}))
    with pytest.raises(InvalidRemoteSnapshot, match=r"has format 2, this program reads 1: upgrade"):
        layout.parse_chunk_list(orjson.dumps({"format": 2, "files": {}}))


@pytest.mark.parametrize(
    "chunk",
    [
        [SHA],
        [SHA, -1],
        [SHA, 1 << 40],
        [SHA, "3"],
        [SHA, 3, 4],
        ["x", 3],
        [None, 3],
        SHA,
        {},
        [f"../{SHA[3:]}", 3],
    ],
)
def test_invalid_chunk_is_refused(chunk: object) -> None:
    """Without SHA-256 and size."""
    with pytest.raises(InvalidRemoteSnapshot, match=r"damaged"):
        layout.parse_chunk_list(orjson.dumps({"format": 1, "files": {"tools.json": [chunk]}}))


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../tools.json", "a/../../b", "a//b", "./a", "a/", "a\\b", "a\0b", "."],
)
def test_paths_outside_of_the_snapshot_are_refused(path: str) -> None:
    """Or paths that are not normalized."""
    with pytest.raises(InvalidRemoteSnapshot, match=r"leads elsewhere|is damaged"):
        layout.parse_chunk_list(orjson.dumps({"format": 1, "files": {path: []}}))


@pytest.mark.parametrize(
    "data",
    [
        b'{"format":1,"files":{',
        b'{"format":1,"files":{}',
        b'{"format":1,"files":{}}}',
        b'{"format":1,"files":{"a":[]},}',
        b'{"format":1,"files":{"a":[],}}',
        b'{"format":1,"files":{"a":[],"a":[]}}',
        b'{"format":1,"files":{"a":[["' + SHA.encode() + b'",3],]}}',
        b'{"format":1,"files":{"a":[["' + SHA.encode() + b'",0]]}}',
        b'{"format":1,"files":{"a":[["' + SHA.encode() + b'",3]',
        b'{"format":1,"files":{"a":[["' + SHA.encode() + b'",1048577]]}}',
        b'{"format":true,"files":{}}',
        b'{"files":{},"format":1}',
    ],
)
def test_malformed_chunk_list_is_refused(data: bytes) -> None:
    """Truncated, additional separators or names, empty or too large chunks."""
    with pytest.raises(InvalidRemoteSnapshot, match=r"damaged"):
        layout.parse_chunk_list(data)


def test_chunk_size_limits_agree() -> None:
    """Of reader and writer."""
    assert (layout.MIN_ACCEPTED_CHUNK_SIZE, layout.MAX_ACCEPTED_CHUNK_SIZE) == (
        chunks.MIN_CHUNK_SIZE,
        chunks.MAX_CHUNK_SIZE,
    )
