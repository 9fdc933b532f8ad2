"""The room `build.cache`: what the rules know of all batches comes back from one file as it was in the
parts, or not at all.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.build import cache, state
from toolcatalog.build.cache import ToolColumns
from toolcatalog.catalog.model import ToolSummary

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


def test_a_batch_comes_back_for_the_rules(tmp_path: Path) -> None:
    """Its tool versions as far as other files go by them, and the rules that have advice for it."""
    facts = {ONE: cache.dump_rule_facts(FACTS), OTHER: cache.dump_rule_facts(ToolColumns())}
    state.save_rule_facts(tmp_path / "cache", PROGRAM, facts)
    kept = state.load_rule_facts(tmp_path / "cache", PROGRAM)
    assert kept == facts
    assert state.load_rule_facts(tmp_path / "cache", "another program") == {}
    brief = cache.parse_rule_facts(kept[ONE])
    assert [*brief.iter_tools(cache.JoinedNames())] == [
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
    assert [*cache.parse_rule_facts(kept[OTHER]).iter_tools(cache.JoinedNames())] == []


@given(scopes=NAMES, tags=NAMES)
def test_all_names_come_back(scopes: list[str], tags: list[str]) -> None:
    """Whatever is in them: no scope and no tag holds a comma."""
    facts = ToolColumns(
        toolkits=["a"], slugs=["A_B"], versions=["v"], scopes=[scopes], tags=[tags], replaced=[None]
    )
    (tool,) = cache.parse_rule_facts(cache.dump_rule_facts(facts)).iter_tools(cache.JoinedNames())
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
def test_what_is_damaged_is_nothing(damage: object, tmp_path: Path) -> None:
    """A file that was cut off, changed, emptied or lengthened has no brief that anybody relies on;
    nor has one that is not there.
    """
    assert state.load_rule_facts(tmp_path, PROGRAM) == {}
    state.save_rule_facts(tmp_path, PROGRAM, {ONE: cache.dump_rule_facts(FACTS)})
    place = tmp_path / "rule-facts"
    assert callable(damage)
    place.write_bytes(damage(place.read_bytes()))
    assert state.load_rule_facts(tmp_path, PROGRAM) == {}
