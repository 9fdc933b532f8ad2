"""Slugs for imported tools."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from toolcatalog.encoding import sha256_hex

MAX_LENGTH = 64  # characters; every model provider accepts tool names of this length
_DIGEST_LENGTH = 8  # characters of the digest that ends a shortened or shared slug
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def to_snake_case(name: str) -> str:
    """Convert a name to lower-case ASCII words separated by `_`.

    For example, `convertToPrivate` and `convert-to private` both give `convert_to_private`.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub("_+", "_", _WORD_BOUNDARY.sub("_", plain)).strip("_").lower()


def make_slugs(toolkit: str, tools: Sequence[tuple[str, str]]) -> list[str]:
    """Return the slugs of tools given as (name, identity); each begins with the toolkit's slug.

    The slugs do not depend on the order of the tools. A slug that is too long, or that several
    tools would share, ends with a digest of the identity.
    """
    plain = [_plain_slug(toolkit, name) for name, _ in tools]
    times = Counter(plain)
    return [
        _make_unique(slug, identity, times[slug] > 1)
        for slug, (_, identity) in zip(plain, tools, strict=True)
    ]


def _plain_slug(toolkit: str, name: str) -> str:
    first, rest = toolkit.upper().replace("-", "_"), to_snake_case(name).upper()
    return rest if rest.startswith(f"{first}_") else f"{first}_{rest}"


def _make_unique(slug: str, identity: str, is_shared: bool) -> str:
    # the slug ends with `_` if the name has no ASCII letters or digits
    if len(slug) <= MAX_LENGTH and not is_shared and not slug.endswith("_"):
        return slug
    digest = sha256_hex(identity.encode("utf-8", "surrogatepass"))[:_DIGEST_LENGTH].upper()
    return f"{slug[: MAX_LENGTH - _DIGEST_LENGTH - 1].rstrip('_')}_{digest}"
