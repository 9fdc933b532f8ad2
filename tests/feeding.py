"""The rooms that take bytes from others: a function for each that feeds it, and examples of what it
takes well.

A room may refuse with an error of ours that says something, and with nothing else; what it takes
must hold what its function asserts. Hypothesis feeds these in `test_fuzz`, a coverage-guided fuzzer
in `fuzzing`, and `tests/corpus/<room>/` has whatever either has found.
"""

import base64
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote_from_bytes

import orjson

from toolcatalog import depot, keys, locking, schema, signing, snapshot, source, verifying, yaml12
from toolcatalog.build import build
from toolcatalog.cli import bringing
from toolcatalog.errors import ToolcatalogError
from toolcatalog.importers import additions, documents, mcp, openapi, wire
from toolcatalog.keeping import KeyFile
from toolcatalog.server import questions

TESTS = Path(__file__).parent
CORPUS = TESTS / "corpus"
BASE = TESTS / "rejects" / "_base" / "catalog"
TOOL = "toolkits/mail/MAIL_SEND/20250202_00.yaml"
SECONDS = 2.0  # of a processor: what no input of at most 1 MiB takes longer
HERE = Path("catalog")


def feed(room: str, data: bytes) -> float:
    """Feed a room; the seconds of a processor that it took. Raises whatever the room may not."""
    began = time.process_time()
    try:
        ROOMS[room](data)
    except ToolcatalogError as error:
        _heard(error)
    return time.process_time() - began


def _heard(error: ToolcatalogError) -> None:
    if not str(error).strip():
        raise AssertionError(f"{type(error).__name__} says nothing")


def yaml(data: bytes) -> None:
    """Both ways of reading agree, and every fault says what it is and what to do."""
    reading = yaml12.read(data)
    assert reading.faults or reading.mark is not None
    assert all(
        fault.message and fault.help and fault.line > 0 and fault.column > 0
        for fault in reading.faults
    )
    try:
        value = yaml12.value(data)
    except yaml12.Doubtful:
        return
    assert (reading.faults, repr(reading.value)) == ((), repr(value))


def tool(data: bytes) -> None:
    """A file of a tool becomes a record, or problems that each say something; they are found at
    their places.
    """
    document, problems = source.parsed(HERE, TOOL, data)
    assert document is not None
    record, findings = schema.record(document) if document.readable else (None, [])
    assert problems or findings or record is not None
    assert all(problem.message for problem in problems)
    assert all(finding.message for finding in findings)
    assert all(source.line_of(data, finding) > 0 for finding in findings[:3])


def query(data: bytes) -> None:
    """A query string is a question, or refusals with a line and what to do."""
    for read in (
        questions.tools,
        questions.tool,
        lambda said: questions.session("trs_a", said, said),
    ):
        _, refusals = read(data)
        assert all(refusal.status == 400 and refusal.line and refusal.fix for refusal in refusals)


def cursor(data: bytes) -> None:
    """A cursor is one that we make, byte for byte, or is refused."""
    question, refusals = questions.tools(b"cursor=" + quote_from_bytes(data).encode())
    if data and not refusals:
        assert questions.cursor(question.page.number, question.page.size) == data


def key_file(data: bytes) -> None:
    """Keys that are read are written and read again as the same."""
    place = KeyFile(Path("keys.json"))
    found = keys.read(data, place)
    assert keys.read(keys.document(found), place) == found
    assert all(isinstance(keys.end_of(key), float) for key in found)


def lock(data: bytes) -> None:
    """A lock that is read is written and read again as the same."""
    found = locking.load(data, "lock")
    assert locking.load(locking.dump(found), "lock") == found


def pointer(data: bytes) -> None:
    """What a store says is in force: a digest, and perhaps a signature."""
    digest = depot.named(data)
    assert snapshot.is_digest(digest)
    signed = signing.parse(digest, depot.signed(data))
    assert signed is None or signed.statement.digest == digest


def chunks(data: bytes) -> None:
    """What files a store says that there are: no path leads out of its folder."""
    assert all(map(snapshot.stays_within, depot.unpack(data)))


@cache
def _whole() -> Path:
    """The folder of a small snapshot, for as long as this process is there."""
    folder = Path(tempfile.mkdtemp())
    build(BASE, folder / "build", None)
    whole = folder / "whole"
    shutil.copytree((folder / "build" / "current").resolve(), whole)
    shutil.copy(whole / snapshot.MANIFEST, folder)
    shutil.rmtree(folder / "build")
    return whole


def manifest(data: bytes) -> None:
    """A manifest as it is, and with a right seal, as somebody would write it who wants harm:
    verifying says what is wrong.
    """
    for said in (data, _sealed(data)):
        (_whole() / snapshot.MANIFEST).write_bytes(said)
        try:
            assert all(verifying.verify(_whole()))
        except ToolcatalogError as error:
            _heard(error)


def _sealed(data: bytes) -> bytes:
    """The manifest with the digest that is right for it; as it is where it is none."""
    try:
        said = orjson.loads(data)
        rest = {key: value for key, value in said.items() if key != "digest"}
        return orjson.dumps({"digest": snapshot.sha256(snapshot.dump(rest)), **rest})
    except (ValueError, TypeError, AttributeError):
        return data


