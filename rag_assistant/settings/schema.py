"""All settings, from a file for each topic. Pure; loading.py reads them."""

import json
from collections.abc import Iterable, Mapping
from pkgutil import get_data
from typing import Any

from rag_assistant.records.validation import shown
from rag_assistant.settings.conversations import ConversationSettings, ModelSettings
from rag_assistant.settings.documents import DocumentSettings
from rag_assistant.settings.people import PeopleSettings
from rag_assistant.settings.server import ServerSettings

# Secrets of other people's accounts aren't stored in a file that is copied, mailed or committed.
ENVIRONMENT_ONLY = frozenset({"oidc_client_secret", "smtp_password"})
SECRET = ENVIRONMENT_ONLY | {
    "openai_api_key", "embedding_api_key", "rerank_api_key", "chroma_headers", "database_url",
    "mcp_servers",
}  # fmt: skip


class Settings(PeopleSettings, ServerSettings, DocumentSettings, ModelSettings, ConversationSettings):
    """All settings with their defaults. Read from the last topic to the first, it is the order of docs/settings.md."""


_GROUPS: dict[str, list[str]] = json.loads(get_data(__package__, "groups.json") or b"")
# What runs a program, names files, says where the data is or who is let in: whoever gets hold of an administrator's
# session elsewhere would come from the page to the machine.
OF_THE_MACHINE = ("oidc_", "proxy_", "s3_", "smtp_")
BY_HAND = {*_GROUPS["by_hand"], *(name for name in Settings.model_fields if name.startswith(OF_THE_MACHINE))}
# What servers on one database must share: each has its own settings.json.
NEEDED_BY_ALL = _GROUPS["needed_by_all"]
# What affects documents, and so concerns workers.
OF_DOCUMENTS = _GROUPS["of_documents"]
# And what users notice: what the model sees, which model answers and how, search, limits, addresses.
SHARED = [*_GROUPS["shared"], *OF_DOCUMENTS]
# Objects in settings.json, and the setting for each member. The setting's own name works as well, and is the only one
# in the environment.
OBJECTS: dict[str, dict[str, str]] = {
    **{
        prefix: {name.removeprefix(f"{prefix}_"): name for name in Settings.model_fields if name.startswith(prefix)}
        for prefix in ("oidc", "proxy", "s3", "smtp")
    },
    "limits": {
        name.removeprefix("max_"): name
        for name in Settings.model_fields
        if name.startswith(("max_questions_", "max_running_", "max_stored_", "max_tokens_per_", "max_cost"))
    },
    "timeouts": {
        name.replace("_timeout_", "_"): name for name in Settings.model_fields if name.endswith("_timeout_seconds")
    },
}
# Such as oidc.issuer for oidc_issuer.
DOTTED = {name: f"{key}.{inner}" for key, members in OBJECTS.items() for inner, name in members.items()}
RARELY_CHANGED = {*DOTTED, *_GROUPS["rarely_changed"]}


def is_live(name: str) -> bool:
    """Return whether a change takes effect without a restart."""
    extra = Settings.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra["live"])


def shared_settings(values: Settings) -> dict[str, Any]:
    """Return the values to share with other servers: for a worker, those that affect documents."""
    return values.model_dump(
        mode="json", include={*NEEDED_BY_ALL, *(OF_DOCUMENTS if values.role == "worker" else SHARED)}
    )


def conflict(own: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why a server can't run beside others, ``None`` if it can.

    Otherwise each would embed everything for itself, or look in vain for the files of the others.
    """
    for other in others:
        for name in NEEDED_BY_ALL:
            if (value := other.get(name)) != own[name]:
                return (
                    f"{name} is {shown(own[name])}, but a server on the same database uses {shown(value)}; all must "
                    "use one. To change it, stop all of them first."
                )
    return None


def differences(own: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each differing setting, as answers then depend on the server."""
    sentences = []
    others = list(others)
    for name in [name for name in SHARED if name in own]:
        # One with fewer settings is a worker, or another version.
        values = {repr(other[name]) for other in others if name in other and other[name] != own[name]}
        if values:
            sentences.append(f"{name} is {own[name]!r} here and {', '.join(sorted(values))} at another server.")
    return sentences
