"""Where a server listens: a socket that is had before anything else is done, so that a port in use is told in one sentence."""

import errno
import os
import socket

from toolcatalog.errors import UsageError

_BACKLOG = 2048  # connections that may wait to be taken


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises UsageError with the reason where there is none to be had."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        known = error.errno is not None and error.errno > 0  # errors of name look-up have numbers of their own
        reason = os.strerror(error.errno or 0) if known else error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "the port is in use"
        raise UsageError(f"Cannot listen on {host}:{port} ({reason}): choose another with --port or --host.") from None


def url(listener: socket.socket) -> str:
    """The address of a listening socket, as one types it into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
