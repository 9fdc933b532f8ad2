"""Inputs of at most 1 MiB that are as bad as we know how, and what each costs the room that takes
it: seconds of a processor, and memory.

`python tests/bounding.py [NAME...]` prints a line of JSON for each. Everything is loaded and used
once before; then each case gets a process forked off for itself, so that its memory is its own.
Memory is the kernel's high-water mark, so this needs Linux.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from toolcatalog import depot, keys, locking, verifying
from toolcatalog.build import build
from toolcatalog.checking import check
from toolcatalog.cli import cli
from toolcatalog.errors import ToolcatalogError
from toolcatalog.keeping import KeyFile
from toolcatalog.opening import open_build
from toolcatalog.server.live import Serving
from toolcatalog.server.refusals import Refused
from toolcatalog.yaml12 import MOST_VALUES

SIZE = 1024 * 1024
LINE = 64 * 1024  # bytes of a request line that HTTP lets through
# seconds of a processor that `yardstick` takes on the machine that the bounds are promised for,
# when nobody else works there
IDLE = 0.018
LONGEST = 30  # seconds of a processor, after which a case is ended
BASE = Path(__file__).parent / "rejects" / "_base" / "catalog"
PLACES = {
    "tool": "toolkits/mail/MAIL_SEND/20250202_00.yaml",
    "toolkit": "toolkits/mail/toolkit.yaml",
    "about": "catalog.yaml",
    "session": "sessions/trs_bound.yaml",
    "credentials": "auth_configs/ac_bound.yaml",
}


class Cost(NamedTuple):
    """What a case took, in seconds of a processor and MiB above what was taken before; `said`: how
    it ended, `!` in front of what no case may do.
    """

    seconds: float
    mebibytes: float
    said: str


# --- what is fed


class Filled(NamedTuple):
    """Text of at most so many bytes: as many pieces as fit between head and tail, and no more than
    so many; `@` is a number of its own.
    """

    head: str
    piece: str
    tail: str = ""
    most: int = SIZE
    pieces: int = SIZE

    def data(self) -> bytes:
        """Its bytes, made only where they are fed: all of them together are some hundred megabytes."""
        room = self.most - len(f"{self.head}{self.tail}".encode())
        if "@" in self.piece:
            longest = len(self.piece.replace("@", "fffff"))
            pieces = "".join(
                [
                    self.piece.replace("@", f"{number:x}")
                    for number in range(min(self.pieces, room // longest))
                ]
            )
        else:
            pieces = self.piece * min(self.pieces, room // max(1, len(self.piece.encode())))
        return f"{self.head}{pieces}{self.tail}".encode()


Data = Filled | bytes
filled = Filled


TOOL = "name: Send\ndescription: Send a message.\n"
ONE = f"{TOOL}input_parameters:\n  a:\n    type: string\n    description: A value.\n"


def quoted(text: str) -> str:
    """The text as it stands between double quotes: as it is, unless it has no UTF-8."""
    return json.dumps(text, ensure_ascii="\ud83d" in text)[1:-1]


def values(text: str) -> int:
    """About how many values there are in a piece of YAML."""
    return sum(map(text.count, ":?,-[{"))


def tools() -> Iterator[tuple[str, Data]]:
    """Files of a tool."""
    for piece in TEXTS:
        yield f"description {piece!r}", filled('name: Send\ndescription: "', quoted(piece), '"\n')
        yield f"parameter {piece!r}", filled(f'{ONE}    default: "', quoted(piece), '"\n')
    for name, head, piece, tail in FILES:
        yield name, filled(head, piece, tail)
        if (left := MOST_VALUES - values(f"{head}{tail}")) > 0 and values(piece):
            yield (
                f"{name}, as many as are read",
                filled(head, piece, tail, pieces=left // values(piece)),
            )
    half = "a" * (SIZE // 2 - 200)
    yield "half is pattern", f"{ONE}    pattern: ({half})\n    examples: [{half}]\n".encode()
    for pattern in (
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*b",
        r"^(.*?,){40}P",
        r"(\\w+\\s?)*!$",
        "(?=a*b)a*c",
        r"^(a+)\\1+$",
    ):
        yield (
            f"pattern {pattern}",
            filled(f'{ONE}    pattern: "{pattern}"\n    examples: ["', "a", '!"]\n'),
        )
        yield (
            f"patterns {pattern}",
            filled(f'{ONE}    pattern: "{pattern}"\n    examples: [', f'"{"a" * 30}!", ', "a]\n"),
        )
    for form in FORMATS:
        yield f"format {form}", filled(f'{ONE}    format: {form}\n    examples: ["', "a.", '"]\n')
        yield f"format {form} @", filled(f'{ONE}    format: {form}\n    examples: ["', "a@", '"]\n')
    nested = "".join(
        "  " * (depth + 1) + f"{key}:\n" for depth, key in enumerate(["a", "properties"] * 13)
    )
    yield "deep", filled(f"{TOOL}input_parameters:\n{nested}", "  " * 27 + "p@: {type: string}\n")


FORMATS = (
    "email",
    "idn-email",
    "uri",
    "uri-template",
    "iri",
    "regex",
    "date-time",
    "duration",
    "hostname",
    "idn-hostname",
    "ipv6",
    "json-pointer",
    "uuid",
)

TEXTS = (
    "a", "a ", "a\n", "\n", "\n\n", " ", "[", "[a](", "![", "*a", "**a ", "_a", "`", "``a", "<", "<a ", "<!--", "&", "&#1", "&amp;", "- ", "> ", "1. ", "# ", "\\", "\\\\", "|", "~~~\n", "    a\n", "\t",
    "[a]: b\n", "http://a.", "a@b.", "é", "e\u0301", "\u202e", "\u2066", "\u200b", "\U000e0041", "\u0430a ", "😀", "你", "你好 ", "ẞ", "İ", "\ufdfa", "aB", "a_", "a-", "1", "1.", "w@ ", "x@y ", "{{", "ghp_", "sk-", "eyJ.",
    "-----BEGIN ", "ignore all ", "do not tell ", "TODO ", "data:a/a;a", "\ud83d", "a'", "...", "a, ",
)  # fmt: skip

BRANCHES = "    - {type: integer}\n" * 4_000
CHOICES = ", ".join(f"e{number}" for number in range(9_000))
LONG_CHOICES = ", ".join(f"{number:0>200}" for number in range(2_500))
LETTERS = "abcdefghijklmnopqrstu"
LAUGHS = "".join(
    f"{next_}: &{next_} [{', '.join([f'*{one}'] * 9)}]\n" for one, next_ in pairwise(LETTERS)
)

FILES = (
    ("parameters", f"{TOOL}input_parameters:\n", "  p@: {type: string}\n", ""),
    ("parameters told", f"{TOOL}input_parameters:\n", "  p@: {type: string, description: 'What it is, and what a good one is.', default: a, examples: [b]}\n", ""),
    ("outputs", f"{TOOL}output_parameters:\n", "  p@: {type: string}\n", ""),
    ("parameters alike", f"{TOOL}input_parameters:\n", "  parameter_with_a_long_name_@: {type: string, description: The same text each time.}\n", ""),
    ("parameters of no kind", f"{TOOL}input_parameters:\n", "  p@: {}\n", ""),
    ("parameters without sense", f"{TOOL}input_parameters:\n", "  p@: {typ: strin, descriptoin: 1}\n", ""),
    ("parameters null", f"{TOOL}input_parameters:\n", "  p@:\n", ""),
    ("parameters misfit", f"{TOOL}input_parameters:\n", "  p@: {type: integer, default: a}\n", ""),
    ("patterns", f"{TOOL}input_parameters:\n", "  p@: {type: string, pattern: 'a@{9}', default: aaaaaaaaa}\n", ""),
    ("patterns that are none", f"{TOOL}input_parameters:\n", "  p@: {type: string, pattern: '(', default: a}\n", ""),
    ("large patterns", f"{TOOL}input_parameters:\n", "  p@: {type: string, pattern: '((((a{9}){9}){9}){9})@', default: aaaaaaaaa}\n", ""),
    ("enum", f"{ONE}    enum: [", "v@, ", "v]\n"),
    ("enum repeated", f"{ONE}    enum: [", "v, ", "v]\n"),
    ("enum of lists", f"{ONE}    enum: [", "[@], ", "v]\n"),
    ("enum of objects", f"{ONE}    enum: [", "{a: [@]}, ", "v]\n"),
    ("enum of numbers", f"{ONE}    enum: [", "0.@, ", "v]\n"),
    ("enum of null", f"{ONE}    enum: [", "null, ", "v]\n"),
    ("examples", f"{ONE}    examples: [", "v@, ", "v]\n"),
    ("examples misfit", f"{ONE}    examples: [", "1, ", "1]\n"),
    ("examples and enum", f"{ONE}    enum: [{CHOICES}]\n    examples: [", "v@, ", "v]\n"),
    ("enum and examples in it", f"{ONE}    enum: [{CHOICES}]\n    examples: [", "e8999, ", "e1]\n"),
    ("enum of long values", f"{ONE}    enum: [{LONG_CHOICES}]\n    examples: [", "'" + "0" * 199 + "', ", "a]\n"),
    ("anyOf", f"{TOOL}input_parameters:\n  a:\n    anyOf:\n", "    - {type: string, maxLength: 1}\n", ""),
    ("anyOf and examples", f"{TOOL}input_parameters:\n  a:\n    anyOf:\n{BRANCHES}    examples: [", "v, ", "v]\n"),
    ("oneOf and examples", f"{TOOL}input_parameters:\n  a:\n    oneOf:\n{BRANCHES}    examples: [", "v, ", "v]\n"),
    ("uniqueItems", f"{TOOL}input_parameters:\n  a:\n    type: array\n    uniqueItems: true\n    items: {{type: array}}\n    examples: [[", "[@], ", "[1]]]\n"),
    ("uniqueItems of objects", f"{TOOL}input_parameters:\n  a:\n    type: array\n    uniqueItems: true\n    items: {{type: object}}\n    default: [", "{a: @}, ", "{a: 1}]\n"),
    ("properties held against a large default", f"{TOOL}input_parameters:\n  a:\n    type: object\n    additionalProperties: {{type: integer}}\n    default: {{", "k@: v, ", "k: v}\n"),
    ("tags", f"{TOOL}tags: [", "t@, ", "t]\n"),
    ("tags alike", f"{TOOL}tags: [", "t, ", "t]\n"),
    ("scopes", f"{TOOL}scopes: [", "s@, ", "s]\n"),
    ("long tag", f"{TOOL}tags: [", "t", "]\n"),
    ("unknown keys", TOOL, "k@:\n", ""),
    ("known keys misspelt", TOOL, "descriptio@:\n", ""),
    ("long key", TOOL, "k", ":\n"),
    ("same key", TOOL, "k:\n", ""),
    ("name", "description: a\nname: ", "Aa", "\n"),
    ("aliases", f"a: &a [x, x]\n{TOOL}tags: [", "*a, ", "]\n"),
    ("laughs", f"a: &a [x]\n{LAUGHS}tags: [", "*j, ", "]\n"),
    ("anchors", f"{TOOL}tags: [", "&a@ b, ", "]\n"),
    ("tags of YAML", f"{TOOL}tags: [", "!!str b@, ", "]\n"),
    ("binary", f"{TOOL}tags: [", "!!binary b@, ", "]\n"),
    ("documents", TOOL, "---\n", ""),
    ("lists in lists", TOOL + "tags: ", "[", ""),
    ("mappings in mappings", TOOL + "tags: ", "{a: ", ""),
    ("lists in lines", TOOL + "tags:\n  ", "- ", ""),
    ("keys in lines", TOOL + "tags:\n  ", "? ", ""),
    ("quote open", TOOL + 'tags: "', "a\n ", ""),
    ("plain over lines", TOOL + "tags: ", "a\n ", "\n"),
    ("folded", TOOL + "tags: >\n", "  a\n\n", ""),
    ("comments", TOOL, "# a\n", ""),
    ("comments for us", TOOL, "# toolcatalog: ignore description-short because of @\n", ""),
    ("blanks in a comment for us", TOOL + "# toolcatalog: a", " ", "b\n"),
    ("comments for us 2", TOOL, "a@: b # toolcatalog: ignore\n", ""),
    ("comments for editors", "", "# yaml-language-server: $schema=@\n", TOOL),
    ("hashes", TOOL, "#", "\n"),
    ("blank lines", TOOL, "\n", ""),
    ("spaces", TOOL, " ", ""),
    ("carriage returns", TOOL, "\r", ""),
    ("tabs", TOOL, "\t", ""),
    ("zeros", "", "\0", ""),
    ("marks of order", TOOL, "\ufeff", ""),
    ("controls", TOOL + "tags: [", "\x85", "]"),
    ("percent", "", "%a b\n", ""),
    ("escapes", TOOL + 'tags: ["', "\\U0001F600", '"]\n'),
    ("pairs", TOOL + 'tags: ["', "\\ud83d\\ude00", '"]\n'),
    ("halves", TOOL + 'tags: ["', "\\ud83d", '"]\n'),
    ("backslashes", TOOL + "tags: ['", "\\\\", "\\ud83d\\ude00']\n"),
    ("digits", f"{ONE}    minLength: ", "9", "\n"),
    ("digits behind a point", f"{ONE}    minimum: 0.", "9", "\n"),
    ("exponent", f"{ONE}    minimum: 1e", "9", "\n"),
    ("huge numbers", f"{ONE}    enum: [", "99999999999999999999@, ", "1]\n"),
    ("great exponents", f"{ONE}    enum: [", "1e999999, ", "1]\n"),
    ("minus", f"{ONE}    minimum: ", "-", "\n"),
)  # fmt: skip


def others() -> Iterator[tuple[str, str, Data]]:
    """Room, name and bytes of the other kinds of files of a catalog."""
    yield (
        "toolkit",
        "categories",
        filled("name: Mail\nlogo: https://a.example/a\ncategories: [", "c@, ", "c]\n"),
    )
    yield (
        "toolkit",
        "owners",
        filled("name: Mail\nlogo: https://a.example/a\nowners: [", "'@o@', ", "o]\n"),
    )
    yield "toolkit", "logo", filled("name: Mail\nlogo: https://a.example/", "a", "\n")
    yield "toolkit", "blanks in logo", filled("name: Mail\nlogo: 'https://", "a ", "'\n")
    yield "about", "rules", filled("title: a\nrules:\n", "  r@: off\n")
    yield "about", "title", filled("title: ", "a b ", "\n")
    yield "about", "description", filled("title: a\ndescription: ", "[a](b) ", "\n")
    for field in (
        "tools: {enable: [A@",
        "tags: {enable: [t@",
        "toolkits: {enable: [k@",
        "meta_tools: [M@",
    ):
        head, piece = field.rsplit("[", 1)
        yield "session", head, filled(f"{head}[", f"{piece}, ", "A]" + "}" * head.count("{") + "\n")
    yield "session", "toolkit_versions", filled("toolkit_versions:\n", "  k@: 20250101_00\n")
    yield "session", "auth_configs", filled("auth_configs:\n", "  k@: ac_k@\n")
    yield "session", "tools of kits", filled("tools:\n", "  k@: {enable: [K@_A]}\n")
    yield "credentials", "tools", filled("toolkit: mail\ntools: [", "MAIL_@, ", "MAIL_SEND]\n")
    yield "credentials", "scopes", filled("toolkit: mail\nscopes: [", "s@, ", "s]\n")


def imports() -> Iterator[tuple[str, str, Data]]:
    """Room, name and bytes of documents to import."""
    for name, schema in SCHEMAS().items():
        tool = {"name": "send", "description": "Send.", "inputSchema": schema}
        yield "mcp", name, json.dumps({"tools": [tool]}).encode()
        yield (
            "wire",
            name,
            json.dumps(
                [
                    {
                        "slug": "MAIL_SEND",
                        "name": "Send",
                        "description": "Send.",
                        "input_parameters": schema,
                    }
                ]
            ).encode(),
        )
        body = {
            "content": {
                "application/json": {
                    "schema": {key: value for key, value in schema.items() if key != "$defs"}
                }
            }
        }
        paths = {
            "/a": {
                "post": {
                    "operationId": "a",
                    "requestBody": body,
                    "responses": {"200": {"description": "a"}},
                }
            }
        }
        where = {
            "components": {
                "schemas": {key: moved(value) for key, value in schema.get("$defs", {}).items()}
            }
        }
        yield "openapi", name, json.dumps({**OPEN, "paths": moved(paths), **where}).encode()
    head = json.dumps({**OPEN, "paths": {}})[:-2]
    yield "openapi", "paths", filled(head, '"/a@":{"get":{}},', '"/a":{"get":{}}}}')
    yield (
        "openapi",
        "parameters",
        filled(
            head + '"/a":{"get":{"parameters":[',
            '{"name":"p@","in":"query"},',
            '{"name":"p","in":"query"}]}}}}',
        ),
    )
    yield "openapi", "segments", filled(head + '"', "/{a}", '":{"get":{}}}}')
    yield "openapi", "tags", filled(head + '"/a":{"get":{"tags":[', '"t@",', '"t"]}}}}')
    for kind, start in (("mcp", '{"tools":['), ("wire", "["), ("openapi", "")):
        yield kind, "lists", filled(start, "[")
        yield kind, "objects", filled(start, '{"a":')
        yield kind, "digits", filled(start, "9")
        yield kind, "null", filled(start, "null,", "null]}"[: 5 if kind == "wire" else 6])
        yield kind, "empty", filled(start, "{},", "{}]}"[: 3 if kind == "wire" else 4])
        yield kind, "zeros", filled("", "\0")
        yield kind, "same key", filled(start + "{", '"a":1,', '"a":1}')
    yield (
        "mcp",
        "tools",
        filled(
            '{"tools":[',
            '{"name":"t@","inputSchema":{"type":"object"}},',
            '{"name":"t","inputSchema":{"type":"object"}}]}',
        ),
    )
    yield (
        "mcp",
        "tools, as many as are read",
        filled('{"tools":[', '{"name":"t@"},', '{"name":"t"}]}', pieces=2_047),
    )
    yield (
        "wire",
        "tools, as many as are read",
        filled(
            "[",
            '{"slug":"A_T@","name":"t","description":""},',
            '{"slug":"A_T","name":"t","description":""}]',
            pieces=2_047,
        ),
    )
    yield (
        "openapi",
        "tools, as many as are read",
        filled(
            head, '"/a@":{"get":{"responses":{}}},', '"/a":{"get":{"responses":{}}}}}', pieces=2_047
        ),
    )
    yield (
        "wire",
        "tools",
        filled(
            "[",
            '{"slug":"A_T@","name":"t","description":""},',
            '{"slug":"A_T","name":"t","description":""}]',
        ),
    )
    yield (
        "wire",
        "unknown fields",
        filled('[{"slug":"A_T","name":"t","description":"",', '"k@":1,', '"k":1}]'),
    )
    for piece in ("- ", "a: &a@ *a@\n", "[", "{a: ", "? ", "a@: [*b]\n"):
        yield "openapi", f"yaml {piece!r}", filled("openapi: 3.0.0\n", piece)


OPEN = {
    "openapi": "3.1.0",
    "info": {"title": "Mail", "version": "1", "x-logo": {"url": "https://a.example/a.png"}},
}


def moved(value: object) -> object:
    """References as an OpenAPI document has them."""
    return json.loads(json.dumps(value).replace("#/$defs/", "#/components/schemas/"))


def SCHEMAS() -> dict[str, dict[str, Any]]:  # noqa: N802 - a constant that is made when it is asked for
    """JSON Schemas that want to become more than they are."""
    text = {"type": "string"}

    def objects(**properties: object) -> dict[str, Any]:
        return {"type": "object", "properties": properties}

    def laughs(
        depth: int, wide: int, within: Callable[[dict[str, str]], dict[str, object]]
    ) -> dict[str, object]:
        levels = {f"d{n}": within({"$ref": f"#/$defs/d{n + 1}"}) for n in range(depth)}
        return (
            {**objects(a={"$ref": "#/$defs/d0"}), "$defs": {**levels, f"d{depth}": text}}
            if wide
            else {}
        )

    def wide(number: int) -> Callable[[dict[str, str]], dict[str, object]]:
        return lambda ref: objects(**{f"p{n}": ref for n in range(number)})

    many = {f"p{n}": text for n in range(30_000)}
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(20_000)}
    deep: dict[str, Any] = text
    for _ in range(200):
        deep = objects(a=deep)
    return {
        "laughs by 2": laughs(40, 2, wide(2)),
        "laughs by 9": laughs(30, 9, wide(9)),
        "laughs of allOf": laughs(30, 2, lambda ref: {"allOf": [ref, ref]}),
        "laughs of anyOf": laughs(30, 2, lambda ref: {"anyOf": [ref, ref, text]}),
        "laughs of items": laughs(30, 2, lambda ref: {"type": "array", "items": {"anyOf": [ref, ref]}}),
        "one large shape many times": {**objects(**{f"q{n}": {"$ref": "#/$defs/d"} for n in range(3_500)}), "$defs": {"d": objects(**{f"p{n}": text for n in range(7_000)})}},
        "itself": {**objects(a={"$ref": "#/$defs/d"}), "$defs": {"d": objects(a={"$ref": "#/$defs/d"}, b={"$ref": "#/$defs/d"})}},
        "each other": {**objects(a={"$ref": "#/$defs/d0"}), "$defs": {f"d{n}": objects(**{f"p{m}": {"$ref": f"#/$defs/d{m}"} for m in range(60)}) for n in range(60)}},
        "chain": {**objects(a={"$ref": "#/$defs/d0"}), "$defs": {**chain, "d20000": text}},
        "many": objects(**many),
        "deep": deep,
        "allOf": {"type": "object", "allOf": [objects(**{f"p{n}": text}) for n in range(12_000)]},
        "allOf of the same": {"type": "object", "allOf": [objects(a=text)] * 12_000},
        "anyOf": objects(a={"anyOf": [{"type": "string", "maxLength": n} for n in range(20_000)]}),
        "enum": objects(a={"enum": [f"v{n}" for n in range(80_000)]}),
        "const": objects(a={"anyOf": [{"const": f"v{n}"} for n in range(40_000)]}),
        "types": objects(a={"type": ["string", "integer"] * 40_000}),
        "required": {**objects(a=text), "required": [f"r{n}" for n in range(80_000)]},
        "long name": objects(**{"n" * 900_000: text}),
        "long text": objects(a={**text, "description": "[a](" * 200_000}),
        "odd keywords": objects(a={**text, **{f"x{n}": n for n in range(50_000)}}),
    }  # fmt: skip


def asked() -> Iterator[tuple[str, str, Data]]:
    """Room, name and bytes of what clients say, and of files that servers read."""
    for piece in (
        "a=b&",
        "&",
        "=",
        "%",
        "%00",
        "%ff",
        "tags=a@&",
        "tags[]=a&",
        "tags[@]=a&",
        "[",
        "a[",
        "toolkit_versions[k@]=20250101_00&",
        "toolkit_versions[a@]=x&",
        "tool_slugs=A@&",
        "limit=@&",
        "cursor=@&",
    ):
        yield "query", piece, filled("", piece, most=LINE)
    for head, piece in (
        ("tags=", "t@,"),
        ("tool_slugs=", "A@,"),
        ("toolkit_slug=", "k@,"),
        ("scopes=", "s@,"),
        ("auth_config_ids=", "ac_@,"),
        ("query=", "a"),
        ("search=", "w@+"),
        ("limit=", "9"),
        ("limit=1e", "9"),
        ("limit=0.", "9"),
        ("cursor=", "A"),
        ("version=", "2"),
        ("sort_by=", "a"),
    ):
        yield "query", head + piece, filled(head, piece, most=LINE)
        yield "get", head + piece, filled(head, piece, most=LINE)
    for piece in ("A", "_", "a", "\u0430", "%41"):
        yield "slug", piece, filled("", piece)
    for piece in ("[", '{"a":', "9", "\0", '"', "{}"):
        for room in ("keys", "manifest", "listing", "pointer", "chunks", "lock", "body"):
            yield room, piece, filled("", piece)
    key = {
        "id": "key_@",
        "project": "p",
        "toolkits": None,
        "sha256": "0" * 64,
        "hint": "abcd",
        "created": "2026-01-01T00:00:00+00:00",
        "lifetime": None,
        "expires": None,
        "revoked": None,
    }
    yield (
        "keys",
        "keys",
        filled('{"format":1,"keys":[', json.dumps(key) + ",", json.dumps(key) + "]}"),
    )
    yield (
        "keys",
        "toolkits",
        filled('{"format":1,"keys":[' + json.dumps(key).replace("null", '["k"', 1)[:-1], "", "}]}"),
    )
    yield (
        "keys",
        "lifetime",
        filled('{"format":1,"keys":[' + json.dumps(key)[:-1] + ',"lifetime":', "9", "}]}"),
    )


def cases() -> Iterator[tuple[str, str, Data]]:
    """Room, name and bytes of every case."""
    for act in ("check", "build"):
        yield from ((f"{act} tool", name, data) for name, data in tools())
        yield from ((f"{act} {room}", name, data) for room, name, data in others())
    yield from imports()
    yield from asked()


# The cases that every run of the tests feeds: of each kind what takes most, or did before it was
# mended.
QUICK = (
    "query", "get", "slug", "body", "keys", "manifest", "listing", "pointer", "chunks", "lock",
    "build tool/description '\ufdfa'", "build tool/enum of long values", "build tool/large patterns", "build tool/laughs", "build tool/lists in lists", "check tool/digits", "check tool/escapes",
    "check tool/comments for us", "check tool/blanks in a comment for us", "check tool/pattern (?=a*b)a*c", "check tool/tags alike", "check tool/enum of objects, as many as are read", "mcp/laughs by 9", "wire/laughs by 9", "openapi/laughs by 9", "openapi/itself", "mcp/lists", "wire/digits", "mcp/tools", "wire/const", "openapi/many", "openapi/yaml 'a: &a@ *a@\\n'",
)  # fmt: skip


# --- the rooms


def of_catalog(path: str, act: Callable[[Path, Path], object]) -> Callable[[bytes, Path], str]:
    """Do something with a catalog that has this file in it, and a folder that is empty."""

    def take(data: bytes, folder: Path) -> str:
        catalog = folder / "catalog"
        shutil.copytree(BASE, catalog)
        (catalog / path).parent.mkdir(parents=True, exist_ok=True)
        (catalog / path).write_bytes(data)
        return str(act(catalog, folder))

    return take


def checked(catalog: Path, _: Path) -> str:
    """Check it, with all advice."""
    return f"{len(check(catalog).problems)} told"


def built(catalog: Path, folder: Path) -> str:
    """Build it, with its site."""
    return f"built {build(catalog, folder / 'build', folder / 'site').digest[:8]}"


def of_import(kind: str) -> Callable[[bytes, Path], str]:
    """Import a file into a catalog that is not there yet."""

    def take(data: bytes, folder: Path) -> str:
        (folder / "file").write_bytes(data)
        cli.main(
            [
                "import",
                kind,
                str(folder / "file"),
                "--into",
                str(folder / "catalog"),
                *(["--toolkit", "mail"] if kind != "openapi" else []),
            ],
            standalone_mode=False,
        )
        return f"imported {sum(1 for _ in (folder / 'catalog').rglob('*.yaml'))}"

    return take


class Rooms:
    """Every room by its name: a function of the bytes and an empty folder that gives what came of
    it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        build(BASE, folder / "build", folder / "site")
        _, self.key = keys.create(folder / "keys.json", "default", None, None)
        self.serving = Serving(open_build(folder / "build"), keys.KeyRing(folder / "keys.json"))
        self.named: dict[str, Callable[[bytes, Path], object]] = {
            **{f"check {room}": of_catalog(path, checked) for room, path in PLACES.items()},
            **{f"build {room}": of_catalog(path, built) for room, path in PLACES.items()},
            **{kind: of_import(kind) for kind in ("openapi", "mcp", "wire")},
            "query": lambda data, _: self.serving.operations.tools(self.key, data),
            "get": lambda data, _: self.serving.operations.tool(self.key, "MAIL_SEND", data),
            "slug": lambda data, _: self.serving.operations.tool(self.key, data.decode(), b""),
            "body": lambda data, _: self.serving.operations.session(
                self.key, "trs_support", b"", data
            ),
            "keys": lambda data, folder: keys.read(data, KeyFile(folder / "keys.json")),
            "pointer": lambda data, _: depot.named(data),
            "chunks": lambda data, _: depot.unpack(data),
            "lock": lambda data, _: locking.load(data, "lock"),
            "manifest": partial_file("manifest.json"),
            "listing": partial_file("files.json"),
        }

    def take(self, room: str, data: bytes, folder: Path) -> str:
        """What came of it: a refusal is an end as any other; `!` and its name where it is an error
        of ours.
        """
        try:
            return str(self.named[room](data, folder))[:60]
        except (ToolcatalogError, Refused) as refused:
            return f"refused: {str(refused)[:80]!r}"
        except Exception as error:
            return f"! {type(error).__name__}: {str(error)[:100]}"


