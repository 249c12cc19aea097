"""Reranking by an endpoint with the ``/rerank`` that Jina, Cohere, vLLM and llama.cpp have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_assistant.llm.failures import service_failures
from rag_assistant.records.errors import RerankerFailed

if TYPE_CHECKING:
    import openai

# Somebody waits for the answer, and there is an order without it.
TIMEOUT_SECONDS = 8.0
MAX_ANSWER_BYTES = 4_000_000


class EndpointReranker:
    """Asks an endpoint how well texts answer a question."""

    def __init__(self, base_url: str, api_key: str | None, model: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._model = model
        self._client: openai.OpenAI | None = None

    def __call__(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the indexes of some texts, the best answer first. Raises RerankerFailed."""
        from rag_assistant.llm.sdk import open_client

        where = f'The reranking model "{self._model}" at {self._base_url}'
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        if self._client is None:
            self._client = open_client(
                self._base_url,
                self._api_key,
                max_bytes=MAX_ANSWER_BYTES,
                max_seconds=TIMEOUT_SECONDS,
            ).with_options(timeout=TIMEOUT_SECONDS)
        with service_failures(RerankerFailed, where, self._api_key, TIMEOUT_SECONDS):
            return _order(self._client.post("/rerank", cast_to=object, body=body), len(texts))


def _order(answer: Any, count: int) -> list[int]:
    """Return the indexes by their scores; what has none stands behind, as it stood."""
    scores = {int(row["index"]): float(row["relevance_score"]) for row in answer["results"]}
    if not scores or not scores.keys() <= set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise ValueError("scores of other texts, or none")
    return sorted(range(count), key=lambda index: (-scores.get(index, -math.inf), index))
