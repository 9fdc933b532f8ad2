"""`toolcatalog check --fix`: apply the fixes of problems to the files."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from toolcatalog.errors import Problem, write_error
from toolcatalog.system import files
from toolcatalog.validation import checker, fixes


def apply_fixes(catalog: Path, problems: Sequence[Problem]) -> Counter[str]:
    """Fix the problems that have a fix, and return the number of fixes by file.

    A file that does not get better keeps its content. Raises UsageError if a file cannot be
    written.
    """
    fix_counts: Counter[str] = Counter()
    paths = {problem.path: None for problem in problems if problem.fix is not None}
    for path in paths:
        files.require_no_links(catalog.resolve().parent / path, catalog.resolve())
    for path in paths:
        file, name = catalog.resolve().parent / path, path.partition("/")[2]
        original = file.read_bytes()
        old_rules = Counter(problem.rule for problem in checker.check_file(catalog, name).problems)
        fixed = fixes.fix_until_stable(
            original,
            [problem for problem in problems if problem.path == path],
            partial(_write_and_check, catalog, name),
        )
        new_problems = _write_and_check(catalog, name, fixed.data)
        new_rules = Counter(problem.rule for problem in new_problems)
        if new_rules - old_rules or (new_rules == old_rules and fixed.error_count):
            _write_file(file, original)
        else:
            fix_counts[path] = fixed.fix_count
    return fix_counts


def _write_and_check(catalog: Path, name: str, data: bytes) -> Sequence[Problem]:
    """Write a file and return its problems."""
    _write_file(catalog.resolve() / name, data)
    return checker.check_file(catalog, name).problems


def _write_file(file: Path, data: bytes) -> None:
    try:
        files.write_if_changed(file, data)
    except OSError as error:
        raise write_error(file, error, ", and check again") from None
