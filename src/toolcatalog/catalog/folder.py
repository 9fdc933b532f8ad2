"""The catalog folder: safe listing and reading of untrusted files, and where each tool's files
are.

The folder is untrusted.

Links that leave it, things that are not plain files, and files over 1 MiB are problems.

No file is read.
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

MAX_FILE_SIZE = 1024 * 1024  # bytes
MAX_MESSAGE_LENGTH = 500  # characters of a message
_READ_SIZE = 4096
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# prose and ownership beside the data; names with a leading dot too
_IGNORED = {"README.md", "OWNERS", "CODEOWNERS"}
_TOOLKIT_FOLDER = re.compile("toolkits/[^/]+/")  # what holds the folders of tools


def list_paths(root: Path) -> tuple[list[str], list[Problem]]:
    """The paths of all files below `root`, sorted and relative to it, and what stands there that
    cannot be read at all.
    """
    paths, folders, problems = list_layout(root)
    for folder in folders:
        found = list_folder(root, folder)
        paths += found.paths
        problems += found.problems
    return sorted(paths), problems


def list_layout(root: Path) -> tuple[list[str], list[str], list[Problem]]:
    """The paths of all files but those of tools, and the folders of tools
    (`toolkits/<toolkit>/<tool>`), each sorted, and problems.

    Raises UsageError where `root` is not a folder. A catalog has many folders of tools; each is for
    `files_in` to look into.
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
    """The paths of all files below a folder, sorted; whether there are folders in it; and what
    cannot be read.
    """

    paths: list[str]
    has_subfolders: bool
    problems: list[Problem]


def list_folder(root: Path, folder: str) -> FolderListing:
    """What is below one folder."""
    paths, walked, findings = _walk(root, f"{folder}/", None)
    return FolderListing(paths, walked > 1, [make_problem(root, finding) for finding in findings])


def _walk(
    root: Path, start: str, tool_folders: list[str] | None
) -> tuple[list[str], int, list[Finding]]:
    """All files from one folder on, and how many folders were walked; where `tools` is a list,
    folders of tools are put there instead.
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
                message, help = (
                    "a folder that has the name of a file",
                    "put a plain file here, or rename the folder",
                )
                findings.append(
                    Finding(
                        path=f"{folder}{entry.name}",
                        rule="file-unexpected",
                        message=message,
                        help=help,
                    )
                )
            elif tool_folders is not None and _TOOLKIT_FOLDER.fullmatch(folder):
                tool_folders.append(f"{folder}{entry.name}")
            else:
                folders.append(f"{folder}{entry.name}/")
    return sorted(paths), walked, findings


def is_catalog_file(path: str) -> bool:
    """Tell whether a file at this path is part of a catalog, and not prose or something hidden
    beside it.
    """
    return "/." not in f"/{path}" and _IGNORED.isdisjoint(path.split("/"))


def _scan_folder(root: Path, folder: str, findings: list[Finding]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as entries:
            return [
                entry
                for entry in entries
                if not entry.name.startswith(".") and entry.name not in _IGNORED
            ]
    except OSError as error:
        findings.append(_unreadable_finding(folder or ".", error))
        return []


def file_digest(root: Path, path: str) -> str:
    """The SHA-256 of a file's bytes, as `load` tells it; empty where the file cannot be read."""
    data = read_file(root, path)
    return "" if isinstance(data, Finding) else hashlib.sha256(data).hexdigest()


def read_file(root: Path, path: str) -> bytes | Finding:
    """The content of a plain file of at most 1 MiB. A pipe or a device is never opened for reading,
    a link only if it may be followed.
    """
    file = f"{root}/{path}"
    try:
        try:
            handle = os.open(file, _OPEN_FLAGS | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            if refused := check_link(root, path):
                return refused
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
    while len(data) <= MAX_FILE_SIZE and (more := os.read(handle, _READ_SIZE)):
        data += more
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
        help="mend its permissions, or remove it",
    )


def check_link(root: Path, path: str) -> Finding | None:
    """Why a link is not followed; None for all else. Links in the place of folders are never
    followed: `scan` lists them as files.

    A link must name the path of a data file, because only such a link can be followed in an earlier
    revision too: not a hidden file, nothing behind another link, no absolute path.
    """
    if not (root / path).is_symlink():
        return None
    top, real = os.path.realpath(root), Path(os.path.realpath(root / path))
    target = target_of(path, str((root / path).readlink()))
    if not real.is_relative_to(top):
        message = "a link that leaves the catalog"
    elif not real.is_file():
        message = "a link to a folder, or to nothing"
    elif not is_catalog_file(target) or str(real) != f"{top}/{target}":
        message = "a link that does not name the path of a file of the catalog"
    else:
        return None
    return Finding(path=path, rule="file-link", message=message, help="put the file itself here")


