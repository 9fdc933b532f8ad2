"""Tests of `catalog.yaml_editor`: one value changes, and no other byte."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.paths import SHIPPED_CATALOG
from toolcatalog.catalog import yaml_reader, yaml_writer
from toolcatalog.catalog.yaml_editor import UnsafeEdit, remove_key, set_value

FILE = b"""\
# what this is
name: Do it   # the name
# of the description
description: >-
  Does it.
  # no comment

# what it takes
input_parameters:
  a:
    type: string # short
    description: 'it''s'

  # the other one
  b: {type: integer, description: B, default: 3}
# the end
"""
BLOCK = {"reason": "Old.", "since": "2025-01-01"}


def test_new_key_after_another() -> None:
    """Comments stay with the key that follows them."""
    changed = set_value(FILE, ("deprecation",), BLOCK, preceding=("name", "description", "scopes"))
    assert changed == FILE.replace(
        b"no comment\n", b"no comment\ndeprecation:\n  reason: Old.\n  since: '2025-01-01'\n"
    )


def test_new_key_at_the_end() -> None:
    """After all others, before the last comment."""
    assert set_value(FILE, ("when",), "x") == FILE.replace(b"# the end", b"when: x\n# the end")


def test_key_is_replaced_and_removed() -> None:
    """Removal restores the bytes."""
    once = set_value(FILE, ("deprecation",), BLOCK, preceding=("description",))
    twice = set_value(once, ("deprecation",), {"reason": "Older."})
    assert twice == once.replace(b"  reason: Old.\n  since: '2025-01-01'\n", b"  reason: Older.\n")
    assert remove_key(twice, ("deprecation",)) == FILE
    assert remove_key(FILE, ("deprecation",)) == FILE


def test_nested_key_has_the_indent_of_its_siblings() -> None:
    pointer = ("input_parameters", "a")
    assert set_value(FILE, (*pointer, "required"), True, preceding=("type",)) == FILE.replace(
        b"# short\n", b"# short\n    required: true\n"
    )
    assert set_value(FILE, (*pointer, "description"), "B.") == FILE.replace(b"'it''s'", b"B.")
    assert remove_key(FILE, (*pointer, "type")) == FILE.replace(b"    type: string # short\n", b"")


def test_list_items_have_an_index() -> None:
    """Also mappings on the line of the dash."""
    listing = b"a:\n- x: 1 # one\n  y: 2\n- x: 3\n"
    assert set_value(listing, ("a", 0, "x"), 5) == listing.replace(b"1 # one", b"5")
    assert set_value(listing, ("a", 0, "z"), 6) == listing.replace(b"y: 2\n", b"y: 2\n  z: 6\n")
    assert remove_key(listing, ("a", 0, "y")) == listing.replace(b"  y: 2\n", b"")


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_file_format_is_kept(newline: bytes, bom: bytes, ended: bool) -> None:
    """Line ends, byte-order mark, and a last line without an end."""
    plain = b"name: A\n# c\ntags: [a]"
    expected = b"name: A\nx: 1\n# c\ntags: [a]\ny: 2"
    end = newline if ended else b""
    changed = set_value(
        set_value(bom + plain.replace(b"\n", newline) + end, ("x",), 1, preceding=("name",)),
        ("y",),
        2,
    )
    assert changed == bom + expected.replace(b"\n", newline) + end


def test_document_end_marker_stays_last() -> None:
    assert set_value(b"---\na: 1\n...\n", ("b",), 2) == b"---\na: 1\nb: 2\n...\n"


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (b"{a: 1, b: 2}\n", ("a",)),
        (b"{}\n", ("a",)),
        (b"- a\n", ("a",)),
        (b"a: 1\na: 2\n", ("a",)),
        (b"a: [\n", ("a",)),
        (b"\xff", ("a",)),
        (b"a: {b: 1}\n", ("a", "b")),
        (b"a: 1\n", ("b", "c")),
        (b"a: |+\n  x\n\n", ("b",)),
    ],
)
def test_unsupported_changes_are_refused(data: bytes, pointer: tuple[str, ...]) -> None:
    """With one sentence and an unchanged text."""
    with pytest.raises(UnsafeEdit, match=r"^(the|there) .{20}"):
        set_value(data, pointer, 9)


def test_comment_characters_in_quoted_text() -> None:
    assert set_value(b"a: 'x\n# y'\n# z\nb: 1\n", ("a",), 9) == b"a: 9\n# z\nb: 1\n"
    assert (
        set_value(b"a: |\n  x\n  # y\n# z\nb: 1\n", ("c",), 9, preceding=("a",))
        == b"a: |\n  x\n  # y\nc: 9\n# z\nb: 1\n"
    )


def test_shipped_files_can_be_edited() -> None:
    """Deprecating and undoing restores the bytes of each tool."""
    paths = sorted(SHIPPED_CATALOG.glob("toolkits/*/*/*.yaml"))
    assert len(paths) > 100
    for path in paths:
        data = path.read_bytes()
        without = remove_key(data, ("deprecation",))
        assert (
            remove_key(
                set_value(
                    without,
                    ("deprecation",),
                    BLOCK,
                    preceding=("name", "description", "scopes", "tags", "no_auth"),
                ),
                ("deprecation",),
            )
            == without
        )


KEYS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn", "Co"]),
    min_size=1,
    max_size=5,
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEYS
    | st.just("a\n b\n")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.data())
def test_any_value_in_any_file(document: dict[str, Any], data: st.DataObject) -> None:
    """The result has the new value, or the change is refused; put and drop restore the bytes."""
    previous = yaml_writer.to_yaml(document)
    key, value = data.draw(KEYS), data.draw(VALUES)
    try:
        changed = set_value(previous, (key,), value)
    except UnsafeEdit:
        return
    assert yaml_reader.parse(changed).value == {**document, key: value}
    if key not in document:
        assert remove_key(changed, (key,)) == previous
    remaining = copy.deepcopy(document)
    selected = data.draw(st.sampled_from(sorted(remaining)))
    remaining.pop(selected)
    if remaining:
        assert yaml_reader.parse(remove_key(previous, (selected,))).value == remaining
