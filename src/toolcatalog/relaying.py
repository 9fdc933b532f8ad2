"""A server's key file, kept in step with the key document in Redis.

One thread of a server, whatever the number of its workers, looks twice a second whether the
document has changed, and writes what is new into the file, from which the keys are read as ever. So
with Redis away the last keys stay in force, over a restart too. Nothing is taken over that takes
something back: a document in which a key of the file is not there, or lives longer (one that was
revoked would be good again), is an older one, or another's. It is refused with a line in the log.
"""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from toolcatalog import keys
from toolcatalog.errors import KeyFileError, ToolcatalogError
from toolcatalog.keeping import KeyFile
from toolcatalog.keys import Key, end_of
from toolcatalog.remote import RemoteKeys

_EVERY = 0.5  # seconds
_NAMED = 3  # keys that a line of the log names
_log = logging.getLogger("toolcatalog.keys")


class Relay(threading.Thread):
    """Follows until the process ends. `look` may be called once before, so that a server has its
    keys when it starts.
    """

    def __init__(self, remote: RemoteKeys, file: Path) -> None:
        super().__init__(name="keys from Redis", daemon=True)
        self._remote = remote
        self._file = KeyFile(file)
        self._taken: bytes | None = None  # the version that is in the file
        self._trouble = ""  # what the log said last

    def run(self) -> None:
        """Look, again and again."""
        while True:
            self.look()
            time.sleep(_EVERY)

    def look(self) -> None:
        """Take over what has changed. What stands in the way is told in the log, once."""
        try:
            if self._taken is None or self._remote.version() != self._taken:
                self._take()
            self._tell("")
        except ToolcatalogError as error:
            self._tell(str(error))

    def _take(self) -> None:
        version, document = self._remote.read_versioned()
        if version is None or document is None:
            raise KeyFileError(
                f"There is no {self._remote}: `toolcatalog keys push --redis URL` puts those "
                "of a file there."
            )
        theirs = keys.read(document, self._remote)
        self._file.change(lambda ours: (self._succeeding(ours, theirs), None))
        self._taken = version
        _log.info("keys taken from %s: %d", self._remote.name, len(theirs))

    def _succeeding(self, ours: bytes | None, theirs: Sequence[Key]) -> bytes:
        """The document that takes the place of the file's. Raises KeyFileError where it would take
        something back.
        """
        before = keys.read(ours, self._file) if ours is not None else ()
        if behind := taken_back(before, theirs):
            named = ", ".join(key.id for key in behind[:_NAMED]) + (
                ", ..." if len(behind) > _NAMED else ""
            )
            mend = f"`toolcatalog keys push {self._file.option} --redis URL` joins both, or move the file away if Redis is right."
            raise KeyFileError(
                f"The {self._remote} is older than the {self._file}, or another's ({named}): {mend}"
            )
        return keys.document(theirs)

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            _log.error("keys stay as they were: %s", trouble)
        elif self._trouble and not trouble:
            _log.info("keys follow %s again", self._remote.name)
        self._trouble = trouble


def taken_back(before: Iterable[Key], after: Iterable[Key]) -> list[Key]:
    """The keys that are no longer there afterwards, or end later than they did: no command does
    that.
    """
    ends = {key.sha256: end_of(key) for key in after}
    return [key for key in before if key.sha256 not in ends or ends[key.sha256] > end_of(key)]


def joined(one: Iterable[Key], other: Iterable[Key]) -> list[Key]:
    """All keys of both, oldest first; of a key that both have, the one that ends earlier."""
    every: dict[str, Key] = {}
    for key in (*one, *other):
        if key.sha256 not in every or end_of(key) < end_of(every[key.sha256]):
            every[key.sha256] = key
    return sorted(every.values(), key=lambda key: key.created)
