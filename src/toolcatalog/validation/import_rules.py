"""Import rules: what the rules of a catalog refuse in imported files."""

from collections.abc import Mapping, Sequence

from toolcatalog.catalog.schema import Record
from toolcatalog.errors import Finding
from toolcatalog.importers.repairs import ContentRules
from toolcatalog.lint.registry import TEXT_CLEANERS
from toolcatalog.validation import severity

_REPORTED_RULES = ("definition-large",)


def make_content_rules(overrides: Mapping[str, str]) -> ContentRules:
    """Return the rules for imported files; `overrides` are the severities in catalog.yaml."""
    errors = severity.rules_with_severities(overrides, ("error",))

    def find_refused(record: Record) -> Sequence[Finding]:
        return severity.check_record("", record, errors)

    def find_reported(record: Record) -> Sequence[Finding]:
        return severity.check_record("", record, _REPORTED_RULES)

    return ContentRules(find_refused, find_reported, _clean_text)


def _clean_text(rule: str, text: str) -> str:
    return TEXT_CLEANERS[rule](text) if rule in TEXT_CLEANERS else text
