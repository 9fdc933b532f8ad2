"""Listening sockets of a server: an address, a Unix domain socket or an inherited descriptor."""

import contextlib
import errno
import os
import re
import socket
import stat
from pathlib import Path

from toolcatalog.errors import UsageError

_SOCKET_MODE = 0o666
_BACKLOG = 2048  # connections that may wait to be taken


def open_listener(host: str, port: int, option_names: str = "--port or --host") -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises UsageError with the reason and `option_names` if the socket cannot be opened.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # errors of name look-up have numbers of their own
        has_errno = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno or 0) if has_errno else error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "the port is in use"
        raise UsageError(
            f"Cannot listen on {host}:{port} ({reason}): choose another with {option_names}."
        ) from None


def parse_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT` or `[HOST]:PORT`. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and re.fullmatch("[0-9]{1,5}", port) and int(port) <= 65535) or (
        ":" in host and not host.startswith("[")
    ):
        raise UsageError(
            f"{text!r} is not an address: write HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100."
        )
    return host.strip("[]"), int(port)


def open_unix_listener(path: Path) -> socket.socket:
    """Return a listening Unix domain socket; a socket that no process listens on is replaced.

    Every user may connect, as far as the permissions of the folder allow it. No other thread may
    create files meanwhile, because the socket gets its mode from the umask: the owner of the folder
    could put a link in its place before a `chmod`. Raises UsageError if the socket cannot be
    opened.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.exists() and not _is_unused(path):
            raise OSError(errno.EADDRINUSE, "a server uses it, or it is not a socket")
        path.unlink(missing_ok=True)
        umask = os.umask(0o777 & ~_SOCKET_MODE)
        try:
            listener.bind(str(path))
        finally:
            os.umask(umask)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"Cannot listen on {path} ({error.strerror or error}): choose another path with --uds."
        ) from None
    return listener


def _is_unused(path: Path) -> bool:
    """Return whether a path is a socket on which no process listens."""
    if not stat.S_ISSOCK(path.stat().st_mode):
        return False
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        return probe.connect_ex(str(path)) == errno.ECONNREFUSED


def inherit_listener(descriptor: int) -> socket.socket:
    """Return the listening socket with a file descriptor. Raises UsageError if it is none."""
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError as error:
        raise UsageError(
            f"File descriptor {descriptor} is not a socket ({error.strerror}): pass a listening "
            "socket, such as that of a systemd socket unit, with --fd."
        ) from None
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listener.detach()
        raise UsageError(
            f"File descriptor {descriptor} is a socket that does not listen: pass a listening one "
            "with --fd."
        )
    listener.set_inheritable(False)
    return listener


def listener_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket, or `unix:` and its path."""
    if listener.family == socket.AF_UNIX:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
