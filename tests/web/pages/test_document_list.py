"""The list of documents: its columns, filters, search and pages."""

import html
import io
import re
import threading
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from PIL import Image
from sqlalchemy import Engine, event

from rag_assistant.documents.embedding import DocumentEmbedder
from rag_assistant.services import Services
from rag_assistant.web.pages import documents
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.samples import sample
from tests.web.conftest import PAGE, until, upload
from tests.web.pages.document_rows import FACT, enter, names_on


def test_the_columns_sort_the_list_and_say_so(client: FlaskClient, services: Services) -> None:
    for name, size in (("b 10.txt", 4), ("a.txt", 11), ("B 2.txt", 20)):
        enter(services, name, size)
    for sort, names in (
        ("name", ["a.txt", "B 2.txt", "b 10.txt"]),
        ("-size", ["B 2.txt", "a.txt", "b 10.txt"]),
        ("added", ["b 10.txt", "a.txt", "B 2.txt"]),
    ):
        assert names_on(client.get(f"/documents?sort={sort}").text) == names
    page = client.get("/documents?tag=&sort=name").text
    assert re.findall(r'aria-sort="(\w+)"><a +href="([^"]*)">(\w+)<', page) == [
        ("ascending", "/documents?sort=-name", "Name")
    ]
    response = client.get("/documents?sort=colour", headers=PAGE)
    assert response.status_code == 422
    assert "sort is" in response.text


def test_the_list_says_how_much_there_is_and_is_filtered_by_status(client: FlaskClient) -> None:
    upload(client, "x" * 1500, "geese.txt")
    upload(client, b"%PDF-1.4 and nothing more", "broken.pdf")
    page = client.get("/documents").text
    assert "1 document, <bdi>1.5 kB</bdi>" in page
    assert names_on(page) == ["geese.txt"]
    assert re.search(r'href="/documents\?state=failed">1 could not be read</a>', page)
    assert "Retry" not in page
    failed = client.get("/documents?state=failed").text
    counts = re.findall(r'href="([^"]*)" (?:aria-current="true")?>(\w+) <span class="count">(\d+)', failed)
    assert counts == [
        ("/documents", "All", "1"),
        ("/documents?state=ready", "Ready", "1"),
        ("/documents?state=failed", "Failed", "1"),
    ]
    assert names_on(failed) == ["broken.pdf"]
    assert "1 document, <bdi>25 bytes</bdi>" in failed
    assert "Retry" not in failed, "the same bytes fail again"
    assert "No documents with this status." in client.get("/documents?state=cancelled").text
    assert client.get("/documents?state=lost", headers=PAGE).status_code == 422


