"""Lint rules for identity: slug prefixes, slug length, and names that are easily confused.

Similar slugs within a toolkit are found by grouping their normalized forms, never by comparing all
pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

from toolcatalog.catalog.model import ROUTER, Catalog, ToolSummary
from toolcatalog.errors import Finding, Pointer
from toolcatalog.lint.rule import CatalogRule, ToolRule, iter_active
from toolcatalog.lint.views import ToolView

# characters that OpenAI, Gemini and older Anthropic clients allow in a function name
_MAX_SLUG_LENGTH = 64
_ARTICLES = frozenset(("A", "AN", "THE"))
_PREPOSITIONS = frozenset(
    ("AS", "AT", "BY", "FOR", "FROM", "IN", "INTO", "OF", "ON", "OR", "TO", "USING", "WITH")
)
_MAX_WORDS = 100_000  # words compared: more of them cannot be real words
# letters: many shorter words differ in one letter and mean different things (get and set, close and
# clone)
_MIN_WORD_LENGTH, _MAX_WORD_LENGTH = 6, 40
_SEPARATORS = dict.fromkeys(map(ord, "-_."))


def check_slug_prefix(view: ToolView) -> Iterator[Finding]:
    """A tool's slug begins with its toolkit's slug in capitals.

    `-` and `_` are treated alike. The rule does not apply to meta tools.
    """
    tool = view.tool
    prefix = tool.toolkit.upper()
    if tool.toolkit != ROUTER and not tool.slug.replace("-", "_").startswith(
        f"{prefix.replace('-', '_')}_"
    ):
        message = f"the slug does not start with the toolkit's, `{tool.toolkit}`"
        expected, help = (
            f"`{prefix}_...`",
            "rename the folder: in a model's list only the slug says whose tool it is",
        )
        yield Finding(
            path=tool.path, rule="slug-prefix", message=message, expected=expected, help=help
        )


def check_slug_length(view: ToolView) -> Iterator[Finding]:
    """A tool's slug is not longer than providers allow for a function name."""
    tool = view.tool
    if len(tool.slug) > _MAX_SLUG_LENGTH:
        message = f"the slug has {len(tool.slug)} characters"
        expected, help = (
            f"at most {_MAX_SLUG_LENGTH}",
            "leave out articles and what the toolkit says anyway",
        )
        yield Finding(
            path=tool.path, rule="slug-long", message=message, expected=expected, help=help
        )


def check_similar_parameters(view: ToolView) -> Iterator[Finding]:
    """Parameters of one object differ in more than case and separators."""
    tool = view.tool
    names = {node.name for node in view.inputs}
    if len({_without_separators(name) for name in names}) == len(names):
        return  # fast path for nearly all tools
    first_names: dict[tuple[Pointer, str], str] = {}
    for node in view.inputs:
        other = first_names.setdefault(
            (node.pointer[:-1], _without_separators(node.name)), node.name
        )
        if other != node.name:
            message = f"`{node.name}` differs from `{other}` only in case or separators"
            help = "give one of them a name that says what is different"
            yield Finding(
                path=tool.path,
                pointer=node.pointer,
                at_key=True,
                rule="parameter-twins",
                message=message,
                help=help,
            )


def _without_separators(name: str) -> str:
    return name.translate(_SEPARATORS).casefold()


def check_similar_toolkits(catalog: Catalog) -> Iterator[Finding]:
    """Slugs of toolkits differ in more than separators."""
    first_slugs: dict[str, str] = {}
    for slug in sorted(catalog.toolkits):
        other = first_slugs.setdefault(_without_separators(slug), slug)
        if other != slug:
            message = f"the toolkit `{slug}` differs from `{other}` only in separators"
            yield Finding(
                path=f"toolkits/{slug}/toolkit.yaml",
                rule="toolkit-twins",
                message=message,
                help="rename one of the folders, or join them",
            )


