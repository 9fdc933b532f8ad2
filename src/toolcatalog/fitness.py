"""What a worker of a build must have, wherever it runs: this very program, and the folders that
tasks name, not copies of them.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from toolcatalog import program, seals
from toolcatalog.errors import UsageError
from toolcatalog.looking import Places


class Needs(NamedTuple):
    """What every worker must have.

    `program` is the digest of this program, `model` that of the sentence model, empty where none is
    wanted; `seen` are folders and files with the inode of each, which tells a shared folder from a
    copy of it; `written` the folders that results are put into; `secret` seals them, so that the
    build takes them for its own.
    """

    program: str
    model: str
    seen: Mapping[str, int]
    written: Sequence[str]
    secret: seals.Secret


def needs(places: Places) -> Needs:
    """What a build of these places needs of its workers; folders that are not there yet are made."""
    written = [places.cache, *([places.site] if places.site else [])]
    for folder in written:
        folder.mkdir(parents=True, exist_ok=True)
    seen = [places.catalog, places.catalog / "catalog.yaml", places.catalog / "toolkits", *written]
    model = _model() if places.vectors else ""
    inodes = {str(path): _inode(path) for path in seen}
    return Needs(_program(), model, inodes, [*map(str, written)], seals.secret())


def lack(needs: Needs) -> str:
    """What this process lacks of what a worker needs, as a clause about it; empty where it has
    everything.
    """
    if _program() != needs.program:
        return (
            "it runs another toolcatalog, Python or library (install the same, and start it again)"
        )
    if needs.model and _model() != needs.model:
        return "it does not have the model of the extra `semantic`"
    for path, inode in needs.seen.items():
        if _inode(path) != inode:
            return f"it does not see {path}, or something else there"
    for path in needs.written:
        try:
            tempfile.TemporaryFile(dir=path).close()
        except OSError as error:
            return f"it cannot write to {path} ({error.strerror})"
    return ""


@cache
def _program() -> str:
    """What this process runs: all is loaded before the digest is taken, so that it means what runs,
    whatever is installed later.
    """
    from toolcatalog import making  # noqa: F401, PLC0415 - it takes a while, and only workers need all of it here

    return program.fingerprint()


def _model() -> str:
    from toolcatalog import meaning  # noqa: PLC0415 - it loads numpy

    try:
        return meaning.identity()
    except UsageError:
        return ""


def _inode(path: str | Path) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0
