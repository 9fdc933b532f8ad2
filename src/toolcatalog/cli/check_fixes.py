"""`toolcatalog check --fix`: apply the fixes of problems to the files."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from toolcatalog.catalog import folder
from toolcatalog.cli import output
from toolcatalog.errors import Problem, write_error
from toolcatalog.system import files
from toolcatalog.validation import checker, fixes


def rename_files(catalog: Path, is_selected: Callable[[str], bool]) -> bool:
    """Rename files whose names are probably meant otherwise; return whether there are any.

    `is_selected` returns whether a displayed path is to be fixed. Raises UsageError if a file
    cannot be renamed.
    """
    root, renamed = catalog.resolve(), False
    for path in folder.list_paths(root)[0]:
        target = fixes.suggest_path(path)
        if target is None or not is_selected(folder.display_path(root, path)):
            continue
        if os.path.lexists(root / target):
            output.print_message(f"{path} stays: {target} is there already.")
            continue
        for name in (path, target):
            files.require_no_links(root / name, root)
        _move_file(root, path, target)
        output.print_message(f"Renamed {path} to {target}")
        renamed = True
    return renamed


def _move_file(root: Path, path: str, target: str) -> None:
    """Move a file within the catalog, and remove the folders that are empty then."""
    try:
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (root / path).rename(root / target)
    except OSError as error:
        raise write_error(root / target, error, ", and check again") from None
    for parent in Path(path).parents:
        with suppress(OSError):
            (root / parent).rmdir()


def apply_fixes(
    catalog: Path, problems: Sequence[Problem], *, unsafe: bool = False
) -> Counter[str]:
    """Fix the problems that have a fix, and return the number of fixes by file.

    With `unsafe`, fixes that are probably right are applied too. A file that does not get better
    keeps its content. Raises UsageError if a file cannot be written.
    """
    fix_counts: Counter[str] = Counter()
    paths = {
        problem.path: None
        for problem in problems
        if fixes.select_fix(problem, unsafe=unsafe) is not None
    }
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
            unsafe=unsafe,
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
