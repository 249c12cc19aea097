"""Let a connected model put a follow-up question into words that stand alone, for the search."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rag_assistant.conversations.prompts import rewrite_request
from rag_assistant.llm.client import collect
from rag_assistant.records import ModelRequest
from rag_assistant.records.errors import ModelError, cause_alone
from rag_assistant.retrieval.claims import NUMBER
from rag_assistant.retrieval.tokenize import content_stems, search_words, stem

if TYPE_CHECKING:
    from rag_assistant.answering.live import LiveTurn
    from rag_assistant.llm.endpoint import Endpoint
    from rag_assistant.llm.models import LanguageModels
    from rag_assistant.records import Exchange

log = logging.getLogger(__name__)

# A search that waits longer than that for its words is worse than one with the words at hand.
TIMEOUT_SECONDS = 8.0
MAX_TOKENS = 120
MAX_QUERY_CHARS = 600


class Rewrite(Struct, frozen=True):
    """A query as a model put it, ``None`` if it gave none that is of use, and the request with its answer.

    Where the answer was not taken, the record's ``refused`` says why.
    """

    query: str | None
    record: dict[str, Any] | None


NO_REWRITE = Rewrite(None, None)


def rewrite_query(models: LanguageModels, live: LiveTurn, exchanges: Sequence[Exchange], endpoint: Endpoint) -> Rewrite:
    """Return the question of a turn as a model rewrites it; no query where it answers late, or with something else.

    Raises AnswerStopped.
    """
    request = ModelRequest(
        tuple(rewrite_request(live.turn.question, exchanges)),
        max_tokens=MAX_TOKENS,
        temperature=0.0,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    live.tell("rewriting", "Rewriting your question for the search.")
    text = ""
    try:
        text, _ = collect(models.stream(endpoint, request, live.call))
    except ModelError as error:
        log.warning("The model did not rewrite the question of turn %s: %s", live.turn.id, cause_alone(str(error)))
    finally:
        live.call.restart_deadline()
    record = {"request": request.as_body(endpoint.model), "answer": text}
    query = _as_query(text)
    refused = None if query is None else why_refused(live.turn.question, query, exchanges)
    return Rewrite(query, record) if refused is None else Rewrite(None, record | {"refused": refused})


def why_refused(question: str, query: str, exchanges: Sequence[Exchange]) -> str | None:
    """Return in a sentence why a model's query is not what was asked; ``None`` if it can be searched with.

    Small models answer the question instead, or make up what it is about (docs/retrieval-benchmarks.md).
    """
    question_words, query_words = content_stems(question), content_stems(query)
    conversation_words = {stem(word) for exchange in exchanges for text in exchange for word in search_words(text)}
    added = query_words - question_words
    if question.rstrip().endswith("?") and query.endswith((".", "!")):
        return "It is a statement and no question."
    if not set(NUMBER.findall(question)) <= set(NUMBER.findall(query)):
        return "A number of the question is missing."
    if len(question_words - query_words) > len(question_words) / 2:
        return "Most words of the question are missing."
    if not added:
        return "It adds nothing to the question."
    if len(added - conversation_words) > max(1, len(added) / 2):
        return "Most of its words stand neither in the question nor in the conversation."
    return None


def _as_query(text: str) -> str | None:
    """Return a model's text as a query, ``None`` if it is none."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    query = lines[0].strip("\"'`“”„«»* ") if len(lines) == 1 else ""
    return query if 0 < len(query) <= MAX_QUERY_CHARS else None
