"""One request of an answer: exactly what the model sees, as little read for it as can be, fitted into what it takes."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil
from typing import Any

from rag_assistant.answering.progress import Collaborators, Progress
from rag_assistant.conversations.window import with_limits
from rag_assistant.errors import QuestionDoesNotFit
from rag_assistant.history import FittedHistory, count_message, estimate_tokens, fit_history
from rag_assistant.presenters.turns import history_figures
from rag_assistant.prompts import plain_question_message, question_message
from rag_assistant.records import Message, ModelRequest
from rag_assistant.retrieval.tokenize import query_words

BUILT_IN_SENTENCES = 5
RECALLABLE = frozenset({"turn_limit", "token_limit", "filtered", "summarised"})


def fit_request(progress: Progress, collaborators: Collaborators) -> FittedHistory:
    """Return the window, and no more, fitted with instructions and question into what the model takes.

    Where the question does not fit with what stands beside it, recalled turns go first, then the worst passages.
    Raises QuestionDoesNotFit.
    """
    while True:
        try:
            fitted = _fitted(progress, collaborators)
            return _fitted(progress, collaborators) if _recall(progress, collaborators, fitted) else fitted
        except QuestionDoesNotFit:
            if progress.recalled:
                progress.recalled = progress.recalled[:-1]
            elif progress.turn.sources and not progress.iterations:
                progress.turn = replace(progress.turn, sources=progress.turn.sources[:-1])
            else:
                raise


def as_request(
    progress: Progress, fitted: FittedHistory, schemas: tuple[dict[str, Any], ...], may_call: bool
) -> ModelRequest:
    """Return the request that sends what was fitted."""
    return ModelRequest(
        messages=tuple(fitted.messages),
        max_tokens=progress.choices.answer_tokens,
        temperature=progress.choices.temperature,
        tools=schemas if progress.choices.agent else (),
        call_tools=may_call,
    )


def figures_of(progress: Progress, fitted: FittedHistory, ratio: float) -> dict[str, Any]:
    """Return the figures of a request as the caller is told them."""
    question_only = ceil(count_message({"role": "user", "content": progress.turn.question}, estimate_tokens) * ratio)
    beside = max(0, fitted.receipt.tokens["question"] - question_only)
    recalled = [turn.number for turn in progress.recalled]
    return history_figures(fitted, beside, progress.endpoint.context_tokens, recalled)


def estimated_tokens(request: ModelRequest) -> int:
    """Return our own estimate of a request, as it is before any correction."""
    schemas = estimate_tokens(json.dumps(request.tools)) if request.tools else 0
    return schemas + sum(count_message(message, estimate_tokens) for message in request.messages)


def _fitted(progress: Progress, collaborators: Collaborators) -> FittedHistory:
    past = progress.read_past(collaborators.history)
    ratio = collaborators.models.ratio(progress.endpoint)
    policy = with_limits(past, progress.choices, ratio, collaborators.tools.schemas, progress.token_cap)
    system: Message = {"role": "system", "content": progress.choices.instructions}
    question = _question(progress, collaborators)
    return fit_history([system, *past.messages, question, *progress.iterations], policy)


def _recall(progress: Progress, collaborators: Collaborators, fitted: FittedHistory) -> bool:
    """Find those of the left-out turns that the question is about, once; tell whether there are any."""
    wanted = progress.settings.history_recall
    something_left_out = any(run.reason in RECALLABLE for run in fitted.receipt.left_out)
    if not wanted or progress.has_recalled or progress.iterations or not something_left_out:
        return False
    progress.has_recalled = True
    progress.recalled = tuple(
        collaborators.history.recall(
            progress.conversation,
            query_words(progress.turn.question),
            progress.turn.number,
            fitted.receipt.kept_turns,
            wanted,
        )
    )
    return bool(progress.recalled)


def _question(progress: Progress, collaborators: Collaborators) -> Message:
    """Return the question with what stands beside it, in the form that the model can make use of."""
    turn = progress.turn
    if not progress.endpoint.built_in:
        if progress.choices.agent:
            return question_message(turn.question, (), progress.recalled)
        in_vain = turn.search is not None and turn.search["found"] == 0
        return question_message(turn.question, turn.sources, progress.recalled, searched_in_vain=in_vain)
    texts = [source.text for source in turn.sources]
    # What the question leans on tells which sentences it is about.
    about = f"{(turn.search or {}).get('leans_on') or ''} {turn.question}".strip()
    sentences = collaborators.retriever.sentences(about, texts, BUILT_IN_SENTENCES)
    return plain_question_message(turn.question, sentences, bool(progress.past and progress.past.messages))
