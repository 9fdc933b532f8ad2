"""Slugs for imported tools and toolkits."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from toolcatalog import names
from toolcatalog.encoding import sha256_hex

MAX_LENGTH = 64  # characters; every model provider accepts tool names of this length
# characters of a toolkit slug derived from a title; leaves space for the tool names
_MAX_TOOLKIT_LENGTH = 40
_DIGEST_LENGTH = 8  # characters of the digest that ends a shortened or shared slug
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")
_VERSION_WORD = re.compile(r"v?[0-9]+")
# words of titles and server names that do not name a product
_GENERIC_WORDS = {
    "api", "apis", "rest", "restful", "http", "web", "openapi", "swagger", "spec",
    "specification", "service", "the",
}  # fmt: skip
_SERVER_WORDS = {"mcp", "server", "servers"}


def to_snake_case(name: str) -> str:
    """Convert a name to lower-case ASCII words separated by `_`.

    For example, `convertToPrivate` and `convert-to private` both give `convert_to_private`.
    """
    return re.sub("_+", "_", _WORD_BOUNDARY.sub("_", _to_ascii(name))).strip("_").lower()


def toolkit_slug_from_title(title: str) -> str:
    """Derive a toolkit slug from the title of an API, without generic words.

    For example, `Slack Web API` gives `slack`, and `PagerDuty API` gives `pagerduty`: the capitals
    of a brand do not separate words. Returns an empty string if nothing is left.
    """
    words = re.findall("[a-z0-9]+", _to_ascii(title).lower())
    brand = [
        word for word in words if word not in _GENERIC_WORDS and not _VERSION_WORD.fullmatch(word)
    ]
    slug = "_".join(brand or words)[:_MAX_TOOLKIT_LENGTH].strip("_")
    return slug if names.is_valid(names.TOOLKIT_SLUG, slug) else ""


def toolkit_slug_from_server(name: str) -> str:
    """Derive a toolkit slug from the name of an MCP server.

    For example, `mcp-git` and `git-mcp-server` give `git`. Returns an empty string if the name has
    no letters or digits.
    """
    words = re.findall("[a-z0-9]+", name.lower())
    product_words = [word for word in words if word not in _SERVER_WORDS]
    return "_".join(product_words or words)


def product_name(title: str) -> str:
    """Return a title without the word `API` at its end."""
    return re.sub(r"\s+(?:REST\s+)?APIs?$", "", title.strip(), flags=re.IGNORECASE)


def make_slugs(toolkit: str, tools: Sequence[tuple[str, str]]) -> list[str]:
    """Return the slugs of tools given as (name, identity); each begins with the toolkit's slug.

    The slugs do not depend on the order of the tools. A slug that is too long, or that several
    tools would share, ends with a digest of the identity.
    """
    plain = [plain_slug(toolkit, name) for name, _ in tools]
    counts = Counter(plain)
    return [
        _make_unique(slug, identity, counts[slug] > 1)
        for slug, (_, identity) in zip(plain, tools, strict=True)
    ]


def plain_slug(toolkit: str, name: str) -> str:
    """Return the slug of a tool without regard to other tools.

    Words that end the toolkit's slug and begin the name are not repeated: in the toolkit `mcp_git`,
    `git_log` becomes `MCP_GIT_LOG`.
    """
    prefix = toolkit.upper().replace("-", "_")
    words = to_snake_case(name).upper().split("_")
    repeated = _count_repeated_words(prefix.split("_"), words)
    return f"{prefix}_{'_'.join(words[repeated:])}"


def _count_repeated_words(prefix: Sequence[str], words: Sequence[str]) -> int:
    """Return how many of the first words repeat the end of the prefix; never all of them.

    Words that only spell the prefix differently count: `PAGER_DUTY` repeats `PAGERDUTY`.
    """
    endings = {"".join(prefix[start:]) for start in range(len(prefix))}
    longest = sum(map(len, prefix))  # no more words than characters can repeat the prefix
    for count in range(min(len(words) - 1, longest), 0, -1):
        if "".join(words[:count]) in endings:
            return count
    return 0


def _make_unique(slug: str, identity: str, is_shared: bool) -> str:
    # the slug ends with `_` if the name has no ASCII letters or digits
    if len(slug) <= MAX_LENGTH and not is_shared and not slug.endswith("_"):
        return slug
    digest = sha256_hex(identity.encode("utf-8", "surrogatepass"))[:_DIGEST_LENGTH].upper()
    return f"{slug[: MAX_LENGTH - _DIGEST_LENGTH - 1].rstrip('_')}_{digest}"


def _to_ascii(name: str) -> str:
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
