"""The room `server.state`: what was answered before is there again, and memory has an end."""

from toolcatalog.server.operations import OperationResult
from toolcatalog.server.state import ResponseCache


def answer(pieces: int) -> OperationResult:
    """An answer of so many pieces."""
    return OperationResult([b"x"] * pieces, b"tag")


def test_what_was_kept_is_there_again() -> None:
    """The very same object, under what was asked; keeping it twice changes nothing."""
    remembered, found = ResponseCache(), answer(3)
    remembered.add("a", found)
    remembered.add("a", answer(4))
    assert remembered["a"] is found
    assert remembered.get("b") is None


def test_the_oldest_go_first_and_the_whole_stays_small() -> None:
    """However many answers come, of one piece or of a hundred, what is held together has a bound;
    the newest are there.
    """
    for pieces in (1, 41, 100):
        remembered = ResponseCache()
        for number in range(60_000):
            remembered.add(number, answer(pieces))
        assert 0 < len(remembered) * (pieces + 4) <= 1 << 17
        assert [*remembered] == [*range(60_000 - len(remembered), 60_000)]


def test_an_answer_of_very_many_pieces_is_not_kept() -> None:
    """It would push out many others, and remembering it saves little."""
    remembered = ResponseCache()
    remembered.add("a", answer(1000))
    assert not remembered