def test_a_long_list_takes_no_more_statements_than_a_short_one(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if threading.current_thread() is threading.main_thread():  # What is worked on behind takes its own.
            statements.append(statement)

    def taken() -> int:
        counts = []
        for _ in range(2):  # Some are asked once a second, whoever looks.
            statements.clear()
            client.get("/documents?sort=name&q=txt")
            counts.append(len(statements))
        return min(counts)

    first = upload(client, "One.", "1.txt")["document_id"]
    client.get("/documents")
    event.listen(Engine, "before_cursor_execute", note)
    try:
        few = taken()
        for n in range(2, 6):
            upload(client, f"Document {n}.", f"{n}.txt")
        monkeypatch.setattr(DocumentEmbedder, "_embed_missing", lambda *_, **__: False)
        newer = upload(client, "One, but newer.", "1.txt", replaces=first, wait=False)["document_id"]
        until(
            lambda: client.get(f"/api/documents/{newer}").json["state"] == "embedding" and not services.processing.busy
        )
        assert taken() == few + 1  # Where one waits, it is asked once whether anybody works.
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_the_list_is_filtered_by_a_tag_and_refuses_what_is_none(client: FlaskClient) -> None:
    upload(client, FACT, "geese.txt", tags="birds")
    upload(client, "Boats.", "boats.txt")
    page = client.get("/documents?tag=birds").text
    assert names_on(page) == ["geese.txt"]
    assert 'href="/?tag=birds">Ask about these</a>' in page
    response = client.get("/documents", query_string={"tag": "x" * 65}, headers=PAGE)
    assert response.status_code == 422


def test_documents_are_sought_by_words_of_their_names_and_tags(client: FlaskClient, services: Services) -> None:
    enter(services, "Geese 100%.txt", tags=("birds", "sea"))
    enter(services, "gulls_1.txt", tags=("birds",))
    for sought, found in [
        ("geese", ["Geese 100%.txt"]),
        ("bird", ["gulls_1.txt", "Geese 100%.txt"]),
        ("bird SEA", ["Geese 100%.txt"]),
        ("%", ["Geese 100%.txt"]),
        ("_", ["gulls_1.txt"]),
        ("zebra", []),
    ]:
        assert names_on(client.get("/documents", query_string={"q": sought}).text) == found
        listed = client.get("/api/documents", query_string={"q": sought}).json["documents"]
        assert [one["name"] for one in listed] == found
    assert "No documents match “<bdi>&lt;b&gt;</bdi>”." in client.get("/documents?q=<b>").text


def test_older_documents_are_on_the_next_page(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "DOCUMENTS_SHOWN", 2)
    for n in range(1, 5):
        enter(services, f"{n}.txt")
    first = client.get("/documents?sort=-added").text
    assert names_on(first) == ["4.txt", "3.txt"]
    (following,) = re.findall(r'rel="next" href="([^"]*)">Next', first)
    second = client.get(html.unescape(following)).text
    assert names_on(second) == ["2.txt", "1.txt"]
    assert "Page 2 of 2" in second
    assert ">Next<" not in second
    assert 'rel="prev" href="/documents?sort=-added">Previous' in second
    assert names_on(client.get("/documents?page=99").text) == ["2.txt", "1.txt"]


@pytest.mark.parametrize("path", sample(["/documents", "/documents?sort=name&drawer=1"]))
def test_a_page_that_is_known_already_is_not_drawn_again_until_something_changes(
    client: FlaskClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = upload(client, FACT, "geese.txt")
    drawn: list[str] = []
    draw = documents.render_template

    def counted(*arguments: Any, **values: Any) -> str:
        drawn.append(path)
        return draw(*arguments, **values)

    monkeypatch.setattr(documents, "render_template", counted)
    etag = client.get(path).headers["ETag"]
    assert f"data-etag='{etag}'" in html.unescape(client.get(path).text)
    drawn.clear()
    for _ in range(2):
        known = client.get(path, headers={"If-None-Match": etag})
        assert (known.status_code, known.data, known.headers["ETag"]) == (304, b"", etag)
    assert drawn == []
    client.patch(f"/api/documents/{document['document_id']}", json={"tags": ["birds"]})
    changed = client.get(path, headers={"If-None-Match": etag})
    assert (changed.status_code, len(drawn)) == (200, 1)
    assert "birds" in changed.text


@pytest.mark.long
def test_whatever_the_list_shows_is_in_its_tag(client: FlaskClient, services: Services) -> None:
    document = upload(client, FACT, "geese.txt")
    etag = client.get("/documents").headers["ETag"]

    def status(path: str = "/documents", **headers: str) -> int:
        return client.get(path, headers={"If-None-Match": etag, **headers}).status_code

    assert status() == 304
    assert status("/documents?sort=name") == 200, "order"
    assert status(**{"Accept-Language": "de"}) == 200, "language"
    client.set_cookie("zone", "Asia/Tokyo")
    assert status() == 200, "zone"
    client.delete_cookie("zone")
    for change in ("name", "another document", "settings"):
        etag = client.get("/documents").headers["ETag"]
        assert status() == 304
        if change == "name":
            client.patch(f"/api/documents/{document['document_id']}", json={"name": "swans.txt"})
        elif change == "another document":
            upload(client, "Green boats float.", "boats.txt")
        else:
            services.settings.path.write_text('{"max_upload_mb": 7}')
            until(lambda: services.settings.current.max_upload_mb == 7)
        assert status() == 200, change


def test_a_member_is_told_whom_to_ask_for_text_recognition(app: Flask, services: Services) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (60, 60)).save(picture, "PNG")
    services.start()
    words = {
        "Ann": "Text recognition is switched off (setting ocr).",
        "Ben": "Ask your administrator to switch on text",
    }
    with quick_passwords():
        for name in words:
            add_person(services, name, "admin" if name == "Ann" else "member")
            client = client_of(app, name)
            upload(client, picture.getvalue(), "whiteboard.png")
            page = client.get("/documents?state=failed").text
            assert [name for name, told in words.items() if told in page] == [name]
            assert "Retry" not in page, "the same bytes cannot be read while that is off"
