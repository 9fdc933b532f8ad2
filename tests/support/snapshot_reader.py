"""A simple reader of snapshots, which imports nothing of toolcatalog."""

import hashlib
import json
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyroaring import BitMap

Version = tuple[str, str]  # a tool's slug and version


def read_documents(snapshot: Path) -> dict[Version, bytes]:
    """The very bytes of each document in `tools.json`, in the order in which they lie there."""
    text = (snapshot / "tools.json").read_text()
    result, index = {}, 1
    while text[index] != "]":
        value, end = json.JSONDecoder().raw_decode(text, index)
        result[value["slug"], value["version"]] = text[index:end].encode()
        index = end + (text[end] == ",")
    assert text[0] + text[index:] == "[]"
    return result


def read_newest_documents(snapshot: Path) -> dict[str, bytes]:
    """The document of each tool's newest version."""
    return {slug: document for (slug, _), document in sorted(read_documents(snapshot).items())}


def read_table(file: Path) -> dict[str, bytes]:
    """Return names and values of a table in order, after checking its slots."""
    data = file.read_bytes()
    magic, count, slots, check, _ = struct.unpack_from("<8sQQII", data)
    begin = 32 + 4 * slots + 8 * (count + 1)
    assert (magic, check) == (b"tctable1", zlib.crc32(data[32:begin]))
    used = struct.unpack_from(f"<{slots}I", data, 32)
    paths = struct.unpack_from(f"<{count + 1}Q", data, 32 + 4 * slots)
    assert sorted(filter(None, used)) == [*range(1, count + 1)]
    assert begin + paths[-1] == len(data)
    results = {}
    for start, end in pairwise(paths):
        entry = data[begin + start : begin + end]
        check, length = struct.unpack_from("<II", entry)
        assert check == zlib.crc32(entry[4:])
        results[entry[8 : 8 + length].decode()] = entry[8 + length :]
    assert [*results] == sorted(results)
    return results


def read_query_files(snapshot: Path) -> dict[str, Any]:
    """What the `query.*` files say, as JSON: of tool versions by number, of tools, sets and words
    with the numbers that they hold.
    """
    tools, facts = read_table(snapshot / "query.tools"), read_table(snapshot / "query.facts")
    return {
        "numbers": [
            dict(zip(("slug", "version", "by_name", "by_version"), row, strict=True))
            for row in _read_numbers(snapshot)
        ],
        "tools": {
            slug: [int.from_bytes(value[:4], "little"), *json.loads(value[4:])]
            for slug, value in tools.items()
        },
        "sets": {
            name: [*BitMap.deserialize(value)]
            for name, value in read_table(snapshot / "query.sets").items()
        },
        "facts": {
            name: [json.loads(line) for line in value.split(b"\n")] for name, value in facts.items()
        },
        "words": _read_postings(snapshot),
        "vocabularies": {
            toolkit: _vocabulary(value)
            for toolkit, value in read_table(snapshot / "query.vocabularies").items()
        },
        "covers": read_name_statistics(snapshot),
    }


def _vocabulary(value: bytes) -> dict[str, list[int]]:
    """The numbers of a toolkit's terms and words."""
    end = 4 + int.from_bytes(value[:4], "little")
    return {
        name: [*BitMap.deserialize(data)]
        for name, data in (("terms", value[4:end]), ("words", value[end:]))
    }


def _read_numbers(snapshot: Path) -> list[tuple[str, str, int, int]]:
    """Slug, version and ranks of each row; where its document lies and what tells it from others is
    held against that.
    """
    data, rows = (snapshot / "tools.json").read_bytes(), []
    for start, end, check, tag, name, version in read_positions(snapshot):
        document = data[start:end]
        assert (check, tag) == (zlib.crc32(document), hashlib.sha256(document).digest()[:16])
        rows.append((json.loads(document)["slug"], json.loads(document)["version"], name, version))
    return rows


def read_positions(snapshot: Path) -> list[tuple[int, int, int, bytes, int, int]]:
    """Of each tool version, by number: where its document begins and ends, its checksum and tag,
    and its ranks by name and version.
    """
    data = (snapshot / "query.numbers").read_bytes()
    count = (len(data) - 8) // 44
    kinds = {
        "offsets": "Q",
        "tags": "16s",
        "checks": "I",
        "numbers": "I",
        "places": "I",
        "by_name": "I",
        "by_version": "I",
    }
    columns, end = {}, 0
    for name, kind in kinds.items():
        start, end = end, end + struct.calcsize(f"<{kind}") * (count + (name == "offsets"))
        columns[name] = [value for (value,) in struct.iter_unpack(f"<{kind}", data[start:end])]
    assert end == len(data)
    assert [columns["places"][number] for number in columns["numbers"]] == [*range(count)]
    return [
        (
            columns["offsets"][position],
            columns["offsets"][position + 1] - 1,
            columns["checks"][position],
            columns["tags"][position],
            name,
            version,
        )
        for position, name, version in zip(
            columns["places"], columns["by_name"], columns["by_version"], strict=True
        )
    ]


def _read_postings(snapshot: Path) -> dict[str, dict[str, Any]]:
    """Of each term its rarity to four digits, spellings and relatives, and of each tool that holds
    it the value: impact, where it stands.

    Each posting, and each row, is some term's.
    """
    data, terms = (snapshot / "query.postings").read_bytes(), read_table(snapshot / "query.words")
    assert struct.unpack_from("<Q", data, 48) == (zlib.crc32(data[:48]),)
    tools, result, end, words = len(read_positions(snapshot)), {}, 56, 0
    for term, entry in terms.items():
        first, stored, check, rarity, is_row, kin, word = struct.unpack_from("<QIIf?3xII", entry)
        assert word == words
        size = 2 * tools if is_row else 6 * stored
        assert (first, is_row) == (end, 3 * stored > tools)
        end = first + size + size % 4
        assert check == zlib.crc32(data[first:end])
        if is_row:
            postings = {
                number: value
                for number, (value,) in enumerate(
                    struct.iter_unpack("<H", data[first : first + size])
                )
                if value
            }
        else:
            numbers, values = (
                struct.unpack_from(f"<{stored}I", data, first),
                struct.unpack_from(f"<{stored}H", data, first + 4 * stored),
            )
            postings = dict(zip(numbers, values, strict=True))
            assert [*postings] == sorted(postings)
        assert len(postings) == stored
        spellings = entry[32 + 4 * kin :].decode().split("\t")
        words += len(spellings)
        related = struct.unpack_from(f"<{kin}I", entry, 32)
        result[term] = {
            "rarity": round(rarity, 4),
            "spellings": spellings,
            "kin": [[*terms][number] for number in related],
            "tools": {
                str(number): [value >> 2, *_decode_fields(value)]
                for number, value in postings.items()
            },
        }
    assert end == len(data)
    return result


def _decode_fields(value: int) -> list[str]:
    return [location for bit, location in ((1, "name"), (2, "toolkit")) if value & bit]


def read_name_statistics(snapshot: Path) -> list[list[float]]:
    """Of each tool version the rarities of the terms of its name, and of its toolkit's, to four
    digits, and the checksum of its name.
    """
    data = (snapshot / "query.covers").read_bytes()
    tools = len(data) // 12
    columns = (
        struct.iter_unpack(f"<{kind}", data[4 * tools * position : 4 * tools * (position + 1)])
        for position, kind in enumerate("ffI")
    )
    return [
        [round(name, 4), round(toolkit, 4), check]
        for (name,), (toolkit,), (check,) in zip(*columns, strict=True)
    ]
