"""Log format: records as text in which no message can imitate another record."""

import logging
from types import TracebackType
from typing import TypeAlias

from toolcatalog.textutils import escape_unprintable

_ExcInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class TextFormatter(logging.Formatter):
    """A formatter of one printable line per record, with the indented lines of a traceback below.

    Messages and exceptions contain text of clients, stores and catalogs.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides
        """Return the line of a record, with unprintable characters escaped."""
        return escape_unprintable(super().formatMessage(record))

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - overrides
        """Return a traceback, with indented lines."""
        return _indent_lines(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - overrides
        """Return a stack, with indented lines."""
        return _indent_lines(super().formatStack(stack_info))


def _indent_lines(text: str) -> str:
    return "\n".join(f"  {escape_unprintable(line)}" for line in text.split("\n"))
