"""What is said in a store, and what is refused of it."""

import orjson
import pytest

from toolcatalog.publish import chunks, layout
from toolcatalog.publish.layout import Chunk, InvalidRemoteSnapshot

SHA = "0123456789abcdef" * 4


def test_what_is_packed_is_unpacked() -> None:
    """The chunks of files and the pointer, there and back."""
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
def test_what_is_no_pointer_is_refused(data: bytes) -> None:
    """A pointer that names nothing that could be a snapshot."""
    with pytest.raises(InvalidRemoteSnapshot, match=r"publish again"):
        layout.parse_pointer(data)


def test_what_is_newer_is_refused_with_advice() -> None:
    """A pointer, or a list, that a later program has written."""
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
def test_a_chunk_that_is_none_is_refused(chunk: object) -> None:
    """Something in the list that is no SHA-256 with a size."""
    with pytest.raises(InvalidRemoteSnapshot, match=r"damaged"):
        layout.parse_chunk_list(orjson.dumps({"format": 1, "files": {"tools.json": [chunk]}}))


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../tools.json", "a/../../b", "a//b", "./a", "a/", "a\\b", "a\0b", "."],
)
def test_no_path_leads_out(path: str) -> None:
    """A path that would be written elsewhere than below the folder of the snapshot, or that has
    another name there.
    """
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
def test_a_list_in_another_form_is_refused(data: bytes) -> None:
    """A list that `pack` does not write: cut off, with commas or names too many, or chunks that are
    empty or too large.
    """
    with pytest.raises(InvalidRemoteSnapshot, match=r"damaged"):
        layout.parse_chunk_list(data)


def test_chunks_are_as_large_as_they_are_made() -> None:
    """The bounds of a chunk that is read are those of a chunk that is written."""
    assert (layout.MIN_ACCEPTED_CHUNK_SIZE, layout.MAX_ACCEPTED_CHUNK_SIZE) == (
        chunks.MIN_CHUNK_SIZE,
        chunks.MAX_CHUNK_SIZE,
    )
