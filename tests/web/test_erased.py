"""What was erased is nowhere any more: a conversation, a document, a person; a turn is in api/test_erasing.py."""

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from rag_assistant.storage.tables import metadata
from tests.testkit.people import ACTOR, add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.test_erasing import EVERYWHERE, told_everywhere
from tests.web.conftest import ask, both_engines, until, upload
from tests.web.leftovers import (
    DELETED_WITH,
    KEPT,
    SECRET,
    compressed_with_secret,
    files_with,
    row_counts,
    tables_with_secret,
)

pytestmark = pytest.mark.settings(HISTORY_RECALL="2", QUERY_REWRITING="model")


def nowhere(services: Services, compressed: list[bytes]) -> bool:
    words = [spelling.encode() for spelling in (SECRET, SECRET.capitalize(), SECRET.upper())]
    return tables_with_secret(services) == set() and files_with(services, *words, *compressed) == []


@both_engines
def test_nothing_of_an_erased_conversation_is_left(client: FlaskClient, stub: StubModel, services: Services) -> None:
    told_everywhere(client, stub)
    assert tables_with_secret(services) == EVERYWHERE
    compressed = compressed_with_secret(services)
    for one in client.get("/api/conversations").json["conversations"]:
        assert client.post(f"/api/conversations/{one['conversation_id']}/purge", json={}).status_code == 204
    assert nowhere(services, compressed)


@both_engines
@pytest.mark.parametrize("through_trash", [False, True])
def test_nothing_of_an_erased_document_is_left(client: FlaskClient, services: Services, through_trash: bool) -> None:
    number = upload(client, f"# {SECRET}\n\nThe {SECRET} feeds geese.", f"{SECRET}.md", tags=SECRET)["document_id"]
    assert client.get(f"/api/search?q={SECRET}").json["passages"]
    assert tables_with_secret(services) >= {"documents", "document_texts", "chunks", "document_tags"}
    assert files_with(services, SECRET.encode())
    if through_trash:
        services.library.trash(number)
        client.post(f"/deleted/documents/{number}/erase", data={})
    else:
        client.delete(f"/api/documents/{number}")
    until(lambda: services.documents.files_to_delete() == [])
    assert nowhere(services, [])


@both_engines
def test_nothing_of_an_erased_person_is_left_but_the_name_in_the_log_of_accounts(
    app: Flask, services: Services, stub: StubModel
) -> None:
    with quick_passwords():
        add_person(services, "Ann", "admin")
        before = row_counts(services)
        ben = add_person(services, "Ben")
        client = client_of(app, "Ben")
    upload(client, f"The {SECRET} feeds geese.", f"{SECRET}.txt", tags=SECRET)
    stub.replies.append(Reply(f"It is {SECRET} [1]."))
    asked = ask(client, f"What is {SECRET}?")
    ask(client, "And why?", conversation_id=asked["conversation_id"])
    client.delete(f"/api/conversations/{asked['conversation_id']}")
    compressed = compressed_with_secret(services)
    meanwhile = row_counts(services)
    services.delete_account(ben, ACTOR, None)
    until(lambda: services.documents.files_to_delete() == [])
    assert nowhere(services, compressed)
    after = row_counts(services) | {"word_changes": 0}  # It tells the index what to forget.
    assert {name for name in after if meanwhile[name] > before[name]} >= {"turns", "receipts", "chunks", "libraries"}
    assert after == before


def test_what_deletes_a_row_is_said_of_every_table() -> None:
    removed = " ".join(DELETED_WITH.values()).split()
    assert sorted([*removed, *KEPT]) == sorted(metadata.tables)


@pytest.mark.parametrize("kind", ["projects", "libraries"])
def test_nothing_of_a_deleted_project_or_library_is_left(app: Flask, services: Services, kind: str) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name, "admin")
        client = client_of(app, "Ann")
    made = client.post(f"/api/{kind}", json={"name": SECRET}).json
    number = made["project_id" if kind == "projects" else "library_id"]
    for change in ({"everyone": "read"}, {"name": SECRET.upper()}):
        assert client.patch(f"/api/{kind}/{number}", json=change).status_code == 200
    client.put(f"/api/{kind}/{number}/shares", json={"person": "ben", "access": "read"})
    assert tables_with_secret(services) == {kind}
    assert client.delete(f"/api/{kind}/{number}").status_code == 204
    services.database.forget_deleted()
    assert nowhere(services, [])
