"""What a page costs does not grow with what is stored: SQLite's steps are counted, so that no busy machine matters."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Connection, Engine, func, insert, select, update

from rag_assistant.services import Services
from rag_assistant.storage import full_text
from rag_assistant.storage.conversations import finding
from rag_assistant.storage.full_text import TURN_WORDS
from rag_assistant.storage.tables import conversations, documents, messages, now, people, receipts, turns
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.statements import listening
from tests.web.conftest import ask

STEPS_AT_ONCE = 50
STEPS_TO_COUNT_ONE = 20
# Each list is full before it grows.
FEW, MANY = 110, 1_500
ONE = "/api/conversations/1"
PATHS = (
    "/",
    "/conversations",
    "/conversations?part=1",
    "/conversations?part=1&q=geese",
    "/conversations/1",
    "/conversations/1?before=100",
    "/settings",
    "/deleted",
    "/ratings",
    "/api/ratings",
    "/turns/1",
    "/api/conversations",
    "/api/conversations?pinned=1",
    "/api/documents",
    ONE,
    f"{ONE}/turns",
    f"{ONE}/preview",
    f"{ONE}/preview?strategy=smart",
)
OF_ACCOUNT = ("/account", "/api/account")


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Give a list to which each block of steps that SQLite's machine takes adds one."""
    steps: list[int] = []
    here = threading.current_thread()  # The queues of the library have threads of their own.

    def count() -> None:
        if threading.current_thread() is here:
            steps.append(STEPS_AT_ONCE)

    def begun(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(count, STEPS_AT_ONCE)

    with listening(Engine, "begin", begun):
        yield steps


def grow(services: Services, rows: int) -> None:
    """Add so many turns to the first conversation, so many other conversations and so many documents."""
    moment = {"created_at": now(), "finished_at": now()}
    with services.database.write() as connection:
        first = connection.execute(select(func.coalesce(func.max(turns.c.number), 0))).scalar_one() + 1
        kept = {"title": "Geese", "created_at": now(), "updated_at": now(), "overrides": {}}
        kept |= {"turns": first + rows - 1, "visible_turns": first + rows - 1, "visible_messages": 0}
        ids = connection.execute(insert(conversations).returning(conversations.c.id), [kept] * rows).scalars().all()
        turn = {"conversation_id": ids[0] if first == 1 else 1, "status": "completed", "visible": True, "owner": ""}
        made = [turn | {"number": first + n, "request": {}, "message_count": 2} | moment for n in range(rows)]
        turn_ids = connection.execute(insert(turns).returning(turns.c.id), made).scalars().all()
        said = (("user", "Why?"), ("assistant", "So."))
        connection.execute(
            insert(messages),
            [
                {"turn_id": number, "position": position, "role": role, "content": content}
                for number in turn_ids
                for position, (role, content) in enumerate(said)
            ],
        )
        TURN_WORDS.insert(connection, [(number, "geese hiss") for number in turn_ids])
        insert_receipts(connection, turn_ids, first)
        all_of_it = {"turns": first + rows - 1, "visible_turns": first + rows - 1}
        connection.execute(update(conversations).where(conversations.c.id == 1).values(all_of_it))
        connection.execute(update(conversations).values(person_id=select(func.min(people.c.id)).scalar_subquery()))
        file = {"name": "a", "media_type": "text/plain", "size_bytes": 1, "owner": "", "file": "", "state": "ready"}
        file |= {"chunks": 0, "embedded": 0, "created_at": now()}
        contents = [{"sha256": f"{first + n}", "content_key": f"1 {first + n}"} for n in range(rows)]
        connection.execute(insert(documents), [file | content for content in contents])


def insert_receipts(connection: Connection, turn_ids: Sequence[int], first: int) -> None:
    """Add a receipt to each of the first conversation's turns from number ``first`` on: it was sent the two before."""
    rows = []
    for number, turn_id in enumerate(turn_ids, first):
        kept = [number - 2, number - 1] if number > 2 else []
        asked, answered = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}
        request = {"model": "m", "messages": [*[asked, answered] * len(kept), asked]}
        body = {"request": request, "kept_turns": kept, "prefix_messages": 2 * len(kept)}
        rows.append({"turn_id": turn_id, "body": body})
    connection.execute(insert(receipts), rows)


