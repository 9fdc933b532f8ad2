"""What the docstrings owe a reader: a module says whom it serves, a public function which errors it
raises and in what it counts.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import ROOT

SOURCE = ROOT / "src" / "toolcatalog"
MODULES = sorted(SOURCE.rglob("*.py"))
# what is counted in fractions here
UNITS = ("second", "byte", "score", "weight", "number", "hundred")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.AST) -> Iterator[Function]:
    """The functions and methods that others may call."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public(child)
        if isinstance(child, Function) and not child.name.startswith("_"):
            yield child


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
    """The errors that a function raises by itself: not what a function within it does, and not what
    it catches.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and child.exc:
            called = child.exc.func if isinstance(child.exc, ast.Call) else child.exc
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name[:1].isupper() and name not in caught:
                yield name
        if isinstance(child, ast.Try):
            held = {
                getattr(one, "id", "")
                for handler in child.handlers
                if handler.type
                for one in ast.walk(handler.type)
            }
            for statement in child.body:
                yield from raised(ast.Module([statement], []), caught | held)
            for other in [*child.handlers, *child.orelse, *child.finalbody]:
                yield from raised(
                    ast.Module([other], []) if isinstance(other, ast.stmt) else other, caught
                )
        elif not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield from raised(child, caught)


def fractions(function: Function) -> list[str]:
    """What goes into a function, or comes out of it, as a number that is not whole."""
    said = [(one.arg, one.annotation) for one in [*function.args.args, *function.args.kwonlyargs]]
    return [
        name
        for name, kind in [*said, (function.name, function.returns)]
        if kind and "float" in ast.unparse(kind)
    ]


def owed(function: Function) -> list[str]:
    """What a function's docstring does not tell."""
    text = ast.get_docstring(function) or ""
    errors = (
        [] if text.startswith("As `") else [name for name in raised(function) if name not in text]
    )
    without = [
        name
        for name in fractions(function)
        if not any(unit in text or unit in name for unit in UNITS)
    ]
    return [f"{function.name} raises {name}" for name in errors] + [
        f"{function.name}: in what is {name}?" for name in without
    ]


def is_command(path: Path) -> bool:
    """A command's docstring is what `--help` says; its errors and units stand at its options."""
    return path.parent.name == "cli"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_docstrings(path: Path) -> None:
    """Nobody must read a body to learn what may go wrong, and in what something is counted."""
    module = ast.parse(path.read_text())
    if not is_command(path):
        assert [what for function in public(module) for what in owed(function)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def f():\n    """Does."""\n    raise ValueError\n', ["f raises ValueError"]),
        ('def f():\n    """Raises ValueError."""\n    raise ValueError("x")\n', []),
        ('def f():\n    """As `g` says."""\n    raise errors.Wrong\n', []),
        ('def f():\n    """Does."""\n    if x:\n        raise errors.Wrong("x") from None\n', ["f raises Wrong"]),
        ('def f():\n    """Does."""\n    try:\n        raise Wrong\n    except (Wrong, Other):\n        raise Another\n', ["f raises Another"]),
        ('def f():\n    """Does."""\n    def g():\n        raise Wrong\n', []),
        ('def f(wait: float):\n    """Waits."""\n', ["f: in what is wait?"]),
        ('def f(wait: float):\n    """Waits so many seconds."""\n', []),
        ('class A:\n    def f(self) -> float | None:\n        """How long."""\n', ["f: in what is f?"]),
        ('def _f(wait: float):\n    raise ValueError\n', []),
    ],
)  # fmt: skip
def test_what_is_owed_is_found(text: str, expected: list[str]) -> None:
    """Each kind of omission, and none where there is none."""
    assert [what for function in public(ast.parse(text)) for what in owed(function)] == expected