def partial_file(name: str) -> Callable[[bytes, Path], object]:
    """Verify a snapshot in which this file has these bytes."""

    def take(data: bytes, folder: Path) -> object:
        shutil.copytree((folder.parent / "build" / "current").resolve(), folder / "snapshot")
        (folder / "snapshot" / name).write_bytes(data)
        return verifying.verify(folder / "snapshot")

    return take


# --- the measure


def high_water() -> tuple[float, float]:
    """Resident memory of this process now and at most, in MiB."""
    status = Path("/proc/self/status").read_text()
    now, most = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
    assert now
    assert most
    return int(now[1]) / 1024, int(most[1]) / 1024


def yardstick() -> float:
    """How many times slower than promised for this machine is now: it may be another one, and
    others may work on it.
    """
    began = time.process_time()
    for _ in range(2_000):
        sum(range(1_000))
    return (time.process_time() - began) / IDLE


def measured(rooms: Rooms, room: str, data: bytes, folder: Path) -> Cost:
    """Feed a room in this process."""
    Path("/proc/self/clear_refs").write_text("5")  # what was at most before is forgotten
    (before, _), began = high_water(), time.process_time()
    said = rooms.take(room, data, folder)
    return Cost(time.process_time() - began, high_water()[1] - before, said)


def forked(rooms: Rooms, room: str, data: bytes) -> Cost:
    """Feed a room in a process of its own."""
    folder = Path(tempfile.mkdtemp(dir=rooms.folder))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
            os.write(write, json.dumps(measured(rooms, room, data, folder)).encode())
        os._exit(0)
    os.close(write)
    with open(read) as stream:
        told = stream.read()
    os.waitpid(child, 0)
    shutil.rmtree(folder)
    return Cost(*json.loads(told)) if told else Cost(0, 0, "! it died")


def main(wanted: list[str]) -> None:
    """Measure the cases whose room, or room and name, are wanted; all where none is."""
    with tempfile.TemporaryDirectory() as folder:
        rooms, before = Rooms(Path(folder)), yardstick()
        for room, name, data in cases():
            if not wanted or room in wanted or f"{room}/{name}" in wanted:
                fed = data if isinstance(data, bytes) else data.data()
                assert 0 < len(fed) <= SIZE, name
                cost, after = forked(rooms, room, fed), yardstick()
                print(
                    json.dumps(
                        {
                            "case": f"{room}/{name}",
                            **cost._asdict(),
                            "slowness": (before + after) / 2,
                        }
                    ),
                    flush=True,
                )
                before = after


if __name__ == "__main__":
    main(sys.argv[1:])
