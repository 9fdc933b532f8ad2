"""The store: a build that is not whole is refused with one sentence, and a whole one answers by version, filter and order."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from running import new_key, toolcatalog
from toolcatalog.build import build
from toolcatalog.errors import SnapshotError
from toolcatalog.store import Filters, Pins, Store, open_build

GOLDEN = Path(__file__).parent / "golden"
MEND = "run `toolcatalog build`, or name another build with --build."
NEWEST = Pins()


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


def flipped(file: Path) -> str:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    return "has other bytes than were written"


def folder_instead(file: Path) -> str:
    file.unlink()
    file.mkdir()
    return "is missing"


@pytest.mark.parametrize("damage", [removed, emptied, shortened, lengthened, flipped, folder_instead], ids=lambda damage: damage.__name__)
def test_every_damaged_file_is_found(damage: Callable[[Path], str], good: Path, copy: Path) -> None:
    """Whichever file of the snapshot is damaged, in whatever way, the refusal names it and how."""
    folder = copy / "current"
    paths = [*json.loads((folder / "manifest.json").read_bytes())["files"]]
    assert len(paths) == 20
    for path in paths:
        said = damage(folder / path)
        message = refusal(copy)
        assert message.startswith(f"The build in {copy} is damaged ({path} "), message
        assert said in message
        if (folder / path).is_dir():
            (folder / path).rmdir()
        (folder / path).write_bytes((good / "current" / path).read_bytes())
    assert isinstance(open_build(copy), Store)


def test_several_damaged_files_are_counted(copy: Path) -> None:
    """The first damaged file is named and the others are counted."""
    shutil.rmtree(copy / "current/sessions")
    assert "(sessions/trs_all.json is missing and 2 more)" in refusal(copy)


@pytest.mark.parametrize(
    "manifest",
    [b"", b"{", b"null", b"[]", b'"x"', b"7", b"{}", b'{"format":1}', b'{"format":1,"digest":"x","files":{}}',
     b'{"format":1,"digest":"x","files":7}', b'{"format":1,"digest":"x","files":["a"]}', b"\xff", b"\x00" * 500, b"[" * 5000],
)  # fmt: skip
def test_a_manifest_that_is_not_ours_is_refused(manifest: bytes, copy: Path) -> None:
    """A manifest that is no JSON, or JSON of another shape, is reported as damaged."""
    (copy / "current/manifest.json").write_bytes(manifest)
    assert "damaged" in refusal(copy)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"sessions":3', '"sessions":4'), ('"size":', '"size":1'), ('"sha256":"', '"sha256":"0'), ('"title":"', '"title":"My '),
     ('"digest":"', '"digest":"0'), (',"files":{', ',"more":1,"files":{'), ('"files":{', '"files":{"a":{"size":0,"sha256":""},')],
)  # fmt: skip
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


def test_another_format_is_told_from_damage(copy: Path) -> None:
    """A build of a newer or older program is refused as that, by both numbers."""
    manifest = copy / "current/manifest.json"
    manifest.write_text(manifest.read_text().replace('"format":1', '"format":2'))
    assert "has format 2, this program reads 1" in refusal(copy)


def test_a_file_that_the_manifest_does_not_list_changes_nothing(copy: Path) -> None:
    """What lies beside the snapshot's files, such as a note of a person, is not read."""
    (copy / "current/tools/NOTE.txt").write_text("mine")
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
    shutil.rmtree(build / "current/toolkits")


def newer(build: Path) -> None:
    manifest = build / "current/manifest.json"
    manifest.write_text(manifest.read_text().replace('"format":1', '"format":2'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (nothing, "There is no finished build in"),
        (no_current, "There is no finished build in"),
        (dangling, "There is no finished build in"),
        (only_a_part, "There is no finished build in"),
        (no_manifest, "There is no finished build in"),
        (circle, "cannot be read (Too many levels of symbolic links): mend its permissions, or"),
        (a_file, "cannot be read (Not a directory): mend its permissions, or"),
        (manifest_folder, "cannot be read (Is a directory): mend its permissions, or"),
        (half_copied, "is damaged (toolkits/alpha/20250101_00.json is missing and"),
        (newer, "has format 2, this program reads 1"),
    ],
)
def test_serve_refuses_with_one_sentence(damage: Callable[[Path], None], said: str, copy: Path, tmp_path: Path) -> None:
    """`serve` of a build that is missing, half there or foreign ends at once with 2 and one sentence that says what to run."""
    damage(copy)
    assert said in refusal(copy)
    keys = tmp_path / "keys.json"
    if damage in (nothing, half_copied):
        new_key(keys)
        done = toolcatalog("serve", "--build", copy, "--port", "0", "--keys", keys)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == f"error: {refusal(copy)}\n"


