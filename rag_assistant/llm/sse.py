"""Read server-sent events from bytes (WHATWG HTML, section 9.2.6, interpreting an event stream). Only data matters.

A decoder of our own, because the SDK's builds several objects for each token: see docs/benchmarks.md. It works on
bytes: a line is whole before anyone decodes it, so no character is ever cut.
"""

from __future__ import annotations

from rag_assistant.records.errors import AnswerTooLong

BOM = b"\xef\xbb\xbf"
# A token takes some hundred bytes; whole tool calls may come in one event.
MAX_EVENT_BYTES = 2_000_000


class EventStreamDecoder:
    """Takes an event stream in pieces cut anywhere, and gives the data of whole events, as UTF-8."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False
        self._after_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of every event that is complete with this piece. Raises AnswerTooLong."""
        if not piece:
            return []
        if self._after_return:  # It ended a line already, and a line feed behind it belongs to it.
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r")
        text = self._rest + piece if self._rest else piece
        if not self._begun:
            if len(text) < len(BOM) and BOM.startswith(text):
                self._rest = text
                return []
            self._begun = True
            text = text.removeprefix(BOM)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *events, self._rest = text.split(b"\n\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise AnswerTooLong(f"The model sent an event of more than {MAX_EVENT_BYTES:,} bytes.")
        whole = []
        for event in events:
            if event.startswith(b"data: ") and b"\n" not in event:
                whole.append(event[6:])
            elif data := _data_in(event):
                whole.append(b"\n".join(data))
        return whole


def _data_in(event: bytes) -> list[bytes]:
    """Return the lines of an event that are data."""
    fields = (line.partition(b":") for line in event.split(b"\n"))
    return [value.removeprefix(b" ") for name, _, value in fields if name == b"data"]
