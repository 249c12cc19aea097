"""How a question is put to a model: as the settings say, else as suits it. Pure.

The built-in model has 135 million parameters: fewer passages, a short instruction and no chance serve it best
(measured in docs/benchmarks.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from rag_assistant.conversations.collaborators import Endpoint
from rag_assistant.prompts import AGENT_INSTRUCTIONS, BUILT_IN_INSTRUCTIONS, INSTRUCTIONS
from rag_assistant.settings.schema import Settings

PASSAGES = 6
BUILT_IN_PASSAGES = 2
ANSWER_TOKENS_KEPT_FREE = 1024
BUILT_IN_ANSWER_TOKENS = 100
BUILT_IN_TEMPERATURE = 0.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choices:
    """What goes with a question: instructions, how many passages, and the limits in tokens (``None``: no limit).

    ``agent``: the model searches by itself, with tools.

    ``request_tokens`` is what a request may have, ``most_tokens`` what the model takes of it, whatever is set.
    """

    instructions: str
    passages: int
    request_tokens: int | None
    most_tokens: int | None
    answer_tokens: int | None
    temperature: float | None
    agent: bool = False


def choices_for(endpoint: Endpoint, settings: Settings) -> Choices:
    """Return what goes with a question to this model."""
    agent = settings.retrieval == "agent" and endpoint.takes_tools
    built_in = endpoint.built_in
    answer_tokens = _first(settings.max_answer_tokens, BUILT_IN_ANSWER_TOKENS if built_in else None)
    room = _room(endpoint, answer_tokens)
    return Choices(
        instructions=settings.instructions or _instructions(built_in, agent),
        passages=_first(settings.max_passages, BUILT_IN_PASSAGES if built_in else PASSAGES),
        request_tokens=_smaller(settings.history_token_budget, room),
        most_tokens=room,
        answer_tokens=answer_tokens,
        temperature=_first(settings.temperature, BUILT_IN_TEMPERATURE if built_in else None),
        agent=agent,
    )


def _instructions(built_in: bool, agent: bool) -> str:
    if built_in:
        return BUILT_IN_INSTRUCTIONS
    return AGENT_INSTRUCTIONS if agent else INSTRUCTIONS


def _room(endpoint: Endpoint, answer_tokens: int | None) -> int | None:
    """Return how many tokens of what the model takes are left without the answer."""
    if endpoint.context_tokens is None:
        return None
    free = answer_tokens or min(ANSWER_TOKENS_KEPT_FREE, endpoint.context_tokens // 4)
    return endpoint.context_tokens - free


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _first(said: T | None, suits: T) -> T:
    return suits if said is None else said
