"""Tests of `snapshot.verify`: all damage is reported, and no path leads out of the folder."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.paths import DATA
from toolcatalog import encoding
from toolcatalog.build.pipeline import build
from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import verify
from toolcatalog.snapshot.verify import UnsupportedFormat

GOLDEN = DATA / "golden"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole snapshot with toolkits, sessions and auth configs. Copy it before damaging it."""
    folder = tmp_path_factory.mktemp("good")
    build(GOLDEN / "sessions" / "catalog", folder, None)
    return (folder / "current").resolve()


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "copy"))


def list_files(folder: Path) -> list[str]:
    """Return the files that a digest covers, and the manifest."""
    paths = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return sorted(paths - {"tools.deflate"})


def sealed(folder: Path, **changes: Any) -> None:
    """Change facts of a manifest, and seal it again, as somebody who means harm could."""
    manifest = {
        key: value
        for key, value in json.loads((folder / "manifest.json").read_bytes()).items()
        if key != "digest"
    } | changes
    manifest = {"digest": hashlib.sha256(encoding.dump_json(manifest)).hexdigest(), **manifest}
    (folder / "manifest.json").write_bytes(encoding.dump_json(manifest))


def test_complete_snapshot_has_no_problems(good: Path) -> None:
    """And the number of verified bytes is the sum of its files."""
    steps: list[int] = []
    assert verify.verify_snapshot(good, steps.append) == []
    sizes = [(good / path).stat().st_size for path in list_files(good) if path != "manifest.json"]
    assert sum(steps) == sum(sizes) == verify.count_bytes(good)
    assert verify.read_manifest(good).digest == good.name


def test_flipped_bit_is_found(good: Path, copy: Path) -> None:
    """In any file and place; exactly that file is reported."""
    paths = [path for path in list_files(copy) if path not in ("manifest.json", "files.json")]
    assert any("/" in path for path in paths)
    for path in paths:
        data = (good / path).read_bytes()
        for position in {0, len(data) // 2, len(data) - 1} if data else {}:
            (copy / path).write_bytes(
                data[:position] + bytes([data[position] ^ 16]) + data[position + 1 :]
            )
            assert verify.verify_snapshot(copy) == [f"{path} has other bytes than were written"]
        (copy / path).write_bytes(data)
    assert verify.verify_snapshot(copy) == []


def test_all_problems_are_reported(copy: Path) -> None:
    """Missing, truncated, longer, a folder, a pipe, an unlisted file; a pipe does not block."""
    (copy / "query.words").unlink()
    (copy / "query.sets").write_bytes((copy / "query.sets").read_bytes()[:-1])
    (copy / "tools.json").write_bytes((copy / "tools.json").read_bytes() + b" ")
    (copy / "query.facts").unlink()
    (copy / "query.facts").mkdir()
    (copy / "query.tools").unlink()
    os.mkfifo(copy / "query.tools")
    (copy / "notes.txt").write_text("")
    (copy / "sessions" / "more.json").symlink_to("nowhere")
    shutil.rmtree(copy / "auth_configs")
    (copy / "auth_configs").write_text("")
    invalid = verify.verify_snapshot(copy)
    cut = (copy / "query.sets").stat().st_size
    assert {
        "query.words is missing",
        "query.facts is not a file",
        "query.tools is not a file",
        "notes.txt is not listed",
        "sessions/more.json is not listed",
        "auth_configs is not listed",
        f"query.sets has {cut} bytes and should have {cut + 1}",
    } < {*invalid}
    assert [item for item in invalid if item.startswith("tools.json has ")]
    missing = [item for item in invalid if item.startswith("auth_configs/")]
    assert missing
    assert all(item.endswith(".json is missing") for item in missing)
    assert len(invalid) == 8 + len(missing)


@pytest.mark.parametrize("damage", ["gone", "changed", "of something else"])
def test_wrong_file_list_is_reported(damage: str, copy: Path) -> None:
    """Files next to it are still verified."""
    file = copy / "files.json"
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(
            b"[]" if damage == "of something else" else file.read_bytes().replace(b"1", b"2", 1)
        )
    (copy / "query.words").unlink()
    assert verify.verify_snapshot(copy) == [
        "files.json is not the one that was written, so the contents of the folders are unknown",
        "query.words is missing",
    ]


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (None, "There is no finished build in"),
        (b"", "The manifest of the build in"),
        (b"[]", "The manifest of the build in"),
        (b'{"format":4}', "The manifest of the build in"),
        (
            b'{"format":4,"digest":"","files":{"a":{"size":"b","sha256":""}}}',
            "is damaged (manifest.json is not the one",
        ),
    ],
)
def test_incomplete_snapshot_is_one_sentence(manifest: bytes | None, text: str, copy: Path) -> None:
    """Without a manifest; with a hint."""
    (copy / "manifest.json").unlink()
    if manifest is not None:
        (copy / "manifest.json").write_bytes(manifest)
    with pytest.raises(SnapshotError) as caught:
        verify.verify_snapshot(copy)
    assert text in str(caught.value)
    assert str(copy) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert verify.count_bytes(copy) == 0


