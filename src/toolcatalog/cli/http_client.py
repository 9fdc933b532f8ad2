"""HTTP client: get tools from a server, with limits on time and size.

Every response other than a tool or a clear "not found" is a UsageError.
"""

import ipaddress
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future, wait
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

import orjson

from toolcatalog import __version__
from toolcatalog.errors import UsageError
from toolcatalog.exports.definitions import KEY_VARIABLE
from toolcatalog.lockfile import FIELDS, Document, DocumentSource, MissingReason
from toolcatalog.system import threads

_TIMEOUT = 30.0  # for one answer, from the first byte sent to the last one read
_MAX_BODY_SIZE = 8 << 20  # bytes of an answer: a tool's file has at most 1 MiB
_READ_SIZE = 1 << 16
_GONE_BY_SLUG = {
    "tool_not_found": MissingReason.TOOL,
    "tool_version_not_found": MissingReason.VERSION,
}
_FAILURE = "the tools could not be verified"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirect handler that follows no redirect: the key is only for the server that was named."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Return no request, so that the redirect is an error."""


def open_server_source(base_url: str, key: str) -> DocumentSource:
    """Return the source of the documents of a server, for the holder of a key.

    `base_url` is the server's address as clients use it. Raises UsageError if it is invalid or if
    the key would cross a network unencrypted, and for every response that is neither a tool nor a
    "not found" of the server.
    """
    base_url = _validate_base_url(base_url.rstrip("/"), key)
    opener = _build_opener(base_url)
    headers = {
        "Accept": "application/json",
        "User-Agent": f"toolcatalog/{__version__}",
        **({"x-api-key": key} if key else {}),
    }

    def get_document(slug: str, version: str) -> Document | MissingReason:
        url = f"{base_url}/api/v3/tools/{slug}?version={version}"
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http or https
        status, body, _ = _fetch(opener, request, _MAX_BODY_SIZE, _FAILURE)
        return _parse_response(url, status, body, slug, version)

    return get_document


def download(url: str, max_size: int) -> bytes:
    """Return the document at a URL. Raises UsageError.

    Only https is used, http only for this machine, and redirects are not followed.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and _is_loopback(parts.hostname or "")
    ):
        raise UsageError(f"{url} is not an https URL: give one, or download the document first.")
    headers = {"User-Agent": f"toolcatalog/{__version__}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked above
    opener = _build_opener(url)
    status, body, location = _fetch(opener, request, max_size, "nothing was imported")
    if location:
        raise UsageError(f"{url} redirects to {location[:200]}: give that address.")
    if status != 200:
        raise UsageError(f"{url} answers {status}: check the address.")
    return body


def _validate_base_url(base_url: str, key: str) -> str:
    try:
        parts = urllib.parse.urlsplit(base_url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if (
        not host
        or parts.scheme not in ("http", "https")
        or parts.query
        or parts.fragment
        or parts.username
        or not base_url.isprintable()
    ):
        raise UsageError(
            f"{base_url!r} is not the URL of a server: give it as clients have it, such as "
            "https://tools.example.com."
        )
    if key and not (key.isascii() and key.isprintable()):
        raise UsageError(f"The key in {KEY_VARIABLE} has characters that no key has: set it again.")
    if key and parts.scheme == "http" and not _is_loopback(host):
        raise UsageError(f"{base_url} would get the API key unencrypted: use its https address.")
    return base_url


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _build_opener(url: str) -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect, and uses no proxy for a server on this machine.

    A proxy would get the key unencrypted.
    """
    if _is_loopback(urllib.parse.urlsplit(url).hostname or ""):
        return urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(_NoRedirect)


def _fetch(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    max_size: int,
    failure: str,
) -> tuple[int, bytes, str]:
    """Return the status, the body and the redirect target of a response.

    `failure` ends the message if there is no response in time.
    """
    response: Future[tuple[int, bytes, str]] = Future()

    def run() -> None:
        try:
            response.set_result(_exchange(opener, request, max_size, failure))
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            response.set_exception(error)

    # In a thread, because urllib limits only the time of each read: a server may send its head
    # byte by byte. The thread is a daemon, so that the program need not wait for it.
    threads.start(threading.Thread(target=run, name="http-client", daemon=True))
    if not wait([response], _TIMEOUT).done:
        raise _refuse_answer(request, failure)
    return response.result()


def _refuse_answer(request: urllib.request.Request, failure: str) -> UsageError:
    return UsageError(f"{request.full_url} answers with too much, or too slowly: {failure}.")


def _exchange(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    max_size: int,
    failure: str,
) -> tuple[int, bytes, str]:
    """Send a request and read the response; see `_fetch`."""
    end = time.monotonic() + _TIMEOUT
    try:
        try:
            answer: Any = opener.open(request, timeout=_TIMEOUT)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body = bytearray()
            while piece := answer.read1(_READ_SIZE):
                body += piece
                if len(body) > max_size or time.monotonic() > end:
                    raise _refuse_answer(request, failure)
            return answer.status, bytes(body), answer.headers.get("Location") or ""
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        reason = getattr(reason, "strerror", None) or reason
        raise UsageError(
            f"{request.full_url} does not answer ({reason}): {failure}. Is the server running, "
            "and is this its address?"
        ) from None


def _parse_response(
    url: str, status: int, body: bytes, slug: str, version: str
) -> Document | MissingReason:
    """Return the document in a response, or the reason why there is none."""
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
    if status == 404 and error.get("slug") in _GONE_BY_SLUG:
        return _GONE_BY_SLUG[error["slug"]]
    if status in (401, 403):
        raise UsageError(
            f"The server refuses the key ({status}): {_FAILURE}. Set {KEY_VARIABLE} to a key that"
            " may see these tools."
        )
    detail = f": {error['message']}" if isinstance(error.get("message"), str) else ""
    raise UsageError(
        f"{url} answers {status}, which is no answer of a tool catalog's API to "
        f"that{detail[:200]}: {_FAILURE}."
    )


def _is_document(value: Any) -> bool:
    """Return whether a value has all fields that a digest covers."""
    if not isinstance(value, Mapping) or not isinstance(value.get("toolkit"), Mapping):
        return False
    return (
        all(field in value for field in (*FIELDS, "is_deprecated")) and "slug" in value["toolkit"]
    )
