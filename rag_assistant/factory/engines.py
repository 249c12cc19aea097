"""What computes: the embedding model, the search over its vectors, the reranking model, the tools of other servers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rag_assistant.answering.remote_tools import RemoteTools
from rag_assistant.factory.extras import extra_for
from rag_assistant.llm.client import OPENAI_BASE_URL
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.documents.keywords import KeywordIndex
from rag_assistant.storage.documents.vector_indexes import VectorIndexes
from rag_assistant.storage.documents.vector_table import VectorTable

if TYPE_CHECKING:
    from rag_assistant.llm.reranking import EndpointReranker
    from rag_assistant.records import KnownEmbedder
    from rag_assistant.retrieval.embeddings.registry import Embedders, EmbeddingModel
    from rag_assistant.retrieval.indexes.keywords_in_memory import KeywordsInMemory
    from rag_assistant.retrieval.indexes.vector_search import ApproximateIndex, VectorSearch
    from rag_assistant.retrieval.search import Retriever
from rag_assistant.factory.stores import Stores

log = logging.getLogger(__name__)

# In the data folder: what is made of the embedding model's file at the first start.
EMBEDDERS = "embedders"


class Search(Struct, frozen=True):
    """Everything that finds passages."""

    embedders: Embedders
    vectors: VectorSearch
    keywords: KeywordsInMemory
    retriever: Retriever


def build_search(values: Settings, data_dir: Path, stores: Stores) -> Search:
    """Return the search over the chunks of the stores."""
    # Loading numpy and with it the search takes a while.
    from rag_assistant.retrieval.embeddings.registry import Embedders
    from rag_assistant.retrieval.indexes.chroma import ChromaIndex
    from rag_assistant.retrieval.indexes.keywords_in_memory import KeywordsInMemory
    from rag_assistant.retrieval.indexes.pgvector import PgVectorIndex
    from rag_assistant.retrieval.indexes.vector_search import VectorSearch
    from rag_assistant.retrieval.reranking import Reranking
    from rag_assistant.retrieval.search import Retriever

    def open_index(known: KnownEmbedder) -> ApproximateIndex:
        problem = None
        if not stores.database.is_sqlite and values.chroma_url is None:
            table = VectorTable(stores.database)
            problem = table.prepare()
            if problem is None:
                return PgVectorIndex(stores.embeddings, table, VectorIndexes(stores.database), known)
            log.warning(problem)
        folder = data_dir / "chroma"
        return ChromaIndex(stores.embeddings, known, values.chroma_url, folder, notice=problem)

    embedders = Embedders(
        stores.embeddings, embedder_source(values), lambda source: open_embedder(source, values, data_dir)
    )
    vectors = VectorSearch(stores.embeddings, embedders, open_index)
    reranking = Reranking(open_reranker(values))
    keywords = KeywordIndex(stores.database)
    in_memory = KeywordsInMemory(keywords)
    return Search(embedders, vectors, in_memory, Retriever(stores.chunks, keywords, vectors, reranking, in_memory))


def build_remote_tools(values: Settings) -> RemoteTools:
    """Return the tools of the servers that are set, not connected yet. Raises SettingsError.

    The SDK is loaded only if there are any.
    """
    if not values.mcp_servers:
        return RemoteTools()
    with extra_for("mcp_servers", "mcp"):
        from rag_assistant.llm.tool_servers.connection import ToolServer
    return RemoteTools([ToolServer(name, where) for name, where in values.mcp_servers.items()])


def embedder_source(values: Settings) -> dict[str, Any]:
    """Return the settings that lead to the embedding model, without what may hold a key."""
    source: dict[str, Any] = {"embedder": values.embedder}
    if values.embedder.startswith("endpoint:"):
        base_url = values.embedding_base_url or values.openai_base_url or OPENAI_BASE_URL
        source["base_url"] = base_url.rstrip("/")
    return source


def open_embedder(source: dict[str, Any], values: Settings, data_dir: Path) -> EmbeddingModel:
    """Return the embedding model to which a source leads, not loaded yet."""
    from rag_assistant.llm.embeddings import EndpointEmbedder
    from rag_assistant.retrieval.embeddings.chroma_functions import ChromaEmbedder
    from rag_assistant.retrieval.embeddings.minilm import MiniLM
    from rag_assistant.retrieval.embeddings.multilingual_e5 import MultilingualE5

    kind, _, name = source["embedder"].partition(":")
    if kind == "builtin":
        return MiniLM(data_dir / EMBEDDERS)
    if kind == "builtin-multilingual":
        return MultilingualE5(data_dir / EMBEDDERS)
    if kind == "endpoint":
        # The key of one endpoint is never sent to another.
        own = source["base_url"] == embedder_source(values).get("base_url")
        shared = values.openai_api_key if values.embedding_base_url is None else None
        key = (values.embedding_api_key or shared) if own else None
        return EndpointEmbedder(source["base_url"], key, name, values.connect_timeout_seconds)
    own_options = values.embedder_options if source["embedder"] == values.embedder else None
    return ChromaEmbedder(name, own_options or {})


def open_reranker(values: Settings) -> EndpointReranker | None:
    """Return the reranking model that the settings name, ``None`` if they name none."""
    from rag_assistant.llm.reranking import EndpointReranker

    if values.rerank_model is None:
        return None
    base_url = values.rerank_base_url or values.openai_base_url or OPENAI_BASE_URL
    # The key of one endpoint is never sent to another.
    shared = values.openai_api_key if values.rerank_base_url is None else None
    return EndpointReranker(base_url, values.rerank_api_key or shared, values.rerank_model)
