"""A company's database after years: conversations, documents, and one endless conversation."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, select, text, update

from bench.stage import add_conversation
from bench.words import guide_text, text_of
from rag_assistant.retrieval.tokenize import search_words
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.embeddings import EmbeddingStore
from rag_assistant.storage.documents.rows import name_key
from rag_assistant.storage.full_text import CHUNK_WORDS, TURN_WORDS
from rag_assistant.storage.tables import (
    chunks,
    conversations,
    document_texts,
    documents,
    embedders,
    embeddings,
    messages,
    now,
    turns,
)
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.shelf import KEY

CONVERSATIONS = 100_000
DOCUMENTS = 10_000
LONG_TURNS = 500_000
WORDS_OF_A_MESSAGE, WORDS_OF_A_TITLE = 20, 5
DIFFERENT_TEXTS = 5_000
ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Crowd:
    """The ids of the data: the long conversation with its turns, the others, each with one turn, the documents."""

    long: int
    long_turns: range
    conversations: range
    turns: range
    documents: range

    def ordinary(self, chance: random.Random) -> dict[str, int]:
        """Return the ids of a random conversation, its turn and a document."""
        place = chance.randrange(len(self.conversations))
        document = chance.choice(self.documents)
        return {
            "conversation_id": self.conversations[place], "turn_id": self.turns[place], "document_id": document,
        }  # fmt: skip


def fill(database: Database) -> Crowd:
    with database.write(forced=False) as connection:
        _add_conversations(connection)
        _add_documents(connection)
    EmbeddingStore(database).keep(KEY, {"embedder": "builtin"}, WordHashEmbedder.dimension, None)
    long = add_conversation(database, LONG_TURNS)
    with database.write(forced=False) as connection:
        connection.execute(update(embedders).values(additions=DOCUMENTS))
        first = connection.execute(select(turns.c.id).where(turns.c.conversation_id == long).limit(1)).scalar_one()
        for start, end in _parts(LONG_TURNS):
            words = ((n, _words(guide_text(2 * n)) + " " + _words(guide_text(2 * n + 1))) for n in range(start, end))
            TURN_WORDS.insert(connection, [(first + n, some) for n, some in words])
        _add_receipts(connection, long)
    of_others = range(1, CONVERSATIONS + 1)
    return Crowd(long, range(first, first + LONG_TURNS), of_others, of_others, range(1, DOCUMENTS + 1))


def _add_receipts(connection: Connection, conversation_id: int) -> None:
    """Record for each turn of a conversation that it was sent the five before it."""
    own = {"conversation": conversation_id}
    window = "[' || (number - 5) || ', ' || (number - 1) || ']"
    sent = f"""{{"model": "m", "messages": [{window}, [' || number || ', 0, 0]]}}"""
    body = f"""'{{"request": {sent}, "kept_turns": [{window}], "prefix_messages": 10}}'"""
    of_turns = "FROM turns WHERE conversation_id = :conversation AND number > 5"
    connection.execute(text(f"INSERT INTO receipts (turn_id, body) SELECT id, {body} {of_turns}"), own)


def _parts(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + ROWS_AT_ONCE, count)) for start in range(0, count, ROWS_AT_ONCE))


@cache
def _text(number: int) -> str:
    return text_of(WORDS_OF_A_MESSAGE, number)


@cache
def _words(text: str) -> str:
    return " ".join(search_words(text))


def _add_conversations(connection: Connection) -> None:
    """Add conversations of one turn, the newest with the highest id; every thousandth is in the trash."""
    began, chance = now() - timedelta(seconds=CONVERSATIONS), random.Random(1)
    counted = {"turns": 1, "visible_turns": 1, "visible_messages": 2}
    for start, end in _parts(CONVERSATIONS):
        texts = [[_text(chance.randrange(DIFFERENT_TEXTS)) for _ in range(2)] for _ in range(start, end)]
        listed, asked, said, words = [], [], [], []
        for n, (question, answer) in enumerate(texts, start + 1):
            moment = began + timedelta(seconds=n)
            title = " ".join(question.split()[:WORDS_OF_A_TITLE])
            listed.append(
                {"id": n, "title": title, "created_at": moment, "updated_at": moment, "overrides": {}}
                | {"deleted_at": moment if n % 1_000 == 0 else None} | counted
            )  # fmt: skip
            asked.append(
                {"id": n, "conversation_id": n, "number": 1, "status": "completed", "visible": True, "owner": "bench"}
                | {"request": {}, "message_count": 2, "created_at": moment, "finished_at": moment}
            )
            said += [
                {"turn_id": n, "position": 0, "role": "user", "content": question},
                {"turn_id": n, "position": 1, "role": "assistant", "content": answer},
            ]
            words.append((n, f"{_words(question)} {_words(answer)}"))
        for table, rows in ((conversations, listed), (turns, asked), (messages, said)):
            connection.execute(insert(table), rows)
        TURN_WORDS.insert(connection, words)


def _add_documents(connection: Connection) -> None:
    """Add documents of one chunk with a random vector."""
    vectors = np.random.default_rng(1).standard_normal((DOCUMENTS, WordHashEmbedder.dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: dict[Any, list[dict[str, Any]]] = {documents: [], document_texts: [], chunks: [], embeddings: []}
    for n, vector in enumerate(vectors, 1):
        text = _text(n % DIFFERENT_TEXTS)
        name = f"{' '.join(text.split()[:2])} {n}.txt"
        rows[documents].append(
            {"id": n, "name": name, "name_key": name_key(name), "media_type": "text/plain", "size_bytes": len(text)}
            | {"content_key": f"None {n}", "sha256": f"{n}", "owner": "bench", "file": f"{n}", "state": "ready"}
            | {"chunks": 1, "embedded": 1, "created_at": now()}
        )
        rows[document_texts].append({"document_id": n, "text": text})
        rows[chunks].append({"id": n, "document_id": n, "position": 0, "start": 0, "end": len(text), "text": text})
        rows[embeddings].append({"chunk_id": n, "embedder": KEY, "vector": vector.tobytes()})
    for table, some in rows.items():
        connection.execute(insert(table), some)
    CHUNK_WORDS.insert(connection, [(row["id"], _words(row["text"])) for row in rows[chunks]])
