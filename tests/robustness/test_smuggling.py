"""What a hostile client may write on a socket: requests of two meanings, headers within headers,
paths that lead out; and that nothing of it comes back or is written down.

Two programs that read one stream of bytes differently are how a request is smuggled past a proxy.
So whatever HTTP lets be read in two ways is refused and the connection closed, on a fresh
connection as on one that was used before.
"""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import run_successfully
from support.server import Server, create_key, start_server
from support.sockets import LIST, TOOL, connected

HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
SIZE = b"%d" % len(HIDDEN)
CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)
CHUNKED = b"Transfer-Encoding: chunked"
SECRET = re.compile(rb"tc_[A-Za-z0-9]{8}")


def head(*lines: bytes, target: bytes = b"/healthz") -> bytes:
    """A head with these lines in it."""
    return b"\r\n".join([b"GET %b HTTP/1.1" % target, b"Host: a", *lines, b"", b""])


# Requests that two readers could read differently. Each is refused whole: nothing behind it is
# read.
REFUSED = {
    "length and chunks": head(b"Content-Length: 5", CHUNKED) + b"0\r\n\r\n" + HIDDEN,
    "chunks and length": head(CHUNKED, b"Content-Length: " + SIZE) + b"0\r\n\r\n" + HIDDEN,
    "two lengths": head(b"Content-Length: 0", b"Content-Length: " + SIZE) + HIDDEN,
    "one length twice": head(b"Content-Length: " + SIZE, b"Content-Length: " + SIZE) + HIDDEN,
    **{
        f"length {value!r}": head(b"Content-Length: " + value) + HIDDEN
        for value in (b"+" + SIZE, b"-1", b"0x10", b"1,1", b"\x0b5", b"1_0", b"9" * 30, b"", b"5 5")
    },
    **{
        f"coding {value!r}": head(b"Transfer-Encoding: " + value) + CHUNK
        for value in (
            b"xchunked",
            b"chunked, identity",
            b"identity",
            b"\x0bchunked",
            b"chunked\0",
            b"chunked;a",
            b"",
        )
    },
    "coding twice": head(CHUNKED, b"Transfer-Encoding: identity") + CHUNK,
    "blank before the colon": head(b"Transfer-Encoding : chunked") + CHUNK,
    "blank in a name": head(b"Content Length: " + SIZE) + HIDDEN,
    "no colon": head(b"Content-Length " + SIZE) + HIDDEN,
    "folded value": head(b"Transfer-Encoding:\r\n chunked") + CHUNK,
    "folded length": head(b"X-A: b\r\n Content-Length: " + SIZE) + HIDDEN,
    "folded first line": b"GET /healthz HTTP/1.1\r\n Content-Length: 3\r\nHost: a\r\n\r\n" + HIDDEN,
    "bare line feeds": head(b"X: y").replace(b"\r\n", b"\n") + HIDDEN,
    "one bare line feed": b"GET /healthz HTTP/1.1\r\nHost: a\nContent-Length: %b\r\n\r\n%b"
    % (SIZE, HIDDEN),
    "bare line feed at the end": b"GET /healthz HTTP/1.1\r\nHost: a\r\n\n" + HIDDEN,
    "bare carriage return": b"GET /healthz HTTP/1.1\r\nHost: a\rContent-Length: %b\r\n\r\n%b"
    % (SIZE, HIDDEN),
    "two hosts": head(b"Host: b") + HIDDEN,
    "no host": b"GET /healthz HTTP/1.1\r\nX: y\r\n\r\n" + HIDDEN,
    "zero byte": head(b"X: a\0b") + HIDDEN,
    "connect": b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN,
    **{
        f"chunk {name}": head(CHUNKED) + body + HIDDEN
        for name, body in {
            "with a line feed": b"%x\n%b\n0\n\n" % (len(HIDDEN), HIDDEN),
            "with a line feed behind its extension": b"%x;a\n%b\r\n0\r\n\r\n"
            % (len(HIDDEN), HIDDEN),
            "with a carriage return in its extension": b"%x;a\rb\r\n%b\r\n0\r\n\r\n"
            % (len(HIDDEN), HIDDEN),
            "beyond 64 bits": b"F" * 17 + b"\r\na\r\n0\r\n\r\n",
            "below nothing": b"-1\r\na\r\n0\r\n\r\n",
            "in other digits": b"0x2\r\naa\r\n0\r\n\r\n",
            "after a blank": b" 2\r\naa\r\n0\r\n\r\n",
            "before a blank": b"2 \r\naa\r\n0\r\n\r\n",
            "longer than it says": b"1\r\naa\r\n0\r\n\r\n",
            "without a size": b"\r\n",
            "with a length behind it": b"0\r\nContent-Length: 5\r\n\r\n",
        }.items()
    },
}

