"""What the rules need to know of every batch, all in one file: to open each part for it takes
longer than all the rest of a check.

A brief is found by the key of the part that it was taken from, and lies under a seal with the
others. Where it is missing, damaged or of another part, the part is asked.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from toolcatalog import files
from toolcatalog.model import Listed
from toolcatalog.parts import Facts
from toolcatalog.snapshot import dump_to_hold

_KEY = 64  # characters
_JOINT = ","  # that no scope and no tag holds


class Brief(NamedTuple):
    """Of the tool versions of a batch what the other files go by, in columns, scopes and tags of
    each joined; and the rules with advice.
    """

    toolkits: Sequence[str]
    slugs: Sequence[str]
    versions: Sequence[str]
    scopes: Sequence[str]
    tags: Sequence[str]
    replaced: Sequence[str | None]
    rules: Sequence[str]

    def listed(self, joined: "Joined") -> Iterator[Listed]:
        """The tool versions; what is equal in many of them is one object, and the slug of a tool in
        its versions.
        """
        slugs: dict[str, str] = {}
        texts = (
            map(sys.intern, self.toolkits),
            map(slugs.setdefault, self.slugs, self.slugs),
            map(sys.intern, self.versions),
        )
        names = (map(joined.__getitem__, column) for column in (self.scopes, self.tags))
        return map(Listed._make, zip(*texts, *names, self.replaced, strict=True))


class Joined(dict[str, tuple[str, ...]]):
    """The names that were joined to a text, of each text that has come so far."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = tuple(map(sys.intern, text.split(_JOINT))) if text else ()
        return self[text]


def told(facts: Facts) -> bytes:
    """The brief of a batch as JSON. The briefs of a million tools are held so."""
    scopes, tags = (list(map(_JOINT.join, column)) for column in (facts.scopes, facts.tags))
    return dump_to_hold(
        [
            *Brief(
                facts.toolkits,
                facts.slugs,
                facts.versions,
                scopes,
                tags,
                facts.replaced,
                facts.rules,
            )
        ]
    )


def heard(told: bytes) -> Brief:
    """The brief that was told so."""
    return Brief(*orjson.loads(told))


def load(cache: Path) -> dict[str, bytes]:
    """The briefs that were kept last, each as it was told, by the keys of their parts."""
    lines = (files.unsealed(_place(cache)) or b"").split(b"\n")
    return {line[:_KEY].decode("ascii", "replace"): line[_KEY:] for line in lines if line}


def save(cache: Path, briefs: Mapping[str, bytes]) -> None:
    """Keep the briefs of all batches, and no others, for the next time. Raises OSError."""
    cache.mkdir(exist_ok=True)
    files.seal(
        _place(cache),
        (piece for key, told in briefs.items() for piece in (key.encode(), told, b"\n")),
    )


def _place(cache: Path) -> Path:
    return cache / "briefs"
