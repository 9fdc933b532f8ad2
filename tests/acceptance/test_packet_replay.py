"""The room `server.fast_path`, and the way of a request whose head is known: it is answered as when it
was new, and nothing else is taken for it.
"""

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, start_server
from support.sockets import TARGETS, TOOL, answers, connected
from toolcatalog.keys import api_keys
from toolcatalog.server.fast_path import RequestHead, learn_head

KEY = b"tc_secret"
HEAD = b"\nHost: a\r\nx-api-key: tc_secret\r\nAccept: */*\r\n\r\n"
PARSED = [(b"host", b"a"), (b"x-api-key", KEY), (b"accept", b"*/*")]
TAG = b'W/"0123456789abcdef0123456789abcdef"'
LINES = (
    (), ("Accept: */*", "User-Agent: agent/1"), ("if-none-match: *",), ('If-None-Match: W/"x"',), ('If-None-Match: "x", "y"',), ('If-None-Match: "x"', "If-None-Match: *"),
    ("If-None-Match: *", 'If-None-Match: "x"'), ("if-None-match: *",), ("If-None-Match:*",), ("If-None-Match: * ",), ("Accept-Encoding: gzip",), ("Origin: null",), ("x-api-key: tc_no",),
    ("X-Request-Id: mine",), ("Content-Length: 0",), ("X-Forwarded-For: 1.1.1.1",),
)  # fmt: skip


def with_line(line: bytes, place: int) -> bytes:
    """The head with a line more after so many of its lines."""
    lines = HEAD.split(b"\r\n")
    return b"\r\n".join([*lines[:place], line, *lines[place:]])


def known(rest: bytes = HEAD, *more: tuple[bytes, bytes]) -> RequestHead:
    """A head that was learned."""
    head = learn_head(rest, [*PARSED, *more])
    assert head is not None
    return head


def test_a_known_head_tells_whose_request_it_is() -> None:
    """The digest of the key, as the key file has it."""
    assert known().key_digest == api_keys.hash_secret(KEY)
    assert known().matches(HEAD) == (True, None)


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("name", [b"If-None-Match", b"if-none-match"])
def test_the_tag_held_may_be_another_each_time(place: int, name: bytes) -> None:
    """A head with a tag is the same with another one, and nothing else may differ."""
    head = known(with_line(name + b': "first"', place), (b"if-none-match", b'"first"'))
    for tag in (TAG, b"*", b'"first"', b'"' + b"x" * 70 + b'"'):
        assert head.matches(with_line(name + b": " + tag, place)) == (True, tag)
    for other in (
        b'"x", "y"',
        b'"x" ',
        b' "x"',
        b"",
        b'"x"\r\nOrigin: a',
        b'"x"\r\n y',
        b'"' + b"x" * 90 + b'"',
        b'"x"\r\n\r\n',
        b'"\xe9"',
    ):
        assert not head.matches(with_line(name + b": " + other, place))[0], other
    whole = with_line(name + b': "first"', place)
    for rest in (
        HEAD,
        whole + b"\r\n",
        whole[:-1],
        whole[1:],
        whole.replace(b"Accept", b"accept"),
        whole.replace(b"secret", b"secre7"),
    ):
        assert not head.matches(rest)[0], rest


@pytest.mark.parametrize(
    "other",
    [
        HEAD.replace(b"secret", b"secre7"),
        HEAD.replace(b"Accept", b"accept"),
        HEAD + b"\r\n",
        HEAD + b"GET / HTTP/1.1\r\n\r\n",
        HEAD[:-2],
        HEAD[1:],
        b"",
        with_line(b'If-None-Match: "x"', 2),
        with_line(b"Origin: null", 2),
    ],
)
def test_nothing_else_is_taken_for_it(other: bytes) -> None:
    """Other bytes are another head, also where they only differ by what comes after."""
    assert known().matches(other) == (False, None)


@pytest.mark.parametrize(
    ("rest", "more"),
    [
        (with_line(b'If-None-Match: "x", "y"', 2), [(b"if-none-match", b'"x", "y"')]),
        (with_line(b"If-None-Match:*", 2), [(b"if-none-match", b"*")]),
        (with_line(b'IF-NONE-MATCH: "x"', 2), [(b"if-none-match", b'"x"')]),
        (with_line(b'If-None-Match: "x"\r\n y', 2), [(b"if-none-match", b'"x" y')]),
        (
            with_line(b'If-None-Match: "x"\r\nIf-None-Match: "y"', 2),
            [(b"if-none-match", b'"x"'), (b"if-none-match", b'"y"')],
        ),
        (
            with_line(b'If-None-Match:"x"', 2) + b'\nIf-None-Match: "x"\r\n\r\n',
            [(b"if-none-match", b'"x"')],
        ),
        (with_line(b"X-Request-Id: 1", 2), [(b"x-request-id", b"1")]),
    ],
)
def test_what_is_not_understood_is_not_learned(
    rest: bytes, more: list[tuple[bytes, bytes]]
) -> None:
    """A head whose tag is not in the one plain spelling, or that will not come again, is parsed
    each time.
    """
    assert learn_head(rest, [*PARSED, *more]) is None


def asked(server: Server, target: str, *lines: str) -> bytes:
    """A request as bytes, with the server's key unless a line names another."""
    key = (
        () if any(line.startswith("x-api-key") for line in lines) else (f"x-api-key: {server.key}",)
    )
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: a", *key, *lines, "", ""]).encode()


