"""The history of a tool: which versions are compared, and what is shown of each change."""

from dataclasses import replace

from support import tool_samples
from toolcatalog.site import history_page
from toolcatalog.snapshot.format import Tool

TEXT = {"type": "string", "description": "A text.", "required": False}
ADDRESS = {"type": "object", "description": "Where.", "properties": {"a.b": TEXT}, "items": TEXT}

OLDEST_AND_NEWEST = ("20250100_00", "20250109_00")


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


def test_the_size_of_a_page_is_bounded() -> None:
    """Each version is compared with the newest, which has 1 MB and must not be shown for each."""
    inputs = {f"parameter_{n}": {**TEXT, "description": "A text. " * 12} for n in range(7_000)}
    versions = [version(n, input_parameters={}) for n in range(9)]
    versions.append(version(9, input_parameters=inputs))
    pairs = history_page.compare_versions(versions)
    assert sum(len(pair.changes) + len(pair.schema) for pair in pairs) < 5_000_000
    assert pairs[0].changes.count("is new and optional") == 7_000
    last = next(pair for pair in pairs if (pair.older, pair.newer) == OLDEST_AND_NEWEST)
    command = "toolcatalog diff MAIL_SEND@20250100_00 MAIL_SEND@20250109_00"
    assert last.changes.startswith("<li>7,000 changes not shown")
    assert f"<code>{command}</code> shows them." in last.changes
    assert last.counts == pairs[0].counts
    assert last.schema == ""


def test_text_of_a_long_place_is_never_another_one() -> None:
    """Of two descriptions whose places look alike when they are shortened, none is shown."""
    for names in (("a", "b"), ("a",)):
        old, new = (
            {
                "to": {
                    **ADDRESS,
                    "properties": {
                        "x" * 150: {
                            **ADDRESS,
                            "properties": {
                                name + "y" * 190: {**TEXT, "description": f"{word} {name}."}
                                for name in names
                            },
                        }
                    },
                }
            }
            for word in ("Old", "New")
        )
        versions = [version(1, input_parameters=old), version(2, input_parameters=new)]
        changes = str(history_page.compare_versions(versions)[0].changes)
        assert changes.count("description was reworded") == len(names)
        assert changes.count('<p class="diff">') == (1 if names == ("a",) else 0)
