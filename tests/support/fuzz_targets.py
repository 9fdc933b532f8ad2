"""The rooms that take bytes from others: a function for each that feeds it, and examples of what it
takes well.

A room may refuse with an error of ours that says something, and with nothing else; what it takes
must hold what its function asserts. Hypothesis feeds these in `robustness/test_fuzz`, a
coverage-guided fuzzer in `support.fuzzer`, and `tests/data/corpus/<room>/` has whatever either has
found.
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

from support.paths import DATA
from toolcatalog import encoding, lockfile
from toolcatalog.api import query_params
from toolcatalog.build.pipeline import build
from toolcatalog.catalog import loader, schema, yaml_reader
from toolcatalog.cli import import_
from toolcatalog.errors import ToolcatalogError
from toolcatalog.importers import documents, mcp, openapi, wire, writer
from toolcatalog.keys import api_keys
from toolcatalog.keys.storage import FileKeyStorage
from toolcatalog.publish import layout, signatures
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import verify

CORPUS = DATA / "corpus"
BASE = DATA / "rejects" / "_base" / "catalog"
TOOL = "toolkits/mail/MAIL_SEND/20250202_00.yaml"
SECONDS = 2.0  # of a processor: what no input of at most 1 MiB takes longer
CATALOG = Path("catalog")


def run_target(target: str, data: bytes) -> float:
    """Run a target and return its CPU seconds. Raises what the target may not raise."""
    began = time.process_time()
    try:
        TARGETS[target](data)
    except ToolcatalogError as error:
        _check_error_message(error)
    return time.process_time() - began


def _check_error_message(error: ToolcatalogError) -> None:
    if not str(error).strip():
        raise AssertionError(f"{type(error).__name__} says nothing")


def feed_yaml(data: bytes) -> None:
    """Both ways of reading agree, and every fault says what it is and what to do."""
    reading = yaml_reader.parse(data)
    assert reading.faults or reading.root is not None
    assert all(
        fault.message and fault.help and fault.line > 0 and fault.column > 0
        for fault in reading.faults
    )
    try:
        value = yaml_reader.parse_fast(data)
    except yaml_reader.NeedsFullParse:
        return
    assert (reading.faults, repr(reading.value)) == ((), repr(value))


def feed_tool(data: bytes) -> None:
    """A file of a tool becomes a record, or problems that each say something; they are found at
    their places.
    """
    document, problems = loader.parse_file(CATALOG, TOOL, data)
    assert document is not None
    record, findings = schema.validate(document) if document.is_readable else (None, [])
    assert problems or findings or record is not None
    assert all(problem.message for problem in problems)
    assert all(finding.message for finding in findings)
    assert all(loader.find_line(data, finding) > 0 for finding in findings[:3])


def feed_query(data: bytes) -> None:
    """A query string is a question, or refusals with a line and what to do."""
    for content in (
        query_params.parse_list_params,
        query_params.parse_tool_params,
        lambda text: query_params.parse_session_params("trs_a", text, text),
    ):
        _, refusals = content(data)
        assert all(
            refusal.status == 400 and refusal.message and refusal.fix for refusal in refusals
        )


def feed_cursor(data: bytes) -> None:
    """A cursor is one that we make, byte for byte, or is refused."""
    question, refusals = query_params.parse_list_params(
        b"cursor=" + quote_from_bytes(data).encode()
    )
    if data and not refusals:
        assert query_params.encode_cursor(question.page.number, question.page.size) == data


def feed_key_file(data: bytes) -> None:
    """Keys that are read are written and read again as the same."""
    location = FileKeyStorage(Path("keys.json"))
    result = api_keys.parse_keys(data, location)
    assert api_keys.parse_keys(api_keys.serialize_keys(result), location) == result
    assert all(isinstance(api_keys.compute_expiry(key), float) for key in result)


def feed_lock(data: bytes) -> None:
    """A lock that is read is written and read again as the same."""
    result = lockfile.load(data, "lock")
    assert lockfile.load(lockfile.dump(result), "lock") == result


def feed_pointer(data: bytes) -> None:
    """What a store says is in force: a digest, and perhaps a signature."""
    digest = layout.parse_pointer(data)
    assert encoding.is_digest(digest)
    signed = signatures.parse_signed_statement(digest, layout.parse_signature(data))
    assert signed is None or signed.statement.digest == digest


def feed_chunk_list(data: bytes) -> None:
    """What files a store says that there are: no path leads out of its folder."""
    assert all(map(snapshot_format.is_safe_path, layout.parse_chunk_list(data)))


@cache
def _sample_snapshot() -> Path:
    """The folder of a small snapshot, for as long as this process is there."""
    folder = Path(tempfile.mkdtemp())
    build(BASE, folder / "build", None)
    document = folder / "whole"
    shutil.copytree((folder / "build" / "current").resolve(), document)
    shutil.copy(document / snapshot_format.MANIFEST, folder)
    shutil.rmtree(folder / "build")
    return document


def feed_manifest(data: bytes) -> None:
    """A manifest as it is, and with a right seal, as somebody would write it who wants harm:
    verifying says what is wrong.
    """
    for text in (data, _reseal(data)):
        (_sample_snapshot() / snapshot_format.MANIFEST).write_bytes(text)
        try:
            assert all(verify.verify_snapshot(_sample_snapshot()))
        except ToolcatalogError as error:
            _check_error_message(error)


def _reseal(data: bytes) -> bytes:
    """The manifest with the digest that is right for it; as it is where it is none."""
    try:
        fields = orjson.loads(data)
        remaining = {key: value for key, value in fields.items() if key != "digest"}
        return orjson.dumps(
            {"digest": encoding.sha256_hex(encoding.dump_json(remaining)), **remaining}
        )
    except (ValueError, TypeError, AttributeError):
        return data


def feed_file_list(data: bytes) -> None:
    """The list of the files in the folders, as a manifest with a right seal vouches for it."""
    fields = orjson.loads((_sample_snapshot().parent / snapshot_format.MANIFEST).read_bytes())
    fields["files"][snapshot_format.FILE_LIST] = {
        "size": len(data),
        "sha256": encoding.sha256_hex(data),
    }
    (_sample_snapshot() / snapshot_format.FILE_LIST).write_bytes(data)
    (_sample_snapshot() / snapshot_format.MANIFEST).write_bytes(_reseal(encoding.dump_json(fields)))
    assert all(verify.verify_snapshot(_sample_snapshot()))


def _check_import(
    load_additions: Callable[[], "list[writer.ImportedTool] | Iterator[writer.ImportedTool]"],
) -> None:
    """What is imported is files without a fault."""
    with import_.report_deep_nesting("file", "a document"):
        new = writer.build_files(load_additions(), (), writer.ImportOptions(toolkit="mail"))
    for path, data in new.files.items():
        document, problems = loader.parse_file(CATALOG, path, data)
        assert document is not None
        assert (problems, schema.validate(document)[1]) == ([], [])


def feed_openapi_import(data: bytes) -> None:
    """A document becomes files without a fault, or is refused."""
    _check_import(lambda: openapi.import_tools(documents.read_document(data, "file"), "mail"))


def feed_mcp_import(data: bytes) -> None:
    """As the answer of an MCP server."""
    _check_import(lambda: mcp.import_tools(_read_json(data), "mail"))


def feed_wire_import(data: bytes) -> None:
    """As definitions that an API sends."""
    _check_import(lambda: wire.import_tools(_read_json(data)))


def _read_json(data: bytes) -> object:
    """As the command line reads a file of JSON."""
    try:
        return documents.parse_json(data)
    except ValueError as error:
        raise ToolcatalogError(f"not JSON: {error}") from None


TARGETS: dict[str, Callable[[bytes], None]] = {
    "yaml": feed_yaml,
    "tool": feed_tool,
    "query": feed_query,
    "cursor": feed_cursor,
    "keys": feed_key_file,
    "lock": feed_lock,
    "pointer": feed_pointer,
    "chunks": feed_chunk_list,
    "manifest": feed_manifest,
    "listing": feed_file_list,
    "openapi": feed_openapi_import,
    "mcp": feed_mcp_import,
    "wire": feed_wire_import,
}


@cache
def load_examples(target: str) -> tuple[bytes, ...]:
    """Return valid or almost valid inputs of a target, from which mutation starts."""
    return tuple(
        sorted(
            {*_generate_examples(target), *(file.read_bytes() for file in load_regressions(target))}
        )
    )


def load_regressions(target: str) -> list[Path]:
    """Return inputs that a target once failed on."""
    return sorted(file for file in (CORPUS / target).glob("*") if file.name != "README.md")


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
_KEY = api_keys.ApiKey(
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
_LOCK = lockfile.dump({"A": lockfile.LockedTool("20250101_00", "sha256:" + "0" * 64)})


def _generate_examples(target: str) -> Iterator[bytes]:
    if target in ("yaml", "tool"):
        yield from (
            file.read_bytes()
            for file in sorted((DATA / "rejects").glob("*/*/catalog/toolkits/*/*/*.yaml"))
        )
    elif target in ("query", "cursor"):
        yield b"MjoyMA=="
        yield (
            b"query=a+b&tags=a,b&tags[]=c&limit=5.0&cursor=MjoyMA%3D%3D"
            b"&toolkit_versions[mail]=20250101_00&important=true&order=asc"
        )
        yield (
            b"tool_slugs=A,B&sort_by=name&include_deprecated=0&version=latest&toolkit_slug=mail"
            b"&auth_config_ids=ac_a&scopes=%C3%A9"
        )
    elif target == "keys":
        yield api_keys.serialize_keys([_KEY])
    elif target == "lock":
        yield _LOCK
    elif target in ("pointer", "chunks"):
        digest = "0" * 64
        statement = signatures.SnapshotStatement(digest, 7, "2026-01-31T12:00:00Z")
        signed = signatures.dump_signed_statement(signatures.SignedStatement(statement, bytes(64)))
        yield from (layout.render_pointer(digest), layout.render_pointer(digest, signed))
        yield layout.render_chunk_list({"a/b": [layout.Chunk(digest, 5)]})
    elif target in ("manifest", "listing"):
        yield (_sample_snapshot().parent / snapshot_format.MANIFEST).read_bytes()
        yield snapshot_format.render_file_list(
            {"sessions/trs_a.json": snapshot_format.FileInfo(2, "0" * 64)}
        )
    elif target == "openapi":
        yield from (
            file.read_bytes()
            for file in sorted((DATA / "openapi").glob("*"))
            if ".expected" not in file.name and file.suffix != ".md"
        )
    else:
        yield json.dumps(_MCP if target == "mcp" else _WIRE).encode()
        yield base64.b64encode(b"no JSON")
