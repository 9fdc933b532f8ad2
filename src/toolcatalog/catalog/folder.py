"""The catalog folder: safe listing and reading of untrusted files, and lookup of tool folders.

The folder is untrusted. Links that leave it, anything but plain files, and files over 1 MiB are
reported as problems. Listing does not read any file.
"""

import errno
import hashlib
import heapq
import os
import posixpath
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from toolcatalog import names, versions
from toolcatalog.errors import Finding, Problem, UsageError
from toolcatalog.system import files
from toolcatalog.textutils import escape_unprintable

MAX_FILE_SIZE = 1024 * 1024  # bytes
MAX_MESSAGE_LENGTH = 500  # characters of a message
MAX_EXCERPT_LENGTH = 600  # characters of a source line
_READ_SIZE = 4096
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# files of documentation and ownership next to the data; names with a leading dot are ignored too
_IGNORED = {"README.md", "OWNERS", "CODEOWNERS"}
_TOOLKIT_FOLDER = re.compile("toolkits/[^/]+/")  # parent of tool folders


def list_paths(root: Path) -> tuple[list[str], list[Problem]]:
    """Return the sorted paths of all files below `root`, relative to it, and the problems."""
    paths, folders, problems = list_layout(root)
    for folder in folders:
        listing = list_folder(root, folder)
        paths += listing.paths
        problems += listing.problems
    return sorted(paths), problems


def list_layout(root: Path) -> tuple[list[str], list[str], list[Problem]]:
    """Return the paths of all files except those of tools, the folders of tools, and the problems.

    Both lists are sorted. The folder of a tool is `toolkits/<toolkit>/<tool>`; a catalog has many,
    and `list_folder` lists the files of each. Raises UsageError if `root` is not a folder.
    """
    if not root.is_dir():
        raise UsageError(
            f"No catalog at {root}: name its folder with --catalog, or start one with a "
            f"{root / 'catalog.yaml'}."
        )
    tools: list[str] = []
    paths, _, findings = _walk(root, "", tools)
    return paths, sorted(tools), [make_problem(root, finding) for finding in findings]


class FolderListing(NamedTuple):
    """The sorted paths of all files below a folder, whether it has subfolders, and the problems."""

    paths: list[str]
    has_subfolders: bool
    problems: list[Problem]


def list_folder(root: Path, folder: str) -> FolderListing:
    """List the files below one folder, given relative to `root`."""
    paths, walked, findings = _walk(root, f"{folder}/", None)
    return FolderListing(paths, walked > 1, [make_problem(root, finding) for finding in findings])


def _walk(
    root: Path, start: str, tool_folders: list[str] | None
) -> tuple[list[str], int, list[Finding]]:
    """Return all files below one folder, the number of folders visited, and the findings.

    If `tool_folders` is a list, the folders of tools are appended to it and not entered.
    """
    paths: list[str] = []
    findings: list[Finding] = []
    folders, walked = [start], 0
    while folders:
        folder = folders.pop()
        walked += 1
        for entry in _scan_folder(root, folder, findings):
            if not entry.is_dir(follow_symlinks=False):
                paths.append(f"{folder}{entry.name}")
            elif entry.name.endswith((".yaml", ".yml")):
                findings.append(_folder_finding(f"{folder}{entry.name}"))
            elif tool_folders is not None and _TOOLKIT_FOLDER.fullmatch(folder):
                tool_folders.append(f"{folder}{entry.name}")
            else:
                folders.append(f"{folder}{entry.name}/")
    return sorted(paths), walked, findings


def _folder_finding(path: str) -> Finding:
    return Finding(
        path=path,
        rule="file-unexpected",
        message="a folder that has the name of a file",
        help="put a plain file here, or rename the folder",
    )


def is_catalog_file(path: str) -> bool:
    """Return whether a file at this path is part of the catalog.

    Hidden files and documentation, such as README.md, are not.
    """
    return "/." not in f"/{path}" and path.rpartition("/")[2] not in _IGNORED


