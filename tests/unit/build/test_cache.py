"""Tests of `build.cache`: an entry is read as it was written, or not at all."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from support.models import make_catalog, make_tool
from toolcatalog import encoding
from toolcatalog.build import cache as build_cache
from toolcatalog.build import compiler
from toolcatalog.build.cache import CompiledBatch

KEY, OTHER = "ab" * 32, "ac" * 32
SECTIONS = ("facts", "newest", "older", "rows", "words")
TOOLS = (
    make_tool("MAIL_SEND", scopes=["a", "b"], tags=["important"], description="Send — a mail."),
    make_tool(
        "MAIL_SEND", "20250601_00", deprecation={"reason": "Old.", "replaced_by": "CHAT_POST"}
    ),
    make_tool("CHAT_POST", input_parameters={"text": {"type": "string"}}),
)
PART = compiler.compile_tools(TOOLS, make_catalog(*TOOLS).toolkits)


def same(found: CompiledBatch | None, expected: CompiledBatch) -> bool:
    """Whether a part is another one, but that JSON has lists for tuples."""
    return (
        found is not None
        and encoding.dump_json(found.facts) == encoding.dump_json(expected.facts)
        and replace(found, facts=expected.facts) == expected
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with the one part."""
    build_cache.save_batch(tmp_path, KEY, PART)
    return tmp_path


def test_cache_entry_round_trips(cache: Path) -> None:
    """As a whole, or selected sections."""
    assert same(build_cache.load_batch(cache, KEY), PART)
    empty = CompiledBatch()
    assert same(build_cache.load_batch(cache, KEY, ()), empty)
    for name in SECTIONS:
        assert same(
            build_cache.load_batch(cache, KEY, (name,)),
            replace(empty, **{name: getattr(PART, name)}),
        )


def test_empty_entry_round_trips(tmp_path: Path) -> None:
    """A batch whose folders have no files."""
    empty = compiler.compile_tools((), {})
    build_cache.save_batch(tmp_path, KEY, empty)
    assert same(build_cache.load_batch(tmp_path, KEY), empty)


def test_tool_facts_round_trip(cache: Path) -> None:
    """What rules of other files use."""
    loaded = build_cache.load_batch(cache, KEY, ("facts",))
    assert loaded is not None
    expected = sorted((one.summary for one in TOOLS), key=lambda one: (one.slug, one.version))
    assert [
        *build_cache.parse_rule_facts(build_cache.dump_rule_facts(loaded.facts)).iter_tools(
            build_cache.JoinedNames()
        )
    ] == expected


def test_missing_entry_is_none(cache: Path) -> None:
    """No file, a folder, or the entry of another batch."""
    assert build_cache.load_batch(cache, OTHER) is None
    place = build_cache.batch_path(cache, OTHER)
    place.parent.mkdir()
    place.write_bytes(build_cache.batch_path(cache, KEY).read_bytes())
    assert build_cache.load_batch(cache, OTHER) is None
    place.unlink()
    place.mkdir()
    assert build_cache.load_batch(cache, OTHER) is None


def test_damaged_entry_is_none(cache: Path) -> None:
    """Cut anywhere, empty, or with any bit flipped; damage in other sections does not count."""
    place = build_cache.batch_path(cache, KEY)
    data = place.read_bytes()
    for length in range(0, len(data), 7):
        place.write_bytes(data[:length])
        assert build_cache.load_batch(cache, KEY) is None
    draw = random.Random(1)  # noqa: S311 - nothing secret
    for at in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[at] ^= 1 << draw.randrange(8)
        place.write_bytes(damaged)
        assert build_cache.load_batch(cache, KEY) is None, at
        for name in SECTIONS:
            result = build_cache.load_batch(cache, KEY, (name,))
            assert result is None or same(
                result, replace(CompiledBatch(), **{name: getattr(PART, name)})
            )
    place.write_bytes(bytes(len(data)))
    assert build_cache.load_batch(cache, KEY) is None
    # a head that is said to be larger than any file
    place.write_bytes(data[:32] + b"\xff" * 8 + data[40:])
    assert build_cache.load_batch(cache, KEY) is None


def test_unused_entries_are_removed(cache: Path) -> None:
    """With temporary files of killed builds and other files."""
    build_cache.save_batch(cache, OTHER, PART)
    (build_cache.batch_path(cache, KEY).parent / f".{KEY}.compiled.0123abcd.part").write_bytes(
        b"half"
    )
    (cache / "parts/zz/folder").mkdir(parents=True)
    build_cache.remove_batches_except(cache, {KEY})
    assert [path.name for path in (cache / "parts").glob("*/*")] == [f"{KEY}.compiled"]
    build_cache.remove_batches_except(cache, set())
    assert [*(cache / "parts").glob("*/*")] == []
