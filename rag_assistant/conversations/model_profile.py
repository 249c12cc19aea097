"""How a request is put to a model: as the settings say, else as suits the model. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rag_assistant.conversations.prompts import AGENT_INSTRUCTIONS, INSTRUCTIONS, PLAIN_INSTRUCTIONS, QUOTE_INSTRUCTIONS
from rag_assistant.history import CountTokens, estimate_tokens
from rag_assistant.records import AS_SET, AnswerOptions, Project

if TYPE_CHECKING:
    from rag_assistant.llm.endpoint import Endpoint
    from rag_assistant.settings.schema import Settings

PASSAGES = 6
RESERVED_ANSWER_TOKENS = 1024
# The tool that is offered where propose_notes is set.
PROPOSES_NOTE = "remember"
SHORTER_ANSWERS = (
    "max_answer_tokens is {}, but the model takes {} tokens for question and answer together; {} were kept for the "
    "answer."
)


class ModelProfile(Struct, frozen=True):
    """What goes with every request to one model: instructions, tools, how many passages, and the limits in tokens.

    ``request_tokens`` is what a request may have, ``max_request_tokens`` what the model takes of it whatever is set;
    ``None`` is no limit. ``token_ratio`` is how the model counts tokens, against our estimate. ``tools`` are schemas
    in the OpenAI format, empty where the model does not search by itself. ``fields`` go along as a caller sent them.
    ``note`` tells of a setting that cannot hold for this model.
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
    fields: Mapping[str, Any] = {}
    note: str | None = None

    @property
    def count_tokens(self) -> CountTokens:
        """What tells how many tokens the model counts in a text: our estimate, corrected."""
        ratio = self.token_ratio
        return estimate_tokens if ratio == 1.0 else lambda text: ceil(estimate_tokens(text) * ratio)

    @property
    def tool_tokens(self) -> int:
        """How many tokens the schemas of the tools take, and what a caller sent along."""
        more = [*self.tools, *self.fields.values()]
        return self.count_tokens(json.dumps(more)) if more else 0


def settings_for(settings: Settings, options: AnswerOptions) -> Settings:
    """Return the settings as they are for one answer: a caller's word beats them."""
    wanted: dict[str, Any] = {
        name: value
        for name in ("max_answer_tokens", "temperature", "tool_iterations_keep")
        if (value := getattr(options, name)) is not None
    }
    if options.history_token_budget is not None:
        wanted["history_token_budget"] = min_limit(options.history_token_budget, settings.history_token_budget)
    if options.mode is not None:
        wanted["retrieval_mode"] = "agent" if options.mode == "tools" else "always"
    if options.mode == "plain":
        wanted["max_passages"] = 0
    return settings.model_copy(update=wanted) if wanted else settings


def profile_for(
    endpoint: Endpoint,
    settings: Settings,
    token_ratio: float = 1.0,
    tools: Sequence[dict[str, Any]] = (),
    options: AnswerOptions = AS_SET,
    project: Project | None = None,
) -> ModelProfile:
    """Return what goes with a request to this model.

    ``tools`` are those that it may be offered, ``options`` what a caller wants it to be told behind ours and those of
    the ``project``, and sent.
    """
    offered = tuple(tools) if settings.retrieval_mode == "agent" and endpoint.takes_tools else ()
    if not (settings.propose_notes and settings.notes):
        offered = tuple(tool for tool in offered if tool["function"]["name"] != PROPOSES_NOTE)
    answer_tokens, note = _answer_tokens(settings, endpoint)
    most = max_request_tokens(endpoint, answer_tokens)
    return ModelProfile(
        endpoint=endpoint,
        instructions=_instructions(
            endpoint, settings, bool(offered), project.instructions if project else None, options.instructions
        ),
        passages=PASSAGES if settings.max_passages is None else settings.max_passages,
        request_tokens=min_limit(settings.history_token_budget, most),
        max_request_tokens=most,
        answer_tokens=answer_tokens,
        temperature=settings.temperature,
        token_ratio=token_ratio,
        tools=offered,
        fields=options.fields or {},
        note=note,
    )


def min_limit(*limits: int | None) -> int | None:
    """Return the smallest of some limits, where ``None`` is no limit."""
    return min((limit for limit in limits if limit is not None), default=None)


def _instructions(endpoint: Endpoint, settings: Settings, uses_tools: bool, *more: str | None) -> str:
    if endpoint.quotes:
        return QUOTE_INSTRUCTIONS
    suited = AGENT_INSTRUCTIONS if uses_tools else PLAIN_INSTRUCTIONS if settings.max_passages == 0 else INSTRUCTIONS
    return "\n\n".join(filter(None, (settings.instructions or suited, *more)))


def _answer_tokens(settings: Settings, endpoint: Endpoint) -> tuple[int | None, str | None]:
    """Return how long an answer may be, and a sentence where that is less than is set, to leave room for a request."""
    wanted, limit = settings.max_answer_tokens, endpoint.context_tokens
    if wanted is None or limit is None or wanted < limit:
        return wanted, None
    left = limit // 4
    return left, SHORTER_ANSWERS.format(wanted, limit, left)


def max_request_tokens(endpoint: Endpoint, answer_tokens: int | None) -> int | None:
    """Return how many tokens of the model's context window are left without the answer."""
    if endpoint.context_tokens is None:
        return None
    reserved = answer_tokens or min(RESERVED_ANSWER_TOKENS, endpoint.context_tokens // 4)
    return endpoint.context_tokens - reserved
