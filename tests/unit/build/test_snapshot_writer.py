"""The module `build.snapshot_writer`: the file of frequent terms."""

import hashlib
import shutil
from pathlib import Path

import pytest

from support.paths import DATA
from toolcatalog.build.pipeline import build
from toolcatalog.build.snapshot_writer import write_frequent_terms
from toolcatalog.search.index import frequent_terms
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.tables import Table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of a text index."""
    build(DATA / "golden/sessions/catalog", tmp_path / "build", None)
    (tmp_path / "words").mkdir()
    for name in (snapshot_format.WORDS, snapshot_format.POSTINGS, snapshot_format.COVERS):
        shutil.copy(tmp_path / "build/current" / name, tmp_path / "words")
    return tmp_path / "words"


def test_a_small_catalog_has_no_frequent_terms(folder: Path) -> None:
    assert write_frequent_terms(folder) == {}
    assert not (folder / snapshot_format.FREQUENT).exists()


def test_frequent_terms_of_a_large_catalog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the index, and their size and digest are returned for the manifest."""
    count = (folder / snapshot_format.COVERS).stat().st_size // snapshot_format.COVER_SIZE
    monkeypatch.setattr(frequent_terms, "MIN_TOOLS", count)
    written = write_frequent_terms(folder)
    data = {path.name: path.read_bytes() for path in folder.iterdir()}
    frequent = data[snapshot_format.FREQUENT]
    assert [*written] == [snapshot_format.FREQUENT]
    info = written[snapshot_format.FREQUENT]
    assert (info.size, info.sha256) == (len(frequent), hashlib.sha256(frequent).hexdigest())
    index = TextIndex(Table(data[snapshot_format.WORDS]), data, count)
    assert frequent == b"".join(index.pack_frequent_terms())
    terms = [index.term_at(number) for number in range(len(index._terms))]
    assert index.frequent is not None
    assert {term.text for term in terms if index.frequent.get(term.id)} == {
        term.text for term in terms if term.document_frequency * frequent_terms.MIN_SHARE > count
    }
