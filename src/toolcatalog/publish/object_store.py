"""Object store client: read, write and list objects by name, with obstore.

Only this module uses the library obstore (extra `s3`).

A URL names a store: `s3://bucket/prefix`, `gs://`, `az://`, or `file:///folder` for a disk that
several machines share. The endpoint and credentials of S3 come from the usual environment variables
(AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ALLOW_HTTP), or from
the profiles in ~/.aws with the extra `aws`; never from the command line. A request that fails
because of the network or the store is retried four times within about three seconds.
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

try:
    from obstore import exceptions, store
except ImportError:  # an optional extra
    _IS_INSTALLED = False
else:
    _IS_INSTALLED = True

if TYPE_CHECKING:
    from obstore import Attributes, PutMode
    from obstore.auth.boto3 import Boto3CredentialProvider
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
_READ_SIZE = 1 << 16  # bytes of a response that are read at a time
# opening a pipe must not block; its type is checked after opening
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_REASON_LENGTH = 160  # characters of a store's message
_TASKS_PER_THREAD = 2  # tasks in flight per thread
# bytes of all tasks that are running or whose results wait, for any number of threads
_MAX_BYTES_IN_FLIGHT = 1 << 24

Task = TypeVar("Task")
Result = TypeVar("Result")


class StoreError(UsageError):
    """The store cannot be used now, or not in this configuration."""


class ObjectNotFound(StoreError):
    """There is no object with this name."""


class TooLarge(StoreError):
    """The object is larger than allowed."""


class ObjectConflict(StoreError):
    """The object to replace has changed."""


class ObjectTag(NamedTuple):
    """The identity of an object's content: an ETag or a version, as far as the store has them."""

    etag: str | None
    version: str | None


class ObjectContent(NamedTuple):
    """The content of an object, and its tag."""

    data: bytes
    tag: ObjectTag


class ObjectInfo(NamedTuple):
    """A listed object: its size in bytes and when it was written."""

    size: int
    modified: datetime


