"""What servers on one database must have in common, and what they had better: each has a settings.json of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag_assistant.settings.schema import Settings

SHARED = (
    "max_history_turns",
    "history_strategy",
    "on_overflow",
    "window_slack",
    "history_recall",
    "tool_iterations_keep",
    "history_token_budget",
    "instructions",
    "max_question_chars",
    "max_answer_tokens",
    "openai_model",
    "retrieval_mode",
    "max_passages",
    "chunk_chars",
    "max_upload_mb",
    "chroma_url",
)


def shared_settings(values: Settings) -> dict[str, Any]:
    """Return the values that others are told."""
    return values.model_dump(mode="json", include={"embedder", *SHARED})


def conflict(own: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why a server cannot run beside others, ``None`` if it can: each would embed everything for itself."""
    for theirs in others:
        if theirs["embedder"] != own["embedder"]:
            return (
                f'embedder is "{own["embedder"]}", but a server on the same database uses "{theirs["embedder"]}"; all '
                "must use one. To change it, stop all of them first."
            )
    return None


def differences(own: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each setting in which others differ, so that answers depend on who gives them."""
    found = []
    others = list(others)
    for name in SHARED:
        # Who knows fewer settings is of another version.
        values = {repr(theirs[name]) for theirs in others if name in theirs and theirs[name] != own[name]}
        if values:
            found.append(f"{name} is {own[name]!r} here and {', '.join(sorted(values))} at another server.")
    return found
