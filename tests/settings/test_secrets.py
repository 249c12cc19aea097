"""Which settings hold secrets: a new one that could is known as one, or says why it is none."""

from typing import Any

from rag_assistant.settings.declaration import HTTP_URL_PATTERN
from rag_assistant.settings.schema import SECRET, Settings

# Settings that hold any text and no secret, each with why.
OPEN = {
    "instructions": "what the model is told; the receipt shows it",
    "openai_model": "a name",
    "summary_model": "a name",
    "models_offered": "names",
    "local_model": "a path",
    "embedder": "a name",
    "rerank_model": "a name",
    "host": "an address",
    "allowed_hosts": "names of hosts",
    "cors_origins": "addresses",
    "trusted_proxies": "addresses",
    "announcement": "everybody reads it",
    "backup_folder": "a path, or the name of a bucket",
    "base_path": "a path",
    "oidc_client_id": "a name, which every address of the provider's shows",
    "oidc_scopes": "words of the protocol",
    "oidc_label": "a word on the page",
    "oidc_allowed_domains": "names of domains",
    "oidc_groups_claim": "a name",
    "oidc_allowed_groups": "names",
    "oidc_admin_group": "a name",
    "proxy_user_header": "the name of a header",
    "proxy_user_from": "addresses",
    "proxy_groups_header": "the name of a header",
    "proxy_admin_group": "a name",
    "proxy_logout_link": "an address that the page links to",
    "smtp_url": "an address, which may hold no credentials",
    "smtp_from": "an address that mails show",
    "smtp_user": "a name",
    "data_dir": "a path",
    "files_url": "the name of a bucket and a folder in it",
    "document_sources": "paths and addresses, which may hold no credentials",
    "s3_region": "the name of a region",
}


def holds_any_text(described: Any) -> bool:
    """Tell whether a setting with this schema takes a text of one's own: no number, no choice, no checked URL."""
    if isinstance(described, list):
        return any(map(holds_any_text, described))
    if not isinstance(described, dict):
        return False
    kind = described.get("type")
    if kind == "object" and described.get("additionalProperties") is True:
        return True
    if kind == "string" and not described.keys() & {"enum", "const"} and described.get("pattern") != HTTP_URL_PATTERN:
        return True
    return any(holds_any_text(part) for name, part in described.items() if name not in ("default", "patternProperties"))


def test_every_setting_that_could_hold_a_secret_is_known_as_one_or_says_why_it_is_none() -> None:
    described = Settings.model_json_schema()["properties"]
    found = {name for name, one in described.items() if holds_any_text(one)}
    assert found | {"mcp_servers"} == SECRET | OPEN.keys()
    assert not SECRET & OPEN.keys()
