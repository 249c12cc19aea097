"""Web pages by their address: added where that is switched on, fetched again on demand, refused in words."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.documents.web_pages import MAX_FETCHES
from rag_assistant.runtime.public_http import PublicHttp
from rag_assistant.services import Services
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.site import Site, sends
from tests.web.conftest import PAGE, post, until, upload

URL = "http://example.org/lamp.html"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


pytestmark = pytest.mark.settings(WEB_PAGES="true")


@pytest.fixture
def site(services: Services) -> Iterator[Site]:
    with closing(Site()) as made:
        services.web_pages._http = PublicHttp(made.resolve, made.network, 5.0)
        yield made


def added(client: FlaskClient, url: str = URL, **fields: object) -> dict[str, object]:
    response = client.post("/api/documents/web-page", json={"url": url} | fields)
    assert response.status_code == 202, response.text
    document: dict[str, object] = response.json
    until(lambda: client.get(f"/api/documents/{document['document_id']}").json["state"] == "ready")
    return document


def passages(client: FlaskClient, words: str) -> list[str]:
    return [one["text"] for one in client.get("/api/search", query_string={"q": words}).json["passages"]]


def test_a_page_is_a_document_that_is_found(client: FlaskClient, site: Site) -> None:
    site.answers["/lamp.html"] = sends(b"<h1>Lamp</h1><p>The caf\xe9's lamp burns rapeseed oil.</p>")
    document = added(client, tags=["sea"])
    assert (document["name"], document["origin"], document["tags"]) == ("lamp.html", URL, ["sea"])
    assert "The caf\u00e9's lamp burns rapeseed oil." in passages(client, "rapeseed oil")[0], (
        "latin-1, as its server says"
    )


@pytest.mark.long
def test_what_has_changed_is_replaced_and_what_has_not_stays(client: FlaskClient, site: Site) -> None:
    site.answers["/lamp.html"] = sends(b"The lamp burns rapeseed oil.", PLAIN)
    number = added(client)["document_id"]
    again = client.post(f"/api/documents/{number}/fetch")
    assert (again.status_code, again.json["new"], again.json["document_id"]) == (202, False, number)
    site.answers["/lamp.html"] = sends(b"The lamp burns paraffin.", PLAIN)
    assert client.post(f"/api/documents/{number}/fetch").json["replaces"] == number
    until(lambda: passages(client, "lamp burns") == ["The lamp burns paraffin."])
    site.answers["/lamp.html"] = sends(b"The lamp burns electricity.", PLAIN)
    assert client.post("/api/documents/web-page", json={"url": URL}).json["replaces"] == number
    until(lambda: passages(client, "lamp burns") == ["The lamp burns electricity."])
    (only,) = client.get("/api/documents").json["documents"]
    assert (only["document_id"], only["origin"]) == (number, URL)


@pytest.mark.long
def test_a_page_that_cannot_be_fetched_again_stays(client: FlaskClient, site: Site) -> None:
    site.answers["/lamp.html"] = sends(b"The lamp burns rapeseed oil.", PLAIN)
    number = added(client)["document_id"]
    site.answers["/lamp.html"] = sends(b"", b"HTTP/1.1 410 Gone\r\n")
    response = client.post(f"/api/documents/{number}/fetch")
    assert (response.status_code, response.json["error"]["type"]) == (502, "PageNotFetched")
    assert "answers 410 Gone" in response.json["error"]["message"]
    assert passages(client, "lamp")


@pytest.mark.parametrize(
    ("url", "status"),
    [("http://127.0.0.1/", 422), ("http://inside.example/", 422), ("http://example.org:8080/", 422), ("", 422)],
)
def test_what_is_refused_is_said(client: FlaskClient, site: Site, url: str, status: int) -> None:
    site.names |= {"inside.example": ["10.0.0.7"], "127.0.0.1": ["127.0.0.1"]}
    response = client.post("/api/documents/web-page", json={"url": url})
    assert (response.status_code, site.connected) == (status, [])
    assert client.get("/api/documents").json["documents"] == []


@pytest.mark.parametrize("kind", ["text/css", "video/mp4", "font/woff2", "image/svg+xml"])
def test_a_kind_that_is_not_read_is_refused(client: FlaskClient, site: Site, kind: str) -> None:
    site.answers["/lamp.html"] = sends(b"body", b"HTTP/1.1 200 OK\r\nContent-Type: " + kind.encode() + b"\r\n")
    response = client.post("/api/documents/web-page", json={"url": URL})
    assert (response.status_code, kind in response.json["error"]["message"]) == (415, True)


def test_what_was_uploaded_is_not_fetched(client: FlaskClient, site: Site) -> None:
    number = upload(client, "A note.")["document_id"]
    assert client.post(f"/api/documents/{number}/fetch").json["error"]["type"] == "NoWebPage"
    assert client.post("/api/documents/99/fetch").status_code == 404


def test_so_many_are_fetched_at_once(client: FlaskClient, services: Services, site: Site) -> None:
    for _ in range(MAX_FETCHES):
        services.web_pages._places.acquire()
    response = client.post("/api/documents/web-page", json={"url": URL})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")


def test_the_form_adds_a_page_and_fetches_it_again(client: FlaskClient, site: Site) -> None:
    site.answers["/lamp.html"] = sends(b"The lamp burns rapeseed oil.", PLAIN)
    assert post(client, "/documents/web-page", url=URL) == (303, "/documents")
    page = client.get("/documents", headers=PAGE).text
    assert "Add page" in page
    assert f"From <bdi>{URL}</bdi>" in page
    assert post(client, "/documents/1/fetch") == (303, "/documents")
    status, page = post(client, "/documents/web-page", url="http://127.0.0.1/")
    assert status == 422
    assert "has no public address" in page


@pytest.mark.long
def test_the_same_page_of_two_people_is_two_documents(app: Flask, services: Services, site: Site) -> None:
    with quick_passwords():
        clients = [client_of(app, add_person(services, name).name) for name in ("Ann", "Ben")]
    site.answers["/lamp.html"] = sends(b"The lamp burns rapeseed oil.", PLAIN)
    first, second = (added(client)["document_id"] for client in clients)
    assert first != second
    assert clients[1].post(f"/api/documents/{first}/fetch").status_code == 404
