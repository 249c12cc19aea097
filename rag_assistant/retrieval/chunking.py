"""Cut a document into chunks along its structure: headings and paragraphs first, sentences and words where needed."""

from __future__ import annotations

from itertools import pairwise

from rag_assistant.records import Chunk, ExtractedText
from rag_assistant.retrieval.loaders import MARKDOWN


def chunk_document(extracted: ExtractedText, chunk_chars: int) -> list[Chunk]:
    """Return the chunks of a document in their order, each at most ``chunk_chars`` characters.

    Together they hold every character but white space, and ``chunk.text`` is ``extracted.text[chunk.start:chunk.end]``.
    """
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    splitter = (MarkdownSplitter if extracted.media_type == MARKDOWN else TextSplitter)(chunk_chars, trim=True)
    chunks: list[Chunk] = []
    for number, (first, last) in enumerate(_pages(extracted), 1):
        for start, text in splitter.chunk_indices(extracted.text[first:last]):
            page = number if extracted.page_starts else None
            chunks.append(Chunk(len(chunks), first + start, first + start + len(text), text, page))
    return chunks


def _pages(extracted: ExtractedText) -> list[tuple[int, int]]:
    """Return where each page begins and ends; a text without pages is one. No chunk reaches over two pages."""
    return list(pairwise([*(extracted.page_starts or (0,)), len(extracted.text)]))
