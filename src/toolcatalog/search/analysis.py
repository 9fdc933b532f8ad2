"""Text analysis: tokens, stemming, stop words and spelling variants for tools and queries.

A text is split into words: runs of Latin letters, of other letters or of digits. camelCase and
snake_case are split, accents and case are folded, and Chinese and Japanese text is split into pairs
of characters. Stop words are dropped; the term of any other word is its English stem.
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
# scripts without spaces between words
_CJK = r"\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"\d+|[{_LATIN}]+|(?:(?=\w)[{_CJK}])+|[^\W\d_{_LATIN}{_CJK}]+")
# the same tokens of ASCII text, in half the time
_ASCII_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+")
# argument of `str.translate`
_ASCII_SEPARATOR_TABLE = "".join(char if char.isalnum() else " " for char in map(chr, range(128)))
_IS_CJK = re.compile(rf"[{_CJK}]")
_CAMEL_CASE_BREAK = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_QUERY_PART_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|,\s*(?:and|then|also)\s+|\s+and\s+then\s+", re.IGNORECASE
)
_LONG_SPACE = re.compile(r"(\s{16})\s+")
# characters that expand to whole phrases of 18 and 8 letters; useless for search
_LIGATURES = re.compile("[\ufdfa\ufdfb]")
_LETTER_RUN = re.compile(r"[^\W_]+")
_MAX_WORD_LENGTH = 64  # characters per term
_MIN_RELATED_LENGTH = 4  # letters of a term with related terms
# per term: more of them only make a snapshot larger, as a query uses twelve
MAX_RELATED_TERMS = 4096
_MIN_PREFIX_RATIO = 0.6  # of a term's length: the shortest prefix that is related

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are aren as at be because been before being
    below between both but by can could d did do does doing don down during each few for from
    further had has have having he her here hers him his how i if in into is isn it its itself just
    ll m me more most my myself no nor not now of off on once only or other our ours out over own re
    s same she should so some such t than that the their theirs them then there these they this
    those through to too under until up ve very was we were what when where which while who whom why
    will with would you your yours yourself
    """.split()  # noqa: SIM905 - easier to read, and to add to
)

FILLER_WORDS = frozenset(  # common in requests, with little meaning
    """
    able additionally along assist back believe best brief called come considering curious currently
    ensure every finally find finding first following gather get give go going good great hello help
    hey hi information interested kind know latest let like located look looking lot love main make
    many maybe much named need needs new next offer old one past perform performing please popular
    possible potential prefer preferably provide really recent recently recommend regarding related
    require required right second see show someone something specifically stay suggest sure take
    tell thank thanks thing things think three today tomorrow trying two understand upcoming us use
    using want way well wonder wondering
    """.split()  # noqa: SIM905 - easier to read, and to add to
)


_WORD_CACHE_SIZE = 1 << 16  # pieces; each takes some hundred bytes
_MAX_CACHED_WORDS = 2  # of a piece: nearly all are one word
_MAX_MARK_TABLE_SIZE = 1 << 13  # code points


class Word(NamedTuple):
    """A word, folded to lower case, and its term."""

    spelling: str
    term: str


def split_runs(text: str) -> list[str]:
    """Return the runs of letters or digits of a text.

    A run is mostly one word; it may be several, or a stop word.
    """
    return _ASCII_TOKEN.findall(text) if text.isascii() else _TOKEN.findall(_normalize(text))


def split_pieces(text: str) -> list[str]:
    """Return pieces of a text that contain its runs, in order.

    A piece is mostly one run. This takes a third of the time of `split_runs`.
    """
    return text.translate(_ASCII_SEPARATOR_TABLE).split() if text.isascii() else split_runs(text)


def words_in_piece(piece: str) -> tuple[Word, ...]:
    """Return the words of a run or piece of a text, without stop words.

    Only short pieces of few words are cached, since a client may send any number of others.
    """
    words = _cached_words.get(piece)
    if words is not None:
        return words
    if len(piece) > _MAX_WORD_LENGTH:
        return _words_of_long(piece)
    words = _analyze_piece(piece)
    if len(words) <= _MAX_CACHED_WORDS:
        if len(_cached_words) >= _WORD_CACHE_SIZE:
            _cached_words.clear()
        _cached_words[piece] = words
    return words


def _analyze_piece(piece: str) -> tuple[Word, ...]:
    return tuple(
        Word(spelling, stem(spelling))
        for run in split_runs(piece)
        for spelling in _split_run(run)
        if spelling not in STOP_WORDS
    )


def _words_of_long(piece: str) -> tuple[Word, ...]:
    """Return the words of a piece of perhaps a million words; analyze each distinct one once."""
    runs = split_runs(piece)
    spellings = {run: [*_split_run(run)] for run in dict.fromkeys(runs)}
    distinct = dict.fromkeys(chain.from_iterable(spellings.values()))
    words = {
        spelling: Word(spelling, stem(spelling))
        for spelling in distinct
        if spelling not in STOP_WORDS
    }
    words_by_run = {
        run: [words[spelling] for spelling in run_spellings if spelling in words]
        for run, run_spellings in spellings.items()
    }
    return tuple(chain.from_iterable(map(words_by_run.__getitem__, runs)))


