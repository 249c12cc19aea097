"""What a turn costs in the database beside its text: little, the same for every window, however long it goes on."""

import random
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Connection, LargeBinary, cast, func, select

from rag_assistant.storage.tables import metadata
from rag_assistant.web.services import Services
from testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload

MAX_BYTES = 3000
SYLLABLES = [first + vowel + last for first in "bdfgklmnprst" for vowel in "aeiou" for last in ("nd", "rt", "lk")]
CHAPTERS = 150
OF_CONVERSATIONS = {
    *("conversations", "turns", "messages", "answer_parts", "answer_versions", "receipts", "sent_texts"),
    *("summaries", "history_changes", "ratings"),
}


def sentence(chance: random.Random) -> str:
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


@pytest.fixture
def environment(environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
    return environment | getattr(request, "param", {})


class Talk:
    """One conversation about a book in which each chapter has words of its own; each answer cites what it found."""

    def __init__(self, client: FlaskClient, stub: StubModel, services: Services, window: int | None) -> None:
        self._client, self._stub, self._services = client, stub, services
        self._chance = random.Random(7)
        self._chapters = [[sentence(self._chance) for _ in range(10)] for _ in range(CHAPTERS)]
        self._fields: dict[str, Any] = {"max_history_turns": window}
        self._text_bytes = 0
        text = "\n\n".join(f"# Chapter {n}\n\n" + " ".join(told) for n, told in enumerate(self._chapters, 1))
        upload(client, text, "book.md")

    def go_on(self, turns: int) -> float:
        """Ask so many questions more, and return how much is stored for each beside what was said."""
        before = self._stored() - self._text_bytes
        for _ in range(turns):
            chapter, *others = self._chance.sample(self._chapters, 6)
            asked = " ".join(chapter[0].split()[2:7]), *(other[0].split()[2] for other in others)
            question = f"What of {', '.join(asked)}?"
            text = " ".join(f"{told[:-1]} [1]." for told in chapter[:4])
            self._stub.replies.append(Reply(pieces=[text]))
            answer = ask(self._client, question, **self._fields)
            self._fields["conversation_id"] = answer["conversation_id"]
            assert len(answer["sources"]) >= 5
            self._text_bytes += len(question) + len(text)
        return (self._stored() - self._text_bytes - before) / turns

    def _stored(self) -> int:
        with self._services.database.read() as connection:
            return stored_bytes(connection)


@pytest.mark.parametrize("window", [None, *(pytest.param(turns, marks=pytest.mark.long) for turns in (5, 20))])
def test_a_turn_costs_little_beside_its_text(
    client: FlaskClient, stub: StubModel, services: Services, window: int | None
) -> None:
    talk = Talk(client, stub, services, window)
    talk.go_on(25)
    assert talk.go_on(35) <= MAX_BYTES


# The longer a conversation, the more of the turns that come back are there, up to five.
@pytest.mark.long
@pytest.mark.parametrize("environment", [{"HISTORY_RECALL": "0"}], indirect=True)
@pytest.mark.parametrize("window", [5, 20, None])
def test_the_two_hundredth_turn_costs_what_the_sixtieth_did(
    client: FlaskClient, stub: StubModel, services: Services, window: int | None
) -> None:
    talk = Talk(client, stub, services, window)
    talk.go_on(40)
    early = talk.go_on(20)
    talk.go_on(120)
    assert talk.go_on(20) <= min(MAX_BYTES, 1.05 * early)
