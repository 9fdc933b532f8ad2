"""Search by meaning with the real model: builds, stores, the server and the command line."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import numpy as np
import onnx
import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from support.catalogs import add_tool, generate_catalog
from support.command import run_successfully, run_toolcatalog
from support.paths import SHIPPED_CATALOG
from support.server import Server, create_key, start_server
from toolcatalog.build import text_index
from toolcatalog.build.pipeline import build
from toolcatalog.errors import SnapshotError, UsageError
from toolcatalog.progress import Advance, no_progress
from toolcatalog.publish import trusted_pointers, upload
from toolcatalog.publish.follower import Follower
from toolcatalog.publish.object_store import ObjectStorage
from toolcatalog.publish.signatures import SigningKey, VerifyKeys
from toolcatalog.search.embeddings import encoder, model_files
from toolcatalog.search.embeddings import vectors as search_vectors
from toolcatalog.search.embeddings.encoder import ToolText
from toolcatalog.search.embeddings.model_files import DIMENSIONS, Model
from toolcatalog.search.embeddings.vectors import VectorIndex
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.store.open import check_snapshot, open_build, open_snapshot
from toolcatalog.store.store import Filters, Store, VersionPins

LIST = "/api/v3/tools"
OBLIQUE = [  # the words of the tool that must be found are not in the query
    ("text my colleagues in the chat room", "SLACK_SEND_MESSAGE"),
    ("give the buyer their money back", "STRIPE_CREATE_REFUND"),
    ("file a bug report", "GITHUB_CREATE_ISSUE"),
]

pytestmark = pytest.mark.xdist_group("meaning")  # to build it takes seconds, and one worker does it


@pytest.fixture(scope="module")
def build_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("semantic") / "build"
    build(SHIPPED_CATALOG, out, None, semantic=True)
    return out


@pytest.fixture(scope="module")
def store(build_store: Path) -> Store:
    return open_build(build_store)


def search_slugs(store: Store, query: str, filters: Filters = Filters()) -> list[str]:  # noqa: B008
    matching = store.search(filters._replace(query=query), VersionPins())
    numbers = store.select_page(matching, "relevance", True, 0, len(matching.tool_ids))
    return [orjson.loads(store.read_document(int(number))[0])["slug"] for number in numbers]


@pytest.mark.parametrize(("query", "slug"), OBLIQUE)
def test_synonyms_are_found(store: Store, query: str, slug: str) -> None:
    assert slug in search_slugs(store, query)[:3]


def test_exact_words_and_slugs_come_first(store: Store) -> None:
    """A query that is similar to nothing finds nothing."""
    assert search_slugs(store, "GITHUB_CREATE_ISSUE")[0] == "GITHUB_CREATE_ISSUE"
    assert search_slugs(store, "githb isue")[0].startswith("GITHUB_")
    assert search_slugs(store, " ... ") == []


def test_filters_apply_before_similarity(store: Store) -> None:
    items = search_slugs(store, "give the buyer their money back", Filters(toolkits=("github",)))
    assert items
    assert all(slug.startswith("GITHUB_") for slug in items)


def test_pages_add_up_to_one_order(store: Store) -> None:
    """Tools found only by similarity are counted, each on one page."""
    matching = store.search(Filters(query="give the buyer their money back"), VersionPins())
    pages = [
        store.select_page(matching, "relevance", True, start, 7).tolist()
        for start in range(0, len(matching.tool_ids), 7)
    ]
    all_values = [number for page in pages for number in page]
    assert sorted(all_values) == sorted(int(number) for number in matching.tool_ids)
    upwards = store.select_page(matching, "relevance", False, 0, len(all_values)).tolist()
    assert sorted(upwards) == sorted(all_values)


@pytest.mark.parametrize(
    "query",
    [
        "give the buyer their money back",
        "Send a message. Then file a bug!",
        "Send an email",
        "GITHUB_CREATE_ISSUE",
        "zzyzx",
    ],
)
def test_explanation_adds_up_to_the_score(store: Store, query: str) -> None:
    matching = store.search(Filters(query=query), VersionPins())
    assert matching.ranking is not None
    for number, score in zip(
        matching.ranking.top_ids.tolist(), matching.ranking.top_scores.tolist(), strict=True
    ):
        assert store.explain(query, matching, number).score == pytest.approx(score, abs=1e-5)


def test_equal_catalogs_give_equal_bytes(tmp_path: Path) -> None:
    """For any earlier builds and number of processes; a snapshot with vectors differs from one
    without.
    """
    catalog = generate_catalog(tmp_path / "catalog", 100)
    plain = build(catalog, tmp_path / "build", None).digest
    first = build(catalog, tmp_path / "build", None, semantic=True, jobs=2)
    assert first.digest != plain
    assert not build(catalog, tmp_path / "build", None, semantic=True).changed
    file = next((catalog / "toolkits" / "kit1").glob("*/*.yaml"))
    file.write_text(file.read_text().replace("description: ", "description: Anew. ", 1))
    repeated = build(catalog, tmp_path / "build", None, semantic=True)
    assert (
        repeated.digest
        == build(catalog, tmp_path / "fresh", None, semantic=True).digest
        != first.digest
    )


def test_large_catalogs_have_equal_lists_with_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes long, and the build says so."""
    monkeypatch.setattr(search_vectors, "_MAX_COMPARED", 50)
    monkeypatch.setattr(text_index, "MANY_BATCHES", 0)
    catalog = generate_catalog(tmp_path / "catalog", 100)
    steps: list[str] = []

    def report(description: str, total: int) -> AbstractContextManager[Advance]:
        steps.append(description)
        return no_progress(description, total)

    digests = {
        build(catalog, tmp_path / str(jobs), None, semantic=True, jobs=jobs, progress=report).digest
        for jobs in (1, 2)
    }
    assert len(digests) == 1
    assert steps.count("Writing the search index") == 2
    data = (tmp_path / "1/current" / snapshot_format.VECTORS).read_bytes()
    count = open_build(tmp_path / "1").version_count
    assert len(search_vectors.read_vectors(data, count).starts) > 10