def _scan_folder(root: Path, folder: str, findings: list[Finding]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as entries:
            return [
                entry
                for entry in entries
                if not entry.name.startswith(".")
                and (entry.name not in _IGNORED or entry.is_dir(follow_symlinks=False))
            ]
    except OSError as error:
        findings.append(_unreadable_finding(folder or ".", error))
        return []


def file_digest(root: Path, path: str) -> str:
    """Return the SHA-256 of a file's bytes, as in `Document.digest`; empty if it is unreadable."""
    data = read_file(root, path)
    return "" if isinstance(data, Finding) else hashlib.sha256(data).hexdigest()


def read_file(root: Path, path: str) -> bytes | Finding:
    """Return the content of a plain file of at most 1 MiB, or a finding that says what is wrong.

    Pipes and devices are never opened for reading. Links are followed only if `check_link` allows
    it.
    """
    file = f"{root}/{path}"
    try:
        try:
            handle = os.open(file, _OPEN_FLAGS | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            if finding := check_link(root, path):
                return finding
            handle = os.open(file, _OPEN_FLAGS)
        try:
            return _read_handle(path, handle)
        finally:
            os.close(handle)
    except OSError as error:
        return _unreadable_finding(path, error)


def _read_handle(path: str, handle: int) -> bytes | Finding:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return Finding(
            path=path,
            rule="file-unexpected",
            message="not a plain file",
            help="put a plain file here",
        )
    data = os.read(handle, min(status.st_size, MAX_FILE_SIZE) + 1)
    while len(data) <= MAX_FILE_SIZE and (chunk := os.read(handle, _READ_SIZE)):
        data += chunk
    if len(data) <= MAX_FILE_SIZE:
        return data
    help = "split it, or shorten it"
    return Finding(
        path=path,
        rule="file-too-large",
        message="more than 1 MiB",
        expected="at most 1 MiB",
        help=help,
    )


def _unreadable_finding(path: str, error: OSError) -> Finding:
    reason = (error.strerror or str(error)).lower()
    return Finding(
        path=path,
        rule="file-unreadable",
        message=f"cannot be read: {reason}",
        help="fix its permissions, or remove it",
    )


def check_link(root: Path, path: str) -> Finding | None:
    """Return a finding if a link must not be followed, else None.

    A link in place of a folder is never followed: `_walk` lists it as a file.

    A link must name the path of a catalog file, because only such a link can also be followed in an
    earlier Git revision. So it may not be absolute, and may not lead to a hidden file or through
    another link.
    """
    if not (root / path).is_symlink():
        return None
    top, real = os.path.realpath(root), Path(os.path.realpath(root / path))
    target = target_of(path, str((root / path).readlink()))
    if not real.is_relative_to(top):
        message = "a link that leaves the catalog"
    elif not files.is_file(real):
        message = "a link to a folder, or to nothing"
    elif not is_catalog_file(target) or str(real) != f"{top}/{target}":
        message = "a link that does not name the path of a file of the catalog"
    else:
        return None
    return Finding(path=path, rule="file-link", message=message, help="put the file itself here")


def target_of(path: str, target: str) -> str:
    """Return the path that a link names, relative to the catalog, from its text alone.

    `path` is the path of the link, also relative to the catalog.
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def display_path(root: Path, path: str) -> str:
    """Return a path for display, relative to the catalog's parent and printable.

    Unprintable characters are escaped, because file names may contain any bytes.
    """
    return escape_unprintable(f"{root.resolve().name}/{path}")


def _format_message(text: str) -> str:
    """Return the text as one line of at most MAX_MESSAGE_LENGTH characters."""
    return escape_unprintable(
        text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[: MAX_MESSAGE_LENGTH - 3]}..."
    )


def make_problem(
    root: Path, finding: Finding, line: int = 1, column: int = 1, excerpt: str = "", length: int = 1
) -> Problem:
    """Return a finding as a Problem at a position; `excerpt` is the source line.

    The texts are escaped and shortened for display. Of a long line, the part around the position is
    kept: many findings may be in one line.
    """
    is_long = len(excerpt) > MAX_EXCERPT_LENGTH
    excerpt_start = max(0, column - 1 - MAX_EXCERPT_LENGTH // 2) if is_long else 0
    return Problem(
        path=display_path(root, finding.path),
        line=line,
        column=column,
        rule=finding.rule,
        message=_format_message(finding.message),
        expected=_format_message(finding.expected),
        help=_format_message(finding.help),
        excerpt=excerpt[excerpt_start : excerpt_start + MAX_EXCERPT_LENGTH],
        excerpt_start=excerpt_start,
        length=length,
        fix=finding.fix,
        unsafe_fix=finding.unsafe_fix,
    )


META_TOOLS = "meta_tools"
_MAX_COMPARED = 200  # slugs that are compared letter by letter


class ToolFolder(NamedTuple):
    """The folder of a tool, relative to the catalog, and its versions, oldest first."""

    folder: str
    versions: list[str]

    def version_path(self, version: str) -> str:
        """Return the path of the file of a version."""
        return f"{self.folder}/{version}.yaml"

    @property
    def is_meta_tool(self) -> bool:
        """Whether the tool is a meta tool."""
        return self.folder.startswith(f"{META_TOOLS}/")


def list_toolkits(root: Path) -> list[str]:
    """Return the sorted slugs of the toolkits that have a toolkit.yaml."""
    return sorted(
        folder.name
        for folder in _subfolders(root / "toolkits")
        if (folder / "toolkit.yaml").is_file()
    )


def find_tool(root: Path, slug: str) -> ToolFolder | None:
    """Return the folder of a tool, or None if there is no such tool or it has no version."""
    if not names.is_valid(names.TOOL_SLUG, slug):
        return None
    for folder in [
        *(folder / slug for folder in _subfolders(root / "toolkits")),
        root / META_TOOLS / slug,
    ]:
        if folder.is_dir() and not folder.is_symlink():
            tool_versions = sorted(
                file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem)
            )
            if tool_versions:
                return ToolFolder(folder.relative_to(root).as_posix(), tool_versions)
    return None


def get_tool(root: Path, slug: str) -> ToolFolder:
    """Return the folder of a tool. Raises UsageError, with the nearest slug, if there is none."""
    tool = find_tool(root, slug)
    if tool:
        return tool
    nearest = nearest_slug(slug, [path.rpartition("/")[2] for path in list_tools(root)])
    help = (
        f"did you mean {nearest}?"
        if nearest
        else "look up its slug in the catalog, or add it with `toolcatalog new tool`."
    )
    raise UsageError(f"There is no tool {slug} in {root}: {help}")


def list_tools(root: Path) -> list[str]:
    """Return the folders of all tools and meta tools. Raises UsageError if there is no catalog."""
    paths, folders, _ = list_layout(root)
    metas = {
        path.rpartition("/")[0]
        for path in paths
        if path.startswith(f"{META_TOOLS}/") and path.count("/") > 1
    }
    return [*folders, *sorted(metas)]


def nearest_slug(slug: str, candidates: Iterable[str]) -> str:
    """Return the candidate nearest to a slug, or an empty string if none is near.

    Only the candidates that share the most words with the slug are compared letter by letter.
    """
    words = {*slug.casefold().replace("-", "_").split("_")}
    similar = heapq.nlargest(
        _MAX_COMPARED,
        candidates,
        key=lambda candidate: len(
            words.intersection(candidate.casefold().replace("-", "_").split("_"))
        ),
    )
    return next(iter(names.find_nearest(slug, similar)), "")


def guess_toolkit(slug: str, toolkits: Iterable[str]) -> str:
    """Return the longest toolkit slug that a tool's slug begins with, or an empty string."""
    lower = slug.lower().replace("-", "_")
    return max(
        (toolkit for toolkit in toolkits if lower.startswith(f"{toolkit.replace('-', '_')}_")),
        key=len,
        default="",
    )


def _subfolders(folder: Path) -> list[Path]:
    return (
        sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        if folder.is_dir()
        else []
    )
