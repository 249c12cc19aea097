"""Rerank the best candidates of a search with a model, if one is configured and works."""

import logging
import time
from collections.abc import Callable, Sequence

from rag_assistant.records import Passage
from rag_assistant.records.errors import RerankerFailed
from rag_assistant.retrieval.chunking import indexed_text

log = logging.getLogger(__name__)

# Returns the indexes of texts, the best answer to a question first. Raises RerankerFailed.
Rerank = Callable[[str, Sequence[str]], list[int]]

MAX_RERANKED = 50
# After a failure the model isn't used for a while: each question would wait for it again.
COOLDOWN_SECONDS = 30.0


class Reranking:
    """Uses a reranking model. If it fails, the order is unchanged."""

    def __init__(self, rerank: Rerank | None) -> None:
        self.model = rerank
        self._rests_until = 0.0

    @property
    def candidates(self) -> int:
        """How many passages the model wants to see; 0 without one."""
        return MAX_RERANKED if self.model is not None else 0

    @property
    def failing(self) -> bool:
        """Whether the model failed a moment ago."""
        return time.monotonic() < self._rests_until

    def best_first(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages, the best answer to a question first."""
        if self.model is None or self.failing or len(passages) < 2:
            return list(passages)
        texts = [indexed_text(one.document, one.section, one.text) for one in passages[:MAX_RERANKED]]
        try:
            order = self.model(query, texts)
        except RerankerFailed as error:
            log.warning("The passages stay in the order of the search: %s", error)
            self._rests_until = time.monotonic() + COOLDOWN_SECONDS
            return list(passages)
        return [passages[index] for index in order] + list(passages[MAX_RERANKED:])
