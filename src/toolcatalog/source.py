"""A catalog folder to raw values: which files there are, of which kind, and what each holds.

A file's place is its identity, so slugs, versions and ids come from the path here and from nowhere else. The folder is untrusted:
links that leave it, things that are not plain files, files over 1 MiB and files that are in no known place are problems. This is
also where a finding gets its line and column, by reading the one file again.

Serves: the tree at the top of the catalog format.
"""

import errno
import hashlib
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from toolcatalog import names, versions, yaml12
from toolcatalog.errors import Finding, Problem, UsageError

LARGEST = 1024 * 1024  # bytes
_MORE = 4096
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
LONGEST_TOLD = 500  # characters of a message
_IGNORED = {"README.md", "OWNERS", "CODEOWNERS"}  # prose and ownership beside the data; names with a leading dot too


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of file and the names that its path gives."""

    kind: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """One file as read: its path relative to the catalog (with `/`), its place and its JSON value, if it is readable."""

    path: str
    place: Place
    value: Any = None
    readable: bool = False
    digest: str = ""  # the SHA-256 of the bytes that were read


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
    "toolkit": (names.TOOLKIT_SLUG, "a toolkit slug", "lower-case letters, digits, `_` and `-`, at most 200, not starting with `-`"),
    "tool": (names.TOOL_SLUG, "a tool slug", "capital letters, digits, `_` and `-`, at most 200, not starting with `-`"),
    "session": (names.SESSION_ID, "a session id", "`trs_` and then letters, digits, `_` and `-`"),
    "auth_config": (names.AUTH_CONFIG_ID, "an auth config id", "`ac_` and then letters, digits, `_` and `-`"),
}
_TOOLS = re.compile("toolkits/[^/]+/")  # what holds the folders of tools
_PATTERNS = tuple((kind, re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template)))) for kind, template in _LAYOUT)


def scan(root: Path) -> tuple[list[str], list[Problem]]:
    """The paths of all files below `root`, sorted and relative to it, and what stands there that cannot be read at all."""
    paths, folders, problems = outline(root)
    for folder in folders:
        found = files_in(root, folder)
        paths += found.paths
        problems += found.problems
    return sorted(paths), problems


def outline(root: Path) -> tuple[list[str], list[str], list[Problem]]:
    """The paths of all files but those of tools, and the folders of tools (`toolkits/<toolkit>/<tool>`), each sorted, and problems.

    Raises UsageError where `root` is not a folder. A catalog has many folders of tools; each is for `files_in` to look into.
    """
    if not root.is_dir():
        raise UsageError(f"No catalog at {root}: name its folder with --catalog, or start one with a {root / 'catalog.yaml'}.")
    tools: list[str] = []
    paths, _, findings = _walk(root, "", tools)
    return paths, sorted(tools), [_problem(root, finding, 1, 1, "") for finding in findings]


class Files(NamedTuple):
    """The paths of all files below a folder, sorted; whether there are folders in it; and what cannot be read."""

    paths: list[str]
    deep: bool
    problems: list[Problem]


def files_in(root: Path, folder: str) -> Files:
    """What is below one folder."""
    paths, walked, findings = _walk(root, f"{folder}/", None)
    return Files(paths, walked > 1, [_problem(root, finding, 1, 1, "") for finding in findings])


def _walk(root: Path, start: str, tools: list[str] | None) -> tuple[list[str], int, list[Finding]]:
    """All files from one folder on, and how many folders were walked; where `tools` is a list, folders of tools are put there instead."""
    paths: list[str] = []
    findings: list[Finding] = []
    folders, walked = [start], 0
    while folders:
        folder = folders.pop()
        walked += 1
        for entry in _entries(root, folder, findings):
            if not entry.is_dir(follow_symlinks=False):
                paths.append(f"{folder}{entry.name}")
            elif tools is not None and _TOOLS.fullmatch(folder):
                tools.append(f"{folder}{entry.name}")
            else:
                folders.append(f"{folder}{entry.name}/")
    return sorted(paths), walked, findings


def _entries(root: Path, folder: str, findings: list[Finding]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".") and entry.name not in _IGNORED]
    except OSError as error:
        findings.append(_unreadable(folder or ".", error))
        return []


def load(root: Path, path: str) -> tuple[Document | None, list[Problem]]:
    """Read one file: the document (None where no file belongs at this path), and what is wrong with it so far."""
    place = _place(path)
    if isinstance(place, Finding):
        return None, [_problem(root, _refused_link(root, path) or place, 1, 1, "")]
    data = _bytes(root, path)
    if isinstance(data, Finding):
        return Document(path, place), [_problem(root, data, 1, 1, "")]
    digest = hashlib.sha256(data).hexdigest()
    try:
        return Document(path, place, yaml12.value(data), True, digest), []
    except yaml12.Doubtful:
        reading = yaml12.read(data)
    lines = _lines(data) if reading.faults else []
    problems = [_fault(root, path, fault, _line(lines, fault.line)) for fault in reading.faults]
    return Document(path, place, reading.value, reading.mark is not None, digest), problems


def digest(root: Path, path: str) -> str:
    """The SHA-256 of a file's bytes, as `load` tells it; empty where the file cannot be read."""
    data = _bytes(root, path)
    return "" if isinstance(data, Finding) else hashlib.sha256(data).hexdigest()


