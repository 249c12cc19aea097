"""Coming in with a password and going out: the login, its cookie, and sessions that end."""

import io
import re
from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update

from rag_assistant.accounts.accounts import Actor
from rag_assistant.records import Person
from rag_assistant.records.errors import StorageFailed
from rag_assistant.services import Services
from rag_assistant.storage.database import Database
from rag_assistant.storage.tables import api_tokens, now, sessions
from tests.testkit.people import PASSWORD, client_of
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, events_of, post
from tests.web.test_health import failing


def test_with_an_account_a_page_leads_to_the_login_and_back(app: Flask, client: FlaskClient, ann: Person) -> None:
    refused = client.get("/documents?tag=a", headers=PAGE)
    assert (refused.status_code, refused.headers["Location"]) == (303, "/login?next=/documents?tag%3Da")
    assert client.get("/login", headers=PAGE).status_code == 200
    status, place = post(client, "/login", name="ann", password=PASSWORD, next="/documents?tag=a")
    assert (status, place) == (303, "/documents?tag=a")
    page = client.get("/", headers=PAGE)
    assert page.status_code == 200
    assert "<bdi>Ann</bdi>" in page.text
    program = app.test_client().get("/api/conversations")
    assert program.status_code == 401
    assert program.headers["WWW-Authenticate"] == "Bearer"
    assert program.json["error"]["type"] == "NotSignedIn"
    # A script of a page that was open before gets an error, and not a form in the place of a turn.
    assert app.test_client().get("/turns/1", headers=PAGE | {"Sec-Fetch-Mode": "cors"}).status_code == 401


def test_the_login_leads_to_no_other_host(client: FlaskClient, ann: Person) -> None:
    for place in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "", "/a\nb"):
        assert post(client, "/login", name="Ann", password=PASSWORD, next=place) == (303, "/"), place


def test_a_wrong_password_and_a_wrong_name_are_the_same(client: FlaskClient, ann: Person) -> None:
    answers = {
        re.sub(r'value="[^"]*"', "", post(client, "/login", name=name, password=password)[1])
        for name, password in (("Ann", "wrong password"), ("Zoe", PASSWORD), ("", ""))
    }
    assert len(answers) == 1
    assert "The name or the password is wrong." in answers.pop()
    assert client.post("/login", data={"name": "Ann"}, headers=PAGE).status_code == 401


def test_guessing_is_slowed_and_the_owner_keeps_the_session(app: Flask, client: FlaskClient, ann: Person) -> None:
    owner = client_of(app, "Ann")
    statuses = [client.post("/login", data={"name": "Ann", "password": "guess"}, headers=PAGE) for _ in range(7)]
    assert [one.status_code for one in statuses] == [401] * 5 + [429] * 2
    assert statuses[-1].headers["Retry-After"] == "1"
    assert owner.get("/api/conversations").status_code == 200


def test_a_cookie_is_for_us_alone_and_another_one_after_each_login(client: FlaskClient, ann: Person) -> None:
    first = client.post("/login", data={"name": "Ann", "password": PASSWORD}).headers["Set-Cookie"]
    assert re.fullmatch(r"session=[\w-]{43}; Expires=.*; Max-Age=2592000; HttpOnly; Path=/; SameSite=Lax", first)
    again = client.post("/login", data={"name": "Ann", "password": PASSWORD}).headers["Set-Cookie"]
    assert again.split(";")[0] != first.split(";")[0]
    # What was there before the login is over.
    old = client.application.test_client()
    old.set_cookie("session", first.split(";")[0].partition("=")[2])
    assert old.get("/api/conversations").status_code == 401


def test_behind_https_the_cookie_is_secure_and_bound_to_the_host(app: Flask, ann: Person) -> None:
    client = app.test_client()
    secure = {"base_url": "https://localhost"}
    made = client.post("/login", data={"name": "Ann", "password": PASSWORD}, **secure).headers["Set-Cookie"]
    assert made.startswith("__Host-session=")
    assert "; Secure;" in made
    assert "; Path=/;" in made
    assert "Domain" not in made
    assert client.get("/api/conversations", **secure).status_code == 200
    plain = app.test_client()
    plain.set_cookie("session", made.split(";")[0].partition("=")[2], domain="localhost")
    assert plain.get("/api/conversations", **secure).status_code == 401


def test_signing_out_ends_the_session_and_not_only_the_cookie(app: Flask, ann: Person) -> None:
    client = client_of(app, "Ann")
    cookie = client.get_cookie("session")
    assert cookie is not None
    assert post(client, "/logout")[0] == 303
    assert client.get_cookie("session") is None
    client.set_cookie("session", cookie.value)
    assert client.get("/api/conversations").status_code == 401


