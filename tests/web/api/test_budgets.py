"""What an answer and a page may cost at most, in figures that do not depend on the machine."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from flask.testing import FlaskClient
from jinja2 import Template
from sqlalchemy import Engine, event

from rag_assistant.storage import database
from rag_assistant.storage.prepared import Prepared
from rag_assistant.web.services import Services
from testkit.embedders import WordHashEmbedder
from tests.web.conftest import ask, upload

QUESTION = "How many geese does the keeper of the lighthouse feed?"
FULL = 2
ALONE = "Which keeper of a lighthouse feeds seventeen geese at nine while the lamp burns oil?"
FOLLOW_UP = "And at what time does the keeper do it?"


@pytest.fixture
def spent(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count statements, commits that wait for the disk, texts that are embedded, and templates that are set up."""
    counted: Counter[str] = Counter()

    def is_ours(connection: Any) -> bool:  # An answer of the test before may just end.
        return bool(connection.engine.url.database == services.database.url.database)

    def statement(connection: Any, _cursor: Any = None, text: str = "", *_: Any) -> None:
        # Others look meanwhile for answers that are to be stopped; and who follows may come when all is over.
        thread = threading.current_thread()
        counts = is_ours(connection) and not text.startswith("PRAGMA")
        counted["statements"] += counts and thread.name.startswith("turn")
        counted["statements of a page"] += counts and thread is threading.main_thread()

    def prepared(run: Callable[..., Any]) -> Callable[..., Any]:
        def counted_run(self: Prepared, connection: Any, *values: Any) -> Any:
            statement(connection)
            return run(self, connection, *values)

        return counted_run

    monkeypatch.setattr(Prepared, "rows", prepared(Prepared.rows))
    monkeypatch.setattr(Prepared, "run", prepared(Prepared.run))

    transaction = database._transaction

    @contextmanager
    def committed(connection: Any, begin: str) -> Iterator[None]:
        with transaction(connection, begin):
            yield
        synchronous = connection.connection.driver_connection.execute("PRAGMA synchronous").fetchone()
        writes = is_ours(connection) and begin == database.BEGIN_IMMEDIATE
        counted["forced commits"] += writes and synchronous == (FULL,)

    monkeypatch.setattr(database, "_transaction", committed)

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
    event.listen(Engine, "before_cursor_execute", statement)
    yield counted
    event.remove(Engine, "before_cursor_execute", statement)


def test_an_answer_costs_no_more_however_long_the_conversation(client: FlaskClient, spent: Counter[str]) -> None:
    upload(client, f"The keeper of the lighthouse feeds seventeen geese at nine. {'The lamp burns oil. ' * 20}")
    spent.clear()
    first = ask(client, QUESTION)
    assert spent["statements"] <= 19  # Two read the vectors, where nobody else was faster.
    assert (spent["forced commits"], spent["embedded"]) == (2, 1)
    for n in range(12):
        spent.clear()
        ask(client, f"{FOLLOW_UP} {n}", conversation_id=first["conversation_id"])
        if n >= 6:  # The window is full.
            assert spent["statements"] <= 32
            assert spent["forced commits"] == 2
            assert spent["embedded"] <= 4
    spent.clear()
    ask(client, ALONE, conversation_id=first["conversation_id"])
    assert spent["statements"] <= 32
    assert (spent["forced commits"], spent["embedded"]) == (2, 1)  # Nothing of what was said before is embedded.


def test_an_answer_from_some_documents_takes_no_more_statements_than_one_from_all(
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
        assert spent["statements"] <= whole


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
    ((statements, templates),) = found
    assert statements <= 15
    assert templates <= 22
