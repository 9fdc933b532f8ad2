"""A small HTTP client that checks responses before and after the load: status, body, ETag, size."""

import gzip
import http.client
import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

_PAGE_SIZE = 1000
_TIMEOUT = 300  # seconds for one response
_TOOLS = "/api/v3.1/tools"
_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
}


@dataclass(frozen=True, slots=True)
class Response:
    """A response: its decoded body, its size as sent in bytes, and its duration in seconds."""

    status: int
    body: bytes
    size: int
    etag: str
    seconds: float


class HttpClient:
    """A connection that stays open; it sends the given headers and no others but `Host`."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT)
        self.headers = {**headers}

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Response:
        """Send a GET request; a body that cannot be decoded stays as it was sent."""
        start = time.perf_counter()
        self.connection.putrequest("GET", path, skip_accept_encoding=True)
        for name, value in {**self.headers, **(headers or {})}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders()
        response = self.connection.getresponse()
        data, seconds = response.read(), time.perf_counter() - start
        body = decode_body(data, response.headers.get("content-encoding", ""))
        etag = response.headers.get("etag", "")
        return Response(response.status, body, len(data), etag, seconds)


def decode_body(data: bytes, encoding: str) -> bytes:
    """Decode a body by its `Content-Encoding`.

    Returns the data itself if it is damaged, or has another coding than gzip and deflate: the
    benchmark compares bodies, and counts it as a wrong one.
    """
    if not data or encoding not in _DECODERS:
        return data
    try:
        return _DECODERS[encoding](data)
    except (OSError, EOFError, zlib.error):
        return data


def extract_slugs(body: bytes) -> list[str]:
    """Return the slugs of the tools in a body: one tool, a page, rows, or rows in an object."""
    value = json.loads(body)
    tools = value if isinstance(value, list) else value.get("items", value.get("rows", [value]))
    return [tool["slug"] for tool in tools]


def export_tools(client: HttpClient, rows: Path) -> None:
    """Write the newest version of every tool into a file, as our server answers it.

    A line is a tool's JSON; lines are in the order of slugs.
    """
    part = rows.with_suffix(".part")
    with part.open("wb") as sink:
        for page in _pages(client):
            sink.writelines(
                json.dumps(tool, separators=(",", ":")).encode() + b"\n" for tool in page
            )
    part.rename(rows)


def _pages(client: HttpClient) -> Iterator[list[object]]:
    parameters: dict[str, object] | None = {"limit": _PAGE_SIZE}
    while parameters:
        page = json.loads(client.get(f"{_TOOLS}?{urlencode(parameters)}").body)
        yield page["items"]
        cursor = page["next_cursor"]
        parameters = {"limit": _PAGE_SIZE, "cursor": cursor} if cursor else None