class ObjectStorage:
    """The objects below a URL; thread-safe. Every error is a StoreError with one sentence."""

    def __init__(self, url: str) -> None:
        """Create a client; sends no request yet.

        Raises StoreError if the URL names no store, or if the extra is not installed.
        """
        self.url = url.rstrip("/")
        if url.partition("://")[0] not in SCHEMES:
            raise StoreError(
                f"{url} is not the URL of an object store: give one like s3://bucket/prefix "
                f"({', '.join(SCHEMES)})."
            )
        if not _IS_INSTALLED:
            raise StoreError(
                "An object store needs the package obstore: run `pip install 'toolcatalog[s3]'`."
            )
        with self._translate_errors("opened"):
            if url.startswith("file://"):
                local = store.LocalStore.from_url(url, mkdir=True)
                self._store: ObjectStore = local
                self._folder = local.prefix
            else:
                self._folder = None
                provider = _find_credentials() if url.startswith("s3://") else None
                self._store = (
                    store.from_url(url, retry_config=_RETRY, credential_provider=provider)
                    if provider
                    else store.from_url(url, retry_config=_RETRY)
                )

    def read(
        self, path: str, max_bytes: int, unless_tag: ObjectTag | None = None
    ) -> ObjectContent | None:
        """Read an object of at most `max_bytes`; return None if it still has the tag `unless_tag`.

        No more than `max_bytes` are read, whatever length the store states. Raises ObjectNotFound
        if the object is missing, TooLarge if it has more bytes, and StoreError if the request
        fails.
        """
        if self._folder:
            with self._translate_errors(f"read ({path})"):
                return self._read_file(self._folder / path, path, max_bytes, unless_tag)
        try:
            with self._translate_errors(f"read ({path})"):
                response = self._store.get(
                    path,
                    options={"if_none_match": unless_tag.etag}
                    if unless_tag and unless_tag.etag
                    else None,
                )
                data = bytearray()
                for chunk in response.stream(_READ_SIZE):
                    data += memoryview(chunk)
                    if len(data) > max_bytes:
                        raise self._too_large(path, max_bytes)
                return ObjectContent(
                    bytes(data), ObjectTag(response.meta["e_tag"], response.meta["version"])
                )
        except exceptions.NotModifiedError:
            return None

    def _read_file(
        self, file: Path, path: str, max_bytes: int, unless_tag: ObjectTag | None
    ) -> ObjectContent | None:
        """Read an object of a folder, which may be any kind of file: opening a pipe would block."""
        with open(os.open(file, os.O_RDONLY | _NO_WAITING), "rb") as source:
            status = os.fstat(source.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(
                    f"{path} in {self.url} is not a regular file: remove it, then publish again."
                )
            tag = ObjectTag(f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}", None)
            if tag == unless_tag:
                return None
            data = source.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise self._too_large(path, max_bytes)
        return ObjectContent(data, tag)

    def _too_large(self, path: str, max_bytes: int) -> TooLarge:
        return TooLarge(
            f"{path} in {self.url} has more than the {max_bytes:,} bytes that it can have."
        )

    def write(self, path: str, data: bytes, cache_control: str) -> None:
        """Write an object in one step, with its `Cache-Control`."""
        with self._translate_errors(f"written to ({path})"):
            self._put(path, data, cache_control, "overwrite")

    def replace(
        self, path: str, data: bytes, cache_control: str, expected_tag: ObjectTag | None
    ) -> None:
        """Replace the object with the tag `expected_tag`, or create it if that is None.

        Raises ObjectConflict if another object is there by now. Stores without conditional writes
        just overwrite.
        """
        tag = {
            key: value
            for key, value in zip(("e_tag", "version"), expected_tag or (), strict=False)
            if value
        }
        try:
            with self._translate_errors(f"written to ({path})"):
                mode = tag if expected_tag else "create"
                self._put(path, data, cache_control, mode)  # type: ignore[arg-type] # some keys
        except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
            raise ObjectConflict(
                f"{path} in {self.url} was changed by someone else meanwhile: see what is "
                "there now, and run this again."
            ) from None
        # TypeError: the store needs a version and has none
        except (NotImplementedError, exceptions.NotSupportedError, TypeError):
            self.write(path, data, cache_control)

    def _put(self, path: str, data: bytes, cache_control: str, mode: "PutMode") -> None:
        attributes: Attributes | None = (
            None if isinstance(self._store, store.LocalStore) else {"Cache-Control": cache_control}
        )
        self._store.put(path, data, attributes=attributes, mode=mode, use_multipart=False)

    def list_folder(self, prefix: str) -> dict[str, ObjectInfo]:
        """Return all objects in the folder `prefix` by name."""
        with self._translate_errors("listed"):
            entries = [
                entry for page in self._store.list(prefix, chunk_size=1000) for entry in page
            ]
        return {
            entry["path"]: ObjectInfo(entry["size"], entry["last_modified"]) for entry in entries
        }

    def delete(self, paths: list[str]) -> None:
        """Remove objects; missing ones are no error."""
        with self._translate_errors("deleted from"):
            for start in range(0, len(paths), 1000):
                with contextlib.suppress(FileNotFoundError):
                    self._store.delete(paths[start : start + 1000])

    @contextlib.contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        """Turn the library's errors into StoreError with one sentence.

        Errors that matter to the calling method pass unchanged.
        """
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
    """Return what is wrong and how to fix it, from a message of the library.

    Such a message has many lines; the end of the first is the most useful.
    """
    text = str(error)
    if "builder error" in text:
        return "plain http is refused unless AWS_ALLOW_HTTP=true is set."
    if "169.254.169.254" in text:
        return (
            "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run"
            " where the machine has a role."
        )
    reason = (text.splitlines() or [""])[0].rpartition(" - ")[2].partition(": <")[0]
    reason = re.sub("^Generic .*? error: ", "", reason)[:_MAX_REASON_LENGTH].strip()
    # a store may send anything, and this text goes to logs and terminals
    reason = "".join(character if character.isprintable() else "?" for character in reason)
    if re.search(r"\b40[13]\b|denied", text):
        return (
            f"it refuses these credentials ({reason}); a publisher needs list, get and put; a "
            f"server needs get."
        )
    return f"{reason.rstrip('.')}."


def run_parallel(
    work: Callable[[Task], Result],
    tasks: Iterable[Task],
    jobs: int,
    size: Callable[[Task], int],
) -> Iterator[Result]:
    """Yield the results of the tasks, in order, computed by `jobs` threads.

    Tasks are consumed lazily, so few results wait at a time. `size` returns how many bytes a task
    needs: the tasks that were started and whose results were not consumed yet need at most 16 MiB,
    or as much as a single larger task.
    """
    pending: deque[tuple[Future[Result], int]] = deque()
    bytes_in_flight = 0
    queue: SimpleQueue[tuple[Future[Result], Task] | None] = SimpleQueue()
    # No ThreadPoolExecutor: Python waits for its threads at exit, and a store may never respond.
    pool: list[threading.Thread] = []
    try:
        for task in tasks:
            while pending and (
                len(pending) >= jobs * _TASKS_PER_THREAD
                or bytes_in_flight + size(task) > _MAX_BYTES_IN_FLIGHT
            ):
                first, size_in_flight = pending.popleft()
                bytes_in_flight -= size_in_flight
                yield first.result()
            future: Future[Result] = Future()
            pending.append((future, size(task)))
            queue.put((future, task))
            if len(pool) < jobs:
                arguments = (work, queue)
                thread = threading.Thread(target=_work, args=arguments, name="objects", daemon=True)
                thread.start()
                pool.append(thread)
            bytes_in_flight += size(task)
        while pending:
            yield pending.popleft()[0].result()
    finally:
        for future, _ in pending:
            future.cancel()
        for _ in pool:
            queue.put(None)
        for thread in pool:
            thread.join()


def _find_credentials() -> "Boto3CredentialProvider | None":
    """Return a provider of the credentials in ~/.aws; None if there are none.

    Keys in the environment take precedence. Raises UsageError if AWS_PROFILE is set and the package
    boto3 is not installed, or if the files cannot be used.
    """
    profile = os.environ.get("AWS_PROFILE")
    has_files = any(_find_aws_file(name).is_file() for name in ("config", "credentials"))
    if os.environ.get("AWS_ACCESS_KEY_ID") or not (profile or has_files):
        return None
    try:
        from toolcatalog.publish import aws_credentials  # noqa: PLC0415 - an optional extra
    except ImportError:
        if profile is None:
            return None
        raise UsageError(
            "AWS_PROFILE needs the package boto3: run `pip install 'toolcatalog[aws]'`."
        ) from None
    return aws_credentials.find_credentials()


def _find_aws_file(name: str) -> Path:
    """Return the path of the AWS file `config` or `credentials`."""
    variable = "AWS_CONFIG_FILE" if name == "config" else "AWS_SHARED_CREDENTIALS_FILE"
    return Path(os.environ.get(variable) or Path("~/.aws").expanduser() / name)


def _work(
    work: Callable[[Task], Result], queue: "SimpleQueue[tuple[Future[Result], Task] | None]"
) -> None:
    """Run tasks until the queue has None."""
    while item := queue.get():
        future, task = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work(task))
            except BaseException as error:  # noqa: BLE001 - raised again by result()
                future.set_exception(error)
        del item, future, task  # do not keep them alive while waiting for the next item
