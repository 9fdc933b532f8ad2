"""Inputs of at most 1 MiB that are as bad as we know how, and what each costs the room that takes
it: seconds of a processor, and memory.

`PYTHONPATH=tests python -m support.worst_inputs [NAME...]` prints a line of JSON for each.
Everything is loaded and used once before; then each case gets a process forked off for itself, so
that its memory is its own. Memory is the kernel's high-water mark, so this needs Linux.
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

from support.paths import DATA
from toolcatalog import lockfile
from toolcatalog.api.error_responses import RequestError
from toolcatalog.build.pipeline import build
from toolcatalog.catalog.yaml_reader import MAX_VALUES
from toolcatalog.cli.main import cli
from toolcatalog.errors import ToolcatalogError
from toolcatalog.keys import api_keys
from toolcatalog.keys.storage import FileKeyStorage
from toolcatalog.publish import layout
from toolcatalog.server.metrics.counters import CacheCounts
from toolcatalog.server.state import ServedSnapshot
from toolcatalog.snapshot import verify
from toolcatalog.store.open import open_build
from toolcatalog.validation.checker import check_folder

MAX_INPUT_SIZE = 1024 * 1024
LINE = 64 * 1024  # bytes of a request line that HTTP lets through
# seconds of a processor that `yardstick` takes on the machine that the bounds are promised for,
# when nobody else works there
IDLE_SECONDS = 0.018
MAX_SECONDS = 30  # seconds of a processor, after which a case is ended
BASE = DATA / "rejects" / "_base" / "catalog"
FILE_PATHS = {
    "tool": "toolkits/mail/MAIL_SEND/20250202_00.yaml",
    "toolkit": "toolkits/mail/toolkit.yaml",
    "about": "catalog.yaml",
    "session": "sessions/trs_bound.yaml",
    "credentials": "auth_configs/ac_bound.yaml",
}


class Cost(NamedTuple):
    """What a case took, in seconds of a processor and MiB above what was taken before; `outcome`:
    how it ended, `!` in front of what no case may do.
    """

    seconds: float
    mebibytes: float
    outcome: str


# --- what is fed


class RepeatedText(NamedTuple):
    """A text of at most this many bytes: a repeated piece between head and tail; `@` becomes a
    number.
    """

    head: str
    piece: str
    tail: str = ""
    max_size: int = MAX_INPUT_SIZE
    max_pieces: int = MAX_INPUT_SIZE

    def to_bytes(self) -> bytes:
        """Its bytes, made only where they are fed: all of them together are some hundred
        megabytes.
        """
        available = self.max_size - len(f"{self.head}{self.tail}".encode())
        if "@" in self.piece:
            longest = len(self.piece.replace("@", "fffff"))
            pieces = "".join(
                [
                    self.piece.replace("@", f"{number:x}")
                    for number in range(min(self.max_pieces, available // longest))
                ]
            )
        else:
            pieces = self.piece * min(
                self.max_pieces, available // max(1, len(self.piece.encode()))
            )
        return f"{self.head}{pieces}{self.tail}".encode()


Input = RepeatedText | bytes
repeat_text = RepeatedText


TOOL = "name: Send\ndescription: Send a message.\n"
TOOL_WITH_INPUT = f"{TOOL}input_parameters:\n  a:\n    type: string\n    description: A value.\n"


def quote_yaml(text: str) -> str:
    """Return a text as a double-quoted YAML string, unless it is not valid UTF-8."""
    return json.dumps(text, ensure_ascii="\ud83d" in text)[1:-1]


def count_values(text: str) -> int:
    """About how many values there are in a piece of YAML."""
    return sum(map(text.count, ":?,-[{"))


def tool_files() -> Iterator[tuple[str, Input]]:
    """Files of a tool."""
    for piece in TEXTS:
        yield (
            f"description {piece!r}",
            repeat_text('name: Send\ndescription: "', quote_yaml(piece), '"\n'),
        )
        yield (
            f"parameter {piece!r}",
            repeat_text(f'{TOOL_WITH_INPUT}    default: "', quote_yaml(piece), '"\n'),
        )
    for name, head, piece, tail in FILES:
        yield name, repeat_text(head, piece, tail)
        if (remaining := MAX_VALUES - count_values(f"{head}{tail}")) > 0 and count_values(piece):
            yield (
                f"{name}, as many as are read",
                repeat_text(head, piece, tail, max_pieces=remaining // count_values(piece)),
            )
    half = "a" * (MAX_INPUT_SIZE // 2 - 200)
    yield (
        "half is pattern",
        f"{TOOL_WITH_INPUT}    pattern: ({half})\n    examples: [{half}]\n".encode(),
    )
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
            repeat_text(
                f'{TOOL_WITH_INPUT}    pattern: "{pattern}"\n    examples: ["', "a", '!"]\n'
            ),
        )
        yield (
            f"patterns {pattern}",
            repeat_text(
                f'{TOOL_WITH_INPUT}    pattern: "{pattern}"\n    examples: [',
                f'"{"a" * 30}!", ',
                "a]\n",
            ),
        )
    for output_format in FORMATS:
        yield (
            f"format {output_format}",
            repeat_text(
                f'{TOOL_WITH_INPUT}    format: {output_format}\n    examples: ["', "a.", '"]\n'
            ),
        )
        yield (
            f"format {output_format} @",
            repeat_text(
                f'{TOOL_WITH_INPUT}    format: {output_format}\n    examples: ["', "a@", '"]\n'
            ),
        )
    choices = ", ".join(f"{{a: {{b: {number}}}}}" for number in range(1600))
    yield (
        "wrong items of an enum",
        f"{TOOL_WITH_INPUT.replace('string', 'array')}"
        f"    items: {{type: object, enum: [{choices}]}}\n"
        f"    examples: [[{', '.join(['{}'] * 1600)}]]\n".encode(),
    )
    nested = "".join(
        "  " * (depth + 1) + f"{key}:\n" for depth, key in enumerate(["a", "properties"] * 13)
    )
    yield (
        "deep",
        repeat_text(f"{TOOL}input_parameters:\n{nested}", "  " * 27 + "p@: {type: string}\n"),
    )


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
    "a",
    "a ",
    "a\n",
    "\n",
    "\n\n",
    " ",
    "[",
    "[a](",
    "![",
    "*a",
    "**a ",
    "_a",
    "`",
    "``a",
    "<",
    "<a ",
    "<!--",
    "&",
    "&#1",
    "&amp;",
    "- ",
    "> ",
    "1. ",
    "# ",
    "\\",
    "\\\\",
    "|",
    "~~~\n",
    "    a\n",
    "\t",
    "[a]: b\n",
    "http://a.",
    "a@b.",
    "é",
    "e\u0301",
    "\u202e",
    "\u2066",
    "\u200b",
    "\U000e0041",
    "\u0430a ",
    "😀",
    "你",
    "你好 ",
    "ẞ",
    "İ",
    "\ufdfa",
    "aB",
    "a_",
    "a-",
    "1",
    "1.",
    "w@ ",
    "x@y ",
    "{{",
    "ghp_",
    "sk-",
    "eyJ.",
    "-----BEGIN ",
    "ignore all ",
    "do not tell ",
    "TODO ",
    "data:a/a;a",
    "\ud83d",
    "a'",
    "...",
    "a, ",
)

BRANCHES = "    - {type: integer}\n" * 4_000
CHOICES = ", ".join(f"e{number}" for number in range(9_000))
LONG_CHOICES = ", ".join(f"{number:0>200}" for number in range(2_500))
LETTERS = "abcdefghijklmnopqrstu"
BILLION_LAUGHS = "".join(
    f"{next_}: &{next_} [{', '.join([f'*{one}'] * 9)}]\n" for one, next_ in pairwise(LETTERS)
)

FILES = (
    ("parameters", f"{TOOL}input_parameters:\n", "  p@: {type: string}\n", ""),
    (
        "parameters told",
        f"{TOOL}input_parameters:\n",
        (
            "  p@: {type: string, description: 'What it is, and what a good one is.', default: a,"
            " examples: [b]}\n"
        ),
        "",
    ),
    ("outputs", f"{TOOL}output_parameters:\n", "  p@: {type: string}\n", ""),
    (
        "parameters alike",
        f"{TOOL}input_parameters:\n",
        "  parameter_with_a_long_name_@: {type: string, description: The same text each time.}\n",
        "",
    ),
    ("parameters of no kind", f"{TOOL}input_parameters:\n", "  p@: {}\n", ""),
    (
        "parameters without sense",
        f"{TOOL}input_parameters:\n",
        "  p@: {typ: strin, descriptoin: 1}\n",
        "",
    ),
    ("parameters null", f"{TOOL}input_parameters:\n", "  p@:\n", ""),
    ("parameters misfit", f"{TOOL}input_parameters:\n", "  p@: {type: integer, default: a}\n", ""),
    (
        "patterns",
        f"{TOOL}input_parameters:\n",
        "  p@: {type: string, pattern: 'a@{9}', default: aaaaaaaaa}\n",
        "",
    ),
    (
        "patterns that are none",
        f"{TOOL}input_parameters:\n",
        "  p@: {type: string, pattern: '(', default: a}\n",
        "",
    ),
    (
        "large patterns",
        f"{TOOL}input_parameters:\n",
        "  p@: {type: string, pattern: '((((a{9}){9}){9}){9})@', default: aaaaaaaaa}\n",
        "",
    ),
    ("enum", f"{TOOL_WITH_INPUT}    enum: [", "v@, ", "v]\n"),
    ("enum repeated", f"{TOOL_WITH_INPUT}    enum: [", "v, ", "v]\n"),
    ("enum of lists", f"{TOOL_WITH_INPUT}    enum: [", "[@], ", "v]\n"),
    ("enum of objects", f"{TOOL_WITH_INPUT}    enum: [", "{a: [@]}, ", "v]\n"),
    ("enum of numbers", f"{TOOL_WITH_INPUT}    enum: [", "0.@, ", "v]\n"),
    ("enum of null", f"{TOOL_WITH_INPUT}    enum: [", "null, ", "v]\n"),
    ("examples", f"{TOOL_WITH_INPUT}    examples: [", "v@, ", "v]\n"),
    ("examples misfit", f"{TOOL_WITH_INPUT}    examples: [", "1, ", "1]\n"),
    (
        "examples and enum",
        f"{TOOL_WITH_INPUT}    enum: [{CHOICES}]\n    examples: [",
        "v@, ",
        "v]\n",
    ),
    (
        "enum and examples in it",
        f"{TOOL_WITH_INPUT}    enum: [{CHOICES}]\n    examples: [",
        "e8999, ",
        "e1]\n",
    ),
    (
        "enum of long values",
        f"{TOOL_WITH_INPUT}    enum: [{LONG_CHOICES}]\n    examples: [",
        "'" + "0" * 199 + "', ",
        "a]\n",
    ),
    (
        "anyOf",
        f"{TOOL}input_parameters:\n  a:\n    anyOf:\n",
        "    - {type: string, maxLength: 1}\n",
        "",
    ),
    (
        "anyOf and examples",
        f"{TOOL}input_parameters:\n  a:\n    anyOf:\n{BRANCHES}    examples: [",
        "v, ",
        "v]\n",
    ),
    (
        "oneOf and examples",
        f"{TOOL}input_parameters:\n  a:\n    oneOf:\n{BRANCHES}    examples: [",
        "v, ",
        "v]\n",
    ),
    (
        "uniqueItems",
        (
            f"{TOOL}input_parameters:\n  a:\n    type: array\n    uniqueItems: true\n    items:"
            " {type: array}\n    examples: [["
        ),
        "[@], ",
        "[1]]]\n",
    ),
    (
        "uniqueItems of objects",
        (
            f"{TOOL}input_parameters:\n  a:\n    type: array\n    uniqueItems: true\n    items:"
            " {type: object}\n    default: ["
        ),
        "{a: @}, ",
        "{a: 1}]\n",
    ),
    (
        "properties held against a large default",
        (
            f"{TOOL}input_parameters:\n  a:\n    type: object\n    additionalProperties: {{type:"
            " integer}\n    default: {"
        ),
        "k@: v, ",
        "k: v}\n",
    ),
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
    ("laughs", f"a: &a [x]\n{BILLION_LAUGHS}tags: [", "*j, ", "]\n"),
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
    ("comments for us in a text", TOOL + 'tags: ["', " # toolcatalog:", '"]\n'),
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
    ("digits", f"{TOOL_WITH_INPUT}    minLength: ", "9", "\n"),
    ("digits behind a point", f"{TOOL_WITH_INPUT}    minimum: 0.", "9", "\n"),
    ("exponent", f"{TOOL_WITH_INPUT}    minimum: 1e", "9", "\n"),
    ("huge numbers", f"{TOOL_WITH_INPUT}    enum: [", "99999999999999999999@, ", "1]\n"),
    ("great exponents", f"{TOOL_WITH_INPUT}    enum: [", "1e999999, ", "1]\n"),
    ("minus", f"{TOOL_WITH_INPUT}    minimum: ", "-", "\n"),
)


def other_files() -> Iterator[tuple[str, str, Input]]:
    """Yield target, name and bytes for the other kinds of files of a catalog."""
    yield (
        "toolkit",
        "categories",
        repeat_text("name: Mail\nlogo: https://a.example/a\ncategories: [", "c@, ", "c]\n"),
    )
    yield (
        "toolkit",
        "owners",
        repeat_text("name: Mail\nlogo: https://a.example/a\nowners: [", "'@o@', ", "o]\n"),
    )
    yield "toolkit", "logo", repeat_text("name: Mail\nlogo: https://a.example/", "a", "\n")
    yield "toolkit", "blanks in logo", repeat_text("name: Mail\nlogo: 'https://", "a ", "'\n")
    yield "about", "rules", repeat_text("title: a\nrules:\n", "  r@: off\n")
    yield "about", "title", repeat_text("title: ", "a b ", "\n")
    yield "about", "description", repeat_text("title: a\ndescription: ", "[a](b) ", "\n")
    for field in (
        "tools: {enable: [A@",
        "tags: {enable: [t@",
        "toolkits: {enable: [k@",
        "meta_tools: [M@",
    ):
        head, piece = field.rsplit("[", 1)
        yield (
            "session",
            head,
            repeat_text(f"{head}[", f"{piece}, ", "A]" + "}" * head.count("{") + "\n"),
        )
    yield "session", "toolkit_versions", repeat_text("toolkit_versions:\n", "  k@: 20250101_00\n")
    yield "session", "auth_configs", repeat_text("auth_configs:\n", "  k@: ac_k@\n")
    yield "session", "tools of kits", repeat_text("tools:\n", "  k@: {enable: [K@_A]}\n")
    yield "credentials", "tools", repeat_text("toolkit: mail\ntools: [", "MAIL_@, ", "MAIL_SEND]\n")
    yield "credentials", "scopes", repeat_text("toolkit: mail\nscopes: [", "s@, ", "s]\n")


def import_documents() -> Iterator[tuple[str, str, Input]]:
    """Yield target, name and bytes for documents to import."""
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
        location = {
            "components": {
                "schemas": {
                    key: openapi_references(value) for key, value in schema.get("$defs", {}).items()
                }
            }
        }
        yield (
            "openapi",
            name,
            json.dumps({**OPEN, "paths": openapi_references(paths), **location}).encode(),
        )
    head = json.dumps({**OPEN, "paths": {}})[:-2]
    yield "openapi", "paths", repeat_text(head, '"/a@":{"get":{}},', '"/a":{"get":{}}}}')
    yield (
        "openapi",
        "parameters",
        repeat_text(
            head + '"/a":{"get":{"parameters":[',
            '{"name":"p@","in":"query"},',
            '{"name":"p","in":"query"}]}}}}',
        ),
    )
    yield "openapi", "segments", repeat_text(head + '"', "/{a}", '":{"get":{}}}}')
    yield "openapi", "tags", repeat_text(head + '"/a":{"get":{"tags":[', '"t@",', '"t"]}}}}')
    for kind, start in (("mcp", '{"tools":['), ("wire", "["), ("openapi", "")):
        yield kind, "lists", repeat_text(start, "[")
        yield kind, "objects", repeat_text(start, '{"a":')
        yield kind, "digits", repeat_text(start, "9")
        yield kind, "null", repeat_text(start, "null,", "null]}"[: 5 if kind == "wire" else 6])
        yield kind, "empty", repeat_text(start, "{},", "{}]}"[: 3 if kind == "wire" else 4])
        yield kind, "zeros", repeat_text("", "\0")
        yield kind, "same key", repeat_text(start + "{", '"a":1,', '"a":1}')
    yield (
        "mcp",
        "tools",
        repeat_text(
            '{"tools":[',
            '{"name":"t@","inputSchema":{"type":"object"}},',
            '{"name":"t","inputSchema":{"type":"object"}}]}',
        ),
    )
    yield (
        "mcp",
        "tools, as many as are read",
        repeat_text('{"tools":[', '{"name":"t@"},', '{"name":"t"}]}', max_pieces=2_047),
    )
    yield (
        "wire",
        "tools, as many as are read",
        repeat_text(
            "[",
            '{"slug":"A_T@","name":"t","description":""},',
            '{"slug":"A_T","name":"t","description":""}]',
            max_pieces=2_047,
        ),
    )
    yield (
        "openapi",
        "tools, as many as are read",
        repeat_text(
            head,
            '"/a@":{"get":{"responses":{}}},',
            '"/a":{"get":{"responses":{}}}}}',
            max_pieces=2_047,
        ),
    )
    yield (
        "wire",
        "tools",
        repeat_text(
            "[",
            '{"slug":"A_T@","name":"t","description":""},',
            '{"slug":"A_T","name":"t","description":""}]',
        ),
    )
    yield (
        "wire",
        "unknown fields",
        repeat_text('[{"slug":"A_T","name":"t","description":"",', '"k@":1,', '"k":1}]'),
    )
    for piece in ("- ", "a: &a@ *a@\n", "[", "{a: ", "? ", "a@: [*b]\n"):
        yield "openapi", f"yaml {piece!r}", repeat_text("openapi: 3.0.0\n", piece)


OPEN = {
    "openapi": "3.1.0",
    "info": {"title": "Mail", "version": "1", "x-logo": {"url": "https://a.example/a.png"}},
}


def openapi_references(value: object) -> object:
    """References as an OpenAPI document has them."""
    return json.loads(json.dumps(value).replace("#/$defs/", "#/components/schemas/"))


def SCHEMAS() -> dict[str, dict[str, Any]]:  # noqa: N802
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

    count = {f"p{n}": text for n in range(30_000)}
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(20_000)}
    deep: dict[str, Any] = text
    for _ in range(200):
        deep = objects(a=deep)
    return {
        "laughs by 2": laughs(40, 2, wide(2)),
        "laughs by 9": laughs(30, 9, wide(9)),
        "laughs of allOf": laughs(30, 2, lambda ref: {"allOf": [ref, ref]}),
        "laughs of anyOf": laughs(30, 2, lambda ref: {"anyOf": [ref, ref, text]}),
        "laughs of items": laughs(
            30, 2, lambda ref: {"type": "array", "items": {"anyOf": [ref, ref]}}
        ),
        "one large shape many times": {
            **objects(**{f"q{n}": {"$ref": "#/$defs/d"} for n in range(3_500)}),
            "$defs": {"d": objects(**{f"p{n}": text for n in range(7_000)})},
        },
        "itself": {
            **objects(a={"$ref": "#/$defs/d"}),
            "$defs": {"d": objects(a={"$ref": "#/$defs/d"}, b={"$ref": "#/$defs/d"})},
        },
        "each other": {
            **objects(a={"$ref": "#/$defs/d0"}),
            "$defs": {
                f"d{n}": objects(**{f"p{m}": {"$ref": f"#/$defs/d{m}"} for m in range(60)})
                for n in range(60)
            },
        },
        "chain": {**objects(a={"$ref": "#/$defs/d0"}), "$defs": {**chain, "d20000": text}},
        "many": objects(**count),
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
    }


def request_inputs() -> Iterator[tuple[str, str, Input]]:
    """Yield target, name and bytes for client requests, and for files that servers read."""
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
        yield "query", piece, repeat_text("", piece, max_size=LINE)
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
        yield "query", head + piece, repeat_text(head, piece, max_size=LINE)
        yield "get", head + piece, repeat_text(head, piece, max_size=LINE)
    for piece in ("A", "_", "a", "\u0430", "%41"):
        yield "slug", piece, repeat_text("", piece)
    for piece in ("[", '{"a":', "9", "\0", '"', "{}"):
        for available in ("keys", "manifest", "listing", "pointer", "chunks", "lock", "body"):
            yield available, piece, repeat_text("", piece)
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
        repeat_text('{"format":1,"keys":[', json.dumps(key) + ",", json.dumps(key) + "]}"),
    )
    yield (
        "keys",
        "toolkits",
        repeat_text(
            '{"format":1,"keys":[' + json.dumps(key).replace("null", '["k"', 1)[:-1], "", "}]}"
        ),
    )
    yield (
        "keys",
        "lifetime",
        repeat_text('{"format":1,"keys":[' + json.dumps(key)[:-1] + ',"lifetime":', "9", "}]}"),
    )


def all_cases() -> Iterator[tuple[str, str, Input]]:
    """Yield target, name and bytes of every case."""
    for act in ("check", "build"):
        yield from ((f"{act} tool", name, data) for name, data in tool_files())
        yield from ((f"{act} {available}", name, data) for available, name, data in other_files())
    yield from import_documents()
    yield from request_inputs()


# The cases that every run of the tests feeds: of each kind what takes most, or did before it was
# mended.
QUICK = (
    "query",
    "get",
    "slug",
    "body",
    "keys",
    "manifest",
    "listing",
    "pointer",
    "chunks",
    "lock",
    "build tool/description '\ufdfa'",
    "build tool/enum of long values",
    "build tool/large patterns",
    "build tool/laughs",
    "build tool/lists in lists",
    "check tool/digits",
    "check tool/escapes",
    "check tool/comments for us",
    "check tool/blanks in a comment for us",
    "check tool/comments for us in a text",
    "check tool/pattern (?=a*b)a*c",
    "check tool/tags alike",
    "check tool/wrong items of an enum",
    "check tool/enum of objects, as many as are read",
    "mcp/laughs by 9",
    "wire/laughs by 9",
    "openapi/laughs by 9",
    "openapi/itself",
    "mcp/lists",
    "wire/digits",
    "mcp/tools",
    "wire/const",
    "openapi/many",
    "openapi/yaml 'a: &a@ *a@\\n'",
)


# --- the rooms


def with_catalog_file(
    path: str, act: Callable[[Path, Path], object]
) -> Callable[[bytes, Path], str]:
    """Do something with a catalog that has this file in it, and a folder that is empty."""

    def take(data: bytes, folder: Path) -> str:
        catalog = folder / "catalog"
        shutil.copytree(BASE, catalog)
        (catalog / path).parent.mkdir(parents=True, exist_ok=True)
        (catalog / path).write_bytes(data)
        return str(act(catalog, folder))

    return take


def check_catalog(catalog: Path, _: Path) -> str:
    """Check it, with all advice."""
    return f"{len(check_folder(catalog).problems)} told"


def build_catalog(catalog: Path, folder: Path) -> str:
    """Build it, with its site."""
    return f"built {build(catalog, folder / 'build', folder / 'site').digest[:8]}"


def with_import(kind: str) -> Callable[[bytes, Path], str]:
    """Import a file into a catalog that is not there yet."""

    def take(data: bytes, folder: Path) -> str:
        (folder / "file").write_bytes(data)
        cli.main(
            [
                "import",
                kind,
                str(folder / "file"),
                "--catalog",
                str(folder / "catalog"),
                *(["--toolkit", "mail"] if kind != "openapi" else []),
            ],
            standalone_mode=False,
        )
        return f"imported {sum(1 for _ in (folder / 'catalog').rglob('*.yaml'))}"

    return take


class Targets:
    """Every target by name: a function of bytes and an empty folder that returns the result."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        build(BASE, folder / "build", folder / "site")
        _, self.key = api_keys.create(folder / "keys.json", "default", None, None)
        self.serving = ServedSnapshot(open_build(folder / "build"), CacheCounts())
        self.named: dict[str, Callable[[bytes, Path], object]] = {
            **{
                f"check {available}": with_catalog_file(path, check_catalog)
                for available, path in FILE_PATHS.items()
            },
            **{
                f"build {available}": with_catalog_file(path, build_catalog)
                for available, path in FILE_PATHS.items()
            },
            **{kind: with_import(kind) for kind in ("openapi", "mcp", "wire")},
            "query": lambda data, _: self.serving.operations.list_tools(self.key, data),
            "get": lambda data, _: self.serving.operations.get_tool(self.key, "MAIL_SEND", data),
            "slug": lambda data, _: self.serving.operations.get_tool(self.key, data.decode(), b""),
            "body": lambda data, _: self.serving.operations.list_session_tools(
                self.key, "trs_support", b"", data
            ),
            "keys": lambda data, folder: api_keys.parse_keys(
                data, FileKeyStorage(folder / "keys.json")
            ),
            "pointer": lambda data, _: layout.parse_pointer(data),
            "chunks": lambda data, _: layout.parse_chunk_list(data),
            "lock": lambda data, _: lockfile.load(data, "lock"),
            "manifest": verify_with_file("manifest.json"),
            "listing": verify_with_file("files.json"),
        }

    def run(self, target: str, data: bytes, folder: Path) -> str:
        """What came of it: a refusal is an end as any other; `!` and its name where it is an error
        of ours.
        """
        try:
            return str(self.named[target](data, folder))[:60]
        except (ToolcatalogError, RequestError) as rejected:
            return f"refused: {str(rejected)[:80]!r}"
        except Exception as error:
            return f"! {type(error).__name__}: {str(error)[:100]}"


