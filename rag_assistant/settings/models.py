"""Which model answers, and how long it may take."""

from __future__ import annotations

from typing import Literal

from rag_assistant.settings.declaration import Group, Url, at_start, setting


class ModelSettings(Group):
    """Which model answers, and how long it may take."""

    openai_base_url: Url | None = None
    """An OpenAI-compatible endpoint. null: OpenAI if a key is set, otherwise local_model answers, and without that,
    quotes from your documents."""
    openai_api_key: str | None = None
    """The endpoint's API key. Never shown or logged."""
    openai_model: str | None = None
    """The model's name. null: gpt-4o-mini at OpenAI, otherwise the first one the endpoint lists."""
    model_images: bool = False
    """The model accepts pictures (vision), so questions may have some. false: pictures are refused."""
    model_context_tokens: int | None = setting(None, ge=256)
    """Context window size in tokens, request and answer together. null: the endpoint's value, otherwise unlimited."""
    when_model_fails: Literal["offer", "quote", "fail"] = "offer"
    """What happens when the model fails before its first word. offer: a button quotes your documents instead. quote:
    they are quoted at once, and the answer says so. fail: you can only retry."""
    local_model: str | None = at_start(None, allowed="the path of a GGUF file, or null", min_length=1)
    """A model that runs on this machine if no endpoint is connected. Needs the extra local-model. Its context window is
    model_context_tokens, or up to 8192 tokens if that is null."""
    connect_timeout_seconds: float = setting(5.0, gt=0)
    """Maximum wait for a connection to the model."""
    first_token_timeout_seconds: float = setting(120.0, gt=0)
    """Maximum wait for the first token of an answer."""
    token_timeout_seconds: float = setting(60.0, gt=0)
    """Maximum pause between tokens."""
    answer_timeout_seconds: float = setting(900.0, gt=0)
    """Maximum time for a whole answer."""