def test_sessions_are_listed_and_ended_by_their_owner_alone(app: Flask, services: Services, ben: Person) -> None:
    here, there, other = client_of(app, "Ben"), client_of(app, "Ben"), client_of(app, "Ann")
    sessions = services.accounts.credentials.sessions_of(ben.id)
    assert len(sessions) == 2
    page = here.get("/account", headers=PAGE).text
    assert page.count("this browser") == 1
    ended = [int(number) for number in re.findall(r"/account/sessions/(\d+)/end", page)]
    assert len(ended) == 1
    assert other.post(f"/account/sessions/{ended[0]}/end").status_code == 404
    assert there.get("/api/conversations").status_code == 200
    assert post(here, f"/account/sessions/{ended[0]}/end")[0] == 303
    assert there.get("/api/conversations").status_code == 401
    assert here.get("/api/conversations").status_code == 200
    again = client_of(app, "Ben")
    assert post(here, "/account/sessions/end")[0] == 303
    assert again.get("/api/conversations").status_code == 401
    assert other.get("/api/conversations").status_code == 200


def test_another_password_ends_every_other_session(app: Flask, ben: Person) -> None:
    here, there = client_of(app, "Ben"), client_of(app, "Ben")
    new = "another few words"
    assert post(here, "/account/password", old="wrong one here", new=new)[0] == 401
    status, page = post(here, "/account/password", old=PASSWORD, new="short")
    assert (status, "has 5 characters" in page) == (422, True)
    assert post(here, "/account/password", old=PASSWORD, new=new)[0] == 303
    assert here.get("/api/conversations").status_code == 200
    assert there.get("/api/conversations").status_code == 401
    assert post(app.test_client(), "/login", name="Ben", password=PASSWORD)[0] == 401
    client_of(app, "Ben", new)


def test_an_upload_of_nobody_is_refused_before_it_is_read(client: FlaskClient, services: Services, ann: Person) -> None:
    class Unread(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise AssertionError("somebody read it")

    headers = {"Content-Length": "1000000", "Content-Type": "multipart/form-data; boundary=x"}
    response = client.post("/api/documents", input_stream=Unread(), headers=headers)
    assert response.status_code == 401
    assert services.uploads.names() == set()


@pytest.mark.long
@pytest.mark.parametrize("how", ["session ended", "password changed", "account disabled"])
def test_a_stream_ends_within_five_seconds_of_what_let_it_in(
    app: Flask, services: Services, ben: Person, stub: StubModel, how: str
) -> None:
    stub.replies.append(Reply("word " * 60, seconds_between=0.4))
    here, admin = client_of(app, "Ben"), client_of(app, "Ann")
    response = client_of(app, "Ben").post("/api/query/stream", json={"question": "Why?"})
    if how == "session ended":
        services.accounts.credentials.end_sessions(ben.id)
    elif how == "password changed":
        assert post(here, "/account/password", old=PASSWORD, new="another few words")[0] == 303
    else:
        assert post(admin, f"/people/{ben.id}/disabled", disabled="true")[0] == 303
    events = events_of(response.data)
    text = "".join(data["text"] for event, _, data in events if event == "token")
    assert len(text) <= len("word ") * 5 / 0.4, "it went on for more than five seconds"
    assert events[-1][2]["error"]["type"] == "NotSignedIn"


def test_of_many_sessions_the_oldest_ends(
    app: Flask, services: Services, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.storage.accounts.credentials.MAX_SESSIONS", 3)
    clients = [client_of(app, "Ann") for _ in range(4)]
    assert [one.get("/api/conversations").status_code for one in clients] == [401, 200, 200, 200]
    assert len(services.accounts.credentials.sessions_of(ann.id)) == 3


@pytest.mark.parametrize("reason", ["database or disk is full", "attempt to write a readonly database"])
def test_who_is_signed_in_stays_so_while_nothing_can_be_stored(
    app: Flask, services: Services, ann: Person, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    owner = client_of(app, "Ann")
    token = {"Authorization": f"Bearer {services.accounts.make_token(ann, 'laptop', ['read'], None, Actor('Ann'))[0]}"}
    with services.database.write() as connection:
        for table in (sessions, api_tokens):
            connection.execute(update(table).values(used_at=now() - timedelta(hours=1)))
    monkeypatch.setattr(Database, "write", lambda *_, **__: failing(reason))
    assert owner.get("/", headers=PAGE).status_code == 200
    assert owner.get("/api/conversations").status_code == 200
    assert app.test_client().get("/api/conversations", headers=token).status_code == 200
    with pytest.raises(StorageFailed):
        services.accounts.start_session(ann, "127.0.0.1", "a browser")
