"""The documents' rows are the queue: of several workers on one PostgreSQL, each document is worked on by one."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, func, insert, select

from rag_assistant.records import Chunk
from rag_assistant.records.documents import ExtractedText
from rag_assistant.retrieval.terms import index_terms
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.database import Database
from rag_assistant.storage.documents.documents import DocumentStore
from rag_assistant.storage.tables import chunks, documents, embeddings, libraries, processes
from tests.testkit.embedders import WordHashEmbedder
from tests.testkit.shelf import KEY, Shelf

WORKERS, DOCUMENTS = 4, 24
DIES_AFTER = 3


class Worker:
    """A process that works on documents: it takes one, reads it, embeds it, and finishes it."""

    def __init__(self, database: Database, shelf: Shelf, number: int) -> None:
        self.name = f"worker {number}"
        self.documents = DocumentStore(database, "here", self.name)
        self.taken: list[int] = []
        self.finished: list[int] = []
        self.dies = number == 0
        self._shelf = shelf

    def work(self, document_ids: list[int]) -> None:
        """Offer itself for all documents, in an order of its own; one worker dies with a document half done."""
        for document_id in random.sample(document_ids, len(document_ids)):
            if self.documents.take(document_id) is None:
                continue
            self.taken.append(document_id)
            text = f"document {document_id}"
            piece = [Chunk(0, 0, len(text), text)]
            self._shelf.chunks.keep_text(document_id, ExtractedText(text, "text/plain"), *index_terms("", piece))
            if self.dies and len(self.taken) == DIES_AFTER:
                return
            self.embed(document_id)

    def embed(self, document_id: int) -> None:
        """Embed a document and finish it, if nobody else does."""
        if not self.documents.take_in(document_id, "embedding"):
            return
        missing = self._shelf.embeddings.without_embedding(document_id, KEY)
        rows = WordHashEmbedder().embed([one.text for one in missing])
        vectors = [(one.chunk_id, row.tobytes()) for one, row in zip(missing, rows, strict=True)]
        assert self._shelf.embeddings.keep_embeddings(document_id, KEY, vectors)
        if self.documents.finish(document_id, KEY) is not None:
            self.finished.append(document_id)


@pytest.mark.long
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_of_four_workers_each_document_is_done_by_one_and_none_is_lost_when_one_dies(database: Database) -> None:
    shelf = Shelf(database)
    shelf.embedders.configured()
    ids = [shelf.add(str(number)).id for number in range(DOCUMENTS)]
    workers = [Worker(database, shelf, number) for number in range(WORKERS)]
    alive = {"installation": "here", "kind": "server", "beats": 0, "settings": {}}
    with database.write() as connection:
        connection.execute(insert(processes), [alive | {"id": worker.name} for worker in workers])
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(lambda worker: worker.work(ids), workers))
    assert sorted(number for worker in workers for number in worker.taken) == ids, "each is taken by one"

    dead, *others = workers
    with database.write() as connection:
        connection.execute(delete(processes).where(processes.c.id == dead.name))

    def take_over(worker: Worker) -> None:
        _, to_embed, _ = worker.documents.take_up_unfinished(of_ours=False)
        for number in to_embed:
            worker.embed(number)

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(take_over, others))
    done = Counter(number for worker in workers for number in worker.finished)
    assert sorted(done) == ids, "none is lost"
    assert set(done.values()) == {1}, "none is doubled"
    with database.read() as connection:
        assert set(connection.execute(select(documents.c.state)).scalars()) == {"ready"}
        assert connection.execute(select(func.count()).select_from(chunks)).scalar() == DOCUMENTS
        assert connection.execute(select(func.count()).select_from(embeddings)).scalar() == DOCUMENTS


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_people_who_share_workers_take_turns_however_many_documents_one_of_them_added(database: Database) -> None:
    shelf, worker = Shelf(database), DocumentStore(database, "here", "worker")
    owners = [PeopleStore(database).add(name, "member", None).id for name in ("Ann", "Ben")]
    alive = {"id": "worker", "installation": "here", "kind": "server", "beats": 0, "settings": {}}
    with database.write() as connection:
        connection.execute(insert(processes), alive)
        by_owner = select(libraries.c.id).where(libraries.c.person_id.in_(owners)).order_by(libraries.c.person_id)
        ann, ben = connection.execute(by_owner).scalars()
    anns = [shelf.add(f"ann {number}", library_id=ann).id for number in range(5)]
    bens = [shelf.add(f"ben {number}", library_id=ben).id for number in range(2)]
    assert worker.take_up_unfinished(max_taken=2)[0] == [anns[0], bens[0]]
    worker.take(anns[0])
    worker.fail(bens[0], "it is no text")
    assert worker.take_up_unfinished(max_taken=2)[0] == [bens[1]]
    assert (worker.owner_of(anns[0]), worker.owner_of(bens[0]), worker.owner_of(0)) == (*owners, None)


@pytest.mark.long
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_somebody_with_one_document_does_not_wait_for_all_of_two_who_added_many(database: Database) -> None:
    shelf, worker = Shelf(database), DocumentStore(database, "here", "worker")
    owners = [PeopleStore(database).add(name, "member", None).id for name in ("Ann", "Ben", "Cem")]
    alive = {"id": "worker", "installation": "here", "kind": "server", "beats": 0, "settings": {}}
    with database.write() as connection:
        connection.execute(insert(processes), alive)
        by_owner = select(libraries.c.id).where(libraries.c.person_id.in_(owners)).order_by(libraries.c.person_id)
        ann, ben, cem = connection.execute(by_owner).scalars()
    for number in range(30):
        for library in (ann, ben):
            shelf.add(f"{library} {number}", library_id=library)
    cems = shelf.add("cem", library_id=cem).id
    held: list[int] = []
    for _ in range(30):
        held += worker.take_up_unfinished(max_taken=2)[0]
        if cems in held:
            break
        worker.fail(held.pop(0), "it is no text")
    assert cems in held