def verify_with_file(name: str) -> Callable[[bytes, Path], object]:
    """Verify a snapshot in which this file has these bytes."""

    def take(data: bytes, folder: Path) -> object:
        shutil.copytree((folder.parent / "build" / "current").resolve(), folder / "snapshot")
        (folder / "snapshot" / name).write_bytes(data)
        return verify.verify_snapshot(folder / "snapshot")

    return take


# --- the measure


def measure_memory() -> tuple[float, float]:
    """Resident memory of this process now and at most, in MiB."""
    status = Path("/proc/self/status").read_text()
    now, maximum = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
    assert now
    assert maximum
    return int(now[1]) / 1024, int(maximum[1]) / 1024


def measure_slowdown() -> float:
    """How many times slower than promised for this machine is now: it may be another one, and
    others may work on it.
    """
    began = time.process_time()
    for _ in range(2_000):
        sum(range(1_000))
    return (time.process_time() - began) / IDLE_SECONDS


def measure(targets: Targets, target: str, data: bytes, folder: Path) -> Cost:
    """Run a target in this process."""
    Path("/proc/self/clear_refs").write_text("5")  # what was at most before is forgotten
    (previous, _), began = measure_memory(), time.process_time()
    text = targets.run(target, data, folder)
    return Cost(time.process_time() - began, measure_memory()[1] - previous, text)


