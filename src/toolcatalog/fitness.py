"""What a worker of a build must have, wherever it runs: this very program, and the folders that
tasks name, not copies of them.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from toolcatalog import program
from toolcatalog.errors import UsageError
from toolcatalog.looking import BuildPaths
from toolcatalog.system import seals


class WorkerRequirements(NamedTuple):
    """What every worker must have.

    `program` is the digest of this program, `model` that of the sentence model, empty where none is
    wanted; `seen` are folders and files with the inode of each, which tells a shared folder from a
    copy of it; `written` the folders that results are put into; `secret` seals them, so that the
    build takes them for its own.
    """

    program_digest: str
    model_digest: str
    inodes: Mapping[str, int]
    writable_folders: Sequence[str]
    seal_secret: seals.Secret


def worker_requirements(paths: BuildPaths) -> WorkerRequirements:
    """What a build of these places needs of its workers; folders that are not there yet are made."""
    written = [paths.cache, *([paths.site] if paths.site else [])]
    for folder in written:
        folder.mkdir(parents=True, exist_ok=True)
    seen = [paths.catalog, paths.catalog / "catalog.yaml", paths.catalog / "toolkits", *written]
    model = _model_digest() if paths.with_vectors else ""
    inodes = {str(path): _inode(path) for path in seen}
    return WorkerRequirements(
        _program_digest(), model, inodes, [*map(str, written)], seals.get_secret()
    )


def find_unmet_requirement(requirements: WorkerRequirements) -> str:
    """What this process lacks of what a worker needs, as a clause about it; empty where it has
    everything.
    """
    if _program_digest() != requirements.program_digest:
        return (
            "it runs another toolcatalog, Python or library (install the same, and start it again)"
        )
    if requirements.model_digest and _model_digest() != requirements.model_digest:
        return "it does not have the model of the extra `semantic`"
    for path, inode in requirements.inodes.items():
        if _inode(path) != inode:
            return f"it does not see {path}, or something else there"
    for path in requirements.writable_folders:
        try:
            tempfile.TemporaryFile(dir=path).close()
        except OSError as error:
            return f"it cannot write to {path} ({error.strerror})"
    return ""


@cache
def _program_digest() -> str:
    """What this process runs: all is loaded before the digest is taken, so that it means what runs,
    whatever is installed later.
    """
    from toolcatalog import making  # noqa: F401, PLC0415 - it takes a while, and only workers need all of it here

    return program.compute()


def _model_digest() -> str:
    from toolcatalog.search import encoder  # noqa: PLC0415 - it loads numpy

    try:
        return encoder.model_identity()
    except UsageError:
        return ""


def _inode(path: str | Path) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0
