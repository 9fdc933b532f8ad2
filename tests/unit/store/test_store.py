"""The store: a build that is not whole is refused with one sentence, and a whole one answers by
version, filter and order.
"""

import gc
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from support.catalogs import add_tool, generate_catalog
from support.command import run_toolcatalog
from support.paths import DATA
from support.profile import example_settings
from support.server import create_key
from support.snapshot_reader import read_documents
from toolcatalog.build.pipeline import build
from toolcatalog.errors import SnapshotError
from toolcatalog.search.query.matching import Matches
from toolcatalog.search.query.ranking import Ranking
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.tables import Table, ToolIds, pack_table
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, SearchResult, Store, VersionPins

GOLDEN = DATA / "golden"
MEND = "run `toolcatalog build`, or name another build with --build."
NEWEST = VersionPins()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole build with sessions and auth configs. Copy it before damaging it."""
    folder = tmp_path_factory.mktemp("good") / "build"
    build(GOLDEN / "sessions" / "catalog", folder, None)
    return folder


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "build", symlinks=True))


def refusal(build: Path) -> str:
    """Why a build cannot be opened, without the advice that every such sentence ends with."""
    with pytest.raises(SnapshotError) as caught:
        open_build(build)
    message = str(caught.value)
    assert message.endswith(MEND)
    assert str(build) in message
    assert "\n" not in message
    return message


def test_long_names_of_labels_are_not_cached(good: Path) -> None:
    """No label has more than 200 characters, and a request can name thousands of longer ones."""
    store = open_build(good)
    previous = store._load_set.cache_info().currsize
    names = ["a" * 201]
    for filters in (Filters(tags=names), Filters(scopes=names), Filters(auth_configs=names)):
        assert len(store.search(filters, NEWEST).tool_ids) == 0
    assert store._load_set.cache_info().currsize <= previous + 1


def test_it_goes_with_its_last_holder(copy: Path) -> None:
    """Nobody has to look for what refers to itself: its files are mapped no more as soon as it is
    let go, whatever was asked of it.
    """
    gc.collect()
    gc.disable()
    try:
        store = open_build(copy)
        for pins in (NEWEST, VersionPins(default=store.all_versions()[0])):
            assert (
                store.search(Filters(toolkits=store.list_toolkits(), tags=["important"]), pins)
                is not None
            )
        result = store.search(Filters(query="red alpha"), NEWEST)
        assert store.select_page(result, "relevance", True, 0, 20) is not None
        assert store.get_tool(store.similar_slugs("ALPHA_REED", None)[0])
        assert store.read_document(0)
        assert str(copy) in Path("/proc/self/maps").read_text()
        del store, result
        assert str(copy) not in Path("/proc/self/maps").read_text()
    finally:
        gc.enable()


# What is not whole is refused


def removed(file: Path) -> str:
    file.unlink()
    return "is missing"


def emptied(file: Path) -> str:
    file.write_bytes(b"")
    return "has 0 bytes and should have"


def shortened(file: Path) -> str:
    file.write_bytes(file.read_bytes()[:-1])
    return "and should have"


def lengthened(file: Path) -> str:
    file.write_bytes(file.read_bytes() + b" ")
    return "and should have"


def folder_instead(file: Path) -> str:
    file.unlink()
    file.mkdir()
    return "is not a regular file"


def pipe_instead(file: Path) -> str:
    file.unlink()
    os.mkfifo(file)
    return "is not a regular file"


def flipped_head(file: Path) -> str:
    flip(file, 1)
    return "has other bytes than were written"


MAPPED = (
    "files.json",
    "query.covers",
    "query.facts",
    "query.numbers",
    "query.postings",
    "query.sets",
    "query.tools",
    "query.vocabularies",
    "query.words",
    "tools.json",
)
HEADED = (
    "query.covers",
    "query.facts",
    "query.numbers",
    "query.postings",
    "query.sets",
    "query.tools",
    "query.vocabularies",
    "query.words",
)


def flip(file: Path, place: int, bit: int = 0) -> None:
    """Change one bit of a file."""
    data = bytearray(file.read_bytes())
    data[place] ^= 1 << bit
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "paths"),
    [
        (removed, MAPPED),
        (emptied, MAPPED),
        (shortened, MAPPED),
        (lengthened, MAPPED),
        (folder_instead, MAPPED),
        (pipe_instead, MAPPED),
        (flipped_head, HEADED),
    ],
    ids=[
        "removed",
        "emptied",
        "shortened",
        "lengthened",
        "folder_instead",
        "pipe_instead",
        "flipped_head",
    ],
)
def test_every_damaged_file_is_found(
    damage: Callable[[Path], str], paths: tuple[str, ...], good: Path, copy: Path
) -> None:
    """Whichever file that is served from is missing, of another size or has a damaged head: the
    refusal names it and how.
    """
    folder = copy / "current"
    assert sorted(json.loads((folder / "manifest.json").read_bytes())["files"]) == [*MAPPED]
    for path in paths:
        text = damage(folder / path)
        message = refusal(copy)
        assert message.startswith(f"The build in {copy} is damaged ({path} "), message
        assert text in message
        if (folder / path).is_dir():
            (folder / path).rmdir()
        (folder / path).unlink(missing_ok=True)
        (folder / path).write_bytes((good / "current" / path).read_bytes())
    assert isinstance(open_build(copy), Store)


def test_the_listing_vouches_for_the_other_files(good: Path) -> None:
    """`files.json` has every file in the folders with the size and SHA-256 that it has, and the
    manifest has all others, except the compressed documents, whose bytes depend on a library.
    """
    folder = good / "current"
    manifest, listing = (
        json.loads((folder / path).read_bytes()) for path in ("manifest.json", "files.json")
    )
    listed = {**manifest["files"], **listing}
    results = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert sorted([*listed, "manifest.json", "tools.deflate"]) == sorted(results)
    assert all("/" in path for path in listing)
    for path, text in listed.items():
        assert text == {
            "size": len(results[path]),
            "sha256": hashlib.sha256(results[path]).hexdigest(),
        }


def answers(build: Path) -> dict[str, Any]:
    """What a store says to many questions, each by itself; "refused" where it does not answer.
    Opening may be refused as a whole.
    """
    try:
        store = open_build(build)
    except SnapshotError:
        return dict.fromkeys(QUESTIONS, "refused")
    return {name: answer(question, store) for name, question in QUESTIONS.items()}


def answer(question: Callable[[Store], Any], store: Store) -> Any:
    try:
        return question(store)
    except SnapshotError:
        return "refused"


def listed(filters: Filters, pins: VersionPins = NEWEST) -> Callable[[Store], Any]:
    return lambda store: named(
        store, store.select_page(store.search(filters, pins), "slug", False, 0, 100)
    )


def numbered(number: int) -> Callable[[Store], Any]:
    return lambda store: store.read_document(number)


def by_name(method: str, name: str) -> Callable[[Store], Any]:
    return lambda store: getattr(store, method)(name)


QUESTIONS: dict[str, Callable[[Store], Any]] = {
    **{f"document {number}": numbered(number) for number in range(6)},
    **{
        f"{slug}_READ": by_name("get_tool", f"{slug}_READ")
        for slug in ("ALPHA", "BETA", "GAMMA", "NOPE")
    },
    **{
        f"{slug}_WRITE": by_name("get_tool", f"{slug}_WRITE")
        for slug in ("ALPHA", "BETA", "GAMMA", "NOPE")
    },
    **{slug: by_name("get_toolkit_versions", slug) for slug in ("alpha", "beta", "gamma", "nope")},
    **{id: by_name("get_session", id) for id in ("trs_all", "trs_some", "trs_then", "trs_nope")},
    **{
        id: by_name("get_auth_config_toolkit", id)
        for id in ("ac_all", "ac_listed", "ac_read-only", "ac_nope")
    },
    **{
        f"word {word}": listed(Filters(query=word))
        for word in ("alpha", "read", "write", "gamma reads", "nope")
    },
    **{
        f"toolkit {slug}": listed(Filters(toolkits=[slug]))
        for slug in ("alpha", "beta", "gamma", "nope")
    },
    **{
        f"config {id}": listed(Filters(auth_configs=[id]))
        for id in ("ac_all", "ac_listed", "ac_read-only")
    },
    "all": listed(Filters()),
    "then": listed(Filters(), VersionPins(default="20250101_00")),
    "versions": lambda store: store.all_versions(),
    "near": lambda store: store.nearby_names("toolkit", "b", 500),
}


def test_no_changed_bit_is_handed_out(good: Path, copy: Path) -> None:
    """Whatever bit of whatever file is another one: each answer is the good one or a refusal, and
    what is not concerned is answered.
    """
    draw = random.Random(7)  # noqa: S311 - nothing secret
    expected, folder = answers(good), copy / "current"
    assert "refused" not in expected.values()
    for path in MAPPED:
        size = (folder / path).stat().st_size
        for location in [0, size - 1, *(draw.randrange(size) for _ in range(60))]:
            bit = draw.randrange(8)
            flip(folder / path, location, bit)
            text = answers(copy)
            flip(folder / path, location, bit)
            invalid = [name for name in text if text[name] not in (expected[name], "refused")]
            assert invalid == [], f"bit {bit} of byte {location} of {path}"
            rejected = [name for name in text if text[name] == "refused"]
            if path == "tools.json":
                assert sum(name.startswith("document ") for name in rejected) == (location > 0)
            if path not in HEADED:
                assert len(rejected) < len(QUESTIONS) / 2
            elif path in ("query.numbers", "query.tools", "query.facts"):
                assert rejected or location in range(28, 32), (
                    f"bit {bit} of byte {location} of {path}"
                )
    assert answers(copy) == expected


@pytest.mark.parametrize("path", ["query.postings", "query.words"])
def test_damage_met_by_a_query_says_what_to_do(path: str, copy: Path) -> None:
    """What is found only when it is read, perhaps at night and in a log, names the way out too."""
    store, file = open_build(copy), copy / "current" / path
    flip(file, file.stat().st_size - 1)  # the very pages that the store has mapped

    def ask_for_every_term() -> None:
        for number in range(len(store._index._terms)):
            store.search(Filters(query=store._index.term_at(number).text), NEWEST)

    with pytest.raises(SnapshotError) as caught:
        ask_for_every_term()
    assert str(caught.value).endswith(MEND)


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"7",
        b"{}",
        b'{"format":4}',
        b'{"format":4,"digest":"x","files":{}}',
        b'{"format":4,"digest":"x","files":7}',
        b'{"format":4,"digest":"x","files":["a"]}',
        b"\xff",
        b"\x00" * 500,
        b"[" * 5000,
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(manifest: bytes, copy: Path) -> None:
    """A manifest that is no JSON, or JSON of another shape, is reported as damaged."""
    (copy / "current/manifest.json").write_bytes(manifest)
    assert "damaged" in refusal(copy)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"sessions":3', '"sessions":4'),
        ('"size":', '"size":1'),
        ('"sha256":"', '"sha256":"0'),
        ('"title":"', '"title":"My '),
        ('"digest":"', '"digest":"0'),
        (',"files":{', ',"more":1,"files":{'),
        ('"files":{', '"files":{"a":{"size":0,"sha256":""},'),
    ],
)
def test_a_manifest_that_was_edited_is_refused(old: str, new: str, copy: Path) -> None:
    """Not one fact of a manifest can be changed, added or removed."""
    manifest = copy / "current/manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(old, new, 1))
    assert manifest.read_text() != text
    assert "(manifest.json is not the one that was written)" in refusal(copy)


def test_every_shortened_manifest_is_refused(copy: Path) -> None:
    """A manifest cut off at any place is refused."""
    manifest = copy / "current/manifest.json"
    data = manifest.read_bytes()
    for length in range(0, len(data), 97):
        manifest.write_bytes(data[:length])
        assert "damaged" in refusal(copy)


def test_another_format_is_not_damage(copy: Path) -> None:
    """A build of a newer or older program is refused as that, by both numbers."""
    manifest = copy / "current/manifest.json"
    manifest.write_text(manifest.read_text().replace('"format":4', '"format":3'))
    assert "has format 3, this program reads 4" in refusal(copy)


def test_a_file_that_the_manifest_does_not_list_changes_nothing(copy: Path) -> None:
    """Other files next to those of the snapshot, such as notes, are not read."""
    (copy / "current/toolkits/NOTE.txt").write_text("mine")
    assert isinstance(open_build(copy), Store)


def nothing(build: Path) -> None:
    shutil.rmtree(build)


def no_current(build: Path) -> None:
    (build / "current").unlink()


def dangling(build: Path) -> None:
    shutil.rmtree(build / "snapshots")


def circle(build: Path) -> None:
    (build / "current").unlink()
    (build / "current").symlink_to("current")


def no_manifest(build: Path) -> None:
    (build / "current/manifest.json").unlink()


def only_a_part(build: Path) -> None:
    snapshot = (build / "current").resolve()
    snapshot.rename(snapshot.with_name(f"{snapshot.name}.part"))


def a_file(build: Path) -> None:
    (build / "current").unlink()
    (build / "current").write_text("")


def manifest_folder(build: Path) -> None:
    no_manifest(build)
    (build / "current/manifest.json").mkdir()


def half_copied(build: Path) -> None:
    (build / "current/query.sets").unlink()


def older(build: Path) -> None:
    manifest = build / "current/manifest.json"
    manifest.write_text(manifest.read_text().replace('"format":4', '"format":3'))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (nothing, "There is no finished build in"),
        (no_current, "There is no finished build in"),
        (dangling, "There is no finished build in"),
        (only_a_part, "There is no finished build in"),
        (no_manifest, "There is no finished build in"),
        (circle, "cannot be read (Too many levels of symbolic links): move what is in its way, or"),
        (a_file, "cannot be read (Not a directory): move what is in its way, or"),
        (manifest_folder, "cannot be read (Is a directory): move what is in its way, or"),
        (half_copied, "is damaged (query.sets is missing)"),
        (older, "has format 3, this program reads 4"),
    ],
)
def test_serve_refuses_with_one_sentence(
    damage: Callable[[Path], None], text: str, copy: Path, tmp_path: Path
) -> None:
    """`serve` of a build that is missing, half there or foreign ends at once with 2 and one
    sentence that says what to run.
    """
    damage(copy)
    assert text in refusal(copy)
    keys = tmp_path / "keys.json"
    if damage in (nothing, half_copied):
        create_key(keys)
        done = run_toolcatalog("serve", "--build", copy, "--port", "0", "--keys", keys)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == f"error: {refusal(copy)}\n"


# What is whole is answered


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The golden catalog `history`: NOTES_CREATE at four versions, NOTES_SEARCH at two, NOTES_FIND
    and CLOCK_NOW at one.
    """
    folder = tmp_path_factory.mktemp("history")
    build(GOLDEN / "history" / "catalog", folder, None)
    return open_build(folder)


