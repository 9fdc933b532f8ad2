"""Tests of `names`: safe names, and the nearest name."""

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.names import (
    AUTH_CONFIG_ID,
    SESSION_ID,
    TOOL_SLUG,
    TOOLKIT_SLUG,
    find_nearest,
    is_valid,
)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (TOOLKIT_SLUG, "github"),
        (TOOLKIT_SLUG, "_9-a_"),
        (TOOL_SLUG, "GITHUB_CREATE_ISSUE"),
        (TOOL_SLUG, "9"),
        (TOOL_SLUG, "A" * 200),
        (SESSION_ID, "trs_-"),
        (AUTH_CONFIG_ID, "ac_Z9"),
    ],
)
def test_valid_names(pattern: str, name: str) -> None:
    assert is_valid(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (TOOLKIT_SLUG, ""),
        (TOOLKIT_SLUG, "GitHub"),
        (TOOLKIT_SLUG, "-git"),
        (TOOLKIT_SLUG, "git.hub"),
        (TOOLKIT_SLUG, "github\n"),
        (TOOLKIT_SLUG, "gïthub"),
        (TOOLKIT_SLUG, "categories"),
        (TOOL_SLUG, "github_create"),
        (TOOL_SLUG, "A" * 201),
        (TOOL_SLUG, "A/B"),
        (TOOL_SLUG, ".."),
        (SESSION_ID, "trs_"),
        (SESSION_ID, "TRS_a"),
        (AUTH_CONFIG_ID, "ac"),
    ],
)
def test_invalid_names(pattern: str, name: str) -> None:
    assert not is_valid(pattern, name)


@given(
    st.sampled_from([TOOLKIT_SLUG, TOOL_SLUG, SESSION_ID, AUTH_CONFIG_ID]),
    st.text("aZ9_-./\\%~ \n\0é", max_size=12),
)
def test_valid_name_is_safe(pattern: str, name: str) -> None:
    """One plain path segment, the same in a URL, and no option."""
    for candidate in (name, f"trs_{name}", f"ac_{name}"):
        if is_valid(pattern, candidate):
            assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", candidate)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exmaples", ["examples"]),
        ("EXAMPLES", ["examples"]),
        ("Required", ["required"]),
        ("xyz", []),
        ("", []),
    ],
)
def test_nearest(name: str, expected: list[str]) -> None:
    """The most similar known name, ignoring case, or none."""
    assert find_nearest(name, ["type", "examples", "required", "enum"]) == expected


def test_nearest_several_best_first() -> None:
    """In the same order for any order of known names."""
    existing = ["MAIL_SEND", "MAIL_SENT", "MAIL_LIST", "CHAT_POST"]
    assert find_nearest("MAIL_SEN", existing, limit=2) == find_nearest(
        "MAIL_SEN", existing[::-1], limit=2
    )
    assert find_nearest("mail_sendd", existing, limit=2) == ["MAIL_SEND", "MAIL_SENT"]


def test_nearest_of_very_many() -> None:
    """Among a thousand names, for a wrong letter in any place."""
    words = ("mail", "chat", "files", "tasks", "forms", "notes", "music", "maps", "bank", "news")
    existing = ["-".join(items) for items in permutations(words, 3)]
    for name in existing[::37]:
        for position in range(0, len(name), 3):
            assert find_nearest(name[:position] + "q" + name[position + 1 :], existing) == [name]
            assert (
                find_nearest(name[:position] + name[position + 1 :], existing, limit=3)[0] == name
            )
    assert find_nearest("q" * 200, existing) == []


@pytest.mark.timeout(60)
def test_nearest_of_long_repetitive_names() -> None:
    """Letter by letter, 500 searches for such a name would take more than a minute."""
    existing = [f"K_{'A' * 190}{number:04}" for number in range(40)]
    assert find_nearest(f"K_{'A' * 190}q", existing)
    for _ in range(500):
        assert find_nearest("K_AABAAB" * 24, existing) == []
