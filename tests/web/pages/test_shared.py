"""A conversation that is shared by a link: read by who is signed in, until it is revoked."""

import re
from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.people import ACTOR, add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, post, upload


@pytest.fixture
def ann(app: Flask, services: Services) -> Iterator[FlaskClient]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name, "admin")
        yield client_of(app, "Ann")


@pytest.fixture
def ben(app: Flask, ann: FlaskClient) -> FlaskClient:
    return client_of(app, "Ben")


def talk(client: FlaskClient, stub: StubModel) -> int:
    upload(client, "The heron hisses at dawn.", "heron.txt")
    stub.replies.append(Reply("At **dawn** [1]. <script>alert(1)</script>"))
    number: int = ask(client, "When does the heron hiss?")["conversation_id"]
    return number


def test_one_save_stores_what_everyone_and_each_person_may_do(ann: FlaskClient, ben: FlaskClient) -> None:
    library = ann.get("/api/libraries").json["libraries"][0]["library_id"]
    ann.put(f"/api/libraries/{library}/shares", json={"person": "Ben", "access": "read"})
    page = ann.get("/libraries").text
    names = re.findall(r'<option value="(\w+)">', page[page.index("<datalist") : page.index("</datalist>")])
    assert "Ben" in names
    assert "Ann" not in names
    form = {"everyone": "read", "person": ["Ben", ""], "access": ["write", "read"]}
    assert post(ann, f"/libraries/{library}/shares", **form) == (303, "/libraries")
    shared = ann.get("/api/libraries").json["libraries"][0]
    assert (shared["everyone"], shared["shares"]) == ("read", [{"person": "Ben", "access": "write"}])
    form = {"everyone": "", "person": ["Ben", "Nobody"], "access": ["", "read"]}
    status, page = post(ann, f"/libraries/{library}/shares", **form)
    assert (status, "Nobody" in page) == (404, True)
    form["person"] = ["Ben", ""]
    post(ann, f"/libraries/{library}/shares", **form)
    shared = ann.get("/api/libraries").json["libraries"][0]
    assert (shared["everyone"], shared["shares"]) == (None, [])


def link_to(client: FlaskClient, conversation: int, **fields: str) -> str:
    status, page = post(client, f"/conversations/{conversation}/links", **{"new": "read"} | fields)
    found = re.search(r"http://localhost(/shared\?link=[\w-]{43})", page)
    assert status == 200
    assert found is not None
    assert found[1].partition("=")[2] not in client.get(f"/conversations/{conversation}/links", headers=PAGE).text
    return found[1]


