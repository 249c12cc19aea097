"""Reranking by an endpoint with the ``/rerank`` that Jina, Cohere, vLLM and llama.cpp have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rag_assistant.llm.sdk import sdk_client, service_failures
from rag_assistant.records.errors import RerankerFailed

# Somebody waits for the answer, and there is an order without it.
TIMEOUT_SECONDS = 8.0
MAX_ANSWER_BYTES = 4_000_000


class EndpointReranker:
    """Asks an endpoint how well texts answer a question."""

    def __init__(self, base_url: str, api_key: str | None, model: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._model = model

    def __call__(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the indexes of some texts, the best answer first. Raises RerankerFailed."""
        import httpx2

        from rag_assistant.llm.transport import BoundedTransport

        where = f'The reranking model "{self._model}" at {self._base_url}'
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        http = httpx2.Client(transport=BoundedTransport(MAX_ANSWER_BYTES, TIMEOUT_SECONDS))
        with (
            service_failures(RerankerFailed, where, self._api_key, TIMEOUT_SECONDS),
            sdk_client(self._base_url, self._api_key, timeout=TIMEOUT_SECONDS, http_client=http) as client,
        ):
            return _order(client.post("/rerank", cast_to=object, body=body), len(texts))


def _order(answer: Any, count: int) -> list[int]:
    """Return the indexes by their scores; what has none stands behind, as it stood."""
    scores = {int(row["index"]): float(row["relevance_score"]) for row in answer["results"]}
    if not scores or not scores.keys() <= set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise ValueError("scores of other texts, or none")
    return sorted(range(count), key=lambda index: (-scores.get(index, -math.inf), index))
