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

from toolcatalog.catalog.model import ToolSummary
from toolcatalog.encoding import dump_json_compact
from toolcatalog.parts import ToolColumns
from toolcatalog.system import files

_KEY_LENGTH = 64  # characters
_SEPARATOR = ","  # that no scope and no tag holds


class RuleFacts(NamedTuple):
    """Of the tool versions of a batch what the other files go by, in columns, scopes and tags of
    each joined; and the rules with advice.
    """

    toolkits: Sequence[str]
    slugs: Sequence[str]
    versions: Sequence[str]
    scopes: Sequence[str]
    tags: Sequence[str]
    replaced_by: Sequence[str | None]
    rules: Sequence[str]

    def iter_tools(self, joined_names: "JoinedNames") -> Iterator[ToolSummary]:
        """The tool versions; what is equal in many of them is one object, and the slug of a tool in
        its versions.
        """
        slugs: dict[str, str] = {}
        texts = (
            map(sys.intern, self.toolkits),
            map(slugs.setdefault, self.slugs, self.slugs),
            map(sys.intern, self.versions),
        )
        names = (map(joined_names.__getitem__, column) for column in (self.scopes, self.tags))
        return map(ToolSummary._make, zip(*texts, *names, self.replaced_by, strict=True))


class JoinedNames(dict[str, tuple[str, ...]]):
    """The names that were joined to a text, of each text that has come so far."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = tuple(map(sys.intern, text.split(_SEPARATOR))) if text else ()
        return self[text]


def dump_rule_facts(columns: ToolColumns) -> bytes:
    """The brief of a batch as JSON. The briefs of a million tools are held so."""
    scopes, tags = (list(map(_SEPARATOR.join, column)) for column in (columns.scopes, columns.tags))
    return dump_json_compact(
        [
            *RuleFacts(
                columns.toolkits,
                columns.slugs,
                columns.versions,
                scopes,
                tags,
                columns.replaced,
                columns.rules,
            )
        ]
    )


def parse_rule_facts(data: bytes) -> RuleFacts:
    """The brief that was told so."""
    return RuleFacts(*orjson.loads(data))


def load_rule_facts(cache: Path) -> dict[str, bytes]:
    """The briefs that were kept last, each as it was told, by the keys of their parts."""
    lines = (files.read_sealed(_rule_facts_path(cache)) or b"").split(b"\n")
    return {
        line[:_KEY_LENGTH].decode("ascii", "replace"): line[_KEY_LENGTH:] for line in lines if line
    }


def save_rule_facts(cache: Path, rule_facts: Mapping[str, bytes]) -> None:
    """Keep the briefs of all batches, and no others, for the next time. Raises OSError."""
    cache.mkdir(exist_ok=True)
    files.write_sealed(
        _rule_facts_path(cache),
        (piece for key, told in rule_facts.items() for piece in (key.encode(), told, b"\n")),
    )


def _rule_facts_path(cache: Path) -> Path:
    return cache / "briefs"
