"""Settings of models and conversations."""

from typing import Annotated, Literal

from pydantic import Field

from rag_assistant.settings.declaration import FROM_0_OR_NO_LIMIT, Group, Url, at_start, setting

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,20}$")]
ServerCommand = Annotated[tuple[str, ...], Field(min_length=1, strict=False)]


class ModelSettings(Group):
    """Which model answers, and how long it may take."""

    openai_base_url: Url | None = None
    """An OpenAI-compatible endpoint. null: OpenAI if a key is set, otherwise local_model, otherwise quotes from your
    documents."""
    openai_api_key: str | None = None
    """The endpoint's API key. Never shown or logged."""
    openai_model: str | None = None
    """The model's name. null: gpt-4o-mini at OpenAI, otherwise the first one the endpoint lists."""
    models_offered: tuple[str, ...] = setting((), allowed='a list of names, such as ["small", "large"]')
    """Other models at the endpoint that people may choose for a question."""
    summary_model: str | None = None
    """Another model at the endpoint, for summaries of older turns. null: the model that answers."""
    model_images: bool = False
    """The model accepts pictures (vision), so questions may include them. false: pictures are refused."""
    max_page_images: int = setting(2, ge=0, le=4)
    """With model_images, how many pages with figures are sent as pictures beside their passages. 0: none."""
    model_context_tokens: int | None = setting(None, ge=256)
    """Context window size in tokens, request and answer together. null: the endpoint's value, otherwise unlimited."""
    when_model_fails: Literal["offer", "quote", "fail"] = "offer"
    """What happens when the model fails before its first word. offer: a button quotes your documents instead. quote:
    they are quoted at once, and the answer says so. fail: you can only retry."""
    instructions: str | None = None
    """The system message. null: the default text."""
    temperature: float | None = setting(None, allowed="a number from 0 to 2, or null", ge=0, le=2)
    """Sampling temperature. null: the model's default."""
    max_answer_tokens: int | None = setting(None, ge=1)
    """Maximum length of an answer, in tokens. null: the model decides."""
    small_model: Literal["auto", "on", "off"] = "auto"
    """Shorter requests and quotes before the answer, for a small model; see docs/running.md. auto: for up to 4.5
    billion parameters, by its file or name."""
    mcp_servers: dict[ServerName, Url | ServerCommand] | None = at_start(
        None,
        allowed='an object such as {"tracker": "http://localhost:9000/mcp", "clock": ["uvx", "mcp-server-time"]}, '
        "or null",
        strict=False,
    )
    """Tool servers (Model Context Protocol) for agent mode: a name, and a URL or a command with its arguments. Needs
    the extra mcp."""
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


class ConversationSettings(Group):
    """What the model sees of a conversation, and how it answers."""

    max_history_turns: int | None = setting(5, allowed=FROM_0_OR_NO_LIMIT, ge=0)
    """How many earlier turns of a conversation the model sees. 0: none; null: all."""
    history_strategy: Literal["window", "smart"] = "window"
    """window: the last max_history_turns turns. smart: one or two of them, preferring turns that used tools."""
    on_overflow: Literal["trim", "ask", "compact", "reset", "continue"] = "trim"
    """What happens when there are more turns than are sent. trim: older ones are left out. ask: you decide. compact:
    they are summarised. reset: the model starts over. continue: everything is sent."""
    window_slack: int = setting(0, ge=0)
    """How many turns the window may grow beyond max_history_turns before it is cut back to that, for providers that
    charge less for an unchanged beginning (a prompt cache). 0: an exact window."""
    history_recall: int = setting(5, ge=0, le=20)
    """How many left-out turns may be quoted beside a question that seems to be about them."""
    search_conversations: Literal["off", "project", "mine"] = "off"
    """Whether a question is also searched for in your other conversations; turns that seem to be about it are sent as
    passages. project: in those of the same project. mine: in all of them."""
    notes: bool = True
    """Send your notes with questions that are about them."""
    propose_notes: bool = False
    """In agent mode, the model may propose notes. None is sent before you accept it on the page Notes."""
    tool_iterations_keep: int | None = setting(2, allowed=FROM_0_OR_NO_LIMIT, ge=0)
    """How many tool iterations of a running answer the model still sees. The environment variable
    AGENT_CONVERSATION_HISTORY_KEEP also sets this."""
    history_token_budget: int | None = setting(None, ge=1)
    """Maximum tokens in a request, not counting the answer. null: the context window, if its size is known."""
    retention_days: int | None = setting(None, ge=1, le=36500)
    """After how many days without use a conversation moves to the trash, unless it is pinned; trash_days later it is
    erased. null: conversations are kept."""
    merge_system_messages: bool = False
    """Send one system message instead of two, for chat templates that accept only one."""