def check_similar_slugs(catalog: Catalog) -> Iterator[Finding]:
    """Slugs of one toolkit are not easily confused.

    They differ in more than separators, word order, singular and plural, or one letter of a long
    word. Deprecated tools are ignored: a tool and its replacement may have similar slugs.
    """
    toolkits: defaultdict[str, list[ToolSummary]] = defaultdict(list)
    for tool in iter_active(catalog):
        toolkits[tool.toolkit].append(tool)
    neighbors = _find_neighbors(
        sorted(
            {word for tools in toolkits.values() for tool in tools for word in _words(tool.slug)}
        )
    )
    for tools in toolkits.values():
        twins = {
            **_find_misspellings(tools, neighbors),
            **_find_collisions(tools, _canonical_words),
            **_find_collisions(tools, _without_separators),
        }
        for tool in tools if twins else ():
            if tool.slug in twins:
                message = f"`{tool.slug}` is easy to confuse with `{twins[tool.slug]}`"
                help = (
                    "rename one so that the difference shows, or deprecate one in favor of the"
                    " other"
                )
                yield Finding(path=tool.path, rule="slug-similar", message=message, help=help)


def _find_collisions(tools: Iterable[ToolSummary], key: Callable[[str], str]) -> dict[str, str]:
    """Return slugs whose key equals that of an earlier slug, each with the earlier slug."""
    first_slugs: dict[str, str] = {}
    pairs = ((tool.slug, first_slugs.setdefault(key(tool.slug), tool.slug)) for tool in tools)
    return {slug: other for slug, other in pairs if other != slug}


def _canonical_words(slug: str) -> str:
    """Return a slug's words without articles, in the singular, in canonical order.

    Words are sorted only between prepositions such as TO and FOR.
    """
    parts: list[list[str]] = [[]]
    for word in _words(slug):
        if word in _PREPOSITIONS:
            parts.append([word])
        elif word not in _ARTICLES:
            parts[-1].append(_singular(word))
    return "|".join(["_".join(sorted(part)) for part in parts])


@lru_cache(maxsize=4096)
def _singular(word: str) -> str:
    """Return a stem that the singular and the plural of a word share."""
    if len(word) < 4 or word.endswith(("SS", "US", "IS")):
        return word
    if word.endswith("IES"):
        return f"{word[:-3]}Y"
    return word.removesuffix("S").removesuffix("E")


def _find_misspellings(
    tools: Iterable[ToolSummary], neighbors: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return slugs that equal an earlier slug if one word is replaced by a neighbor of it.

    Each is returned with the earlier slug. `neighbors` maps words to words that differ in one
    letter.
    """
    misspellings: dict[str, str] = {}
    seen_slugs: set[str] = set()
    for slug in (tool.slug for tool in tools):  # sorted by slug
        for index, word in enumerate(words := _words(slug)):
            for other in sorted(neighbors.get(word, ())):
                twin = "_".join((*words[:index], other, *words[index + 1 :]))
                if twin in seen_slugs:
                    misspellings[slug] = twin
        seen_slugs.add(slug)
    return misspellings


def _find_neighbors(words: Iterable[str]) -> Mapping[str, Collection[str]]:
    """Return long words with those that are equal after removing one letter from one or both.

    Words without neighbors are left out, and so are very long ones, which take much memory.
    """
    shapes: defaultdict[str, list[str]] = defaultdict(list)
    long_words = (
        word
        for word in words
        if _MIN_WORD_LENGTH <= len(word) <= _MAX_WORD_LENGTH and word.isalpha()
    )
    for word in islice(long_words, _MAX_WORDS):
        # the first letter is rarely mistyped
        for shape in {word, *(word[:index] + word[index + 1 :] for index in range(1, len(word)))}:
            shapes[shape].append(word)
    neighbors: defaultdict[str, set[str]] = defaultdict(set)
    for similar_words in shapes.values():
        for word in similar_words if len(similar_words) > 1 else ():
            neighbors[word].update(other for other in similar_words if other != word)
    return neighbors


def _words(slug: str) -> list[str]:
    return slug.replace("-", "_").split("_")


TOOL_RULES: tuple[ToolRule, ...] = (
    ToolRule("slug-prefix", "warning", check_slug_prefix),
    ToolRule("slug-long", "warning", check_slug_length),
    ToolRule("parameter-twins", "warning", check_similar_parameters),
)
CATALOG_RULES: tuple[CatalogRule, ...] = (
    CatalogRule("toolkit-twins", "warning", check_similar_toolkits),
    CatalogRule("slug-similar", "note", check_similar_slugs),
)