@pytest.mark.parametrize(
    ("format", "advice"),
    [
        (snapshot_format.FORMAT + 1, "upgrade this one, or run"),
        (snapshot_format.FORMAT - 1, ": run"),
    ],
)
def test_other_format_is_one_sentence(format: int, advice: str, copy: Path) -> None:
    """A newer one needs an upgrade, an older one a build."""
    sealed(copy, format=format)
    with pytest.raises(
        UnsupportedFormat,
        match=(
            rf"has format {format}, this program reads {snapshot_format.FORMAT}: .*`toolcatalog"
            r" build`"
        ),
    ) as caught:
        verify.verify_snapshot(copy)
    assert advice in str(caught.value)
    assert ("upgrade" in str(caught.value)) == (format > snapshot_format.FORMAT)


@pytest.mark.parametrize(
    "path", ["../outside", "/outside", "a/../../outside", "a//b", "./a", "a\\..\\b", ""]
)
def test_paths_outside_are_not_read(path: str, copy: Path) -> None:
    """A sealed manifest may contain any name."""
    (copy.parent / "outside").write_bytes(b"")
    files = json.loads((copy / "manifest.json").read_bytes())["files"]
    sealed(copy, files={**files, path: {"size": 0, "sha256": hashlib.sha256(b"").hexdigest()}})
    with pytest.raises(SnapshotError, match=r"The manifest of the build in .* is damaged"):
        verify.verify_snapshot(copy)


@pytest.mark.parametrize(
    "files", [[], {"a": 1}, {"a": {"size": "x", "sha256": ""}}, {"a": {"size": 1}}, None]
)
def test_sealed_manifest_without_meaning_is_refused(files: Any, copy: Path) -> None:
    sealed(copy, files=files)
    with pytest.raises(SnapshotError, match=r"The manifest of the build in .* is damaged"):
        verify.verify_snapshot(copy)


def odd(change: str, manifest: dict[str, Any]) -> None:
    """Give a manifest a shape that no build writes."""
    files, counts = manifest["files"], manifest["counts"]
    items = {"size": 1, "sha256": "0" * 64}
    match change.split(" "):
        case ["without", name]:
            del files[name]
        case ["size", value]:
            files["tools.json"]["size"] = json.loads(value)
        case ["sha256", value]:
            files["tools.json"]["sha256"] = json.loads(value)
        case ["name", name]:
            files[name] = items
        case ["count", value]:
            counts["tools"] = json.loads(value)
        case ["counts", value]:
            manifest["counts"] = json.loads(value)
        case ["about", value]:
            manifest["about"] = json.loads(value)
        case ["format", value]:
            manifest["format"] = json.loads(value)
        case _:
            raise AssertionError(change)


ODD = [
    *("without files.json", "without tools.json", "without query.sets"),
    *(f"size {value}" for value in ("-1", "1.5", "true", "null", '"1"', "9007199254740993", "[]")),
    *(f"sha256 {value}" for value in ("null", '""', f'"{"A" * 64}"', "[]", "1")),
    *("name TOOLS.json", "name a/b", "name ..", "name manifest.json", "name a\nb", "name a\x1b[2J"),
    f"name {'a' * 256}",
    *(f"count {value}" for value in ("-1", "1.5", "true", '"1"', "null", "1e300")),
    *("counts {}", "counts []", "counts null", 'counts {"tools":1}'),
    *('about {"title":1}', "about []", "about null"),
    *('format "3"', "format 3.0", "format true", "format null", "format [3]"),
]