@lru_cache(maxsize=1 << 16)
def terms_in_piece(piece: str) -> tuple[str, ...]:
    """Return the terms of a run or piece of a text."""
    return tuple(word.term for word in words_in_piece(piece))


_cached_words: dict[str, tuple[Word, ...]] = {}
_cached_runs: dict[str, tuple[Word, ...]] = {}  # with stop words


def extract_words(text: str) -> list[Word]:
    """Return the words of a text in order, without stop words."""
    return [word for run in split_runs(text) for word in words_in_piece(run)]


def extract_all_words(text: str) -> list[Word]:
    """Return the words of a text in order, with stop words."""
    words: list[Word] = []
    for run in split_runs(text):
        words += _cached_runs.get(run) or _analyze_run(run)
    return words


def _analyze_run(run: str) -> tuple[Word, ...]:
    words = tuple(Word(spelling, stem(spelling)) for spelling in _split_run(run))
    if len(run) <= _MAX_WORD_LENGTH and len(words) <= _MAX_CACHED_WORDS:
        if len(_cached_runs) >= _WORD_CACHE_SIZE:
            _cached_runs.clear()
        _cached_runs[run] = words
    return words


def split_query(query: str) -> list[str]:
    """Return the parts of a query that may each ask for something else.

    Runs of white space are cut to 16 characters first; otherwise the expression would take
    quadratic time on them.
    """
    return _QUERY_PART_END.split(_LONG_SPACE.sub(r"\1", query))


def name_checksum(text: str) -> int:
    """Return a CRC-32 of a name that ignores case and what separates its words."""
    return zlib.crc32(" ".join(_LETTER_RUN.findall(text.casefold())).encode("utf-8", "replace"))


def is_word(term: str) -> bool:
    """Return whether a term can have related terms and corrections: 4 letters or more, no CJK."""
    return len(term) >= _MIN_RELATED_LENGTH and not term.isdigit() and not _IS_CJK.match(term)


def related_prefixes(term: str) -> list[str]:
    """Return the prefixes of a term that would be its related terms: those of similar length."""
    return [term[:length] for length in range(min_prefix_length(term), len(term))]


def min_prefix_length(term: str) -> int:
    """Return the number of letters of the shortest related prefix of a term."""
    return max(_MIN_RELATED_LENGTH, math.ceil(_MIN_PREFIX_RATIO * len(term)))


def _normalize(text: str) -> str:
    """Return the text in compatibility form (NFKD), without accents and other combining marks."""
    # marks are deleted first: to sort a long run of them takes quadratic time
    text = _LIGATURES.sub(" ", text).translate(_MARK_TABLE)
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", decomposed.translate(_MARK_TABLE))


class _MarkTable(dict[int, int | None]):
    """A table for `str.translate` that deletes combining marks, and what consists of them.

    It is filled on demand, and cleared when it is large.
    """

    def __missing__(self, char: int) -> int | None:
        if len(self) >= _MAX_MARK_TABLE_SIZE:
            self.clear()
        decomposed = unicodedata.normalize("NFKD", chr(char))
        self[char] = None if all(map(unicodedata.combining, decomposed)) else char
        return self[char]


_MARK_TABLE = _MarkTable()


def _split_run(run: str) -> Iterable[str]:
    if run.isascii() and run.islower():  # nearly all runs
        return (run[:_MAX_WORD_LENGTH],)
    if _IS_CJK.match(run):
        return (run[index : index + 2] for index in range(max(1, len(run) - 1)))
    return (word.casefold()[:_MAX_WORD_LENGTH] for word in _CAMEL_CASE_BREAK.split(run))


# Without the stemmer's cache (0), which takes five times as long for words that do not recur.
stem = Stemmer.Stemmer("english", 0).stemWord


MAX_CORRECTED_LENGTH = 24  # letters; longer words are not corrected
_MAX_SHORT_LENGTH = 7  # letters of a word whose first letter is not corrected


def single_edits(word: str) -> set[str]:
    """Return all words one edit away: about 50 for each letter.

    An edit leaves out, swaps, replaces or inserts one letter. The first letter of a short word
    stays.
    """
    splits = [(word[:index], word[index:]) for index in range(len(word) + 1)]
    deletions = {head + tail[1:] for head, tail in splits if tail}
    transpositions = {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    replacements = {
        head + letter + tail[1:] for head, tail in splits if tail for letter in ascii_lowercase
    }
    insertions = {head + letter + tail for head, tail in splits for letter in ascii_lowercase}
    edits = (deletions | transpositions | replacements | insertions) - {word}
    if len(word) > _MAX_SHORT_LENGTH:
        return edits
    return {edit for edit in edits if edit[:1] == word[:1]}
