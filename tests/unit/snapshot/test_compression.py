"""Tests of `snapshot.compression`: written once, copied for unchanged documents, verified."""

import hashlib
import shutil
import zlib
from array import array
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from support import catalogs
from toolcatalog.build.pipeline import build
from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import compressed_documents, compression, gzip_fragments, verify
from toolcatalog.snapshot.compressed_documents import SEPARATOR
from toolcatalog.system import seals

FILE = "tools.deflate"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of 30 tools, with its catalog next to the build. Copy it before changing it."""
    folder = tmp_path_factory.mktemp("compression")
    build(catalogs.generate_catalog(folder / "catalog", 30), folder / "build", None)
    return (folder / "build" / "current").resolve()


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / good.name))


def split_documents(folder: Path) -> list[bytes]:
    """The documents of a snapshot, in the order of the file."""
    data = (folder / "tools.json").read_bytes()
    columns = compression._open_source(folder, documents_digest(folder)).columns
    return [data[start : end - 1] for start, end in pairwise(columns["offset"].tolist())]


def documents_digest(folder: Path) -> str:
    return verify.read_manifest(folder).files["tools.json"].sha256


def write_stored(
    folder: Path, documents: list[bytes], contents: list[bytes], *, sealed: bool = False
) -> None:
    """A valid file with these contents without compression, and the checksums of the documents."""
    slices = [gzip_fragments.store_fragment(content) + SEPARATOR for content in contents]
    previous, through = array("I", [0]), array("I")
    for document in documents:
        through.append(zlib.crc32(document, previous[-1]))
        previous.append(zlib.crc32(b",", through[-1]))
    starts = array("Q", accumulate(map(len, slices), initial=0))
    checks = array("I", map(zlib.crc32, slices))
    table = compressed_documents.pack_table(
        documents_digest(folder), starts, previous, through, checks
    )
    data = b"".join(slices) + table
    seal = seals.compute_seal(FILE if sealed else "other", hashlib.sha256(data).digest())
    (folder / FILE).write_bytes(data + seal)


def test_build_writes_compressed_documents(good: Path) -> None:
    assert compression.verify_compressed_documents(good) == []
    assert verify.verify_snapshot(good) == []
    assert (good / FILE).stat().st_size < (good / "tools.json").stat().st_size


def test_compressed_documents_are_not_in_the_digest(copy: Path) -> None:
    (copy / FILE).unlink()
    assert verify.verify_snapshot(copy) == []
    assert compression.verify_compressed_documents(copy) == []


def test_compression_is_reproducible(copy: Path) -> None:
    previous = (copy / FILE).read_bytes()
    (copy / FILE).unlink()
    compression.write_compressed_documents(copy, documents_digest(copy), copy / "missing")
    assert (copy / FILE).read_bytes() == previous
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_fragments_of_unchanged_documents_are_copied(
    good: Path, copy: Path, tmp_path: Path
) -> None:
    """Those of the previous snapshot are stored uncompressed here, so that copies differ from new
    ones.
    """
    documents = split_documents(copy)
    write_stored(copy, documents, documents, sealed=True)
    catalog = Path(shutil.copytree(good.parents[2] / "catalog", tmp_path / "catalog"))
    catalogs.add_toolkit(catalog, "extra")
    catalogs.add_tool(catalog, "extra", "EXTRA_TOOL")
    build(catalog, tmp_path / "build", None)
    changed = (tmp_path / "build" / "current").resolve()
    (changed / FILE).unlink()
    compression.write_compressed_documents(changed, documents_digest(changed), copy)
    data, remaining = (changed / FILE).read_bytes(), {*documents}
    new = [document for document in split_documents(changed) if document not in remaining]
    assert 0 < len(new) < len(documents)
    assert all(
        gzip_fragments.store_fragment(document) + SEPARATOR in data for document in remaining
    )
    assert not any(document in data for document in new)
    assert compression.verify_compressed_documents(changed) == []


def test_fragments_of_other_documents_are_not_copied(copy: Path, tmp_path: Path) -> None:
    """Tag, checksum and size of a document are what a snapshot states: a forged one can state those
    of another document.
    """
    forged = Path(shutil.copytree(copy, tmp_path / "forged"))
    documents = split_documents(copy)
    changed = [documents[0].replace(b"Do thing", b"Undo it "), *documents[1:]]
    assert [*map(len, changed)] == [*map(len, documents)]
    assert changed != documents
    (forged / "tools.json").write_bytes(b"[" + b",".join(changed) + b"]")
    write_stored(forged, documents, changed, sealed=True)
    (copy / FILE).unlink()
    compression.write_compressed_documents(copy, documents_digest(copy), forged)
    assert compression.verify_compressed_documents(copy) == []


def test_damaged_fragments_are_not_copied(copy: Path, tmp_path: Path) -> None:
    intact = (copy / FILE).read_bytes()
    for offset in (0, 500):
        data = bytearray(intact)
        data[offset] ^= 1
        (copy / FILE).write_bytes(data)
        other = Path(shutil.copytree(copy, tmp_path / f"other{offset}"))
        compression.write_compressed_documents(other, documents_digest(other), copy)
        assert (other / FILE).read_bytes() == intact


def test_damaged_document_is_not_compressed(copy: Path) -> None:
    data = bytearray((copy / "tools.json").read_bytes())
    data[200] ^= 1
    (copy / "tools.json").write_bytes(data)
    (copy / FILE).unlink()
    with pytest.raises(SnapshotError):
        compression.write_compressed_documents(copy, documents_digest(copy), copy)
    assert not (copy / FILE).exists()
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_forged_fragment_with_valid_checksums_is_found(copy: Path) -> None:
    """Whoever writes the file can write its checksums, too."""
    documents = split_documents(copy)
    forged = [documents[0].replace(b"a", b"b"), *documents[1:]]
    write_stored(copy, documents, forged)
    assert compression.verify_compressed_documents(copy) == [
        "tools.deflate is damaged (the fragment at position 0 has other content): remove it"
    ]
    write_stored(copy, forged, documents)
    assert "checksums of other documents" in compression.verify_compressed_documents(copy)[0]
    write_stored(copy, documents, [documents[1], documents[0], *documents[2:]])
    assert len(compression.verify_compressed_documents(copy)) == 1


def test_missing_or_damaged_file_is_rebuilt(copy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "snapshots").mkdir(parents=True)
    folder = copy.rename(out / "snapshots" / copy.name)
    intact = (folder / FILE).read_bytes()
    for invalid in (None, b"", intact[:-1], intact):
        (folder / FILE).unlink()
        if invalid is not None:
            (folder / FILE).write_bytes(invalid)
        compression.ensure_compressed_documents(out, folder.name)
        assert (folder / FILE).read_bytes() == intact


def test_file_of_another_user_is_replaced(good: Path, tmp_path: Path) -> None:
    """A pull request may add a build folder with forged fragments.

    Neither the same build nor one with a change keeps them. The folder of a follower is its own.
    """
    top = tmp_path / "top"
    shutil.copytree(good.parents[2], top, symlinks=True)
    folder = top / "build" / "snapshots" / good.name
    documents = split_documents(folder)
    forged = [document.replace(b"a", b"b") for document in documents]
    write_stored(folder, documents, forged)
    compression.ensure_compressed_documents(top / "build", folder.name, is_private=True)
    assert len(compression.verify_compressed_documents(folder)) == 1
    shutil.rmtree(top / "build" / ".cache")
    build(top / "catalog", top / "build", None)
    assert compression.verify_compressed_documents(folder) == []
    write_stored(folder, documents, forged)
    catalogs.add_toolkit(top / "catalog", "extra")
    catalogs.add_tool(top / "catalog", "extra", "EXTRA_TOOL")
    build(top / "catalog", top / "build", None)
    current = (top / "build" / "current").resolve()
    assert current.name != good.name
    assert compression.verify_compressed_documents(current) == []