@pytest.mark.parametrize("change", ODD)
def test_manifest_with_wrong_types_is_refused(change: str, copy: Path) -> None:
    """Types, numbers and names that no build writes."""
    manifest = json.loads((copy / "manifest.json").read_bytes())
    odd(change, manifest)
    sealed(copy, **{name: value for name, value in manifest.items() if name != "digest"})
    with pytest.raises(
        SnapshotError, match=r"The manifest of the build in .* is damaged"
    ) as caught:
        verify.read_manifest(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["manifest.json", "files.json", "tools.json", "query.sets"])
def test_pipe_does_not_block(name: str, copy: Path) -> None:
    (copy / name).unlink()
    os.mkfifo(copy / name)
    if name == "manifest.json":
        with pytest.raises(SnapshotError, match="not a regular file"):
            verify.verify_snapshot(copy)
    else:
        assert any(problem.startswith(name) for problem in verify.verify_snapshot(copy))


def test_duplicate_names_in_a_manifest_are_refused(copy: Path) -> None:
    """Readers could disagree about which one counts."""
    manifest = copy / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"files":', b'"files":{},"files":'))
    with pytest.raises(SnapshotError, match=r"The manifest of the build in .* is damaged"):
        verify.read_manifest(copy)


def listed(copy: Path, listing: bytes) -> None:
    """Put another listing, with a manifest that vouches for it."""
    (copy / "files.json").write_bytes(listing)
    files = json.loads((copy / "manifest.json").read_bytes())["files"]
    stated = {"size": len(listing), "sha256": encoding.sha256_hex(listing)}
    sealed(copy, files={**files, "files.json": stated})


ENTRY = b'{"size":1,"sha256":"%b"}' % (b"0" * 64)


@pytest.mark.parametrize(
    "listing",
    [
        b"",
        b"[]",
        b"{",
        b"}",
        b"[{}]",
        b'{"a/b":%b,}' % ENTRY,
        b'{"a/b":%b "a/c":%b}' % (ENTRY, ENTRY),
        b'{"a/b":%b,"a/b":%b}' % (ENTRY, ENTRY),
        b'{"a":%b}' % ENTRY,
        b'{"tools.json/a":%b}' % ENTRY,
        b'{"TOOLS.json/a":%b}' % ENTRY,
        b'{"manifest.json/a":%b}' % ENTRY,
        b'{"a/b":%b,"a/b/c":%b}' % (ENTRY, ENTRY),
        b'{"a/../b":%b}' % ENTRY,
        b'{"/a/b":%b}' % ENTRY,
        b'{"a/.git":%b}' % ENTRY,
        b'{"a/b":{"size":-1,"sha256":"%b"}}' % (b"0" * 64),
        b'{"a/b":{"size":1e3,"sha256":"%b"}}' % (b"0" * 64),
        b'{"a/b":{"size":1,"sha256":"0"}}',
    ],
)
def test_file_list_with_wrong_types_is_refused(listing: bytes, copy: Path) -> None:
    """Even if the manifest has its digest."""
    listed(copy, listing)
    with pytest.raises(SnapshotError, match=r"files.json is not the one that was written"):
        verify.list_files(copy, verify.read_manifest(copy))


def test_file_list_round_trips() -> None:
    """Of `support.mcp_server`."""
    files = {
        "toolkits/a/20250101_00.json": snapshot_format.FileInfo(0, "0" * 64),
        "sessions/trs_A-b_c.json": snapshot_format.FileInfo(12_345, "f" * 64),
    }
    assert snapshot_format.parse_file_list(snapshot_format.render_file_list(files)) == files
    assert snapshot_format.parse_file_list(b"{}") == {}


def test_snapshot_under_another_digest_is_refused(good: Path, tmp_path: Path) -> None:
    other = shutil.copytree(good, tmp_path / ("0" * 64))
    assert verify.verify_snapshot(other) == [f"manifest.json is that of {good.name}"]


def test_quick_check_compares_sizes(good: Path, copy: Path) -> None:
    """It finds missing and truncated files, and nothing else."""
    files = verify.list_files(copy, verify.read_manifest(copy))
    assert sorted(files) == [path for path in list_files(good) if path != "manifest.json"]
    assert [*verify.check_file_sizes(copy, files)] == []
    (copy / "query.sets").unlink()
    data = (copy / "tools.json").read_bytes()
    (copy / "tools.json").write_bytes(data[::-1])
    assert [*verify.check_file_sizes(copy, files)] == ["query.sets is missing"]