def _refused_link(root: Path, path: str) -> Finding | None:
    """Why a link is not followed; None for all else. Links in the place of folders are never followed: `scan` lists them as files."""
    if not (root / path).is_symlink():
        return None
    real = Path(os.path.realpath(root / path))
    if not real.is_relative_to(os.path.realpath(root)):
        message = "a link that leaves the catalog"
    elif not real.is_file():
        message = "a link to a folder, or to nothing"
    else:
        return None
    return Finding(path=path, rule="file-link", message=message, help="put the file itself here")


def _fault(root: Path, path: str, fault: yaml12.Fault, excerpt: str) -> Problem:
    finding = Finding(path=path, rule=fault.rule, message=fault.message, help=fault.help)
    return _problem(root, finding, fault.line, fault.column, excerpt, fault.length)


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")


def locate(root: Path, findings: Iterable[Finding]) -> list[Problem]:
    """Give each finding its line, column and source line. Reads each file concerned once more, so a clean catalog pays nothing."""
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    return [problem for path, some in by_path.items() for problem in _located(root, path, some)]


def _located(root: Path, path: str, findings: list[Finding]) -> Iterator[Problem]:
    data = _bytes(root, path)
    mark = None if isinstance(data, Finding) else yaml12.read(data).mark
    lines = [] if isinstance(data, Finding) else _lines(data)
    for finding in findings:
        line, column, length = yaml12.place(mark, finding.pointer, finding.at_key) if mark else (1, 1, 1)
        yield _problem(root, finding, line, column, _line(lines, line), length)


def shown(root: Path, path: str) -> str:
    """A path as people see it: relative to the catalog's parent, printable whatever bytes the name has."""
    return _printable(f"{root.resolve().name}/{path}")


def _printable(text: str) -> str:
    """The text with escapes for all that a terminal or a log would act on: what a file or its name says is not ours to trust."""
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _sentence(text: str) -> str:
    """The text for a message: on one line, and not longer than anybody reads."""
    return _printable(text if len(text) <= LONGEST_TOLD else f"{text[: LONGEST_TOLD - 3]}...")


def _problem(root: Path, finding: Finding, line: int, column: int, excerpt: str, length: int = 1) -> Problem:
    return Problem(
        path=shown(root, finding.path), line=line, column=column, rule=finding.rule, message=_sentence(finding.message),
        expected=_sentence(finding.expected), help=_sentence(finding.help), excerpt=excerpt, length=length,
    )  # fmt: skip


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


def _place(path: str) -> Place | Finding:
    """The kind of file that lies at `path`, or why none does."""
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(path):
            return _misnamed(path, match) or Place(kind, match.groupdict())
    expected = "one of " + ", ".join(template for _, template in _LAYOUT)
    help = "rename it to end in `.yaml`" if path.endswith(".yml") else "move it to its place, or out of the catalog"
    return Finding(path=path, rule="file-unexpected", message="no file is expected here", expected=expected, help=help)


def _misnamed(path: str, match: re.Match[str]) -> Finding | None:
    for key, name in match.groupdict().items():
        if key == "version":
            if not versions.is_version(name):
                help = "name the file like 20251027_00.yaml"
                message = f"`{name}` is not a version"
                return Finding(path=path, rule="name-version", message=message, expected="eight digits, `_`, two digits", help=help)
        elif not names.fits(_NAMES[key][0], name):
            _, what, expected = _NAMES[key]
            help = f"rename it, for example to `{_suggested(key, name)}`"
            message = f"`{name}` in {path[: match.start(key)]} is not {what}"
            return Finding(path=path, rule=f"name-{key.replace('_', '-')}", message=message, expected=expected, help=help)
    return None


def _suggested(key: str, name: str) -> str:
    plain = re.sub("[^A-Za-z0-9_-]+", "_", name).lstrip("-")[: names.LONGEST] or "name"
    prefix = {"session": "trs_", "auth_config": "ac_"}.get(key, "")
    cased = {"toolkit": plain.lower(), "tool": plain.upper()}.get(key, plain)
    return prefix + cased.removeprefix(prefix)


def _bytes(root: Path, path: str) -> bytes | Finding:
    """The content of a plain file of at most 1 MiB. A pipe or a device is never opened for reading, a link only if it may be followed."""
    file = f"{root}/{path}"
    try:
        try:
            handle = os.open(file, _READ | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            if refused := _refused_link(root, path):
                return refused
            handle = os.open(file, _READ)
        try:
            return _content(path, handle)
        finally:
            os.close(handle)
    except OSError as error:
        return _unreadable(path, error)


def _content(path: str, handle: int) -> bytes | Finding:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return Finding(path=path, rule="file-unexpected", message="not a plain file", help="put a plain file here")
    data = os.read(handle, min(status.st_size, LARGEST) + 1)
    while len(data) <= LARGEST and (more := os.read(handle, _MORE)):
        data += more
    if len(data) <= LARGEST:
        return data
    help = "split it, or shorten it"
    return Finding(path=path, rule="file-too-large", message="more than 1 MiB", expected="at most 1 MiB", help=help)


def _unreadable(path: str, error: OSError) -> Finding:
    reason = (error.strerror or str(error)).lower()
    return Finding(path=path, rule="file-unreadable", message=f"cannot be read: {reason}", help="mend its permissions, or remove it")
