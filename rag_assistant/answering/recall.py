"""Turns that are left out of a request although the question seems to be about them: quoted beside it, or told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_assistant.answering.request import BuiltRequest, build_request
from rag_assistant.history import UNANSWERED
from rag_assistant.retrieval.tokenize import query_words

if TYPE_CHECKING:
    from rag_assistant.storage.conversations.history import HistoryStore

# What a person left out never comes back by itself.
RECALLABLE = frozenset({"turn_limit", "token_limit", "filtered", "summarised"})
# So many turns are looked at, or as many as may be recalled.
MAX_RELATED = 5


def with_recall(built: BuiltRequest, history: HistoryStore, before: int, limit: int) -> BuiltRequest:
    """Return a request of turn number ``before`` with up to ``limit`` of the related turns that it leaves out.

    They take the room that is left. Those that are not sent are the request's ``missing``.
    """
    draft, receipt = built.draft, built.fitted.receipt
    quotes = draft.profile.endpoint.quotes
    # Quotes are of documents alone: of the conversation they have nothing before them, whatever the window keeps.
    seen, limit = ((), 0) if quotes else (receipt.kept_turns, limit)
    if not quotes and all(run.reason in UNANSWERED for run in receipt.left_out):
        return built
    words, most = query_words(draft.question), max(limit, MAX_RELATED)
    found = history.related(draft.window.conversation, words, before, seen, most)
    if not found:
        return built
    related = tuple(turn if turn.why else replace(turn, why=receipt.why_left_out(turn.number)) for turn in found)
    recalled = tuple(turn for turn in related if turn.why in RECALLABLE)[:limit]
    return build_request(replace(draft, related=related, recalled=recalled))
