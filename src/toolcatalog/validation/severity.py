"""Rule severities: which lint rules apply to a catalog, and how much each weighs.

What makes a catalog unreadable is always an error. Everything else is advice: its severity is the
rule's own, unless `catalog.yaml` says otherwise, and a comment in a file can silence it there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
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
from toolcatalog.lint.registry import CATALOG_RULES, TEXT_RULES, TOOL_RULES
from toolcatalog.lint.rule import HISTORY_SEVERITIES, ToolRule
from toolcatalog.lint.texts import FileView, ToolView

SEVERITIES = ("error", "warning", "note")
UNUSED_SUPPRESSION, SCHEMA_COMMENT = "ignore-unused", "schema-comment"

DEFAULT_SEVERITIES: Mapping[str, str] = {
    **{rule: severity for rule, severity, _ in TOOL_RULES},
    **{rule: severity for rule, severity, _ in CATALOG_RULES},
    **HISTORY_SEVERITIES,
    UNUSED_SUPPRESSION: "warning",
    SCHEMA_COMMENT: "warning",
}  # the severity of every rule of advice, where catalog.yaml says nothing of it


def effective_severity(rule: str, overrides: Mapping[str, str]) -> str:
    """What a rule weighs: error, warning, note or off; `said` is what catalog.yaml says of rules."""
    return overrides.get(rule, DEFAULT_SEVERITIES[rule]) if rule in DEFAULT_SEVERITIES else "error"


def applies_to_older_versions(rule: str) -> bool:
    """Whether there is something to mend also in a version that has been published: a deprecation
    may still change, a danger must go.
    """
    return rule.startswith("deprecation-") or DEFAULT_SEVERITIES[rule] == "error"


def rules_with_severity(about: About, severities: Collection[str]) -> set[str]:
    """The rules of advice that weigh as much as one of these."""
    return {
        rule for rule in DEFAULT_SEVERITIES if effective_severity(rule, about.rules) in severities
    }


def check_record(path: str, record: Any) -> list[Finding]:
    """What there is to say of one file that has passed its schema.

    Each rule is limited by itself: many findings of one must not hide those of another, whose
    severity may be higher. A meta tool is looked at as a session would fill it in. Of all files
    that are not tools', only the texts are: whether they are safe to read.
    """
    view: ToolView
    lints: Sequence[ToolRule] = TOOL_RULES
    match record:
        case ToolVersion():
            view = ToolView(record)
        case MetaTool():
            value = sessions.fill_placeholders(
                {key: value for key, value in record.template.items() if key != "when"},
                sessions.SAMPLE_VALUES,
            )
            view = ToolView(
                ToolVersion.from_value(
                    value, path=path, slug=record.slug, toolkit=ROUTER, version=record.version
                )
            )
        case Toolkit() | About() | AuthConfig() | Session():
            fields = asdict(record)
            fields.pop("path", None)
            view, lints = FileView(path, fields), TEXT_RULES
        case _:
            return []
    return [
        *chain.from_iterable(islice(lint.check(view), MAX_FINDINGS_PER_FILE + 1) for lint in lints)
    ]


def iter_catalog_findings(catalog: Catalog, rules: Collection[str]) -> Iterator[Finding]:
    """What there is to say of all files together, by these rules."""
    return chain.from_iterable(
        survey.check(catalog) for survey in CATALOG_RULES if survey.rule in rules
    )


def find_unknown_rules(about: About) -> Iterator[Finding]:
    """Rules that catalog.yaml wants to weigh and that are none, or none of advice."""
    # what each was meant for takes time to find
    for rule in islice(
        (rule for rule in about.rules if rule not in DEFAULT_SEVERITIES), MAX_FINDINGS_PER_FILE + 1
    ):
        yield Finding(
            path="catalog.yaml",
            pointer=("rules", rule),
            at_key=True,
            rule="rules-unknown",
            **_unknown_rule(rule),
        )


def validate_suppression(path: str, comment: Suppression) -> Finding | None:
    """Why a comment in a file silences nothing; None where it is in order."""
    form = "`# toolcatalog: ignore[rule-id] the reason`"
    if not comment.is_valid or not comment.rules:
        return Finding(
            path=path,
            rule="ignore-comment",
            message="this comment is not understood",
            expected=form,
            help="write it so",
        )
    if not comment.reason:
        message, help = "a rule is ignored without a reason", "say why, behind the bracket"
        return Finding(path=path, rule="ignore-comment", message=message, expected=form, help=help)
    unknown = next((rule for rule in comment.rules if rule not in DEFAULT_SEVERITIES), None)
    return (
        None
        if unknown is None
        else Finding(path=path, rule="ignore-comment", **_unknown_rule(unknown))
    )


class _UnknownRuleText(TypedDict):
    message: str
    expected: str
    help: str


def _unknown_rule(rule: str) -> _UnknownRuleText:
    near = names.find_nearest(rule, DEFAULT_SEVERITIES)
    help = f"did you mean `{near[0]}`?" if near else "`toolcatalog explain` lists all rules"
    return _UnknownRuleText(
        message=f"there is no rule of advice `{rule}`",
        expected="a rule whose severity can be changed",
        help=help,
    )


def find_unused_suppressions(
    comments: Iterable[Suppression], suppressed: Collection[tuple[str, int]]
) -> Iterator[Suppression]:
    """The comments that silence none of these (rule and line), among those of rules that look at
    one file.
    """
    alone = {lint.rule for lint in TOOL_RULES}
    for comment in comments:
        if (
            comment.reason
            and {*comment.rules} <= alone
            and not any((rule, comment.target_line) in suppressed for rule in comment.rules)
        ):
            yield comment
