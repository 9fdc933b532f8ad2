"""The history rules, each with a real git repository."""

from pathlib import Path

import pytest

from support.catalogs import add_toolkit
from support.git import CLEAN, TOOL, commit, create_repository, run_git, write_tool
from support.paths import ROOT
from toolcatalog.errors import Finding, UsageError
from toolcatalog.history.rules import RULES
from toolcatalog.history.targets import check_against_revision
from toolcatalog.validation import severity

TODAY = "2026-02-01"
NEEDY = TOOL + "input_parameters:\n  to: {type: string, description: Whom., required: true}\n"
A_DO, A_SEE = ("toolkits/a/A_DO/20250101_00.yaml", "toolkits/a/A_SEE/20250101_00.yaml")
NEW = "toolkits/a/A_DO/20260101_00.yaml"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CLEAN.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog whose A_DO is as plain as can be, committed."""
    result = create_repository(tmp_path)
    write_tool(result, "A_DO", text=TOOL)
    commit(tmp_path)
    return result


def find_problems(catalog: Path, today: str = TODAY) -> list[Finding]:
    return check_against_revision(catalog, "HEAD", today).findings


def rules(catalog: Path, today: str = TODAY) -> list[tuple[str, str]]:
    return [(finding.rule, finding.path) for finding in find_problems(catalog, today)]


def deprecated(sunset: str) -> str:
    return (
        f"{TOOL}deprecation: {{reason: Old., sunset: {sunset}}}\n"
        if sunset
        else f"{TOOL}deprecation: {{reason: Old.}}\n"
    )


# A published version


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEEDY, "which breaks callers: input to is new and required"),
        (
            TOOL.replace("Does", "Can do"),
            "this published version was modified: description was reworded",
        ),
        (TOOL + "scopes: [write]\n", "scopes `write` was added"),
        (NEEDY + "deprecation: {reason: Old.}\n", "input to is new and required"),
    ],
)
def test_changed_published_version_is_an_error(catalog: Path, text: str, message: str) -> None:
    write_tool(catalog, "A_DO", text=text)
    (finding,) = find_problems(catalog)
    assert (finding.rule, finding.path) == ("history-version-changed", A_DO)
    assert message in finding.message
    assert "deprecation" not in finding.message
    assert "toolcatalog bump A_DO" in finding.help


@pytest.mark.parametrize("field", ["input_parameters", "output_parameters"])
def test_parameter_order_is_part_of_a_version(catalog: Path, tmp_path: Path, field: str) -> None:
    """A model reads parameters in order, at every level."""
    text = (
        TOOL + f"{field}:\n  x: {{type: object, properties: {{%s: {{type: string}}, %s: {{type:"
        " string}}}\n  %s: {type: string}\n  %s: {type: string}\n"
    )
    write_tool(catalog, "A_DO", "20250202_00", text % ("a", "b", "y", "z"))
    commit(tmp_path)
    for names in (("a", "b", "z", "y"), ("b", "a", "y", "z")):
        write_tool(catalog, "A_DO", "20250202_00", text % names)
        assert rules(catalog) == [("history-version-changed", "toolkits/a/A_DO/20250202_00.yaml")]
        (finding,) = find_problems(catalog)
        assert "in another order" in finding.message
        assert finding.pointer == (field,)


def test_finding_points_at_the_changed_field(catalog: Path) -> None:
    write_tool(catalog, "A_DO", text=NEEDY)
    (finding,) = find_problems(catalog)
    assert (finding.pointer, finding.at_key) == (("input_parameters",), True)


@pytest.mark.parametrize(
    "text",
    [
        deprecated(""),
        f"# A comment.\n{TOOL}",
        'description: "Does it."\nname: "Do it"\n',
        TOOL + "tags: []\nno_auth: false\n",
    ],
)
def test_deprecation_comments_and_layout_may_change(catalog: Path, text: str) -> None:
    write_tool(catalog, "A_DO", text=text)
    assert rules(catalog) == []
    assert check_against_revision(catalog, "HEAD", TODAY).changed_paths == {A_DO}


def test_toolkit_may_change(catalog: Path) -> None:
    """It is no change of its tools, even if one of them is deprecated at the same time."""
    toolkit = catalog / "toolkits" / "a" / "toolkit.yaml"
    toolkit.write_text(f"{toolkit.read_text()}description: Tools.\nno_auth: false\n")
    write_tool(catalog, "A_DO", text=deprecated(""))
    assert rules(catalog) == []


@pytest.mark.parametrize("previous", ["", "no_auth: false\n", "no_auth: true\n"])
@pytest.mark.parametrize("current", ["", "no_auth: false\n", "no_auth: true\n"])
def test_no_auth_of_a_toolkit_changes_its_tools(
    catalog: Path, tmp_path: Path, previous: str, current: str
) -> None:
    """All published versions without their own `no_auth`."""
    toolkit = catalog / "toolkits" / "a" / "toolkit.yaml"
    text = toolkit.read_text()
    toolkit.write_text(text + previous)
    commit(tmp_path)
    toolkit.write_text(text + current)
    found_ = find_problems(catalog)
    if ("true" in previous) == ("true" in current):
        assert found_ == []
    else:
        (finding,) = found_
        assert (finding.rule, finding.path, finding.pointer) == (
            "history-no-auth",
            "toolkits/a/toolkit.yaml",
            ("no_auth",),
        )
        assert ("need no authentication any more" in finding.message) == ("true" in current)


# A meta tool

META = "meta_tools/ROUTER_FIND/20250101_00.yaml"


@pytest.fixture
def meta(catalog: Path, tmp_path: Path) -> Path:
    """The file of a meta tool, committed."""
    file = catalog / META
    file.parent.mkdir(parents=True)
    file.write_text(TOOL)
    (catalog / "meta_tools/toolkit.yaml").write_text(
        "name: Router\nlogo: https://a.example/r.svg\n"
    )
    commit(tmp_path)
    return file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEEDY, "input_parameters changed"),
        (TOOL.replace("Does", "Can do"), "description changed"),
        (f"when: manage_connections\n{TOOL}", "when changed"),
        (f"{NEEDY}deprecation: {{reason: Old.}}\n", "input_parameters changed"),
    ],
)
def test_changed_published_meta_tool_is_an_error(
    catalog: Path, meta: Path, text: str, message: str
) -> None:
    """Sessions serve it, so a change needs a new version."""
    meta.write_text(text)
    (finding,) = find_problems(catalog)
    assert (finding.rule, finding.path) == ("history-version-changed", META)
    assert message in finding.message
    assert "deprecation" not in finding.message


def test_meta_tool_may_be_deprecated_and_get_versions(catalog: Path, meta: Path) -> None:
    meta.write_text(f"# A comment.\n{deprecated('')}")
    meta.with_name("20260101_00.yaml").write_text(NEEDY)
    assert rules(catalog) == []


@pytest.mark.parametrize(("sunset", "passes"), [("", False), ("2026-02-02", False), (TODAY, True)])
def test_meta_tool_is_removed_after_its_sunset(
    catalog: Path, tmp_path: Path, meta: Path, sunset: str, passes: bool
) -> None:
    meta.write_text(deprecated(sunset))
    commit(tmp_path)
    meta.unlink()
    assert rules(catalog) == ([] if passes else [("history-version-removed", META)])


# An announced end


SUNSETS = [
    (None, "2026-02-02", True),
    (None, TODAY, False),
    (None, "2020-01-01", False),
    ("", "2026-01-31", False),
    ("2027-01-01", "2026-01-31", False),
    ("2026-01-31", "2026-01-31", True),
    ("2026-01-31", "2026-01-30", False),
    ("2026-01-31", "", True),
]


@pytest.mark.parametrize(("previous", "current", "passes"), SUNSETS)
def test_sunset_in_the_past_is_an_error(
    catalog: Path, tmp_path: Path, previous: str | None, current: str, passes: bool
) -> None:
    """The next change could remove the version without notice."""
    write_tool(catalog, "A_DO", text=TOOL if previous is None else deprecated(previous))
    commit(tmp_path)
    write_tool(catalog, "A_DO", text=deprecated(current).replace("Old.", "Older."))
    expected = [] if passes else [("history-sunset-past", A_DO)]
    assert rules(catalog) == expected


@pytest.mark.parametrize(("previous", "current", "passes"), SUNSETS)
def test_sunset_of_a_meta_tool_in_the_past_is_an_error(
    catalog: Path, tmp_path: Path, meta: Path, previous: str | None, current: str, passes: bool
) -> None:
    meta.write_text(TOOL if previous is None else deprecated(previous))
    commit(tmp_path)
    meta.write_text(deprecated(current).replace("Old.", "Older."))
    assert rules(catalog) == ([] if passes else [("history-sunset-past", META)])


def test_new_meta_tool_with_a_past_sunset_is_an_error(catalog: Path, meta: Path) -> None:
    file = meta.with_name("20260101_00.yaml")
    file.write_text(deprecated("2026-01-31"))
    assert rules(catalog) == [("history-sunset-past", META.replace(meta.name, file.name))]


def test_new_version_with_a_past_sunset_is_an_error(catalog: Path) -> None:
    write_tool(catalog, "A_DO", "20260101_00", deprecated("2026-01-31"))
    assert rules(catalog) == [("history-sunset-past", NEW)]


# A new version


def test_lower_version_number_is_an_error(catalog: Path) -> None:
    write_tool(catalog, "A_DO", "20241231_99", TOOL)
    (finding,) = find_problems(catalog)
    assert (finding.rule, finding.path) == (
        "history-version-back",
        "toolkits/a/A_DO/20241231_99.yaml",
    )
    assert "20250101_00" in finding.message


def test_higher_version_number_is_accepted(catalog: Path) -> None:
    write_tool(catalog, "A_DO", "20260101_00", TOOL.replace("Does", "Can do"))
    write_tool(catalog, "A_NEW", "20200101_00", TOOL)
    assert rules(catalog) == []


def test_breaking_version_needs_a_sunset(catalog: Path) -> None:
    """A deprecation without `sunset` does not say how long the old version stays."""
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    (finding,) = find_problems(catalog)
    assert (finding.rule, finding.path, finding.pointer) == (
        "history-breaking",
        NEW,
        ("input_parameters",),
    )
    assert (
        finding.message
        == "this version breaks callers of 20250101_00: input to is new and required"
    )
    write_tool(catalog, "A_DO", text=deprecated(""))
    assert rules(catalog) == [("history-breaking", NEW)]
    write_tool(catalog, "A_DO", text=deprecated("2026-12-31"))
    assert rules(catalog) == []
    write_tool(catalog, "A_DO", "20260202_00", NEEDY)  # the next one after that breaks nothing more
    assert rules(catalog) == []


def test_earlier_deprecation_counts(catalog: Path, tmp_path: Path) -> None:
    """The version before may have been deprecated long ago."""
    write_tool(catalog, "A_DO", text=deprecated("2026-12-31"))
    commit(tmp_path)
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    assert rules(catalog) == []


# Removals


@pytest.mark.parametrize(
    ("sunset", "passes"),
    [("", False), ("2026-02-02", False), ("2026-02-01", True), ("2025-12-31", True)],
)
@pytest.mark.parametrize("label", ["tool", "version", "toolkit"])
def test_removal_needs_a_past_sunset(tmp_path: Path, label: str, sunset: str, passes: bool) -> None:
    catalog = create_repository(tmp_path)
    for slug in ("A_DO", "A_SEE"):
        write_tool(catalog, slug, text=deprecated(sunset))
    if label == "version":
        write_tool(catalog, "A_DO", "20260101_00", TOOL)
    commit(tmp_path)
    if label == "toolkit":
        add_toolkit(catalog, "b")
        run_git(tmp_path, "rm", "-rq", "catalog/toolkits/a")
    else:
        write_tool(catalog, "A_DO").unlink()
    path = "toolkits/a/toolkit.yaml" if label == "toolkit" else A_DO
    assert rules(catalog) == ([] if passes else [(f"history-{label}-removed", path)])


def test_removal_without_deprecation_is_an_error(catalog: Path) -> None:
    write_tool(catalog, "A_DO").unlink()
    (finding,) = find_problems(catalog)
    assert finding.message == "the tool `A_DO` was removed, and no `sunset` had announced that"
    assert f"git checkout HEAD -- {A_DO}" in finding.help
    run_git(catalog, "checkout", "HEAD", "--", A_DO)  # as the help says
    assert rules(catalog) == []


def test_deprecation_in_the_same_change_is_too_late(catalog: Path) -> None:
    """The published one counts, not the last commit before the removal."""
    write_tool(catalog, "A_DO", text=deprecated("2020-01-01"))
    run_git(catalog, "add", ".")
    write_tool(catalog, "A_DO").unlink()
    assert rules(catalog) == [("history-tool-removed", A_DO)]


def test_rename_is_a_removal_and_a_new_version(catalog: Path) -> None:
    write_tool(catalog, "A_DO").rename(write_tool(catalog, "A_DO", "20260101_00"))
    write_tool(catalog, "A_DO", "20260101_00", NEEDY)
    assert rules(catalog) == [("history-version-removed", A_DO), ("history-breaking", NEW)]


def test_removed_toolkit_is_reported_once(catalog: Path) -> None:
    """And not for each tool; if its own file stays, for each tool."""
    for file in (write_tool(catalog, "A_DO"), write_tool(catalog, "A_SEE")):
        file.unlink()
    assert rules(catalog) == [("history-tool-removed", A_DO), ("history-tool-removed", A_SEE)]
    (catalog / "toolkits" / "a" / "toolkit.yaml").unlink()
    (finding,) = find_problems(catalog)
    assert finding.rule == "history-toolkit-removed"
    assert "2 of its tools, `A_DO` first," in finding.message


# What cannot be compared


def test_invalid_base_cannot_be_compared(catalog: Path, tmp_path: Path) -> None:
    write_tool(catalog, "A_DO", text=TOOL + "colour: red\n")
    write_tool(catalog, "A_SEE", text="name: [\n")
    commit(tmp_path)
    write_tool(catalog, "A_DO", text=TOOL)
    write_tool(catalog, "A_SEE", "20260101_00", TOOL)
    found_ = {finding.path: finding for finding in find_problems(catalog)}
    assert "before: line 3: " in found_[A_DO].message
    assert {finding.rule for finding in found_.values()} == {"history-not-compared"}


def test_invalid_new_file_is_left_to_check(catalog: Path) -> None:
    """It reports line and column; the comparison does not report it again."""
    write_tool(catalog, "A_DO", text=TOOL + "colour: red\n")
    write_tool(catalog, "A_SEE", "20260101_00", "name: [\n")
    assert rules(catalog) == []


# Branches


def test_changes_merged_meanwhile_do_not_count(catalog: Path, tmp_path: Path) -> None:
    """Against a branch that moved on, only own commits count."""
    run_git(tmp_path, "switch", "--quiet", "--create", "ours")
    write_tool(catalog, "A_MINE", text=TOOL)
    commit(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "main")
    write_tool(catalog, "A_THEIRS", text=TOOL)
    write_tool(catalog, "A_DO", "20260101_00", TOOL)
    commit(tmp_path)
    run_git(tmp_path, "switch", "--quiet", "ours")
    assert check_against_revision(catalog, "main", TODAY).findings == []
    assert check_against_revision(catalog, "main", TODAY).changed_paths == {
        "toolkits/a/A_MINE/20250101_00.yaml"
    }


def test_unknown_revision_is_reported(catalog: Path) -> None:
    with pytest.raises(UsageError, match="knows no revision `nope`"):
        check_against_revision(catalog, "nope", TODAY)


# The rules themselves


def test_rules_have_severities_and_pages() -> None:
    """The registry, the settings of `catalog.yaml` and the rule pages agree."""
    for past in RULES:
        page = (
            ROOT / "src" / "toolcatalog" / "validation" / "rulebook" / f"{past.rule}.md"
        ).read_text()
        assert severity.DEFAULT_SEVERITIES[past.rule] == past.severity
        assert page.startswith(f"# {past.rule}\n\n")
        assert f"\nSeverity: {past.severity}\n" in page
        assert 15 <= page.count("\n") <= 35
    assert {past.rule for past in RULES} == {
        rule for rule in severity.DEFAULT_SEVERITIES if rule.startswith("history-")
    }
