"""Key storage: read and change the key document in a file, as a whole.

`keys.redis` has another storage, Redis.

A storage does not know the format of keys. It prevents lost updates when two commands change the
document at once, and it has a name for messages.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from toolcatalog.errors import KeyFileError, remedy
from toolcatalog.system import files

_LOCK_TIMEOUT = 5.0  # seconds to wait for another command that changes the file
_HINT = "or name another with --keys."

T = TypeVar("T")


class KeyStorage(Protocol):
    """The storage of a key document; its text is its name in messages.

    An example is `key document in Redis at host:6379`.
    """

    @property
    def location(self) -> str:
        """The location, such as a path, for the end of a sentence."""
        ...

    @property
    def cli_option(self) -> str:
        """The command line option that names it."""
        ...

    def read(self) -> bytes | None:
        """Return the document; None if there is none yet.

        Raises KeyFileError if it cannot be read.
        """
        ...

    def update(self, transform: Callable[[bytes | None], tuple[bytes, T]]) -> T:
        """Replace the document by the first result of `transform`; return the second.

        The update is atomic: no other change is lost, and `transform` may be called several times.
        Raises KeyFileError if the update fails; nothing has changed then.
        """
        ...


class FileKeyStorage:
    """A file of mode 0600 that is replaced atomically, under a lock."""

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
        """The command line option that names it."""
        return f"--keys {self._path}"

    def read(self) -> bytes | None:
        """Return the document; see `KeyStorage.read`."""
        try:
            return files.read_plain_file(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileError(
                f"The {self} cannot be read ({error.strerror}): {remedy(error)}, {_HINT}"
            ) from None

    def update(self, transform: Callable[[bytes | None], tuple[bytes, T]]) -> T:
        """Replace the document; see `KeyStorage.update`."""
        with self._lock():
            files.remove_temporary_files(self._path.parent, self._path.name)
            data, result = transform(self.read())
            files.write_synced(self._path, data, mode=0o600)
        return result

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the file against other commands that change it; wait for them first."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with files.lock(
                self._path.with_name(f".{self._path.name}.lock"), _LOCK_TIMEOUT
            ) as is_locked:
                if not is_locked:
                    raise KeyFileError(
                        f"Another command is changing the {self}: try again when it is done."
                    )
                yield
        except OSError as error:
            raise KeyFileError(
                f"The {self} cannot be written ({error.strerror}): {remedy(error)}, {_HINT}"
            ) from None
