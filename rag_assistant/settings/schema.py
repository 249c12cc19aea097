"""Every setting, with its rule and its sentence. Pure; settings_loading.py reads them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SECRET = frozenset({"openai_api_key", "embedding_api_key", "embedder_options", "database_url"})
WHOLE_FROM_1 = "a whole number, 1 or more"
HTTP_URL = "a URL that begins with http:// or https:// and holds no name, no password and no ?, or null"
HTTP_URL_PATTERN = r"^https?://[^\s/@?#]+(/[^\s?#]*)?$"
SECONDS = "a number of seconds above 0"


def setting(default: Any, allowed: str, description: str, *, live: bool = True, **limits: Any) -> Any:
    """Declare a setting: ``allowed`` completes "it must be ..."; a setting that is not ``live`` waits for a restart."""
    return Field(default, description=description, json_schema_extra={"allowed": allowed, "live": live}, **limits)


class SmartLevel(BaseModel):
    """A level of the adaptive filter, as settings.json has it; history/filtering.py says what it does."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    up_to_turns: int | None = Field(ge=1)
    keep: int = Field(ge=1)
    keep_with_tools: int | None = Field(None, ge=1)
    prefer_tools: bool = False


class Settings(BaseModel):
    """Every setting, with its default. The order is that of the table in docs/settings.md."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_history_turns: int | None = setting(
        5,
        "a whole number, 0 or more, or null for no limit",
        "How many earlier turns of a conversation the model sees. 0: none; null: all of them.",
        ge=0,
    )
    history_strategy: Literal["window", "smart"] = setting(
        "window",
        "one of window, smart",
        "window: the last max_history_turns turns. smart: one or two of them, those with tools first.",
    )
    smart_levels: tuple[SmartLevel, ...] = setting(
        (
            SmartLevel(up_to_turns=2, keep=2),
            SmartLevel(up_to_turns=5, keep=2, prefer_tools=True),
            SmartLevel(up_to_turns=None, keep=1, keep_with_tools=2),
        ),
        'a list of levels such as {"up_to_turns": 5, "keep": 2, "prefer_tools": true}, the last with null up_to_turns',
        "How many turns the strategy smart keeps, by the length of the conversation.",
        strict=False,
        min_length=1,
    )
    on_overflow: Literal["trim", "ask", "compact", "reset", "continue"] = setting(
        "trim",
        "one of trim, ask, compact, reset, continue",
        "What happens when a question would leave turns out: leave them out, ask first, summarise them, begin afresh, "
        "or send everything.",
    )
    window_slack: int = setting(
        0,
        "a whole number, 0 or more",
        "By how many turns the window may grow before it is cut back, so that a provider's prompt cache can be used. "
        "0: the window is exact.",
        ge=0,
    )
    history_recall: int = setting(
        0,
        "a whole number from 0 to 20",
        "How many of the turns that are left out come back, quoted, because their words are those of the question.",
        ge=0,
        le=20,
    )
    tool_iterations_keep: int | None = setting(
        2,
        "a whole number, 0 or more, or null for no limit",
        "How many of a running answer's tool iterations the model still sees. In the environment also as "
        "AGENT_CONVERSATION_HISTORY_KEEP.",
        ge=0,
    )
    max_tool_iterations: int = setting(
        8,
        "a whole number from 1 to 50",
        "How often the model may call tools for one answer; then it has to answer.",
        ge=1,
        le=50,
    )
    history_token_budget: int | None = setting(
        None,
        "a whole number, 1 or more, or null",
        "The most tokens a request may have, besides the answer. null: what the model takes, where that is known.",
        ge=1,
    )
    merge_system_messages: bool = setting(
        False,
        "true or false",
        "Send one system message instead of two, for chat templates that accept only one.",
    )
    instructions: str | None = setting(
        None, "a text, or null", "The system message. null: ours, which is shorter for the built-in model."
    )
    max_question_chars: int = setting(8000, WHOLE_FROM_1, "The longest question that is accepted, in characters.", ge=1)
    max_answer_tokens: int | None = setting(
        None,
        "a whole number, 1 or more, or null",
        "The longest answer, in tokens. null: the model decides; 100 for the built-in model.",
        ge=1,
    )
    temperature: float | None = setting(
        None,
        "a number from 0 to 2, or null",
        "Sampling temperature. null: the model's own; 0 for the built-in model.",
        ge=0,
        le=2,
    )

    openai_base_url: str | None = setting(
        None,
        HTTP_URL,
        "An OpenAI-compatible endpoint. null without a key: the built-in model answers.",
        pattern=HTTP_URL_PATTERN,
    )
    openai_api_key: str | None = setting(None, "a text, or null", "The endpoint's key. Never shown, never logged.")
    openai_model: str | None = setting(
        None, "a text, or null", "The model's name. null: the first that the endpoint lists."
    )
    model_context_tokens: int | None = setting(
        None,
        "a whole number, 256 or more, or null",
        "How many tokens the model takes, question and answer together. null: as the endpoint tells, else no limit.",
        ge=256,
    )
    connect_timeout_seconds: float = setting(5.0, SECONDS, "How long to wait for a connection to the model.", gt=0)
    first_token_timeout_seconds: float = setting(120.0, SECONDS, "How long to wait for an answer's first text.", gt=0)
    token_timeout_seconds: float = setting(60.0, SECONDS, "How long a silence within an answer may last.", gt=0)
    answer_timeout_seconds: float = setting(900.0, SECONDS, "How long one answer may take in all.", gt=0)

    retrieval_mode: Literal["always", "agent"] = setting(
        "always",
        "one of always, agent",
        "always: documents are searched for each question. agent: the model calls tools to search, read, list and "
        "delete documents.",
    )
    max_passages: int | None = setting(
        None,
        "a whole number from 0 to 50, or null",
        "How many passages go with a question. null: 6, or 2 for the built-in model.",
        ge=0,
        le=50,
    )
    passages_token_budget: int | None = setting(
        None,
        "a whole number, 100 or more, or null",
        "The most tokens that the passages of a question may have together; the best one always goes. null: no limit "
        "of their own.",
        ge=100,
    )
    query_rewriting: Literal["model", "words", "off"] = setting(
        "model",
        "one of model, words, off",
        "How the documents are searched for a question that leans on the conversation. model: as a connected model "
        "puts it, which takes one short request more. words: together with the words that it leans on, which is also "
        "what the built-in model gets. off: as it stands.",
    )
    chunk_chars: int = setting(
        900, "a whole number from 200 to 8000", "The longest chunk of a document, in characters.", ge=200, le=8000
    )
    embedder: str = setting(
        "builtin",
        "builtin, or endpoint:MODEL such as endpoint:text-embedding-3-small, or chroma:FUNCTION such as chroma:ollama",
        "What embeds documents and questions: the built-in model, a model at an OpenAI-compatible endpoint, or one of "
        "Chroma's embedding functions. After a change everything is embedded anew in the background.",
        live=False,
        pattern=r"^(builtin|endpoint:\S+|chroma:[a-z0-9_]+)$",
    )
    embedding_base_url: str | None = setting(
        None,
        HTTP_URL,
        "The endpoint that embeds. null: the one that answers.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    embedding_api_key: str | None = setting(
        None,
        "a text, or null",
        "That endpoint's key. null: openai_api_key, if it is the same endpoint. Never shown, never logged.",
        live=False,
    )
    embedder_options: dict[str, Any] | None = setting(
        None,
        "an object with what the function takes, or null",
        "What Chroma's embedding function is configured with, such as the url and model_name of chroma:ollama.",
        live=False,
    )
    chroma_url: str | None = setting(
        None,
        HTTP_URL,
        "A Chroma server. null: one is started here when the library is large enough to need it.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    chroma_from_chunks: int = setting(
        100_000,
        "a whole number, 0 or more",
        "From how many chunks on Chroma's index is used; below, the exact search is faster. See docs/benchmarks.md.",
        live=False,
        ge=0,
    )
    max_upload_mb: int = setting(50, WHOLE_FROM_1, "The largest document that is accepted, in megabytes.", ge=1)
    extraction_timeout_seconds: float = setting(120.0, SECONDS, "How long reading one document may take.", gt=0)
    extraction_memory_mb: int = setting(
        2048, "a whole number, 256 or more", "The most memory that reading one document may take.", ge=256
    )

    host: Literal["127.0.0.1", "localhost"] = setting(
        "127.0.0.1",
        "127.0.0.1 or localhost: there are no accounts yet, so nobody else may reach it. To let others in, put a "
        "proxy with a login on this machine and name it in allowed_hosts",
        "The address to listen on: one that only this machine reaches.",
        live=False,
    )
    port: int = setting(8000, "a whole number from 0 to 65535", "The port to listen on.", live=False, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = setting(
        (),
        'a list of host names, such as ["assistant.example"]',
        "Further names under which a proxy on this machine reaches us. All others are refused.",
        live=False,
        strict=False,
    )
    max_running_answers: int = setting(
        500, WHOLE_FROM_1, "How many answers may run at once; more are refused with 503.", live=False, ge=1
    )
    data_dir: str = setting(
        "data",
        "a folder's path",
        "Where everything is kept. A relative path counts from the folder of app.py, or, once installed, from the "
        "platform's data folder, such as ~/.local/share/rag-assistant.",
        live=False,
        min_length=1,
    )
    database_url: str | None = setting(
        None,
        "a database URL, such as postgresql+psycopg://user:password@host/name, or null",
        "The database. null: SQLite in data_dir.",
        live=False,
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "one of DEBUG, INFO, WARNING, ERROR", "How much is logged.", live=False
    )

    @field_validator("smart_levels")
    @classmethod
    def _the_last_level_has_no_limit(cls, levels: tuple[SmartLevel, ...]) -> tuple[SmartLevel, ...]:
        limits = [level.up_to_turns for level in levels]
        finite = [limit for limit in limits[:-1] if limit is not None]
        if limits[-1] is not None or len(finite) != len(limits) - 1 or finite != sorted(set(finite)):
            raise ValueError("the levels must rise, and only the last one has no limit")
        return levels


def settings_schema() -> dict[str, Any]:
    """Return the JSON schema of settings.json, for editors; a test compares it with settings.schema.json."""
    schema = Settings.model_json_schema()
    schema["title"] = "Settings of the assistant"
    schema["properties"] = {"$schema": {"type": "string"}} | {
        name: {key: value for key, value in described.items() if key not in ("title", "allowed", "live")}
        for name, described in schema["properties"].items()
    }
    return schema


def is_live(name: str) -> bool:
    """Tell whether a change of the setting takes effect without a restart."""
    extra = Settings.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra["live"])
