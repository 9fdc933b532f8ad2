"""Connections to Redis: one server, a primary that Sentinel names, or a cluster.

Needs the extra `redis`. The URLs are those of the library `limits`:

    redis://[[user]:password@]host[:port][/number]          rediss:// for TLS
    redis+sentinel://[[user]:password@]host[:port],host[:port]/service[/number]
    redis+cluster://[[user]:password@]host[:port],host[:port]

The user and the password are those of the Redis servers, not of Sentinel. A query has options of
the library redis, such as `?ssl_ca_certs=/etc/ssl/redis.pem`.
"""

import re
from typing import Any, Literal, NamedTuple

from toolcatalog.errors import UsageError

Kind = Literal["server", "sentinel", "cluster"]
_URL = re.compile(
    r"redis(?P<tls>s?)(?:\+(?P<kind>sentinel|cluster))?://"
    r"(?P<credentials>[^@/]*@)?"
    r"(?P<hosts>[^@/?#]+)"
    r"(?P<path>(?:/[A-Za-z0-9._:-]*)*)"
    r"(?:\?(?P<query>[^#]*))?"
)
_HOST = re.compile(
    r"(?:\[(?P<ip>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]\s]+))(?::(?P<port>[0-9]{1,5}))?"
)
_DEFAULT_PORTS: dict[Kind, int] = {"server": 6379, "sentinel": 26379, "cluster": 6379}


class _Parts(NamedTuple):
    """The parts of a URL; `service` is the name of a primary, and only Sentinel has one."""

    kind: Kind
    has_tls: bool
    credentials: str
    hosts: list[tuple[str, int]]
    service: str
    number: int
    query: str


class RedisAddress:
    """The address of Redis as a URL. Its text never contains the password.

    Raises UsageError if the URL is invalid or the package redis is not installed.
    """

    def __init__(self, url: str) -> None:
        parts = _parse_url(url)
        if parts is None:
            raise UsageError(
                "--redis takes redis://host:port, or rediss://host:port for TLS; "
                "user:password@ can come before the host. For Sentinel it takes "
                "redis+sentinel://host:port,host:port/service, and for a cluster "
                "redis+cluster://host:port,host:port."
            )
        load_library()
        self._parts = parts
        try:
            self._read_options()
        except ValueError as error:
            raise UsageError(f"The query of --redis is not valid ({error}): correct it.") from None

    def __str__(self) -> str:
        parts = self._parts
        hosts = ", ".join(f"{host}:{port}" for host, port in parts.hosts)
        number = f", database {parts.number}" if parts.number else ""
        if parts.kind == "cluster":
            return f"Redis Cluster at {hosts}"
        if parts.kind == "sentinel":
            return f"Redis {parts.service} of Sentinel at {hosts}{number}"
        return f"Redis at {hosts}{number}"

    def connect(self, timeout: float) -> Any:
        """Return a client, which is a context manager. Each call takes `timeout` seconds at most.

        A failed call is not repeated, because the caller has something else to do.
        """
        redis = load_library()
        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        return self._connect(redis, redis.cluster.ClusterNode, retry, timeout)

    def connect_async(self, timeout: float) -> Any:
        """Return an asynchronous client; see `connect`."""
        redis = load_library().asyncio
        retry = redis.retry.Retry(load_library().backoff.NoBackoff(), 0)
        return self._connect(redis, redis.cluster.ClusterNode, retry, timeout)

    def _connect(self, redis: Any, make_node: Any, retry: Any, timeout: float) -> Any:
        parts = self._parts
        timeouts = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        options = {"db": parts.number, **self._read_options(), **timeouts, "retry": retry}
        if parts.kind == "cluster":
            nodes = [make_node(host, port) for host, port in parts.hosts]
            del options["db"]  # a cluster has only one
            return redis.RedisCluster(startup_nodes=nodes, **options)
        if parts.kind == "sentinel":
            private = {"db", "username", "password", "retry"}
            others = {name: value for name, value in options.items() if name not in private}
            sentinel = redis.sentinel.Sentinel(parts.hosts, sentinel_kwargs=others, **options)
            return sentinel.master_for(parts.service)
        [(host, port)] = parts.hosts
        return redis.Redis(host=host, port=port, **options)

    def _read_options(self) -> dict[str, Any]:
        """Return the credentials and the query as options of the library. Raises ValueError."""
        scheme = "rediss" if self._parts.has_tls else "redis"
        url = f"{scheme}://{self._parts.credentials}host?{self._parts.query}"
        options: dict[str, Any] = load_library().connection.parse_url(url)
        del options["host"]
        if options.pop("connection_class", None):
            options["ssl"] = True
        return options


def load_library() -> Any:
    """Import the package redis. Raises UsageError if it is not installed.

    The result is Any, because the library's types do not say whether a result must be awaited.
    """
    try:
        import redis.asyncio  # noqa: PLC0415 - an optional extra; imports the rest of the package
    except ImportError:
        raise UsageError(
            "Redis needs the package redis: run `pip install 'toolcatalog[redis]'`."
        ) from None
    return redis


def _parse_url(url: str) -> _Parts | None:
    match = _URL.fullmatch(url)
    if match is None:
        return None
    kind: Kind = match["kind"] or "server"  # type: ignore[assignment]  # as in the pattern
    hosts = [_parse_host(text, _DEFAULT_PORTS[kind]) for text in match["hosts"].split(",")]
    words = match["path"].strip("/").split("/") if match["path"].strip("/") else []
    service = words.pop(0) if kind == "sentinel" and words else ""
    number = words.pop(0) if kind != "cluster" and words else "0"
    if (
        None in hosts
        or (kind == "server" and len(hosts) > 1)
        or (kind == "sentinel") != bool(service)
        or words
        or not number.isdecimal()
    ):
        return None
    return _Parts(
        kind,
        bool(match["tls"]),
        match["credentials"] or "",
        [host for host in hosts if host],
        service,
        int(number),
        match["query"] or "",
    )


def _parse_host(text: str, default_port: int) -> tuple[str, int] | None:
    match = _HOST.fullmatch(text)
    port = int(match["port"] or default_port) if match else 0
    return (match["ip"] or match["name"], port) if match and 0 < port <= 65535 else None
