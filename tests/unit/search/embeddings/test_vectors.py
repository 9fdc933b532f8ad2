"""The vector file, and the nearest neighbors of queries."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.profile import example_settings
from toolcatalog.search.embeddings import encoder, vectors
from toolcatalog.search.embeddings.encoder import Vectors
from toolcatalog.search.embeddings.model_files import DIMENSIONS
from toolcatalog.search.embeddings.vectors import NO_NEIGHBORS, VectorIndex
from toolcatalog.snapshot.tables import ToolIds

MANY, MAX_COMPARED = 12_000, 4_000


def normalize(values: NDArray[np.float64]) -> Vectors:
    normalized: Vectors = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype("f4")
    return normalized


def draw_vectors(
    draw: np.random.Generator, count: int, group_count: int
) -> tuple[Vectors, Vectors]:
    """Vectors in groups, and one query for each of two groups."""
    centers = draw.normal(size=(group_count, DIMENSIONS))
    spread = draw.normal(size=(count, DIMENSIONS))
    tools = normalize(centers[draw.integers(group_count, size=count)] + 0.7 * spread)
    return tools, normalize(centers[:2] + 0.5 * draw.normal(size=(2, DIMENSIONS)))


def pack(tools: Vectors) -> bytes:
    """Pack vectors that come in batches."""
    batches = (encoder.quantize(tools[start : start + 999]) for start in range(0, len(tools), 999))
    return b"".join(vectors.pack_vectors(batches))


def count_missing(tools: Vectors, query: Vectors, found: ToolIds, among: NDArray[np.bool_]) -> int:
    """Count the nearest tools that were not found, if they are clearly nearer than the others."""
    cosines = np.where(among, (tools @ query.T).max(1), -1)
    last = max(0.2, np.sort(cosines)[-101:][0])
    return len({*np.flatnonzero(cosines > last + 0.005).tolist()} - {*found.tolist()})


@pytest.fixture(scope="module")
def many() -> Iterator[tuple[Vectors, Vectors, bytes]]:
    """Vectors, queries, and a file with lists, as fewer vectors are compared than usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "_MAX_COMPARED", MAX_COMPARED)
        tools, query = draw_vectors(np.random.default_rng(7), MANY, 100)
        yield tools, query, pack(tools)