def found(store: Store, filters: Filters, pins: VersionPins = NEWEST) -> list[str]:
    return named(store, store.select_page(store.search(filters, pins), "slug", False, 0, 100))


def named(store: Store, numbers: ToolIds) -> list[str]:
    pieces, _ = store.read_documents(numbers)
    documents = json.loads(b"[" + b",".join(pieces) + b"]")
    assert [
        json.loads(bytes(store.read_document(number)[0])) for number in numbers.tolist()
    ] == documents
    return [f"{document['slug']}@{document['version']}" for document in documents]


@pytest.mark.parametrize(
    ("slug", "at", "version"),
    [
        ("NOTES_CREATE", None, "99999999_99"),
        ("NOTES_CREATE", "99999999_99", "99999999_99"),
        ("NOTES_CREATE", "20250601_00", "20250101_01"),
        ("NOTES_CREATE", "20250101_01", "20250101_01"),
        ("NOTES_CREATE", "20250101_00", "20250101_00"),
        ("NOTES_CREATE", "20250100_99", "00000000_00"),
        ("NOTES_CREATE", "00000000_00", "00000000_00"),
        ("NOTES_FIND", "20250101_00", None),
        ("NOTES_FIND", "20250101_01", "20250101_01"),
    ],
)
def test_version_at(slug: str, at: str | None, version: str | None, store: Store) -> None:
    """In force is the newest version not newer than the one asked for; a tool that had none yet has
    none.
    """
    entry = store.get_tool(slug)
    assert entry is not None
    assert entry.version_at(at) == version


