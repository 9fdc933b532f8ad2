"""Where a server listens: a socket that is had before anything else is done, so that a port in use
is told in one sentence.
"""

import errno
import os
import re
import socket

from toolcatalog.errors import UsageError

_BACKLOG = 2048  # connections that may wait to be taken


def open_listener(host: str, port: int, option_names: str = "--port or --host") -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises UsageError with the reason where there is
    none to be had, and these flags.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # errors of name look-up have numbers of their own
        known = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno or 0) if known else error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "the port is in use"
        raise UsageError(
            f"Cannot listen on {host}:{port} ({reason}): choose another with {option_names}."
        ) from None


def parse_address(text: str) -> tuple[str, int]:
    """A host and a port that were written as `HOST:PORT`, or `[HOST]:PORT`. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and re.fullmatch("[0-9]{1,5}", port) and int(port) <= 65535) or (
        ":" in host and not host.startswith("[")
    ):
        raise UsageError(
            f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100."
        )
    return host.strip("[]"), int(port)


def listener_url(listener: socket.socket) -> str:
    """The address of a listening socket, as one types it into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
