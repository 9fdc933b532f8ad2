"""The format of log lines: what a message contains is no other record."""

import io
import logging
from collections.abc import Iterator

import pytest

from toolcatalog.system.log_format import TextFormatter

FORGED = "x\n2026-01-01 00:00:00,000 INFO toolcatalog.server: forged\r\x1b[2J\u2028\x9b1m"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger, and what it has written."""
    logger, stream = logging.getLogger("test.log_format"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    yield logger, stream
    logger.removeHandler(handler)


def test_message_stays_on_its_line(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    logger.warning("The fact %s is unknown.", FORGED)
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    assert line.startswith("WARNING test.log_format: The fact x\\n2026-01-01")
    assert line.endswith("forged\\r\\x1b[2J\\u2028\\x9b1m is unknown.")


def test_traceback_keeps_its_lines(log: tuple[logging.Logger, io.StringIO]) -> None:
    """They are indented, so that no line of an exception looks like a record."""
    logger, stream = log
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("It failed.", stack_info=True)
    first, *others = stream.getvalue().rstrip("\n").split("\n")
    assert first == "ERROR test.log_format: It failed."
    assert "  Traceback (most recent call last):" in others
    assert "  Stack (most recent call last):" in others
    assert all(line.startswith("  ") and line.isprintable() for line in others)
    assert any("2026-01-01" in line for line in others)
