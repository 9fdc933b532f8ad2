"""Which severities and comments count when a change is compared with a revision.

A change must not silence the rules that protect against it. So for the rules of security, and for
those of history that are errors, both come from the base revision:

- A severity that `catalog.yaml` has there; a stricter one counts at once.
- A comment that ignores the rule there, at the same place of the same file (its keys, not its line).
  For a rule of security what stands at that place must be the same too, because a comment accepts
  what its reviewers have read. In a new version of a tool it may come from another version of it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from toolcatalog import advice, checking, comments, hearing, rulebook, source, tree, written, yaml12
from toolcatalog.errors import Finding, Pointer, Problem
from toolcatalog.model import About
from toolcatalog.revisions import Files
from toolcatalog.wording import canonical

SECURITY = frozenset(rulebook.GROUPS["Security"])
PROTECTED = SECURITY | {
    rule for rule in rulebook.GROUPS["History"] if advice.USUAL[rule] == "error"
}
_LEVELS = (*advice.SEVERITIES, "off")  # the strictest first


class _Text(NamedTuple):
    """One file: its comments and values, and where these stand; `mark` is None for no YAML."""

    mark: yaml12.Mark | None
    value: Any
    silenced: Collection[tuple[str, int]]

    @classmethod
    def of(cls, data: bytes | Finding) -> "_Text":
        if isinstance(data, Finding):
            return cls(None, None, ())
        reading = yaml12.read(data)
        return cls(reading.mark, reading.value, comments.silenced(comments.found(data)))

    def ignores(self, finding: Finding) -> bool:
        """Tell whether a comment ignores a rule at the place of a finding."""
        if self.mark is None:
            return False
        line, _, _ = yaml12.place(self.mark, finding.pointer, finding.at_key)
        return (finding.rule, line) in self.silenced


def severities(
    root: Path, base: Files, rules: Mapping[str, str], accepted: Collection[str]
) -> dict[str, str]:
    """What `catalog.yaml` says of rules, with the stricter of both severities for each protected
    rule that is not among those accepted.
    """
    before = _rules(root, base)
    return {**rules} | {
        rule: min(advice.severity(rule, before), advice.severity(rule, rules), key=_LEVELS.index)
        for rule in PROTECTED.difference(accepted)
    }


def _rules(root: Path, base: Files) -> Mapping[str, str]:
    if "catalog.yaml" not in base.named:
        return {}
    data = base.read(["catalog.yaml"])["catalog.yaml"]
    about = written.record_of(root, "catalog.yaml", data)
    return about.rules if isinstance(about, About) else {}


def lowered(rules: Mapping[str, str], said: Mapping[str, str]) -> set[str]:
    """The protected rules that `catalog.yaml` says less of than counts."""
    return {rule for rule in PROTECTED & rules.keys() if rules[rule] != advice.severity(rule, said)}


def security(
    root: Path, base: Files, changed: Collection[str], *, everywhere: bool = False
) -> list[Finding]:
    """What the rules of security find in the changed files, silenced or not; in all files where
    that is wanted.

    Every version that is new or changed is looked at, and not only the newest of each tool: all are
    served. The newest is compared with those of the base, whatever else is new before it.
    """
    paths, _ = tree.scan(root)
    if not everywhere:
        folders = {_folder(path) for path in changed if written.key_of(path)}
        paths = [path for path in paths if path in changed or _folder(path) in folders]
    examined = [*checking.examine_all(root, paths)]
    newest = {_folder(path): path for path in sorted(paths)}
    new = [finding for one in examined if one.path in changed for finding in one.advice]
    catalog = checking.assemble(
        [
            (one.path, one.record)
            for one in examined
            if one.record and (one.path in base.named or newest[_folder(one.path)] == one.path)
        ]
    )
    broken = {one.path for one in examined if one.problems}
    surveyed = advice.of_catalog(catalog, SECURITY)
    said = [
        *checking.advised(examined),
        *new,
        *(finding for finding in surveyed if finding.path not in broken),
    ]
    return [finding for finding in dict.fromkeys(said) if finding.rule in SECURITY]


def heard(
    root: Path, base: Files, findings: Iterable[Finding], accepted: Collection[str]
) -> list[Problem]:
    """The findings at their places, without those that comments silence; a new comment silences no
    protected rule, unless that is among those accepted.
    """
    problems: list[Problem] = []
    doubtful: list[tuple[Finding, Problem]] = []
    for path, some in hearing.by_path(findings).items():
        placed, said = source.placed(root, path, some)
        silenced = comments.silenced(said)
        for finding, problem in zip(some, placed, strict=True):
            if (problem.rule, problem.line) not in silenced:
                problems.append(problem)
            elif finding.rule in PROTECTED and finding.rule not in accepted:
                doubtful.append((finding, problem))
    return problems + _refused(root, base, doubtful)


def _refused(root: Path, base: Files, doubtful: Sequence[tuple[Finding, Problem]]) -> list[Problem]:
    """Of findings that comments silence, those whose comment is not in the base."""
    candidates = _candidates(base, {finding.path for finding, _ in doubtful})
    contents = base.read([*dict.fromkeys(path for some in candidates.values() for path in some)])
    before = {path: _Text.of(data) for path, data in contents.items()}
    after = {path: _Text.of(tree.content(root, path)) for path in candidates}
    return [
        replace(problem, help=_help(problem, base))
        for finding, problem in doubtful
        if not any(
            _is_accepted(finding, path, before[path], after[finding.path])
            for path in candidates[finding.path]
        )
    ]


def _candidates(base: Files, paths: Collection[str]) -> dict[str, list[str]]:
    """The files of the base whose comments may count for each file: itself, and for a tool its
    other versions.
    """
    versions: defaultdict[str, list[str]] = defaultdict(list)
    for path in base.named if paths else ():
        if written.key_of(path):
            versions[_folder(path)].append(path)
    return {
        path: versions[_folder(path)]
        if written.key_of(path)
        else [path]
        if path in base.named
        else []
        for path in paths
    }


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_accepted(finding: Finding, path: str, before: _Text, after: _Text) -> bool:
    if not before.ignores(finding):
        return False
    if finding.rule not in SECURITY:
        return path == finding.path
    return _value(before.value, finding.pointer) == _value(after.value, finding.pointer)


def _value(value: Any, pointer: Pointer) -> tuple[int, bytes]:
    """What stands at a place, and how many of its steps there are: a placeholder has fewer."""
    steps = 0
    for step in pointer:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break
        steps += 1
    return steps, canonical(value)


def _help(problem: Problem, base: Files) -> str:
    return _joined(
        problem,
        f"{base.title} has no comment that ignores this for the same text, and a change cannot "
        f"silence this rule itself: a maintainer can accept it (`--accept {problem.rule}`)",
    )


def explained(problem: Problem, base: Files) -> Problem:
    """A problem of a rule whose severity the change lowers, with that in its help."""
    help = (
        f"the severity is that of {base.title}: a change cannot lower it for itself, and a "
        f"maintainer can accept it (`--accept {problem.rule}`)"
    )
    return replace(problem, help=_joined(problem, help))


def _joined(problem: Problem, help: str) -> str:
    return f"{problem.help}; {help}" if problem.help else help
