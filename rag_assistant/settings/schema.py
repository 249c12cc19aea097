"""Every setting, with its rule and its sentence. Pure; settings_loading.py reads them."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

# A secret of other people's accounts lies in no file that is copied, mailed or committed.
ENVIRONMENT_ONLY = frozenset({"oidc_client_secret"})
SECRET = ENVIRONMENT_ONLY | {
    "openai_api_key", "embedding_api_key", "rerank_api_key", "embedder_options", "database_url", "mcp_servers",
}  # fmt: skip
WHOLE_FROM_1 = "a whole number, 1 or more"
HTTP_URL = "a URL starting with http:// or https://, without credentials or query string, or null"
HTTP_URL_PATTERN = r"^https?://[^\s/@?#]+(/[^\s?#]*)?$"
# What Chroma 1.5 has; a test compares them.
CHROMA_FUNCTIONS = (
    "amazon_bedrock", "baseten", "chroma-cloud-qwen", "chroma_langchain", "cloudflare_workers_ai", "cohere", "default",
    "google_gemini", "google_genai", "google_generative_ai", "google_palm", "google_vertex", "huggingface",
    "huggingface_server", "instructor", "jina", "mistral", "morph", "nomic", "ollama", "onnx_mini_lm_l6_v2",
    "open_clip", "openai", "perplexity", "roboflow", "sentence_transformer", "text2vec", "together_ai", "voyageai",
)  # fmt: skip
ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,20}$")]
ServerUrl = Annotated[str, Field(pattern=HTTP_URL_PATTERN)]
ServerCommand = Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
# As HTTP names a header; without underscores, which servers take for hyphens.
HEADER_PATTERN = r"^[A-Za-z][A-Za-z0-9-]*$"
HEADER = 'the name of a header, such as "Remote-User", or null'
NETWORKS = 'a list of addresses or networks, such as ["10.0.0.2", "172.18.0.0/16"]'
SECONDS = "a number of seconds, more than 0"


def _network(value: str) -> str:
    ip_network(value, strict=False)
    return value


Network = Annotated[str, AfterValidator(_network)]


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
        "How many earlier turns of a conversation the model sees. 0: none; null: all.",
        ge=0,
    )
    history_strategy: Literal["window", "smart"] = setting(
        "window",
        "one of window, smart",
        "window: the last max_history_turns turns. smart: one or two of them, preferring turns that used tools.",
    )
    smart_levels: tuple[SmartLevel, ...] = setting(
        (
            SmartLevel(up_to_turns=2, keep=2),
            SmartLevel(up_to_turns=5, keep=2, prefer_tools=True),
            SmartLevel(up_to_turns=None, keep=1, keep_with_tools=2),
        ),
        'a list of levels such as {"up_to_turns": 5, "keep": 2, "prefer_tools": true}, the last with null up_to_turns',
        "How many turns the smart strategy keeps, by length of the conversation.",
        strict=False,
        min_length=1,
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
    )
    history_recall: int = setting(
        5,
        "a whole number from 0 to 20",
        "How many left-out turns may be quoted beside a question that seems to be about them.",
        ge=0,
        le=20,
    )
    tool_iterations_keep: int | None = setting(
        2,
        "a whole number, 0 or more, or null for no limit",
        "How many tool iterations of a running answer the model still sees. The environment variable "
        "AGENT_CONVERSATION_HISTORY_KEEP also sets this.",
        ge=0,
    )
    max_tool_iterations: int = setting(
        8,
        "a whole number from 1 to 50",
        "How many rounds of tool calls the model may make for one answer before it must reply.",
        ge=1,
        le=50,
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
    )
    merge_system_messages: bool = setting(
        False,
        "true or false",
        "Send one system message instead of two, for chat templates that accept only one.",
    )
    instructions: str | None = setting(None, "a text, or null", "The system message. null: the default text.")
    max_question_chars: int = setting(8000, WHOLE_FROM_1, "Maximum length of a question, in characters.", ge=1)
    max_answer_tokens: int | None = setting(
        None,
        "a whole number, 1 or more, or null",
        "Maximum length of an answer, in tokens. null: the model decides.",
        ge=1,
    )
    temperature: float | None = setting(
        None,
        "a number from 0 to 2, or null",
        "Sampling temperature. null: the model's default.",
        ge=0,
        le=2,
    )

    openai_base_url: str | None = setting(
        None,
        HTTP_URL,
        "An OpenAI-compatible endpoint. null: OpenAI if a key is set, otherwise "
        "local_model answers, and without that, quotes from your documents.",
        pattern=HTTP_URL_PATTERN,
    )
    openai_api_key: str | None = setting(None, "a text, or null", "The endpoint's API key. Never shown or logged.")
    openai_model: str | None = setting(
        None,
        "a text, or null",
        "The model's name. null: gpt-4o-mini at OpenAI, otherwise the first one the endpoint lists.",
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
        "A model that runs on this machine where no endpoint is connected. Needs the extra local-model. Its context "
        "window is model_context_tokens, or up to 8192 tokens if that is null.",
        live=False,
        min_length=1,
    )
    connect_timeout_seconds: float = setting(5.0, SECONDS, "Maximum wait for a connection to the model.", gt=0)
    first_token_timeout_seconds: float = setting(120.0, SECONDS, "Maximum wait for the first token of an answer.", gt=0)
    token_timeout_seconds: float = setting(60.0, SECONDS, "Maximum pause between tokens.", gt=0)
    answer_timeout_seconds: float = setting(900.0, SECONDS, "Maximum time for a whole answer.", gt=0)

    retrieval_mode: Literal["always", "agent"] = setting(
        "always",
        "one of always, agent",
        "always: documents are searched for every question. agent: the model calls tools to search, read, list and "
        "delete documents.",
    )
    max_passages: int | None = setting(
        None,
        "a whole number from 0 to 50, or null",
        "How many passages are sent with a question. null: 6. Follow-ups bring up to two more that were cited before.",
        ge=0,
        le=50,
    )
    passages_token_budget: int | None = setting(
        None,
        "a whole number, 100 or more, or null",
        "Maximum tokens for all passages of a question together; the best one is always sent. null: no separate limit.",
        ge=100,
    )
    query_rewriting: Literal["model", "words", "off"] = setting(
        "model",
        "one of model, words, off",
        "How documents are searched for a follow-up question. model: a connected model rewrites it, which takes one "
        "more short request. words: words it depends on are added from the conversation, as always where no "
        "model is connected. off: the question as it is.",
    )
    chunk_chars: int = setting(
        900, "a whole number from 200 to 8000", "Maximum length of a document chunk, in characters.", ge=200, le=8000
    )
    embedder: str = setting(
        "builtin",
        "builtin, builtin-multilingual, or endpoint:MODEL such as endpoint:text-embedding-3-small, or chroma: and an "
        "embedding function that Chroma has, such as chroma:ollama",
        "What embeds documents and questions: the built-in embedding model for English, the one for many languages "
        "(needs the extra multilingual), one at an OpenAI-compatible endpoint, or one of Chroma's embedding functions. "
        "After a change, everything is re-embedded in the background.",
        live=False,
        pattern=rf"^(builtin|builtin-multilingual|endpoint:\S+|chroma:({'|'.join(CHROMA_FUNCTIONS)}))$",
    )
    embedding_base_url: str | None = setting(
        None,
        HTTP_URL,
        "The endpoint for embeddings. null: the one that answers questions.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    embedding_api_key: str | None = setting(
        None,
        "a text, or null",
        "API key for the embedding endpoint. null: openai_api_key, if it is the same endpoint. Never shown or logged.",
        live=False,
    )
    embedder_options: dict[str, Any] | None = setting(
        None,
        "an object with the function's options, or null",
        "Options for Chroma's embedding function, such as url and model_name for chroma:ollama.",
        live=False,
    )
    rerank_model: str | None = setting(
        None,
        "a text, or null",
        "A reranking model at an endpoint with /rerank, as Jina, Cohere, vLLM and llama.cpp have it. It is sent each "
        "question with its best 50 passages and puts them in order. null: the search's own order.",
        live=False,
        min_length=1,
    )
    rerank_base_url: str | None = setting(
        None,
        HTTP_URL,
        "The endpoint for reranking, such as https://api.jina.ai/v1. null: the one that answers questions.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    rerank_api_key: str | None = setting(
        None,
        "a text, or null",
        "API key for the reranking endpoint. null: openai_api_key, if it is the same endpoint. Never shown or logged.",
        live=False,
    )
    chroma_url: str | None = setting(
        None,
        HTTP_URL,
        "A Chroma server. null: pgvector, where the database is PostgreSQL and has it; otherwise one is started on "
        "this machine once the library is large enough to need it.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    chroma_from_chunks: int = setting(
        100_000,
        "a whole number, 0 or more",
        "Number of chunks from which Chroma's index is used; below it, exact search is faster. See docs/benchmarks.md.",
        live=False,
        ge=0,
    )
    max_upload_mb: int = setting(50, WHOLE_FROM_1, "Maximum size of a document, in megabytes.", ge=1)
    extraction_timeout_seconds: float = setting(120.0, SECONDS, "Maximum time to read one document.", gt=0)
    extraction_memory_mb: int = setting(
        2048, "a whole number, 256 or more", "Maximum memory for reading one document, in megabytes.", ge=256
    )
    ocr: Literal["auto", "off"] = setting(
        "auto",
        "auto or off",
        "Recognise the text of scanned pages and images if the extra ocr is installed (auto), or never (off). A page "
        "may take as long as extraction_timeout_seconds.",
    )

    role: Literal["both", "web", "worker"] = setting(
        "both",
        "one of both, web, worker",
        "What this process does. web: pages, API and answers. worker: documents; it answers /healthz, /readyz and "
        "/metrics alone. Each of the two alone needs PostgreSQL.",
        live=False,
    )
    host: str = setting(
        "127.0.0.1",
        "an address or a host name of this machine, such as 127.0.0.1 or 0.0.0.0",
        "The address to listen on. One that others can reach needs an account first: rag-assistant accounts add NAME "
        "--admin.",
        live=False,
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*)$",
    )
    port: int = setting(8000, "a whole number from 0 to 65535", "The port to listen on.", live=False, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = setting(
        (),
        'a list of host names, such as ["assistant.example"]',
        "Additional host names under which the assistant may be reached. All others are refused.",
        live=False,
        strict=False,
    )
    trusted_proxies: tuple[Network, ...] = setting(
        ("127.0.0.1", "::1"),
        NETWORKS,
        "Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.",
        live=False,
        strict=False,
    )
    base_path: str = setting(
        "",
        'a path such as "/rag", or "" for none',
        "The path below which a proxy serves the assistant.",
        live=False,
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
    )
    max_running_answers: int = setting(
        500,
        WHOLE_FROM_1,
        "Maximum number of answers running at once; further questions are refused with 503.",
        live=False,
        ge=1,
    )
    max_questions_per_minute: int | None = setting(
        30,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many questions one person may ask within a minute; further ones are refused with 429.",
        ge=1,
    )
    max_running_answers_per_person: int | None = setting(
        10,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many answers of one person may run at once; further questions are refused with 429.",
        ge=1,
    )
    max_stored_mb_per_person: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many megabytes the files in one person's own libraries may have together.",
        ge=1,
    )
    oidc_issuer: str | None = setting(
        None,
        HTTP_URL,
        "A provider of OpenID Connect with which people sign in, by its issuer, such as "
        "https://login.example/realms/team. Needs the extra oidc.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    oidc_client_id: str | None = setting(
        None, "a text, or null", "What the provider calls this server.", live=False, min_length=1
    )
    oidc_client_secret: str | None = setting(
        None,
        "a text, or null, and stand in the environment alone",
        "The client's secret. null: the provider knows this server as a public client. Never shown or logged.",
        live=False,
        min_length=1,
    )
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile", "email"),
        'a list of scopes, "openid" among them',
        "What the provider is asked to tell.",
        live=False,
        strict=False,
    )
    oidc_label: str | None = setting(
        None,
        "a text of up to 40 characters, or null",
        "What the button calls the provider: Sign in with ... null: its host name.",
        live=False,
        min_length=1,
        max_length=40,
    )
    oidc_allowed_domains: tuple[str, ...] = setting(
        (),
        'a list of domains, such as ["example.org"], or ["*"] for everybody whom the provider lets in',
        "Whose verified e-mail address is in one of these may come in by the provider. Empty: no address is asked for.",
        live=False,
        strict=False,
    )
    oidc_groups_claim: str = setting(
        "groups",
        'the name of a claim, such as "groups" or "realm_access.roles"',
        "Where the provider says in which groups somebody is.",
        live=False,
        min_length=1,
    )
    oidc_allowed_groups: tuple[str, ...] = setting(
        (),
        'a list of groups, such as ["assistant"]',
        "Who is in one of these may come in by the provider. Empty: no group is asked for.",
        live=False,
        strict=False,
    )
    oidc_admin_group: str | None = setting(
        None,
        "the name of a group, or null",
        "Who is in it is an administrator, and who is not is a member, from their next sign-in on. null: roles are "
        "given here.",
        live=False,
        min_length=1,
    )
    oidc_create_accounts: bool = setting(
        False,
        "true or false",
        "Make an account at the first sign-in. false: only linked accounts come in. true needs oidc_allowed_domains or "
        "oidc_allowed_groups.",
        live=False,
    )
    proxy_user_header: str | None = setting(
        None,
        HEADER,
        "The header in which a proxy says who is signed in. Then there is no form to sign in. null: off.",
        live=False,
        pattern=HEADER_PATTERN,
    )
    proxy_user_from: tuple[Network, ...] = setting(
        (),
        NETWORKS,
        "From where proxy_user_header is believed. From anywhere else it is taken away.",
        live=False,
        strict=False,
    )
    proxy_groups_header: str | None = setting(
        None, HEADER, "The header with the groups of whoever is signed in.", live=False, pattern=HEADER_PATTERN
    )
    proxy_admin_group: str | None = setting(
        None,
        "the name of a group, or null",
        "Who is in it is an administrator, and who is not is a member. null: roles are given here.",
        live=False,
        min_length=1,
    )
    proxy_create_accounts: bool = setting(
        False, "true or false", "Make an account for whoever a proxy names for the first time.", live=False
    )
    proxy_logout_link: str | None = setting(
        None,
        'a URL or a path such as "/oauth2/sign_out", or null',
        "Where one signs out at the proxy. null: no link is shown.",
        live=False,
        pattern=r"^(https?://[^\s/@]+(/\S*)?|/([^\s/\\]\S*)?)$",
    )
    max_tokens_per_day: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "How many tokens the model may take within 24 hours in all, requests and answers together; further questions "
        "are refused with 503.",
        ge=1,
    )
    max_tokens_per_day_per_person: int | None = setting(
        None,
        f"{WHOLE_FROM_1}, or null for no limit",
        "With accounts: how many tokens the model may take within 24 hours for one person; further questions are "
        "refused with 429.",
        ge=1,
    )
    data_dir: str = setting(
        "data",
        "a folder's path",
        "Where all data is stored. Relative paths start at the folder of app.py, or, once installed, at the platform's "
        "data folder, such as ~/.local/share/rag-assistant.",
        live=False,
        min_length=1,
    )
    database_url: str | None = setting(
        None,
        "a database URL, such as postgresql+psycopg://user:password@host/name, or null",
        "The database. null: SQLite in data_dir.",
        live=False,
    )
    files_url: str | None = setting(
        None,
        "s3:// with a bucket, and a prefix if you like, such as s3://bucket/assistant, or null",
        "Where uploaded files are kept. null: in data_dir. s3://: in an S3 bucket, which several servers can share. "
        "Its keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment. Needs the extra s3.",
        live=False,
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]*)?$",
    )
    s3_endpoint_url: str | None = setting(
        None,
        HTTP_URL,
        "The S3 server for files_url. null: Amazon's.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )
    s3_region: str | None = setting(
        None,
        "a region's name such as eu-central-1, or null",
        "The bucket's region. null: AWS_REGION, otherwise us-east-1.",
        live=False,
        pattern=r"^[a-z0-9-]+$",
    )
    s3_path_style: bool = setting(
        True,
        "true or false",
        "Where s3_endpoint_url takes the bucket's name: in the path (true), or as a part of the host name (false).",
        live=False,
    )
    database_connections: int = setting(
        24,
        "a whole number, 5 or more",
        "Maximum number of connections to PostgreSQL that this process opens at once, not counting a few lasting ones.",
        live=False,
        ge=5,
    )
    drain_seconds: float = setting(
        0.0,
        "a number of seconds, 0 or more",
        "When this process is told to end: how long it still takes questions while /readyz answers 503, so that a "
        "proxy sends them elsewhere.",
        live=False,
        ge=0,
    )
    last_answers_seconds: float = setting(
        5.0,
        "a number of seconds, 0 or more",
        "When this process ends: how long running answers may go on before they are interrupted.",
        live=False,
        ge=0,
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "one of DEBUG, INFO, WARNING, ERROR", "How much is logged.", live=False
    )
    log_format: Literal["text", "json"] = setting(
        "text",
        "one of text, json",
        "What a line of the log looks like. json: for programs that collect logs.",
        live=False,
    )
    access_log: bool = setting(
        False, "true or false", "Log a line for each request, without what is searched for.", live=False
    )
    otlp_endpoint: str | None = setting(
        None,
        HTTP_URL,
        "Where traces of answers are sent (OpenTelemetry over HTTP), such as http://localhost:4318. null: nowhere. "
        "Needs the extra otel.",
        live=False,
        pattern=HTTP_URL_PATTERN,
    )

    @field_validator("oidc_scopes")
    @classmethod
    def _openid_is_asked_for(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("without openid the provider says nothing about who somebody is")
        return scopes

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
        if name not in ENVIRONMENT_ONLY
    }
    return schema


def is_live(name: str) -> bool:
    """Tell whether a change of the setting takes effect without a restart."""
    extra = Settings.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra["live"])
