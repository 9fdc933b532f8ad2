"""What differs between two sides: every sort of entry, the worst first, and that what could not be
compared is never no change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from support import comparisons
from support.profile import example_settings
from toolcatalog.diff.change import KINDS
from toolcatalog.diff.comparison import (
    Comparison,
    Entry,
    FileFields,
    Side,
    ToolVersionKey,
    Unreadable,
    compare_sides,
    predecessors,
)
from toolcatalog.snapshot.format import Tool

REWORDED = replace(comparisons.PLAIN, description="Other words.")
OLD = replace(
    comparisons.PLAIN,
    deprecation={"reason": "", "since": "", "sunset": "2026-01-31", "replaced_by": ""},
)
UNREAD = Unreadable("line 3: no key")


def side(
    tools: Mapping[str, Tool | Unreadable] | None = None,
    files: Mapping[str, FileFields | Unreadable] | None = None,
    slug: str = "A_DO",
) -> Side:
    """A side with a tool at these versions."""
    found = tools or {}
    return Side(
        {("a", slug): sorted(found)} if found else {},
        {ToolVersionKey("a", slug, version): one for version, one in found.items()},
        files or {},
    )


def told(before: Side, after: Side) -> list[tuple[str, ...]]:
    return [
        (
            entry.status,
            entry.version,
            entry.compared_with,
            entry.kind,
            *(change.text for change in entry.changes),
        )
        for entry in compare_sides(before, after).entries
    ]


def test_a_tool_comes_and_goes() -> None:
    assert told(
        side(), side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.PLAIN})
    ) == [("added", comparisons.V2, "", "additive", "is new")]
    assert told(
        side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.PLAIN}), side()
    ) == [("removed", comparisons.V2, "", "breaking", "was removed")]
    assert told(side({comparisons.V1: OLD}), side()) == [
        ("removed", comparisons.V1, "", "breaking", "was removed, announced for 2026-01-31")
    ]
    assert compare_sides(side({comparisons.V1: OLD}), side()).entries[0].sunset == "2026-01-31"


def test_a_version_comes_and_goes() -> None:
    """A new version is compared with the one before it, wherever that is; one that sorts first with
    none.
    """
    both = side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.NEEDY})
    assert told(side({comparisons.V1: comparisons.PLAIN}), both) == [
        ("new version", comparisons.V2, comparisons.V1, "breaking", "is new and required")
    ]
    assert told(both, side({comparisons.V1: comparisons.PLAIN})) == [
        ("version removed", comparisons.V2, "", "breaking", "was removed")
    ]
    assert told(
        side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V2: comparisons.NEEDY})
    ) == [
        ("version removed", comparisons.V1, "", "breaking", "was removed"),
        ("new version", comparisons.V2, comparisons.V1, "breaking", "is new and required"),
    ]
    assert told(
        side({comparisons.V2: comparisons.PLAIN}),
        side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.PLAIN}),
    ) == [("new version", comparisons.V1, "", "additive", "is new, and older than all others")]
    assert told(
        side({comparisons.V1: comparisons.PLAIN}),
        side(
            {
                comparisons.V1: comparisons.PLAIN,
                comparisons.V2: comparisons.PLAIN,
                comparisons.V3: REWORDED,
            }
        ),
    ) == [
        ("new version", comparisons.V2, comparisons.V1, "text"),
        ("new version", comparisons.V3, comparisons.V2, "text", "was reworded"),
    ]


def test_a_published_version_changes() -> None:
    """Deprecation stands apart from all else; a file that says the same in another way is no entry."""
    assert told(
        side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V1: comparisons.NEEDY})
    ) == [("changed", comparisons.V1, "", "breaking", "is new and required")]
    assert told(side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V1: OLD})) == [
        ("deprecated", comparisons.V1, "", "text", "is new: sunset `2026-01-31`")
    ]
    assert told(side({comparisons.V1: OLD}), side({comparisons.V1: comparisons.PLAIN})) == [
        ("deprecation", comparisons.V1, "", "text", "was taken back")
    ]
    assert [
        row[0] for row in told(side({comparisons.V1: REWORDED}), side({comparisons.V1: OLD}))
    ] == [
        "changed",
        "deprecated",
    ]
    assert (
        told(side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V1: comparisons.PLAIN}))
        == []
    )


def test_what_is_not_read_is_not_the_same() -> None:
    """On either side, on both, of a new version, of what that is compared with, of another file:
    each is told.
    """
    one = {comparisons.V1: comparisons.PLAIN}
    for before, after in (
        (side(one), side({comparisons.V1: UNREAD})),
        (side({comparisons.V1: UNREAD}), side(one)),
        (side({comparisons.V1: UNREAD}), side({comparisons.V1: UNREAD})),
        (side(), side({comparisons.V1: UNREAD})),
        (
            side(one),
            side({comparisons.V1: comparisons.PLAIN, comparisons.V2: UNREAD})._replace(
                versions={("a", "A_DO"): [comparisons.V1, comparisons.V2]}
            ),
        ),
        (side({}, {"sessions/trs_a.yaml": UNREAD}), side({}, {"sessions/trs_a.yaml": {}})),
        (side(), side({}, {"toolkits/a/stray": UNREAD})),
    ):
        (entry,) = compare_sides(before, after).entries
        assert (entry.status, entry.kind) == ("not compared", "unknown")
        assert "line 3: no key" in entry.reason
    (entry,) = compare_sides(
        side({comparisons.V1: UNREAD}),
        Side(
            {("a", "A_DO"): [comparisons.V1, comparisons.V2]},
            {ToolVersionKey("a", "A_DO", comparisons.V2): comparisons.PLAIN},
            {},
        ),
    ).entries
    assert (entry.status, entry.compared_with, entry.reason) == (
        "not compared",
        comparisons.V1,
        f"{comparisons.V1}, before it: line 3: no key",
    )


def test_other_files() -> None:
    """Toolkits by their fields, sessions and auth configs as what may be used, meta tools not at
    all.
    """
    kit, session, meta = (
        "toolkits/a/toolkit.yaml",
        "sessions/trs_a.yaml",
        "meta_tools/M/20250101_00.yaml",
    )
    before = side(
        {},
        {
            kit: {"name": "A", "no_auth": True},
            session: {"project": "p", "tags": 1},
            meta: {"template": {"name": 1, "deprecation": {}}},
            "catalog.yaml": {"title": "T"},
        },
    )
    after = side(
        {},
        {
            kit: {"name": "B", "no_auth": False},
            session: {"project": "p", "tags": 2},
            meta: {"template": {"name": 2}},
            "catalog.yaml": {"title": "U"},
        },
    )
    found = {
        entry.path: [(change.kind, change.location, change.text) for change in entry.changes]
        for entry in compare_sides(before, after).entries
    }
    assert found == {
        kit: [
            ("text", "name", "`A` became `B`"),
            (
                "breaking",
                "no_auth",
                "is false now: tools that do not say otherwise need authentication",
            ),
        ],
        session: [("scope", "tags", "is another: it says what may be used")],
        meta: [
            ("text", "deprecation", "`{}` became null"),
            ("breaking", "name", "changed in a way that is not looked into"),
        ],
        "catalog.yaml": [("text", "title", "`T` became `U`")],
    }
    gone = {entry.path: entry.status for entry in compare_sides(before, side()).entries}
    assert gone == dict.fromkeys((kit, session, meta, "catalog.yaml"), "removed")
    assert {entry.status for entry in compare_sides(side(), after).entries} == {"added"}
    assert compare_sides(before, before).entries == ()


def test_the_order_of_a_meta_tool_counts() -> None:
    """Its parameters are served in their order; a session only says what may be used."""
    meta, session = "meta_tools/M/20250101_00.yaml", "sessions/trs_a.yaml"
    before, after = {"a": 1, "b": 1}, {"b": 1, "a": 1}
    old, new = (
        Side({}, {}, {meta: {"template": {"input_parameters": one}}, session: {"tools": one}})
        for one in (before, after)
    )
    assert [entry.path for entry in compare_sides(old, new).entries] == [meta]


def test_the_worst_first() -> None:
    """Unknown, breaking, scope, additive, text; the totals count entries and changes."""
    names = ("NO", "BREAK", "ADD", "TEXT")
    before = Side(
        {("a", slug): [comparisons.V1] for slug in names if slug != "ADD"},
        {
            ToolVersionKey("a", "NO", comparisons.V1): UNREAD,
            ToolVersionKey("a", "BREAK", comparisons.V1): comparisons.PLAIN,
            ToolVersionKey("a", "TEXT", comparisons.V1): comparisons.PLAIN,
        },
        {},
    )
    after = Side(
        {("a", slug): [comparisons.V1] for slug in names},
        {
            ToolVersionKey("a", "NO", comparisons.V1): comparisons.PLAIN,
            ToolVersionKey("a", "BREAK", comparisons.V1): comparisons.NEEDY,
            ToolVersionKey("a", "TEXT", comparisons.V1): REWORDED,
            ToolVersionKey("a", "ADD", comparisons.V1): comparisons.PLAIN,
        },
        {},
    )
    found = compare_sides(before, after, ("main", "here"))
    assert [entry.slug for entry in found.entries] == [*names]
    assert (found.old_title, found.new_title) == ("main", "here")
    assert {what: many for what, many in found.status_counts.items() if many} == {
        "not compared": 1,
        "changed": 2,
        "added": 1,
    }
    assert found.kind_counts == {"breaking": 1, "scope": 0, "additive": 1, "text": 1}


VERSIONS = st.lists(
    st.sampled_from([comparisons.V1, comparisons.V2, comparisons.V3]), unique=True
).map(sorted)
STATES = st.dictionaries(
    st.sampled_from([comparisons.V1, comparisons.V2, comparisons.V3]),
    st.sampled_from([comparisons.PLAIN, REWORDED, comparisons.NEEDY, OLD, UNREAD]),
)


@example_settings(66)
@given(before=STATES, after=STATES)
def test_whatever_differs_is_told(
    before: dict[str, Tool | Unreadable], after: dict[str, Tool | Unreadable]
) -> None:
    """A version that is not the same on both sides is always told of, and nothing is where all is
    the same and was read.
    """
    found = compare_sides(side(before), side(after)).entries
    if not before or not after:
        unread = [version for version in after if after[version] is UNREAD]
        told_of = {*unread, max(after)} if after else {max(before)} if before else set()
        assert {entry.version for entry in found} == told_of
        return
    differing = {
        version
        for version in before.keys() | after.keys()
        if before.get(version) != after.get(version) or before[version] is UNREAD
    }
    assert {entry.version for entry in found} == differing
    assert [*found] == sorted(found, key=lambda entry: ("unknown", *KINDS).index(entry.kind))


@given(before=VERSIONS, after=VERSIONS)
def test_a_predecessor_is_the_nearest_before(before: Sequence[str], after: Sequence[str]) -> None:
    """Of a new version, the latest of all that sort before it; none for versions that were there,
    or tools that were not.
    """
    found = predecessors({("a", "A_DO"): before} if before else {}, {("a", "A_DO"): after})
    for new, old in found.items():
        assert new.version in after
        assert new.version not in before
        assert not [one for one in (*before, *after) if old.version < one < new.version]
    assert bool(found) == (
        bool(before) and any(one not in before and one > min([*before, *after]) for one in after)
    )


def test_nothing_is_an_empty_comparison() -> None:
    assert compare_sides(side(), side()) == Comparison("before", "after", ())
    assert Entry("removed", "a").kind == "text"
