"""How requests to a model are built: from the settings, otherwise to suit the model. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rag_assistant.conversations.prompts import PROMPTS
from rag_assistant.history.budget import TOKENS_PER_ATTACHMENT, CountTokens, TokenCounter
from rag_assistant.records import AS_SET, AnswerOptions, Project

if TYPE_CHECKING:
    from rag_assistant.llm.endpoint import Endpoint
    from rag_assistant.settings.schema import Settings

PASSAGES = 6
# For a small model (docs/benchmarks.md).
SMALL_PASSAGES, SMALL_PASSAGE_CHARS, SMALL_ANSWER_TOKENS = 3, 400, 512
SMALL_MODEL = (
    "Requests suit a small model: {n} passages of up to {n1} characters, quotes before the answer, at most {n2} tokens "
    "for it, no tools, and no requests before it. The setting small_model changes that."
)
RESERVED_ANSWER_TOKENS = 1024
# The tool offered if propose_notes is set.
PROPOSES_NOTE = "remember"
SHORTER_ANSWERS = (
    "max_answer_tokens is {}, but the model takes {} tokens for question and answer together; {} were kept for the "
    "answer."
)


class ModelProfile(Struct, frozen=True):
    """What all requests to a model share: instructions, tools, number of passages, and token limits.

    ``request_tokens`` is the limit for a request, ``max_request_tokens`` the model's own, whatever is configured;
    ``None`` is no limit. ``token_ratio`` is the model's token count divided by our estimate, without pictures of
    ``picture_tokens`` each. ``tools`` are schemas in
    the OpenAI format, empty if the model doesn't search by itself. ``fields`` are the caller's, passed on unchanged.
    ``note`` reports a setting that can't apply to this model, ``small_model`` what is different for a small one.
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
    small_model: str | None = None
    picture_tokens: int = TOKENS_PER_ATTACHMENT

    @property
    def count_tokens(self) -> CountTokens:
        """The function that counts a text's tokens: our estimate, corrected for the model."""
        return TokenCounter(self.token_ratio, self.picture_tokens)

    @property
    def tool_tokens(self) -> int:
        """The tokens of the tools' schemas, and of the caller's fields."""
        more = [*self.tools, *self.fields.values()]
        return self.count_tokens(json.dumps(more)) if more else 0


def settings_for(settings: Settings, options: AnswerOptions) -> Settings:
    """Return the settings for one answer: the caller's options override them."""
    wanted: dict[str, Any] = {
        name: value
        for name in ("max_answer_tokens", "temperature", "tool_iterations_keep")
        if (value := getattr(options, name)) is not None
    }
    if options.model in settings.models_offered:
        wanted["openai_model"] = options.model
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
    """Return the profile for requests to this model.

    ``tools`` are those it may be offered; the instructions in ``options`` follow ours and those of the ``project``.
    """
    is_small = not endpoint.quotes and (
        endpoint.is_small if settings.small_model == "auto" else settings.small_model == "on"
    )
    if is_small:
        passages = SMALL_PASSAGES if settings.max_passages is None else settings.max_passages
        smaller = {"max_passages": passages, "max_answer_tokens": settings.max_answer_tokens or SMALL_ANSWER_TOKENS}
        settings = settings.model_copy(update=smaller | {"retrieval_mode": "always"})
    offered = tuple(tools) if settings.retrieval_mode == "agent" and endpoint.takes_tools else ()
    if not (settings.propose_notes and settings.notes):
        offered = tuple(tool for tool in offered if tool["function"]["name"] != PROPOSES_NOTE)
    answer_tokens, limit, note = settings.max_answer_tokens, endpoint.context_tokens, None
    if answer_tokens is not None and limit is not None and answer_tokens >= limit:  # A request needs room as well.
        note = SHORTER_ANSWERS.format(answer_tokens, limit, limit // 4)
        answer_tokens = limit // 4
    most = max_request_tokens(endpoint, answer_tokens)
    suited = "with_tools" if offered else "plain" if settings.max_passages == 0 else "with_passages"
    own = settings.instructions or PROMPTS[suited], project.instructions if project else None, options.instructions
    return ModelProfile(
        endpoint=endpoint,
        instructions=PROMPTS["quotes"] if endpoint.quotes else "\n\n".join(filter(None, own)),
        passages=PASSAGES if settings.max_passages is None else settings.max_passages,
        request_tokens=min_limit(settings.history_token_budget, most),
        max_request_tokens=most,
        answer_tokens=answer_tokens,
        temperature=settings.temperature,
        token_ratio=token_ratio,
        tools=offered,
        fields=options.fields or {},
        note=note,
        small_model=SMALL_MODEL.format(n=passages, n1=SMALL_PASSAGE_CHARS, n2=answer_tokens) if is_small else None,
    )


def min_limit(*limits: int | None) -> int | None:
    """Return the smallest of some limits, where ``None`` is no limit."""
    return min((limit for limit in limits if limit is not None), default=None)


def max_request_tokens(endpoint: Endpoint, answer_tokens: int | None) -> int | None:
    """Return how many tokens of the model's context window the answer leaves."""
    if endpoint.context_tokens is None:
        return None
    reserved = answer_tokens or min(RESERVED_ANSWER_TOKENS, endpoint.context_tokens // 4)
    return endpoint.context_tokens - reserved
