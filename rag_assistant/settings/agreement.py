"""Which settings servers on one database must or should share: each has its own settings.json."""

from collections.abc import Iterable, Mapping
from typing import Any

from rag_assistant.records.validation import shown
from rag_assistant.settings.schema import Settings

NEEDED_BY_ALL = ("embedder", "files_url")
# What affects documents, and so concerns workers.
OF_DOCUMENTS = (*("chunk_chars", "chroma_url", "ocr", "extraction_timeout_seconds"),)
# And what users notice: what the model sees, which model answers and how, search, limits, addresses.
SHARED = (
    *("max_history_turns", "history_strategy", "on_overflow", "window_slack", "history_recall"),
    *("search_conversations", "notes", "propose_notes"),
    *("tool_iterations_keep", "history_token_budget", "merge_system_messages", "instructions"),
    *("openai_model", "model_context_tokens", "max_answer_tokens", "temperature", "when_model_fails"),
    *("retrieval_mode", "max_passages", "passages_token_budget", "query_rewriting", "rerank_model"),
    *("max_upload_mb", "max_questions_per_minute", "max_running_answers_per_person"),
    *("max_tokens_per_day", "max_tokens_per_day_per_person"),
    *("max_stored_mb_per_person", "answer_timeout_seconds", "allowed_hosts", "base_path"),
    *OF_DOCUMENTS,
)


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
