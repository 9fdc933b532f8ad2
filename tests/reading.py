"""A snapshot read the plain way, as its format is described: without the store, and with nothing of toolcatalog."""

import hashlib
import json
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyroaring import BitMap

Version = tuple[str, str]  # a tool's slug and version


def documents(snapshot: Path) -> dict[Version, bytes]:
    """The very bytes of each document in `tools.json`, in the order in which they lie there."""
    text = (snapshot / "tools.json").read_text()
    found, at = {}, 1
    while text[at] != "]":
        value, end = json.JSONDecoder().raw_decode(text, at)
        found[value["slug"], value["version"]] = text[at:end].encode()
        at = end + (text[end] == ",")
    assert text[0] + text[at:] == "[]"
    return found


def newest(snapshot: Path) -> dict[str, bytes]:
    """The document of each tool's newest version."""
    return {slug: document for (slug, _), document in sorted(documents(snapshot).items())}


def table(file: Path) -> dict[str, bytes]:
    """Names and values of a table, in its order; its slots are held against its entries."""
    data = file.read_bytes()
    magic, count, slots, check, _ = struct.unpack_from("<8sQQII", data)
    begin = 32 + 4 * slots + 8 * (count + 1)
    assert (magic, check) == (b"tctable1", zlib.crc32(data[32:begin]))
    used = struct.unpack_from(f"<{slots}I", data, 32)
    places = struct.unpack_from(f"<{count + 1}Q", data, 32 + 4 * slots)
    assert sorted(filter(None, used)) == [*range(1, count + 1)]
    assert begin + places[-1] == len(data)
    found = {}
    for start, end in pairwise(places):
        entry = data[begin + start : begin + end]
        check, length = struct.unpack_from("<II", entry)
        assert check == zlib.crc32(entry[4:])
        found[entry[8 : 8 + length].decode()] = entry[8 + length :]
    assert [*found] == sorted(found)
    return found


def query(snapshot: Path) -> dict[str, Any]:
    """What the `query.*` files say, as JSON: of tool versions by number, of tools, sets and words with the numbers that they hold."""
    tools, facts = table(snapshot / "query.tools"), table(snapshot / "query.facts")
    return {
        "numbers": [dict(zip(("slug", "version", "by_name", "by_version"), row, strict=True)) for row in _numbers(snapshot)],
        "tools": {slug: [int.from_bytes(value[:4], "little"), *json.loads(value[4:])] for slug, value in tools.items()},
        "sets": {name: [*BitMap.deserialize(value)] for name, value in table(snapshot / "query.sets").items()},
        "facts": {name: [json.loads(line) for line in value.split(b"\n")] for name, value in facts.items()},
        "words": _postings(snapshot),
    }


def _numbers(snapshot: Path) -> list[tuple[str, str, int, int]]:
    """Slug, version and ranks of each row; where its document lies and what tells it from others is held against that."""
    data, rows = (snapshot / "tools.json").read_bytes(), []
    for start, end, check, tag, name, version in placed(snapshot):
        document = data[start:end]
        assert (check, tag) == (zlib.crc32(document), hashlib.sha256(document).digest()[:16])
        rows.append((json.loads(document)["slug"], json.loads(document)["version"], name, version))
    return rows


def placed(snapshot: Path) -> list[tuple[int, int, int, bytes, int, int]]:
    """Of each tool version, by number: where its document begins and ends, its checksum and tag, and its ranks by name and version."""
    data = (snapshot / "query.numbers").read_bytes()
    count = (len(data) - 8) // 44
    kinds = {"offsets": "Q", "tags": "16s", "checks": "I", "numbers": "I", "places": "I", "by_name": "I", "by_version": "I"}
    columns, end = {}, 0
    for name, kind in kinds.items():
        start, end = end, end + struct.calcsize(f"<{kind}") * (count + (name == "offsets"))
        columns[name] = [value for (value,) in struct.iter_unpack(f"<{kind}", data[start:end])]
    assert end == len(data)
    assert [columns["places"][number] for number in columns["numbers"]] == [*range(count)]
    return [
        (columns["offsets"][place], columns["offsets"][place + 1] - 1, columns["checks"][place], columns["tags"][place], name, version)
        for place, name, version in zip(columns["places"], columns["by_name"], columns["by_version"], strict=True)
    ]


def _postings(snapshot: Path) -> dict[str, dict[str, float]]:
    """Of each word the numbers that hold it and their impacts to four digits; each posting is some word's."""
    data, found, end = (snapshot / "query.postings").read_bytes(), {}, 0
    half = len(data) // 2
    for word, place in table(snapshot / "query.words").items():
        start, held, check = struct.unpack("<QII", place)
        assert start == end
        end = start + held
        numbers, impacts = (data[begin + 4 * start : begin + 4 * end] for begin in (0, half))
        assert check == zlib.crc32(numbers + impacts)
        pairs = zip(struct.unpack(f"<{held}I", numbers), struct.unpack(f"<{held}f", impacts), strict=True)
        found[word] = {str(number): round(impact, 4) for number, impact in pairs}
    assert half == 4 * end
    return found