# Requests that all read alike: what is hidden in them is their body.
WHOLE = {
    "length": head(b"Content-Length: " + SIZE) + HIDDEN,
    "length among blanks": head(b"Content-Length:  " + SIZE + b" ") + HIDDEN,
    "chunks": head(CHUNKED) + CHUNK,
    "chunks in capitals": head(b"TRANSFER-ENCODING:\tChunked") + CHUNK,
    "chunks of something packed": head(b"Transfer-Encoding: gzip, chunked") + CHUNK,
    "chunk with an extension": head(CHUNKED) + CHUNK.replace(b"\r\n", b";a=b\r\n", 1),
}


def received(connection: socket.socket, data: bytes, wait: float = 20) -> bytes:
    """All that comes back for these bytes until the server closes; the wait only ends where it does
    not.
    """
    connection.settimeout(wait)
    connection.sendall(data)
    result = b""
    while more := connection.recv(65536):
        result += more
    return result


def statuses(data: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", data)


def request_twice(server: Server, connection: socket.socket) -> None:
    """Request a tool twice with the same bytes on a connection."""
    for _ in range(2):
        connection.sendall(
            b"GET %b HTTP/1.1\r\nHost: a\r\nx-api-key: %b\r\n\r\n"
            % (TOOL.encode(), server.key.encode())
        )
        data = b""
        while not (
            (size := re.search(rb"content-length: (\d+)", data))
            and len(data.partition(b"\r\n\r\n")[2]) >= int(size[1])
        ):
            data += connection.recv(65536)


@pytest.mark.parametrize("is_known", [False, True], ids=["fresh", "known"])
@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_request_is_refused(shipped: Server, name: str, is_known: bool) -> None:
    """The server answers 400, closes the connection and answers no later request."""
    for target in (b"/healthz", TOOL.encode()):
        with connected(shipped) as connection:
            if is_known:
                request_twice(shipped, connection)
            data = received(
                connection,
                REFUSED[name]
                .replace(b"/healthz", target)
                .replace(b"Host: a", b"Host: a\r\nx-api-key: %b" % shipped.key.encode(), 1),
            )
        result = statuses(data)
        assert len(result) <= 2  # a get is answered before its body is looked at
        assert result[-1] == b"400" or result == [b"200"], data
        assert b"smuggled" not in data


@pytest.mark.parametrize("is_known", [False, True], ids=["fresh", "known"])
@pytest.mark.parametrize("name", WHOLE)
def test_body_that_looks_like_a_request_is_a_body(
    shipped: Server, name: str, is_known: bool
) -> None:
    with connected(shipped) as connection:
        if is_known:
            request_twice(shipped, connection)
        data = received(connection, WHOLE[name] + head(b"Connection: close"))
    assert statuses(data) == [b"200", b"200"], data
    assert b"smuggled" not in data


def test_bytes_after_an_upgrade_are_ignored(shipped: Server) -> None:
    with connected(shipped) as connection:
        connection.sendall(
            head(b"Connection: Upgrade", b"Upgrade: websocket", b"Content-Length: " + SIZE)
            + HIDDEN
            + HIDDEN
        )
        connection.shutdown(socket.SHUT_WR)
        data = b"".join(iter(lambda: connection.recv(65536), b""))
    assert statuses(data) in ([b"200"], [])
    assert b"smuggled" not in data


# --- header injection

BREAKS = (
    b"a\rSet-Cookie: x=1",
    b"a%0d%0aSet-Cookie: x=1",
    b"a\\r\\nSet-Cookie: x=1",
    b"a\xe5\x98\x8a\xe5\x98\x8dSet-Cookie: x=1",
    b"a\x0bSet-Cookie: x=1",
    b"a\xc4\x8d\xc4\x8aSet-Cookie: x=1",
    b"a\x85Set-Cookie: x=1",
)


@pytest.mark.parametrize(
    "place",
    [
        b"X-Request-Id: %b",
        b"traceparent: %b",
        b"Origin: %b",
        b"If-None-Match: %b",
        b"Accept-Encoding: %b",
        b"Host: %b",
    ],
)
@pytest.mark.parametrize("given", BREAKS)
def test_request_headers_cannot_add_response_headers(
    shipped: Server, place: bytes, given: bytes
) -> None:
    for target in (TOOL.encode(), b"/nothing", b"/toolkits/github"):
        with connected(shipped) as connection:
            data = received(connection, head(place % given, b"Connection: close", target=target))
        assert b"set-cookie" not in data.partition(b"\r\n\r\n")[0].lower(), data


@pytest.mark.parametrize(
    "given",
    [
        b"%0d%0aSet-Cookie:%20x=1",
        b"%0aSet-Cookie:x",
        b"%E5%98%8A%E5%98%8DSet-Cookie:x",
        b"%250d%250aSet-Cookie:x",
        b"%00",
        b"%ff",
    ],
)
def test_query_and_path_cannot_add_response_headers(shipped: Server, given: bytes) -> None:
    """`X-Suggested-Query` and `Location` contain parts of them."""
    targets = [
        b"%b?query=%b" % (LIST.encode(), given),
        b"%b?query=isue+%b" % (LIST.encode(), given),
        b"/toolkits/github?a=%b" % given,
    ]
    targets += [
        b"/toolkits/github%b" % given,
        b"/%b/..;/toolkits/github" % given,
        b"//evil.example/%b" % given,
        b"%b?version=%b" % (TOOL.encode(), given),
    ]
    for target in targets:
        with connected(shipped) as connection:
            data = received(
                connection,
                head(b"x-api-key: " + shipped.key.encode(), b"Connection: close", target=target),
            )
        lines = data.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
        assert not [
            line
            for line in lines
            if line.startswith((b"set-cookie", b"location: //", b"location: http://evil"))
        ], data
        assert all(b":" in line for line in lines[1:])


def test_host_header_is_not_trusted(shipped: Server) -> None:
    """Only the redirect to the URL with a slash uses it, and that is not cached."""
    for target in (
        TOOL.encode(),
        LIST.encode(),
        b"/",
        b"/tools/GITHUB_CREATE_ISSUE/",
        b"/nothing",
        b"/openapi.json",
    ):
        with connected(shipped) as connection:
            data = received(
                connection,
                (
                    b"GET %b HTTP/1.1\r\nHost: evil.example\r\n"
                    b"X-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n"
                    b"x-api-key: %b\r\nConnection: close\r\n\r\n"
                )
                % (target, shipped.key.encode()),
            )
        assert b"evil.example" not in data, target


# --- paths

OUT = (
    "/../keys.json",
    "/%2e%2e/keys.json",
    "/..%2fkeys.json",
    "/%252e%252e%252fkeys.json",
    "/..%252f..%252fkeys.json",
    "/..%5ckeys.json",
    "/..%255ckeys.json",
    "/..%c0%afkeys.json",
    "/%c0%ae%c0%ae/keys.json",
    "/..%00/keys.json",
    "/index.html%00",
    "/%00/index.html",
    "/....//keys.json",
    "/..;/keys.json",
    "/.%2e/keys.json",
    "/tools/%2e%2e/%2e%2e/keys.json",
    "\\..\\keys.json",
    "/%2e%2e%5c%2e%2e%5ckeys.json",
    "/.generated",
    "/%2Egenerated",
    "/.git/config",
    "/%e3%80%82%e3%80%82/keys.json",
    "/%u002e%u002e/keys.json",
    "/~root/.ssh",
    "//etc/passwd",
    "///etc/passwd",
    "/%2fetc/passwd",
    "/C:/windows",
    "/proc/self/environ",
    "file:///etc/passwd",
    "http://a/../keys.json",
    "http://a/%2e%2e/keys.json",
)


@pytest.mark.parametrize("path", OUT)
@pytest.mark.parametrize(
    "before", ["", "/api/v3/tools", "/api/v3/tool_router/session/trs_support", "/toolkits"]
)
def test_paths_cannot_leave_the_root(shipped: Server, path: str, before: str) -> None:
    """Of the site or the API, for any spelling."""
    target = before + path if path.startswith(("/", "\\")) else path
    with connected(shipped) as connection:
        data = received(
            connection,
            head(
                b"x-api-key: " + shipped.key.encode(), b"Connection: close", target=target.encode()
            ),
        )
    assert statuses(data) in ([b"404"], [b"400"]), data
    assert b"sha256" not in data
    assert b"root:" not in data


def test_symlinks_in_a_site_are_not_followed(shipped_build: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("mine")
    (tmp_path / "secret.txt").write_text("a secret")
    (tmp_path / "site" / "file.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "site" / "folder").symlink_to(tmp_path)
    with start_server(shipped_build, tmp_path, "--site", tmp_path / "site") as server:
        for path, status in (
            ("/index.html", b"200"),
            ("/file.txt", b"404"),
            ("/folder/secret.txt", b"404"),
            ("/folder/keys.json", b"404"),
        ):
            with connected(server) as connection:
                data = received(connection, head(b"Connection: close", target=path.encode()))
            assert statuses(data) == [status], path
            assert b"a secret" not in data


# --- nothing of ours comes back, and nothing secret is written down


def bad(server: Server, revoked: str) -> Iterator[bytes]:
    """Requests that want to be refused, in every way that this file knows, with good and bad keys
    in wrong places.
    """
    yield from REFUSED.values()
    for key in (server.key, revoked, server.key[:-1]):
        own = key.encode()
        yield head(b"x-api-key: " + own, target=b"/api/v3/tools?limit=x&key=" + own)
        yield head(b"x-api-key: " + own, target=b"/api/v3/tools/" + own)
        yield head(b"Authorization: Bearer " + own, target=b"/" + own)
        yield head(b"X-Request-Id: " + own, target=b"/nothing")
        yield head(
            b"Cookie: " + own, b"traceparent: " + own, target=b"/api/v3/tools?toolkit_slug=" + own
        )
        yield b"POST /mcp HTTP/1.1\r\nHost: a\r\nx-api-key: %b\r\nContent-Length: 2\r\n\r\n{]" % own
        yield b"GET /%b\r\n\r\n" % own
    for path in OUT:
        yield head(target=path.encode())


def test_responses_and_logs_reveal_no_secrets(shipped_build: Path, tmp_path: Path) -> None:
    """No path of the machine, no traceback, and no key."""
    with start_server(
        shipped_build,
        tmp_path,
        "--site",
        shipped_build.parent / "site",
        "--mcp",
        "--access-log",
        tmp_path / "access.log",
    ) as server:
        revoked = create_key(server.keys_file)
        run_successfully(
            "keys",
            "revoke",
            re.findall(r"key_\w+", server.keys_file.read_text())[-1],
            "--keys",
            server.keys_file,
        )
        for data in bad(server, revoked):
            with connected(server) as connection:
                connection.settimeout(20)
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda at=connection: at.recv(65536), b""))  # type: ignore[misc]
            for output in (
                b"Traceback",
                b'File "',
                str(tmp_path).encode(),
                str(shipped_build.parent).encode(),
                b"/site-packages/",
                b".py",
            ):
                assert output not in answer, data
            assert {*SECRET.findall(answer)} <= {*SECRET.findall(data)}
            assert b" 500 " not in answer[:20], data
    log = server.log.read_bytes()
    assert b"Traceback" not in log
    lines = (tmp_path / "access.log").read_text()
    assert lines.count("\n") > len(OUT)
    for key in (server.key, revoked):
        assert key not in log.decode()
    hashes = re.findall(r'"sha256": "(\w+)"', server.keys_file.read_text())
    assert len(hashes) == 3  # of two keys, and of the document
    assert not [digest for digest in hashes if digest in lines or digest in log.decode()]
