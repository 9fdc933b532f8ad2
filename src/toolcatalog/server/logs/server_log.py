"""The server log: records on standard error, as text or as JSON lines."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

from toolcatalog.keys.api_keys import redact
from toolcatalog.system.log_format import TextFormatter

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogSettings(NamedTuple):
    """The least level of the records that are logged, and their format."""

    level: LogLevel = "info"
    format: LogFormat = "text"


def configure_logging(settings: LogSettings = LogSettings()) -> None:  # noqa: B008 - immutable
    """Log to standard error. API keys are redacted, in tracebacks too.

    With `--verbose`, the log has at least the level `debug`.
    """
    if logging.getLogger("toolcatalog").level == logging.DEBUG:
        settings = settings._replace(level="debug")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if settings.format == "json" else _TextFormatter(_TEXT))
    level = settings.level.upper()
    handler.setLevel(level)  # some libraries set the levels of their loggers
    logging.basicConfig(level=level, handlers=[handler], force=True)


class _TextFormatter(TextFormatter):
    """A formatter of text that redacts API keys, whichever library logs them."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _JsonFormatter(logging.Formatter):
    """A formatter of one JSON object per line, with API keys redacted."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            fields["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(fields)
