"""All settings, from a file for each topic. Pure; loading.py reads them."""

from rag_assistant.settings.conversations import ConversationSettings, ModelSettings
from rag_assistant.settings.documents import DocumentSettings
from rag_assistant.settings.people import PeopleSettings
from rag_assistant.settings.server import ServerSettings

# Secrets of other people's accounts aren't stored in a file that is copied, mailed or committed.
ENVIRONMENT_ONLY = frozenset({"oidc_client_secret"})
SECRET = ENVIRONMENT_ONLY | {
    "openai_api_key", "embedding_api_key", "rerank_api_key", "embedder_options", "chroma_headers", "database_url",
    "mcp_servers",
}  # fmt: skip


class Settings(PeopleSettings, ServerSettings, DocumentSettings, ModelSettings, ConversationSettings):
    """All settings with their defaults. Read from the last topic to the first, it is the order of docs/settings.md."""


# Rarely changed settings, besides those in OBJECTS.
ADVANCED = frozenset(
    "access_log base_path chroma_headers chroma_url chunk_chars cors_origins database_connections drain_seconds "
    "embedder_options embedding_api_key embedding_base_url history_recall history_token_budget last_answers_seconds "
    "log_format max_answer_tokens merge_system_messages otlp_endpoint passages_token_budget rerank_api_key "
    "rerank_base_url role sources_interval_seconds summary_model tool_iterations_keep trash_days trusted_proxies "
    "window_slack".split()
)
# Objects in settings.json, and the setting for each member. The setting's own name works as well, and is the only one
# in the environment.
OBJECTS: dict[str, dict[str, str]] = {
    **{
        prefix: {name.removeprefix(f"{prefix}_"): name for name in Settings.model_fields if name.startswith(prefix)}
        for prefix in ("oidc", "proxy", "s3")
    },
    "limits": {
        name.removeprefix("max_"): name
        for name in Settings.model_fields
        if name.startswith(("max_questions_", "max_running_", "max_stored_", "max_tokens_per_"))
    },
    "timeouts": {
        name.replace("_timeout_", "_"): name for name in Settings.model_fields if name.endswith("_timeout_seconds")
    },
}
# Such as oidc.issuer for oidc_issuer.
DOTTED = {name: f"{key}.{inner}" for key, members in OBJECTS.items() for inner, name in members.items()}


def is_advanced(name: str) -> bool:
    """Return whether the setting is rarely changed."""
    return name in DOTTED or name in ADVANCED


def is_live(name: str) -> bool:
    """Return whether a change takes effect without a restart."""
    extra = Settings.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra["live"])
