"""The export of the index to OpenSearch: its bulk format, mapping and terms."""

import json
from pathlib import Path
from typing import Any

from support.command import run_successfully, run_toolcatalog
from toolcatalog.search import analysis, opensearch


def export(build: Path, *arguments: str) -> list[dict[str, Any]]:
    """The lines that the command prints."""
    text = run_successfully("export", "index", "--to", "opensearch", "--build", build, *arguments)
    assert text.endswith("\n")  # the bulk API requires it
    return [json.loads(line) for line in text.splitlines()]


def test_bulk_format(shipped_build: Path) -> None:
    """An action precedes each document, and each tool is there once."""
    lines = export(shipped_build)
    actions, documents = lines[::2], lines[1::2]
    assert len(actions) == len(documents) > 100
    assert all({*action} == {"index"} for action in actions)
    assert [action["index"]["_id"] for action in actions] == [tool["slug"] for tool in documents]
    assert {action["index"]["_index"] for action in actions} == {"tools"}
    assert len({tool["slug"] for tool in documents}) == len(documents)


def test_the_mapping_has_every_field(shipped_build: Path) -> None:
    """The mapping is not dynamic, so a field that it lacks could not be searched."""
    text = run_successfully(
        "export", "index", "--to", "opensearch", "--mapping", "--build", shipped_build
    )
    body = json.loads(text)
    properties = body["mappings"]["properties"]
    for document in export(shipped_build)[1::2]:
        assert {*document} == {*properties}
        assert {*document["terms"]} == {*properties["terms"]["properties"]}
    analyzers = body["settings"]["analysis"]["analyzer"]
    filters = {*body["settings"]["analysis"]["filter"], "lowercase", "asciifolding", "cjk_bigram"}
    for field in properties["terms"]["properties"].values():
        assert field["search_analyzer"] in analyzers
        assert field["similarity"] in body["settings"]["similarity"]
    assert {*analyzers["tool_query"]["filter"]} <= filters
    assert len(body["mappings"]["_meta"]["query_fields"]) == len(opensearch.FIELD_KEYS)


def test_terms_are_those_of_the_index(shipped_build: Path) -> None:
    [_, tool] = export(shipped_build, "GITHUB_CREATE_ISSUE")
    words = [word.term for word in analysis.extract_words("Create an issue")]
    assert tool["terms"]["name"].split()[: len(words)] == words
    assert "github" in tool["terms"]["toolkit"].split()
    assert "titl" in tool["terms"]["parameter_names"].split()
    assert tool["scopes"] == ["repo"]


def test_a_part_of_the_catalog(shipped_build: Path) -> None:
    """Toolkits, versions and the name of the index are options."""
    lines = export(
        shipped_build, "--toolkit", "slack", "--version", "20250601_00", "--index-name", "old"
    )
    assert {tool["toolkit"] for tool in lines[1::2]} == {"slack"}
    assert all(tool["version"] <= "20250601_00" for tool in lines[1::2])
    assert lines[0]["index"]["_index"] == "old"


def test_wrong_calls(shipped_build: Path) -> None:
    for arguments in (
        ["index"],
        ["index", "--to", "opensearch", "--session", "trs_demo"],
        ["openai", "GITHUB_CREATE_ISSUE", "--to", "opensearch"],
        ["openai", "GITHUB_CREATE_ISSUE", "--mapping"],
    ):
        done = run_toolcatalog("export", *arguments, "--build", shipped_build)
        assert (done.returncode, done.stdout) == (2, "")
        assert "error: " in done.stderr
