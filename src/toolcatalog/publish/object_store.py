"""Object store client: read, write and list objects by name, with obstore.

The only room that knows the
library obstore (extra `s3`).

A store is named by a URL: `s3://bucket/prefix`, `gs://`, `az://`, or `file:///folder` for a disk
that several machines see. Where an S3 is and what it takes to use it comes from the usual
environment (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_ALLOW_HTTP), never from the command line. A request that fails because of the network or of the
store is tried four times more, within about three seconds, before it counts as failed.
"""

import contextlib
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from toolcatalog.errors import UsageError

if TYPE_CHECKING:
    from obstore import Attributes, PutMode
    from obstore.store import ObjectStore, RetryConfig

SCHEMES = ("s3", "gs", "az", "file")
_RETRY: "RetryConfig" = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=200),
        "max_backoff": timedelta(seconds=2),
        "base": 2,
    },
}
_READ_SIZE = 1 << 16  # bytes of an answer that are taken at a time
# a pipe is opened at once, and only then seen to be one
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_REASON_LENGTH = 160  # characters of what a store has to say
_TASKS_PER_THREAD = 2  # tasks begun for each thread before the first result is taken
# bytes of the tasks that are under way or wait to be taken, however many threads there are
_MAX_BYTES_IN_FLIGHT = 1 << 24

Task = TypeVar("Task")
Result = TypeVar("Result")


class StoreError(UsageError):
    """The store cannot be used just now, or not as it is."""


class ObjectNotFound(StoreError):
    """There is no object of this name."""


class TooLarge(StoreError):
    """The object has more bytes than it can have."""


class ObjectConflict(StoreError):
    """Another object lies there than the one that was to be replaced."""


class ObjectTag(NamedTuple):
    """What tells one content of an object from another: an ETag or a version, as far as the store
    has them.
    """

    etag: str | None
    version: str | None


class ObjectContent(NamedTuple):
    """An object as it was read."""

    data: bytes
    tag: ObjectTag


class ObjectInfo(NamedTuple):
    """An object as it is listed: its size in bytes and when it was written."""

    size: int
    modified: datetime


