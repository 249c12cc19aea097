"""A line of the log for programs."""

import json
import logging
import sys
from contextvars import Context

from rag_assistant.records.errors import StorageFailed
from rag_assistant.server.serve import JsonLines, say_known_failures


def line_of(message: str, *values: object, **more: object) -> dict[str, object]:
    record = logging.LogRecord("rag_assistant.x", logging.WARNING, __file__, 1, message, values, more.pop("exc", None))  # type: ignore[arg-type]
    record.__dict__.update(more)
    text = Context().run(JsonLines().format, record)  # Of no request, whatever a test before this one made.
    assert "\n" not in text
    found: dict[str, object] = json.loads(text)
    return found


def test_a_line_has_time_level_source_and_message_whatever_is_in_them() -> None:
    line = line_of('"%s" was\nsaid', "Gänse\x1b[31m")
    assert str(line.pop("time")).endswith("+00:00")
    assert line == {"level": "WARNING", "logger": "rag_assistant.x", "message": '"Gänse\x1b[31m" was\nsaid'}


def test_figures_and_a_traceback_come_along() -> None:
    try:
        raise ValueError("a reason")
    except ValueError:
        line = line_of("failed", exc=sys.exc_info(), fields={"status": 500})
    assert line["status"] == 500
    assert str(line["exception"]).endswith("ValueError: a reason")


def test_an_error_of_ours_is_its_sentence_and_any_other_keeps_its_traceback() -> None:
    for error, said in ((StorageFailed("The disk is full."), "failed: The disk is full."), (ValueError("a"), "failed")):
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed", (), (type(error), error, None))
        assert say_known_failures(record)
        assert (record.getMessage(), record.exc_info is None) == (said, isinstance(error, StorageFailed))
