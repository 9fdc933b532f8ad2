"""Tests of `snapshot.format`: documents, indexes, facts and manifests."""

import hashlib
import json
import sys
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from toolcatalog import encoding
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import (
    AuthConfig,
    FileInfo,
    Session,
    SnapshotContents,
    Tool,
    Toolkit,
)

KIT = Toolkit(
    slug="kit",
    name="Kit",
    logo="https://example.com/kit.svg",
    description="",
    categories=(),
    no_auth=False,
    homepage="",
    owners=(),
    versions=("20250101_00", "20250201_00"),
)
OLD = Tool(
    slug="KIT_A",
    toolkit="kit",
    version="20250101_00",
    available_versions=("20250101_00", "20250201_00"),
    name="A",
    description="Does A.",
    scopes=("a", "b"),
    tags=("t",),
    no_auth=False,
    deprecation=None,
    input_parameters={"x": {"type": "string", "description": "", "required": True}},
    output_parameters={},
)
NEW = replace(
    OLD,
    version="20250201_00",
    deprecation={"reason": "Old.", "since": "", "sunset": "", "replaced_by": ""},
)
OTHER = replace(OLD, slug="KIT_B", version="20250201_00", available_versions=("20250201_00",))
CONTENTS = SnapshotContents(
    about={"title": "T"},
    toolkits=(KIT,),
    router=replace(KIT, slug="router"),
    auth_configs=(AuthConfig(id="ac_a", toolkit="kit", tools=("KIT_A",), scopes=None),),
    sessions=(
        Session(
            id="trs_a", project="p", toolkits=("kit",), tools=(replace(OLD, toolkit="router"),)
        ),
    ),
)
COUNTS = {"toolkits": 1, "tools": 2, "tool_versions": 3, "sessions": 1}
FILES = {
    "tools.json": FileInfo(7, "0a"),
    "query.sets": FileInfo(8, "0b"),
    "files.json": FileInfo(9, "0c"),
}


KEYS = (
    ',"input_parameters":',
    ',"deprecated":',
    ',"input_parameters":{},"deprecated":{"version":"9","is_deprecated":true}}',
    '\\",\\"deprecated\\":',
    ",",
    '","deprecated',
    "input_parameters",
    '"},"input_parameters":{"',
)


@pytest.mark.parametrize("text", KEYS)
@pytest.mark.parametrize("tool", [OLD, NEW])
def test_summary_is_a_part_of_the_document(tool: Tool, text: str) -> None:
    """Even if texts, names and values look like keys of a document."""
    parameters = {
        "deprecated": {"type": "object", "properties": {"input_parameters": {"deprecated": {}}}},
        "input_parameters": {"default": {text: text, "deprecated": {"input_parameters": text}}},
        text: {"description": text, "deprecated": True},
    }
    hostile = replace(
        tool,
        name=text,
        description=text,
        scopes=(text, "deprecated"),
        tags=("input_parameters", text),
        input_parameters=parameters,
        output_parameters=parameters,
    )
    document = snapshot_format.tool_to_document(hostile, text, text)
    summary = snapshot_format.parse_document_summary(encoding.dump_json(document))
    names = ("slug", "name", "description", "toolkit", "version", "is_deprecated")
    assert summary == {name: document[name] for name in names}


def test_summary_does_not_parse_parameters() -> None:
    """A list of fifty tools of half a megabyte would take long."""
    document = document_of(OLD).replace(b'"type":"string"', b"[" * 1_000_000)
    assert snapshot_format.parse_document_summary(document)["slug"] == "KIT_A"


def document_of(tool: Tool) -> bytes:
    return encoding.dump_json(snapshot_format.tool_to_document(tool, KIT.name, KIT.logo))