class ObjectStorage:
    """The objects below a URL. May be used by several threads at once. Every fault is a StoreError
    of one sentence.
    """

    def __init__(self, url: str) -> None:
        """Take the URL; nothing is asked of the store yet. Raises StoreError where it names none,
        or the extra is missing.
        """
        self.url = url.rstrip("/")
        if url.partition("://")[0] not in SCHEMES:
            raise StoreError(
                f"{url} is no address of a store: give one like s3://bucket/prefix "
                f"({', '.join(SCHEMES)})."
            )
        try:
            from obstore import store  # noqa: PLC0415 - it is there with the extra only
        except ImportError:
            raise StoreError(
                "An object store is used through the package obstore: run `pip install "
                "'toolcatalog[s3]'`."
            ) from None
        with self._translate_errors("opened"):
            if url.startswith("file://"):
                local = store.LocalStore.from_url(url, mkdir=True)
                self._store: ObjectStore = local
                self._folder = local.prefix
            else:
                self._folder = None
                self._store = store.from_url(url, retry_config=_RETRY)

    def read(
        self, path: str, max_bytes: int, unless_tag: ObjectTag | None = None
    ) -> ObjectContent | None:
        """An object of at most so many bytes; None where it is still the one with the tag `unless`.

        Whatever length the store claims, not more than `most` bytes are taken. Raises ObjectNotFound where
        there is none, TooLarge where it has more bytes, StoreError where the store does not do what
        is asked.
        """
        from obstore import exceptions  # noqa: PLC0415

        if self._folder:
            with self._translate_errors(f"read ({path})"):
                return self._read_file(self._folder / path, path, max_bytes, unless_tag)
        try:
            with self._translate_errors(f"read ({path})"):
                got = self._store.get(
                    path,
                    options={"if_none_match": unless_tag.etag}
                    if unless_tag and unless_tag.etag
                    else None,
                )
                data = bytearray()
                for piece in got.stream(_READ_SIZE):
                    data += memoryview(piece)
                    if len(data) > max_bytes:
                        raise self._too_large(path, max_bytes)
                return ObjectContent(bytes(data), ObjectTag(got.meta["e_tag"], got.meta["version"]))
        except exceptions.NotModifiedError:
            return None

    def _read_file(
        self, file: Path, path: str, most: int, unless: ObjectTag | None
    ) -> ObjectContent | None:
        """The same of a folder, where anything may lie: opening a pipe would never end."""
        with open(os.open(file, os.O_RDONLY | _NO_WAITING), "rb") as source:
            about = os.fstat(source.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise StoreError(
                    f"{path} in {self.url} is not a regular file: remove it, then publish again."
                )
            tag = ObjectTag(f"{about.st_ino:x}-{about.st_mtime_ns:x}-{about.st_size:x}", None)
            if tag == unless:
                return None
            data = source.read(most + 1)
        if len(data) > most:
            raise self._too_large(path, most)
        return ObjectContent(data, tag)

    def _too_large(self, path: str, most: int) -> TooLarge:
        return TooLarge(f"{path} in {self.url} has more than the {most:,} bytes that it can have.")

    def write(self, path: str, data: bytes, cache_control: str) -> None:
        """Put an object, in one step, with its `Cache-Control`."""
        with self._translate_errors(f"written to ({path})"):
            self._put(path, data, cache_control, "overwrite")

    def replace(
        self, path: str, data: bytes, cache_control: str, expected_tag: ObjectTag | None
    ) -> None:
        """Put an object in the place of the one with the tag `before`, or of none. Raises ObjectConflict
        where another is there by now.

        A store that knows no conditions just takes it.
        """
        from obstore import exceptions  # noqa: PLC0415

        known = {
            key: value
            for key, value in zip(("e_tag", "version"), expected_tag or (), strict=False)
            if value
        }
        try:
            with self._translate_errors(f"written to ({path})"):
                self._put(path, data, cache_control, known if expected_tag else "create")  # type: ignore[arg-type] # some of its two keys
        except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
            raise ObjectConflict(
                f"{path} in {self.url} was changed by somebody else meanwhile: see what is "
                "there now, and run this again."
            ) from None
        # a TypeError: it wants a version and has none
        except (NotImplementedError, exceptions.NotSupportedError, TypeError):
            self.write(path, data, cache_control)

    def _put(self, path: str, data: bytes, cache_control: str, mode: "PutMode") -> None:
        from obstore.store import LocalStore  # noqa: PLC0415

        about: Attributes | None = (
            None if isinstance(self._store, LocalStore) else {"Cache-Control": cache_control}
        )
        self._store.put(path, data, attributes=about, mode=mode, use_multipart=False)

    def list_folder(self, prefix: str) -> dict[str, ObjectInfo]:
        """All objects whose names begin with the folder `prefix`, by name."""
        with self._translate_errors("listed"):
            found = [entry for page in self._store.list(prefix, chunk_size=1000) for entry in page]
        return {entry["path"]: ObjectInfo(entry["size"], entry["last_modified"]) for entry in found}

    def delete(self, paths: list[str]) -> None:
        """Remove objects; one that is not there is no fault."""
        with self._translate_errors("deleted from"):
            for start in range(0, len(paths), 1000):
                with contextlib.suppress(FileNotFoundError):
                    self._store.delete(paths[start : start + 1000])

    @contextlib.contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        """What the library raises, as one sentence. What it has a kind of its own for that matters
        to a caller goes through.
        """
        from obstore import exceptions  # noqa: PLC0415

        try:
            yield
        except (
            exceptions.PreconditionError,
            exceptions.AlreadyExistsError,
            exceptions.NotModifiedError,
        ):
            raise
        except exceptions.NotSupportedError:
            raise
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise StoreError(
                    f"{self.url} cannot be {action}: there is no such bucket."
                ) from None
            raise ObjectNotFound(
                f"{self.url} cannot be {action}: there is no such object."
            ) from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise StoreError(f"{self.url} cannot be {action}: {_describe_error(error)}") from None


def _describe_error(error: Exception) -> str:
    """What is wrong, and what to do, from what the library says: many lines, of which the end of
    the first tells most.
    """
    text = str(error)
    if "builder error" in text:
        return "plain http is refused unless AWS_ALLOW_HTTP=true is set."
    if "169.254.169.254" in text:
        return "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where the machine has a role."
    said = (text.splitlines() or [""])[0].rpartition(" - ")[2].partition(": <")[0]
    said = re.sub("^Generic .*? error: ", "", said)[:_MAX_REASON_LENGTH].strip()
    # a store may answer anything, and this goes to a log and to terminals
    said = "".join(character if character.isprintable() else "?" for character in said)
    if re.search(r"\b40[13]\b|denied", text):
        return f"it refuses these credentials ({said}); who publishes needs to list, get and put, who follows needs to get."
    return f"{said.rstrip('.')}."


def run_parallel(
    work: Callable[[Task], Result],
    tasks: Iterable[Task],
    jobs: int,
    size: Callable[[Task], int],
) -> Iterator[Result]:
    """The results of the tasks, in their order, by so many threads. Tasks are taken as they are
    begun, so few results wait at a time.

    `size` is how many bytes a task holds: of all that have begun and whose results were not yet
    taken these are at most 16 MiB, or what a single task has.
    """
    waiting: deque[tuple[Future[Result], int]] = deque()
    under_way = 0
    queue: SimpleQueue[tuple[Future[Result], Task] | None] = SimpleQueue()
    # Python waits for the threads of its own pools before it ends, and a store may never answer
    pool: list[threading.Thread] = []
    try:
        for task in tasks:
            while waiting and (
                len(waiting) >= jobs * _TASKS_PER_THREAD
                or under_way + size(task) > _MAX_BYTES_IN_FLIGHT
            ):
                first, taken = waiting.popleft()
                under_way -= taken
                yield first.result()
            future: Future[Result] = Future()
            waiting.append((future, size(task)))
            queue.put((future, task))
            if len(pool) < jobs:
                arguments = (work, queue)
                thread = threading.Thread(target=_work, args=arguments, name="objects", daemon=True)
                thread.start()
                pool.append(thread)
            under_way += size(task)
        while waiting:
            yield waiting.popleft()[0].result()
    finally:
        for future, _ in waiting:
            future.cancel()
        for _ in pool:
            queue.put(None)
        for thread in pool:
            thread.join()


def _work(
    work: Callable[[Task], Result], queue: "SimpleQueue[tuple[Future[Result], Task] | None]"
) -> None:
    """Do tasks until told to end."""
    while item := queue.get():
        future, task = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work(task))
            except BaseException as error:  # noqa: BLE001 - for whoever takes the result
                future.set_exception(error)
        del item, future, task  # else they stay until the next one comes
