"""What an answer and a page may cost at most, in figures that do not depend on the machine."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from jinja2 import Template
from sqlalchemy import Connection, Engine

from rag_assistant.services import Services
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.statements import listening
from tests.web.conftest import ask, upload

# Text that streams takes one for each commit, and how many commits there are depends on the machine.
MAX_STATEMENTS, MAX_TRANSACTIONS = 20, 8
QUESTION = "How many geese does the keeper of the lighthouse feed?"
# What begins a transaction, and whether there are accounts, which is asked once a second.
NOT_ASKED = ("BEGIN", "SELECT people.id")
ALONE = "Which keeper of a lighthouse feeds seventeen geese at nine while the lamp burns oil?"
FOLLOW_UP = "And at what time does the keeper do it?"


@pytest.fixture
def spent(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count statements, transactions, commits that wait for the disk, embedded texts, and templates that are set up."""
    counted: Counter[str] = Counter()

    def executed(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        # Others look meanwhile for answers that are to be stopped, and an answer of the test before may just end.
        thread = threading.current_thread()
        if connection.engine.url == services.database.url and not statement.startswith(NOT_ASKED):
            counted["statements"] += thread.name.startswith("turn")
            counted["statements of a page"] += thread is threading.main_thread()
        if connection.engine.url == services.database.url and statement.startswith("BEGIN"):
            counted["transactions"] += threading.current_thread().name.startswith("turn")

    def committed(connection: Connection) -> None:
        counted["forced commits"] += connection.engine is services.database.engine

    embed = WordHashEmbedder.embed

    def counting(self: WordHashEmbedder, texts: list[str]) -> Any:
        counted["embedded"] += len(texts)
        return embed(self, texts)

    monkeypatch.setattr(WordHashEmbedder, "embed", counting)

    def set_up(self: Template, *arguments: Any, **more: Any) -> Any:
        counted["templates"] += 1
        return new_context(self, *arguments, **more)

    new_context = Template.new_context
    monkeypatch.setattr(Template, "new_context", set_up)
    with listening(Engine, "before_cursor_execute", executed), listening(Engine, "commit", committed):
        yield counted


@pytest.mark.long
def test_no_document_is_read_whole_for_a_passage_without_rows(client: FlaskClient) -> None:
    upload(client, f"The keeper feeds seventeen geese at nine.\n\n{'The lamp burns oil. ' * 200}")
    read: list[str] = []
    with listening(Engine, "before_cursor_execute", lambda *event: read.append(event[2])):
        asked = ask(client, "What is the telephone number of the keeper who feeds geese?")
        assert asked["search"]["support"] == "near"
        assert not [one for one in read if "substr(document_texts" in one]
        upload(client, "| bird | number |\n|---|---|\n| swan | 17 |", "birds.md")
        ask(client, "What is the telephone number of the swan?")
    assert [one for one in read if "substr(document_texts" in one]


def test_an_answer_costs_no_more_however_long_the_conversation(client: FlaskClient, spent: Counter[str]) -> None:
    upload(client, f"The keeper of the lighthouse feeds seventeen geese at nine. {'The lamp burns oil. ' * 20}")
    spent.clear()
    first = ask(client, QUESTION)
    assert spent["statements"] <= 17  # Two read the vectors, where nobody else was faster.
    assert spent["transactions"] <= 9
    assert (spent["forced commits"], spent["embedded"]) == (2, 1)
    for n in range(12):
        spent.clear()
        ask(client, f"{FOLLOW_UP} {n}", conversation_id=first["conversation_id"])
        if n >= 6:  # The window is full.
            assert spent["statements"] <= MAX_STATEMENTS
            assert spent["transactions"] <= MAX_TRANSACTIONS
            assert spent["forced commits"] == 2
            assert spent["embedded"] <= 4
    spent.clear()
    ask(client, ALONE, conversation_id=first["conversation_id"])
    assert spent["statements"] <= MAX_STATEMENTS
    assert (spent["forced commits"], spent["embedded"]) == (2, 1)  # Nothing of what was said before is embedded.


@pytest.mark.long
def test_an_answer_from_some_documents_takes_two_more_statements_than_one_from_all(
    client: FlaskClient, spent: Counter[str]
) -> None:
    for n in range(3):
        upload(client, f"The keeper of lighthouse {n} feeds seventeen geese at nine.", tags="geese")
    ask(client, QUESTION)  # Reads the vectors.
    spent.clear()
    assert ask(client, QUESTION)["sources"]
    whole = spent["statements"]
    for some in ({"tags": ["geese"]}, {"document_ids": [1, 2, 3]}):
        spent.clear()
        assert ask(client, QUESTION, **some)["sources"]
        assert spent["statements"] <= whole + 2  # Which chunks these have is read for the words and for the vectors.


@pytest.mark.long
def test_a_page_asks_and_sets_up_no_more_however_many_turns_it_shows(client: FlaskClient, spent: Counter[str]) -> None:
    upload(client, "The keeper of the lighthouse feeds seventeen geese at nine.")
    conversation_id = ask(client, QUESTION)["conversation_id"]
    found = set()
    for turns in (7, 13):  # Both have turns that the model does not see any more.
        for n in range(6):
            ask(client, f"{FOLLOW_UP} {n}", conversation_id=conversation_id)
        spent.clear()
        page = client.get(f"/conversations/{conversation_id}").text
        assert page.count('<article class="turn completed') == turns
        found.add((spent["statements of a page"], spent["templates"]))
    assert len(found) == 1, found
    ((statements, templates),) = found
    assert statements <= 16
    assert templates <= 27


@pytest.mark.long
def test_an_erasure_asks_little(client: FlaskClient, spent: Counter[str]) -> None:
    upload(client, "The keeper of the lighthouse feeds seventeen geese at nine.")
    first = ask(client, QUESTION)
    erased = [ask(client, f"{FOLLOW_UP} {n}", conversation_id=first["conversation_id"])["turn_id"] for n in range(12)]
    client.delete(f"/api/turns/{erased[0]}?permanently=1")
    spent.clear()
    client.delete(f"/api/turns/{erased[2]}?permanently=1")
    assert spent["statements of a page"] <= 60


@pytest.mark.long
def test_projects_and_notes_cost_nothing_for_a_question_without_any(client: FlaskClient, spent: Counter[str]) -> None:
    upload(client, "The keeper of the lighthouse feeds seventeen geese at nine.")

    def cost(**fields: Any) -> tuple[int, int]:
        costs = []
        for _ in range(3):  # Of the first ones, some read the vectors.
            spent.clear()
            assert ask(client, QUESTION, **fields)["sources"]
            costs.append((spent["statements"], spent["embedded"]))
        return min(costs)

    alone, forced = cost(), spent["forced commits"]
    rules = {"name": "Geese", "instructions": "Be brief.", "retention_days": 9, "search_conversations": "mine"}
    project = client.post("/api/projects", json=rules).json["project_id"]
    in_one = cost(project_id=project)
    assert alone[0] < in_one[0] <= alone[0] + 13, "the project is read, and other conversations are searched"
    assert (cost(), spent["forced commits"]) == (alone, forced)
    client.post("/api/notes", json={"text": "The keeper feeds the geese at nine."})
    assert alone[0] < cost()[0] <= alone[0] + 5, "the notes are read and compared"
    assert cost(notes=False) == alone
