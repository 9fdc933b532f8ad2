"""Query expansion: what bounds the work for one query."""

import pytest

from support.catalogs import generate_catalog
from toolcatalog.build.pipeline import build
from toolcatalog.search.index.vocabulary import Lookup
from toolcatalog.search.query.query_expansion import expand_query
from toolcatalog.store.open import open_build


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> Lookup:
    """The vocabulary of three tools, which all do a thing."""
    folder = tmp_path_factory.mktemp("ranking")
    build(generate_catalog(folder / "catalog", 3), folder / "build", None)
    return open_build(folder / "build")._lookup(None)


def test_sentences_are_numbered(lookup: Lookup) -> None:
    """Each term has the numbers of the sentences that contain it."""
    terms = {term.term.text: term.sentences for term in expand_query(lookup, "thing. do it. thing")}
    assert terms["thing"] == {0, 2}


def test_a_query_has_at_most_20_sentences(lookup: Lookup) -> None:
    """Each sentence is scored for each tool: the last of twenty contains all that follow."""
    for count, last in ((19, 18), (20, 19), (21, 19), (200, 19)):
        terms = expand_query(lookup, "number. " * (count - 1) + "thing")
        sentences = frozenset[int]().union(*(term.sentences for term in terms))
        assert max(sentences) == last
        assert sentences == {*range(last + 1)}
