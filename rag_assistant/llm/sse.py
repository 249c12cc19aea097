"""Read server-sent events from bytes (WHATWG HTML, section 9.2.6, interpreting an event stream). Only data matters.

A decoder of our own, because the SDK's builds several objects for each token: see docs/benchmarks.md. It works on
bytes: a line is whole before anyone decodes it, so no character is ever cut.
"""

from __future__ import annotations

BOM = b"\xef\xbb\xbf"


class EventStreamDecoder:
    """Takes an event stream in pieces cut anywhere, and gives the data of whole events, as UTF-8."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of every event that is complete with this piece."""
        text = self._rest + piece if self._rest else piece
        if not self._begun:
            if len(text) < len(BOM) and BOM.startswith(text):
                self._rest = text
                return []
            self._begun = True
            text = text.removeprefix(BOM)
        held = b""
        if b"\r" in text:
            # A carriage return at the end may be half of a line break: it waits for the next piece.
            held = b"\r" if text.endswith(b"\r") else b""
            text = text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = rest + held
        whole = []
        for line in lines:
            if not line:
                if self._data:
                    whole.append(b"\n".join(self._data))
                    self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b" ", 5) else line[5:])
            elif line == b"data":
                self._data.append(b"")
        return whole
