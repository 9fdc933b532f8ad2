"""Tests of `build.state`: state is read as it was written, or not at all."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.build import cache as build_cache
from toolcatalog.build import state
from toolcatalog.build.batches import CacheEntry
from toolcatalog.build.cache import ToolColumns
from toolcatalog.build.state import PageGroupState, SiteState
from toolcatalog.catalog.model import ToolSummary
from toolcatalog.errors import Problem


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for what is kept."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def make_group(files: int, group: int = 0) -> PageGroupState:
    """Return a group with this number of pages."""
    paths = [f"tools/A_{group}_{number}/index.html" for number in range(files)]
    return state.encode_group_state(dict.fromkeys(paths, 1 << 62), dict.fromkeys(paths, "0" * 64))


def groups_file(cache: Path, site: Path, groups: dict[str, PageGroupState]) -> Path:
    """Return the file with the groups."""
    with state.write_site_state(cache, site, "this program", "all that") as writer:
        for digest, group in groups.items():
            writer.add(digest, group)
    (file,) = cache.iterdir()
    return file


def test_page_groups_round_trip(cache: Path, tmp_path: Path) -> None:
    """All at once and one by one; not from another program version."""
    groups = {"one": make_group(2), "other": make_group(0)}
    groups_file(cache, tmp_path, groups)
    assert state.load_site_state(cache, tmp_path, "this program") == SiteState(
        source_digest="all that", groups=groups
    )
    assert dict(state.iter_site_groups(cache, tmp_path, "this program")) == groups
    assert state.load_site_state(cache, tmp_path, "another") == SiteState()
    assert [*state.iter_site_groups(cache, tmp_path, "another")] == []


def test_damaged_state_is_empty(cache: Path, tmp_path: Path) -> None:
    """Also the groups before the damage."""
    file = groups_file(cache, tmp_path, {"one": make_group(1), "other": make_group(1, 1)})
    data = file.read_bytes()
    for place in range(len(data)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert state.load_site_state(cache, tmp_path, "this program") == SiteState()
        assert [*state.iter_site_groups(cache, tmp_path, "this program")] == []


def test_iterating_page_groups_uses_little_memory(cache: Path, tmp_path: Path) -> None:
    """A million tools have 200 MB of them."""
    file = groups_file(
        cache, tmp_path, {str(group): make_group(50, group) for group in range(1_000)}
    )
    tracemalloc.start()
    pages = sum(
        group.page_count for _, group in state.iter_site_groups(cache, tmp_path, "this program")
    )
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pages == 50_000
    assert most < file.stat().st_size / 10


PROGRAM = "this program"
ONE, OTHER = "1" * 64, "f" * 64
FACTS = ToolColumns(
    toolkits=["chat", "mail", "mail"],
    slugs=["CHAT_SAY", "MAIL_SEND", "MAIL_SEND"],
    versions=["20250101_00", "00000000_00", "20250202_01"],
    names=["Say", "Send", "Send a mail"],
    scopes=[[], ["mail:write"], ["mail:write", "mail:read"]],
    tags=[["important"], [], ["Größe", "important", 'a "quoted" one']],
    replaced=[None, "MAIL_POST", ""],
    rules=["description-brief", "slug-long"],
)
NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters=","), min_size=1, max_size=5),
    max_size=3,
)


def test_batch_facts_round_trip(tmp_path: Path) -> None:
    """Tool versions for rules of other files, and rules with findings."""
    facts = {
        ONE: build_cache.dump_rule_facts(FACTS),
        OTHER: build_cache.dump_rule_facts(ToolColumns()),
    }
    state.save_rule_facts(tmp_path / "cache", PROGRAM, facts)
    restored = state.load_rule_facts(tmp_path / "cache", PROGRAM)
    assert restored == facts
    assert state.load_rule_facts(tmp_path / "cache", "another program") == {}
    brief = build_cache.parse_rule_facts(restored[ONE])
    assert [*brief.iter_tools(build_cache.JoinedNames())] == [
        ToolSummary("chat", "CHAT_SAY", "20250101_00", (), ("important",), None),
        ToolSummary("mail", "MAIL_SEND", "00000000_00", ("mail:write",), (), "MAIL_POST"),
        ToolSummary(
            "mail",
            "MAIL_SEND",
            "20250202_01",
            ("mail:write", "mail:read"),
            ("Größe", "important", 'a "quoted" one'),
            "",
        ),
    ]
    assert brief.rules == FACTS.rules
    assert [
        *build_cache.parse_rule_facts(restored[OTHER]).iter_tools(build_cache.JoinedNames())
    ] == []


@given(scopes=NAMES, tags=NAMES)
def test_names_round_trip(scopes: list[str], tags: list[str]) -> None:
    """With any characters; scopes and tags contain no commas."""
    facts = ToolColumns(
        toolkits=["a"], slugs=["A_B"], versions=["v"], scopes=[scopes], tags=[tags], replaced=[None]
    )
    (tool,) = build_cache.parse_rule_facts(build_cache.dump_rule_facts(facts)).iter_tools(
        build_cache.JoinedNames()
    )
    assert (tool.scopes, tool.tags) == ((*scopes,), (*tags,))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:40] + b"x" + data[41:],
        lambda _: b"",
        lambda data: data * 2,
    ],
)
def test_damaged_facts_are_not_used(damage: object, tmp_path: Path) -> None:
    """A missing, cut, changed, empty or longer file."""
    assert state.load_rule_facts(tmp_path, PROGRAM) == {}
    state.save_rule_facts(tmp_path, PROGRAM, {ONE: build_cache.dump_rule_facts(FACTS)})
    place = tmp_path / "rule-facts"
    assert callable(damage)
    place.write_bytes(damage(place.read_bytes()))
    assert state.load_rule_facts(tmp_path, PROGRAM) == {}


def test_cache_entries_round_trip_for_the_same_program(tmp_path: Path) -> None:
    """With all fields; another program version finds none."""
    entries = {
        b'"toolkits/kit/A"': CacheEntry(ONE, True, b'{"kit":"d"}', b'[["toolkits/kit/A",1,[]]]'),
        b'"toolkits/kit/B"': CacheEntry(OTHER, False, b"{}", b"[]"),
    }
    state.save_batches(tmp_path / "cache", PROGRAM, entries)
    loaded = state.load_state(tmp_path / "cache", PROGRAM)
    assert loaded.batches == entries
    assert loaded.find_entry(["toolkits/kit/A", "toolkits/kit/C"]) == entries[b'"toolkits/kit/A"']
    assert loaded.find_entry(["toolkits/kit/C"]) is None
    assert state.load_state(tmp_path / "cache", "another program") == state.BuildState()


def test_located_findings_round_trip_for_the_same_catalog(tmp_path: Path) -> None:
    """Of the selected rules; displayed paths start with the name of the catalog."""
    problems = [
        Problem(path=f"catalog/a\t{rule}.yaml", line=1, column=2, rule=rule, message="wrong\nhere")
        for rule in ("secret", "slug-long")
    ]
    assert state.load_findings(tmp_path, ONE, "catalog", ["secret"]) is None
    build_cache.batch_path(tmp_path, ONE).parent.mkdir(parents=True)
    state.save_findings(tmp_path, ONE, "catalog", problems)
    assert state.has_findings(tmp_path, ONE)
    assert state.load_findings(tmp_path, ONE, "catalog", ["secret"]) == problems[:1]
    assert state.load_findings(tmp_path, ONE, "catalog", []) == []
    assert state.load_findings(tmp_path, ONE, "moved", ["secret"]) is None
    assert state.load_findings(tmp_path, OTHER, "catalog", ["secret"]) is None
