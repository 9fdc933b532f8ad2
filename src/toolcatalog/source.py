"""The files of a catalog to raw values: of which kind each is, and what it holds.

A file's place is its identity, so slugs, versions and ids come from the path here and from nowhere
else; files that are in no known place are problems. This is also where a finding gets its line and
column, by reading the one file again.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcatalog import comments, names, tree, versions, yaml12
from toolcatalog.comments import Comment, SchemaComment
from toolcatalog.errors import Finding, Problem


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of file and the names that its path gives."""

    kind: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """One file as read: its path relative to the catalog (with `/`), its place and its JSON value,
    if it is readable.
    """

    path: str
    place: Place
    value: Any = None
    readable: bool = False
    digest: str = ""  # the SHA-256 of the bytes that were read
    comments: tuple[Comment, ...] = ()  # that are meant for us
    schemas: tuple[SchemaComment, ...] = ()  # that are meant for editors
    hidden: tuple[
        tuple[int, str], ...
    ] = ()  # lines whose comments have unseen characters, and these


_LAYOUT = (
    ("catalog", "catalog.yaml"),
    ("toolkit", "toolkits/{toolkit}/toolkit.yaml"),
    ("tool", "toolkits/{toolkit}/{tool}/{version}.yaml"),
    ("auth_config", "auth_configs/{auth_config}.yaml"),
    ("toolkit", "meta_tools/toolkit.yaml"),
    ("meta_tool", "meta_tools/{tool}/{version}.yaml"),
    ("session", "sessions/{session}.yaml"),
)
_NAMES = {
    "toolkit": (
        names.TOOLKIT_SLUG,
        "a toolkit slug",
        "lower-case letters, digits, `_` and `-`, at most 200, not starting with `-`",
    ),
    "tool": (
        names.TOOL_SLUG,
        "a tool slug",
        "capital letters, digits, `_` and `-`, at most 200, not starting with `-`",
    ),
    "session": (names.SESSION_ID, "a session id", "`trs_` and then letters, digits, `_` and `-`"),
    "auth_config": (
        names.AUTH_CONFIG_ID,
        "an auth config id",
        "`ac_` and then letters, digits, `_` and `-`",
    ),
}
_PATTERNS = tuple(
    (kind, re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template))))
    for kind, template in _LAYOUT
)


def load(root: Path, path: str) -> tuple[Document | None, list[Problem]]:
    """Read one file: the document (None where no file belongs at this path), and what is wrong with
    it so far.
    """
    place = place_of(path)
    if isinstance(place, Finding):
        return None, [tree.problem(root, tree.refused_link(root, path) or place)]
    return _read(root, path, place, tree.content(root, path))


def parsed(root: Path, path: str, data: bytes | Finding) -> tuple[Document | None, list[Problem]]:
    """The same for a content that comes from elsewhere, such as an older revision; or for the
    reason why there is none.
    """
    place = place_of(path)
    return (
        (None, [tree.problem(root, place)])
        if isinstance(place, Finding)
        else _read(root, path, place, data)
    )


def _read(
    root: Path, path: str, place: Place, data: bytes | Finding
) -> tuple[Document, list[Problem]]:
    if isinstance(data, Finding):
        return Document(path, place), [tree.problem(root, data)]
    digest = hashlib.sha256(data).hexdigest()
    try:
        return Document(
            path,
            place,
            yaml12.value(data),
            True,
            digest,
            comments.found(data),
            comments.schemas(data),
            comments.hidden(data),
        ), []
    except yaml12.Doubtful:
        reading = yaml12.read(data)
    lines = _lines(data) if reading.faults else []
    problems = [_fault(root, path, fault, _line(lines, fault.line)) for fault in reading.faults]
    readable = reading.mark is not None
    return Document(
        path,
        place,
        reading.value,
        readable,
        digest,
        comments.found(data),
        comments.schemas(data),
        comments.hidden(data),
    ), problems


def _fault(root: Path, path: str, fault: yaml12.Fault, excerpt: str) -> Problem:
    finding = Finding(path=path, rule=fault.rule, message=fault.message, help=fault.help)
    return tree.problem(root, finding, fault.line, fault.column, excerpt, fault.length)


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")


def locate(root: Path, findings: Iterable[Finding]) -> list[Problem]:
    """Give each finding its line, column and source line. Reads each file concerned once more, so a
    clean catalog pays nothing.
    """
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    return [problem for path, some in by_path.items() for problem in placed(root, path, some)[0]]


def placed(
    root: Path, path: str, findings: Sequence[Finding]
) -> tuple[list[Problem], tuple[Comment, ...]]:
    """The findings of one file at their places, and the file's comments that are meant for us."""
    data = tree.content(root, path)
    if isinstance(data, Finding):
        return [tree.problem(root, finding) for finding in findings], ()
    mark, lines, problems = yaml12.read(data).mark, _lines(data), []
    for finding in findings:
        line, column, length = _span(mark, lines, finding)
        problems.append(tree.problem(root, finding, line, column, _line(lines, line), length))
    return problems, comments.found(data)


def _span(mark: yaml12.Mark | None, lines: list[str], finding: Finding) -> tuple[int, int, int]:
    """Line, column and length of what a finding speaks of: a value, or all that stands on a line."""
    if finding.line:
        text = _line(lines, finding.line)
        return finding.line, len(text) - len(text.lstrip()) + 1, len(text.strip())
    return yaml12.place(mark, finding.pointer, finding.at_key) if mark else (1, 1, 1)


def line_of(data: bytes, finding: Finding) -> int:
    """The line of a finding in a content that comes from elsewhere."""
    mark = yaml12.read(data).mark
    return yaml12.place(mark, finding.pointer, finding.at_key)[0] if mark else 1


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


def place_of(path: str) -> Place | Finding:
    """The kind of file that lies at `path`, or why none does."""
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(path):
            return _misnamed(path, match) or Place(kind, match.groupdict())
    expected = "one of " + ", ".join(template for _, template in _LAYOUT)
    help = (
        "rename it to end in `.yaml`"
        if path.endswith(".yml")
        else "move it to its place, or out of the catalog"
    )
    return Finding(
        path=path,
        rule="file-unexpected",
        message="no file is expected here",
        expected=expected,
        help=help,
    )


def _misnamed(path: str, match: re.Match[str]) -> Finding | None:
    for key, name in match.groupdict().items():
        if key == "version":
            if not versions.is_version(name):
                help = "name the file like 20251027_00.yaml"
                message = f"`{name}` is not a version"
                return Finding(
                    path=path,
                    rule="name-version",
                    message=message,
                    expected="eight digits, `_`, two digits",
                    help=help,
                )
        elif not names.fits(_NAMES[key][0], name):
            _, what, expected = _NAMES[key]
            help = f"rename it, for example to `{_suggested(key, name)}`"
            message = f"`{name}` in {path[: match.start(key)]} is not {what}"
            return Finding(
                path=path,
                rule=f"name-{key.replace('_', '-')}",
                message=message,
                expected=expected,
                help=help,
            )
    return None


def _suggested(key: str, name: str) -> str:
    plain = re.sub("[^A-Za-z0-9_-]+", "_", name).lstrip("-")[: names.LONGEST] or "name"
    prefix = {"session": "trs_", "auth_config": "ac_"}.get(key, "")
    cased = {"toolkit": plain.lower(), "tool": plain.upper()}.get(key, plain)
    return prefix + cased.removeprefix(prefix)
