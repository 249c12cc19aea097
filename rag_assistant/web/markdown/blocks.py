"""Renders a streaming answer block by block: finished blocks once, the open end with each piece.

What a reader has seen never disappears. So the open end is rendered as it will most likely read when it is finished
(see open_end.py), and what can still become either text or markup is held back.
"""

import re

from rag_assistant.web.languages import gettext
from rag_assistant.web.markdown.open_end import completed
from rag_assistant.web.markdown.render import drawn, is_too_much, parse, render_markdown

# Lines as Markdown counts them; str.splitlines also breaks at form feeds and Unicode separators.
LINES = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


class Blocks:
    """Takes an answer piece by piece, from its beginning."""

    def __init__(self) -> None:
        self._open = ""
        self._finished = 0
        # Rendering continues after the request has ended.
        self._copy = gettext("Copy")

    def add(self, text: str) -> tuple[int, str]:
        """Add a piece; return how many rendered elements stay, and the HTML after them."""
        self._open += text
        keep = self._finished
        if is_too_much(self._open):
            return keep, str(render_markdown(self._open))
        html = self._draw_finished()
        return keep, html + str(drawn(parse(completed(self._open)), self._copy))

    def _draw_finished(self) -> str:
        """Return the HTML of newly finished blocks, and skip them. The last block is never finished."""
        tokens = parse(self._open)
        starts = [number for number, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
        if len(starts) < 2:
            return ""
        last = tokens[starts[-1]]
        self._finished += len(starts) - 1
        html = str(drawn(tokens[: starts[-1]], self._copy))
        self._open = "".join(LINES.findall(self._open)[last.map[0] if last.map else 0 :])
        return html
