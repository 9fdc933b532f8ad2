"""Rule severities: which lint rules apply to a catalog, and with which severity.

Problems that make a catalog invalid are always errors. All other findings are lint findings: their
severity is the rule's default unless `catalog.yaml` overrides it, and a comment in a file can
suppress them there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from typing import Any, TypedDict

from toolcatalog import names
from toolcatalog.catalog import sessions
from toolcatalog.catalog.comments import Suppression
from toolcatalog.catalog.model import (
    ROUTER,
    About,
    AuthConfig,
    Catalog,
    MetaTool,
    Session,
    Toolkit,
    ToolVersion,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding
from toolcatalog.lint import security
from toolcatalog.lint.registry import CATALOG_RULES, TEXT_RULES, TOOL_RULES
from toolcatalog.lint.rule import HISTORY_SEVERITIES, ToolRule
from toolcatalog.lint.views import FileView, ToolView

SEVERITIES = ("error", "warning", "note")
UNUSED_SUPPRESSION, SCHEMA_COMMENT = "ignore-unused", "schema-comment"
IDENTICAL_VERSION = "version-identical"

DEFAULT_SEVERITIES: Mapping[str, str] = {
    **{rule: severity for rule, severity, _ in TOOL_RULES},
    **{rule: severity for rule, severity, _ in CATALOG_RULES},
    **HISTORY_SEVERITIES,
    IDENTICAL_VERSION: "warning",
    UNUSED_SUPPRESSION: "warning",
    SCHEMA_COMMENT: "warning",
}  # the default severity of every rule whose severity can be changed

SECURITY_RULES = frozenset(rule for rule, *_ in (*TEXT_RULES, *security.CATALOG_RULES))


def effective_severity(rule: str, overrides: Mapping[str, str]) -> str:
    """Return the severity of a rule: error, warning, note or off.

    `overrides` are the severities in catalog.yaml. A rule without a default severity is always an
    error.
    """
    return overrides.get(rule, DEFAULT_SEVERITIES[rule]) if rule in DEFAULT_SEVERITIES else "error"


def applies_to_older_versions(rule: str) -> bool:
    """Return whether a rule's findings can be fixed in a version that is already published.

    A deprecation may still change, and anything dangerous must be removed.
    """
    return rule.startswith("deprecation-") or DEFAULT_SEVERITIES[rule] == "error"


def rules_with_severities(overrides: Mapping[str, str], severities: Collection[str]) -> set[str]:
    """Return the rules whose severity, with these overrides, is one of these."""
    return {
        rule for rule in DEFAULT_SEVERITIES if effective_severity(rule, overrides) in severities
    }


def check_record(
    path: str, record: Any, rules: Collection[str] = DEFAULT_SEVERITIES.keys()
) -> list[Finding]:
    """Return the lint findings of one file that is valid against its schema.

    Only `rules` are checked. Findings are limited per rule, so that many findings of one rule do
    not hide those of another with a higher severity. A meta tool is checked with sample values for
    its placeholders. In files other than tools only the texts are checked, for security.
    """
    tool_rules = [rule for rule in TOOL_RULES if rule.rule in rules]
    match record:
        case ToolVersion():
            return _check_view(ToolView(record), tool_rules)
        case MetaTool():
            return _check_view(ToolView(_sample_tool(path, record)), tool_rules)
        case Toolkit() | About() | AuthConfig() | Session():
            fields = asdict(record)
            fields.pop("path", None)
            text_rules = [rule for rule in TEXT_RULES if rule.rule in rules]
            return _check_view(FileView(path, fields), text_rules)
    return []


def _check_view(view: ToolView, rules: Iterable[ToolRule]) -> list[Finding]:
    findings = (islice(rule.check(view), MAX_FINDINGS_PER_FILE + 1) for rule in rules)
    return [*chain.from_iterable(findings)]


def _sample_tool(path: str, meta_tool: MetaTool) -> ToolVersion:
    """Return a meta tool with sample values for its placeholders."""
    template = {key: value for key, value in meta_tool.template.items() if key != "when"}
    value = sessions.fill_placeholders(template, sessions.SAMPLE_VALUES)
    return ToolVersion.from_value(
        value, path=path, slug=meta_tool.slug, toolkit=ROUTER, version=meta_tool.version
    )


def iter_catalog_findings(catalog: Catalog, rules: Collection[str]) -> Iterator[Finding]:
    """Yield the findings of these rules for the whole catalog."""
    return chain.from_iterable(rule.check(catalog) for rule in CATALOG_RULES if rule.rule in rules)


def find_unknown_rules(about: About) -> Iterator[Finding]:
    """Yield findings for rules in catalog.yaml that do not exist or whose severity is fixed."""
    unknown = (rule for rule in about.rules if rule not in DEFAULT_SEVERITIES)
    # finding the nearest valid name takes time
    for rule in islice(unknown, MAX_FINDINGS_PER_FILE + 1):
        yield Finding(
            path="catalog.yaml",
            pointer=("rules", rule),
            at_key=True,
            rule="rules-unknown",
            **_unknown_rule(rule),
        )


def check_suppression(path: str, comment: Suppression) -> Iterator[Finding]:
    """Yield a finding that says why a suppression comment is invalid, if it is."""
    expected = "`# toolcatalog: ignore[rule-id] the reason`"
    invalid = partial(Finding, path=path, rule="ignore-comment")
    unknown = [rule for rule in comment.rules if rule not in DEFAULT_SEVERITIES]
    if not comment.is_valid or not comment.rules:
        message = "this comment is not understood"
        yield invalid(message=message, expected=expected, help="write it so")
    elif not comment.reason:
        message = "a rule is ignored without a reason"
        yield invalid(message=message, expected=expected, help="say why, after the bracket")
    elif unknown:
        yield invalid(**_unknown_rule(unknown[0]))


class _UnknownRuleText(TypedDict):
    message: str
    expected: str
    help: str


def _unknown_rule(rule: str) -> _UnknownRuleText:
    nearest = names.find_nearest(rule, DEFAULT_SEVERITIES)
    help = f"did you mean `{nearest[0]}`?" if nearest else "`toolcatalog explain` lists all rules"
    return _UnknownRuleText(
        message=f"there is no lint rule `{rule}`",
        expected="a rule whose severity can be changed",
        help=help,
    )


def find_unused_suppressions(
    comments: Iterable[Suppression], findings: Collection[tuple[str, int]]
) -> Iterator[Suppression]:
    """Yield the comments that suppress none of the findings, given as (rule, line) pairs.

    Only comments whose rules all check single files are considered.
    """
    file_rules = {lint.rule for lint in TOOL_RULES}
    for comment in comments:
        lines = {(rule, comment.target_line) for rule in comment.rules}
        if comment.reason and {*comment.rules} <= file_rules and lines.isdisjoint(findings):
            yield comment
