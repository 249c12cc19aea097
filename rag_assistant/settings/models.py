"""Which model answers, and how long it may take."""

from __future__ import annotations

from typing import Literal

from rag_assistant.settings.declaration import (
    HTTP_URL,
    HTTP_URL_PATTERN,
    SECONDS,
    Group,
    setting,
)


class ModelSettings(Group):
    """Which model answers, and how long it may take."""

    openai_base_url: str | None = setting(
        None,
        HTTP_URL,
        "An OpenAI-compatible endpoint. null: OpenAI if a key is set, otherwise "
        "local_model answers, and without that, quotes from your documents.",
        pattern=HTTP_URL_PATTERN,
    )
    openai_api_key: str | None = setting(None, "text, or null", "The endpoint's API key. Never shown or logged.")
    openai_model: str | None = setting(
        None,
        "text, or null",
        "The model's name. null: gpt-4o-mini at OpenAI, otherwise the first one the endpoint lists.",
    )
    model_images: bool = setting(
        False,
        "true or false",
        "The model accepts pictures (vision), so questions may have some. false: pictures are refused.",
    )
    model_context_tokens: int | None = setting(
        None,
        "a whole number, 256 or more, or null",
        "Context window size in tokens, request and answer together. null: the endpoint's value, otherwise unlimited.",
        ge=256,
    )
    when_model_fails: Literal["offer", "quote", "fail"] = setting(
        "offer",
        "one of offer, quote, fail",
        "What happens when the model fails before its first word. offer: a button quotes your documents instead. "
        "quote: they are quoted at once, and the answer says so. fail: you can only retry.",
    )
    local_model: str | None = setting(
        None,
        "the path of a GGUF file, or null",
        "A model that runs on this machine if no endpoint is connected. Needs the extra local-model. Its context "
        "window is model_context_tokens, or up to 8192 tokens if that is null.",
        live=False,
        min_length=1,
    )
    connect_timeout_seconds: float = setting(5.0, SECONDS, "Maximum wait for a connection to the model.", gt=0)
    first_token_timeout_seconds: float = setting(120.0, SECONDS, "Maximum wait for the first token of an answer.", gt=0)
    token_timeout_seconds: float = setting(60.0, SECONDS, "Maximum pause between tokens.", gt=0)
    answer_timeout_seconds: float = setting(900.0, SECONDS, "Maximum time for a whole answer.", gt=0)
