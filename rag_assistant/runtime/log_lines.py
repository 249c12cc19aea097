"""The log: lines on standard error, for people or, with ``log_format: json``, for programs.

Each line has the ids of the request and of the turn for which it was written.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from rag_assistant.runtime.request_context import ids

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TextLines(logging.Formatter):
    """Writes a line for people, with the ids in brackets at its end."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line, without a traceback."""
        known = ", ".join(f"{name} {value}" for name, value in ids().items())
        return super().formatMessage(record) + (f" [{known}]" if known else "")


class JsonLines(logging.Formatter):
    """Writes a line of JSON for each record, with the figures that the record carries as ``fields``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback stands in ``exception``."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= ids() | getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(level: str, line_format: Literal["text", "json"]) -> None:
    """Log our own lines, and of others only what is amiss."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if line_format == "json" else TextLines(LINE))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("rag_assistant").setLevel(level)