def measure_in_subprocess(targets: Targets, target: str, data: bytes) -> Cost:
    """Run a target in a process of its own."""
    folder = Path(tempfile.mkdtemp(dir=targets.folder))
    content, write = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
            os.write(write, json.dumps(measure(targets, target, data, folder)).encode())
        os._exit(0)
    os.close(write)
    with open(content) as stream:
        output = stream.read()
    os.waitpid(child, 0)
    shutil.rmtree(folder)
    return Cost(*json.loads(output)) if output else Cost(0, 0, "! it died")


def main(names: list[str]) -> None:
    """Measure the selected cases, or all."""
    with tempfile.TemporaryDirectory() as folder:
        rooms, previous = Targets(Path(folder)), measure_slowdown()
        for available, name, data in all_cases():
            if not names or available in names or f"{available}/{name}" in names:
                fed = data if isinstance(data, bytes) else data.to_bytes()
                assert 0 < len(fed) <= MAX_INPUT_SIZE, name
                cost, current = measure_in_subprocess(rooms, available, fed), measure_slowdown()
                print(
                    json.dumps(
                        {
                            "case": f"{available}/{name}",
                            **cost._asdict(),
                            "slowness": (previous + current) / 2,
                        }
                    ),
                    flush=True,
                )
                previous = current


if __name__ == "__main__":
    main(sys.argv[1:])
