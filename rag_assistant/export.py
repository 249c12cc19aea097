"""A conversation as a file: Markdown to read, JSON to go on working with. Pure; written piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from rag_assistant.records import Conversation, Turn
from rag_assistant.turn_view import seen_by_model, turn_data

FORMATS = {"markdown": ("md", "text/markdown; charset=utf-8"), "json": ("json", "application/json")}


def as_markdown(conversation: Conversation, turns: Iterable[Turn]) -> Iterator[str]:
    """Yield a conversation as Markdown: each question, its answer, its sources, and what the model did not see."""
    yield f"# {conversation.title}\n"
    if conversation.summary is not None:
        summary = conversation.summary
        yield f"\n> Summary of turns {summary.first_turn} to {summary.last_turn}, as the model sees it:\n>\n"
        yield "".join(f"> {line}\n" for line in summary.text.splitlines())
    for turn in turns:
        yield f"\n## {turn.number}. {_one_line(turn.question)}\n\n"
        if _one_line(turn.question) != turn.question:
            yield f"{turn.question}\n\n"
        yield f"{turn.answer or '(no answer)'}\n"
        cited = [source for source in turn.sources if source.cited]
        for source in cited:
            yield f"\n[{source.n}] {source.document}{f', page {source.page}' if source.page else ''}\n"
        if turn.sources and not cited:
            names = dict.fromkeys(source.document for source in turn.sources)
            yield f"\nFound for it, not cited: {', '.join(names)}\n"
        told = [turn.error_message] if turn.error_message else []
        if (seen := seen_by_model(turn)) is not None:
            told.append(f"The model saw {seen}.")
        for sentence in (*told, *turn.notes):
            yield f"\n*{sentence}*\n"


def as_json(conversation: Conversation, turns: Iterable[Turn]) -> Iterator[str]:
    """Yield a conversation as one JSON object: ``title``, ``created_at``, ``summary``, and ``turns`` as in the API."""
    summary = conversation.summary
    head = {
        "title": conversation.title,
        "created_at": conversation.created_at.isoformat(),
        "summary": None
        if summary is None
        else {"first_turn": summary.first_turn, "last_turn": summary.last_turn, "text": summary.text},
    }
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "turns": ['
    for number, turn in enumerate(turns):
        yield (", " if number else "") + json.dumps(turn_data(turn), ensure_ascii=False)
    yield "]}\n"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99].rstrip() + "…"
