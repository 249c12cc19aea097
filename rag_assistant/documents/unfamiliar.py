"""Notice that the library is in languages which the embedding model does not know."""

from msgspec import Struct

from rag_assistant.records.errors import EmbedderFailed
from rag_assistant.retrieval.embeddings.registry import Embedders
from rag_assistant.storage.documents.chunks import ChunkStore

# The newest documents stand for the library, and its beginning for each of them.
DOCUMENTS_READ, CHARACTERS_READ = 20, 600
# Of MiniLM's words whole: 240 paragraphs of Wikipedia in English have .59 and more, 95 of 100 in German .43 and less,
# and Chinese ones none; 98 of 100 abstracts in English have .5 and more.
MIN_KNOWN_WORDS = 0.5
# So many documents, and such a share of those that were read, are worth a word.
MIN_DOCUMENTS, MIN_SHARE = 2, 0.2


class Unfamiliar(Struct, frozen=True):
    """How many of the newest documents the embedding model does not know."""

    documents: int
    read: int


def unfamiliar_documents(chunks: ChunkStore, embedders: Embedders) -> Unfamiliar | None:
    """Look at the newest documents; ``None`` where it is not worth a word or the model is not ready."""
    if not embedders.loaded:
        return None
    texts = chunks.newest_beginnings(DOCUMENTS_READ, CHARACTERS_READ)
    try:
        embedder = embedders.configured()
        unknown = sum(embedder.familiarity(text).words < MIN_KNOWN_WORDS for text in texts)
    except EmbedderFailed:
        return None
    return Unfamiliar(unknown, len(texts)) if unknown >= max(MIN_DOCUMENTS, MIN_SHARE * len(texts)) else None
