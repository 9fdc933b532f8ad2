"""Key storage: read and change the key document in a file, as a whole.

`remote` has another, Redis.

A place knows nothing of keys. It knows how two commands that change it at once do not lose
anything, and what it is called in a sentence.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from toolcatalog.errors import KeyFileError, remedy
from toolcatalog.system import files

_LOCK_TIMEOUT = 5.0  # seconds that a command waits for another one to be done with the file
_HINT = "or name another with --keys."

T = TypeVar("T")


class KeyStorage(Protocol):
    """Where a document is kept. Its text is what it is called: `the key document in Redis at
    host:6379`.
    """

    @property
    def location(self) -> str:
        """Which place of its kind, for the end of a sentence: a path."""
        ...

    @property
    def cli_option(self) -> str:
        """What names it on the command line."""
        ...

    def read(self) -> bytes | None:
        """The document, None where there is none yet. Raises KeyFileError where the place cannot be
        read.
        """
        ...

    def update(self, transform: Callable[[bytes | None], tuple[bytes, T]]) -> T:
        """Put what `how` makes of the document in its place, and tell what else `how` gives. Nobody
        else's change comes between.

        `how` may be called several times. Raises KeyFileError where that cannot be done; nothing
        has changed then.
        """
        ...


class FileKeyStorage:
    """A file of mode 0600, replaced in one step. Commands wait for one another."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return f"key file {self._path}"

    @property
    def location(self) -> str:
        """The path."""
        return str(self._path)

    @property
    def cli_option(self) -> str:
        """What names it on the command line."""
        return f"--keys {self._path}"

    def read(self) -> bytes | None:
        """As `Place.read` says."""
        try:
            return files.read_plain_file(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileError(
                f"The {self} cannot be read ({error.strerror}): {remedy(error)}, {_HINT}"
            ) from None

    def update(self, transform: Callable[[bytes | None], tuple[bytes, T]]) -> T:
        """As `Place` says."""
        with self._lock():
            files.remove_temporary_files(self._path.parent, self._path.name)
            data, told = transform(self.read())
            files.write_synced(self._path, data, mode=0o600)
        return told

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the file against other commands that change it, after those that are at it already."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with files.lock(
                self._path.with_name(f".{self._path.name}.lock"), _LOCK_TIMEOUT
            ) as got_it:
                if not got_it:
                    raise KeyFileError(
                        f"Another command is changing the {self}: try again when it is done."
                    )
                yield
        except OSError as error:
            raise KeyFileError(
                f"The {self} cannot be written ({error.strerror}): {remedy(error)}, {_HINT}"
            ) from None
