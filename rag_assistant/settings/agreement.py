"""What servers on one database must have in common, and what they had better: each has a settings.json of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag_assistant.settings.schema import Settings

NEEDED_BY_ALL = ("embedder", "files_url")
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
    return values.model_dump(mode="json", include={*NEEDED_BY_ALL, *SHARED})


def conflict(own: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why a server cannot run beside others, ``None`` if it can.

    Each would embed everything for itself, or look in vain for the files of the others.
    """
    for theirs in others:
        for name in NEEDED_BY_ALL:
            if (other := theirs.get(name)) != own[name]:
                return (
                    f"{name} is {_shown(own[name])}, but a server on the same database uses {_shown(other)}; all must "
                    "use one. To change it, stop all of them first."
                )
    return None


def _shown(value: object) -> str:
    return "null" if value is None else f'"{value}"'


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