def steps_of(client: FlaskClient, paths: Sequence[str]) -> dict[str, int]:
    """Return how many steps each page takes, a pin, and the command that tells what is kept."""
    found = {}
    for path in paths:
        with counted_steps() as steps:
            assert client.get(path, buffered=True).status_code == 200
        found[path] = sum(steps)
    with counted_steps() as steps:
        assert client.post(f"{ONE}/commands", json={"command": "/history"}).status_code == 200
    found["/history"] = sum(steps)
    with counted_steps() as steps:
        assert client.patch(ONE, json={"pinned": True}).status_code == 200
    found["pin"] = sum(steps)
    client.patch(ONE, json={"pinned": False})
    newest = ask(client, conversation_id=1)["turn_id"]
    assert client.put(f"/api/turns/{newest}/rating", json={"rating": "up"}).status_code == 200
    for name, path in {"the newest turn": f"/turns/{newest}", "rated answers": "/ratings"}.items():
        with counted_steps() as steps:
            assert client.get(path, buffered=True).status_code == 200
        found[name] = sum(steps)
    with counted_steps() as steps:
        assert client.head(ONE).status_code == 200
    return found | {"HEAD": sum(steps)}


@pytest.mark.long
@pytest.mark.parametrize("signed_in", [False, True])
def test_a_page_takes_no_more_steps_when_much_more_is_stored(
    app: Flask, client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch, signed_in: bool
) -> None:
    monkeypatch.setattr(full_text, "MAX_RANKED_WHILE_TYPING", FEW // 2)
    monkeypatch.setattr(finding, "MAX_HITS", FEW // 2)
    monkeypatch.setattr(finding, "MAX_LISTED", FEW // 2)
    if signed_in:
        with quick_passwords():
            add_person(services, "Ann", "admin")
            client = client_of(app, "Ann")
    paths = (*PATHS, *OF_ACCOUNT) if signed_in else PATHS
    grow(services, FEW)
    before = steps_of(client, paths)
    assert before["/conversations"], "steps are counted"
    grow(services, MANY)
    more = {path: steps - before[path] for path, steps in steps_of(client, paths).items()}
    assert {path: steps for path, steps in more.items() if steps > MANY / 2} == {}


def steps_of_changes(client: FlaskClient, turn_id: int, erased_id: int) -> dict[str, int]:
    """Return how many steps each change to the first conversation takes, and to one of its turns; one is erased."""
    of_turn = f"/api/turns/{turn_id}"
    found = {}
    for name, method, path, body in (
        ("pin", "PATCH", of_turn, {"pinned": True}),
        ("exclude", "PATCH", of_turn, {"excluded": True}),
        ("take a mark back", "POST", f"{ONE}/undo", {}),
        ("clear", "POST", f"{ONE}/clear", {}),
        ("take a clear back", "POST", f"{ONE}/undo", {}),
        ("erase", "DELETE", f"/api/turns/{erased_id}?permanently=1", {}),
    ):
        with counted_steps() as steps:
            response = client.open(path, method=method, json=body)
            assert response.status_code == 200, (name, response.text)
        found[name] = sum(steps)
    return found


def test_a_change_reads_only_the_turns_that_it_is_about(client: FlaskClient, services: Services) -> None:
    grow(services, FEW)
    ids = [turn.id for turn in services.turns.every(1)]
    before = steps_of_changes(client, ids[20], ids[-2])
    grow(services, MANY)
    newest = services.turns.page(1, 2)
    after = steps_of_changes(client, ids[FEW // 2], newest[0].id)
    receipt = services.turns.receipt(newest[1].id)
    assert receipt is not None
    assert receipt["erased_turns"] == [newest[0].number]
    # The others are counted in an index, and none of their rows is read; an erased turn is looked for in later ones.
    assert {name: steps for name, steps in after.items() if steps - before[name] > STEPS_TO_COUNT_ONE * MANY} == {}
