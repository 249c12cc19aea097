"""Deleted conversations and documents: listed, restored and erased."""

import re

import pytest
from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings
from tests.web.conftest import PAGE, post, upload
from tests.web.pages.conversation_rows import fill


def test_deleted_conversations_are_listed_restored_and_erased(client: FlaskClient, services: Services) -> None:
    fill(services, 120)
    assert "No deleted conversations." in client.get("/deleted").text
    for number in range(1, 61):
        client.delete(f"/api/conversations/{number}")
    titled = re.compile(r'aria-label="Restore Conversation (\d+) ')
    page = client.get("/deleted").text
    assert [int(n) for n in titled.findall(page)] == list(range(60, 10, -1))
    earlier = re.search(r'href="(/deleted\?from=[^"]+)"', page)
    assert earlier is not None
    assert [int(n) for n in titled.findall(client.get(earlier[1]).text)] == list(range(10, 0, -1))
    assert post(client, "/conversations/3/restore") == (303, "/conversations/3")
    assert post(client, "/deleted/4/erase") == (303, "/deleted?erased=1")
    assert client.post("/api/conversations/4/restore").status_code == 404
    listed = client.get("/api/conversations?deleted=1&limit=50").json
    assert len(listed["conversations"]) == 50
    assert listed["conversations"][0]["deleted_at"] is not None
    rest = client.get(f"/api/conversations?deleted=1&cursor={listed['next_cursor']}").json
    assert [one["conversation_id"] for one in rest["conversations"]] == [10, 9, 8, 7, 6, 5, 2, 1]


def test_the_start_page_names_the_conversation_that_was_deleted_last(client: FlaskClient, services: Services) -> None:
    fill(services, 2)
    client.patch("/api/conversations/1", json={"title": "Geese & ducks"})
    assert post(client, "/conversations/1/delete") == (303, "/?deleted=1")
    assert "“<bdi>Geese &amp; ducks</bdi>” deleted." in client.get("/?deleted=1").text
    client.delete("/api/conversations/2")
    assert "</bdi>” deleted." not in client.get("/?deleted=1").text


def test_a_deleted_conversation_says_so_and_offers_to_restore_it(client: FlaskClient, services: Services) -> None:
    fill(services, 1)
    client.delete("/api/conversations/1")
    shown = client.get("/conversations/1", headers=PAGE)
    assert shown.status_code == 404
    assert "Conversation 1 is in the trash." in shown.text
    assert '<form method="post" action="/conversations/1/restore">' in shown.text
    refused = client.post("/api/query", json={"question": "Why?", "conversation_id": 1})
    assert (refused.status_code, refused.json["error"]["type"]) == (404, "ConversationDeleted")
    assert client.get("/api/conversations/9").json["error"]["type"] == "ConversationNotFound"


def test_what_was_brought_back_meanwhile_is_not_erased(client: FlaskClient, services: Services) -> None:
    fill(services, 1)
    client.delete("/api/conversations/1")
    # Another tab still offers to erase it.
    post(client, "/conversations/1/restore")
    assert client.post("/deleted/1/erase", data={}).status_code == 409
    assert client.get("/api/conversations/1").status_code == 200


def test_a_deleted_document_is_restored_by_undo_or_from_the_trash_and_erased_from_there(
    client: FlaskClient, services: Services
) -> None:
    number = upload(client, "The keeper feeds geese.", "geese.txt")["document_id"]
    for _ in range(2):
        assert post(client, f"/documents/{number}/delete") == (303, f"/documents?deleted={number}")
        assert client.get("/api/search?q=geese").json["passages"] == []
        assert "“<bdi>geese.txt</bdi>” deleted." in client.get(f"/documents?deleted={number}").text
        assert "Restore geese.txt" in client.get("/deleted").text
        assert post(client, "/documents/restore", document_ids=str(number)) == (303, "/documents")
        assert "“<bdi>geese.txt</bdi>” deleted." not in client.get(f"/documents?deleted={number}").text
        assert client.get("/api/search?q=geese").json["passages"] != []
    assert post(client, f"/deleted/documents/{number}/erase")[0] == 404
    services.library.trash(number)
    assert post(client, f"/deleted/documents/{number}/erase") == (303, "/deleted?erased=1")
    assert "No deleted documents." in client.get("/deleted").text
    assert services.documents.known_files() == set()


def test_the_trash_is_emptied_by_itself(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (upload(client, f"Geese {n}.")["document_id"] for n in range(2))
    services.library.trash(first)
    monkeypatch.setattr(services.processing, "_settings", lambda: Settings(trash_days=0))
    replace(services.library, settings=lambda: Settings(trash_days=0)).trash(second)
    assert [one.id for one in services.documents.trashed(9)] == [first]
    services.processing._take_up_forgotten()
    assert services.documents.trashed(9) == []


def test_the_api_deletes_documents_permanently(client: FlaskClient, services: Services) -> None:
    number = upload(client, "Geese.")["document_id"]
    assert client.delete(f"/api/documents/{number}").status_code == 204
    assert services.documents.trashed(9) == []
