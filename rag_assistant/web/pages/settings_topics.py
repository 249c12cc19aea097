"""Every setting as a person reads it: its value, where that comes from, and what may stand there. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from rag_assistant.settings.schema import SECRET, Settings, is_live

# Settings that hardly anyone changes.
ADVANCED = "Advanced"
# What belongs together, in the order in which it is shown; a test sees to it that no setting is missing.
TOPICS = {
    "Memory": (
        "max_history_turns history_strategy on_overflow window_slack history_recall tool_iterations_keep "
        "history_token_budget merge_system_messages"
    ).split(),
    "Model": (
        "openai_base_url openai_api_key openai_model local_model when_model_fails model_context_tokens "
        "model_images instructions temperature max_answer_tokens mcp_servers"
    ).split(),
    "Model timeouts": "first_token_timeout_seconds".split(),
    "Search": (
        "retrieval_mode max_passages passages_token_budget query_rewriting chunk_chars embedder "
        "embedding_base_url embedding_api_key rerank_model rerank_base_url rerank_api_key chroma_url"
    ).split(),
    "Documents": "max_upload_mb web_pages document_sources extraction_timeout_seconds ocr".split(),
    "Server": (
        "role host port allowed_hosts trusted_proxies base_path max_running_answers max_questions_per_minute "
        "max_running_answers_per_person max_stored_mb_per_person max_tokens_per_day max_tokens_per_day_per_person "
        "data_dir database_url files_url s3_endpoint_url s3_region s3_path_style page_language log_level "
        "log_format access_log otlp_endpoint"
    ).split(),
    "Sign-in": (
        "oidc_issuer oidc_client_id oidc_client_secret oidc_scopes oidc_label oidc_allowed_domains "
        "oidc_groups_claim oidc_allowed_groups oidc_admin_group oidc_create_accounts proxy_user_header "
        "proxy_user_from proxy_groups_header proxy_admin_group proxy_create_accounts proxy_logout_link"
    ).split(),
    ADVANCED: (
        "connect_timeout_seconds token_timeout_seconds answer_timeout_seconds embedder_options "
        "sources_interval_seconds database_connections drain_seconds last_answers_seconds"
    ).split(),
}
ORIGINS = {"default": "default", "file": "settings.json", "environment": "environment"}


class SettingView(Struct, frozen=True):
    """One setting: ``value`` as JSON (of a secret only whether it is set), ``line`` to copy into settings.json."""

    name: str
    value: str
    origin: str
    description: str
    allowed: str
    live: bool
    line: str

    def holds(self, words: str) -> bool:
        """Tell whether a person who looks for these words means this setting."""
        text = f"{self.name} {self.name.replace('_', ' ')} {self.description} {self.value}".lower()
        return all(word in text for word in words.lower().split())


def settings_view(values: Settings, origins: Mapping[str, str], sought: str = "") -> dict[str, list[SettingView]]:
    """Return the settings by topic, those that hold all the words of ``sought``; topics without any are left out."""
    content = values.model_dump(mode="json")
    by_topic = {topic: [_view(name, content[name], origins[name]) for name in names] for topic, names in TOPICS.items()}
    found = {topic: [view for view in views if view.holds(sought)] for topic, views in by_topic.items()}
    return {topic: views for topic, views in found.items() if views}


def _view(name: str, value: Any, origin: str) -> SettingView:
    field = Settings.model_fields[name]
    extra = field.json_schema_extra
    secret = name in SECRET
    return SettingView(
        name=name,
        value=("set" if value is not None else "not set") if secret else json.dumps(value, ensure_ascii=False),
        origin=f"{ORIGINS[origin]} ({name.upper()})" if origin == "environment" else ORIGINS[origin],
        description=field.description or "",
        allowed=str(extra["allowed"]) if isinstance(extra, dict) else "",
        live=is_live(name),
        line=f"{json.dumps(name)}: {json.dumps('...' if secret else value, ensure_ascii=False)}",
    )
