"""The history of a tool: which versions are compared, and what is shown of each change."""

from dataclasses import replace

from support import tool_samples
from toolcatalog.site import history_page
from toolcatalog.snapshot.format import Tool

TEXT = {"type": "string", "description": "A text.", "required": False}
ADDRESS = {"type": "object", "description": "Where.", "properties": {"a.b": TEXT}, "items": TEXT}


def version(number: int, **more: object) -> Tool:
    """A version of a tool."""
    tool = replace(
        tool_samples.TOOL, version=f"2025010{number}_00", input_parameters={"to": ADDRESS}
    )
    return replace(tool, **more)  # type: ignore[arg-type]


def test_a_description_is_compared_by_word() -> None:
    """That of the tool, and those of parameters at any level."""
    changed = {**TEXT, "description": "A long text."}
    inputs = {"to": {**ADDRESS, "properties": {"a.b": changed}, "items": changed}}
    pair = history_page.compare_versions([version(1), version(2, input_parameters=inputs)])[0]
    diff = '<p class="diff">A <ins>long </ins>text.</p>'
    place = "input to.&quot;a.b&quot;"
    assert f"<code>{place}</code> description was reworded{diff}" in str(pair.changes)
    assert f"<code>input to[]</code> description was reworded{diff}" in str(pair.changes)
    assert pair.counts == '<span class="badge quiet">2 text</span>'
    assert pair.schema == ""


def test_schemas_are_compared_by_line() -> None:
    """Without descriptions, so that a new text is no difference of the schema."""
    inputs = {"to": {**ADDRESS, "required": True, "description": "Other."}}
    pair = history_page.compare_versions([version(1), version(2, input_parameters=inputs)])[0]
    assert '"required": [' in pair.schema
    assert pair.schema.count("<ins>") == 1
    assert "Other" not in pair.schema
    assert '<span class="badge breaking">1 breaking</span>' in pair.counts


def test_which_versions_are_compared() -> None:
    """All with each other up to eight; beyond, neighbors, and each with the newest."""
    pairs = history_page.compare_versions([version(n) for n in range(1, 9)])
    assert len(pairs) == 28
    assert (pairs[0].older, pairs[0].newer) == ("20250107_00", "20250108_00")
    assert len(history_page.compare_versions([version(n) for n in range(9)])) == 15
