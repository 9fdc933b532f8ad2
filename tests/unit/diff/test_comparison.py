"""Tests of `diff.comparison`: all kinds of entries, their order, and incomparable files."""

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
    result = tools or {}
    return Side(
        {("a", slug): sorted(result)} if result else {},
        {ToolVersionKey("a", slug, version): item for version, item in result.items()},
        files or {},
    )


def format_entries(previous: Side, current: Side) -> list[tuple[str, ...]]:
    return [
        (
            entry.status,
            entry.version,
            entry.compared_with,
            entry.kind,
            *(change.text for change in entry.changes),
        )
        for entry in compare_sides(previous, current).entries
    ]


def test_added_and_removed_tool() -> None:
    assert format_entries(
        side(), side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.PLAIN})
    ) == [("added", comparisons.V2, "", "additive", "is new")]
    assert format_entries(
        side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.PLAIN}), side()
    ) == [("removed", comparisons.V2, "", "breaking", "was removed")]
    assert format_entries(side({comparisons.V1: OLD}), side()) == [
        ("removed", comparisons.V1, "", "breaking", "was removed, announced for 2026-01-31")
    ]
    assert compare_sides(side({comparisons.V1: OLD}), side()).entries[0].sunset == "2026-01-31"


def test_added_and_removed_version() -> None:
    """A new version is compared with its predecessor, if there is one."""
    both = side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.NEEDY})
    assert format_entries(side({comparisons.V1: comparisons.PLAIN}), both) == [
        ("new version", comparisons.V2, comparisons.V1, "breaking", "is new and required")
    ]
    assert format_entries(both, side({comparisons.V1: comparisons.PLAIN})) == [
        ("version removed", comparisons.V2, "", "breaking", "was removed")
    ]
    assert format_entries(
        side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V2: comparisons.NEEDY})
    ) == [
        ("version removed", comparisons.V1, "", "breaking", "was removed"),
        ("new version", comparisons.V2, comparisons.V1, "breaking", "is new and required"),
    ]
    assert format_entries(
        side({comparisons.V2: comparisons.PLAIN}),
        side({comparisons.V1: comparisons.PLAIN, comparisons.V2: comparisons.PLAIN}),
    ) == [("new version", comparisons.V1, "", "additive", "is new, and older than all others")]
    assert format_entries(
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


def test_changed_published_version() -> None:
    """Deprecation is a separate entry; other spellings are none."""
    assert format_entries(
        side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V1: comparisons.NEEDY})
    ) == [("changed", comparisons.V1, "", "breaking", "is new and required")]
    assert format_entries(
        side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V1: OLD})
    ) == [("deprecated", comparisons.V1, "", "text", "is new: sunset `2026-01-31`")]
    assert format_entries(
        side({comparisons.V1: OLD}), side({comparisons.V1: comparisons.PLAIN})
    ) == [("deprecation", comparisons.V1, "", "text", "was removed")]
    assert [
        row[0]
        for row in format_entries(side({comparisons.V1: REWORDED}), side({comparisons.V1: OLD}))
    ] == [
        "changed",
        "deprecated",
    ]
    assert (
        format_entries(
            side({comparisons.V1: comparisons.PLAIN}), side({comparisons.V1: comparisons.PLAIN})
        )
        == []
    )


def test_unreadable_files_are_incomparable() -> None:
    """On either side, or as predecessor; each is reported."""
    item = {comparisons.V1: comparisons.PLAIN}
    for previous, current in (
        (side(item), side({comparisons.V1: UNREAD})),
        (side({comparisons.V1: UNREAD}), side(item)),
        (side({comparisons.V1: UNREAD}), side({comparisons.V1: UNREAD})),
        (side(), side({comparisons.V1: UNREAD})),
        (
            side(item),
            side({comparisons.V1: comparisons.PLAIN, comparisons.V2: UNREAD})._replace(
                versions={("a", "A_DO"): [comparisons.V1, comparisons.V2]}
            ),
        ),
        (side({}, {"sessions/trs_a.yaml": UNREAD}), side({}, {"sessions/trs_a.yaml": {}})),
        (side(), side({}, {"toolkits/a/stray": UNREAD})),
    ):
        (entry,) = compare_sides(previous, current).entries
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
    """Toolkits by field, sessions and auth configs by access, no meta tools."""
    toolkit, session, meta = (
        "toolkits/a/toolkit.yaml",
        "sessions/trs_a.yaml",
        "meta_tools/M/20250101_00.yaml",
    )
    previous = side(
        {},
        {
            toolkit: {"name": "A", "no_auth": True},
            session: {"project": "p", "tags": 1},
            meta: {"template": {"name": 1, "deprecation": {}}},
            "catalog.yaml": {"title": "T"},
        },
    )
    current = side(
        {},
        {
            toolkit: {"name": "B", "no_auth": False},
            session: {"project": "p", "tags": 2},
            meta: {"template": {"name": 2}},
            "catalog.yaml": {"title": "U"},
        },
    )
    results = {
        entry.path: [(change.kind, change.location, change.text) for change in entry.changes]
        for entry in compare_sides(previous, current).entries
    }
    assert results == {
        toolkit: [
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
            ("breaking", "name", "changed in a way that cannot be compared"),
        ],
        "catalog.yaml": [("text", "title", "`T` became `U`")],
    }
    gone = {entry.path: entry.status for entry in compare_sides(previous, side()).entries}
    assert gone == dict.fromkeys((toolkit, session, meta, "catalog.yaml"), "removed")
    assert {entry.status for entry in compare_sides(side(), current).entries} == {"added"}
    assert compare_sides(previous, previous).entries == ()


