"""A snapshot read the plain way, as its format is described: without the store, and with nothing of toolcatalog."""

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

from pyroaring import BitMap

Version = tuple[str, str]  # a tool's slug and version


def documents(snapshot: Path) -> dict[Version, bytes]:
    """The very bytes of each document in `tools.json`, in the order in which they lie there."""
    text = (snapshot / "tools.json").read_text()
    found, at = {}, 1
    while text[at] not in "]":
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
    for start, end in zip(places, places[1:], strict=False):
        check, length = struct.unpack_from("<IH", data, begin + start)
        name, value = data[begin + start + 6 : begin + start + 6 + length], data[begin + start + 6 + length : begin + end]
        assert check == zlib.crc32(name + value)
        found[name.decode()] = value
    assert [*found] == sorted(found)
    return found


def query(snapshot: Path) -> dict[str, Any]:
    """What the `query.*` files say, as JSON: of tool versions by number, of tools, sets and words with the numbers that they hold."""
    tools, facts = table(snapshot / "query.tools"), table(snapshot / "query.facts")
    return {
        "numbers": [dict(zip(("slug", "version", "by_name", "by_version"), row, strict=True)) for row in _numbers(snapshot)],
        "tools": {slug: json.loads(value) for slug, value in tools.items()},
        "sets": {name: [*BitMap.deserialize(value)] for name, value in table(snapshot / "query.sets").items()},
        "facts": {name: [json.loads(line) for line in value.split(b"\n")] for name, value in facts.items()},
        "words": {word: _postings(value) for word, value in table(snapshot / "query.words").items()},
    }


def _numbers(snapshot: Path) -> list[tuple[str, str, int, int]]:
    """Slug, version and ranks of each row; where its document lies and what tells it from others is held against that."""
    data, rows = (snapshot / "tools.json").read_bytes(), []
    for offset, size, check, tag, name, version in struct.iter_unpack("<QII16sII", (snapshot / "query.numbers").read_bytes()):
        document = data[offset : offset + size]
        assert (check, tag) == (zlib.crc32(document), hashlib.sha256(document).digest()[:16])
        rows.append((json.loads(document)["slug"], json.loads(document)["version"], name, version))
    return rows


def _postings(value: bytes) -> dict[str, float]:
    """The numbers that hold a word, and their impacts to four digits."""
    count = len(value) // 8
    numbers, impacts = struct.unpack(f"<{count}I", value[: 4 * count]), struct.unpack(f"<{count}f", value[4 * count :])
    return {str(number): round(impact, 4) for number, impact in zip(numbers, impacts, strict=True)}
