"""Embeddings and reranking by an endpoint: ``/embeddings`` as OpenAI, ``/rerank`` as Jina and vLLM have it."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_assistant.llm.failures import service_failures
from rag_assistant.records.errors import EmbedderFailed, RerankerFailed

if TYPE_CHECKING:
    import openai

# Somebody waits for the answer, which works without reranking.
RERANK_TIMEOUT_SECONDS = 8.0
MAX_RERANKING_BYTES = 4_000_000
BATCH_TIMEOUT_SECONDS = 60.0
# A single text is mostly a question, which keyword search can answer, too.
ITEM_TIMEOUT_SECONDS = 8.0


class EndpointReranker:
    """Asks an endpoint how well texts answer a question."""

    def __init__(self, base_url: str, api_key: str | None, model: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._model = model
        self._client: openai.OpenAI | None = None

    def __call__(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the indexes of texts, best answer first. Raises RerankerFailed."""
        from rag_assistant.llm.sdk import open_client

        where = f'The reranking model "{self._model}" at {self._base_url}'
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        if self._client is None:
            client = open_client(self._base_url, self._api_key, MAX_RERANKING_BYTES)
            self._client = client.with_options(timeout=RERANK_TIMEOUT_SECONDS, default_headers={"Connection": "close"})
        with service_failures(RerankerFailed, where, self._api_key, RERANK_TIMEOUT_SECONDS):
            return _order(self._client.post("/rerank", cast_to=object, body=body), len(texts))


def _order(answer: Any, count: int) -> list[int]:
    """Return the indexes by score; those without one come last, in their original order."""
    scores = {int(row["index"]): float(row["relevance_score"]) for row in answer["results"]}
    if not scores or not scores.keys() <= set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise ValueError("scores of other texts, or none")
    return sorted(range(count), key=lambda index: (-scores.get(index, -math.inf), index))


class EndpointEmbedder:
    def __init__(self, base_url: str, api_key: str | None, model: str, connect_seconds: float) -> None:
        self.name = f"endpoint-{model}"
        self._base_url = base_url
        self._api_key = api_key
        self._model = model
        self._connect_seconds = connect_seconds
        self._client: openai.OpenAI | None = None

    def load(self) -> None:
        from rag_assistant.llm.sdk import open_client

        self._client = open_client(self._base_url, self._api_key)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order. Raises EmbedderFailed."""
        from rag_assistant.llm.sdk import timeouts

        if self._client is None:
            raise RuntimeError("The embedder is loaded before it is used.")
        where = f'The embedding model "{self._model}" at {self._base_url}'
        seconds = ITEM_TIMEOUT_SECONDS if len(texts) == 1 else BATCH_TIMEOUT_SECONDS
        timeout = timeouts(min(self._connect_seconds, seconds), seconds)
        with service_failures(EmbedderFailed, where, self._api_key, seconds):
            # With a format given, the SDK leaves the numbers as they are; many servers support no other.
            answer: Any = self._client.embeddings.create(
                model=self._model, input=list(texts), encoding_format="float", timeout=timeout
            )
            return [row.embedding for row in sorted(answer.data or (), key=lambda row: row.index)]
