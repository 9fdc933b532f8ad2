"""`toolcatalog stats`: the numbers of a build, held against a plain count over its documents."""

import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from support.command import run_successfully
from toolcatalog.exports import definitions
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.store import stats
from toolcatalog.store.open import open_build
from toolcatalog.store.stats import CatalogStats


@pytest.fixture(scope="module")
def found(shipped_build: Path) -> CatalogStats:
    """The figures of the shipped catalog."""
    return stats.compute_stats(open_build(shipped_build))


@pytest.fixture(scope="module")
def documents(shipped_build: Path) -> list[bytes]:
    """The newest documents of the shipped catalog, as they stand in its site."""
    return [
        path.read_bytes()
        for path in sorted((shipped_build.parent / "site" / "tools").glob("*/index.json"))
    ]


def named(parameters: dict[str, Any]) -> list[str]:
    """The descriptions of all parameters that have a name, at every level."""
    results = []
    for parameter in parameters.values():
        results += [parameter.get("description", ""), *nameless(parameter)]
    return results


def nameless(item: dict[str, Any]) -> list[str]:
    inner = [
        item.get("items"),
        item.get("additionalProperties"),
        *item.get("anyOf", []),
        *item.get("oneOf", []),
    ]
    return named(item.get("properties", {})) + [
        text for other in inner if isinstance(other, dict) for text in nameless(other)
    ]


def test_the_numbers(found: CatalogStats, documents: list[bytes], shipped_build: Path) -> None:
    """Each number is what a plain count gives."""
    tools = [json.loads(document) for document in documents]
    counts = json.loads((shipped_build / "current" / "manifest.json").read_bytes())["counts"]
    message = [
        text
        for tool in tools
        for field in ("input_parameters", "output_parameters")
        for text in named(tool[field])
    ]
    sizes = [len(document) for document in documents]
    assert found.tools == found.sampled == len(tools) == counts["tools"]
    assert (found.toolkits, found.versions) == (counts["toolkits"], counts["tool_versions"])
    assert found.deprecated == sum(tool["is_deprecated"] for tool in tools) > 0
    assert found.important == sum("important" in tool["tags"] for tool in tools) > 0
    assert found.no_auth == sum(tool["no_auth"] for tool in tools) > 0
    assert (found.parameters, found.parameters_described) == (
        len(message),
        sum(bool(text) for text in message),
    )
    assert (found.bytes_whole, found.bytes_median) == (sum(sizes), int(median(sizes)))
    assert found.tokens_median == int(
        median(
            definitions.estimate_tokens(snapshot_format.tool_from_document(tool, None))
            for tool in tools
        )
    )


def test_the_lists(found: CatalogStats, documents: list[bytes]) -> None:
    """The most used labels, the largest definitions, the newest versions, each in its order."""
    tools = {
        document["slug"]: (document, len(data))
        for data in documents
        for document in [json.loads(data)]
    }
    for field, count, maximum in (
        ("scopes", found.scopes, found.most_scopes),
        ("tags", found.tags, found.most_tags),
    ):
        counts = Counter(label for tool, _ in tools.values() for label in tool[field])
        assert count == len(counts)
        assert [*maximum] == sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]
    assert [size for _, size, _ in found.largest] == sorted(
        (size for _, size in tools.values()), reverse=True
    )[:5]
    assert all(tools[slug][1] == size for slug, size, _ in found.largest)
    assert [version for _, version in found.newest] == sorted(
        (tool["version"] for tool, _ in tools.values()), reverse=True
    )[:5]


def test_a_sample_is_reported(shipped_build: Path, found: CatalogStats) -> None:
    """In a larger catalog only some documents are read, and the figures say how many; all else is
    the same.
    """
    items = stats.compute_stats(open_build(shipped_build), sample_size=20)
    assert items.sampled == 20 < items.tools
    assert 0 < items.parameters < found.parameters
    document = (
        "tools",
        "versions",
        "deprecated",
        "important",
        "most_scopes",
        "most_tags",
        "bytes_median",
        "largest",
        "newest",
    )
    assert [getattr(items, field) for field in document] == [
        getattr(found, field) for field in document
    ]


def test_text_and_json(shipped_build: Path, found: CatalogStats) -> None:
    """JSON has every figure under its name; the text says the same for people."""
    output = json.loads(run_successfully("stats", "--build", shipped_build, "--format", "json"))
    assert [*output] == [*CatalogStats.__dataclass_fields__]
    assert output["tools"] == found.tools
    text = run_successfully("stats", "--build", shipped_build)
    assert f"Tools                   {found.tools} in {found.versions} versions\n" in text
    assert f"Deprecated              {found.deprecated} of {found.tools} (" in text
    assert found.largest[0][0] in text
    assert "evenly spread" not in text


def test_an_empty_catalog(tmp_path: Path) -> None:
    """Nothing at all is no mistake."""
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "catalog.yaml").write_text("title: A\n")
    run_successfully("build", "--no-site", cwd=tmp_path)
    output = json.loads(run_successfully("stats", "--format", "json", cwd=tmp_path))
    assert {value for value in output.values() if not isinstance(value, list)} == {0}
    assert "Tools                   0 in 0 versions" in run_successfully("stats", cwd=tmp_path)