def test_changed_mcp_server() -> None:
    """Each field, because another package is more than a text change."""
    path = "toolkits/a/toolkit.yaml"
    package = {"registry": "npm", "identifier": f"@github/{'mcp-' * 40}server"}
    server = {"name": "com.github/mcp", "version": "1.0.0", "package": package}
    evil = {**package, "identifier": package["identifier"].replace("server", "sevrer")}
    other = {**server, "version": "1.0.1", "url": "https://x.example", "package": evil}
    previous, current = (side({}, {path: {"mcp_server": value}}) for value in (server, other))
    (entry,) = compare_sides(previous, current).entries
    assert [(change.kind, change.location) for change in entry.changes] == [
        ("scope", "mcp_server.package.identifier"),
        ("scope", "mcp_server.url"),
        ("text", "mcp_server.version"),
    ]
    assert entry.changes[0].text == (
        "`…p-mcp-mcp-mcp-mcp-server` became `…p-mcp-mcp-mcp-mcp-sevrer`"
    )


def test_parameter_order_of_a_meta_tool_counts() -> None:
    """Not that of a session."""
    meta, session = "meta_tools/M/20250101_00.yaml", "sessions/trs_a.yaml"
    previous, current = {"a": 1, "b": 1}, {"b": 1, "a": 1}
    old, new = (
        Side({}, {}, {meta: {"template": {"input_parameters": item}}, session: {"tools": item}})
        for item in (previous, current)
    )
    assert [entry.path for entry in compare_sides(old, new).entries] == [meta]


def test_most_severe_changes_come_first() -> None:
    """Unknown, breaking, scope, additive, text; totals count entries and changes."""
    names = ("NO", "BREAK", "ADD", "TEXT")
    previous = Side(
        {("a", slug): [comparisons.V1] for slug in names if slug != "ADD"},
        {
            ToolVersionKey("a", "NO", comparisons.V1): UNREAD,
            ToolVersionKey("a", "BREAK", comparisons.V1): comparisons.PLAIN,
            ToolVersionKey("a", "TEXT", comparisons.V1): comparisons.PLAIN,
        },
        {},
    )
    current = Side(
        {("a", slug): [comparisons.V1] for slug in names},
        {
            ToolVersionKey("a", "NO", comparisons.V1): comparisons.PLAIN,
            ToolVersionKey("a", "BREAK", comparisons.V1): comparisons.NEEDY,
            ToolVersionKey("a", "TEXT", comparisons.V1): REWORDED,
            ToolVersionKey("a", "ADD", comparisons.V1): comparisons.PLAIN,
        },
        {},
    )
    result = compare_sides(previous, current, ("main", "here"))
    assert [entry.slug for entry in result.entries] == [*names]
    assert (result.old_title, result.new_title) == ("main", "here")
    assert {label: count for label, count in result.status_counts.items() if count} == {
        "not compared": 1,
        "changed": 2,
        "added": 1,
    }
    assert result.kind_counts == {"breaking": 1, "scope": 0, "additive": 1, "text": 1}


VERSIONS = st.lists(
    st.sampled_from([comparisons.V1, comparisons.V2, comparisons.V3]), unique=True
).map(sorted)
STATES = st.dictionaries(
    st.sampled_from([comparisons.V1, comparisons.V2, comparisons.V3]),
    st.sampled_from([comparisons.PLAIN, REWORDED, comparisons.NEEDY, OLD, UNREAD]),
)


@example_settings(66)
@given(previous=STATES, current=STATES)
def test_every_difference_is_reported(
    previous: dict[str, Tool | Unreadable], current: dict[str, Tool | Unreadable]
) -> None:
    """And nothing for equal sides."""
    result = compare_sides(side(previous), side(current)).entries
    if not previous or not current:
        unread = [version for version in current if current[version] is UNREAD]
        told_of = {*unread, max(current)} if current else {max(previous)} if previous else set()
        assert {entry.version for entry in result} == told_of
        return
    differing = {
        version
        for version in previous.keys() | current.keys()
        if previous.get(version) != current.get(version) or previous[version] is UNREAD
    }
    assert {entry.version for entry in result} == differing
    assert [*result] == sorted(result, key=lambda entry: ("unknown", *KINDS).index(entry.kind))


@given(previous=VERSIONS, current=VERSIONS)
def test_predecessor_is_the_nearest_older_version(
    previous: Sequence[str], current: Sequence[str]
) -> None:
    """None for existing versions or new tools."""
    result = predecessors({("a", "A_DO"): previous} if previous else {}, {("a", "A_DO"): current})
    for new, old in result.items():
        assert new.version in current
        assert new.version not in previous
        assert not [item for item in (*previous, *current) if old.version < item < new.version]
    assert bool(result) == (
        bool(previous)
        and any(item not in previous and item > min([*previous, *current]) for item in current)
    )


def test_no_differences_give_an_empty_comparison() -> None:
    assert compare_sides(side(), side()) == Comparison("before", "after", ())
    assert Entry("removed", "a").kind == "text"
