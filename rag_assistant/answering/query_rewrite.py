"""Let a connected model put a question that leans on the conversation into words that stand alone, for the search."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rag_assistant.answering.progress import Collaborators, Progress
from rag_assistant.answering.receipt import add_usage
from rag_assistant.errors import ModelError
from rag_assistant.presenters.turns import Exchange
from rag_assistant.prompts import rewrite_request
from rag_assistant.records import ModelRequest

log = logging.getLogger(__name__)

# A search that waits longer than that for its words is worse than one with the words at hand.
PATIENCE_SECONDS = 8.0
MOST_TOKENS = 120
LONGEST_QUERY = 600


def rewritten(progress: Progress, collaborators: Collaborators, exchanges: Sequence[Exchange]) -> str | None:
    """Return the question as a model puts it, ``None`` if it does not answer in time or with something else.

    Raises AnswerStopped. The request stands in the receipt, and is counted.
    """
    request = ModelRequest(
        tuple(rewrite_request(progress.turn.question, exchanges)),
        max_tokens=MOST_TOKENS,
        temperature=0.0,
        patience_seconds=PATIENCE_SECONDS,
    )
    progress.say("rewriting", "Putting your question into words that can be searched for.")
    text = ""
    try:
        for reply in collaborators.models.stream(progress.endpoint, request, progress.live.call, lambda _said: None):
            text += reply.text
            add_usage(progress.usage, reply)
    except ModelError as error:
        log.warning("The model did not rewrite the question of turn %s: %s", progress.turn.id, error)
        return None
    finally:
        progress.live.call.start_over()
        progress.rewrite = {"request": request.as_body(progress.endpoint.model), "answer": text}
    return _as_query(text)


def _as_query(text: str) -> str | None:
    """Return a model's text as a query, ``None`` if it is none."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    query = lines[0].strip("\"'`“”„«»* ") if len(lines) == 1 else ""
    return query if 0 < len(query) <= LONGEST_QUERY else None
