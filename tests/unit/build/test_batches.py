"""The room `batches`: how tools are put together, and that one tool more or less moves few of them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog.build.batches import split_into_batches

FOLDERS = [f"toolkits/kit{number % 7}/KIT{number % 7}_TOOL_{number}" for number in range(3000)]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)


def test_a_batch_is_a_run_of_slugs() -> None:
    """All tools in the order of their slugs, once each, cut into batches of about 64."""
    found = split_into_batches(FOLDERS)
    assert [folder for batch in found for folder in batch] == sorted(
        FOLDERS, key=lambda folder: folder.rpartition("/")[2]
    )
    assert all(found)
    assert 30 < len(FOLDERS) / len(found) < 130
    assert split_into_batches([]) == []
    assert split_into_batches(FOLDERS[:1]) == [(FOLDERS[0],)]


@example_settings(33)
@given(st.lists(st.tuples(NAMES, NAMES), max_size=30, unique=True), st.randoms())
def test_order_does_not_matter(names: list[tuple[str, str]], draw: random.Random) -> None:
    """Whatever the names are and whatever order they are found in."""
    folders = [f"toolkits/{toolkit}/{slug}" for toolkit, slug in names]
    shuffled = draw.sample(folders, len(folders))
    assert split_into_batches(shuffled) == split_into_batches(folders)
    assert sorted(folder for batch in split_into_batches(folders) for folder in batch) == sorted(
        folders
    )


def test_none_is_very_large() -> None:
    """What is compiled where one tool has changed is not much more than a batch is on average."""
    sizes = [*map(len, split_into_batches(FOLDERS))]
    assert sum(size * size for size in sizes) / sum(sizes) < 1.5 * sum(sizes) / len(sizes)


@pytest.mark.parametrize("number", [*range(0, 3000, 97)])
def test_boundaries_move_only_locally(number: int) -> None:
    """One tool less changes the batch that had it, and now and then a few beside it."""
    whole = {*split_into_batches(FOLDERS)}
    fewer = {*split_into_batches([*FOLDERS[:number], *FOLDERS[number + 1 :]])}
    assert len(whole - fewer) <= 3
    assert len(fewer - whole) <= 3


def test_a_tool_that_begins_a_batch() -> None:
    """Without it, the batch before takes some of its batch; all that do not lie near stay."""
    found = split_into_batches(FOLDERS)
    for place in range(1, 20):
        first = found[place][0]
        others = split_into_batches([folder for folder in FOLDERS if folder != first])
        assert found[: place - 1] == others[: place - 1]
        assert len({*found} - {*others}) <= 6
        assert others[place - 1][: len(found[place - 1])] == found[place - 1]
