"""A turn as callers see it: one shape for the JSON answer, for turn_events.py and for the lists. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from rag_assistant.history import UNANSWERED, FittedHistory, notice_for
from rag_assistant.presenters.history import seen, turns_by_reason
from rag_assistant.records import (
    QUOTES,
    AnswerVersion,
    Correction,
    Message,
    Passage,
    Rating,
    RelatedTurn,
    Source,
    Turn,
)
from rag_assistant.records.errors import AssistantError, ReceiptNotFound

# What leads an answer of quotes.
LEAD = "No language model is connected, so here is what your documents say:"
LEAD_INSTEAD = "The model did not answer, so here is what your documents say:"


def history_figures(
    fitted: FittedHistory,
    passage_tokens: int,
    limit: int | None,
    recalled: Sequence[int],
    missing: Sequence[RelatedTurn],
) -> dict[str, Any]:
    """Return the ``history`` object of an answer. Token figures are estimates, ``limit`` is what the model takes."""
    receipt = fitted.receipt
    tokens = receipt.tokens
    parts = {
        "system": tokens["system"],
        "tools": tokens["reserved"],
        "summary": tokens["summary"],
        "history": tokens["history"],
        "passages": passage_tokens,
        "question": tokens["question"] - passage_tokens,
    }
    return {
        "max_history_turns": receipt.max_history_turns,
        "strategy": receipt.strategy,
        "turns_total": receipt.turns_total,
        "turns_kept": receipt.turns_kept,
        "turns_dropped": receipt.turns_dropped,
        "messages_dropped": receipt.messages_dropped,
        "first_kept_turn": receipt.first_kept_turn,
        "reason": receipt.reason,
        "notice": fitted.notice,
        "left_out": turns_by_reason(receipt.left_out),
        "summary_sent": receipt.summary_sent,
        "recalled_turns": list(recalled),
        "missing": [{"turn": turn.number, "why": turn.why, "score": turn.certainty} for turn in missing],
        "iterations_dropped": receipt.iterations_dropped,
        "tokens": parts | {"total": sum(parts.values()), "limit": limit},
    }


def without_lead(answer: str) -> str:
    """Return an answer without the line that leads quotes: it says nothing about the conversation."""
    return answer.removeprefix(LEAD).removeprefix(LEAD_INSTEAD).lstrip()


def support_of(turn: Turn) -> str:
    """Return what an answer rests on.

    ``cited``: it names passages. ``uncited``: it had passages and names none. ``not_checked``: it had passages, and the
    server ended before it was kept which model answered. ``nothing_found``: the documents were searched in vain.
    ``not_sent``: what was found did not fit into the request. ``not_searched``: they were not searched.
    """
    if turn.sources:
        if any(source.cited for source in turn.sources):
            return "cited"
        return "not_checked" if turn.model is None else "uncited"
    if turn.search is not None and turn.search["found"]:
        return "not_sent"
    searched = turn.search is not None or any(step["tool"] == "search_documents" for step in steps_of(turn.iterations))
    return "nothing_found" if searched else "not_searched"


def search_data(search: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return how the documents were searched, ``None`` if they were not; ``leans_on`` is the former name of a field."""
    return None if search is None else {**search, "follow_up_context": search.get("leans_on")}


def doubt_in_words(doubt: Mapping[str, Any], n: int) -> str:
    """Return what is doubtful about a citation of source ``n``, in words."""
    listed = ", ".join(f"“{one}”" for one in doubt["missing"])
    said = {
        "number": f"{listed} is not in source {n}.",
        "name": f"{listed} is not in source {n}.",
        "negation": f"Source {n} seems to say the opposite.",
        "words": f"Source {n} does not seem to say this.",
    }[doubt["problem"]]
    return f"{said} Source {doubt['carried_by']} seems to carry it." if doubt["carried_by"] else said


