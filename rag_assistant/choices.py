"""How a question is put to a model: as the settings say, else as suits it. Pure.

The built-in model has 135 million parameters: fewer passages, a short instruction and no chance serve it best
(measured in docs/benchmarks.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from rag_assistant.collaborators import Endpoint
from rag_assistant.prompt import BUILT_IN_INSTRUCTIONS, INSTRUCTIONS
from rag_assistant.settings import Settings

PASSAGES = 6
BUILT_IN_PASSAGES = 2
ANSWER_TOKENS_KEPT_FREE = 1024
BUILT_IN_ANSWER_TOKENS = 100
BUILT_IN_TEMPERATURE = 0.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choices:
    """What goes with a question: instructions, how many passages, and the limits in tokens (``None``: no limit)."""

    instructions: str
    passages: int
    request_tokens: int | None
    answer_tokens: int | None
    temperature: float | None


def choices_for(endpoint: Endpoint, settings: Settings) -> Choices:
    """Return what goes with a question to this model."""
    built_in = endpoint.built_in
    answer_tokens = _first(settings.max_answer_tokens, BUILT_IN_ANSWER_TOKENS if built_in else None)
    return Choices(
        instructions=settings.instructions or (BUILT_IN_INSTRUCTIONS if built_in else INSTRUCTIONS),
        passages=_first(settings.max_passages, BUILT_IN_PASSAGES if built_in else PASSAGES),
        request_tokens=_request_tokens(endpoint, settings.history_token_budget, answer_tokens),
        answer_tokens=answer_tokens,
        temperature=_first(settings.temperature, BUILT_IN_TEMPERATURE if built_in else None),
    )


def _request_tokens(endpoint: Endpoint, budget: int | None, answer_tokens: int | None) -> int | None:
    """Return the most tokens that the request may have: what the model takes without the answer, or less if set."""
    if endpoint.context_tokens is None:
        return budget
    free = answer_tokens or min(ANSWER_TOKENS_KEPT_FREE, endpoint.context_tokens // 4)
    room = endpoint.context_tokens - free
    return room if budget is None else min(budget, room)


def _first(said: T | None, suits: T) -> T:
    return suits if said is None else said