def test_json_has_no_spare_memory() -> None:
    """Its block has exactly its length."""
    values = [[number, "a"] for number in range(1000)]
    tracemalloc.start()
    stored = [*map(encoding.dump_json_compact, values)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored == [*map(encoding.dump_json, values)]
    assert used < 2 * sum(map(sys.getsizeof, stored))


def test_document_of_a_tool() -> None:
    """The thirteen fields of the interface in order, without details of the deprecation."""
    document = json.loads(document_of(NEW))
    assert [*document] == [*EXPECTED]
    assert document == EXPECTED


EXPECTED = {
    "slug": "KIT_A",
    "name": "A",
    "description": "Does A.",
    "toolkit": {"slug": "kit", "name": "Kit", "logo": "https://example.com/kit.svg"},
    "input_parameters": {"x": {"type": "string", "description": "", "required": True}},
    "output_parameters": {},
    "no_auth": False,
    "available_versions": ["20250101_00", "20250201_00"],
    "version": "20250201_00",
    "scopes": ["a", "b"],
    "tags": ["t"],
    "is_deprecated": True,
    "deprecated": {
        "displayName": "A",
        "version": "20250201_00",
        "available_versions": ["20250101_00", "20250201_00"],
        "is_deprecated": True,
        "toolkit": {"logo": "https://example.com/kit.svg"},
    },
}


SOURCED = replace(OLD, source={"method": "GET", "path": "/a"})


@pytest.mark.parametrize("tool", [OLD, NEW, OTHER, SOURCED])
def test_document_and_index_row_round_trip(tool: Tool) -> None:
    """They have all fields of a tool."""
    document = document_of(tool)
    row = json.loads(encoding.dump_json(snapshot_format.make_toolkit_index_row(tool, document)))
    assert row["digest"] == hashlib.sha256(document).hexdigest()
    details = row["deprecation"], row.get("source")
    assert snapshot_format.tool_from_document(json.loads(document), *details) == tool
    assert [
        row[key] for key in ("slug", "version", "name", "description", "tags", "scopes", "no_auth")
    ] == [
        tool.slug,
        tool.version,
        tool.name,
        tool.description,
        [*tool.tags],
        [*tool.scopes],
        tool.no_auth,
    ]


@pytest.mark.parametrize("tools", [[], [OLD], [NEW, OTHER]])
def test_index_of_a_toolkit_version(tools: list[Tool]) -> None:
    """Toolkit, version, and the rows of its tools."""
    rows = [
        encoding.dump_json(snapshot_format.make_toolkit_index_row(tool, document_of(tool)))
        for tool in tools
    ]
    index = json.loads(snapshot_format.render_toolkit_index(KIT, "20250201_00", rows))
    assert [*index] == ["toolkit", "version", "tools"]
    assert (index["toolkit"]["slug"], index["toolkit"]["versions"], index["version"]) == (
        "kit",
        [*KIT.versions],
        "20250201_00",
    )
    assert index["tools"] == [json.loads(row) for row in rows]
    assert (
        snapshot_format.toolkit_index_path("kit", "20250201_00") == "toolkits/kit/20250201_00.json"
    )


def test_auth_configs_and_facts() -> None:
    """A file for each auth config; the facts also have the versions of each toolkit and of all."""
    tree = snapshot_format.render_auth_configs(CONTENTS)
    assert {path: json.loads(data) for path, data in tree.items()} == {
        "auth_configs/ac_a.json": {
            "id": "ac_a",
            "toolkit": "kit",
            "tools": ["KIT_A"],
            "scopes": None,
        }
    }
    assert snapshot_format.render_facts(CONTENTS) == {
        "versions": b'["20250101_00","20250201_00"]',
        "toolkit kit": b'["20250101_00","20250201_00"]',
        "toolkit_info kit": (
            b'{"name":"Kit","logo":"https://example.com/kit.svg","description":"","categories":[],'
            b'"no_auth":false,"homepage":""}'
        ),
        "auth_config ac_a": b'"kit"',
        "auth_configs kit": b'["ac_a"]',
    }


def test_sessions() -> None:
    """A file with the response; the fact has the project and the toolkits before it."""
    (session,) = CONTENTS.sessions
    assert CONTENTS.router
    response = snapshot_format.render_session_response(session, CONTENTS.router)
    assert snapshot_format.session_path("trs_a") == "sessions/trs_a.json"
    assert [item["slug"] for item in json.loads(response)["items"]] == ["KIT_A"]
    assert snapshot_format.render_session_head(session) == b'["p",["kit"]]\n'


def test_digest_depends_only_on_the_content() -> None:
    """Not on the order of files; on each byte, name and fact."""
    digest, manifest = snapshot_format.seal_manifest(CONTENTS.about, COUNTS, FILES)
    assert snapshot_format.seal_manifest(CONTENTS.about, COUNTS, dict(reversed(FILES.items()))) == (
        digest,
        manifest,
    )
    fewer = {path: group for path, group in FILES.items() if path != "query.sets"}
    others = [
        {**FILES, "tools.json": FileInfo(7, "0d")},
        {**FILES, "tools.json": FileInfo(6, "0a")},
        {**FILES, "x": FileInfo(0, "")},
        fewer,
    ]
    digests = {snapshot_format.seal_manifest(CONTENTS.about, COUNTS, other)[0] for other in others}
    digests |= {
        snapshot_format.seal_manifest({"title": "U"}, COUNTS, FILES)[0],
        snapshot_format.seal_manifest(CONTENTS.about, {**COUNTS, "tools": 3}, FILES)[0],
    }
    assert len(digests | {digest}) == 7
    fields = json.loads(manifest)
    assert [*fields] == ["digest", "format", "about", "counts", "files"]
    assert (fields["digest"], fields["format"], fields["counts"], [*fields["files"]]) == (
        digest,
        4,
        COUNTS,
        sorted(FILES),
    )
    assert hashlib.sha256(b"{" + manifest.partition(b",")[2]).hexdigest() == digest


def test_edited_manifest_has_no_valid_seal() -> None:
    manifest = json.loads(snapshot_format.seal_manifest(CONTENTS.about, COUNTS, FILES)[1])
    assert snapshot_format.is_manifest_valid(manifest)
    edited: list[dict[str, Any]] = [
        {**manifest, "format": 2},
        {**manifest, "about": {}},
        {**manifest, "more": 1},
        {**manifest, "digest": "0" * 64},
        {**manifest, "files": {}},
        {**manifest, "counts": {**COUNTS, "tools": 3}},
    ]
    edited.append({key: value for key, value in manifest.items() if key != "about"})
    assert not any(snapshot_format.is_manifest_valid(item) for item in edited)


def test_file_list_is_sorted() -> None:
    """`files.json` has size and SHA-256 of each path."""
    listing = snapshot_format.render_file_list({"b/x": FileInfo(1, "01"), "a/y": FileInfo(2, "02")})
    assert listing == b'{"a/y":{"size":2,"sha256":"02"},"b/x":{"size":1,"sha256":"01"}}'


def test_json_is_compact_utf8() -> None:
    """Without escapes for letters, with keys in the given order."""
    assert (
        encoding.dump_json({"b": ["ü", "日本", "\u2028", 1, 1.5, None, True], "a": {}})
        == '{"b":["ü","日本","\u2028",1,1.5,null,true],"a":{}}'.encode()
    )
