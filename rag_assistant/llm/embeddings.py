"""Embeddings from an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_assistant.llm.failures import service_failures
from rag_assistant.records.errors import EmbedderFailed

if TYPE_CHECKING:
    import openai

BATCH_TIMEOUT_SECONDS = 60.0
# A single text is mostly a question, which words can answer, too.
ITEM_TIMEOUT_SECONDS = 8.0
# A batch of the longest vectors as text.
MAX_ANSWER_BYTES = 64_000_000
MAX_IDLE_CONNECTIONS = 4


class EndpointEmbedder:
    """Asks an endpoint's ``/embeddings`` for the vectors of texts."""

    def __init__(self, base_url: str, api_key: str | None, model: str, connect_seconds: float) -> None:
        self.name = f"endpoint-{model}"
        self._base_url = base_url
        self._api_key = api_key
        self._model = model
        self._connect_seconds = connect_seconds
        self._client: openai.OpenAI | None = None

    def load(self) -> None:
        """Load the SDK."""
        from rag_assistant.llm.sdk import open_client

        self._client = open_client(
            self._base_url,
            self._api_key,
            max_bytes=MAX_ANSWER_BYTES,
            max_seconds=BATCH_TIMEOUT_SECONDS,
            max_idle_connections=MAX_IDLE_CONNECTIONS,
        )

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in their order. Raises EmbedderFailed."""
        from rag_assistant.llm.sdk import timeouts

        if self._client is None:
            raise RuntimeError("The embedder is loaded before it is used.")
        where = f'The embedding model "{self._model}" at {self._base_url}'
        seconds = ITEM_TIMEOUT_SECONDS if len(texts) == 1 else BATCH_TIMEOUT_SECONDS
        timeout = timeouts(min(self._connect_seconds, seconds), seconds)
        with service_failures(EmbedderFailed, where, self._api_key, seconds):
            # Given a format, the SDK leaves the numbers as they come; many servers know no other.
            answer: Any = self._client.embeddings.create(
                model=self._model, input=list(texts), encoding_format="float", timeout=timeout
            )
            rows = sorted(answer.data or (), key=lambda row: row.index)
            return [row.embedding for row in rows]
