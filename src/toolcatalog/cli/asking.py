"""Tools from a server over HTTP: one GET for each, with limits on time and size. Whatever is no
clear answer is a UsageError.
"""

import ipaddress
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

import orjson

from toolcatalog import __version__
from toolcatalog.cli.sources import Look
from toolcatalog.errors import UsageError
from toolcatalog.exports import KEY
from toolcatalog.locking import FIELDS, Document, Gone

_SECONDS = 30.0  # for one answer, from the first byte sent to the last one read
_LARGEST = 8 << 20  # bytes of an answer: a tool's file has at most 1 MiB
_PIECE = 1 << 16
_GONE = {"tool_not_found": Gone.TOOL, "tool_version_not_found": Gone.VERSION}
_MEND = "the tools could not be verified"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the key is for the server that was named, and for no other."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Nowhere."""


def of_server(base: str, key: str) -> Look:
    """The documents that a server answers to the holder of a key; `base` is its address as clients
    are given it.

    Raises UsageError where the address is none, where the key would cross a network in the clear,
    and for each answer that is neither a tool nor the server's word that there is none.
    """
    base = _checked(base.rstrip("/"), key)
    opener = urllib.request.build_opener(_NoRedirect)
    headers = {
        "Accept": "application/json",
        "User-Agent": f"toolcatalog/{__version__}",
        **({"x-api-key": key} if key else {}),
    }

    def look(slug: str, version: str) -> Document | Gone:
        url = f"{base}/api/v3/tools/{slug}?version={version}"
        status, body = _get(opener, urllib.request.Request(url, headers=headers))  # noqa: S310 - http or https: see _checked
        return _read(url, status, body, slug, version)

    return look


def _checked(base: str, key: str) -> str:
    try:
        parts = urllib.parse.urlsplit(base)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if (
        not host
        or parts.scheme not in ("http", "https")
        or parts.query
        or parts.fragment
        or parts.username
        or not base.isprintable()
    ):
        raise UsageError(
            f"{base!r} is no address of a server: give it as clients have it, such as "
            "https://tools.example.com."
        )
    if key and not (key.isascii() and key.isprintable()):
        raise UsageError(f"The key in {KEY} has characters that no key has: set it again.")
    if key and parts.scheme == "http" and not _is_here(host):
        raise UsageError(f"{base} would get the API key unencrypted: use its https address.")
    return base


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _get(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request
) -> tuple[int, bytes]:
    """Status and body of an answer."""
    end = time.monotonic() + _SECONDS
    try:
        try:
            answer: Any = opener.open(request, timeout=_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body = bytearray()
            while piece := answer.read1(_PIECE):
                body += piece
                if len(body) > _LARGEST or time.monotonic() > end:
                    raise UsageError(
                        f"{request.full_url} answers with too much, or too slowly: {_MEND}."
                    )
            return answer.status, bytes(body)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        reason = getattr(reason, "strerror", None) or reason
        raise UsageError(
            f"{request.full_url} does not answer ({reason}): {_MEND}. Is the server running, "
            "and is this its address?"
        ) from None


def _read(url: str, status: int, body: bytes, slug: str, version: str) -> Document | Gone:
    """The document, or that there is none, in an answer."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    if (
        status == 200
        and _is_document(value)
        and (value["slug"], value["version"]) == (slug, version)
    ):
        document: dict[str, Any] = value
        return document
    error = value.get("error") if isinstance(value, dict) else None
    error = error if isinstance(error, dict) else {}
    if status == 404 and error.get("slug") in _GONE:
        return _GONE[error["slug"]]
    if status in (401, 403):
        raise UsageError(
            f"The server refuses the key ({status}): {_MEND}. Set {KEY} to a key that may "
            "see these tools."
        )
    said = f": {error['message']}" if isinstance(error.get("message"), str) else ""
    raise UsageError(
        f"{url} answers {status}, which is no answer of a tool catalog's API to "
        f"that{said[:200]}: {_MEND}."
    )


def _is_document(value: Any) -> bool:
    """Tell whether a value has all that a digest is made from."""
    if not isinstance(value, Mapping) or not isinstance(value.get("toolkit"), Mapping):
        return False
    return (
        all(field in value for field in (*FIELDS, "is_deprecated")) and "slug" in value["toolkit"]
    )
