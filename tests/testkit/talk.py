"""A long conversation about a book whose chapters have their own words, and its size in the database."""

import random
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import Connection, LargeBinary, cast, func, select

from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import metadata
from tests.testkit.stub_model import Reply, StubModel

SYLLABLES = [first + vowel + last for first in "bdfgklmnprst" for vowel in "aeiou" for last in ("nd", "rt", "lk")]
CHAPTERS = 150
OF_CONVERSATIONS = {
    *("conversations", "turns", "messages", "answer_parts", "answer_versions", "receipts", "pictures"),
    *("summaries", "history_changes", "ratings"),
}


def sentence(chance: random.Random) -> str:
    """Return twelve invented words."""
    words = ("".join(chance.choices(SYLLABLES, k=2)) for _ in range(12))
    return " ".join(words).capitalize() + "."


def stored_bytes(connection: Connection) -> int:
    """Return the bytes of all values in the tables of conversations."""
    total = 0
    for table in metadata.sorted_tables:
        if table.name in OF_CONVERSATIONS:
            sizes = [func.coalesce(func.sum(func.length(cast(column, LargeBinary))), 0) for column in table.columns]
            total += sum(connection.execute(select(*sizes)).one())
    return total


class Talk:
    """One conversation about a book, which must be in the library; each answer cites what it found."""

    def __init__(self, client: FlaskClient, stub: StubModel, database: Database, window: int | None) -> None:
        self._client, self._stub, self._database = client, stub, database
        self._chance = random.Random(7)
        self._chapters = [[sentence(self._chance) for _ in range(10)] for _ in range(CHAPTERS)]
        self._fields: dict[str, Any] = {"max_history_turns": window}
        self._text_bytes = 0

    @property
    def book(self) -> str:
        """The whole text."""
        return "\n\n".join(f"# Chapter {n}\n\n" + " ".join(told) for n, told in enumerate(self._chapters, 1))

    def go_on(self, turns: int) -> float:
        """Ask that many more questions, and return how much is stored for each besides the messages."""
        before = self._stored() - self._text_bytes
        for _ in range(turns):
            chapter, *others = self._chance.sample(self._chapters, 6)
            asked = " ".join(chapter[0].split()[2:10]), *(other[0].split()[2] for other in others)
            question = f"What of {', '.join(asked)}?"
            text = " ".join(f"{told[:-1]} [1]." for told in chapter[:4])
            self._stub.replies.append(Reply(pieces=[text]))
            response = self._client.post("/api/query", json={"question": question} | self._fields)
            answer: dict[str, Any] = response.get_json()
            self._fields["conversation_id"] = answer["conversation_id"]
            assert len(answer["sources"]) >= 5
            self._text_bytes += len(question) + len(text)
        return (self._stored() - self._text_bytes - before) / turns

    def _stored(self) -> int:
        with self._database.read() as connection:
            return stored_bytes(connection)
