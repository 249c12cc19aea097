"""The log: lines on standard error, for people or, with ``log_format: json``, for programs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """Writes a line of JSON for each record, with the figures that the record carries as ``fields``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback stands in ``exception``."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        } | getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(level: str, line_format: Literal["text", "json"]) -> None:
    """Log our own lines, and of others only what is amiss."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if line_format == "json" else logging.Formatter(LINE))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("rag_assistant").setLevel(level)
