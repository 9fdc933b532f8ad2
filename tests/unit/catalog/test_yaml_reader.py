"""Tests of `catalog.yaml_reader`: types, strings, problems and positions."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.paths import DATA, SHIPPED_CATALOG
from toolcatalog.catalog import yaml_reader, yaml_writer
from toolcatalog.errors import MAX_FINDINGS_PER_FILE

STAY_STRINGS = """
no yes on off y n Yes NO True FALSE Null NULL ~ 012 0o14 0x1F 0b1 1_000 1:30 1:30:45 20250909_00
2025-01-01 2025-01-01T10:00:00Z
.inf -.inf .nan .5 5. +5 1e5x 1.2.3 - -- <<= = 00 -01 1e 0x null_ truex
""".split()  # noqa: SIM905 - a table
TYPED = {
    "null": None,
    "true": True,
    "false": False,
    "0": 0,
    "-0": 0,
    "7": 7,
    "-12": -12,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "1.5": 1.5,
    "-0.25": -0.25,
    "1e3": 1000.0,
    "2.5E-3": 0.0025,
    "1.0": 1.0,
}


def read(text: str) -> Any:
    reading = yaml_reader.parse(text.encode())
    assert reading.faults == ()
    return reading.value


@pytest.mark.parametrize("text", STAY_STRINGS)
def test_non_json_scalars_are_strings(text: str) -> None:
    """Booleans, octals, base-60 numbers, dates and underscores of YAML 1.1."""
    if text not in ("-", "="):  # a lone dash is a list, and what follows a colon may not begin one
        assert read(f"key: {text}") == {"key": text}
    assert read(f"[x, '{text}', \"{text}\"]") == ["x", text, text]


@pytest.mark.parametrize(("text", "value"), TYPED.items())
def test_json_literals_are_typed(text: str, value: Any) -> None:
    """Quoted or in a block, they are strings."""
    result = read(f"key: {text}")["key"]
    assert result == value
    assert type(result) is type(value)
    assert read(f"key: '{text}'") == {"key": text}
    assert read(f"key: |-\n  {text}") == {"key": text}


def test_keys_are_strings() -> None:
    """Also those that look like a number, boolean or null."""
    assert read("{1: a, true: b, null: c, 2025-01-01: d, 'x y': e, '': f}") == {
        "1": "a",
        "true": "b",
        "null": "c",
        "2025-01-01": "d",
        "x y": "e",
        "": "f",
    }


def test_missing_values_are_null() -> None:
    """After a key or a dash."""
    assert read("a:\nb:\n  -\n  - x\n") == {"a": None, "b": [None, "x"]}


def test_all_string_styles() -> None:
    """Folded, literal, quoted and multi-line plain strings."""
    text = (
        "a: >-\n  one\n  two\nb: |\n  one\n   two\nc: 'it''s'\nd: \"tab\\t\\u00e9\"\ne: one\n "
        " two\n"
    )
    assert read(text) == {
        "a": "one two",
        "b": "one\n two\n",
        "c": "it's",
        "d": "tab\té",
        "e": "one two",
    }


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab :#-é日"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc :", max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_json_is_yaml(value: Any) -> None:
    assert read(json.dumps(value, ensure_ascii=False)) == value


FAULTS = {
    "not utf-8": (b"a: \xff", (1, 4), "yaml-encoding"),
    "cut utf-8": ("é\n日".encode()[:-1], (2, 1), "yaml-encoding"),
    "surrogate": (b"a: \xed\xa0\x80", (1, 4), "yaml-encoding"),
    "nul": (b"a: b\nc: \0", (2, 4), "yaml-control-character"),
    "delete": (b"a: \x7f", (1, 4), "yaml-control-character"),
    "next line": ("a: b\u0085c: d".encode(), (1, 5), "yaml-control-character"),
    "lone carriage return": (b"a: b\rc: d\r\n", (1, 5), "yaml-control-character"),
    "paragraph separator": ("日本: \u2029".encode(), (1, 5), "yaml-control-character"),
    "bom within": ("\ufeffa: \ufeff".encode(), (1, 4), "yaml-byte-order-mark"),
    "nothing": (b"", (1, 1), "yaml-empty"),
    "only comments": (b"# a\n# b\n", (3, 1), "yaml-empty"),
    "second document": (b"a: b\n---\nc: d\n", (2, 1), "yaml-documents"),
    "alias": (b"a: b\nc: *a\n", (2, 4), "yaml-alias"),
    "alias as key": (b"*a : b\n", (1, 1), "yaml-key"),
    "anchor": (b"a: &x [b]\n", (1, 4), "yaml-anchor"),
    "anchor on a key": (b"&x a: b\n", (1, 1), "yaml-anchor"),
    "tag": (b"a: !!binary aGk=\n", (1, 4), "yaml-tag"),
    "own tag": (b"- !env HOME\n", (1, 3), "yaml-tag"),
    "tag on a mapping": (b"!!map {a: b}\n", (1, 1), "yaml-tag"),
    "list as key": (b"? [a]\n: b\n", (1, 3), "yaml-key"),
    "mapping as key": (b"{{a: b}: c}\n", (1, 2), "yaml-key"),
    "duplicate": (b"a: 1\nb: 2\na: 3\n", (3, 1), "yaml-duplicate-key"),
    "duplicate in another style": (b"{a: 1, 'a': 2}\n", (1, 8), "yaml-duplicate-key"),
    "integer too large": (b"- 9223372036854775808\n", (1, 3), "yaml-number"),
    "integer too small": (b"- -9223372036854775809\n", (1, 3), "yaml-number"),
    "very long integer": (b"a: " + b"9" * 5000, (1, 4), "yaml-number"),
    "float too large": (b"- 1e400\n", (1, 3), "yaml-number"),
    "33 levels": (b"[" * 33 + b"]" * 33, (1, 33), "yaml-depth"),
    "33 levels of mappings": (b"{a: " * 33 + b"1" + b"}" * 33, (1, 129), "yaml-depth"),
    "colon in a value": (b"a: b: c\n", (1, 5), "yaml-syntax"),
    "tab": (b"a:\n\tb: c\n", (2, 1), "yaml-syntax"),
    "open quote": (b"a: b\nc: 'd\n", (2, 4), "yaml-syntax"),
    "open list": (b"a: [b\n", (2, 1), "yaml-syntax"),
    "wrong escape": (b'a: "\\q"\n', (1, 5), "yaml-syntax"),
    "escaped surrogate": (b'a: "\\ud800"\n', (1, 7), "yaml-syntax"),
}


@pytest.mark.parametrize(("data", "place", "rule"), FAULTS.values(), ids=FAULTS)
def test_problem_has_line_column_and_help(data: bytes, place: tuple[int, int], rule: str) -> None:
    """Columns count characters, as in editors."""
    faults = yaml_reader.parse(data).faults
    assert [(fault.line, fault.column, fault.rule) for fault in faults] == [(*place, rule)]
    assert faults[0].message
    assert faults[0].help


def test_depth_counts_mappings_and_lists() -> None:
    """32 nested lists with a value are allowed."""
    value = read("[" * 32 + "x" + "]" * 32)
    for _ in range(32):
        (value,) = value
    assert value == "x"


def test_all_problems_of_a_file_are_reported() -> None:
    """And the valid parts are still read."""
    reading = yaml_reader.parse(b"a: &x 1\na: 2\nb: *x\nc: !t 3\nd: 1e999\ne: fine\n")
    assert [(fault.line, fault.rule) for fault in reading.faults] == [
        (1, "yaml-anchor"),
        (2, "yaml-duplicate-key"),
        (3, "yaml-alias"),
        (4, "yaml-tag"),
        (5, "yaml-number"),
    ]
    assert reading.value == {"a": 1, "b": None, "c": "3", "d": 0.0, "e": "fine"}


def test_control_characters_are_one_problem() -> None:
    """With their number."""
    (fault,) = yaml_reader.parse(b"\x01\x02\x03").faults
    assert fault.message == "control character U+0001 (and 2 more in this file)"


def test_reading_stops_after_many_problems() -> None:
    reading = yaml_reader.parse(b"- &a x\n" * 100_000)
    assert len(reading.faults) == MAX_FINDINGS_PER_FILE + 1
    assert reading.root is None


@pytest.mark.parametrize(
    "text",
    [
        "[" + "x, " * 10 + "]",
        "- x\n" * 10,
        "{" + "".join(f"k{n}, " for n in range(10)) + "}",
        "? a\n? b\n",
    ],
)
def test_number_of_values_is_limited(text: str) -> None:
    """Mappings and lists count, keys do not; reading stops there."""
    maximum = count(read(text))
    assert yaml_reader.parse(text.encode(), max_values=maximum).faults == ()
    (fault,) = yaml_reader.parse(text.encode(), max_values=maximum - 1).faults
    assert (fault.rule, fault.message) == (
        "yaml-values",
        f"more than {maximum - 1} values in this file",
    )
    with pytest.raises(yaml_reader.NeedsFullParse):
        yaml_reader.parse_fast(text.encode(), max_values=maximum - 1)


def count(value: Any) -> int:
    """How many values there are: itself, and all within it."""
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, within))


def test_aliases_are_not_expanded() -> None:
    """Against "billion laughs"."""
    lines = [
        "a: &a [x, x]",
        *(
            f"{name}: &{name} [*{last}, *{last}, *{last}]"
            for last, name in zip("abcdefgh", "bcdefghi", strict=True)
        ),
    ]
    reading = yaml_reader.parse("\n".join(lines).encode())
    assert len(reading.faults) == 9 + 24
    assert reading.value["i"] == [None, None, None]


@pytest.mark.parametrize(
    ("pointer", "at_key", "expected"),
    [
        ((), False, (2, 1, 1)),
        (("name",), False, (2, 7, 4)),
        (("name",), True, (2, 1, 4)),
        (("日本",), False, (3, 5, 6)),
        (("list", 1), False, (6, 5, 1)),
        (("list", 1, "a"), False, (6, 8, 1)),
        (("list", 1, "a"), True, (6, 5, 1)),
        (("flow", "b", 0), False, (7, 12, 3)),
        (("text",), False, (8, 7, 1)),
        (("empty",), False, (10, 7, 1)),
        (("list", 7), False, (5, 3, 1)),
        (("flow", "b", 0, "further"), True, (7, 12, 3)),
        (("flow", "further"), True, (7, 7, 1)),
        (("nowhere", "at", "all"), True, (2, 1, 1)),
    ],
)
def test_locate_value(
    pointer: tuple[str | int, ...], at_key: bool, expected: tuple[int, int, int]
) -> None:
    """By its JSON pointer, or the nearest parent; columns and lengths count characters."""
    text = (
        "# first\nname: Send\n日本: 'né!é'\nlist:\n  - x\n  - a: b\nflow: {b: [\"c\"]}\ntext: |\n "
        " more\nempty:\n"
    )
    mark = yaml_reader.parse(text.encode()).root
    assert mark is not None
    assert yaml_reader.locate_value(mark, pointer, at_key) == expected


def test_refused_float_is_replaced_by_a_finite_one() -> None:
    """So that later checks work."""
    assert math.isfinite(yaml_reader.parse(b"1e999").value)


@given(
    st.binary(max_size=200)
    | st.text("ab:-?[]{}&*!|>'\"#%@`, \t\n\r\\0é\u2028\ufeff", max_size=80).map(str.encode)
)
def test_any_bytes_give_a_value_or_problems(data: bytes) -> None:
    """All places are within the file."""
    reading = yaml_reader.parse(data)
    lines = data.decode("utf-8", "replace").split("\n")
    assert reading.faults or reading.root is not None
    for fault in reading.faults:
        assert 1 <= fault.line <= len(lines) + 1
        assert 1 <= fault.column <= max(map(len, lines)) + 1


FOLDERS = (SHIPPED_CATALOG, DATA / "rejects", DATA / "golden")
FILES = sorted(
    {path.read_bytes() for folder in FOLDERS for path in folder.rglob("*.y*ml") if path.is_file()},
    key=lambda data: (len(data), data),
)
PIECES = """
a b a: b: ? - [ ] { } , : & &x *x *a ! !t !!str !<t> | > |- >+ ' " '' \\ \\ud83d\\ude00 \\u0041
# @ ` % %YAML %TAG --- ... ~ null true false
0 -0 -7 12 1.5 1e3 1e999 9223372036854775807 9223372036854775808 no 012 2025-01-01 é 日 😀
""".split()  # noqa: SIM905 - a table
SPACES = [
    " ",
    "\n",
    "\n  ",
    "\n    ",
    "",
    "\r\n",
    "\t",
    "\ufeff",
    "\x00",
    "\x7f",
    "\x85",
    "\u2028",
    "\xa0",
]


@st.composite
def corrupted(draw: st.DrawFn) -> bytes:
    """A file of the shipped catalog or of another test, with a few places in it changed."""
    data = draw(st.sampled_from(FILES))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 8))
        new = draw(
            st.sampled_from([*PIECES, *SPACES]).map(str.encode)
            | st.binary(max_size=2)
            | st.just(data[start : start + 40] * 2)
        )
        data = data[:start] + new + data[start + cut :]
    return data


soup = st.lists(st.sampled_from(PIECES) | st.sampled_from(SPACES), max_size=30).map("".join)
nested = st.tuples(st.sampled_from(["[", "{a: ", "- ", "{? "]), st.integers(28, 36)).map(
    lambda how: how[0] * how[1] + "x"
)
closed = nested.map(
    lambda text: (
        text + "".join("]" if char == "[" else "}" for char in reversed(text) if char in "[{")
    )
)


def assert_same(data: bytes) -> None:
    reading = yaml_reader.parse(data)
    try:
        value = yaml_reader.parse_fast(data)
    except yaml_reader.NeedsFullParse:
        return
    assert reading.faults == ()
    assert repr(value) == repr(reading.value)  # as `==`, and types and the order of keys too


@given(st.binary(max_size=200) | (soup | closed).map(str.encode) | corrupted())
def test_fast_path_gives_the_same_value(data: bytes) -> None:
    """Or nothing, if there is a problem."""
    assert_same(data)


@given((soup | closed).map(str.encode) | corrupted())
@example(b"?")  # a mapping of the empty key and null: two values in one byte
def test_value_count_estimate_is_an_upper_bound(data: bytes) -> None:
    """The fast path skips counting if the bytes cannot contain too many values."""
    maximum = count(yaml_reader.parse(data).value)
    if maximum > 1:
        with pytest.raises(yaml_reader.NeedsFullParse):
            yaml_reader.parse_fast(data, max_values=maximum - 1)


@given(json_values)
def test_fast_path_reads_valid_files(value: Any) -> None:
    """Of our writer and of JSON writers."""
    assert repr(yaml_reader.parse_fast(yaml_writer.to_yaml(value))) == repr(value)
    assert yaml_reader.parse_fast(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize("data", [data for data, *_ in FAULTS.values()], ids=FAULTS)
def test_fast_path_reads_no_invalid_file(data: bytes) -> None:
    with pytest.raises(yaml_reader.NeedsFullParse):
        yaml_reader.parse_fast(data)


def test_fast_path_reads_real_files() -> None:
    """Every shipped file; both paths agree about every test file."""
    for path in SHIPPED_CATALOG.rglob("*.yaml"):
        yaml_reader.parse_fast(path.read_bytes())
    for data in FILES:
        assert_same(data)