# What is whole is answered


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The golden catalog `history`: NOTES_CREATE at four versions, NOTES_SEARCH at two, NOTES_FIND and CLOCK_NOW at one."""
    folder = tmp_path_factory.mktemp("history")
    build(GOLDEN / "history" / "catalog", folder, None)
    return open_build(folder)


def found(store: Store, filters: Filters, pins: Pins = NEWEST) -> list[str]:
    numbers, _ = store.matching(filters, pins)
    return named(store, store.ordered(numbers, {}, "slug", descending=False))


def named(store: Store, numbers: list[int]) -> list[str]:
    documents = [json.loads(document) for document in store.documents(numbers)]
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
    """In force is the newest version not newer than the one asked for; a tool that had none yet has none."""
    assert store.version_at(slug, at) == version


@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        (NEWEST, ["CLOCK_NOW@20250601_00", "NOTES_CREATE@99999999_99", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250601_00"]),
        (Pins(everywhere="20250101_00"), ["NOTES_CREATE@20250101_00", "NOTES_SEARCH@20250101_00"]),
        (Pins(everywhere="00000000_00"), ["NOTES_CREATE@00000000_00"]),
        (
            Pins(everywhere="20250101_00", toolkits={"clock": "20250601_00"}),
            ["CLOCK_NOW@20250601_00", "NOTES_CREATE@20250101_00", "NOTES_SEARCH@20250101_00"],
        ),
        (
            Pins(everywhere="00000000_00", toolkits={"notes": None}),
            ["NOTES_CREATE@99999999_99", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250601_00"],
        ),
        (Pins(toolkits={"notes": "00000000_00"}), ["CLOCK_NOW@20250601_00", "NOTES_CREATE@00000000_00"]),
    ],
)
def test_toolkits_at_versions(pins: Pins, expected: list[str], store: Store) -> None:
    """Each toolkit is there as it was at its own pin, else at the one for all, else as it is now."""
    assert found(store, Filters(), pins) == expected


@pytest.mark.parametrize(
    ("filters", "pins", "expected"),
    [
        (Filters(toolkits=["clock"]), NEWEST, ["CLOCK_NOW@20250601_00"]),
        (Filters(toolkits=["nothing"]), NEWEST, []),
        (Filters(toolkits=[]), NEWEST, []),
        (Filters(tags=["important", "readOnlyHint"]), NEWEST, ["NOTES_FIND@20250101_01"]),
        (Filters(tags=["important"]), Pins(everywhere="20250101_01"), ["NOTES_CREATE@20250101_01"]),
        (Filters(tags=["Important"]), Pins(everywhere="20250101_01"), []),
        (Filters(important=True), Pins(everywhere="20250101_00"), ["NOTES_CREATE@20250101_00"]),
        (Filters(important=True), NEWEST, []),
        (Filters(scopes=["clock", "nope"]), NEWEST, ["CLOCK_NOW@20250601_00"]),
        (Filters(scopes=["notes:write"]), NEWEST, []),
        (Filters(scopes=["notes:write"]), Pins(everywhere="20250601_00"), ["NOTES_CREATE@20250101_01"]),
        (Filters(deprecated=False), NEWEST, ["CLOCK_NOW@20250601_00", "NOTES_FIND@20250101_01"]),
        (
            Filters(deprecated=False, toolkits=["notes"]),
            Pins(everywhere="20250101_01"),
            ["NOTES_CREATE@20250101_01", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250101_00"],
        ),
        (Filters(query="labels"), NEWEST, []),
        (Filters(query="labels"), Pins(everywhere="20250101_01"), ["NOTES_CREATE@20250101_01"]),
        (Filters(query="TIME word"), NEWEST, ["CLOCK_NOW@20250601_00", "NOTES_FIND@20250101_01", "NOTES_SEARCH@20250601_00"]),
        (Filters(query="???"), NEWEST, []),
    ],
)
def test_filters_look_at_the_version_in_force(filters: Filters, pins: Pins, expected: list[str], store: Store) -> None:
    """Each filter by itself, also where the newest version of a tool passes it and the one in force does not, or the other way round."""
    assert found(store, filters, pins) == expected


def test_auth_configs_narrow_to_what_they_can_use(good: Path) -> None:
    """Without limits a config takes its toolkit, with scopes what these cover, with both what passes both; several add up."""
    store = open_build(good)
    everything = ["ALPHA_READ@20250101_00", "ALPHA_WRITE@20250601_00"]
    assert found(store, Filters(auth_configs=["ac_all"])) == everything
    assert found(store, Filters(auth_configs=["ac_read-only"])) == everything[:1]
    assert found(store, Filters(auth_configs=["ac_listed"])) == ["BETA_WRITE@20250601_00"]
    assert found(store, Filters(auth_configs=["ac_listed", "ac_read-only"])) == ["ALPHA_READ@20250101_00", "BETA_WRITE@20250601_00"]
    assert found(store, Filters(auth_configs=["ac_listed", "ac_read-only"], toolkits=["beta", "gamma"])) == ["BETA_WRITE@20250601_00"]


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
    """Two tools of one name, or of one version, stand in slug order whichever way the order goes; without scores all are equal."""
    pins = Pins(toolkits={"notes": "20250101_01"})
    numbers, scores = store.matching(Filters(), pins)
    assert [row.partition("@")[0] for row in named(store, store.ordered(numbers, scores, sort_by, descending))] == expected


def test_relevance_follows_the_scores(store: Store) -> None:
    """The best score comes first going down and last going up."""
    numbers, scores = store.matching(Filters(query="find notes"), NEWEST)
    best, *_, worst = sorted(numbers, key=lambda number: -scores[number])
    assert named(store, [best]) == ["NOTES_FIND@20250101_01"]
    down, up = (store.ordered(numbers, scores, "relevance", descending) for descending in (True, False))
    assert (down[0], down[-1], up[0], up[-1]) == (best, worst, worst, best)


def test_named_keeps_the_order_asked_for(store: Store) -> None:
    """By slug: in the order asked for, in force under the pins; unknown tools, unseen ones and those not there yet are left out."""
    slugs = ["NOTES_SEARCH", "NOPE", "CLOCK_NOW", "NOTES_CREATE"]
    now = ["NOTES_SEARCH@20250601_00", "CLOCK_NOW@20250601_00", "NOTES_CREATE@99999999_99"]
    then = ["NOTES_SEARCH@20250101_00", "NOTES_CREATE@20250101_00"]
    assert named(store, store.named(slugs, NEWEST, None)) == now
    assert named(store, store.named(slugs, NEWEST, {"clock"})) == now[1:2]
    assert named(store, store.named(slugs, Pins(everywhere="20250101_00"), None)) == then


def test_similar_names_each_tool_once(store: Store) -> None:
    """Candidates for "did you mean" share a word with the slug, each tool once whatever its versions, none of a toolkit out of sight."""
    assert store.similar("NOTES_CREAT", None)[0] in {"NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"}
    assert sorted(store.similar("NOTES-CREAT", None)) == ["NOTES_CREATE", "NOTES_FIND", "NOTES_SEARCH"]
    assert store.similar("CREATE_NOTE", {"clock"}) == ["CLOCK_NOW"]
    assert store.similar("ZZZ", None) == []


def test_what_is_not_there(store: Store) -> None:
    """An unknown tool has no toolkit, no versions, and none in force."""
    assert store.toolkit_of("NOPE") is None
    assert store.tool_versions("NOPE") == []
    assert store.versions["nothing"] == []
