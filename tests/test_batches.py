"""The room `batches`: how tools are put together, and that one tool more or less moves few of them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcatalog.batches import batches

FOLDERS = [f"toolkits/kit{number % 7}/KIT{number % 7}_TOOL_{number}" for number in range(3000)]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)


def test_a_batch_is_a_run_of_slugs() -> None:
    """All tools in the order of their slugs, once each, cut into batches of about 64."""
    found = batches(FOLDERS)
    assert [folder for batch in found for folder in batch] == sorted(FOLDERS, key=lambda folder: folder.rpartition("/")[2])
    assert all(found)
    assert 30 < len(FOLDERS) / len(found) < 130
    assert batches([]) == []
    assert batches(FOLDERS[:1]) == [(FOLDERS[0],)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES), max_size=30, unique=True), st.randoms())
def test_order_does_not_matter(names: list[tuple[str, str]], draw: random.Random) -> None:
    """Whatever the names are and whatever order they are found in."""
    folders = [f"toolkits/{toolkit}/{slug}" for toolkit, slug in names]
    shuffled = draw.sample(folders, len(folders))
    assert batches(shuffled) == batches(folders)
    assert sorted(folder for batch in batches(folders) for folder in batch) == sorted(folders)


@pytest.mark.parametrize("number", [*range(0, 3000, 97)])
def test_boundaries_move_only_locally(number: int) -> None:
    """One tool less changes the one batch that had it, and at most the one before, which takes the rest where it began one."""
    whole = {*batches(FOLDERS)}
    fewer = {*batches([*FOLDERS[:number], *FOLDERS[number + 1 :]])}
    assert len(whole - fewer) <= 2
    assert len(fewer - whole) <= 1


def test_a_tool_that_begins_a_batch() -> None:
    """Without it, its batch joins the one before; all others stay."""
    found = batches(FOLDERS)
    for place in range(1, 20):
        first = found[place][0]
        joined = (*found[place - 1], *found[place][1:])
        assert batches([folder for folder in FOLDERS if folder != first]) == [*found[: place - 1], joined, *found[place + 1 :]]
