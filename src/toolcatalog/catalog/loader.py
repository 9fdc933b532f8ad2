"""The catalog loader: file paths to kinds, files to raw documents, findings to lines and columns.

The path of a file is its identity: slugs, versions and ids come from the path, and only this module
derives them. Files at unknown paths are problems. A finding gets its line and column here too, by
reading its file again.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcatalog import names, versions
from toolcatalog.catalog import comments, folder, published_files, yaml_reader
from toolcatalog.catalog.comments import SchemaComment, Suppression
from toolcatalog.errors import Finding, Problem


@dataclass(frozen=True, slots=True)
class Location:
    """A kind of file and the names (slugs, version, id) in its path."""

    kind: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """One file as read: its path relative to the catalog, its location and its JSON value.

    The path is separated by `/`. If `is_readable` is False, `value` is None.
    """

    path: str
    location: Location
    value: Any = None
    is_readable: bool = False
    digest: str = ""  # SHA-256 of the file's bytes
    suppressions: tuple[Suppression, ...] = ()
    schema_comments: tuple[SchemaComment, ...] = ()
    hidden_characters: tuple[
        tuple[int, str], ...
    ] = ()  # lines whose comments contain hidden characters, with those characters


_LAYOUT = (
    ("catalog", "catalog.yaml"),
    ("logo", published_files.CATALOG_LOGO),
    *(("font", path) for path in published_files.FONTS),
    ("toolkit", "toolkits/{toolkit}/toolkit.yaml"),
    *(("logo", f"toolkits/{{toolkit}}/{name}") for name in published_files.LOGO_NAMES),
    ("tool", "toolkits/{toolkit}/{tool}/{version}.yaml"),
    ("auth_config", "auth_configs/{auth_config}.yaml"),
    ("toolkit", "meta_tools/toolkit.yaml"),
    ("meta_tool", "meta_tools/{tool}/{version}.yaml"),
    ("session", "sessions/{session}.yaml"),
)
_NAME_RULES = {
    "toolkit": (
        names.TOOLKIT_SLUG,
        "a toolkit slug",
        (
            "lower-case letters, digits, `_` and `-`, at most 200, not starting with `-`, and not "
            f"`{names.RESERVED_TOOLKIT}`"
        ),
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


def load_file(root: Path, path: str) -> tuple[Document | None, list[Problem]]:
    """Read one file and return its document and the problems so far.

    The document is None if no file is expected at this path.
    """
    location = classify_path(path)
    if isinstance(location, Finding):
        return None, [folder.make_problem(root, folder.check_link(root, path) or location)]
    return _parse_document(root, path, location, folder.read_file(root, path))


def parse_file(
    root: Path, path: str, data: bytes | Finding
) -> tuple[Document | None, list[Problem]]:
    """Parse content from another source, such as an older revision, like `load_file`.

    `data` is a Finding if there is no content.
    """
    location = classify_path(path)
    return (
        (None, [folder.make_problem(root, location)])
        if isinstance(location, Finding)
        else _parse_document(root, path, location, data)
    )


def _parse_document(
    root: Path, path: str, location: Location, data: bytes | Finding
) -> tuple[Document, list[Problem]]:
    if isinstance(data, Finding):
        return Document(path, location), [folder.make_problem(root, data)]
    if location.kind in ("logo", "font"):
        return _parse_published_file(root, path, location, data)
    value, is_readable, faults = _parse_yaml(data)
    lines = comments.split_lines(data) if faults else []
    problems = [_fault_problem(root, path, fault, _line_at(lines, fault.line)) for fault in faults]
    document = Document(
        path,
        location,
        value,
        is_readable,
        hashlib.sha256(data).hexdigest(),
        comments.find_suppressions(data),
        comments.find_schema_comments(data),
        comments.find_hidden(data),
    )
    return document, problems


def _parse_published_file(
    root: Path, path: str, location: Location, data: bytes
) -> tuple[Document, list[Problem]]:
    digest = hashlib.sha256(data).hexdigest()
    finding = (
        _find_font_fault(path, data) if location.kind == "font" else _find_logo_fault(path, data)
    )
    if not finding:
        return Document(path, location, None, True, digest), []
    return Document(path, location, digest=digest), [folder.make_problem(root, finding)]


def _find_font_fault(path: str, data: bytes) -> Finding | None:
    if not (fault := published_files.find_font_fault(data)):
        return None
    help = "convert the font to WOFF2"
    return Finding(path=path, rule="font-invalid", message=fault, help=help)


def _find_logo_fault(path: str, data: bytes) -> Finding | None:
    if not (fault := published_files.find_logo_fault(path, data)):
        return None
    help = "export the image again as a plain SVG, which only draws, or as PNG"
    return Finding(path=path, rule="logo-invalid", message=fault, help=help)


def _parse_yaml(data: bytes) -> tuple[Any, bool, Sequence[yaml_reader.Fault]]:
    """Return the value of a file, whether it could be read, and the faults."""
    try:
        return yaml_reader.parse_fast(data), True, ()
    except yaml_reader.NeedsFullParse:
        result = yaml_reader.parse(data)
    return result.value, result.root is not None, result.faults


def _fault_problem(root: Path, path: str, fault: yaml_reader.Fault, excerpt: str) -> Problem:
    finding = Finding(path=path, rule=fault.rule, message=fault.message, help=fault.help)
    return folder.make_problem(root, finding, fault.line, fault.column, excerpt, fault.length)


def locate_findings(root: Path, findings: Iterable[Finding]) -> list[Problem]:
    """Return the findings with line, column and source line.

    Each file with findings is read again, so a valid catalog has no extra cost.
    """
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    return [
        problem
        for path, file_findings in by_path.items()
        for problem in locate_in_file(root, path, file_findings)[0]
    ]


def locate_in_file(
    root: Path, path: str, findings: Sequence[Finding]
) -> tuple[list[Problem], tuple[Suppression, ...]]:
    """Return the findings of one file as problems with positions, and its suppression comments."""
    data = folder.read_file(root, path)
    if isinstance(data, Finding):
        return [folder.make_problem(root, finding) for finding in findings], ()
    mark, lines, problems = yaml_reader.parse(data).root, comments.split_lines(data), []
    for finding in findings:
        line, column, length = _span(mark, lines, finding)
        problems.append(
            folder.make_problem(root, finding, line, column, _line_at(lines, line), length)
        )
    return problems, comments.find_suppressions(data)


def _span(
    node: yaml_reader.Node | None, lines: list[str], finding: Finding
) -> tuple[int, int, int]:
    """Return the line, column and length of a finding: of a value, or of a whole line."""
    if finding.line:
        text = _line_at(lines, finding.line)
        return finding.line, len(text) - len(text.lstrip()) + 1, len(text.strip())
    return yaml_reader.locate_value(node, finding.pointer, finding.at_key) if node else (1, 1, 1)


def find_line(data: bytes, finding: Finding) -> int:
    """Return the line of a finding in content from another source."""
    mark = yaml_reader.parse(data).root
    return yaml_reader.locate_value(mark, finding.pointer, finding.at_key)[0] if mark else 1


def _line_at(lines: list[str], number: int) -> str:
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


def classify_path(path: str) -> Location | Finding:
    """Return the location of a file at `path`, or a finding if no file is expected there."""
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(path):
            return _check_names(path, match) or Location(kind, match.groupdict())
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


def _check_names(path: str, match: re.Match[str]) -> Finding | None:
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
        elif not names.is_valid(_NAME_RULES[key][0], name):
            _, noun, expected = _NAME_RULES[key]
            help = f"rename it, for example to `{_suggest_name(key, name)}`"
            message = f"`{name}` in {path[: match.start(key)]} is not {noun}"
            return Finding(
                path=path,
                rule=f"name-{key.replace('_', '-')}",
                message=message,
                expected=expected,
                help=help,
            )
    return None


def _suggest_name(key: str, name: str) -> str:
    plain = re.sub("[^A-Za-z0-9_-]+", "_", name).lstrip("-")[: names.MAX_LENGTH] or "name"
    prefix = {"session": "trs_", "auth_config": "ac_"}.get(key, "")
    cased = {"toolkit": plain.lower(), "tool": plain.upper()}.get(key, plain)
    if key == "toolkit" and cased == names.RESERVED_TOOLKIT:
        return f"{cased}_tools"
    return prefix + cased.removeprefix(prefix)