@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        (
            NEWEST,
            [
                "CLOCK_NOW@20250601_00",
                "NOTES_CREATE@99999999_99",
                "NOTES_FIND@20250101_01",
                "NOTES_SEARCH@20250601_00",
            ],
        ),
        (
            VersionPins(default="20250101_00"),
            ["NOTES_CREATE@20250101_00", "NOTES_SEARCH@20250101_00"],
        ),
        (VersionPins(default="00000000_00"), ["NOTES_CREATE@00000000_00"]),
        (
            VersionPins(default="20250101_00", toolkits={"clock": "20250601_00"}),
            ["CLOCK_NOW@20250601_00", "NOTES_CREATE@20250101_00", "NOTES_SEARCH@20250101_00"],
        ),
        (
            VersionPins(default="00000000_00", toolkits={"notes": None}),
            ["NOTES_CREATE@99999999_99", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250601_00"],
        ),
        (
            VersionPins(toolkits={"notes": "00000000_00"}),
            ["CLOCK_NOW@20250601_00", "NOTES_CREATE@00000000_00"],
        ),
    ],
)
def test_toolkits_at_versions(pins: VersionPins, expected: list[str], store: Store) -> None:
    """Each toolkit is there as it was at its own pin, else at the one for all, else as it is
    now.
    """
    assert found(store, Filters(), pins) == expected


