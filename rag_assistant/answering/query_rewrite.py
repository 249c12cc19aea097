"""Let a connected model put a follow-up question into words that stand alone, for the search."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_assistant.conversations.prompts import rewrite_request
from rag_assistant.errors import ModelError
from rag_assistant.records import ModelRequest

if TYPE_CHECKING:
    from rag_assistant.llm.calls import ModelCall
    from rag_assistant.llm.endpoint import Endpoint
    from rag_assistant.llm.models import LanguageModels
    from rag_assistant.presenters.turns import Exchange
    from rag_assistant.records import Turn

log = logging.getLogger(__name__)

# A search that waits longer than that for its words is worse than one with the words at hand.
TIMEOUT_SECONDS = 8.0
MAX_TOKENS = 120
MAX_QUERY_CHARS = 600


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A query as a model put it, ``None`` if it gave none, and the request with its answer."""

    query: str | None
    record: dict[str, Any] | None


NO_REWRITE = Rewrite(None, None)


def rewrite_query(
    models: LanguageModels,
    turn: Turn,
    exchanges: Sequence[Exchange],
    endpoint: Endpoint,
    tell: Callable[[str, str], None],
    call: ModelCall,
) -> Rewrite:
    """Return the question of a turn as a model rewrites it; no query where it answers late, or with something else.

    Raises AnswerStopped.
    """
    request = ModelRequest(
        tuple(rewrite_request(turn.question, exchanges)),
        max_tokens=MAX_TOKENS,
        temperature=0.0,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    tell("rewriting", "Rewriting your question for the search.")
    text, failed = "", False
    try:
        for reply in models.stream(endpoint, request, call, lambda _sentence: None):
            text += reply.text
    except ModelError as error:
        log.warning("The model did not rewrite the question of turn %s: %s", turn.id, error)
        failed = True
    finally:
        call.restart_deadline()
    record = {"request": request.as_body(endpoint.model), "answer": text}
    return Rewrite(None if failed else _as_query(text), record)


def _as_query(text: str) -> str | None:
    """Return a model's text as a query, ``None`` if it is none."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    query = lines[0].strip("\"'`“”„«»* ") if len(lines) == 1 else ""
    return query if 0 < len(query) <= MAX_QUERY_CHARS else None
