"""Changing one value in a YAML file: all else stays as it is, byte for byte, or nothing is changed
at all.
"""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.paths import SHIPPED_CATALOG
from toolcatalog.catalog import yaml_reader, yaml_writer
from toolcatalog.catalog.yaml_editor import UnsafeEdit, remove_key, replace_scalar, set_value

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


def test_a_new_key_goes_behind_another() -> None:
    """The comments stay with the keys that they stand before."""
    changed = set_value(FILE, ("deprecation",), BLOCK, preceding=("name", "description", "scopes"))
    assert changed == FILE.replace(
        b"no comment\n", b"no comment\ndeprecation:\n  reason: Old.\n  since: '2025-01-01'\n"
    )


def test_a_new_key_at_the_end() -> None:
    """Where none is named, behind all others and before the last comment."""
    assert set_value(FILE, ("when",), "x") == FILE.replace(b"# the end", b"when: x\n# the end")


def test_a_key_is_replaced_and_goes_again() -> None:
    """What was put is replaced, and is gone without a trace when it is dropped."""
    once = set_value(FILE, ("deprecation",), BLOCK, preceding=("description",))
    twice = set_value(once, ("deprecation",), {"reason": "Older."})
    assert twice == once.replace(b"  reason: Old.\n  since: '2025-01-01'\n", b"  reason: Older.\n")
    assert remove_key(twice, ("deprecation",)) == FILE
    assert remove_key(FILE, ("deprecation",)) == FILE


def test_a_nested_key() -> None:
    """A key of an inner mapping stands as deep as those beside it."""
    pointer = ("input_parameters", "a")
    assert set_value(FILE, (*pointer, "required"), True, preceding=("type",)) == FILE.replace(
        b"# short\n", b"# short\n    required: true\n"
    )
    assert set_value(FILE, (*pointer, "description"), "B.") == FILE.replace(b"'it''s'", b"B.")
    assert remove_key(FILE, (*pointer, "type")) == FILE.replace(b"    type: string # short\n", b"")


@pytest.mark.parametrize(
    ("pointer", "value", "previous", "current"),
    [
        (("name",), "Do that", b"Do it   #", b"Do that   #"),
        (("name",), "2025", b"Do it   #", b"'2025'   #"),
        (("input_parameters", "a", "description"), 'a: "b"', b"'it''s'", b"'a: \"b\"'"),
        (("input_parameters", "b", "default"), 4, b"default: 3}", b"default: 4}"),
        (
            ("input_parameters", "b", "description"),
            "B, }",
            b"description: B,",
            b"description: 'B, }',",
        ),
        (
            ("input_parameters", "b", "description"),
            "b" * 200,
            b"description: B,",
            b'description: "' + b"b" * 200 + b'",',
        ),
    ],
)
def test_a_scalar_is_replaced_on_its_line(
    pointer: tuple[str, ...], value: Any, previous: bytes, current: bytes
) -> None:
    """Only the characters of the value differ, and it is quoted where it must be."""
    assert replace_scalar(FILE, pointer, value) == FILE.replace(previous, current)


def test_what_is_not_there_is_given_a_value() -> None:
    """A null that is not written down gets a value and a space before it."""
    assert replace_scalar(b"a:\nb: 1\n", ("a",), 2) == b"a: 2\nb: 1\n"


def test_an_item_of_a_list() -> None:
    """Lists are reached by index, also those with mappings on the line of the dash."""
    listing = b"a:\n- x: 1 # one\n  y: 2\n- x: 3\n"
    assert replace_scalar(listing, ("a", 1, "x"), 4) == listing.replace(b"3", b"4")
    assert set_value(listing, ("a", 0, "x"), 5) == listing.replace(b"1 # one", b"5")
    assert set_value(listing, ("a", 0, "z"), 6) == listing.replace(b"y: 2\n", b"y: 2\n  z: 6\n")
    assert remove_key(listing, ("a", 0, "y")) == listing.replace(b"  y: 2\n", b"")


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_the_form_of_the_file_stays(newline: bytes, bom: bytes, ended: bool) -> None:
    """Line ends, byte-order mark, and a last line without an end are as they were."""
    plain = b"name: A\n# c\ntags: [a]"
    expected = b"name: A\nx: 1\n# c\ntags: [a]\ny: 2"
    end = newline if ended else b""
    changed = set_value(
        set_value(bom + plain.replace(b"\n", newline) + end, ("x",), 1, preceding=("name",)),
        ("y",),
        2,
    )
    assert changed == bom + expected.replace(b"\n", newline) + end


def test_a_document_end_stays_last() -> None:
    """Markers of a document are left where they are."""
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
def test_what_cannot_be_changed_alone_is_refused(data: bytes, pointer: tuple[str, ...]) -> None:
    """In a sentence, and with nothing changed."""
    with pytest.raises(UnsafeEdit, match=r"^(the|there) .{20}"):
        set_value(data, pointer, 9)


def test_a_line_of_a_text_is_no_comment() -> None:
    """A quoted text may go on with what looks like a comment elsewhere."""
    assert set_value(b"a: 'x\n# y'\n# z\nb: 1\n", ("a",), 9) == b"a: 9\n# z\nb: 1\n"
    assert (
        set_value(b"a: |\n  x\n  # y\n# z\nb: 1\n", ("c",), 9, preceding=("a",))
        == b"a: |\n  x\n  # y\nc: 9\n# z\nb: 1\n"
    )


@pytest.mark.parametrize(
    ("data", "pointer"),
    [(b"a: |\n  x\n", ("a",)), (b"a: [1]\n", ("a",)), (b"a: {}\n", ("a",)), (b"a: 1\n", ("b",))],
)
def test_what_is_no_scalar_on_a_line_is_refused(data: bytes, pointer: tuple[str, ...]) -> None:
    """A text on lines of its own, lists and mappings are for `put`."""
    with pytest.raises(UnsafeEdit):
        replace_scalar(data, pointer, 9)


def test_the_shipped_files() -> None:
    """Each tool of the catalog can be deprecated and undeprecated: what is there before and after
    is the same bytes.
    """
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
        pairs = zip(
            data.splitlines(),
            replace_scalar(data, ("name",), "Another name").splitlines(),
            strict=True,
        )
        assert [current for previous, current in pairs if previous != current] == [
            b"name: Another name"
        ]


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
    """What comes out says what was meant, or the change is refused; put and drop give back the
    bytes of before.
    """
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
