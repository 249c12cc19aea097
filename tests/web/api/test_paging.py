"""Every list comes by page in the same way."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from rag_assistant.records.errors import InvalidRequest
from rag_assistant.web.api.paging import cursor_of, parse_cursor
from tests.testkit.stub_model import StubModel
from tests.web.conftest import application, ask, served_before

LISTS = {
    "/api/conversations": "conversations",
    "/api/conversations/1/turns": "turns",
    "/api/documents": "documents",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, migrated: Path, unasked: StubModel) -> Iterator[FlaskClient]:
    """A client that finds four of everything, of which the tests only read."""
    documents = [(f"{n}.txt", f"Document {n}.") for n in range(4)]
    with application(tmp_path_factory.mktemp("paging"), served_before(migrated, *documents), unasked) as app:
        client = app.test_client()
        for n in range(4):
            ask(client, conversation_id=1 if n else None)
            client.post("/api/conversations", json={"title": f"Plan {n}"})
        yield client


@pytest.mark.parametrize("path", LISTS)
def test_following_the_cursor_gives_each_item_once(client: FlaskClient, path: str) -> None:
    whole = client.get(f"{path}?limit=200").json
    assert whole["next_cursor"] is None
    pages = []
    address = f"{path}?limit=2"
    while address:
        page = client.get(address).json
        assert page["next_cursor"] is None or isinstance(page["next_cursor"], str)
        pages.append(page[LISTS[path]])
        address = page["next_cursor"] and f"{path}?limit=2&cursor={page['next_cursor']}"
    if path.endswith("/turns"):  # The latest page comes first, and each is in reading order.
        pages.reverse()
    assert [one for page in pages for one in page] == whole[LISTS[path]]
    assert all(pages), "a page that is full by chance is the last one all the same"


def test_the_newest_documents_come_first(client: FlaskClient) -> None:
    page = client.get("/api/documents?limit=3").json
    assert [one["document_id"] for one in page["documents"]] == [4, 3, 2]
    rest = client.get(f"/api/documents?limit=3&cursor={page['next_cursor']}").json
    assert [one["document_id"] for one in rest["documents"]] == [1]


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_that_no_page_gave_is_refused(client: FlaskClient, path: str) -> None:
    for cursor in ("", "x", "0", "-1", "1e3"):
        response = client.get(f"{path}?cursor={cursor}")
        assert response.status_code == 422
        expected = f'cursor is "{cursor}"; it must be the next_cursor of the previous page.'
        assert response.json["error"]["message"] == expected


def test_a_cursor_reads_back_as_it_was_written() -> None:
    moment = datetime(2026, 5, 20, 1, 2, 3, 456789, tzinfo=UTC)
    assert parse_cursor("from", cursor_of(moment, 7)) == (moment, 7)
    assert parse_cursor("from", None) is None


@pytest.mark.parametrize("text", ["", "7", "7-", "-7", "1-99999999999", "9" * 5000, "\u0661-\u0661", "1-2-3"])
def test_a_cursor_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest, match="from is"):
        parse_cursor("from", text)
