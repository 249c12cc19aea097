"""Which conversations hold some words: in their titles, or in what was said in them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, or_, select

from rag_assistant.storage.full_text import TURN_WORDS, beginning
from rag_assistant.storage.tables import conversations, messages, turns

MAX_HITS = 1000

# A conversation with the number and the text of the turn that was found; no number where its title was.
Found = tuple[RowMapping, int | None, str]


def find_conversations(connection: Connection, words: Sequence[str], limit: int, typing: bool) -> list[Found]:
    """Return up to ``limit`` conversations with any of ``words``, each once: those named so first, then the best."""
    asked = [*words[:-1], beginning(words[-1])] if typing else words
    hits = [turn_id for turn_id, _ in TURN_WORDS.best(connection, asked, MAX_HITS)]
    turns_found = _turns_of(connection, hits)
    # The best turn of each conversation; hits come in their order.
    best: dict[int, RowMapping] = {}
    for hit in hits:
        if hit in turns_found:
            best.setdefault(turns_found[hit]["id"], turns_found[hit])
    named = {row["id"]: row for row in _titled(connection, words, limit)}
    chosen = [*named, *(one for one in best if one not in named)][:limit]
    texts = _texts(connection, [best[one]["turn_id"] for one in chosen if one in best])
    found: list[Found] = []
    for one in chosen:
        hit_turn = best.get(one)
        if hit_turn is None:
            found.append((named[one], None, ""))
        else:
            found.append((hit_turn, hit_turn["turn_number"], texts.get(hit_turn["turn_id"], "")))
    return found


def _turns_of(connection: Connection, turn_ids: Sequence[int]) -> dict[int, RowMapping]:
    if not turn_ids:
        return {}
    query = (
        select(turns.c.id.label("turn_id"), turns.c.number.label("turn_number"), conversations)
        .join_from(turns, conversations, conversations.c.id == turns.c.conversation_id)
        .where(turns.c.id.in_(turn_ids), conversations.c.deleted_at.is_(None))
    )
    return {row["turn_id"]: row for row in connection.execute(query).mappings()}


def _titled(connection: Connection, words: Sequence[str], limit: int) -> Sequence[RowMapping]:
    """Return the latest conversations whose title holds all of the words."""
    title = conversations.c.title
    query = select(conversations).where(conversations.c.deleted_at.is_(None))
    for word in words:
        # Not every database knows capitals beyond A to Z.
        spellings = {word, word.upper(), word.capitalize()}
        query = query.where(or_(*(title.icontains(spelling, autoescape=True) for spelling in sorted(spellings))))
    latest = query.order_by(conversations.c.updated_at.desc(), conversations.c.id.desc()).limit(limit)
    return connection.execute(latest).mappings().all()


def _texts(connection: Connection, turn_ids: Sequence[int]) -> dict[int, str]:
    """Return what was said in each turn by the person and the model: question and answer, a line between them."""
    query = (
        select(messages.c.turn_id, messages.c.content)
        .where(messages.c.turn_id.in_(turn_ids), messages.c.role.in_(("user", "assistant")))
        .order_by(messages.c.turn_id, messages.c.position)
    )
    turns_found: dict[int, list[str]] = {}
    for turn_id, content in connection.execute(query):
        turns_found.setdefault(turn_id, []).append(content or "")
    return {turn_id: "\n".join(filter(None, parts)) for turn_id, parts in turns_found.items()}