@pytest.mark.parametrize(
    ("filters", "pins", "expected"),
    [
        (Filters(toolkits=["clock"]), NEWEST, ["CLOCK_NOW@20250601_00"]),
        (Filters(toolkits=["nothing"]), NEWEST, []),
        (Filters(toolkits=[]), NEWEST, []),
        (Filters(tags=["important", "readOnlyHint"]), NEWEST, ["NOTES_FIND@20250101_01"]),
        (
            Filters(tags=["important"]),
            VersionPins(default="20250101_01"),
            ["NOTES_CREATE@20250101_01"],
        ),
        (Filters(tags=["Important"]), VersionPins(default="20250101_01"), []),
        (
            Filters(only_important=True),
            VersionPins(default="20250101_00"),
            ["NOTES_CREATE@20250101_00"],
        ),
        (Filters(only_important=True), NEWEST, []),
        (Filters(scopes=["clock", "nope"]), NEWEST, ["CLOCK_NOW@20250601_00"]),
        (Filters(scopes=["notes:write"]), NEWEST, []),
        (
            Filters(scopes=["notes:write"]),
            VersionPins(default="20250601_00"),
            ["NOTES_CREATE@20250101_01"],
        ),
        (
            Filters(include_deprecated=False),
            NEWEST,
            ["CLOCK_NOW@20250601_00", "NOTES_FIND@20250101_01"],
        ),
        (
            Filters(include_deprecated=False, toolkits=["notes"]),
            VersionPins(default="20250101_01"),
            ["NOTES_CREATE@20250101_01", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250101_00"],
        ),
        (Filters(query="labels"), NEWEST, []),
        (Filters(query="labels"), VersionPins(default="20250101_01"), ["NOTES_CREATE@20250101_01"]),
        (
            Filters(query="TIME word"),
            NEWEST,
            ["CLOCK_NOW@20250601_00", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250601_00"],
        ),
        (Filters(query="???"), NEWEST, []),
    ],
)
def test_filters_apply_to_the_effective_version(
    filters: Filters, pins: VersionPins, expected: list[str], store: Store
) -> None:
    """Each filter by itself, also where only one of the newest and the effective version of a tool
    passes it.
    """
    assert found(store, filters, pins) == expected


def test_auth_configs_narrow_to_what_they_can_use(good: Path) -> None:
    """Without limits a config takes its toolkit, with scopes what these cover, with both what
    passes both; several add up.
    """
    store = open_build(good)
    everything = ["ALPHA_READ@20250101_00", "ALPHA_WRITE@20250601_00"]
    assert found(store, Filters(auth_configs=["ac_all"])) == everything
    assert found(store, Filters(auth_configs=["ac_read-only"])) == everything[:1]
    assert found(store, Filters(auth_configs=["ac_listed"])) == ["BETA_WRITE@20250601_00"]
    assert found(store, Filters(auth_configs=["ac_listed", "ac_read-only"])) == [
        "ALPHA_READ@20250101_00",
        "BETA_WRITE@20250601_00",
    ]
    assert found(
        store, Filters(auth_configs=["ac_listed", "ac_read-only"], toolkits=["beta", "gamma"])
    ) == ["BETA_WRITE@20250601_00"]


@pytest.mark.parametrize(
    ("sort_by", "descending", "expected"),
    [
        ("slug", False, ["CLOCK_NOW", "NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"]),
        ("slug", True, ["NOTES_SEARCH", "NOTES_FIND", "NOTES_CREATE", "CLOCK_NOW"]),
        ("name", False, ["CLOCK_NOW", "NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"]),
        ("name", True, ["NOTES_SEARCH", "NOTES_FIND", "CLOCK_NOW", "NOTES_CREATE"]),
        ("version", False, ["NOTES_SEARCH", "NOTES_CREATE", "NOTES_FIND", "CLOCK_NOW"]),
        ("version", True, ["CLOCK_NOW", "NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"]),
        ("relevance", False, ["CLOCK_NOW", "NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"]),
        ("relevance", True, ["CLOCK_NOW", "NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"]),
    ],
)
def test_ties_go_by_slug(sort_by: str, descending: bool, expected: list[str], store: Store) -> None:
    """Two tools of one name, or of one version, stand in slug order whichever way the order goes;
    without scores all are equal.
    """
    everything = store.search(Filters(), VersionPins(toolkits={"notes": "20250101_01"}))
    assert [
        row.partition("@")[0]
        for row in named(store, store.select_page(everything, sort_by, descending, 0, 100))
    ] == expected


def test_relevance_follows_the_scores(store: Store) -> None:
    """The best score comes first going down and last going up."""
    items = store.search(Filters(query="find notes"), NEWEST)
    assert items.ranking is not None
    scores = dict(
        zip(items.ranking.top_ids.tolist(), items.ranking.top_scores.tolist(), strict=True)
    )
    best, *_, worst = sorted(scores, key=lambda number: -scores[number])
    assert named(store, np.array([best], np.uint32)) == ["NOTES_FIND@20250101_01"]
    down, up = (
        store.select_page(items, "relevance", descending, 0, 100) for descending in (True, False)
    )
    assert (down[0], down[-1], up[0], up[-1]) == (best, worst, worst, best)


def test_a_word_asked_twice_counts_once(store: Store) -> None:
    """Saying a word again changes no score, and neither does case."""
    once, repeated = (
        store.search(Filters(query=query), NEWEST)
        for query in ("find some notes", "find notes find NOTES Find find")
    )
    assert once.ranking is not None
    assert repeated.ranking is not None
    scores, repeated_scores = (
        result.load_all().scores for result in (once.ranking, repeated.ranking)
    )
    assert scores.tolist() == pytest.approx(repeated_scores.tolist())
    assert once.ranking.top_scores.tolist() == pytest.approx(repeated.ranking.top_scores.tolist())
    assert scores.max() > 0


def test_slugs_keep_the_requested_order(store: Store) -> None:
    """By slug: in the requested order, at the effective versions; unknown and hidden tools, and
    those that did not exist yet, are left out.
    """
    slugs = ["NOTES_SEARCH", "NOPE", "CLOCK_NOW", "NOTES_CREATE"]
    now = ["NOTES_SEARCH@20250601_00", "CLOCK_NOW@20250601_00", "NOTES_CREATE@99999999_99"]
    following = ["NOTES_SEARCH@20250101_00", "NOTES_CREATE@20250101_00"]
    assert named(store, store.resolve_slugs(slugs, NEWEST, None)) == now
    assert named(store, store.resolve_slugs(slugs, NEWEST, {"clock"})) == now[1:2]
    assert (
        named(store, store.resolve_slugs(slugs, VersionPins(default="20250101_00"), None))
        == following
    )


def test_similar_names_each_tool_once(store: Store) -> None:
    """Candidates for "did you mean" share a word with the slug, each tool once whatever its
    versions, none of a toolkit out of sight.
    """
    assert "NOTES_CREATE" in store.similar_slugs("NOTES_CREAT", None)[:2]
    result = store.similar_slugs("NOTES-CREAT", None)
    assert len(result) == len({*result}) >= 3
    assert {*result} > {"NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"}
    assert store.similar_slugs("CREATE_NOTE", {"clock"}) == ["CLOCK_NOW"]
    # the next ones in slug order, with or without a word in common
    assert {*store.similar_slugs("ZZZ", None)} == {*result, "CLOCK_NOW"}
    assert store.similar_slugs("ZZZ", {"clock"}) == ["CLOCK_NOW"]
    assert store.similar_slugs("ZZZ", set()) == []


def test_what_is_there_and_what_is_not(store: Store) -> None:
    """A tool has its toolkit, versions and numbers, a toolkit its versions, perhaps none; an
    unknown name has none of these.
    """
    entry = store.get_tool("NOTES_SEARCH")
    assert entry is not None
    assert entry == ("notes", 6, ["20250101_00", "20250601_00"])
    assert [entry.tool_id(version) for version in entry.versions] == [6, 7]
    assert store.get_toolkit_versions("nothing") == []
    assert store.get_toolkit_versions("clock") == ["20250601_00"]
    assert store.all_versions() == [
        "00000000_00",
        "20250101_00",
        "20250101_01",
        "20250601_00",
        "99999999_99",
    ]
    assert [
        store.get_tool("NOPE"),
        store.get_toolkit_versions("nope"),
        store.get_auth_config_toolkit("nope"),
        store.get_session("nope"),
    ] == [None] * 4
    assert [*store.read_documents(np.zeros(0, np.uint32))[0]] == []


def test_sessions_and_auth_configs(good: Path) -> None:
    """A session is its owner, its toolkits and the bytes of its file; an auth config is its
    toolkit; near names are of one kind.
    """
    store, folder = open_build(good), good / "current"
    for id, project, toolkits in (
        ("trs_all", "default", ["alpha", "beta", "gamma"]),
        ("trs_some", "other", ["alpha", "beta"]),
        ("trs_then", "default", ["alpha", "beta"]),
    ):
        result = store.get_session(id)
        assert result is not None
        assert (result.project, result.toolkits) == (project, toolkits)
        assert result.answer == (folder / f"sessions/{id}.json").read_bytes()
    assert [store.get_auth_config_toolkit(id) for id in ("ac_all", "ac_listed")] == [
        "alpha",
        "beta",
    ]
    assert store.auth_configs("alpha") == ["ac_all", "ac_read-only"]
    assert store.auth_configs("gamma") == store.auth_configs("nope") == []
    assert store.nearby_names("auth_config", "ac_list", 500) == [
        "ac_all",
        "ac_listed",
        "ac_read-only",
    ]
    assert store.nearby_names("auth_config", "ac_list", 1) == ["ac_all", "ac_listed"]
    assert store.nearby_names("toolkit", "zeta", 500) == ["alpha", "beta", "gamma"]


def test_tags_tell_documents_apart(store: Store) -> None:
    """A document's tag is of its bytes; that of several is of all of them in their order."""
    for number in range(8):
        document, tag = store.read_document(number)
        assert tag == hashlib.sha256(document).hexdigest()[:32].encode()
    orders = ([0, 1], [1, 0], [0], [1], [0, 1, 2], [7, 6])
    assert len(
        {store.read_documents(np.array(numbers, np.uint32))[1] for numbers in orders}
    ) == len(orders)


def test_every_selection_is_joined_as_one_by_one(store: Store) -> None:
    """Whatever numbers are asked for, in whatever order and how often: their documents with commas
    between.
    """
    draw = random.Random(5)  # noqa: S311 - nothing secret
    for _ in range(300):
        numbers = [draw.randrange(8) for _ in range(draw.randrange(1, 8))]
        pieces, _ = store.read_documents(np.array(numbers, np.uint32))
        assert b",".join(pieces) == b",".join(store.read_document(number)[0] for number in numbers)


@pytest.mark.parametrize("pins", [NEWEST, VersionPins(default="20250101_00")])
def test_replacement_has_the_score_of_the_deprecated_tool(
    pins: VersionPins, tmp_path: Path
) -> None:
    """At each effective version; only if it matches the query, and if both are deprecated too."""
    root = generate_catalog(tmp_path / "catalog", 0, 2)
    for kit, slug, name, replacement in (
        ("kit0", "KIT0_A", "Pay with a card", "KIT0_B"),
        ("kit0", "KIT0_B", "Pay", "KIT1_C"),
        ("kit0", "KIT0_D", "Pay with a card by mail", ""),
        ("kit1", "KIT1_C", "Refund", ""),
    ):
        for version in ("20250101_00", "20250601_00"):
            add_tool(root, kit, slug, version=version)
            path = root / "toolkits" / kit / slug / f"{version}.yaml"
            text = path.read_text().replace("Do 0", name)
            if replacement:
                text += f"deprecation: {{reason: Old., replaced_by: {replacement}}}\n"
            path.write_text(text)
    build(root, tmp_path / "build", None)
    store = open_build(tmp_path / "build")
    result = store.search(Filters(query="pay with a card"), pins)
    page = store.select_page(result, "relevance", True, 0, 9)
    slugs = [json.loads(bytes(store.read_document(int(i))[0]))["slug"] for i in page]
    assert slugs[:3] == ["KIT0_A", "KIT0_B", "KIT0_D"]
    assert result.ranking is not None
    scores = dict(zip(result.ranking.top_ids, result.ranking.top_scores, strict=True))
    # the name of the first is the query, for which it gets 2
    assert scores[page[1]] == pytest.approx(1.001 * (scores[page[0]] - 2))


# Pages and versions against a plain model


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[dict[str, Any]]]:
    """A store of sixty tools in up to four versions, few names among them, and its documents by
    number.
    """
    folder = tmp_path_factory.mktemp("mixed")
    root, draw = generate_catalog(folder / "catalog", 0, 4), random.Random(3)  # noqa: S311
    for number in range(60):
        toolkit = draw.randrange(4)
        for version in draw.sample(VERSIONS, draw.randrange(1, 5)):
            add_tool(
                root,
                f"kit{toolkit}",
                f"KIT{toolkit}_{draw.choice('ABC')}{number}",
                draw.randrange(6),
                version,
            )
    build(root, folder / "build", None)
    results = sorted(
        map(json.loads, read_documents(folder / "build" / "current").values()),
        key=lambda item: (item["slug"], item["version"]),
    )
    return open_build(folder / "build"), results


def in_order(keys: dict[int, Any], descending: bool) -> list[int]:
    """Numbers in the order of their keys; ties by number, whichever way the order goes."""
    return [
        number
        for key in sorted({*keys.values()}, reverse=descending)
        for number in sorted(keys)
        if keys[number] == key
    ]


def ranking_of(numbers: list[int], draw: random.Random) -> Ranking:
    """Scores for these numbers, and others for some of them, which were looked at closely."""
    best = sorted(draw.sample(numbers, draw.randrange(len(numbers) + 1)))
    scores, closely = (
        np.array([draw.choice([0.25, 0.5, 1.5]) for _ in items], np.float32)
        for items in (numbers, best)
    )
    matches = Matches(np.array(numbers, np.uint32), scores)
    return Ranking(len(numbers), np.array(best, np.uint32), closely, lambda: matches)


VERSIONS = ("20240101_00", "20240101_01", "20250101_00", "20250601_00", "20260101_00")


@example_settings(50)
@given(data=st.data())
def test_pages_of_any_selection(
    data: st.DataObject, mixed: tuple[Store, list[dict[str, Any]]]
) -> None:
    """Whatever was found, in any order: each page is the part of the sorted whole that it must
    be.
    """
    store, all_values = mixed
    numbers = sorted(data.draw(st.sets(st.integers(0, len(all_values) - 1))))
    sort_by, descending = (
        data.draw(st.sampled_from(["slug", "name", "version", "relevance"])),
        data.draw(st.booleans()),
    )
    if sort_by == "relevance":  # of which there is none without a query
        expected = numbers
    elif sort_by == "slug":
        expected = numbers[::-1] if descending else numbers
    else:
        expected = in_order({number: all_values[number][sort_by] for number in numbers}, descending)
    size = data.draw(st.integers(1, 12))
    starts = range(0, len(numbers) + 2 * size, size)
    for start in (*starts, data.draw(st.integers(0, 200))):
        assert (
            store.select_page(
                SearchResult(BitMap(numbers)), sort_by, descending, start, size
            ).tolist()
            == expected[start : start + size]
        )


@pytest.mark.parametrize("descending", [False, True])
def test_pages_by_relevance(descending: bool, mixed: tuple[Store, list[dict[str, Any]]]) -> None:
    """Those looked at closely come before all others, or, upwards, behind them; among themselves
    both go by their scores.
    """
    draw = random.Random(4)  # noqa: S311 - nothing secret
    for _ in range(300):
        ranked = ranking_of(sorted(draw.sample(range(100), draw.randrange(1, 12))), draw)
        best = in_order(
            dict(zip(ranked.top_ids.tolist(), ranked.top_scores.tolist(), strict=True)), descending
        )
        scores = dict(zip(*map(np.ndarray.tolist, ranked.load_all()), strict=True))
        others = in_order(
            {number: score for number, score in scores.items() if number not in best}, descending
        )
        expected, size = best + others if descending else others + best, draw.randrange(1, 12)
        for start in range(14):
            page = (
                mixed[0]
                .select_page(SearchResult(ranked), "relevance", descending, start, size)
                .tolist()
            )
            assert page == expected[start : start + size]


@example_settings(33)
@given(
    everywhere=st.none()
    | st.sampled_from([*VERSIONS, "20230101_00", "20250701_00", "99999999_99"]),
    pinned=st.dictionaries(
        st.sampled_from(["kit0", "kit1", "kit2", "nope"]), st.none() | st.sampled_from(VERSIONS)
    ),
    toolkits=st.none() | st.lists(st.sampled_from(["kit0", "kit1", "kit3", "nope"]), unique=True),
)
def test_effective_versions_of_any_pins(
    everywhere: str | None,
    pinned: dict[str, str | None],
    toolkits: list[str] | None,
    mixed: tuple[Store, list[dict[str, Any]]],
) -> None:
    """Of each tool the newest version that is not newer than its pin, whatever is pinned."""
    store, all_values = mixed
    effective: dict[str, int] = {}
    for number, document in enumerate(all_values):
        toolkit = document["toolkit"]["slug"]
        index = pinned.get(toolkit, everywhere)
        if (index is None or document["version"] <= index) and (
            toolkits is None or toolkit in toolkits
        ):
            effective[document["slug"]] = number
    result = store.search(
        Filters(toolkits=toolkits), VersionPins(default=everywhere, toolkits=pinned)
    )
    assert [*result.tool_ids] == sorted(effective.values())


def test_an_empty_catalog_is_served(tmp_path: Path) -> None:
    """No tools: nothing is found, and nothing fails."""
    build(generate_catalog(tmp_path / "catalog", 0, 0), tmp_path / "build", None)
    store = open_build(tmp_path / "build")
    for filters in (
        Filters(),
        Filters(query="anything"),
        Filters(tags=["a"]),
        Filters(toolkits=["kit0"]),
    ):
        for pins in (NEWEST, VersionPins(default="20250101_00")):
            items = store.search(filters, pins)
            assert len(items.tool_ids) == 0
            assert store.select_page(items, "name", True, 0, 20).tolist() == []
    assert (store.get_tool("A"), store.all_versions(), store.similar_slugs("A_B", None)) == (
        None,
        [],
        [],
    )


def test_fields_of_a_newer_release_are_ignored(copy: Path) -> None:
    """A toolkit may have more fields than this release reads."""
    file = copy / "current" / snapshot_format.FACTS
    facts = Table(file.read_bytes())
    names = facts.names(0, len(facts))
    values = [facts.get(name) or b"" for name in names]
    position = next(n for n, name in enumerate(names) if name.startswith("toolkit_info "))
    values[position] = values[position].replace(b'"homepage"', b'"homepag2"')
    assert "homepag2" in json.loads(values[position])
    file.write_bytes(b"".join(pack_table(names, [*map(len, values)], values)))
    slug = names[position].partition(" ")[2]
    toolkit = open_build(copy).get_toolkit(slug)
    assert toolkit is not None
    assert (toolkit.slug, toolkit.name) == (slug, json.loads(values[position])["name"])
