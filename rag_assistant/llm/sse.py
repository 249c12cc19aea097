"""Read server-sent events from bytes, as the WHATWG specification of event streams has it. Only the data matters here.

A decoder of our own, because the SDK's builds several objects for each token: see docs/benchmarks.md.
"""

from __future__ import annotations

import codecs


class EventStreamDecoder:
    """Takes an event stream in pieces cut anywhere, also within a character, and gives the data of whole events."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of every event that is complete with this piece."""
        text = self._rest + self._decode(piece)
        # A carriage return at the end may be half of a line break: it waits for the next piece.
        held = text.endswith("\r")
        if "\r" in text:
            text = text[:-1] if held else text
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        *lines, rest = text.split("\n")
        self._rest = rest + "\r" if held else rest
        return [data for line in lines if (data := self._line(line)) is not None]

    def _line(self, line: str) -> str | None:
        """Take one line; return the event's data if the line ends an event that has some."""
        if not line:
            data, self._data = self._data, []
            return "\n".join(data) if data else None
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return None
