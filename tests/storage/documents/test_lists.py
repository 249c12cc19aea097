"""Lists of documents, in each order, and how many there are; on SQLite and on PostgreSQL."""

import pytest
from sqlalchemy import text

from rag_assistant.records import DocumentSort, NewDocument
from rag_assistant.storage.database import Database
from tests.conftest import both_engines
from tests.testkit.shelf import Shelf


@pytest.fixture
def shelf(database: Database) -> Shelf:
    shelf = Shelf(database)
    for number, (name, size) in enumerate([("Page 10.pdf", 300), ("page 2.pdf", 100), ("ÄPFEL.txt", 100)]):
        shelf.documents.add(NewDocument(name, "text/plain", size, f"sha {number}", f"file {number}", tags=(str(size),)))
    return shelf


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("added", ["Page 10.pdf", "page 2.pdf", "ÄPFEL.txt"]),
        ("-added", ["ÄPFEL.txt", "page 2.pdf", "Page 10.pdf"]),
        ("size", ["page 2.pdf", "ÄPFEL.txt", "Page 10.pdf"]),
        ("-size", ["Page 10.pdf", "ÄPFEL.txt", "page 2.pdf"]),
    ],
)
def test_documents_are_listed_in_an_order_page_by_page(shelf: Shelf, sort: DocumentSort, names: list[str]) -> None:
    listed = [shelf.documents.page(2, sort=sort, offset=offset) for offset in (0, 2)]
    assert [document.name for page in listed for document in page] == names


def test_names_are_sorted_as_people_count_and_a_renamed_one_moves(shelf: Shelf) -> None:
    def names() -> list[str]:
        return [one.name for one in shelf.documents.page(9, sort="name") if one.name.endswith("pdf")]

    assert names() == ["page 2.pdf", "Page 10.pdf"]
    shelf.documents.change(2, name="page 11.pdf")
    assert names() == ["Page 10.pdf", "page 11.pdf"]


@both_engines
def test_totals_are_told_by_state_for_what_is_listed(shelf: Shelf) -> None:
    shelf.documents.take(1)
    shelf.documents.fail(1, "It is damaged.")
    assert shelf.documents.totals() == {"failed": (1, 300), "queued": (2, 200)}
    assert shelf.documents.totals(sought="page") == {"failed": (1, 300), "queued": (1, 100)}
    assert shelf.documents.totals(tag="none") == {}
    (found,) = shelf.documents.page(9, sort="name", tag="300", sought="page", states=("failed", "cancelled"))
    assert found.name == "Page 10.pdf"


def test_the_figures_of_a_library_and_its_orders_are_read_from_an_index(shelf: Shelf, database: Database) -> None:
    if database.engine.dialect.name != "sqlite":
        pytest.skip("tells its plan otherwise")
    with database.engine.connect() as connection:
        for query in (
            "SELECT state, count(*), sum(size_bytes) FROM documents GROUP BY state",
            "SELECT * FROM documents ORDER BY name_key DESC, id DESC LIMIT 100",
            "SELECT * FROM documents ORDER BY size_bytes, id LIMIT 100",
        ):
            plan = str(connection.execute(text(f"EXPLAIN QUERY PLAN {query}")).all())
            assert "USING" in plan
            assert "TEMP B-TREE" not in plan