def correction_in_words(correction: Correction) -> str:
    """Return what was changed since an answer, as a sentence."""
    source = f"source {correction.n}" + (f" of turn {correction.turn}" if correction.turn else "")
    return {
        "changed": f"“{correction.document}” has changed since: {source} is no longer in it.",
        "deleted": f"“{correction.document}” ({source}) has been deleted since.",
        "excluded": f"Turn {correction.turn}, which was in view, has been excluded since.",
        "erased": f"Turn {correction.turn}, which was in view, has been erased since.",
        "edited": "The summary that was in view has been edited since.",
    }[correction.change]


def correction_data(correction: Correction) -> dict[str, Any]:
    """Return what was changed since an answer, with the sentence about it; what does not apply is not there."""
    return {name: value for name, value in asdict(correction).items() if value is not None} | {
        "sentence": correction_in_words(correction)
    }


def corrections_data(turn: Turn, corrections: Mapping[int, Sequence[Correction]]) -> dict[str, Any]:
    """Return what a turn's answer rests on and was changed since, as it is listed beside the turn."""
    return {"corrections": [correction_data(one) for one in corrections.get(turn.id, ())]}


def source_data(source: Source | Passage) -> dict[str, Any]:
    """Return a passage as it is listed; ``document`` and ``document_name`` are the same, the name it had then."""
    data = asdict(source) | {"document_name": source.document}
    for name in ("chunk_id", "gap"):
        data.pop(name, None)
    return data


def turn_data(turn: Turn) -> dict[str, Any]:
    """Return a turn as it is answered and listed."""
    history = turn.history
    data: dict[str, Any] = {
        "conversation_id": turn.conversation_id,
        "turn_id": turn.id,
        "turn": turn.number,
        "status": turn.status,
        "question": turn.question,
        "answer": turn.answer,
        "history_trimmed": history is not None and history["turns_dropped"] > 0,
        "notice": notice_of(turn),
        "history": history,
        "steps": steps_of(turn.iterations),
        "search": search_data(turn.search),
        "support": support_of(turn),
        "doubts": sum(len(source.doubts) for source in turn.sources),
        "sources": [source_data(source) for source in turn.sources],
        "notes": list(turn.notes),
        "usage": turn.usage,
        "model": turn.model,
        "pinned": turn.pinned,
        "excluded": turn.excluded,
        "purged": turn.purged,
        "waiting": turn.waiting is not None,
        "version": turn.version,
        "versions": turn.versions,
        "rating": rating_data(turn.rating),
        "created_at": turn.created_at.isoformat(),
        "finished_at": turn.finished_at.isoformat() if turn.finished_at else None,
    }
    if turn.images:
        data["images"] = len(turn.images)
    if turn.erased_at is not None:
        data["erased_at"] = turn.erased_at.isoformat()
    if turn.error_type is not None:
        data["error"] = {"type": turn.error_type, "message": turn.error_message}
        if turn.retry_after_seconds is not None:
            data["error"]["retry_after_seconds"] = turn.retry_after_seconds
    return data


def rating_data(rating: Rating | None) -> dict[str, Any] | None:
    """Return a turn's rating, ``None`` if it has none."""
    if rating is None:
        return None
    return {
        "rating": rating.rating,
        "version": rating.version,
        "right_answer": rating.right_answer,
        "rated_at": rating.rated_at.isoformat(),
    }


def rated_data(turn: Turn) -> dict[str, Any]:
    """Return a rated turn as it is listed: the answer that was rated, and what came of it when it was asked again."""
    return {
        "turn_id": turn.id,
        "conversation_id": turn.conversation_id,
        "turn": turn.number,
        "question": turn.question,
        "answer": turn.answer,
        "model": turn.model,
        "rating": rating_data(turn.rating),
        "result": turn.rating.result if turn.rating else None,
    }


def version_data(version: AnswerVersion) -> dict[str, Any]:
    """Return one of a turn's answers as it is listed."""
    return {
        "version": version.version,
        "chosen": version.chosen,
        "status": version.status,
        "answer": version.answer,
        "model": version.model,
        "sources": [source_data(source) for source in version.sources],
        "notes": list(version.notes),
        "finished_at": version.finished_at.isoformat() if version.finished_at else None,
    }