def test_damaged_vectors_are_found_on_open(build_store: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(build_store, tmp_path / "build", symlinks=True)
    file = folder / "current" / snapshot_format.VECTORS
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(SnapshotError, match=snapshot_format.VECTORS):
        open_build(folder)


def test_search_falls_back_to_words_without_the_extra(
    build_store: Path, shipped_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as Python marks what cannot be imported
    without, plain = open_build(build_store), open_build(shipped_build)
    assert without.is_model_missing
    assert not plain.is_model_missing
    assert not without.has_semantic_search
    for query in ("give the buyer their money back", "create an issue"):
        assert search_slugs(without, query) == search_slugs(plain, query)


@pytest.mark.parametrize("is_signed", [False, True])
def test_model_of_a_store_is_loaded_only_if_it_is_signed(
    build_store: Path, is_signed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Native code parses a model: a writer of an unsigned store could attack servers with it."""
    private, keys = make_keys(tmp_path)
    storage = ObjectStorage(f"file://{tmp_path / 'store'}")
    signer = private if is_signed else None
    upload.upload_snapshot(storage, build_store, 4, no_progress, signer)
    cache, verify_keys = tmp_path / "cache", keys if is_signed else None
    follower = Follower(storage.url, cache, keys=verify_keys)
    follower.poll()
    assert not follower.last_error
    store = trusted_pointers.open_verified_build(cache, verify_keys)
    assert store.has_semantic_search == is_signed
    assert store.is_model_missing != is_signed
    # other commands have no key to verify it with
    assert not open_build(cache).has_semantic_search
    assert not open_snapshot(cache / "current").has_semantic_search
    assert "only by `serve --verify-key`" in caplog.text
    assert search_slugs(store, "refund")


def make_keys(folder: Path) -> tuple[SigningKey, VerifyKeys]:
    """Both halves of a key."""
    key = ed25519.Ed25519PrivateKey.generate()
    private, public = folder / "key.pem", folder / "key.pub.pem"
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    private.chmod(0o600)
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(pem, info))
    return SigningKey(private), VerifyKeys.load(public)


@pytest.mark.parametrize("missing", [{"query.model", "query.tokenizer"}, {"query.embeddings"}])
def test_snapshot_of_an_older_release_is_searched_by_words(
    missing: set[str], build_store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has vectors and no model for queries, or vectors in another file."""
    folder = Path(shutil.copytree(build_store, tmp_path / "build", symlinks=True)) / "current"
    shutil.copy(folder / "query.words", folder / "query.vectors")
    seal_files(folder, read_files(folder) - missing | {"query.vectors"})
    store = open_build(tmp_path / "build")
    assert not store.has_semantic_search
    assert search_slugs(store, "refund")
    assert "Build it again with --semantic" in caplog.text


def test_vectors_that_no_build_writes_are_refused(build_store: Path, tmp_path: Path) -> None:
    """Even if the manifest names them."""
    folder = Path(shutil.copytree(build_store, tmp_path / "build", symlinks=True)) / "current"
    file = folder / snapshot_format.VECTORS
    data = file.read_bytes()
    file.write_bytes(data[:16] + (1 << 40).to_bytes(8, "little") + data[24:])
    seal_files(folder, read_files(folder))
    with pytest.raises(SnapshotError, match="do not match"):
        open_build(tmp_path / "build")
    with pytest.raises(SnapshotError, match=snapshot_format.VECTORS):
        check_snapshot(folder, folder, "help")


def read_files(folder: Path) -> set[str]:
    """The files that the manifest names."""
    return {*orjson.loads((folder / snapshot_format.MANIFEST).read_bytes())["files"]}


def seal_files(folder: Path, paths: Iterable[str]) -> None:
    """Write a manifest of these files as they are."""
    fields = orjson.loads((folder / snapshot_format.MANIFEST).read_bytes())
    contents = {path: (folder / path).read_bytes() for path in paths}
    infos = {
        path: FileInfo(len(data), hashlib.sha256(data).hexdigest())
        for path, data in contents.items()
    }
    _, manifest = snapshot_format.seal_manifest(fields["about"], fields["counts"], infos)
    (folder / snapshot_format.MANIFEST).write_bytes(manifest)


MODEL_FILES = (snapshot_format.MODEL, snapshot_format.TOKENIZER)


@pytest.mark.parametrize("path", MODEL_FILES)
def test_damaged_model_is_found_on_open(path: str, build_store: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(build_store, tmp_path / "build", symlinks=True))
    file = folder / "current" / path
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(SnapshotError, match=f"damaged .*{path}"):
        open_build(folder)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows a vector for each of a few words, and their tokenizer."""
    return write_model(tmp_path_factory.mktemp("model"), DIMENSIONS)


WORDS = ("[UNK]", "[CLS]", "[SEP]", "money", "refund", "weather", "rain")
ALIKE = {"refund": "money", "rain": "weather"}


def write_model(folder: Path, dimensions: int) -> Path:
    """Write a model in the layout of sentence-transformers; words of ALIKE have equal vectors."""
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), dimensions)).astype(np.float32)
    vectors[:3] = 0
    for word, other in ALIKE.items():
        vectors[WORDS.index(word)] = vectors[WORDS.index(other)]
    weights = np.eye(dimensions, dtype=np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["vectors", "input_ids"], ["found"]),
            helper.make_node("MatMul", ["found", "weights"], ["states"]),
            helper.make_node("Identity", ["attention_mask"], ["mask"]),
        ],
        "words",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        [
            helper.make_tensor_value_info(
                "states", TensorProto.FLOAT, ["batch", "tokens", dimensions]
            ),
            helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "tokens"]),
        ],
        [
            numpy_helper.from_array(vectors, "vectors"),
            numpy_helper.from_array(weights, "weights"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(model, folder / "onnx" / "model.onnx")
    tokenizer = Tokenizer(
        WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=WORDS[0])
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_a_model_of_ones_own(model_folder: Path, tmp_path: Path) -> None:
    """The command line takes its folder. The snapshot contains it, so a search needs no folder; and
    it finds what this model alone means.
    """
    model = shutil.copytree(model_folder, tmp_path / "model")
    catalog, out = generate_catalog(tmp_path / "catalog", 3), tmp_path / "build"
    add_tool(catalog, "kit0", "KIT0_REFUND", 0)
    file = next((catalog / "toolkits" / "kit0" / "KIT0_REFUND").iterdir())
    file.write_text(re.sub("(?m)^name: .*$", "name: Refund", file.read_text(), count=1))
    run_successfully(
        "build", "--catalog", catalog, "--out", out, "--no-site", f"--semantic={model}"
    )
    shutil.rmtree(model)
    store = open_build(out)
    assert store.has_semantic_search
    assert search_slugs(store, "money")[0] == "KIT0_REFUND"
    assert "KIT0_REFUND" not in search_slugs(store, "weather")


def test_an_unusable_model_is_one_sentence(model_folder: Path, tmp_path: Path) -> None:
    """An incomplete folder, another dimension, or files of something else; nothing is written."""
    incomplete = tmp_path / "incomplete"
    incomplete.mkdir()
    (incomplete / "model.onnx").write_bytes(b"model")
    garbage = shutil.copytree(model_folder, tmp_path / "garbage")
    (garbage / "onnx" / "model.onnx").write_bytes(b"model")
    pooled = shutil.copytree(model_folder, tmp_path / "pooled")
    (pooled / "1_Pooling").mkdir()
    (pooled / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": false}')
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    os.mkfifo(pipe / "model.onnx")
    for folder, reason in (
        (pipe, "model.onnx is not a file"),
        (tmp_path / "missing", "has no model.onnx or onnx/model.onnx"),
        (incomplete, "has no tokenizer.json"),
        (write_model(tmp_path / "wide", 512), "its vectors have 512 numbers, not 384"),
        (garbage, "is unusable"),
        (pooled, "does not use the mean of the tokens"),
    ):
        with pytest.raises(UsageError) as error:
            build(SHIPPED_CATALOG, tmp_path / "build", None, semantic=folder)
        assert reason in str(error.value)
        assert "\n" not in str(error.value)
        assert not (tmp_path / "build").exists()


def test_a_model_that_computes_with_bytes_means_the_same(build_store: Path) -> None:
    """That of the snapshot is a quarter as large in memory, and its vectors are nearly the same."""
    plain = encoder.load_encoder()
    data = [
        (build_store / "current" / path).read_bytes()
        for path in (snapshot_format.MODEL, snapshot_format.TOKENIZER)
    ]
    quick = encoder.Encoder(model_files.open_model(Model(*data)))
    for text, _ in OBLIQUE:
        first, second = plain.encode_query(text), quick.encode_query(text)
        assert (first * second).sum(1).min() > 0.95


def test_build_without_the_extra_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r"pip install 'toolcatalog\[semantic\]'"):
        build(SHIPPED_CATALOG, tmp_path / "build", None, semantic=True)
    assert not (tmp_path / "build").exists()


def test_command_line_search(build_store: Path) -> None:
    text = run_successfully(
        "search",
        "give the buyer their money back",
        "--build",
        build_store,
        "--explain",
        "--limit",
        1,
    )
    assert text.startswith("STRIPE_CREATE_REFUND")
    assert "meaning" in text
    (item,) = orjson.loads(
        run_successfully(
            "search",
            "give the buyer their money back",
            "--build",
            build_store,
            "--format",
            "json",
            "--limit",
            1,
        )
    )
    assert 0 < item["made_of"]["meaning"] <= 1
    assert run_toolcatalog("build", "--help").stdout.count("--semantic") == 3


@pytest.fixture(scope="module")
def server(
    build_store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, str]]:
    folder = tmp_path_factory.mktemp("serving")
    key = create_key(folder / "keys.json")
    with start_server(build_store, folder, "--keys", str(folder / "keys.json")) as server:
        yield server, key


@pytest.mark.parametrize(("query", "slug"), OBLIQUE)
def test_http_search_has_the_same_order(
    server: tuple[Server, str], store: Store, query: str, slug: str
) -> None:
    """Repeated, page by page, with the right total."""
    index, key = server
    with httpx.Client(base_url=index.url, headers={"x-api-key": key}) as client:
        answers = [client.get(LIST, params={"query": query, "limit": 5}) for _ in range(3)]
        assert len({answer.content for answer in answers}) == 1
        answer = answers[0].json()
        assert [tool["slug"] for tool in answer["items"]] == search_slugs(store, query)[:5]
        assert slug in [tool["slug"] for tool in answer["items"]]
        assert answer["total_items"] == len(search_slugs(store, query))
        assert client.get(f"{LIST}/{slug}").status_code == 200


def test_request_without_a_key_reads_nothing(server: tuple[Server, str]) -> None:
    assert httpx.get(f"{server[0].url}{LIST}", params={"query": "money " * 100}).status_code == 401


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "please",
        "\u202e\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "a " * 499,
        "ж" * 1000,
        ". . .",
        "\x00",
    ],
)
def test_query_vectors_have_length_1(text: str) -> None:
    """For any query; an empty one has none."""
    vectors = encoder.load_encoder().encode_query(text)
    assert vectors.shape[1] == DIMENSIONS
    assert (len(vectors) == 0) == (not text.strip())
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def test_similar_texts_have_similar_vectors() -> None:
    tools = [
        ToolText("Shop", "create_refund", "Return a payment to a customer.", ["charge"]),
        ToolText("Sky", "getForecast", "The weather of the next days.", []),
    ]
    near = VectorIndex(
        b"".join(search_vectors.pack_vectors([encoder.load_encoder().encode_tools(tools)])), 2
    )
    for text, first in (("give the buyer their money back", 0), ("will it rain tomorrow", 1)):
        numbers, likeness = near.find_nearest(
            encoder.load_encoder().encode_query(text), np.ones(2, bool)
        )
        assert numbers[likeness.argmax()] == first
    assert encoder.load_encoder().encode_tools([]) == b""


@given(
    st.lists(st.lists(st.integers(3, 99), min_size=2, max_size=60), max_size=12),
    st.integers(8, 50),
    st.integers(16, 200),
)
def test_long_texts_are_cut_evenly(texts: list[list[int]], maximum: int, total: int) -> None:
    """Only if the whole does not fit; brackets stay."""
    shortened = encoder.truncate_texts(texts, maximum, total)
    for item, text in zip(shortened, texts, strict=True):
        assert (item[0], item[-1]) == (text[0], text[-1])
        assert item[:-1] == text[: len(item) - 1]
    cut = {len(item) for item, text in zip(shortened, texts, strict=True) if len(item) < len(text)}
    assert len(cut) <= 1
    assert all(len(item) <= (min(cut) if cut else maximum) for item in shortened)
    assert sum(map(len, shortened)) <= total or max(map(len, shortened)) <= 8


@given(st.lists(st.integers(1, 128), max_size=60))
def test_texts_of_equal_length_share_a_batch(lengths: list[int]) -> None:
    groups = [*encoder.group_by_length(lengths)]
    assert sorted(position for group in groups for position in group) == [*range(len(lengths))]
    for group in groups:
        assert 0 < len(group) <= 16
        assert (
            max(lengths[position] for position in group)
            - min(lengths[position] for position in group)
            <= 8
        )
