"""What a misspelt word may stand for: all that differ by a letter left out, put in, changed, or
changed places with its neighbour. Pure.
"""

from string import ascii_lowercase

MAX_CORRECTED_LENGTH = 24  # letters of a word that is worth the trouble


def single_edits(word: str) -> set[str]:
    """All that a word becomes by one such change: some fifty for each of its letters."""
    halves = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    left_out = {before + after[1:] for before, after in halves if after}
    swapped = {
        before + after[1] + after[0] + after[2:] for before, after in halves if len(after) > 1
    }
    changed = {
        before + letter + after[1:]
        for before, after in halves
        if after
        for letter in ascii_lowercase
    }
    put_in = {before + letter + after for before, after in halves for letter in ascii_lowercase}
    return (left_out | swapped | changed | put_in) - {word}
