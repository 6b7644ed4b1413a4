"""Logs on standard error: short lines for people, or one JSON object per line for log stores."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}
"""What every record has, and uvicorn's message again with colours; all else is a caller's extra."""
CHATTY_LOGGERS = ("httpx", "httpcore", "uvicorn.access", "asyncio", "watchdog")
"""Libraries that log each request at ``info``: heard at ``debug`` only."""


def configure(
    level: Literal["debug", "info", "warning", "error"],
    format: Literal["console", "json"],  # noqa: A002  # the setting's own name
) -> None:
    """Send all logs and warnings of this process to standard error; a second call replaces."""
    handler = StandardErrorHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else ConsoleFormatter())
    root = logging.getLogger()
    root.handlers = [each for each in root.handlers if type(each) is not StandardErrorHandler]
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    for name in CHATTY_LOGGERS:
        logging.getLogger(name).setLevel("DEBUG" if level == "debug" else "WARNING")


class StandardErrorHandler(logging.Handler):
    """Writes to whatever standard error is now, so that a redirection in between is heeded."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record as one piece; a closed standard error must not end the process."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            return


def extras(record: logging.LogRecord) -> Mapping[str, object]:
    """Return the fields that the caller added to the message, in the order given."""
    return {key: value for key, value in vars(record).items() if key not in OWN_ATTRIBUTES}


class ConsoleFormatter(logging.Formatter):
    """``12:00:00 warning collector.loop: target is down target=http://…``; the time is UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record on one line, with the traceback below it where there is one."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields = "".join(f" {key}={value}" for key, value in extras(record).items())
        level, name = record.levelname.lower(), record.name
        line = f"{at:%H:%M:%S} {level} {name}: {record.getMessage()}{fields}"
        return f"{line}\n{_exception(self, record)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One object per line: ``ts``, ``level``, ``logger``, ``message``, extras, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of valid JSON, whatever the extras hold."""
        entry: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update((key, _plain(value)) for key, value in extras(record).items())
        if record.exc_info:
            entry["exception"] = _exception(self, record)
        return json.dumps(entry, ensure_ascii=False, default=str)


def _plain(value: object) -> object:
    """Return the value, or its text where JSON has no word for it (NaN, infinities)."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return formatter.formatException(record.exc_info) if record.exc_info else ""
