"""Watch a turn being answered: its steps, how it ended, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_assistant.runtime.request_context import turn_id
from rag_assistant.runtime.telemetry.steps import step, watcher

if TYPE_CHECKING:
    from rag_assistant.answering.stream import LiveTurn
    from rag_assistant.records import Turn
    from rag_assistant.runtime.telemetry.metrics import Metrics
    from rag_assistant.runtime.telemetry.observer import Observer


def observed(observer: Observer, turn: Turn, live: LiveTurn, answer: Callable[[], Turn]) -> Turn:
    """Return what ``answer`` returns, the turn as it was kept, and take note of it."""
    turn_id.set(turn.id)
    watcher.set(observer)
    with step("turn", turn_id=turn.id, conversation_id=turn.conversation_id) as whole:
        try:
            kept = answer()
        except Exception as error:
            observer.metrics.turns.labels("interrupted", type(error).__name__).inc()
            raise
        usage, history = kept.usage or {}, kept.history or {}
        whole.facts |= {
            "ending": kept.status,
            "error": kept.error_type,
            "model": kept.model,
            "prompt_tokens": usage.get("prompt_tokens"),
            "completion_tokens": usage.get("completion_tokens"),
            "turns_dropped": history.get("turns_dropped"),
        }
    _count(observer.metrics, kept, live)
    return kept


def _count(metrics: Metrics, kept: Turn, live: LiveTurn) -> None:
    metrics.turns.labels(kept.status, kept.error_type or "").inc()
    history, usage = kept.history or {}, kept.usage or {}
    if history.get("turns_dropped"):
        metrics.trims.labels(history["reason"]).inc()
    for kind, name in (("in", "prompt_tokens"), ("cached", "cached_tokens"), ("out", "completion_tokens")):
        metrics.tokens.labels(kind).inc(usage.get(name, 0))
    if live.first_text_seconds is not None:
        metrics.first_text.observe(live.first_text_seconds)
