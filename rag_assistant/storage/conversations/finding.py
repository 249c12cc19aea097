"""Find conversations by their titles and turns."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, func, or_, select

from rag_assistant.storage.database import person_of
from rag_assistant.storage.full_text import TURN_WORDS, holds
from rag_assistant.storage.ownership import own_conversations
from rag_assistant.storage.tables import conversations, messages, turns

MAX_HITS = 1000
# Beyond this many conversations or turns, each hit is looked up instead of listing all candidates.
MAX_LISTED = 10_000
# Shorter prefixes match too many words: they are searched in titles, and as whole words.
MIN_BEGINNING_CHARS = 3

# A conversation with the number and text of the matching turn; no number where its title matched.
Found = tuple[RowMapping, int | None, str]


def find_conversations(connection: Connection, words: Sequence[str], limit: int, typing: bool) -> list[Found]:
    """Return up to ``limit`` conversations that contain any of ``words``, each once: title matches, then the best."""
    begun = typing and len(words[-1]) >= MIN_BEGINNING_CHARS
    # A prefix for FTS5; PostgreSQL finds whole words only.
    sought = [*words[:-1], f"{words[-1]}*"] if begun else words
    # Other people's turns must not use up the limit.
    only = None if person_of(connection) is None else _own_turns(connection)
    hits = TURN_WORDS.best_or_newest(connection, sought, MAX_HITS, only)
    # A join would start with all conversations that aren't deleted.
    in_list = conversations.c.deleted_at.is_(None), own_conversations(connection)
    there = exists().where(conversations.c.id == turns.c.conversation_id, *in_list)
    query = select(turns.c.id, turns.c.conversation_id, turns.c.number).where(turns.c.id.in_(hits), there)
    turns_found = {row.id: row for row in connection.execute(query)} if hits else {}
    # The best turn of each conversation; hits come in order.
    best: dict[int, tuple[int, int]] = {}
    for turn in filter(None, map(turns_found.get, hits)):
        best.setdefault(turn.conversation_id, (turn.id, turn.number))
    rows = {row["id"]: row for row in _titled(connection, words, limit)}
    chosen = [*rows, *(one for one in best if one not in rows)][:limit]
    texts = _texts(connection, [best[one][0] for one in chosen if one in best])
    others = select(conversations).where(conversations.c.id.in_([one for one in chosen if one not in rows]))
    rows |= {row["id"]: row for row in connection.execute(others).mappings()}
    turns_of_hits = [best.get(one, (0, None)) for one in chosen]
    return [(rows[one], number, texts.get(hit, "")) for one, (hit, number) in zip(chosen, turns_of_hits, strict=True)]


def _own_turns(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that a turn in the word index belongs to the person of a connection."""
    is_own = own_conversations(connection)
    own = select(turns.c.id).join(conversations, conversations.c.id == turns.c.conversation_id).where(is_own)
    # Conversations are counted first, which takes a tenth of the time.
    for rows in (select(conversations.c.id).where(is_own), own):
        some = select(func.count()).select_from(rows.limit(MAX_LISTED + 1).subquery())
        if connection.execute(some).scalar_one() > MAX_LISTED:
            return own.where(turns.c.id == TURN_WORDS.columns(connection)[1]).exists()
    return TURN_WORDS.row_id(connection).in_(own)


def _titled(connection: Connection, words: Sequence[str], limit: int) -> Sequence[RowMapping]:
    """Return the latest conversations whose title contains all of the words."""
    title = conversations.c.title
    latest_first = conversations.c.updated_at.desc(), conversations.c.id.desc()
    # Reads only the index, not the rows.
    named = select(conversations.c.id).where(conversations.c.deleted_at.is_(None), own_conversations(connection))
    for word in words:
        # Not every database folds case beyond ASCII.
        spellings = {word} if word.isascii() else {word, word.upper(), word.capitalize()}
        named = named.where(or_(*(holds(connection, title, spelling) for spelling in sorted(spellings))))
    chosen = conversations.c.id.in_(named.order_by(*latest_first).limit(limit))
    return connection.execute(select(conversations).where(chosen).order_by(*latest_first)).mappings().all()


def _texts(connection: Connection, turn_ids: Sequence[int]) -> dict[int, str]:
    """Return the question and answer of each turn, with a newline between them."""
    query = (
        select(messages.c.turn_id, messages.c.content)
        .where(messages.c.turn_id.in_(turn_ids), messages.c.role.in_(("user", "assistant")))
        .order_by(messages.c.turn_id, messages.c.position)
    )
    turns_found: dict[int, list[str]] = {}
    for turn_id, content in connection.execute(query):
        turns_found.setdefault(turn_id, []).append(content or "")
    return {turn_id: "\n".join(filter(None, parts)) for turn_id, parts in turns_found.items()}
