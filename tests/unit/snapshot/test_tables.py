"""Tests of `snapshot.tables`: names are found, and damage is refused."""

import mmap
import tracemalloc
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import tables
from toolcatalog.snapshot.tables import Table

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SMALL = {"": b"nothing", "a": b"", "ab": b"\0\1\2", "b": b"x" * 40, "größe 日本": b"last"}


def write_table(values: dict[str, bytes]) -> bytes:
    names = sorted(values)
    return b"".join(
        tables.pack_table(
            names, [len(values[name]) for name in names], (values[name] for name in names)
        )
    )


@example_settings(50)
@given(st.dictionaries(NAMES, st.binary(max_size=30), max_size=40), st.lists(NAMES, max_size=20))
def test_packed_names_are_found(values: dict[str, bytes], others: list[str]) -> None:
    """With their value and place; other names are not."""
    opened, names = Table(write_table(values)), sorted(values)
    assert len(opened) == len(names)
    for position, name in enumerate(names):
        assert opened.find(name) == (position, values[name])
        assert opened.get(name) == values[name]
    for name in others:
        assert opened.get(name) == values.get(name)
        assert opened.bisect(name) == bisect_left(names, name)
    assert opened.names(0, len(names)) == names


def test_places_in_a_long_table() -> None:
    """A name has its place also where only some of the names are looked at first."""
    names = [f"{number:05}" for number in range(0, 4000, 2)]
    opened = Table(write_table(dict.fromkeys(names, b"")))
    for request in ("", *(f"{number:05}" for number in range(4001)), "x"):
        assert opened.bisect(request) == bisect_left(names, request)


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 5), (-3, 2), (1, 3), (4, 99), (7, 9), (3, 3), (4, 1)]
)
def test_names_from_place_to_place(start: int, stop: int) -> None:
    """As far as there are names; nothing counts from the end."""
    assert (
        Table(write_table(SMALL)).names(start, stop) == sorted(SMALL)[max(0, start) : max(0, stop)]
    )


def test_many_names_and_long_ones() -> None:
    """Thousands of names that fall on each other's slots, a name of 100,000 letters, a value of two
    blocks.
    """
    values = {f"name {number}": str(number).encode() for number in range(5000)}
    values |= {"x" * 100_000: b"long", "value": bytes(2 << 20)}
    opened = Table(write_table(values))
    assert {name: opened.get(name) for name in values} == values
    assert [opened.get(f"name {number}") for number in range(5000, 9000)] == [None] * 4000
    assert opened.get("x" * 99_999) is None


@pytest.mark.parametrize("name", ["\udcff", "a\udc80b"])
def test_a_name_that_is_no_text_is_not_there(name: str) -> None:
    """What a URL can hold and a catalog cannot is looked up as any other name."""
    assert Table(write_table(SMALL)).get(name) is None


def query_table(data: bytes, question: str) -> bytes | list[str] | int | str | None:
    """Return the content of a table of these bytes; "refused" if it is damaged."""
    try:
        opened = Table(data)
        match question.partition(" "):
            case "get", _, name:
                return opened.get(name)
            case "place", _, name:
                return opened.bisect(name)
        return opened.names(0, 9)
    except SnapshotError:
        return "refused"


QUESTIONS = [f"{verb} {name}" for verb in ("get", "place") for name in [*SMALL, "aa", "zz"]] + [
    "names"
]


def test_no_flipped_bit_is_mistaken() -> None:
    """Whichever bit is flipped, each question has its right answer or none, and each bit but those
    of no meaning is found out.
    """
    data = write_table(SMALL)
    good = {question: query_table(data, question) for question in QUESTIONS}
    assert "refused" not in good.values()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        fields = {question: query_table(bytes(damaged), question) for question in QUESTIONS}
        assert all(fields[question] in (good[question], "refused") for question in QUESTIONS), bit
        assert "refused" in fields.values() or bit // 8 in range(28, 32), bit


def test_no_other_length_is_taken() -> None:
    """A table that was cut off or has grown is refused when it is opened."""
    data = write_table(SMALL)
    for other in [*(data[:length] for length in range(len(data))), data + b"\0", data + data]:
        with pytest.raises(SnapshotError):
            Table(other)


def test_opening_copies_nothing(tmp_path: Path) -> None:
    """Of a table in a file no more comes into memory than a byte for each entry: the rest stays the
    operating system's.
    """
    entries = 100_000
    file = tmp_path / "table"
    file.write_bytes(write_table({f"{number:06}": b"" for number in range(entries)}))
    with file.open("rb") as source:
        data = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    tracemalloc.start()
    opened = Table(data)
    _, maximum = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert entries <= maximum < 2 * entries < len(data) / 10
    assert opened.get("099999") == b""


def repacked(data: bytes, slots: Sequence[int], offsets: Sequence[int]) -> bytes:
    """A table with other slots and offsets, and the right checksum."""
    magic, count, slot_count, _, seed = tables._HEADER.unpack(data[: tables._HEADER.size])
    index = array("I", slots).tobytes() + array("Q", offsets).tobytes()
    header = tables._HEADER.pack(magic, count, len(slots), zlib.crc32(index), seed)
    return header + index + data[tables._HEADER.size + 4 * slot_count + 8 * (count + 1) :]


def index_of(data: bytes) -> tuple[list[int], list[int]]:
    """The slots and offsets of a table."""
    _, count, slot_count, _, _ = tables._HEADER.unpack(data[: tables._HEADER.size])
    index = memoryview(data)[tables._HEADER.size :]
    return (
        index[: 4 * slot_count].cast("I").tolist(),
        index[4 * slot_count :][: 8 * (count + 1)].cast("Q").tolist(),
    )


def test_slots_and_offsets_that_make_lookups_slow_are_refused() -> None:
    """In a nearly full table, an unknown name would be compared with all others; with an entry in
    many slots, again and again with the same one. Entries that overlap could have any size.
    """
    data = write_table({f"{number:03}": b"" for number in range(200)})
    slots, offsets = index_of(data)
    Table(repacked(data, slots, offsets))
    full = [*range(1, 201), *[0] * 56]
    repeated = [min(number, 1) for number in slots]
    overlapping = [*offsets[:100], 0, *offsets[101:]]
    for index in ((full, offsets), (repeated, offsets), (slots, overlapping)):
        with pytest.raises(SnapshotError, match="a table is damaged"):
            Table(repacked(data, *index))


def test_names_that_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with the same CRC-32 would make each lookup walk over all of them."""
    names = colliding_names(400)
    data = write_table(dict.fromkeys(names, b"x"))
    table = Table(data)
    assert [table.find(name) for name in sorted(names)] == [(n, b"x") for n in range(len(names))]
    position = sorted(names).index(names[5])
    assert [*table.find_all(["unknown", names[5]])] == [(position, names[5], b"x")]
    assert table.get("unknown") is None
    assert data[:8] == tables._SEEDED_MAGIC
    # a table with CRC-32 is refused
    monkeypatch.setattr(tables, "_max_steps", lambda _: 1 << 62)
    slow = write_table(dict.fromkeys(names, b"x"))
    assert slow[:8] == tables._MAGIC
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="a table is damaged"):
        Table(slow)


def colliding_names(count: int) -> list[str]:
    """Names whose CRC-32 ends with the same ten bits, which select the slot among 1,024."""
    names: list[str] = []
    number = 0
    while len(names) < count:
        name = f"{number:x}"
        if zlib.crc32(name.encode()) & 1023 == 0:
            names.append(name)
        number += 1
    return names
