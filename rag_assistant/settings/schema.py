"""Every setting, with its rule and its sentence, a file for each topic. Pure; loading.py reads them."""

from __future__ import annotations

from typing import Any

from rag_assistant.settings.conversations import ConversationSettings
from rag_assistant.settings.documents import DocumentSettings
from rag_assistant.settings.models import ModelSettings
from rag_assistant.settings.people import PeopleSettings
from rag_assistant.settings.server import ServerSettings

# A secret of other people's accounts lies in no file that is copied, mailed or committed.
ENVIRONMENT_ONLY = frozenset({"oidc_client_secret"})
SECRET = ENVIRONMENT_ONLY | {
    "openai_api_key", "embedding_api_key", "rerank_api_key", "embedder_options", "database_url", "mcp_servers",
}  # fmt: skip


class Settings(PeopleSettings, ServerSettings, DocumentSettings, ModelSettings, ConversationSettings):
    """Every setting, with its default. Read from the last topic to the first, it is the order of docs/settings.md."""


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
