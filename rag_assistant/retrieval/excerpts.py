"""The part of a long text that has most to do with a question. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rag_assistant.retrieval.tokenize import search_words, stem

MARK = "…"
# A sentence; of what has no end, as much as ends at a blank, or so many characters.
PIECE = re.compile(r"\S[^\n]{0,299}?(?:[.!?…](?=\s)|[。！？]|$)|\S[^\n]{0,299}(?=\s)|\S[^\n]{0,299}", re.MULTILINE)  # noqa: RUF001


def excerpt(text: str, words: Sequence[str], max_chars: int) -> str:
    """Return a text, or so many characters of it that hold most of some words, marked where something is left out.

    A word counts less the more sentences hold it. Where two parts hold as much, the earlier one comes.
    """
    if len(text) <= max_chars:
        return text
    start = _start(text, set(map(stem, words)), max_chars)
    cut = text[start : start + max_chars].strip()
    return f"{f'{MARK} ' if start else ''}{cut}{f' {MARK}' if start + max_chars < len(text) else ''}"


def _start(text: str, query_words: set[str], max_chars: int) -> int:
    pieces = [(*one.span(), query_words & set(map(stem, search_words(one[0])))) for one in PIECE.finditer(text)]
    sentences_with = Counter(word for _, _, matched in pieces for word in matched)
    if not sentences_with:
        return 0

    def weight(first: int) -> float:
        begin, matched = pieces[first][0], set[str]()
        for _, end, there in pieces[first:]:
            if end > begin + max_chars:
                break
            matched |= there
        return sum(1 / sentences_with[word] for word in matched)

    best = pieces[max(range(len(pieces)), key=lambda n: (weight(n), -n))][0]
    # At the end of the text there is room for what stands before.
    return next((begin for begin, _, _ in pieces if begin >= min(best, len(text) - max_chars)), best)
