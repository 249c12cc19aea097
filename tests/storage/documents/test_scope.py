"""The chunks of a scope are those that SQL names, and cost a statement and a row for each document."""

from collections.abc import Iterable

import pytest
from sqlalchemy import select, update

from rag_assistant.records import EVERYTHING, Person, Scope
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import NOWHERE
from rag_assistant.storage.documents.scope import ChunksInScope, in_scope
from rag_assistant.storage.tables import chunks, documents, libraries
from tests.conftest import both_engines
from tests.testkit.shelf import Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    shelf = Shelf(database)
    shelf.embedders.configured()
    return shelf


def texts(name: str, count: int) -> Iterable[str]:
    return (f"{name} {n}." for n in range(count))


def held(database: Database, scope: Scope) -> list[int]:
    """Return the ids of the chunks of a scope as SQL names them, once it is certain that they are held so."""
    with database.read() as connection:
        named = select(chunks.c.id).where(in_scope(connection, chunks.c.document_id, scope)).order_by(chunks.c.id)
        ids = list(connection.execute(named).scalars())
    assert ChunksInScope(database, scope).ids.all().tolist() == ids
    return ids


def test_they_are_those_that_sql_names_after_documents_came_changed_and_went(shelf: Shelf, database: Database) -> None:
    first = shelf.shelve(*texts("geese", 3), tags=("birds",))
    second = shelf.shelve(*texts("boats", 2), tags=("ships", "port"))
    third = shelf.shelve(*texts("swans", 4), tags=("birds", "port"))
    nothing = shelf.add("not read yet", tags=("birds",))
    scopes = [
        EVERYTHING,
        Scope((first.id, third.id)),
        Scope(tags=("birds",)),
        Scope(tags=("birds", "port")),
        Scope((second.id, third.id, nothing.id, 99), ("birds", "unknown")),
        Scope((nothing.id,)),
        Scope(tags=("unknown",)),
    ]
    assert [len(held(database, scope)) for scope in scopes] == [9, 7, 7, 9, 4, 0, 0]
    newer = shelf.add("newer geese", replaces=first.id)
    shelf.read(newer, *texts("ducks", 5))
    shelf.embed(newer)
    assert [len(held(database, scope)) for scope in scopes] == [14, 7, 7, 9, 4, 0, 0]
    shelf.documents.finish(newer.id, shelf.embedders.configured().key)
    assert [len(held(database, scope)) for scope in scopes] == [11, 9, 9, 11, 4, 0, 0]
    shelf.documents.delete(third.id)
    shelf.read(nothing, "read after all")
    assert [len(held(database, scope)) for scope in scopes] == [8, 5, 6, 8, 1, 1, 0]


def test_they_are_found_where_others_came_between_as_they_were_kept(shelf: Shelf, database: Database) -> None:
    first, second = shelf.shelve(*texts("geese", 6)), shelf.shelve(*texts("boats", 4))
    with database.write() as connection:
        own = list(connection.execute(select(chunks.c.id).where(chunks.c.document_id == first.id)).scalars())
        moved = chunks.c.id.in_(own[1:4:2])
        connection.execute(update(chunks).where(moved).values(document_id=second.id, position=9))
        connection.execute(update(documents).values(chunks=documents.c.chunks - 2).where(documents.c.id == first.id))
        connection.execute(update(documents).values(chunks=documents.c.chunks + 2).where(documents.c.id == second.id))
    assert held(database, Scope((first.id,))) == [own[0], own[2], own[4], own[5]]
    assert len(held(database, Scope((second.id,)))) == 6
    assert len(held(database, EVERYTHING)) == 10


def test_a_document_that_is_not_trusted_and_one_that_is_counted_wrongly_are_searched(
    shelf: Shelf, database: Database
) -> None:
    first, second = shelf.shelve(*texts("geese", 5)), shelf.shelve(*texts("boats", 4))
    shelf.chunks.distrust(first.id)
    with database.write() as connection:
        assert set(connection.execute(select(chunks.c.position).where(chunks.c.document_id == first.id)).scalars()) == {
            NOWHERE
        }
        connection.execute(update(documents).where(documents.c.id == second.id).values(chunks=2))
    assert (len(held(database, Scope((first.id,)))), len(held(database, Scope((second.id,))))) == (5, 4)


def test_of_the_chunks_of_a_document_a_later_one_has_a_larger_id(shelf: Shelf, database: Database) -> None:
    document = shelf.shelve(*texts("geese", 2500))
    with database.read() as connection:
        in_order = select(chunks.c.id).where(chunks.c.document_id == document.id).order_by(chunks.c.position)
        ids = list(connection.execute(in_order).scalars())
    assert len(ids) == 2500
    assert ids == sorted(ids)


@both_engines
def test_they_are_none_of_a_library_that_is_not_theirs(shelf: Shelf, database: Database) -> None:
    people = PeopleStore(database)
    ann, ben = (people.add(name, "member", None) for name in ("ann", "ben"))
    mine, theirs = (library_of(database, person) for person in (ann, ben))
    foxes = shelf.shelve(*texts("foxes", 3), library_id=mine, tags=("x",))
    geese = shelf.shelve(*texts("geese", 2), library_id=theirs, tags=("x",))
    for scope in (EVERYTHING, Scope(tags=("x",)), Scope((foxes.id, geese.id)), Scope((foxes.id, geese.id), ("x",))):
        assert len(held(database.for_person(ann.id), scope)) == 3
        assert len(held(database.for_person(ben.id), scope)) == 2
    assert held(database.for_person(ann.id), Scope((geese.id,))) == []


def library_of(database: Database, person: Person) -> int:
    with database.read() as connection:
        own = select(libraries.c.id).where(libraries.c.person_id == person.id)
        return int(connection.execute(own).scalar_one())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_they_cost_as_many_steps_however_many_they_are(shelf: Shelf, database: Database) -> None:
    short, long = shelf.shelve(*texts("geese", 5), tags=("x",)), shelf.shelve(*texts("boats", 500), tags=("y",))
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    with database.read() as connection:  # The next to read gets the same.
        connection.connection.driver_connection.set_progress_handler(step, 1)  # type: ignore[union-attr]
    spent = []
    for scope in (Scope((short.id,)), Scope((long.id,)), Scope(tags=("x",)), Scope(tags=("y",))):
        ChunksInScope(database, scope).ids.all()  # Built and prepared.
        before = steps
        assert len(ChunksInScope(database, scope).ids) in (5, 500)
        spent.append(steps - before)
    assert max(spent) <= 100
