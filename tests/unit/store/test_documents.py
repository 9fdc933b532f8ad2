"""Documents as gzip fragments: the bytes of the plain answer, or no answer at all."""

import gzip
import logging
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support import catalogs
from toolcatalog.build.pipeline import build
from toolcatalog.snapshot.gzip_fragments import Fragments, gzip_ends
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store
from toolcatalog.system import seals

FILE = "current/tools.deflate"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of 40 tools. Copy it before damaging it."""
    folder = tmp_path_factory.mktemp("documents")
    build(catalogs.generate_catalog(folder / "catalog", 40), folder / "build", None)
    return folder / "build"


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "build", symlinks=True))


def read_plain(store: Store, ids: "np.typing.NDArray[np.uint32]") -> bytes:
    return b",".join(store.read_documents(ids)[0])


def gzip_body(prefix: bytes, fragments: Fragments, suffix: bytes) -> bytes:
    start, end = gzip_ends(prefix, fragments, suffix)
    return b"".join((start, *fragments.chunks, end))


def read_compressed(store: Store, ids: "np.typing.NDArray[np.uint32]") -> bytes | None:
    compressed = store.read_fragments(ids)
    if compressed is None:
        return None
    fragments, tag = compressed
    assert tag == store.read_documents(ids)[1]
    decoded = gzip.decompress(gzip_body(b"[", fragments, b"]"))
    assert fragments.size == len(decoded) - 2
    return decoded[1:-1]


def orders(count: int) -> Iterator["np.typing.NDArray[np.uint32]"]:
    shuffle = random.Random(5)  # noqa: S311 - not used for security
    all_values = [*range(count)]
    for ids in (
        all_values,
        all_values[::-1],
        all_values[:0],
        all_values[-1:],
        [3, 3, 3],
        all_values[5:9] + all_values[2:4],
    ):
        yield np.array(ids, np.uint32)
    for _ in range(200):
        yield np.array(shuffle.choices(all_values, k=shuffle.randint(1, 30)), np.uint32)


def test_pages_in_any_order_are_the_plain_ones(good: Path) -> None:
    store = open_build(good)
    for ids in orders(store.version_count):
        assert read_compressed(store, ids) == read_plain(store, ids)


def test_a_document_is_the_plain_one(good: Path) -> None:
    store = open_build(good)
    for tool_id in range(store.version_count):
        fragments = store.read_fragment(tool_id)
        assert fragments is not None
        body = gzip_body(b"", fragments, b"")
        assert gzip.decompress(body) == store.read_document(tool_id)[0]


def test_adjacent_documents_are_one_chunk(good: Path) -> None:
    store = open_build(good)
    compressed = store.read_fragments(np.arange(store.version_count, dtype=np.uint32))
    assert compressed is not None
    assert len(compressed[0].chunks) == 1


def test_a_snapshot_without_the_file_is_served_plain(
    copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (copy / FILE).unlink()
    store = open_build(copy)
    assert store.read_fragment(0) is None
    assert store.read_fragments(np.arange(3, dtype=np.uint32)) is None
    assert len(read_plain(store, np.arange(3, dtype=np.uint32))) > 100
    assert not caplog.records


def damage(file: Path, offset: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 1
    file.write_bytes(data)


def test_any_damaged_byte_is_noticed(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every byte region: fragments, separators, padding, columns, footer. Builds check the seal."""
    file = copy / FILE
    intact = file.read_bytes()
    end = len(intact) - seals.SEAL_SIZE
    for offset in [*range(0, end, max(1, end // 100)), *range(end - 80, end)]:
        caplog.clear()
        file.write_bytes(intact)
        damage(file, offset)
        store = open_build(copy)
        for tool_id in range(store.version_count):
            ids = np.array([tool_id], np.uint32)
            assert read_compressed(store, ids) in (None, read_plain(store, ids))
        lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(lines) == 1, offset


@pytest.mark.parametrize("size", [0, 1, 50, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_noticed(
    copy: Path, caplog: pytest.LogCaptureFixture, size: float
) -> None:
    file = copy / FILE
    intact = file.read_bytes()
    file.write_bytes(intact[: int(size * len(intact)) if size < 1 else int(size)])
    store = open_build(copy)
    assert store.read_fragment(0) is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_file_of_another_snapshot_is_not_used(
    copy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    build(catalogs.generate_catalog(tmp_path / "catalog", 41), tmp_path / "other", None)
    shutil.copy(tmp_path / "other" / FILE, copy / FILE)
    assert open_build(copy).read_fragment(0) is None
    assert "belongs to other documents" in caplog.text
