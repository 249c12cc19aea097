"""Links to conversations over the API: made, listed, read and revoked."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.pdfs import chart_pdf
from tests.testkit.people import add_person, client_of, quick_passwords, token_client
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until, upload


@pytest.fixture
def ann(app: Flask, services: Services) -> Iterator[FlaskClient]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        yield client_of(app, "Ann")


@pytest.fixture
def ben(app: Flask, ann: FlaskClient) -> FlaskClient:
    return client_of(app, "Ben")


@pytest.fixture
def conversation(ann: FlaskClient, stub: StubModel) -> int:
    upload(ann, "The heron hisses at dawn.", "heron.txt")
    stub.replies.append(Reply("At **dawn** [1]."))
    number: int = ask(ann, "When does the heron hiss?")["conversation_id"]
    return number


def path_of(url: str) -> str:
    return f"/api/shared?{urlsplit(url).query}"


def test_a_link_is_made_listed_read_and_revoked(ann: FlaskClient, ben: FlaskClient, conversation: int) -> None:
    links = f"/api/conversations/{conversation}/links"
    made = ann.post(links)
    assert made.status_code == 201
    listing = dict(made.json)
    url = listing.pop("url")
    assert url.startswith("http://localhost/shared?link=")
    listed = ann.get(links)
    assert listed.json == {"links": [listing]}
    assert url.partition("=")[2] not in listed.text
    shared = ben.get(path_of(url)).json
    assert (shared["title"], shared["owner"]) == ("When does the heron hiss?", "Ann")
    (turn,) = shared["turns"]
    assert (turn["question"], turn["answer"], turn["sources"]) == (
        "When does the heron hiss?", "At **dawn** [1].", [],
    )  # fmt: skip
    assert ben.get(links).status_code == ben.post(links).status_code == 404
    own = f"{links}/{listing['link_id']}"
    assert ben.delete(own).status_code == 404
    assert ann.delete(own).status_code == 204
    assert ann.delete(own).status_code == 404
    gone, never = ben.get(path_of(url)), ben.get("/api/shared?link=never")
    assert (gone.status_code, gone.json) == (never.status_code, never.json)
    assert ben.get("/api/shared").status_code == gone.status_code == 404


def test_a_link_for_a_person_is_read_by_them_alone_and_replaces_theirs(
    services: Services, ann: FlaskClient, ben: FlaskClient, conversation: int
) -> None:
    links = f"/api/conversations/{conversation}/links"
    for with_sources in (True, False):
        made = ann.post(links, json={"person": "ben", "with_sources": with_sources})
        assert (made.status_code, made.json["person"]) == (201, "Ben")
    assert services.accounts.log.newest(1)[0].action == f"created link {made.json['link_id']} for Ben"
    assert [one["with_sources"] for one in ann.get(links).json["links"]] == [False]
    assert ben.get(path_of(made.json["url"])).json["owner"] == "Ann"
    assert ann.get(path_of(made.json["url"])).status_code == 404
    assert ann.post(links, json={"person": "Nobody"}).status_code == 404
    ann.delete(f"/api/conversations/{conversation}")
    assert ben.get("/api/shared/conversations").json == {"conversations": []}


def test_sources_come_along_as_far_as_the_reader_may_read_them(
    ann: FlaskClient, ben: FlaskClient, conversation: int
) -> None:
    url = ann.post(f"/api/conversations/{conversation}/links", json={"with_sources": True}).json["url"]
    assert ben.get(path_of(url)).json["turns"][0]["sources"] == []
    library = ann.get("/api/libraries").json["libraries"][0]["library_id"]
    ann.patch(f"/api/libraries/{library}", json={"everyone": "read"})
    (source,) = ben.get(path_of(url)).json["turns"][0]["sources"]
    assert source == {
        "n": 1, "document": "heron.txt", "date": None, "page": None, "text": "The heron hisses at dawn.",
        "deleted": False,
    }  # fmt: skip


@pytest.mark.long
def test_later_changes_to_what_an_answer_cites_are_told_as_to_its_owner(
    ann: FlaskClient, ben: FlaskClient, stub: StubModel, conversation: int
) -> None:
    url = ann.post(f"/api/conversations/{conversation}/links", json={"with_sources": True}).json["url"]
    without = ann.post(f"/api/conversations/{conversation}/links", json={"with_sources": False}).json["url"]
    ann.patch("/api/libraries/1", json={"everyone": "read"})
    (turn,) = ann.get(f"/api/conversations/{conversation}/turns").json["turns"]
    assert ben.get(path_of(url)).json["turns"][0]["corrections"] == []
    document = turn["sources"][0]["document_id"]
    upload(ann, "The heron hisses at noon.", "heron.txt", wait=False, replaces=str(document))
    until(lambda: ann.get(f"/api/conversations/{conversation}/turns").json["turns"][0]["corrections"])
    (told,) = ann.get(f"/api/conversations/{conversation}/turns").json["turns"][0]["corrections"]
    assert ben.get(path_of(url)).json["turns"][0]["corrections"] == [told]
    assert told["sentence"] in ben.get(path_of(url).removeprefix("/api")).text
    ann.delete(f"/api/documents/{document}")
    (told,) = ann.get(f"/api/conversations/{conversation}/turns").json["turns"][0]["corrections"]
    (shared,) = ben.get(path_of(url)).json["turns"]
    (source,) = shared["sources"]
    assert (source["n"], source["document"], source["text"], source["deleted"]) == (1, "", "", True)
    page = ben.get(path_of(url).removeprefix("/api")).text
    assert "[1] deleted" in page
    assert ("heron.txt" in page, shared["corrections"]) == (False, []), "who could read it is unknown"
    (hidden,) = ben.get(path_of(without)).json["turns"]
    assert (hidden["corrections"], hidden["sources"]) == ([], []), "a name is of the sources"
    exported = ann.get(f"/api/conversations/{conversation}/export?format=markdown").text
    assert told["sentence"] in exported


def test_a_figure_that_was_not_read_is_named_to_a_reader_of_its_document(
    ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    upload(ann, chart_pdf("Boats pass.", "The keeper counts the geese.", chart_on=1), "report.pdf")
    stub.replies.append(Reply("The keeper counts the geese [1]."))
    answer = ask(ann, "What does figure 1 show about geese the keeper counts?")
    links = f"/api/conversations/{answer['conversation_id']}/links"
    url, without = (ann.post(links, json={"with_sources": one}).json["url"] for one in (True, False))
    unread = "Page 1 of report.pdf has a figure that was not read."
    assert unread in answer["notes"]
    assert ben.get(path_of(url)).json["turns"][0]["notes"] == []
    ann.patch("/api/libraries/1", json={"everyone": "read"})
    assert ben.get(path_of(url)).json["turns"][0]["notes"] == [unread]
    assert unread in ben.get(path_of(url).removeprefix("/api")).text
    assert ben.get(path_of(without)).json["turns"][0]["notes"] == []


@pytest.mark.long
def test_what_documents_state_differently_is_told_to_a_reader_of_them_all(
    ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    for days, year in ((30, 2023), (60, 2024)):
        text = f"Valid from: {year}-01-04\n\nCustomers may return goods within {days} days of purchase."
        upload(ann, text, f"refunds-{year}.md")
    stub.replies.append(Reply("30 days [1]."))
    conversation = ask(ann, "Within how many days may customers return goods?")["conversation_id"]
    url = ann.post(f"/api/conversations/{conversation}/links", json={"with_sources": True}).json["url"]
    assert ben.get(path_of(url)).json["turns"][0]["disagreements"] == []
    ann.patch("/api/libraries/1", json={"everyone": "read"})
    (turn,) = ben.get(path_of(url)).json["turns"]
    assert [one["newer"] for one in turn["disagreements"]] == ["60 days"]
    assert {one["date"] for one in turn["sources"]} == {"2023-01-04", "2024-01-04"}
    page = ben.get(path_of(url).removeprefix("/api")).text
    assert "Your documents disagree:" in page
    assert "4 Jan 2024" in page
    german = ben.get(path_of(url).removeprefix("/api"), headers={"Accept-Language": "de"}).text
    assert "Zum Zeitpunkt der Antwort stand im neueren Dokument: 60 days." in german
    without = ann.post(f"/api/conversations/{conversation}/links", json={"with_sources": False}).json["url"]
    assert ben.get(path_of(without)).json["turns"][0]["disagreements"] == []


def test_a_link_takes_a_token_that_may_ask_and_is_read_with_one_that_may_read(
    app: Flask, services: Services, ann: FlaskClient, conversation: int
) -> None:
    person = services.accounts.people.get("Ann")
    reader, asker = (token_client(app, services, person, *scopes) for scopes in (("read",), ("read", "ask")))
    links = f"/api/conversations/{conversation}/links"
    assert reader.post(links).status_code == 403
    made = asker.post(links, json={}).json
    assert reader.get(path_of(made["url"])).status_code == 200
    assert reader.delete(f"{links}/{made['link_id']}").status_code == 403
    assert app.test_client().get(path_of(made["url"])).status_code == 401
    done = [entry.action for entry in services.accounts.log.newest(9)]
    assert f"created link {made['link_id']}" in done


def test_a_wrong_body_is_refused_by_name(ann: FlaskClient, conversation: int) -> None:
    for name, value in (("with_sources", "yes"), ("sources", True), ("with_sources", None)):
        refused = ann.post(f"/api/conversations/{conversation}/links", json={name: value})
        assert (refused.status_code, name in refused.json["error"]["message"]) == (422, True), value
