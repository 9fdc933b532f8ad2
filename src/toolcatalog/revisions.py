"""Git, at the edge: which files a catalog had at a revision, which it has now, and their bytes.

Git only reads its own objects here. It is never asked about the working tree, and it fetches
nothing, so whatever a repository's configuration or attributes may name is not run: no hook,
filter, text conversion or external diff, no monitor of the file system, no transport. What the
working tree holds is read by `tree`, like every catalog, and given the names that git would give
it.
"""

import hashlib
import os
import posixpath
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from toolcatalog import names, tree
from toolcatalog.errors import Finding, UsageError

_QUIET = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "--no-pager",
    "--literal-pathspecs",
)
_ENVIRONMENT = {
    # a partial clone would fetch what it lacks, through a program that its configuration names
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# what git gives to hooks, for its own folder
_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_LINK, _ABSENT = "120000", ""
_KNOWN = 2000  # names of revisions among which the nearest is looked for

Read = Callable[[Collection[str]], Mapping[str, bytes | Finding]]


class Repository(NamedTuple):
    """The repository that a catalog lies in: its top folder, where in it the catalog is
    (`sub/catalog/`, or empty), its kind of names.
    """

    catalog: Path
    top: str
    inside: str
    algorithm: str


class Files(NamedTuple):
    """The files of a catalog at one time: how that is called, what each file's content is named,
    and how contents are read.

    Paths are relative to the catalog. Two equal names are equal contents; an empty name is equal to
    none. Reading gives the bytes, or why there are none.
    """

    title: str
    named: Mapping[str, str]
    read: Read


def repository(catalog: Path) -> Repository:
    """The repository that a catalog lies in. Raises UsageError where there is no such folder, no
    git, or no repository.
    """
    if not catalog.is_dir():
        raise UsageError(f"No catalog at {catalog}: name its folder with --catalog.")
    done = _git(catalog, "rev-parse", "--show-toplevel", "--show-prefix", "--show-object-format")
    if done.returncode:
        _no_repository(catalog, done.stderr)
    top, inside, algorithm = os.fsdecode(done.stdout).rsplit("\n", 3)[:3]
    return Repository(catalog, top, inside, algorithm)


def commit(repository: Repository, revision: str) -> str:
    """The full name of the commit that a revision means. Raises UsageError, with what to do, where
    git does not know it.
    """
    found = _commit(repository, revision)
    if found is None:
        _unknown(repository, revision)
    return found


def fork(repository: Repository, revision: str) -> str:
    """The commit at which the work that is checked out left a revision: what came there later is no
    change of ours.

    The revision itself where that cannot be told, as in a shallow clone. Raises UsageError as
    `commit` does.
    """
    base = commit(repository, revision)
    done = _git(repository.catalog, "merge-base", base, "HEAD")
    return base if done.returncode else os.fsdecode(done.stdout).strip()


def at(repository: Repository, commit: str, title: str) -> Files:
    """The files of the catalog at a commit. Raises UsageError where git cannot list them."""
    done = _git(
        repository.catalog,
        "ls-tree",
        "-r",
        "-z",
        "--full-tree",
        "--end-of-options",
        commit,
        *filter(None, [repository.inside]),
    )
    if done.returncode:
        raise UsageError(
            f"Git cannot list the files of {title} ({_first_line(done.stderr)}): try `git "
            "fsck`, or clone anew."
        )
    blobs = [*_blobs(done.stdout, len(repository.inside))]
    files = {path: name for path, name, is_link in blobs if not is_link}
    links = {path: name for path, name, is_link in blobs if is_link}
    if links:
        files |= _followed(links, files, _contents(repository, links.values()))
    return Files(title, files, lambda paths: _read(repository, files, paths))


def now(repository: Repository, title: str = "the working tree") -> Files:
    """The files of the catalog as they lie in its folder, whether git knows them or not. Raises
    UsageError where a folder is unreadable.
    """
    root = repository.catalog
    paths, problems = tree.scan(root)
    for problem in problems:
        raise UsageError(f"{problem.path} {problem.message}: {problem.help}.")
    named = {path: _name(tree.content(root, path), repository.algorithm) for path in paths}
    return Files(title, named, lambda paths: {path: tree.content(root, path) for path in paths})


def _git(folder: Path, *arguments: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run git to its end in a folder. Raises UsageError where there is none."""
    environment = {
        name: value for name, value in os.environ.items() if name not in _HOOKS
    } | _ENVIRONMENT
    command = ["git", *_QUIET, "-C", str(folder), *arguments]
    try:
        return subprocess.run(  # noqa: S603
            command, input=given, capture_output=True, env=environment, check=False
        )
    except FileNotFoundError:
        raise UsageError(
            "There is no git here, and revisions cannot be read without it: install git, or "
            "add it to PATH."
        ) from None
    except OSError as error:
        raise UsageError(
            f"Git cannot be started ({error.strerror}): mend the `git` that PATH finds first."
        ) from None


def _no_repository(catalog: Path, said: bytes) -> NoReturn:
    if b"dubious ownership" in said:
        advice = f"run `git config --global --add safe.directory {catalog.resolve()}`, with the top folder of the repository"
        raise UsageError(
            f"Git does not read the repository of {catalog}, because it belongs to another "
            f"user: {advice}."
        )
    if b"not a git repository" in said:
        raise UsageError(
            f"{catalog} is in no git repository, so it has no revisions: name one that is "
            "with --catalog, or `git init`."
        )
    raise UsageError(
        f"Git cannot read the repository of {catalog} ({_first_line(said)}): name the "
        "catalog of a clone with --catalog."
    )


def _commit(repository: Repository, revision: str) -> str | None:
    if not revision or revision.startswith("-"):  # git would take it for an option
        return None
    done = _git(
        repository.catalog,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{revision}^{{commit}}",
    )
    return None if done.returncode else os.fsdecode(done.stdout).strip()


def _unknown(repository: Repository, revision: str) -> NoReturn:
    def said(*arguments: str) -> str:
        return os.fsdecode(_git(repository.catalog, *arguments).stdout).strip()

    if not said("rev-list", "--all", "--max-count=1"):
        raise UsageError(
            f"The git repository in {repository.top} has no commits yet: make the first with "
            "`git commit`."
        )
    if said("rev-parse", "--is-shallow-repository") == "true":
        advice = (
            "`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout, brings all of it"
        )
        raise UsageError(
            f"Git does not know the revision `{revision}` in {repository.top}, a clone "
            f"without its whole history: {advice}."
        )
    known = said(
        "for-each-ref", f"--count={_KNOWN}", "--sort=-creatordate", "--format=%(refname:short)"
    ).splitlines()
    near = names.nearest(revision, known)
    advice = (
        f"did you mean `{near[0]}`?"
        if near
        else "`git branch --all` and `git tag` list names, and `git fetch` brings new ones."
    )
    raise UsageError(f"Git knows no revision `{revision}` in {repository.top}: {advice}")


def _blobs(listed: bytes, skipped: int) -> Iterator[tuple[str, str, bool]]:
    """Path, name, and whether it is a link, of each file that is data of a catalog; no submodules."""
    for line in os.fsdecode(listed).split("\0")[:-1]:
        about, _, path = line.partition("\t")
        mode, kind, name = about.split(" ")
        if kind == "blob" and tree.is_data(path[skipped:]):
            yield path[skipped:], name, mode == _LINK


def _followed(
    links: Mapping[str, str], files: Mapping[str, str], targets: Mapping[str, bytes | str]
) -> dict[str, str]:
    """What links to files of the catalog stand for, as `tree` follows them; those that lead
    elsewhere have no content.
    """
    found = {}
    for path, name in links.items():
        target = targets[name]
        leads = (
            posixpath.normpath(posixpath.join(posixpath.dirname(path), os.fsdecode(target)))
            if isinstance(target, bytes)
            else ""
        )
        found[path] = files.get(leads, _ABSENT)
    return found


def _read(
    repository: Repository, files: Mapping[str, str], paths: Collection[str]
) -> dict[str, bytes | Finding]:
    contents = _contents(repository, {files[path] for path in paths if files[path]})
    return {
        path: _content(
            path, contents.get(files[path], "a link that leads to no file of the catalog")
        )
        for path in paths
    }


def _content(path: str, found: bytes | str) -> bytes | Finding:
    return (
        found
        if isinstance(found, bytes)
        else Finding(path=path, rule="file-unreadable", message=found)
    )


def _contents(repository: Repository, names: Collection[str]) -> dict[str, bytes | str]:
    """The bytes that these names stand for, or why there are none. None are read that no catalog
    may have: they may be huge.
    """
    sizes, said = _asked(repository, names, "--batch-check=%(objectname) %(objectsize)")
    pairs = (line.split(" ") for line in sizes.decode().splitlines())
    known = {name: int(size) for name, size in pairs if size.isdecimal()}
    found: dict[str, bytes | str] = dict.fromkeys(names, _absent(said))
    found |= {name: "more than 1 MiB" for name, size in known.items() if size > tree.LARGEST}
    wanted = [name for name, size in known.items() if size <= tree.LARGEST]
    data, said = _asked(repository, wanted, "--batch=%(objectname)")
    start = 0
    for name in wanted:
        first = start + len(name) + 1
        start = first + known[name] + 1
        is_whole = (
            len(data) >= start and data[first - len(name) - 1 : first] == f"{name}\n".encode()
        )
        found[name] = data[first : start - 1] if is_whole else _absent(said)
    return found


def _asked(repository: Repository, names: Collection[str], form: str) -> tuple[bytes, bytes]:
    done = _git(
        repository.catalog, "cat-file", form, given=b"".join(f"{name}\n".encode() for name in names)
    )
    return done.stdout, done.stderr


def _absent(said: bytes) -> str:
    if said and b"lazy fetching" not in said and b"promisor" not in said:
        return f"git cannot read it ({_first_line(said)})"
    return "git does not have its content, as in a partial clone: `git fetch --refetch --no-filter` brings it"


def _name(content: bytes | Finding, algorithm: str) -> str:
    """The name that git gives to a content; none where it cannot be read."""
    if isinstance(content, Finding):
        return _ABSENT
    return hashlib.new(
        algorithm, b"blob %d\0%b" % (len(content), content), usedforsecurity=False
    ).hexdigest()


def _first_line(said: bytes) -> str:
    return next(
        iter(said.decode(errors="replace").splitlines()), "it does not say why"
    ).removeprefix("fatal: ")
