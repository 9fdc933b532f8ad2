"""Full text over slug, name and description: one analysis for build and query, an index of impacts, a ranking.

A text becomes words; a tool's impact for a word is its BM25 score, with the three fields weighted and summed before saturation. A
query's tools are those that hold at least one of its words (never all of them: an agent sends a sentence), best sum of impacts
first. The impacts are worked out at build time, so a query is one addition for each posting.

Serves: "`query` then keeps those that match at all and orders them by relevance".
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import orjson

_WEIGHTS = (4, 6, 1)  # slug, name, description
_SATURATION, _LENGTH = 1.2, 0.6
_LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff"  # also with accents, which do not end a word
_RUN = re.compile(rf"\d+|[{_LATIN}]+|[^\W\d_{_LATIN}]+")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

Postings = Mapping[str, tuple[list[int], list[float]]]


def words(text: str) -> list[str]:
    """The words of a text, folded to lower case: runs of Latin letters, of other letters or of digits; camelCase and snake_case apart."""
    return [word.casefold() for run in _RUN.findall(text) for word in _HUMP.split(run)]


def index(fields: Iterable[tuple[str, str, str]]) -> bytes:
    """The text index of tools given as (slug, name, description), in their order."""
    counts = [_weighted(texts) for texts in fields]
    mean = sum(count.total() for count in counts) / len(counts) if counts else 0.0
    postings: defaultdict[str, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    holders = Counter(word for count in counts for word in count)
    for number, count in enumerate(counts):
        norm = _SATURATION * (1 - _LENGTH + _LENGTH * count.total() / mean) if mean else 0.0
        for word, weight in count.items():
            rarity = math.log(1 + (len(counts) - holders[word] + 0.5) / (holders[word] + 0.5))
            postings[word][0].append(number)
            postings[word][1].append(round(rarity * weight * (_SATURATION + 1) / (weight + norm), 4))
    return orjson.dumps(postings, option=orjson.OPT_SORT_KEYS)


def _weighted(texts: tuple[str, str, str]) -> Counter[str]:
    count: Counter[str] = Counter()
    for weight, text in zip(_WEIGHTS, texts, strict=True):
        for word in words(text):
            count[word] += weight
    return count


def load(data: bytes) -> Postings:
    """The index as `index` wrote it."""
    postings: Postings = orjson.loads(data)
    return postings


def scores(postings: Postings, query: str) -> dict[int, float]:
    """The score of each tool (by its number in the index) that holds at least one of the query's words."""
    found: defaultdict[int, float] = defaultdict(float)
    for word in dict.fromkeys(words(query)):
        for number, impact in zip(*postings.get(word, ((), ())), strict=True):
            found[number] += impact
    return found