def told(connection: socket.socket, request: bytes) -> tuple[bytes, bytes]:
    """Head and body of an answer, without what differs from time to time."""
    connection.sendall(request)
    ((head, body),) = answers(connection, "GET")
    return same(head), same(body)


def same(data: bytes) -> bytes:
    """An answer without its request id where that is a new one."""
    return re.sub(rb"(x-request-id: |\"request_id\":\")[0-9a-f]{32}", rb"\1", data)


@pytest.mark.parametrize("lines", LINES)
def test_the_same_answer_as_when_it_was_new(shipped: Server, lines: tuple[str, ...]) -> None:
    """After the head has come with a good request, every target is answered with it as on a
    connection that closes: parsed, by ASGI.
    """
    with connected(shipped) as connection:
        for target in (
            TOOL,
            *TARGETS,
            "/api/v3/tools?limit=7&x=%41+b%2C",
            TOOL.lower(),
            f"{TOOL} ",
            "*",
            f"{TOOL}?a^b",
            f"{TOOL}?a=\x7f",
        ):
            told(connection, asked(shipped, TOOL, *lines))
            request = asked(shipped, target, *lines)
            with connected(shipped) as other:
                other.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                new = b"".join(iter(lambda: other.recv(65536), b""))
            head, _, body = new.partition(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 400") and b"x-request-id" not in head:
                continue  # no request at all: uvicorn says so and closes
            expected = re.sub(rb"(date: [^\r]*|connection: close)\r\n", b"", head + b"\r\n\r\n")
            assert told(connection, request) == (same(expected), same(body)), target


def test_known_heads_torn_joined_and_followed(shipped: Server) -> None:
    """A known head that comes in pieces, twice at once, with a body or after an unfinished one is
    no short cut to a wrong answer.
    """
    one, other = asked(shipped, TOOL), asked(shipped, "/api/v3/tools?limit=1")
    with connected(shipped) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first, second = told(connection, one), told(connection, other)
        assert first != second
        for at in range(1, len(one), 5):
            connection.sendall(one[:at])
            time.sleep(0.001)
            assert told(connection, one[at:]) == first
        connection.sendall(one + other + one)
        heads = [body for _, body in answers(connection, "GET", "GET", "GET")]
        assert heads == [first[1], second[1], first[1]]
        posted = one.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(other))
        assert told(connection, posted + other) == first  # the other is its body
        assert told(connection, posted) == first
        time.sleep(0.05)
        connection.sendall(other)  # its body, in a packet of its own
        assert told(connection, one) == first


def status(connection: socket.socket, packet: bytes) -> bytes:
    """The first line of what comes back for a packet."""
    connection.sendall(packet)
    return connection.recv(65536).partition(b"\r\n")[0]


@pytest.mark.parametrize("before", [b"\r\n", b"\r\n\r\n"])
def test_a_packet_that_begins_with_something_else_is_not_learned(
    shipped: Server, before: bytes
) -> None:
    """An empty line before a request is passed over, and is no start of a head that another request
    line could take its place in.
    """
    one = asked(shipped, TOOL)
    with connected(shipped) as connection:
        assert status(connection, before + one).startswith(b"HTTP/1.1 200")
        assert status(connection, b"GET /api/v3/tools HTTP/1.1" + before + one).startswith(
            (b"HTTP/1.1 400", b"HTTP/1.1 401")
        )


def test_the_end_of_a_body_is_no_start_of_a_head(shipped: Server) -> None:
    """A packet that begins with the rest of the body before is not learned, whatever that body
    looks like.
    """
    one, line = asked(shipped, TOOL), b"GET /api/v3/tools/GITHUB_CREATE_ISSUE HTTP/1.1\r\n"
    with connected(shipped) as connection:
        posted = one.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(line))
        told(connection, posted)  # answered before its body has come
        told(connection, line + one)
        assert status(connection, line + one).startswith((b"HTTP/1.1 400", b"HTTP/1.1 401"))


@pytest.fixture
def own(shipped_build: Path, tmp_path: Path) -> Iterator[Server]:
    """A server with a key file of its own."""
    with start_server(shipped_build, tmp_path) as server:
        yield server


def test_a_known_head_with_a_key_that_ends_is_refused(own: Server) -> None:
    """A head is remembered, whether its key is good is not."""
    with connected(own) as connection:
        for _ in range(3):
            assert told(connection, asked(own, TOOL))[0].startswith(b"HTTP/1.1 200")
        (key,) = api_keys.load_keys(own.keys_file)
        api_keys.revoke(own.keys_file, key.id)
        end = time.monotonic() + 20
        while told(connection, asked(own, TOOL))[0].startswith(b"HTTP/1.1 200"):
            assert time.monotonic() < end
            time.sleep(0.1)
        assert told(connection, asked(own, TOOL))[0].startswith(b"HTTP/1.1 401")


def test_an_idle_connection_is_closed_whatever_way_its_requests_took(shipped: Server) -> None:
    """Not while requests come, however known their heads, and not long after the last one."""
    with connected(shipped) as connection:
        end = time.monotonic() + 6
        while time.monotonic() < end:
            told(connection, asked(shipped, TOOL))
            time.sleep(0.5)
        begin = time.monotonic()
        assert connection.recv(1) == b""
        assert time.monotonic() - begin < 15
