"""Git access: the files of a catalog at a revision and in the working tree.

Git only reads its own objects here. It is never asked about the working tree, and it fetches
nothing. So nothing that a repository's configuration or attributes name is run: no hook, filter,
text conversion or external diff, no file system monitor, no transport. `catalog.folder` reads the
files in the working tree, like those of every catalog, and this module computes the object IDs that
git would give them.

The repository is the one whose `.git` is nearest above the catalog. Git refuses to commit a path
with that name, so a change cannot add another repository. Git itself also accepts any folder that
contains the files of a bare repository, and those can be committed, so such a folder is rejected.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from toolcatalog import names
from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.errors import Finding, UsageError
from toolcatalog.textutils import escape_unprintable

_GIT_OPTIONS = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.warnAmbiguousRefs=true",
    "-c",
    "safe.bareRepository=explicit",
    "--no-pager",
    "--literal-pathspecs",
)
_MAX_SECONDS = 120  # of one command; git matches some patterns in exponential time
_ENVIRONMENT = {
    # a partial clone would fetch missing objects with a program that its configuration names
    "GIT_ALLOW_PROTOCOL": "none",
    # a file that cannot exist; git warns about an empty one
    "GIT_GRAFT_FILE": f"{os.devnull}/grafts",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# variables that select another repository, other objects or another meaning of paths; git sets some
# of them when it runs hooks (`git rev-parse --local-env-vars`)
_REMOVED_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in [
        "ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "CONFIG", "CONFIG_PARAMETERS", "DIR",
        "GLOB_PATHSPECS", "ICASE_PATHSPECS", "IMPLICIT_WORK_TREE", "INDEX_FILE", "NAMESPACE",
        "NOGLOB_PATHSPECS", "OBJECT_DIRECTORY", "PREFIX", "REPLACE_REF_BASE", "SHALLOW_FILE",
        "WORK_TREE",
    ]
)  # fmt: skip
_DOT_GIT, _GITDIR_PREFIX = ".git", "gitdir: "
_REVISION_MODIFIER = re.compile("[~^@:]")  # what may follow a name in a revision
_SYMLINK_MODE, _SUBMODULE, _NO_OBJECT = "120000", "160000", ""
# attributes with which a checkout writes other bytes than those of the commit
_CONVERSIONS = ("working-tree-encoding", "filter", "ident")
_MAX_NAMES = 2000  # revision names to search for a similar one

ReadFiles = Callable[[Collection[str]], Mapping[str, bytes | Finding]]


class Repository(NamedTuple):
    """The repository that contains a catalog.

    `top` is its top folder, `git_folder` its own folder (`.git`), `prefix` the catalog's path in it
    (`sub/catalog/`, or empty), and `hash_algorithm` the algorithm of its object IDs.
    """

    catalog: Path
    top: str
    git_folder: str
    prefix: str
    hash_algorithm: str


class FileSet(NamedTuple):
    """The files of a catalog at one time: a title, the object ID of each file, and a read function.

    Paths are relative to the catalog. Equal IDs mean equal contents; an empty ID equals no other.
    `read` returns the bytes of each file, or a finding if they cannot be read.
    """

    title: str
    object_ids: Mapping[str, str]
    read: ReadFiles


def open_repository(catalog: Path) -> Repository:
    """Return the repository that contains a catalog.

    Raises UsageError if there is no such folder, no git or no repository, or if git would use
    another repository than that of the nearest `.git`.
    """
    if not catalog.is_dir():
        raise UsageError(f"No catalog at {catalog}: name its folder with --catalog.")
    real_path = Path(os.path.realpath(catalog))
    top = next(
        (path for path in (real_path, *real_path.parents) if os.path.lexists(path / _DOT_GIT)), None
    )
    result = _run_git(
        "-C",
        str(real_path),
        "rev-parse",
        "--show-toplevel",
        "--absolute-git-dir",
        "--show-prefix",
        "--show-object-format",
    )
    if top and b"safe.bareRepository" in result.stderr:
        _raise_embedded_repository(
            top, os.fsdecode(result.stderr).partition("'")[2].partition("'")[0]
        )
    if result.returncode:
        _raise_no_repository(catalog, result.stderr)
    top_folder, folder, inside, algorithm = os.fsdecode(result.stdout).rsplit("\n", 4)[:4]
    if top is None or not (_is_same_folder(top_folder, top) and _is_own_repository(folder, top)):
        _raise_embedded_repository(top or real_path, folder)
    _require_no_link(catalog, top)
    return Repository(catalog, top_folder, folder, inside, algorithm)


def _is_same_folder(path: str, other: Path) -> bool:
    try:
        return other.samefile(path)
    except OSError:
        return False


def _is_own_repository(folder: str, top: Path) -> bool:
    """Return whether a git folder belongs to the `.git` in `top`.

    It is either the folder `.git` itself or, in a worktree or submodule, the folder outside the
    working tree that the file `.git` points to.
    """
    git_path = top / _DOT_GIT
    if not git_path.is_file():
        return _is_same_folder(folder, git_path)
    try:
        target = os.fsdecode(git_path.read_bytes()).removeprefix(_GITDIR_PREFIX).rstrip("\r\n")
    except OSError:
        return False
    return _is_same_folder(folder, top / target) and not Path(folder).is_relative_to(top)


def _raise_embedded_repository(top: Path, folder: str) -> NoReturn:
    raise UsageError(
        f"Git takes {folder} for the repository of this catalog instead of {top / _DOT_GIT}, which "
        "contains its history: remove the files of the other repository (`HEAD`, `config`, "
        "`objects`, `refs`), and a `core.worktree` that leads there."
    )


def _require_no_link(catalog: Path, top: Path) -> None:
    """Raise UsageError if a symbolic link within the repository leads to the catalog.

    Earlier revisions may have another folder at this path, whose history would not be read.
    """
    path = Path(os.path.normpath(catalog.absolute()))
    for link in (path, *path.parents):
        if link.is_symlink() and Path(os.path.realpath(link.parent)).is_relative_to(top):
            raise UsageError(
                f"{link} is a symbolic link within the repository in {top}, and git records no "
                "history of a catalog behind a link: put the folder itself there, or name it "
                "with --catalog."
            )


def require_own_history(repository: Repository, revision: str) -> None:
    """Raise UsageError if an outer repository has files at a revision where this one is now.

    A change that replaces the folder by a submodule would bring a history of its own.
    """
    top = Path(repository.top)
    if not any(os.path.lexists(path / _DOT_GIT) for path in top.parents):
        return
    outer = open_repository(top.parent)
    commit = _find_commit(outer, revision)
    path = f"{outer.prefix}{top.name}"
    references = _run_git_in(outer, "ls-tree", "-d", commit, path).stdout if commit else b""
    if references and not references.startswith(_SUBMODULE.encode()):
        raise UsageError(
            f"{top} is a separate repository, such as a submodule, and at {revision} it was a "
            f"folder of the repository in {outer.top}: put the files themselves there."
        )


def resolve_commit(repository: Repository, revision: str) -> str:
    """Return the full ID of the commit that a revision refers to.

    Raises UsageError, with a way to fix it, if git does not know the revision.
    """
    commit = _find_commit(repository, revision)
    if commit is None:
        _raise_unknown_revision(repository, revision)
    return commit


def find_merge_base(repository: Repository, revision: str) -> str:
    """Return the commit where the current work branched off a revision.

    Later commits on that branch are not part of the change. The result is the revision itself if
    there is not exactly one merge base, as in a shallow clone or after merges in both directions:
    each of several merge bases lacks what the others have. Raises UsageError as `resolve_commit`
    does.
    """
    base = resolve_commit(repository, revision)
    process = _run_git_in(repository, "merge-base", "--all", base, "HEAD")
    commits = os.fsdecode(process.stdout).split()
    return commits[0] if process.returncode == 0 and len(commits) == 1 else base


def files_at_commit(repository: Repository, commit: str, title: str) -> FileSet:
    """Return the files of the catalog at a commit.

    Raises UsageError if git cannot list them, or if some of them are in a submodule.
    """
    process = _run_git_in(
        repository,
        "ls-tree",
        "-r",
        "-z",
        "--full-tree",
        "--end-of-options",
        commit,
        *filter(None, [repository.prefix]),
    )
    if process.returncode:
        raise UsageError(
            f"Git cannot list the files of {title} ({_first_line(process.stderr)}): try `git "
            "fsck`, or clone again."
        )
    entries = [*_parse_entries(process.stdout, len(repository.prefix))]
    for mode, _, path in entries:
        if mode == _SUBMODULE:
            _nested(f"{repository.prefix}{path}", f" at {title}")
    files = {path: name for mode, name, path in entries if mode != _SYMLINK_MODE}
    links = {path: name for mode, name, path in entries if mode == _SYMLINK_MODE}
    if links:
        files |= _resolve_links(links, files, _read_objects(repository, links.values()))
    return FileSet(title, files, lambda paths: _read_files(repository, files, paths))


def files_in_working_tree(repository: Repository, title: str = "the working tree") -> FileSet:
    """Return the files of the catalog in its folder, whether git tracks them or not.

    Raises UsageError if a folder is unreadable or is another repository, or if a checkout converts
    a file: reviewers would see other bytes than the program.
    """
    root = repository.catalog
    paths, problems = catalog_folder.list_paths(root)
    for problem in problems:
        raise UsageError(f"{problem.path} {problem.message}: {problem.help}.")
    for folder in _folders(paths):
        if os.path.lexists(f"{root}/{folder}/{_DOT_GIT}"):
            _nested(catalog_folder.display_path(root, folder))
    _require_no_conversion(repository, paths)
    object_ids = {
        path: _object_id(catalog_folder.read_file(root, path), repository.hash_algorithm)
        for path in paths
    }
    return FileSet(
        title,
        object_ids,
        lambda paths: {path: catalog_folder.read_file(root, path) for path in paths},
    )


def _require_no_conversion(repository: Repository, paths: Iterable[str]) -> None:
    """Raise UsageError if an attribute of git converts a file of the catalog on checkout."""
    files = os.fsencode("".join(f"{repository.prefix}{path}\0" for path in paths))
    # a clone is checked out with the attributes in the index, whose files it may convert, too
    output = b""
    for source in ((), ("--cached",)):
        process = _run_git_in(
            repository, "check-attr", *source, "-z", "--stdin", *_CONVERSIONS, stdin=files
        )
        if process.returncode:
            raise UsageError(f"Git cannot read its attributes: {_first_line(process.stderr)}")
        output += process.stdout
    fields = os.fsdecode(output).split("\0")
    for path, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        if value not in ("unspecified", "unset"):
            raise UsageError(
                f"Git converts {escape_unprintable(path)} on checkout "
                f"({attribute}={escape_unprintable(value[:40])}), so reviewers see other text than "
                "this program: remove the attribute from `.gitattributes`."
            )


def _run_git_in(
    repository: Repository, *arguments: str, stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run git to completion on exactly this repository."""
    return _run_git(
        "-C", repository.top, f"--git-dir={repository.git_folder}", *arguments, stdin=stdin
    )


