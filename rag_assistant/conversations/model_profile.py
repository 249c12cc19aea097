"""How a request is put to a model: as the settings say, else as suits the model. Pure.

The built-in model has 135 million parameters: fewer passages, a short instruction and no chance serve it best
(measured in docs/benchmarks.md).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from rag_assistant.conversations.prompts import AGENT_INSTRUCTIONS, BUILT_IN_INSTRUCTIONS, INSTRUCTIONS
from rag_assistant.history import CountTokens, estimate_tokens

if TYPE_CHECKING:
    from rag_assistant.llm.endpoint import Endpoint
    from rag_assistant.settings.schema import Settings

PASSAGES = 6
BUILT_IN_PASSAGES = 2
RESERVED_ANSWER_TOKENS = 1024
BUILT_IN_ANSWER_TOKENS = 100
BUILT_IN_TEMPERATURE = 0.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What goes with every request to one model: instructions, tools, how many passages, and the limits in tokens.

    ``request_tokens`` is what a request may have, ``max_request_tokens`` what the model takes of it whatever is set;
    ``None`` is no limit. ``token_ratio`` is how the model counts tokens, against our estimate. ``tools`` are schemas
    in the OpenAI format, empty where the model does not search by itself.
    """

    endpoint: Endpoint
    instructions: str
    passages: int
    request_tokens: int | None
    max_request_tokens: int | None
    answer_tokens: int | None
    temperature: float | None
    token_ratio: float = 1.0
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def count_tokens(self) -> CountTokens:
        """What tells how many tokens the model counts in a text: our estimate, corrected."""
        ratio = self.token_ratio
        return estimate_tokens if ratio == 1.0 else lambda text: ceil(estimate_tokens(text) * ratio)

    @property
    def tool_tokens(self) -> int:
        """How many tokens the schemas of the tools take."""
        return self.count_tokens(json.dumps(self.tools)) if self.tools else 0


def profile_for(
    endpoint: Endpoint, settings: Settings, token_ratio: float = 1.0, tools: Sequence[dict[str, Any]] = ()
) -> ModelProfile:
    """Return what goes with a request to this model; ``tools`` are those that it may be offered."""
    offered = tuple(tools) if settings.retrieval_mode == "agent" and endpoint.takes_tools else ()
    built_in = endpoint.built_in
    answer_tokens = _first(settings.max_answer_tokens, BUILT_IN_ANSWER_TOKENS if built_in else None)
    max_request_tokens = _max_request_tokens(endpoint, answer_tokens)
    return ModelProfile(
        endpoint=endpoint,
        instructions=settings.instructions or _instructions(built_in, bool(offered)),
        passages=_first(settings.max_passages, BUILT_IN_PASSAGES if built_in else PASSAGES),
        request_tokens=min_limit(settings.history_token_budget, max_request_tokens),
        max_request_tokens=max_request_tokens,
        answer_tokens=answer_tokens,
        temperature=_first(settings.temperature, BUILT_IN_TEMPERATURE if built_in else None),
        token_ratio=token_ratio,
        tools=offered,
    )


def min_limit(*limits: int | None) -> int | None:
    """Return the smallest of some limits, where ``None`` is no limit."""
    return min((limit for limit in limits if limit is not None), default=None)


def _instructions(built_in: bool, uses_tools: bool) -> str:
    if built_in:
        return BUILT_IN_INSTRUCTIONS
    return AGENT_INSTRUCTIONS if uses_tools else INSTRUCTIONS


def _max_request_tokens(endpoint: Endpoint, answer_tokens: int | None) -> int | None:
    """Return how many tokens of the model's context window are left without the answer."""
    if endpoint.context_tokens is None:
        return None
    reserved = answer_tokens or min(RESERVED_ANSWER_TOKENS, endpoint.context_tokens // 4)
    return endpoint.context_tokens - reserved


def _first(configured: T | None, default: T) -> T:
    return default if configured is None else configured
