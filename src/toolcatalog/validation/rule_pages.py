"""Rule pages: the documentation of each rule, read from `rulebook/`.

A page has a fixed form: `# <rule>`, one sentence that says what is wrong, `Severity: <word>` (with
`(always)` if `catalog.yaml` cannot change it), and the sections Why, Wrong, Right and Fix. The
first lines of all pages make up docs/reference/rules.md.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from toolcatalog import names
from toolcatalog.errors import UsageError

_SEVERITY_PREFIX = "Severity: "
_ALWAYS_SUFFIX = " (always)"


def _split_ids(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GROUPS: Mapping[str, Sequence[str]] = {
    "Files": _split_ids(
        "catalog-missing file-unexpected file-link file-unreadable file-too-large "
        "name-toolkit name-tool name-version name-session name-auth-config logo-invalid "
        "font-invalid "
        "too-many"
    ),
    "YAML": _split_ids(
        "yaml-syntax yaml-encoding yaml-control-character yaml-byte-order-mark yaml-empty "
        "yaml-documents yaml-duplicate-key yaml-key yaml-anchor yaml-alias yaml-tag "
        "yaml-depth yaml-values yaml-number"
    ),
    "Shape": _split_ids(
        "unknown-key missing-key wrong-type wrong-value repeated-item misfit-examples "
        "misfit-default misfit-enum bad-pattern placeholder"
    ),
    "Between files": _split_ids("toolkit-missing slug-taken reference session-empty"),
    "Rules": _split_ids("rules-unknown ignore-comment ignore-unused schema-comment"),
    "Quality": _split_ids(
        "description-empty description-repeats-name description-short description-brief "
        "description-long description-filler parameter-undescribed parameter-repeats-name "
        "output-undescribed hint-missing hint-contradiction important-none important-many "
        "deprecation-unmarked deprecation-unexplained replacement-deprecated version-identical"
    ),
    "Identity": _split_ids("slug-prefix slug-long slug-similar toolkit-twins parameter-twins"),
    "Portability": _split_ids(
        "slug-start parameter-name nesting-deep parameters-many definition-large enum-large "
        "enum-not-text array-items pattern-rare format-rare"
    ),
    "Security": _split_ids(
        "hidden-character lookalike-letters instruction-like secret link-script link-data "
        "link-plain link-credentials scopes-grow"
    ),
    "History": _split_ids(
        "history-version-changed history-version-back history-version-removed "
        "history-tool-removed history-toolkit-removed history-sunset-past history-no-auth "
        "history-breaking history-not-compared"
    ),
}  # every rule, in display order


def rule_ids() -> list[str]:
    """Return the ids of all rules, in display order."""
    return [rule for group in GROUPS.values() for rule in group]


@cache
def load_page(rule: str) -> str:
    """Return the page of a rule, as Markdown. Raises UsageError for an unknown rule."""
    if rule not in rule_ids():
        nearest = names.find_nearest(rule, rule_ids())
        help = f"did you mean {nearest[0]}?" if nearest else "`toolcatalog explain` lists all."
        raise UsageError(f"There is no rule {rule}: {help}")
    folder = resources.files("toolcatalog.validation") / "rulebook"
    return (folder / f"{rule}.md").read_text("utf-8")


def load_summary(rule: str) -> str:
    """Return the sentence of a rule's page that says what is wrong."""
    return load_page(rule).splitlines()[2]


def default_severity(rule: str) -> str:
    """Return the severity of a rule without overrides in `catalog.yaml`: error, warning or note."""
    lines = load_page(rule).splitlines()
    line = next(line for line in lines if line.startswith(_SEVERITY_PREFIX))
    return line.removeprefix(_SEVERITY_PREFIX).removesuffix(_ALWAYS_SUFFIX)
