"""Suppressions and severities of the base revision, which a change cannot weaken.

A change must not silence the rules that protect against it. For the security rules, and for the
history rules that are errors by default or in the base, both therefore come from the base revision:

- The severity that `catalog.yaml` has there; a stricter one in the change applies at once.
- A comment that suppresses the rule there, at the same place of the same file (its keys, not its
  line). For a security rule the value at that place must be the same too, because a comment accepts
  what its reviewers have read; a finding in a comment has no place, so its whole line must be the
  same. In a new version of a tool the comment may come from another version of the tool.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from toolcatalog.catalog import comments, folder, loader, yaml_reader
from toolcatalog.catalog.model import About
from toolcatalog.diff.change import to_canonical
from toolcatalog.errors import Finding, Pointer, Problem
from toolcatalog.history import from_files
from toolcatalog.history.git import FileSet
from toolcatalog.validation import checker, rule_pages, severity, suppressions

SECURITY_RULES = frozenset(rule_pages.GROUPS["Security"])
PROTECTED_RULES = SECURITY_RULES | {
    rule for rule in rule_pages.GROUPS["History"] if severity.DEFAULT_SEVERITIES[rule] == "error"
}
_HISTORY_RULES = frozenset(rule_pages.GROUPS["History"])
PROTECTABLE_RULES = SECURITY_RULES | _HISTORY_RULES  # history rules if the base makes them errors
_LEVELS = (*severity.SEVERITIES, "off")  # the strictest first


_LIST_RULES = frozenset(["scopes-grow"])  # rules with one finding for several items of a list


class _ParsedFile(NamedTuple):
    """A file's syntax tree, value, suppressions and lines.

    `root` is None if it could not be parsed.
    """

    root: yaml_reader.Node | None
    value: Any
    suppressed_lines: Collection[tuple[str, int]]
    lines: Sequence[str] = ()

    @classmethod
    def parse(cls, data: bytes | Finding) -> "_ParsedFile":
        if isinstance(data, Finding):
            return cls(None, None, ())
        reading = yaml_reader.parse(data)
        return cls(
            reading.root,
            reading.value,
            comments.suppressed_lines(comments.find_suppressions(data)),
            comments.split_lines(data),
        )

    def has_suppressed_line(self, rule: str, text: str) -> bool:
        """Return whether a comment suppresses the rule in a line with this text."""
        return any(
            self.lines[line - 1] == text
            for suppressed_rule, line in self.suppressed_lines
            if suppressed_rule == rule
        )

    def has_suppression_for(self, finding: Finding) -> bool:
        """Return whether a comment suppresses the rule at the place of a finding."""
        if self.root is None:
            return False
        line, _, _ = yaml_reader.locate_value(self.root, finding.pointer, finding.at_key)
        return (finding.rule, line) in self.suppressed_lines


def protect_severities(
    root: Path, base: FileSet, overrides: Mapping[str, str], accepted_rules: Collection[str]
) -> dict[str, str]:
    """Return the severities in `catalog.yaml`, without weaker ones for protected rules.

    For each protected rule that is not in `accepted_rules`, the result is the stricter of the
    base's and the change's severity.
    """
    base_overrides = _read_overrides(root, base)
    return {**overrides} | {
        rule: min(
            severity.effective_severity(rule, base_overrides),
            severity.effective_severity(rule, overrides),
            key=_LEVELS.index,
        )
        for rule in _protected_rules(base_overrides).difference(accepted_rules)
    }


def _protected_rules(base_overrides: Mapping[str, str]) -> frozenset[str]:
    return PROTECTED_RULES.union(
        rule
        for rule in _HISTORY_RULES
        if severity.effective_severity(rule, base_overrides) == "error"
    )


def _read_overrides(root: Path, base: FileSet) -> Mapping[str, str]:
    if "catalog.yaml" not in base.object_ids:
        return {}
    data = base.read(["catalog.yaml"])["catalog.yaml"]
    record = from_files.load_record(root, "catalog.yaml", data)
    return record.rules if isinstance(record, About) else {}


def find_lowered_rules(
    overrides: Mapping[str, str], effective_overrides: Mapping[str, str]
) -> set[str]:
    """Return the protected rules that `catalog.yaml` sets below their effective severity."""
    return {
        rule
        for rule in PROTECTABLE_RULES & overrides.keys()
        if overrides[rule] != severity.effective_severity(rule, effective_overrides)
    }


def check_security(
    root: Path, base: FileSet, changed: Collection[str], *, everywhere: bool = False
) -> list[Finding]:
    """Return the findings of the security rules in the changed files, suppressed or not.

    With `everywhere`, all files are checked. Every new or changed version is checked, not only the
    newest of each tool, because all are served. The newest version is compared with those in the
    base, even if there are other new versions before it.
    """
    paths, _ = folder.list_paths(root)
    if not everywhere:
        folders = {_parent_folder(path) for path in changed if from_files.key_for_path(path)}
        paths = [path for path in paths if path in changed or _parent_folder(path) in folders]
    files = [*checker.check_files(root, paths)]
    newest = {_parent_folder(path): path for path in sorted(paths)}
    file_findings = [finding for file in files if file.path in changed for finding in file.findings]
    catalog = checker.build_catalog(
        [
            (file.path, file.record)
            for file in files
            if file.record
            and (file.path in base.object_ids or newest[_parent_folder(file.path)] == file.path)
        ]
    )
    invalid_paths = {file.path for file in files if file.problems}
    catalog_findings = severity.iter_catalog_findings(catalog, SECURITY_RULES)
    findings = [
        *checker.select_findings(files).findings,
        *file_findings,
        *(finding for finding in catalog_findings if finding.path not in invalid_paths),
    ]
    return [finding for finding in dict.fromkeys(findings) if finding.rule in SECURITY_RULES]


def locate_unsuppressed(
    root: Path, base: FileSet, findings: Iterable[Finding], accepted_rules: Collection[str]
) -> list[Problem]:
    """Return the findings that no comment suppresses, with their locations.

    A new comment does not suppress a protected rule, unless the rule is in `accepted_rules`.
    """
    protected = _protected_rules(_read_overrides(root, base)).difference(accepted_rules)
    problems: list[Problem] = []
    suppressed: list[tuple[Finding, Problem]] = []
    for path, file_findings in suppressions.group_by_path(findings).items():
        located, suppressions_in_file = loader.locate_in_file(root, path, file_findings)
        suppressed_lines = comments.suppressed_lines(suppressions_in_file)
        for finding, problem in zip(file_findings, located, strict=True):
            if (problem.rule, problem.line) not in suppressed_lines:
                problems.append(problem)
            elif finding.rule in protected:
                suppressed.append((finding, problem))
    return problems + _reject_new_suppressions(root, base, suppressed)


def _reject_new_suppressions(
    root: Path, base: FileSet, suppressed: Sequence[tuple[Finding, Problem]]
) -> list[Problem]:
    """Return the problems of suppressed findings whose comment is not in the base."""
    candidates = _base_paths(base, {finding.path for finding, _ in suppressed})
    contents = base.read(
        [*dict.fromkeys(path for base_paths in candidates.values() for path in base_paths)]
    )
    base_files = {path: _ParsedFile.parse(data) for path, data in contents.items()}
    current_files = {path: _ParsedFile.parse(folder.read_file(root, path)) for path in candidates}
    return [
        replace(problem, help=_acceptance_help(problem, base))
        for finding, problem in suppressed
        if not any(
            _is_suppressed_in_base(finding, path, base_files[path], current_files[finding.path])
            for path in candidates[finding.path]
        )
    ]


def _base_paths(base: FileSet, paths: Collection[str]) -> dict[str, list[str]]:
    """Return the base's files whose suppressions may apply to each file.

    These are the file itself, and for a tool version all versions of the tool.
    """
    versions: defaultdict[str, list[str]] = defaultdict(list)
    for path in base.object_ids if paths else ():
        if from_files.key_for_path(path):
            versions[_parent_folder(path)].append(path)
    return {
        path: versions[_parent_folder(path)]
        if from_files.key_for_path(path)
        else [path]
        if path in base.object_ids
        else []
        for path in paths
    }


def _parent_folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_suppressed_in_base(
    finding: Finding, path: str, base_file: _ParsedFile, current_file: _ParsedFile
) -> bool:
    if finding.line:
        text = current_file.lines[finding.line - 1]
        return base_file.has_suppressed_line(finding.rule, text)
    if not base_file.has_suppression_for(finding):
        return False
    if finding.rule not in SECURITY_RULES:
        return path == finding.path
    # a finding about several items is at the first one
    pointer = finding.pointer[:1] if finding.rule in _LIST_RULES else finding.pointer
    return _value_at(base_file.value, pointer) == _value_at(current_file.value, pointer)


def _value_at(value: Any, pointer: Pointer) -> tuple[int, bytes]:
    """Return the canonical value at a pointer, and how many of its steps exist.

    A placeholder for the pointer has fewer steps than a value.
    """
    steps = 0
    for step in pointer:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break
        steps += 1
    return steps, to_canonical(value)


def _acceptance_help(problem: Problem, base: FileSet) -> str:
    return _join_help(
        problem,
        f"{base.title} has no comment that ignores this for the same text, and a change cannot "
        f"silence this rule itself: a maintainer can accept it (`--accept {problem.rule}`)",
    )


def explain_lowered(problem: Problem, base: FileSet) -> Problem:
    """Return a problem of a rule whose severity the change lowers, with that in its help."""
    help = (
        f"the severity is that of {base.title}: a change cannot lower it for itself, and a "
        f"maintainer can accept it (`--accept {problem.rule}`)"
    )
    return replace(problem, help=_join_help(problem, help))


def _join_help(problem: Problem, help: str) -> str:
    return f"{problem.help}; {help}" if problem.help else help