def listing(data: bytes) -> None:
    """The list of the files in the folders, as a manifest with a right seal vouches for it."""
    said = orjson.loads((_whole().parent / snapshot.MANIFEST).read_bytes())
    said["files"][snapshot.LISTING] = {"size": len(data), "sha256": snapshot.sha256(data)}
    (_whole() / snapshot.LISTING).write_bytes(data)
    (_whole() / snapshot.MANIFEST).write_bytes(_sealed(snapshot.dump(said)))
    assert all(verifying.verify(_whole()))


def _imported(
    found: Callable[[], "list[additions.Addition] | Iterator[additions.Addition]"],
) -> None:
    """What is imported is files without a fault."""
    with bringing.bounded(Path("file"), "a document"):
        new = additions.files(found(), (), "mail")
    for path, data in new.tree.items():
        document, problems = source.parsed(HERE, path, data)
        assert document is not None
        assert (problems, schema.record(document)[1]) == ([], [])


def import_openapi(data: bytes) -> None:
    """A document becomes files without a fault, or is refused."""
    _imported(lambda: openapi.additions(documents.read(data, "file"), "mail"))


def import_mcp(data: bytes) -> None:
    """As the answer of an MCP server."""
    _imported(lambda: mcp.additions(_json(data), "mail"))


def import_wire(data: bytes) -> None:
    """As definitions that an API sends."""
    _imported(lambda: wire.additions(_json(data)))


def _json(data: bytes) -> object:
    """As the command line reads a file of JSON."""
    try:
        return documents.json_value(data)
    except ValueError as error:
        raise ToolcatalogError(f"not JSON: {error}") from None


ROOMS: dict[str, Callable[[bytes], None]] = {
    "yaml": yaml,
    "tool": tool,
    "query": query,
    "cursor": cursor,
    "keys": key_file,
    "lock": lock,
    "pointer": pointer,
    "chunks": chunks,
    "manifest": manifest,
    "listing": listing,
    "openapi": import_openapi,
    "mcp": import_mcp,
    "wire": import_wire,
}


@cache
def examples(room: str) -> tuple[bytes, ...]:
    """What a room takes well, or nearly: where mutation begins."""
    return tuple(sorted({*_examples(room), *(file.read_bytes() for file in found(room))}))


def found(room: str) -> list[Path]:
    """What has once been wrong with a room."""
    return sorted(file for file in (CORPUS / room).glob("*") if file.name != "README.md")


_SCHEMA = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": ["string", "null"], "enum": ["x", None], "default": "x"},
        "b": {"$ref": "#/$defs/b"},
    },
    "$defs": {
        "b": {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "array", "items": {"$ref": "#/$defs/b"}},
            ]
        }
    },
}
_HINTS = {"title": "Send", "readOnlyHint": True, "destructiveHint": False}
_MCP = {
    "tools": [
        {
            "name": "send",
            "description": "Send.",
            "inputSchema": _SCHEMA,
            "outputSchema": _SCHEMA,
            "annotations": _HINTS,
        }
    ]
}
_WIRE = [
    {
        "slug": "MAIL_SEND",
        "name": "Send",
        "description": "Send.",
        "version": "20250101_00",
        "toolkit": {"slug": "mail", "name": "Mail", "logo": "https://a.example/a.png"},
        "tags": ["a"],
        "scopes": ["b"],
        "no_auth": True,
        "input_parameters": _SCHEMA,
        "output_parameters": _SCHEMA,
    }
]
_DAY = "2026-01-01T00:00:00+00:00"
_KEY = keys.Key(
    id="key_a",
    project="p",
    toolkits=("mail",),
    sha256="0" * 64,
    hint="abcd",
    created=_DAY,
    lifetime=0,
    expires=_DAY,
    revoked=None,
)
_LOCK = locking.dump({"A": locking.Locked("20250101_00", "sha256:" + "0" * 64)})


def _examples(room: str) -> Iterator[bytes]:
    if room in ("yaml", "tool"):
        yield from (
            file.read_bytes()
            for file in sorted((TESTS / "rejects").glob("*/*/catalog/toolkits/*/*/*.yaml"))
        )
    elif room in ("query", "cursor"):
        yield b"MjoyMA=="
        yield b"query=a+b&tags=a,b&tags[]=c&limit=5.0&cursor=MjoyMA%3D%3D&toolkit_versions[mail]=20250101_00&important=true&order=asc"
        yield b"tool_slugs=A,B&sort_by=name&include_deprecated=0&version=latest&toolkit_slug=mail&auth_config_ids=ac_a&scopes=%C3%A9"
    elif room == "keys":
        yield keys.document([_KEY])
    elif room == "lock":
        yield _LOCK
    elif room in ("pointer", "chunks"):
        digest = "0" * 64
        statement = signing.Statement(digest, 7, "2026-01-31T12:00:00Z")
        signed = signing.dump(signing.Signed(statement, bytes(64)))
        yield from (depot.pointer(digest), depot.pointer(digest, signed))
        yield depot.pack({"a/b": [depot.Chunk(digest, 5)]})
    elif room in ("manifest", "listing"):
        yield (_whole().parent / snapshot.MANIFEST).read_bytes()
        yield snapshot.listing({"sessions/trs_a.json": snapshot.Stated(2, "0" * 64)})
    elif room == "openapi":
        yield from (
            file.read_bytes()
            for file in sorted((TESTS / "openapi").glob("*"))
            if ".expected" not in file.name and file.suffix != ".md"
        )
    else:
        yield json.dumps(_MCP if room == "mcp" else _WIRE).encode()
        yield base64.b64encode(b"no JSON")
