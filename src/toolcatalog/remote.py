"""Redis: how it is reached, and the key document there. Needs the extra `redis`.

The document is the one that a key file holds, hashes only, in one hash of Redis with two fields:
`document`, and `version`, which is another random word after each change. So whoever follows it
asks for some bytes, and takes no other Redis, or one that was emptied and filled again, for what it
has seen.
"""

import contextlib
import importlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from toolcatalog.errors import KeyFileError, UsageError

_REDIS_KEY = "toolcatalog:keys"
_SCHEMES = ("redis", "rediss")
# of a change, where others keep changing the document: each time one of them gets through
_MAX_ATTEMPTS = 100
_TIMEOUT = 1.0  # seconds for an answer

T = TypeVar("T")


class RedisAddress:
    """Where Redis is: `redis://[[user]:password@]host[:port][/number]`, or `rediss://` for TLS. Its
    text never has the password.

    Raises UsageError where the text is no such address, or the package redis is not there.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self._display = _format_address(parts)
        except ValueError:
            parts = SplitResult("", "", "", "", "")
        if (
            parts.scheme not in _SCHEMES
            or not parts.hostname
            or not (parts.path.strip("/") or "0").isdecimal()
        ):
            raise UsageError(
                "--redis takes redis://host:port, or rediss://host:port for TLS; "
                "user:password@ may stand before the host."
            )
        try:
            importlib.import_module("redis")
        except ImportError:
            raise UsageError(
                "Redis is reached through the package redis: run `pip install "
                "'toolcatalog[redis]'`."
            ) from None
        self.url = url

    def __str__(self) -> str:
        return f"Redis at {self._display}"


def _format_address(parts: SplitResult) -> str:
    number = parts.path.strip("/")
    return f"{parts.hostname}:{parts.port or 6379}" + (f", database {number}" if number else "")


class RedisKeyStorage:
    """The key document in Redis: a `keeping.Place`."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address

    def __str__(self) -> str:
        return f"key document in {self.address}"

    @property
    def location(self) -> str:
        """Redis at host and port."""
        return str(self.address)

    @property
    def cli_option(self) -> str:
        """What names it on the command line, without the password."""
        return "--redis URL"

    def read(self) -> bytes | None:
        """As `keeping.Place` says."""
        return self.read_versioned()[1]

    def read_version(self) -> bytes | None:
        """Which state of the document is there: another after each change, None where there is
        none. Raises KeyFileError.
        """
        with self._connect() as client:
            found: bytes | None = client.hget(_REDIS_KEY, "version")
        return found

    def read_versioned(self) -> tuple[bytes | None, bytes | None]:
        """The version and the document that belongs to it. Raises KeyFileError where Redis does not
        answer.
        """
        with self._connect() as client:
            version, document = client.hmget(_REDIS_KEY, "version", "document")
        return version, document

    def update(self, transform: Callable[[bytes | None], tuple[bytes, T]]) -> T:
        """As `keeping.Place.change` says. A change that came between is seen by Redis itself, and
        `how` is asked again.
        """
        from redis import WatchError  # noqa: PLC0415

        with self._connect() as client, client.pipeline() as pipe:
            for _ in range(_MAX_ATTEMPTS):
                with contextlib.suppress(WatchError):
                    pipe.watch(_REDIS_KEY)
                    data, told = transform(pipe.hget(_REDIS_KEY, "document"))
                    pipe.multi()
                    pipe.hset(
                        _REDIS_KEY, mapping={"document": data, "version": secrets.token_hex(8)}
                    )
                    pipe.execute()
                    return told
        raise KeyFileError(f"Others are changing the {self} all the time: try again.")

    @contextlib.contextmanager
    # the library's types leave open whether an answer is awaited
    def _connect(self) -> Iterator[Any]:
        """A connection for a moment; what goes wrong is one sentence."""
        from redis import Redis, RedisError  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        try:
            with Redis.from_url(
                self.address.url,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
                retry=Retry(NoBackoff(), 0),
            ) as client:
                yield client
        except (RedisError, OSError) as error:
            raise KeyFileError(
                f"{self.address} does not do what is asked ({error}): is it there, and "
                "--redis right?"
            ) from None