@example_settings(15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 90, 3000]))
def test_neighbors_are_those_of_an_exact_search(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    tools, query = draw_vectors(draw, count, 30)
    index = VectorIndex(pack(tools), count)
    cosines = (tools @ query.T).max(1)
    for share in (1, 0.5, 0.05, 0):
        among = draw.random(count) < share
        ids, similarities = index.find_nearest(query, among)
        assert among[ids].all()
        assert (np.diff(ids.astype(int)) > 0).all()
        assert not count_missing(tools, query, ids, among)
        assert cosines[ids].min(initial=1) > 0.19
        if len(ids) > 1:
            assert (similarities.min(), similarities.max()) == (0, 1)
        if len(ids) > 10:  # two that are equally near may change places
            assert np.corrcoef(similarities, cosines[ids])[0, 1] > 0.99


@pytest.mark.parametrize("share", [1, 0.8, 0.3, 0.05, 0.001])
def test_many_vectors_are_compared_list_by_list(
    many: tuple[Vectors, Vectors, bytes], share: float
) -> None:
    tools, query, data = many
    assert len(vectors.read_vectors(data, MANY).starts) > 100
    among = np.random.default_rng(1).random(MANY) < share
    ids, _ = VectorIndex(data, MANY).find_nearest(query, among)
    assert among[ids].all()
    assert count_missing(tools, query, ids, among) <= 2


def test_lists_are_left_out_that_are_far_from_the_query(
    many: tuple[Vectors, Vectors, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tenth of the vectors, most neighbors are found: the lists are of similar ones."""
    monkeypatch.setattr(vectors, "_MAX_COMPARED", MANY // 10)
    tools, query, data = many
    among = np.ones(MANY, np.bool_)
    for vector in query:
        ids, _ = VectorIndex(data, MANY).find_nearest(vector[None], among)
        assert count_missing(tools, vector[None], ids, among) <= 10


def test_equal_vectors_give_equal_bytes(many: tuple[Vectors, Vectors, bytes]) -> None:
    assert pack(many[0]) == many[2]


def test_threads_do_not_disturb_each_other(many: tuple[Vectors, Vectors, bytes]) -> None:
    _, query, data = many
    index = VectorIndex(data, MANY)
    masks = [np.random.default_rng(seed).random(MANY) < 0.7 for seed in range(4)]
    expected = [index.find_nearest(query, mask).tool_ids.tolist() for mask in masks]
    assert expected[0] != expected[1]
    with ThreadPoolExecutor(4) as executor:
        results = executor.map(lambda mask: index.find_nearest(query, mask), masks * 20)
        assert [result.tool_ids.tolist() for result in results] == expected * 20


def test_nothing_is_near_without_tools_query_or_candidates() -> None:
    tools, query = draw_vectors(np.random.default_rng(1), 5, 2)
    index = VectorIndex(pack(tools), 5)
    assert index.find_nearest(query, np.zeros(5, np.bool_)) is NO_NEIGHBORS
    assert index.find_nearest(query[:0], np.ones(5, np.bool_)) is NO_NEIGHBORS
    zero = np.zeros((1, DIMENSIONS), np.float32)
    assert not len(index.find_nearest(zero, np.ones(5, np.bool_)).tool_ids)
    assert VectorIndex(pack(zero[:0]), 0).find_nearest(query, np.zeros(0, np.bool_)) is NO_NEIGHBORS


HEADER_SIZE = 16
IDS, POSITIONS, SIZES = HEADER_SIZE, HEADER_SIZE + 8 * 5, HEADER_SIZE + 12 * 5
CENTROIDS = SIZES + 4


def overwrite(start: int, value: object, kind: str) -> Callable[[bytes], bytes]:
    piece = np.array(value, kind).tobytes()
    return lambda data: data[:start] + piece + data[start + len(piece) :]


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        overwrite(0, b"tctable1", "S8"),
        overwrite(8, 4, "<u4"),
        overwrite(8, 2**32 - 1, "<u4"),
        overwrite(12, 0, "<u4"),
        overwrite(12, 2, "<u4"),
        overwrite(12, 2**32 - 1, "<u4"),
        overwrite(IDS, 5, "<i8"),
        overwrite(IDS, -1, "<i8"),
        overwrite(IDS, 2**40, "<i8"),
        overwrite(IDS, 1, "<i8"),
        overwrite(IDS, [1, 0], "<i8"),
        overwrite(POSITIONS, 5, "<u4"),
        overwrite(POSITIONS, [0, 0], "<u4"),
        overwrite(SIZES, 6, "<u4"),
        overwrite(SIZES, 4, "<u4"),
        overwrite(CENTROIDS, np.nan, "<f4"),
        overwrite(CENTROIDS, -np.inf, "<f4"),
        overwrite(CENTROIDS, 1e9, "<f4"),
    ],
)
def test_file_that_no_build_writes_is_refused(change: Callable[[bytes], bytes]) -> None:
    data = pack(draw_vectors(np.random.default_rng(1), 5, 2)[0])
    assert len(vectors.read_vectors(data, 5).ids) == 5
    with pytest.raises(ValueError, match=r"no (vectors|lists)"):
        vectors.read_vectors(change(data), 5)


def test_sizes_of_lists_that_exceed_the_vectors_are_refused(
    many: tuple[Vectors, Vectors, bytes],
) -> None:
    """Even if their sum would be right with 32 bits."""
    start = HEADER_SIZE + 12 * MANY
    sizes = np.frombuffer(many[2], "<u4", 2, start).astype(np.int64)
    for first, second in ((-1, sizes.sum() + 1), (2**31 + sizes[0], 2**31 + sizes[1])):
        data = overwrite(start, np.array([first, second]) % 2**32, "<u4")(many[2])
        with pytest.raises(ValueError, match="no lists"):
            vectors.read_vectors(data, MANY)