def target_of(path: str, target: str) -> str:
    """The path that a link names, relative to the catalog as `path` is, by its text alone."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def display_path(root: Path, path: str) -> str:
    """A path as people see it: relative to the catalog's parent, printable whatever bytes the name
    has.
    """
    return _escape_unprintable(f"{root.resolve().name}/{path}")


def _escape_unprintable(text: str) -> str:
    """The text with escapes for all that a terminal or a log would act on: what a file or its name
    says is not ours to trust.
    """
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    )


def _format_message(text: str) -> str:
    """The text for a message: on one line, and not longer than anybody reads."""
    return _escape_unprintable(
        text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[: MAX_MESSAGE_LENGTH - 3]}..."
    )


def make_problem(
    root: Path, finding: Finding, line: int = 1, column: int = 1, excerpt: str = "", length: int = 1
) -> Problem:
    """A finding at its place, fit to be shown."""
    return Problem(
        path=display_path(root, finding.path), line=line, column=column, rule=finding.rule, message=_format_message(finding.message),
        expected=_format_message(finding.expected), help=_format_message(finding.help), excerpt=excerpt, length=length, fix=finding.fix,
    )  # fmt: skip


META_TOOLS = "meta_tools"
_MAX_COMPARED = 200  # slugs that are compared letter by letter


class ToolFolder(NamedTuple):
    """The folder of a tool, relative to the catalog, and its versions, oldest first."""

    folder: str
    versions: list[str]

    def version_path(self, version: str) -> str:
        """The file of a version."""
        return f"{self.folder}/{version}.yaml"

    @property
    def is_meta_tool(self) -> bool:
        """Whether it is a meta tool."""
        return self.folder.startswith(f"{META_TOOLS}/")


def list_toolkits(root: Path) -> list[str]:
    """The slugs of the toolkits that are described, sorted."""
    return sorted(
        folder.name
        for folder in _subfolders(root / "toolkits")
        if (folder / "toolkit.yaml").is_file()
    )


def find_tool(root: Path, slug: str) -> ToolFolder | None:
    """Where a tool lies; None where there is none of this slug, or no version of it."""
    if not names.is_valid(names.TOOL_SLUG, slug):
        return None
    for folder in [
        *(folder / slug for folder in _subfolders(root / "toolkits")),
        root / META_TOOLS / slug,
    ]:
        if folder.is_dir() and not folder.is_symlink():
            found = sorted(
                file.stem for file in folder.glob("*.yaml") if versions.is_version(file.stem)
            )
            if found:
                return ToolFolder(folder.relative_to(root).as_posix(), found)
    return None


def get_tool(root: Path, slug: str) -> ToolFolder:
    """The same. Raises UsageError, with the nearest slug, where there is no such tool."""
    found = find_tool(root, slug)
    if found:
        return found
    near = nearest_slug(slug, [path.rpartition("/")[2] for path in list_tools(root)])
    help = (
        f"did you mean {near}?"
        if near
        else "see its slug in the catalog, or add it with `toolcatalog new tool`."
    )
    raise UsageError(f"There is no tool {slug} in {root}: {help}")


def list_tools(root: Path) -> list[str]:
    """The folders of all tools, meta tools too. Raises UsageError where there is no catalog."""
    paths, folders, _ = list_layout(root)
    metas = {
        path.rpartition("/")[0]
        for path in paths
        if path.startswith(f"{META_TOOLS}/") and path.count("/") > 1
    }
    return [*folders, *sorted(metas)]


def nearest_slug(slug: str, candidates: Iterable[str]) -> str:
    """The slug that was probably meant; empty where none is near. Only what shares the most words
    is compared closely.
    """
    words = {*slug.casefold().replace("-", "_").split("_")}
    some = heapq.nlargest(
        _MAX_COMPARED,
        candidates,
        key=lambda one: len(words.intersection(one.casefold().replace("-", "_").split("_"))),
    )
    return next(iter(names.find_nearest(slug, some)), "")


def guess_toolkit(slug: str, toolkits: Iterable[str]) -> str:
    """The toolkit whose slug a tool's begins with, the longest there is; empty where there is none."""
    lower = slug.lower().replace("-", "_")
    return max(
        (one for one in toolkits if lower.startswith(f"{one.replace('-', '_')}_")),
        key=len,
        default="",
    )


def _subfolders(folder: Path) -> list[Path]:
    return (
        sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        if folder.is_dir()
        else []
    )
