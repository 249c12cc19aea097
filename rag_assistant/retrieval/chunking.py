"""Cut a document into chunks along its structure: headings and paragraphs first, sentences and words where needed."""

from __future__ import annotations

from bisect import bisect_right

from rag_assistant.records import Chunk, ExtractedText
from rag_assistant.retrieval.loaders import MARKDOWN


def chunk_document(extracted: ExtractedText, chunk_chars: int) -> list[Chunk]:
    """Return the chunks of a document in their order, each at most ``chunk_chars`` characters.

    Together they hold every character but white space, and ``chunk.text`` is ``extracted.text[chunk.start:chunk.end]``.
    """
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    splitter = MarkdownSplitter if extracted.media_type == MARKDOWN else TextSplitter
    pieces = splitter(chunk_chars, trim=True).chunk_indices(extracted.text)
    return [
        Chunk(position, start, start + len(text), text, _page_at(extracted.page_starts, start))
        for position, (start, text) in enumerate(pieces)
    ]


def _page_at(page_starts: tuple[int, ...], offset: int) -> int | None:
    """Return the number, from 1, of the page on which a character stands; ``None`` where there are no pages."""
    return bisect_right(page_starts, offset) if page_starts else None
