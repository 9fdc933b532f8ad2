"""The room `snapshot`: which files there are, and that the manifest vouches for every byte of them."""

import json
from dataclasses import replace

import pytest

from toolcatalog import snapshot
from toolcatalog.snapshot import AuthConfig, Contents, Session, Tool, Toolkit

KIT = Toolkit(
    slug="kit", name="Kit", logo="https://example.com/kit.svg", description="", categories=(), no_auth=False, homepage="", owners=(),
    versions=("20250101_00", "20250201_00"),
)  # fmt: skip
OLD = Tool(
    slug="KIT_A", toolkit="kit", version="20250101_00", available_versions=("20250101_00", "20250201_00"), name="A", description="Does A.",
    scopes=("a", "b"), tags=("t",), no_auth=False, deprecation=None,
    input_parameters={"x": {"type": "string", "description": "", "required": True}}, output_parameters={},
)  # fmt: skip
NEW = replace(OLD, version="20250201_00", deprecation={"reason": "Old.", "since": "", "sunset": "", "replaced_by": ""})
OTHER = replace(OLD, slug="KIT_B", version="20250201_00", available_versions=("20250201_00",))
CONTENTS = Contents(
    about={"title": "T"},
    toolkits=(KIT,),
    router=replace(KIT, slug="router"),
    tools=(OLD, NEW, OTHER),
    auth_configs=(AuthConfig(id="ac_a", toolkit="kit", tools=("KIT_A",), scopes=None),),
    sessions=(Session(id="trs_a", project="p", tools=(replace(OLD, toolkit="router"),)),),
)


def test_files_of_a_snapshot() -> None:
    """A document for each tool version, an index for each toolkit version, a file for each session and auth config, and the query rows."""
    assert sorted(snapshot.files(CONTENTS)) == [
        "auth_configs/ac_a.json",
        "query.tools.json",
        "sessions/trs_a.json",
        "toolkits/kit/20250101_00.json",
        "toolkits/kit/20250201_00.json",
        "tools/KIT_A/20250101_00.json",
        "tools/KIT_A/20250201_00.json",
        "tools/KIT_B/20250201_00.json",
    ]


def test_the_document_of_a_tool() -> None:
    """Exactly the thirteen fields of the interface, the details of the deprecation left out."""
    assert json.loads(snapshot.files(CONTENTS)["tools/KIT_A/20250201_00.json"]) == {
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


@pytest.mark.parametrize(("at", "tools"), [("20250101_00", [OLD]), ("20250201_00", [NEW, OTHER])])
def test_the_index_of_a_toolkit_version(at: str, tools: list[Tool]) -> None:
    """Every tool in force at that version, with the place of its document, the digest of that file's bytes, and why it is deprecated."""
    tree = snapshot.files(CONTENTS)
    index = json.loads(tree[f"toolkits/kit/{at}.json"])
    assert index["version"] == at
    assert [(row["slug"], row["version"], row["deprecation"]) for row in index["tools"]] == [
        (tool.slug, tool.version, tool.deprecation) for tool in tools
    ]
    for row in index["tools"]:
        assert row["digest"] == snapshot.sha256(tree[row["path"]])
        assert json.loads(tree[row["path"]])["version"] == row["version"]


def test_the_digest_is_of_the_contents_alone() -> None:
    """Equal trees have one digest whatever the order of their files; one byte, one name or one fact more has another."""
    tree = snapshot.files(CONTENTS)
    digest, manifest = snapshot.seal(tree, CONTENTS)
    assert snapshot.seal(dict(reversed(tree.items())), CONTENTS) == (digest, manifest)
    path = "sessions/trs_a.json"
    others = [{**tree, path: tree[path] + b" "}, {**tree, "x": b""}, {key: tree[key] for key in tree if key != path}]
    digests = {snapshot.seal(other, CONTENTS)[0] for other in others}
    digests.add(snapshot.seal(tree, replace(CONTENTS, about={"title": "U"}))[0])
    assert len(digests | {digest}) == 5
    assert json.loads(manifest)["counts"] == {"toolkits": 1, "tools": 2, "tool_versions": 3, "sessions": 1}


def test_faults_name_each_file_that_is_wrong() -> None:
    """A whole tree has none; a missing, longer or changed file has one line each; files beside it have none; an edited manifest is one."""
    tree = snapshot.files(CONTENTS)
    manifest = json.loads(snapshot.seal(tree, CONTENTS)[1])
    assert snapshot.faults(manifest, {**tree, "more": b""}) == []
    damaged = {**tree, "query.tools.json": b"x" * len(tree["query.tools.json"]), "sessions/trs_a.json": b"{}"}
    del damaged["auth_configs/ac_a.json"]
    size = len(tree["sessions/trs_a.json"])
    assert snapshot.faults(manifest, damaged) == [
        "auth_configs/ac_a.json is missing",
        "query.tools.json has other bytes than were written",
        f"sessions/trs_a.json has 2 bytes and should have {size}",
    ]
    assert snapshot.faults({**manifest, "format": 2}, tree) == ["manifest.json is not the one that was written"]


def test_json_is_written_as_it_is() -> None:
    """UTF-8 without escapes for letters, in the order given, without spaces: what the API hands out."""
    assert (
        snapshot.dump({"b": ["ü", "日本", "\u2028", 1, 1.5, None, True], "a": {}})
        == '{"b":["ü","日本","\u2028",1,1.5,null,true],"a":{}}'.encode()
    )
