"""Where questions are answered: an endpoint with its name and its limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint. ``model`` None: the first that it lists; ``context_tokens`` None: not known."""

    base_url: str
    api_key: str | None
    model: str | None
    context_tokens: int | None = None
    built_in: bool = False
    takes_tools: bool = True


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each part of an answer may take, in seconds."""

    connect: float
    first_token: float
    token: float
    answer: float
