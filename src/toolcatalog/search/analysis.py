"""Text analysis: tokens, stemming, stop words and spelling variants for tools and queries.

A text becomes words (runs of Latin letters, of other letters or of digits; camelCase and snake_case
apart; accents and case folded; Chinese and Japanese in pairs of characters), words that say nothing
are left out, and of the others the English stem is the term.
"""

import math
import re
import unicodedata
import zlib
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from string import ascii_lowercase
from typing import NamedTuple

import Stemmer

_LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff"
# written without spaces between words
_CJK = r"\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"\d+|[{_LATIN}]+|(?:(?=\w)[{_CJK}])+|[^\W\d_{_LATIN}{_CJK}]+")
# the same where there is nothing else, and found in half the time
_ASCII_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+")
# for `translate`
_ASCII_SEPARATOR_TABLE = "".join(char if char.isalnum() else " " for char in map(chr, range(128)))
_IS_CJK = re.compile(rf"[{_CJK}]")
_CAMEL_CASE_BREAK = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_QUERY_PART_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|,\s*(?:and|then|also)\s+|\s+and\s+then\s+", re.IGNORECASE
)
_LONG_SPACE = re.compile(r"(\s{16})\s+")
# eighteen and eight letters in one; they say nothing of a tool
_LIGATURES = re.compile("[\ufdfa\ufdfb]")
_LETTER_RUN = re.compile(r"[^\W_]+")
_MAX_WORD_LENGTH = 64  # characters of a term
_MIN_RELATED_LENGTH = 4  # letters of a term that has relatives
_MIN_PREFIX_RATIO = 0.6  # of a term's length: that of a relative that it begins with

_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are aren as at be because been before being below between both but by can could d did
    do does doing don down during each few for from further had has have having he her here hers him his how i if in into is isn it its
    itself just ll m me more most my myself no nor not now of off on once only or other our ours out over own re s same she should so some
    such t than that the their theirs them then there these they this those through to too under until up ve very was we were what when
    where which while who whom why will with would you your yours yourself
    """.split()  # noqa: SIM905 - easier to read, and to add to
)

FILLER_WORDS = frozenset(  # words of people who ask: they say less of what is wanted
    """
    able additionally along assist back believe best brief called come considering curious currently ensure every finally find finding
    first following gather get give go going good great hello help hey hi information interested kind know latest let like located look
    looking lot love main make many maybe much named need needs new next offer old one past perform performing please popular possible
    potential prefer preferably provide really recent recently recommend regarding related require required right second see show someone
    something specifically stay suggest sure take tell thank thanks thing things think three today tomorrow trying two understand upcoming
    us use using want way well wonder wondering
    """.split()  # noqa: SIM905 - easier to read, and to add to
)


class Word(NamedTuple):
    """A word, folded to lower case, and its term."""

    spelling: str
    term: str


def split_runs(text: str) -> list[str]:
    """The runs of letters or digits of a text. Most are a word, some are several, or one that says
    nothing.
    """
    return _ASCII_TOKEN.findall(text) if text.isascii() else _TOKEN.findall(_normalize(text))


def split_pieces(text: str) -> list[str]:
    """A text in pieces that have its runs in them, in their order: mostly one each, and found in a
    third of the time.
    """
    return text.translate(_ASCII_SEPARATOR_TABLE).split() if text.isascii() else split_runs(text)


@lru_cache(maxsize=1 << 16)
def words_in_piece(piece: str) -> tuple[Word, ...]:
    """The words of a run, or of a piece of a text, that say something."""
    if len(piece) > _MAX_WORD_LENGTH:
        return _words_of_long(piece)
    return tuple(
        Word(spelt, stem(spelt))
        for run in split_runs(piece)
        for spelt in _split_run(run)
        if spelt not in _STOP_WORDS
    )


def _words_of_long(piece: str) -> tuple[Word, ...]:
    """The same for a piece that may consist of a million words: each different run, and each
    different word, is read once.
    """
    every = split_runs(piece)
    spellings = {run: [*_split_run(run)] for run in dict.fromkeys(every)}
    different = dict.fromkeys(chain.from_iterable(spellings.values()))
    words = {spelt: Word(spelt, stem(spelt)) for spelt in different if spelt not in _STOP_WORDS}
    of_run = {
        run: [words[spelt] for spelt in some if spelt in words] for run, some in spellings.items()
    }
    return tuple(chain.from_iterable(map(of_run.__getitem__, every)))


@lru_cache(maxsize=1 << 16)
def terms_in_piece(piece: str) -> tuple[str, ...]:
    """The terms of a run, or of a piece of a text."""
    return tuple(word.term for word in words_in_piece(piece))


def extract_words(text: str) -> list[Word]:
    """The words of a text that say something, in their order. Only short runs are remembered: a
    client may send as many long ones as it likes.
    """
    return [
        word
        for run in split_runs(text)
        for word in (words_in_piece(run) if len(run) <= _MAX_WORD_LENGTH else _words_of_long(run))
    ]


def split_query(query: str) -> list[str]:
    """The parts of a query that may each ask for something else.

    Of a run of white space only the first 16 characters count: each beginning of an end of a part
    would be looked for from each of them.
    """
    return _QUERY_PART_END.split(_LONG_SPACE.sub(r"\1", query))


def name_checksum(text: str) -> int:
    """A checksum of a name, the same whatever its case and whatever stands between its words."""
    return zlib.crc32(" ".join(_LETTER_RUN.findall(text.casefold())).encode("utf-8", "replace"))


def is_word(term: str) -> bool:
    """Tell whether a term is one that has relatives and can be misspelt: at least four letters that
    are written one by one.
    """
    return len(term) >= _MIN_RELATED_LENGTH and not term.isdigit() and not _IS_CJK.match(term)


def related_prefixes(term: str) -> list[str]:
    """The beginnings of a term that are its relatives, if they are terms: they are not much shorter
    than it is.
    """
    return [term[:length] for length in range(min_prefix_length(term), len(term))]


def min_prefix_length(term: str) -> int:
    """How many letters the shortest beginning of a term has that is its relative."""
    return max(_MIN_RELATED_LENGTH, math.ceil(_MIN_PREFIX_RATIO * len(term)))


def _normalize(text: str) -> str:
    """The text without accents and other marks upon letters, and with the plain form of each
    character.
    """
    apart = unicodedata.normalize("NFKD", _LIGATURES.sub(" ", text))
    return unicodedata.normalize("NFC", apart.translate(_MARK_TABLE))


class _MarkTable(dict[int, int | None]):
    """What `translate` makes of a character: nothing of a mark upon letters. It learns them as they
    come.
    """

    def __missing__(self, char: int) -> int | None:
        self[char] = None if unicodedata.combining(chr(char)) else char
        return self[char]


_MARK_TABLE = _MarkTable()


def _split_run(run: str) -> Iterable[str]:
    if run.isascii() and run.islower():  # so are nearly all
        return (run[:_MAX_WORD_LENGTH],)
    if _IS_CJK.match(run):
        return (run[place : place + 2] for place in range(max(1, len(run) - 1)))
    return (word.casefold()[:_MAX_WORD_LENGTH] for word in _CAMEL_CASE_BREAK.split(run))


# without a cache of its own: it takes five times as long for words that do not come again
stem = Stemmer.Stemmer("english", 0).stemWord


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
