"""Whose is what: a store of one person has what is theirs or shared with them, and the rest is not there.

That each route answers so for each id is shown in tests/web/test_matrix.py.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import insert, update

from rag_assistant.records import EVERYTHING, Document, NewDocument, Person, Question, Scope, Turn
from rag_assistant.records.errors import (
    ConversationNotFound,
    DocumentNotFound,
    GridNotFound,
    LibraryNotFound,
    LibraryReadOnly,
)
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.terms import query_terms
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.conversations.versions import RatingStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore, KeywordIndex
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.grids import GridStore
from rag_assistant.storage.tables import libraries, library_shares
from tests.conftest import both_engines
from tests.testkit.shelf import Shelf


@dataclass
class Desk:
    """The stores of one person."""

    person: Person
    database: Database

    def __post_init__(self) -> None:
        own = self.database.for_person(self.person.id)
        self.conversations = ConversationManager(own)
        self.turns = TurnStore(own, "here", str.lower)
        self.ratings = RatingStore(own)
        self.documents = DocumentStore(own, "here")
        self.chunks = ChunkStore(own)
        self.keywords = KeywordSearch(KeywordIndex(own))

    def ask(self, text: str, **more: Any) -> Turn:
        turn, _ = self.turns.accept(Question(text, **more), text)
        return self.turns.finish(turn, "completed", f"answer to {text}")


@pytest.fixture
def people(database: Database) -> PeopleStore:
    return PeopleStore(database)


@pytest.fixture
def ann(people: PeopleStore, database: Database) -> Desk:
    return Desk(people.add("Ann", "member", None), database)


@pytest.fixture
def ben(ann: Desk, people: PeopleStore, database: Database) -> Desk:
    return Desk(people.add("Ben", "member", None), database)


def new(content: str, **more: Any) -> NewDocument:
    return NewDocument(f"{content}.txt", "text/plain", 3, content, f"file of {content}", **more)


def test_the_first_account_is_an_administrator_and_gets_all_that_was_there(database: Database) -> None:
    turn, _ = TurnStore(database, "here", str.lower).accept(Question("Before?"), "Before?")
    Shelf(database).add("before")
    ann = Desk(PeopleStore(database).add("Ann", "member", None), database)
    assert ann.person.role == "admin"
    assert ann.turns.get(turn.id).question == "Before?"
    assert [document.name for document in ann.documents.page(9)] == ["before.txt"]


def test_what_a_command_makes_later_is_the_first_administrators(ann: Desk, ben: Desk, database: Database) -> None:
    made = ConversationManager(database).create("By a command")
    document, _ = DocumentStore(database, "here").add(new("by a command"))
    grids = GridStore(database)
    made_grid = grids.add(
        {"name": "By a command", "columns": [{"id": None, "name": "", "question": "Why?", "type": "text"}]}
    )
    assert GridStore(database.for_person(ann.person.id)).get(made_grid.id).mine
    assert grids.change(made_grid.id, {"name": "And changed by it"}).mine
    with pytest.raises(GridNotFound):
        GridStore(database.for_person(ben.person.id)).get(made_grid.id)
    assert ann.conversations.get(made.id).title == "By a command"
    assert ann.documents.get(document.id) == document
    with pytest.raises(ConversationNotFound):
        ben.conversations.get(made.id)
    assert ben.documents.page(9) == []


@both_engines
def test_lists_searches_and_ratings_hold_ones_own(ann: Desk, ben: Desk) -> None:
    theirs, mine = ann.ask("zebra stripes"), ben.ask("zebra hooves")
    ann.ratings.rate(theirs.id, "up", None)
    ann.conversations.change(theirs.conversation_id, pinned=True)
    gone = ann.ask("zebra trash").conversation_id
    ann.conversations.delete(gone)
    assert [one.title for one in ben.conversations.page(9)] == ["zebra hooves"]
    assert ben.conversations.page(9, pinned=True) == []
    assert ben.conversations.page(9, deleted=True) == []
    for words in (["zebra"], ["stripes"], ["answer"], ["str"]):
        found = ben.conversations.find(words, 9, typing=True)
        assert {hit.conversation.id for hit in found} <= {mine.conversation_id}
    assert len(ben.conversations.find(["zebra"], 9)) == 1
    assert ben.ratings.page(9) == []
    assert len(ann.ratings.page(9)) == 1


def test_the_same_idempotency_key_of_two_people_is_two_keys(ann: Desk, ben: Desk) -> None:
    first, _ = ann.turns.accept(Question("Mine?", idempotency_key="k"), "t")
    second, is_new = ben.turns.accept(Question("Yours?", idempotency_key="k"), "t")
    assert is_new
    assert second.id != first.id
    assert ann.turns.by_idempotency_key(Question("Mine?", idempotency_key="k")) == first


def test_the_same_content_is_a_document_in_each_library(ann: Desk, ben: Desk) -> None:
    theirs, _ = ann.documents.add(new("same"))
    mine, is_new = ben.documents.add(new("same"))
    assert is_new
    assert mine.id != theirs.id
    assert ben.documents.add(new("same")) == (mine, False)


@pytest.fixture
def shared(ann: Desk, ben: Desk, database: Database) -> tuple[Document, Document, Shelf]:
    """Ann's document about foxes, and Ben's about geese, both of them read."""
    shelf = Shelf(database)
    shelf.embedders.configured()
    documents = []
    for desk, text in ((ann, "foxes hunt"), (ben, "geese swim")):
        document, _ = desk.documents.add(new(text))
        shelf.documents.take(document.id)
        shelf.read(document, text)
        documents.append(document)
    return documents[0], documents[1], shelf


def share(database: Database, library: int, person: Person, access: str) -> None:
    with database.write() as connection:
        connection.execute(insert(library_shares).values(library_id=library, person_id=person.id, access=access))


def test_no_chunk_of_another_persons_document_is_found(
    ann: Desk, ben: Desk, shared: tuple[Document, Document, Shelf]
) -> None:
    foxes, geese, _ = shared
    anns, bens = ann.chunks.within(EVERYTHING), ben.chunks.within(EVERYTHING)
    assert anns is not None
    assert bens is not None
    assert ann.keywords.search(query_terms("foxes geese", []), 9, anns) != []
    assert ben.keywords.search(query_terms("foxes", []), 9, bens) == []
    assert ben.keywords.search(query_terms("foxes", []), 9, ben.chunks.within(Scope((foxes.id,)))) == []
    assert ben.keywords.unknown(query_terms("foxes geese", []), bens) == set(query_terms("foxes", []))
    theirs, mine = set(anns.ids.all().tolist()), set(bens.ids.all().tolist())
    assert theirs
    assert mine
    assert not theirs & mine
    assert {one.chunk_id for one in ben.chunks.passages(dict.fromkeys(theirs | mine, 0.0))} == mine
    assert ben.chunks.texts_at({(foxes.id, 0), (geese.id, 0)}, EVERYTHING).keys() == {(geese.id, 0)}
    assert ben.chunks.beginnings([foxes.id, geese.id], 9).keys() == {geese.id}


@pytest.mark.parametrize("way", ["everyone", "one person"])
def test_a_shared_library_is_read_and_only_changed_where_that_was_said(
    ann: Desk, ben: Desk, database: Database, shared: tuple[Document, Document, Shelf], way: str
) -> None:
    foxes, _, _ = shared
    with database.read() as connection:
        library = connection.execute(libraries.select().where(libraries.c.person_id == ann.person.id)).mappings().one()

    def let(access: str | None) -> None:
        with database.write() as connection:
            if way == "everyone":
                connection.execute(update(libraries).where(libraries.c.id == library["id"]).values(everyone=access))
            else:
                connection.execute(library_shares.delete())
        if way != "everyone" and access is not None:
            share(database, library["id"], ben.person, access)

    let("read")
    assert ben.documents.get(foxes.id).name == foxes.name
    assert ben.keywords.search(query_terms("foxes", []), 9, ben.chunks.within(EVERYTHING)) != []
    assert ben.chunks.within(EVERYTHING) is None
    for change in (
        lambda: ben.documents.delete(foxes.id),
        lambda: ben.documents.change(foxes.id, tags=["x"]),
        lambda: ben.documents.add(new("newer", replaces=foxes.id)),
    ):
        with pytest.raises(LibraryReadOnly):
            change()
    with pytest.raises(LibraryNotFound):
        ben.documents.add(new("into theirs", library_id=library["id"]))
    let("write")
    assert ben.documents.change(foxes.id, tags=["x"]).tags == ("x",)
    into, _ = ben.documents.add(new("into theirs", library_id=library["id"]))
    assert ann.documents.get(into.id) == into
    let(None)
    with pytest.raises(DocumentNotFound):
        ben.documents.get(foxes.id)


def test_a_connection_works_for_nobody_else_afterwards(ann: Desk, database: Database) -> None:
    ann.ask("Secret?")
    ConversationManager(database).create("Anybody's")
    assert len(ann.conversations.page(9)) == len(ConversationManager(database).page(9)) == 2
    assert ConversationManager(database.for_person(999)).page(9) == []
    assert len(ConversationManager(database).page(9)) == 2