def _run_git(*arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run git to completion. Raises UsageError if it cannot be started, or takes too long."""
    environment = {
        name: value for name, value in os.environ.items() if name not in _REMOVED_VARIABLES
    } | _ENVIRONMENT
    command = ["git", *_GIT_OPTIONS, *arguments]
    try:
        return subprocess.run(  # noqa: S603
            command,
            input=stdin,
            capture_output=True,
            env=environment,
            check=False,
            timeout=_MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"Git was stopped after {_MAX_SECONDS} seconds: look for patterns with many `*` in "
            "`.gitattributes` and `.gitignore`, which take git very long."
        ) from None
    except FileNotFoundError:
        raise UsageError(
            "git is not installed, and revisions cannot be read without it: install git, or "
            "add it to PATH."
        ) from None
    except OSError as error:
        raise UsageError(
            f"Git cannot be started ({error.strerror}): fix the `git` that PATH finds first."
        ) from None


def _raise_no_repository(catalog: Path, stderr: bytes) -> NoReturn:
    if b"dubious ownership" in stderr:
        advice = (
            f"run `git config --global --add safe.directory {catalog.resolve()}`, with the top"
            " folder of the repository"
        )
        raise UsageError(
            f"Git does not read the repository of {catalog}, because it belongs to another "
            f"user: {advice}."
        )
    if b"not a git repository" in stderr:
        raise UsageError(
            f"{catalog} is in no git repository, so it has no revisions: name one that is "
            "with --catalog, or `git init`."
        )
    if b"safe.bareRepository" in stderr:
        raise UsageError(
            f"{catalog} is in a bare repository, which has no working tree: name the catalog of "
            "a clone with --catalog."
        )
    raise UsageError(
        f"Git cannot read the repository of {catalog} ({_first_line(stderr)}): name the "
        "catalog of a clone with --catalog."
    )


def _find_commit(repository: Repository, revision: str) -> str | None:
    if not revision or revision.startswith("-"):  # git would parse it as an option
        return None
    process = _run_git_in(
        repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"
    )
    # git's own HEAD takes precedence over a branch or tag of that name
    if b"is ambiguous" in process.stderr and _REVISION_MODIFIER.split(revision)[0] not in (
        "HEAD",
        "",
    ):
        raise UsageError(
            f"`{revision}` is the name of more than one branch, tag or commit in "
            f"{repository.top}: write it in full, as `refs/heads/NAME`, `refs/tags/NAME`, "
            "`refs/remotes/origin/NAME` or all digits of the commit."
        )
    return None if process.returncode else os.fsdecode(process.stdout).strip()


def _raise_unknown_revision(repository: Repository, revision: str) -> NoReturn:
    def run(*arguments: str) -> str:
        return os.fsdecode(_run_git_in(repository, *arguments).stdout).strip()

    if not run("rev-list", "--all", "--max-count=1"):
        raise UsageError(
            f"The git repository in {repository.top} has no commits yet: make the first with "
            "`git commit`."
        )
    if run("rev-parse", "--is-shallow-repository") == "true":
        advice = (
            "`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout, brings all of it"
        )
        raise UsageError(
            f"Git does not know the revision `{revision}` in {repository.top}, a clone "
            f"without its whole history: {advice}."
        )
    references = run(
        "for-each-ref", f"--count={_MAX_NAMES}", "--sort=-creatordate", "--format=%(refname:short)"
    ).splitlines()
    advice = (
        names.suggest(revision, references)
        or "`git branch --all` and `git tag` list names, and `git fetch` brings new ones."
    )
    raise UsageError(f"Git knows no revision `{revision}` in {repository.top}: {advice}")


def _parse_entries(output: bytes, prefix_length: int) -> Iterator[tuple[str, str, str]]:
    """Yield mode, object ID and path of each catalog file, and of each submodule at such a path."""
    for line in os.fsdecode(output).split("\0")[:-1]:
        attributes, _, path = line.partition("\t")
        mode, _, name = attributes.split(" ")
        if catalog_folder.is_catalog_file(path[prefix_length:]):
            yield mode, name, path[prefix_length:]


def _folders(paths: Iterable[str]) -> set[str]:
    """Return all folders that contain these files, except the catalog itself."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _nested(path: str, when: str = "") -> NoReturn:
    raise UsageError(
        f"{path} is a separate repository{when}, such as a submodule, and the history of its "
        "files is not in that of the catalog: put the files themselves there."
    )


def _resolve_links(
    links: Mapping[str, str], files: Mapping[str, str], targets: Mapping[str, bytes | str]
) -> dict[str, str]:
    """Return the object IDs that symbolic links stand for, as `catalog.folder` resolves them.

    Links that do not point to catalog files have an empty ID.
    """
    link_targets = ((path, targets[name]) for path, name in links.items())
    return {
        path: files.get(catalog_folder.target_of(path, os.fsdecode(target)), _NO_OBJECT)
        if isinstance(target, bytes)
        else _NO_OBJECT
        for path, target in link_targets
    }


def _read_files(
    repository: Repository, files: Mapping[str, str], paths: Collection[str]
) -> dict[str, bytes | Finding]:
    contents = _read_objects(repository, {files[path] for path in paths if files[path]})
    return {
        path: _to_content(
            path, contents.get(files[path], "a link that leads to no file of the catalog")
        )
        for path in paths
    }


def _to_content(path: str, data: bytes | str) -> bytes | Finding:
    return (
        data
        if isinstance(data, bytes)
        else Finding(path=path, rule="file-unreadable", message=data)
    )


def _read_objects(repository: Repository, object_ids: Collection[str]) -> dict[str, bytes | str]:
    """Return the bytes of each object, or the reason why they are missing.

    Objects larger than a catalog file may be are not read, because they may be huge.
    """
    size_lines, errors = _cat_file(
        repository, object_ids, "--batch-check=%(objectname) %(objectsize)"
    )
    pairs = (line.split(" ") for line in size_lines.decode().splitlines())
    sizes_by_id = {name: int(size) for name, size in pairs if size.isdecimal()}
    objects: dict[str, bytes | str] = dict.fromkeys(object_ids, _missing_reason(errors))
    objects |= {
        name: "more than 1 MiB"
        for name, size in sizes_by_id.items()
        if size > catalog_folder.MAX_FILE_SIZE
    }
    readable = [name for name, size in sizes_by_id.items() if size <= catalog_folder.MAX_FILE_SIZE]
    data, errors = _cat_file(repository, readable, "--batch=%(objectname)")
    start = 0
    for name in readable:
        first = start + len(name) + 1
        start = first + sizes_by_id[name] + 1
        is_whole = (
            len(data) >= start and data[first - len(name) - 1 : first] == f"{name}\n".encode()
        )
        objects[name] = data[first : start - 1] if is_whole else _missing_reason(errors)
    return objects


def _cat_file(
    repository: Repository, object_ids: Collection[str], output_format: str
) -> tuple[bytes, bytes]:
    result = _run_git_in(
        repository,
        "cat-file",
        output_format,
        stdin=b"".join(f"{name}\n".encode() for name in object_ids),
    )
    return result.stdout, result.stderr


def _missing_reason(stderr: bytes) -> str:
    if stderr and b"lazy fetching" not in stderr and b"promisor" not in stderr:
        return f"git cannot read it ({_first_line(stderr)})"
    return (
        "git does not have its content, as in a partial clone: `git fetch --refetch --no-filter`"
        " brings it"
    )


def _object_id(content: bytes | Finding, algorithm: str) -> str:
    """Return the object ID that git gives to a content, or an empty one if it is unreadable."""
    if isinstance(content, Finding):
        return _NO_OBJECT
    return hashlib.new(
        algorithm, b"blob %d\0%b" % (len(content), content), usedforsecurity=False
    ).hexdigest()


def _first_line(stderr: bytes) -> str:
    return next(
        iter(stderr.decode(errors="replace").splitlines()), "it does not say why"
    ).removeprefix("fatal: ")
