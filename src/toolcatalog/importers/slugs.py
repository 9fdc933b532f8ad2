"""Slugs for tools that come with names of other kinds. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from toolcatalog.snapshot import sha256

LONGEST = 64  # characters: what every model provider takes as the name of a tool
_DIGEST = 8  # of those, where a name is shortened or told from another
_EDGES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def words(name: str) -> str:
    """A name in lower case, its words parted by `_`: `convertToPrivate` and `convert-to private`
    are both `convert_to_private`.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub("_+", "_", _EDGES.sub("_", plain)).strip("_").lower()


def slugs(toolkit: str, tools: Sequence[tuple[str, str]]) -> list[str]:
    """The slug of each of these tools, given as name and identity; those of a toolkit begin with
    its own.

    Each depends on the names alone and not on their order. Slugs that are too long, or would be
    those of several tools, end with a digest of the identity.
    """
    plain = [_slug(toolkit, name) for name, _ in tools]
    times = Counter(plain)
    return [
        _told_apart(slug, identity, times[slug] > 1)
        for slug, (_, identity) in zip(plain, tools, strict=True)
    ]


def _slug(toolkit: str, name: str) -> str:
    first, rest = toolkit.upper().replace("-", "_"), words(name).upper()
    return rest if rest.startswith(f"{first}_") else f"{first}_{rest}"


def _told_apart(slug: str, identity: str, shared: bool) -> str:
    # there may be no letter in a name
    if len(slug) <= LONGEST and not shared and not slug.endswith("_"):
        return slug
    digest = sha256(identity.encode("utf-8", "surrogatepass"))[:_DIGEST].upper()
    return f"{slug[: LONGEST - _DIGEST - 1].rstrip('_')}_{digest}"