def test_a_link_shows_questions_and_answers_until_it_is_revoked(
    app: Flask, ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    conversation = talk(ann, stub)
    link = link_to(ann, conversation)
    page = ben.get(link, headers=PAGE).text
    assert "When does the heron hiss?" in page
    assert "<strong>dawn</strong>" in page
    assert "<script>alert" not in page
    assert "heron.txt" not in page
    assert "Shared by <bdi>Ann</bdi>" in page
    assert app.test_client().get(link).status_code == 401
    assert ben.get(f"/api/conversations/{conversation}").status_code == 404
    assert ben.get(f"/conversations/{conversation}/links").status_code == 404
    assert ben.post(f"/conversations/{conversation}/links", data={"revoked": "1"}, headers=PAGE).status_code == 404
    assert 'name="revoked"' in ann.get(f"/conversations/{conversation}/links", headers=PAGE).text
    assert post(ann, f"/conversations/{conversation}/links", revoked="1")[0] == 200
    gone, never = ben.get(link), ben.get("/shared?link=never")
    assert (gone.status_code, gone.text) == (never.status_code, never.text)
    assert gone.status_code == 404


def test_sources_are_shown_as_far_as_the_reader_may_read_them(
    ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    link = link_to(ann, talk(ann, stub), new="sources")
    assert "heron.txt" in ann.get(link, headers=PAGE).text
    assert "heron.txt" not in ben.get(link, headers=PAGE).text
    library = ann.get("/api/libraries").json["libraries"][0]["library_id"]
    ann.patch(f"/api/libraries/{library}", json={"everyone": "read"})
    assert "The heron hisses at dawn." in ben.get(link, headers=PAGE).text
    ann.patch(f"/api/libraries/{library}", json={"everyone": None})
    assert "The heron hisses at dawn." not in ben.get(link, headers=PAGE).text


@pytest.mark.long
def test_a_page_says_who_else_may_read_what_it_shows(ann: FlaskClient, ben: FlaskClient, stub: StubModel) -> None:
    conversation = talk(ann, stub)
    readers = "Anyone with its link can read this conversation."
    page = f"/conversations/{conversation}"
    assert readers not in ann.get(page, headers=PAGE).text
    link_to(ann, conversation)
    assert readers in ann.get(page, headers=PAGE).text
    post(ann, f"{page}/links", revoked="1", person="Ben", access="read")
    assert readers not in ann.get(page, headers=PAGE).text
    assert "Shared with <bdi>Ben</bdi>, read-only." in ann.get(page, headers=PAGE).text

    library = ann.get("/api/libraries").json["libraries"][0]["library_id"]
    assert "· only you" in ann.get("/libraries", headers=PAGE).text
    ann.put(f"/api/libraries/{library}/shares", json={"person": "Ben", "access": "read"})
    assert "· shared with <bdi>Ben</bdi>" in ann.get("/libraries", headers=PAGE).text
    assert "owned by Ann · you can read" in ben.get("/libraries", headers=PAGE).text
    ann.patch(f"/api/libraries/{library}", json={"everyone": "read"})
    assert "· shared with everyone here" in ann.get("/libraries", headers=PAGE).text


def test_one_save_lets_people_read_a_conversation_by_name_and_they_find_it(
    ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    form = f"/conversations/{talk(ann, stub)}/links"
    assert "Nobody shares a conversation with you yet." in ben.get("/shared", headers=PAGE).text
    assert post(ann, form, person=["Ben", ""], access=["sources", "sources"])[0] == 200
    (shared,) = ben.get("/api/shared/conversations").json["conversations"]
    assert (shared["title"], shared["owner"]) == ("When does the heron hiss?", "Ann")
    mine = f"/shared?link={shared['link']}"
    assert f'href="{mine}"' in ben.get("/shared", headers=PAGE).text
    assert "<strong>dawn</strong>" in ben.get(mine, headers=PAGE).text
    assert ann.get(mine).status_code == 404, "it is for Ben alone"
    assert ann.get("/api/shared/conversations").json == {"conversations": []}
    links = f"/api{form}"
    assert [(one["person"], one["with_sources"]) for one in ann.get(links).json["links"]] == [("Ben", True)]
    post(ann, form, person=["Ben"], access=["read"])
    assert [(one["person"], one["with_sources"]) for one in ann.get(links).json["links"]] == [("Ben", False)]
    status, page = post(ann, form, person=["Ben", "Nobody"], access=["read", "read"])
    assert (status, "There is no account" in page) == (404, True)
    assert post(ann, form, person=["Ben"], access=[""])[0] == 200
    assert ben.get(mine).status_code == 404
    assert ben.get("/api/shared/conversations").json == {"conversations": []}


@pytest.mark.long
def test_a_link_ends_with_its_conversation_and_with_its_owner(
    services: Services, ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    conversation = talk(ann, stub)
    link = link_to(ann, conversation)
    ann.delete(f"/api/conversations/{conversation}")
    assert ben.get(link).status_code == 404
    ann.post(f"/api/conversations/{conversation}/restore")
    assert ben.get(link).status_code == 200
    services.accounts.set_disabled(services.accounts.people.get("Ann"), True, ACTOR)
    assert ben.get(link).status_code == 404


def test_alone_there_is_nobody_to_share_with(client: FlaskClient) -> None:
    conversation = ask(client)["conversation_id"]
    assert client.get(f"/conversations/{conversation}/links").status_code == 403
    assert "/links" not in client.get(f"/conversations/{conversation}", headers=PAGE).text


@pytest.mark.long
def test_a_page_of_long_answers_renders_the_newest_and_shows_the_others_as_they_are(
    ann: FlaskClient, ben: FlaskClient, stub: StubModel
) -> None:
    conversation: dict[str, int] = {}
    for number in range(4):
        words = "".join(f"**{chr(97 + n * n % 997 % 26)}** " for n in range(4_500))
        stub.replies.append(Reply(f"Answer {number}: **a** {words}"))
        answered = ask(ann, "Which goose?", **conversation)
        conversation = {"conversation_id": answered["conversation_id"]}
    for page in (
        ann.get(f"/conversations/{answered['conversation_id']}", headers=PAGE).text,
        ben.get(link_to(ann, answered["conversation_id"]), headers=PAGE).text,
    ):
        rendered = [f"Answer {number}: <strong>a</strong>" in page for number in range(4)]
        assert rendered == [False, False, True, True]
        assert [f"Answer {number}: **a**" in page for number in range(4)] == [True, True, False, False]
