"""What the model sees of a conversation, and how it answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rag_assistant.settings.declaration import (
    HTTP_URL_PATTERN,
    Group,
    setting,
)

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,20}$")]
ServerUrl = Annotated[str, Field(pattern=HTTP_URL_PATTERN)]
ServerCommand = Annotated[tuple[str, ...], Field(min_length=1, strict=False)]


class ConversationSettings(Group):
    """What the model sees of a conversation, and how it answers."""

    max_history_turns: int | None = setting(
        5,
        "a whole number, 0 or more, or null for no limit",
        "How many earlier turns of a conversation the model sees. 0: none; null: all.",
        ge=0,
    )
    history_strategy: Literal["window", "smart"] = setting(
        "window",
        "one of window, smart",
        "window: the last max_history_turns turns. smart: one or two of them, preferring turns that used tools.",
    )
    on_overflow: Literal["trim", "ask", "compact", "reset", "continue"] = setting(
        "trim",
        "one of trim, ask, compact, reset, continue",
        "What happens when a conversation no longer fits. trim: older turns are left out. ask: you decide. compact: "
        "older turns are summarised. reset: the model starts over. continue: everything is sent.",
    )
    window_slack: int = setting(
        0,
        "a whole number, 0 or more",
        "How many turns the window may grow before it is cut back, so that a provider's prompt cache can be used. "
        "0: the window is exact.",
        ge=0,
        advanced=True,
    )
    history_recall: int = setting(
        5,
        "a whole number from 0 to 20",
        "How many left-out turns may be quoted beside a question that seems to be about them.",
        ge=0,
        le=20,
        advanced=True,
    )
    tool_iterations_keep: int | None = setting(
        2,
        "a whole number, 0 or more, or null for no limit",
        "How many tool iterations of a running answer the model still sees. The environment variable "
        "AGENT_CONVERSATION_HISTORY_KEEP also sets this.",
        ge=0,
        advanced=True,
    )
    mcp_servers: dict[ServerName, ServerUrl | ServerCommand] | None = setting(
        None,
        'an object such as {"tracker": "http://localhost:9000/mcp", "clock": ["uvx", "mcp-server-time"]}, or null',
        "Tool servers (Model Context Protocol) for agent mode: a name, and a URL or a command with its words. Needs "
        "the extra mcp.",
        live=False,
        strict=False,
    )
    history_token_budget: int | None = setting(
        None,
        "a whole number, 1 or more, or null",
        "Maximum tokens in a request, not counting the answer. null: the context window, if its size is known.",
        ge=1,
        advanced=True,
    )
    merge_system_messages: bool = setting(
        False,
        "true or false",
        "Send one system message instead of two, for chat templates that accept only one.",
        advanced=True,
    )
    instructions: str | None = setting(None, "text, or null", "The system message. null: the default text.")
    max_answer_tokens: int | None = setting(
        None,
        "a whole number, 1 or more, or null",
        "Maximum length of an answer, in tokens. null: the model decides.",
        ge=1,
        advanced=True,
    )
    temperature: float | None = setting(
        None,
        "a number from 0 to 2, or null",
        "Sampling temperature. null: the model's default.",
        ge=0,
        le=2,
    )
