"""Whose is what: a store of one person has what is theirs or shared with them, and the rest is not there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import insert, update

from rag_assistant.records import EVERYTHING, Document, NewDocument, Person, Question, Scope, Turn
from rag_assistant.records.errors import (
    AssistantError,
    ConversationNotFound,
    DocumentNotFound,
    LibraryNotFound,
    LibraryReadOnly,
    TurnNotFound,
)
from rag_assistant.retrieval.indexes.keyword_search import KeywordSearch
from rag_assistant.retrieval.terms import query_terms
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.conversations.branching import BranchStore
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.history import HistoryStore
from rag_assistant.storage.conversations.turns import TurnStore
from rag_assistant.storage.conversations.versions import RatingStore, VersionStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.chunks import ChunkStore, KeywordIndex
from rag_assistant.storage.documents.documents import DocumentStore
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
        self.versions = VersionStore(own, str.lower)
        self.eraser = TurnEraser(own, str)
        self.ratings = RatingStore(own)
        self.branches = BranchStore(own)
        self.history = HistoryStore(own)
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


def same_error(mine: Callable[[], Any], missing: Callable[[], Any], kind: type[AssistantError], mine_id: int) -> None:
    """Check that what is somebody else's is refused as what never was."""
    with pytest.raises(AssistantError) as foreign:
        mine()
    with pytest.raises(AssistantError) as absent:
        missing()
    assert type(foreign.value) is type(absent.value) is kind
    assert str(foreign.value) == str(absent.value).replace("999999", str(mine_id))


def test_the_first_account_is_an_administrator_and_gets_all_that_was_there(database: Database) -> None:
    turn, _ = TurnStore(database, "here", str.lower).accept(Question("Before?"), "Before?")
    Shelf(database).add("before")
    ann = Desk(PeopleStore(database).add("Ann", "member", None), database)
    assert ann.person.role == "admin"
    assert ann.turns.get(turn.id).question == "Before?"
    assert [document.name for document in ann.documents.page(9)] == ["before.txt"]


@both_engines
def test_what_a_command_makes_later_is_the_first_administrators(ann: Desk, ben: Desk, database: Database) -> None:
    made = ConversationManager(database).create("By a command")
    document, _ = DocumentStore(database, "here").add(new("by a command"))
    assert ann.conversations.get(made.id).title == "By a command"
    assert ann.documents.get(document.id) == document
    with pytest.raises(ConversationNotFound):
        ben.conversations.get(made.id)
    assert ben.documents.page(9) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda desk, n: desk.conversations.get(n),
        lambda desk, n: desk.conversations.change(n, title="x"),
        lambda desk, n: desk.conversations.delete(n),
        lambda desk, n: desk.conversations.restore(n),
        lambda desk, n: desk.eraser.erase_conversation(n),
        lambda desk, n: desk.turns.page(n, 9),
        lambda desk, n: list(desk.turns.every(n)),
        lambda desk, n: desk.turns.accept(Question("And?", n), "And?"),
        lambda desk, n: desk.branches.etag(n),
        lambda desk, n: desk.history.undo(n),
        lambda desk, n: desk.history.move_context_start(n, "clear"),
        lambda desk, n: desk.history.edit_summary(n, "x"),
    ],
)
@pytest.mark.parametrize("deleted", [False, True])
def test_another_persons_conversation_does_not_exist(
    ann: Desk, ben: Desk, use: Callable[[Desk, int], Any], deleted: bool
) -> None:
    own = ann.ask("Secret?").conversation_id
    before = ann.turns.page(own, 9)
    if deleted:
        ann.conversations.delete(own)
    same_error(lambda: use(ben, own), lambda: use(ben, 999999), ConversationNotFound, own)
    assert ann.conversations.restore(own).deleted_at is None
    assert ann.turns.page(own, 9) == before


@pytest.mark.parametrize(
    "use",
    [
        lambda desk, n: desk.turns.get(n),
        lambda desk, n: desk.turns.receipt(n),
        lambda desk, n: desk.turns.retry(n),
        lambda desk, n: desk.turns.regenerate(n),
        lambda desk, n: desk.turns.accept(Question("Else?", edits_turn=n), "Else?"),
        lambda desk, n: desk.versions.all(n),
        lambda desk, n: desk.versions.choose(n, 1),
        lambda desk, n: desk.eraser.erase(n),
        lambda desk, n: desk.ratings.rate(n, "up", None),
        lambda desk, n: desk.ratings.remove(n),
        lambda desk, n: desk.history.mark(n, pinned=True),
    ],
)
def test_another_persons_turn_does_not_exist(ann: Desk, ben: Desk, use: Callable[[Desk, int], Any]) -> None:
    turn = ann.ask("Secret?")
    before = ann.turns.get(turn.id)
    same_error(lambda: use(ben, turn.id), lambda: use(ben, 999999), TurnNotFound, turn.id)
    assert ann.turns.get(turn.id) == before


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


@pytest.mark.parametrize(
    "use",
    [
        lambda desk, n: desk.documents.get(n),
        lambda desk, n: desk.documents.text(n),
        lambda desk, n: desk.documents.with_file(n),
        lambda desk, n: desk.documents.change(n, name="x"),
        lambda desk, n: desk.documents.cancel(n),
        lambda desk, n: desk.documents.queue_again(n),
        lambda desk, n: desk.documents.delete(n),
        lambda desk, n: desk.documents.trash(n),
        lambda desk, n: desk.documents.add(new("newer", replaces=n)),
    ],
)
def test_another_persons_document_does_not_exist(ann: Desk, ben: Desk, use: Callable[[Desk, int], Any]) -> None:
    document, _ = ann.documents.add(new("secret", tags=("hidden",)))
    same_error(lambda: use(ben, document.id), lambda: use(ben, 999999), DocumentNotFound, document.id)
    assert ann.documents.get(document.id) == document
    assert ben.documents.missing([document.id]) == [document.id]
    assert ben.documents.names([document.id]) == {}
    assert ben.documents.tags() == {}
    assert ben.documents.totals() == {}
    assert ben.documents.find("", EVERYTHING, 9) == ([], 0)


def test_another_persons_trash_is_empty_and_what_is_in_it_does_not_exist(ann: Desk, ben: Desk) -> None:
    document, _ = ann.documents.add(new("secret"))
    ann.documents.trash(document.id)
    assert ben.documents.trashed(9) == []
    for use in (ben.documents.restore, lambda n: ben.documents.delete(n, in_trash=True)):
        same_error(lambda use=use: use(document.id), lambda use=use: use(999999), DocumentNotFound, document.id)  # type: ignore[misc]
    assert [one.id for one in ann.documents.trashed(9)] == [document.id]


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


@both_engines
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


@both_engines
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