def seen_by_model(turn: Turn) -> str | None:
    """Return what the model saw of the earlier turns, ``None`` where nothing was left out."""
    history = turn.history
    if history is None:
        return None
    left_out = history.get(
        "left_out", {history["reason"]: history["turns_dropped"]} if history["turns_dropped"] else {}
    )
    return seen(history["turns_kept"], left_out) if left_out.keys() - UNANSWERED else None


def view_in_words(turn: Turn) -> str | None:
    """Return the sentence about what was seen of the earlier turns, ``None`` where nothing was left out."""
    seen_turns = seen_by_model(turn)
    return None if seen_turns is None else view_sentence(seen_turns, turn.model)


def view_sentence(seen_turns: str, model: str | None) -> str:
    """Return the sentence about which earlier turns were seen; where quotes answer, no model sees any."""
    return f"In view: {seen_turns}." if model == QUOTES else f"The model saw {seen_turns}."


def shifts(turns: Iterable[Turn], before: Turn | None = None) -> frozenset[int]:
    """Return the numbers of the turns that say what was left out: those where it differs in kind from the turn before.

    ``before`` is the turn in front of them. A full window says it once, not with every answer.
    """
    known = _kind_left_out(before) if before is not None else None
    told = []
    for turn in turns:
        if turn.history is None:
            continue
        kind = _kind_left_out(turn)
        if kind and kind != known:
            told.append(turn.number)
        known = kind
    return frozenset(told)


def _kind_left_out(turn: Turn) -> frozenset[str]:
    """Return why turns were left out for a turn, and whether a summary stood for them."""
    history = turn.history
    if history is None or seen_by_model(turn) is None:
        return frozenset()
    reasons = history.get("left_out") or {history["reason"]: history["turns_dropped"]}
    return frozenset(reasons) - UNANSWERED | ({"with a summary"} if history.get("summary_sent") else frozenset())


def receipt_data(turn: Turn, body: dict[str, Any] | None) -> dict[str, Any]:
    """Return a turn's receipt as it is shown: the exact requests, what was left out of them and why, the figures.

    Raises ReceiptNotFound where there is none.
    """
    if body is None:
        raise ReceiptNotFound(turn.id)
    data = turn_data(turn)
    names = (
        *("turn_id", "conversation_id", "turn", "status", "history_trimmed", "notice", "history", "usage", "model"),
        *("support", "doubts"),
    )
    shown = body | {"messages": messages_sent(body)}
    if "search" in body:
        shown["search"] = search_data(body["search"])
    return {name: data[name] for name in names} | shown


def messages_sent(body: dict[str, Any]) -> list[Message]:
    """Return the messages of a receipt's last request; older receipts have them alone."""
    sent: list[Message] = body["request"]["messages"] if "request" in body else body["messages"]
    return sent


def notice_of(turn: Turn) -> str | None:
    """Return the notice that the model got with a turn, ``None`` if it got none."""
    history = turn.history
    if history is None or not history["turns_dropped"]:
        return None
    return str(history["notice"]) if "notice" in history else notice_for(history["turns_kept"])


def steps_of(iterations: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the tool calls of a turn with their results, in their order, numbered from 1."""
    steps: list[dict[str, Any]] = []
    open_steps: list[dict[str, Any]] = []
    for message in iterations:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            step = {"n": len(steps) + 1, "tool": function["name"], "arguments": function["arguments"], "result": None}
            steps.append(step)
            open_steps.append(step)
        if message["role"] == "tool" and open_steps:
            open_steps.pop(0)["result"] = message["content"]
    return steps


def error_data(error: AssistantError) -> dict[str, Any]:
    """Return an error in the one shape in which it is shown; some carry ``details`` by which a caller can decide."""
    details = {"details": error.details} if error.details else {}
    return {"type": type(error).__name__, "message": str(error)} | details
