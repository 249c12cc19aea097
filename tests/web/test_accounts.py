"""Coming in and going out: sessions, passwords, links, tokens, and what an administrator does."""

import io
import re
import time
from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.errors import LastAdmin, SettingsError
from rag_assistant.factory import create_app
from rag_assistant.records import Person
from rag_assistant.web.policy import POLICIES, without_policy
from rag_assistant.web.services import Services
from testkit.people import ACTOR, PASSWORD, add_person, client_of, quick_passwords, token_client
from testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, events_of, post, upload


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture
def ann(services: Services) -> Person:
    """The first account."""
    return add_person(services, "Ann", "admin")


@pytest.fixture
def ben(ann: Person, services: Services) -> Person:
    return add_person(services, "Ben")


def test_alone_nothing_is_asked_and_the_database_is_asked_once_a_second(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    before = services.accounts._people.any

    def counted() -> bool:
        nonlocal asked
        asked += 1
        return before()

    monkeypatch.setattr(services.accounts._people, "any", counted)
    monkeypatch.setattr(services.accounts, "_clock", lambda: 0.0)  # All of it within one second, however slow.
    page = client.get("/", headers=PAGE)
    for _ in range(20):
        assert client.get("/api/conversations").status_code == 200
    assert page.status_code == 200
    assert "Sign out" not in page.text
    assert "/account" not in page.text
    assert asked <= 2
    assert client.get("/login", headers=PAGE).headers["Location"] == "/"
    assert client.get("/account", headers=PAGE).status_code == 403


def test_what_is_done_for_a_person_is_the_work_of_this_process_under_whatever_name(
    services: Services, ann: Person
) -> None:
    for name in (services.turns.owner, "after it was taken for dead"):
        services.membership.take_name(name)
        own = services.of_person(ann.id, True)
        assert name
        assert {own.conversations.owner, own.turns.owner, own.documents.worker} == {name}
        assert own.membership is services.membership


def test_a_server_that_runs_sees_the_first_account_within_a_second(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/api/conversations").status_code == 200
    services.accounts._people.add("Ann", "admin", None)
    end = time.monotonic() + 3
    while client.get("/api/conversations").status_code != 401:
        assert time.monotonic() < end
        time.sleep(0.05)


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


@pytest.mark.parametrize(
    "place", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "", "/a\nb"]
)
def test_the_login_leads_to_no_other_host(client: FlaskClient, ann: Person, place: str) -> None:
    assert post(client, "/login", name="Ann", password=PASSWORD, next=place) == (303, "/")


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
    sessions = services.accounts.sessions_of(ben)
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


def test_a_link_lets_somebody_choose_a_password_once(app: Flask, services: Services, ben: Person) -> None:
    before = client_of(app, "Ben")
    admin = client_of(app, "Ann")
    _, page = post(admin, f"/people/{ben.id}/link")
    found = re.search(r"http://localhost(/choose-password\?link=[\w-]+)", page)
    assert found is not None
    link = found[1]
    guest = app.test_client()
    assert "Ben" in guest.get(link, headers=PAGE).text
    secret = link.partition("=")[2]
    assert post(guest, "/choose-password", link=secret, password="short")[0] == 422
    assert post(guest, "/choose-password", link=secret, password="chosen by a link") == (303, "/")
    assert guest.get("/api/conversations").status_code == 200
    assert before.get("/api/conversations").status_code == 401
    assert guest.get(link, headers=PAGE).status_code == 410
    assert post(guest, "/choose-password", link=secret, password="chosen once more")[0] == 410
    client_of(app, "Ben", "chosen by a link")


def test_an_administrator_makes_disables_and_deletes_accounts(app: Flask, services: Services, ann: Person) -> None:
    admin = client_of(app, "Ann")
    status, page = post(admin, "/people", name="Ben", role="member")
    assert (status, "/choose-password?link=" in page) == (200, True)
    ben = services.accounts.named("ben")
    assert post(admin, "/people", name="BEN", role="member")[0] == 409
    services.accounts.use_link(services.accounts.make_link(ben, ACTOR), PASSWORD, "", "")
    theirs = client_of(app, "Ben")
    ask(theirs, "Secret?")
    upload(theirs, "Ben's text.")
    assert post(admin, f"/people/{ben.id}/disabled", disabled="true")[0] == 303
    assert theirs.get("/api/conversations").status_code == 401
    assert post(app.test_client(), "/login", name="Ben", password=PASSWORD)[0] == 401
    assert post(admin, f"/people/{ben.id}/disabled", disabled="false")[0] == 303
    assert ask(client_of(app, "Ben"), "More?")["status"] == "completed"
    assert post(admin, f"/people/{ben.id}/delete", name="wrong")[0] == 422
    assert post(admin, f"/people/{ben.id}/delete", name="Ben")[0] == 303
    assert [one.name for one in services.accounts.all()] == ["Ann"]
    assert services.conversations.page(9) == []
    assert services.documents.page(9) == []
    audit = admin.get("/people", headers=PAGE).text
    for done in ("made an account (member)", "disabled", "enabled", "deleted with everything"):
        assert done in audit
    assert "Secret?" not in audit


def test_what_somebody_has_can_go_to_somebody_else(app: Flask, services: Services, ann: Person, ben: Person) -> None:
    client = client_of(app, "Ben")
    conversation = ask(client, "Kept?")["conversation_id"]
    document = upload(client, "Ben's text.")["document_id"]
    services.delete_account(ben, ACTOR, ann)
    heir = client_of(app, "Ann")
    assert heir.get(f"/api/conversations/{conversation}").json["title"] == "Kept?"
    assert heir.get(f"/api/documents/{document}").status_code == 200
    assert client.get("/api/conversations").status_code == 401


def test_there_is_always_an_administrator(services: Services, ann: Person, ben: Person) -> None:
    with pytest.raises(LastAdmin):
        services.accounts.set_role(ann, "member", ACTOR)
    with pytest.raises(LastAdmin):
        services.accounts.set_disabled(ann, True, ACTOR)
    with pytest.raises(LastAdmin):
        services.delete_account(ann, ACTOR, ben)
    assert services.accounts.get(ann.id) == ann
    services.accounts.set_role(ben, "admin", ACTOR)
    services.accounts.set_role(ann, "member", ACTOR)


def test_a_member_manages_nothing(app: Flask, ben: Person) -> None:
    client = client_of(app, "Ben")
    for path in ("/people", "/api/settings"):
        assert client.get(path).status_code == 403, path
    for path in ("/people", "/people/1/disabled", "/api/model/test", "/settings/test"):
        assert client.post(path).status_code == 403, path
    page = client.get("/settings", headers=PAGE)
    assert page.status_code == 200
    assert "settings.json" not in page.text
    assert "openai_base_url" not in page.text
    assert "/people" not in client.get("/", headers=PAGE).text


def test_a_token_does_what_it_was_made_for(app: Flask, services: Services, ben: Person) -> None:
    reader = token_client(app, services, ben, "read")
    asker = token_client(app, services, ben, "read", "ask")
    filer = token_client(app, services, ben, "documents")
    assert reader.get("/api/conversations").status_code == 200
    refused = reader.post("/api/query", json={"question": "Why?"})
    assert (refused.status_code, refused.json["error"]["type"]) == (403, "NotAllowed")
    assert '"ask"' in refused.json["error"]["message"]
    assert ask(asker)["status"] == "completed"
    assert asker.post("/api/query/stream", json={"question": "And?"}).status_code == 200
    assert asker.post("/api/documents").status_code == 403
    assert filer.get("/api/conversations").status_code == 403
    for path in ("/account", "/people"):
        assert asker.get(path).status_code == 403
    with pytest.raises(Exception, match="Only an administrator"):
        services.accounts.make_token(ben, "x", ["admin"], None, ACTOR)


def test_a_token_is_shown_once_and_works_until_it_is_revoked(app: Flask, ben: Person) -> None:
    client = client_of(app, "Ben")
    status, page = post(client, "/account/tokens", name="Laptop", scopes="read", days="30")
    secret = re.search(r"<code>(rag_[\w-]{43})</code>", page)
    assert status == 200
    assert secret is not None
    page = client.get("/account", headers=PAGE).text
    assert secret[1] not in page
    assert f"<code>{secret[1][:10]}…</code>" in page
    assert "never used" in page
    program = app.test_client()
    bearer = {"Authorization": f"Bearer {secret[1]}"}
    assert program.get("/api/conversations", headers=bearer).status_code == 200
    page = client.get("/account", headers=PAGE).text
    assert "never used" not in page
    revoke = re.search(r"/account/tokens/\d+/revoke", page)
    assert revoke is not None
    assert client_of(app, "Ann").post(revoke[0]).status_code == 404
    assert post(client, revoke[0])[0] == 303
    assert program.get("/api/conversations", headers=bearer).status_code == 401


def test_a_session_is_no_token_and_a_token_no_session(app: Flask, services: Services, ben: Person) -> None:
    client = client_of(app, "Ben")
    cookie = client.get_cookie("session")
    assert cookie is not None
    secret, _ = services.accounts.make_token(ben, "x", ["read"], None, ACTOR)
    swapped = app.test_client()
    assert swapped.get("/api/conversations", headers={"Authorization": f"Bearer {cookie.value}"}).status_code == 401
    swapped.set_cookie("session", secret)
    assert swapped.get("/api/conversations").status_code == 401
    both = client.get("/api/conversations", headers={"Authorization": f"Bearer {secret}"})
    assert (both.status_code, both.json["error"]["type"]) == (400, "MalformedBody")


def test_a_token_of_a_former_administrator_manages_nothing(app: Flask, services: Services, ben: Person) -> None:
    services.accounts.set_role(ben, "admin", ACTOR)
    program = token_client(app, services, services.accounts.get(ben.id), "admin")
    assert program.get("/api/settings").status_code == 200
    services.accounts.set_role(ben, "member", ACTOR)
    assert program.get("/api/settings").status_code == 403


def test_an_upload_of_nobody_is_refused_before_it_is_read(client: FlaskClient, services: Services, ann: Person) -> None:
    class Unread(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise AssertionError("somebody read it")

    headers = {"Content-Length": "1000000", "Content-Type": "multipart/form-data; boundary=x"}
    response = client.post("/api/documents", input_stream=Unread(), headers=headers)
    assert response.status_code == 401
    assert services.uploads.names() == set()


def test_a_stream_ends_soon_after_its_session(app: Flask, services: Services, ben: Person, stub: StubModel) -> None:
    stub.replies.append(Reply("word " * 60, seconds_between=0.4))
    client = client_of(app, "Ben")
    response = client.post("/api/query/stream", json={"question": "Why?"})
    services.accounts._credentials.end_sessions(ben.id)
    events = events_of(response.data)
    text = "".join(data["text"] for event, _, data in events if event == "token")
    assert len(text) < len("word " * 60), "it went on to the end of the answer"
    assert events[-1][2]["error"]["type"] == "NotSignedIn"


@pytest.fixture
def limited(environment: dict[str, str], stand_ins: None) -> Iterator[Flask]:
    """A server with narrow limits, on which Ann and Ben have accounts."""
    limits = {"MAX_QUESTIONS_PER_MINUTE": "3", "MAX_RUNNING_ANSWERS_PER_PERSON": "1", "MAX_STORED_MB_PER_PERSON": "1"}
    made = create_app(environment | limits)
    services: Services = made.extensions["assistant"]
    services.start()
    for name in ("Ann", "Ben"):
        add_person(services, name)
    yield made
    services.close()


def test_one_persons_questions_end_and_the_others_go_on(limited: Flask) -> None:
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    first = ann.post("/api/query", json={"question": "Why?"}, headers={"Idempotency-Key": "k"}).json
    assert ann.post(f"/api/turns/{first['turn_id']}/regenerate").status_code == 202
    assert events_of(ann.get(f"/api/turns/{first['turn_id']}/stream").data)[-1][0] == "end"
    ask(ann)
    refused = ann.post("/api/query", json={"question": "Why?"})
    assert (refused.status_code, refused.json["error"]["type"]) == (429, "LimitReached")
    assert 50 <= int(refused.headers["Retry-After"]) <= 60
    assert ann.post(f"/api/turns/{first['turn_id']}/regenerate").status_code == 429
    again = ann.post("/api/query", json={"question": "Why?"}, headers={"Idempotency-Key": "k"})
    assert again.json["turn_id"] == first["turn_id"]
    assert ask(ben)["status"] == "completed"
    assert "Questions in the last minute: 3 of 3" in ann.get("/account", headers=PAGE).text


def test_one_persons_answers_at_once_are_bounded(limited: Flask, stub: StubModel) -> None:
    stub.replies.append(Reply("word " * 20, seconds_between=0.1))
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    running = ann.post("/api/query/stream", json={"question": "Slow?"})
    refused = ann.post("/api/query", json={"question": "More?"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
    assert ask(ben)["status"] == "completed"
    assert events_of(running.data)[-1][0] == "end"
    assert ask(ann)["status"] == "completed"


def test_one_persons_files_have_a_size(limited: Flask) -> None:
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    for letter in "ab":
        upload(ann, f"{letter} " * 200_000, wait=False)
    refused = ann.post("/api/documents", data={"file": (io.BytesIO(b"c " * 200_000), "c.txt")})
    assert (refused.status_code, refused.json["error"]["type"]) == (413, "StorageLimitReached")
    assert "more than 1 MB together" in refused.json["error"]["message"]
    services: Services = limited.extensions["assistant"]
    assert len(services.uploads.names()) == 2
    upload(ben, "c " * 200_000, wait=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_an_address_that_others_reach_needs_an_account_first(
    environment: dict[str, str], stand_ins: None, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.web.services.in_container", lambda: False)
    app = create_app(environment | {"HOST": host})
    services: Services = app.extensions["assistant"]
    with pytest.raises(SettingsError, match=rf"host is {re.escape(host)}.*rag-assistant accounts add NAME --admin"):
        services.start()
    add_person(services, "Ann")
    services.start()
    assert app.test_client().get("/api/conversations").status_code == 401
    services.close()


def test_in_a_container_a_code_of_the_log_makes_the_first_account(
    environment: dict[str, str], stand_ins: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rag_assistant.web.services.in_container", lambda: True)
    app = create_app(environment | {"HOST": "0.0.0.0"})
    services: Services = app.extensions["assistant"]
    services.start()
    code = re.search(r"with this code: (\S+)", caplog.text)
    assert code is not None
    client = app.test_client()
    assert client.get("/api/conversations").status_code == 401
    assert client.post("/api/query", json={"question": "Why?"}).status_code == 401
    assert client.get("/", headers=PAGE).headers["Location"] == "/setup"
    assert "Make the first account" in client.get("/setup", headers=PAGE).text
    fields = {"name": "Ann", "password": PASSWORD}
    assert post(client, "/setup", code="wrong", **fields)[0] == 401
    assert post(client, "/setup", code=code[1], **fields) == (303, "/")
    assert client.get("/api/conversations").status_code == 200
    assert post(app.test_client(), "/setup", code=code[1], name="Eve", password=PASSWORD) == (303, "/")
    assert [one.name for one in services.accounts.all()] == ["Ann"]
    services.close()


def test_every_route_has_a_policy_and_the_public_ones_are_these(app: Flask) -> None:
    endpoints = {rule.endpoint for rule in app.url_map.iter_rules()}
    assert without_policy(endpoints) == []
    assert POLICIES.keys() == endpoints
    assert {name for name, policy in POLICIES.items() if policy.ability is None} == {
        "healthz", "readyz", "static", "versioned_static",
        *(f"account_pages.{name}" for name in ("login", "sign_in", "setup", "make_first", "choose_password")),
        "account_pages.keep_password",
        *(f"provider_pages.{name}" for name in ("begin", "begin_with_invitation", "come_back")),
        "openapi.openapi_json", "openapi.docs", "mcp.llms_txt", "help_pages.front", "help_pages.page",
        *(f"installable.{name}" for name in ("manifest", "service_worker", "offline")),
    }  # fmt: skip
    app.add_url_rule("/new", "new", lambda: "")
    assert without_policy(rule.endpoint for rule in app.url_map.iter_rules()) == ["new"]


@pytest.mark.parametrize(("trusted", "expected"), [('["10.0.0.2"]', "203.0.113.9 https"), ("[]", "10.0.0.2 http")])
def test_only_a_named_proxy_says_where_a_request_comes_from(
    environment: dict[str, str], stand_ins: None, trusted: str, expected: str
) -> None:
    told = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    app = create_app(environment | {"TRUSTED_PROXIES": trusted})
    seen: list[str] = []
    app.before_request(lambda: seen.append(_where()))
    answer = app.test_client().get("/healthz", headers=told, environ_base={"REMOTE_ADDR": "10.0.0.2"})
    assert answer.status_code == 200
    assert seen == [expected]
    app.extensions["assistant"].close()


def _where() -> str:
    from flask import request

    assert request.host == "localhost"
    return f"{request.remote_addr} {request.scheme}"


def test_secrets_are_in_no_page_log_or_table(
    app: Flask, services: Services, ben: Person, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(app, "Ben")
    cookie = client.get_cookie("session")
    assert cookie is not None
    secret, _ = services.accounts.make_token(ben, "x", ["read"], None, ACTOR)
    link = services.accounts.make_link(ben, ACTOR)
    admin = client_of(app, "Ann")
    seen = "".join(one.get(path, headers=PAGE).text for one in (client, admin) for path in ("/account", "/people", "/"))
    kept = b"".join(path.read_bytes() for path in services.database.file.parent.glob("assistant.db*"))
    for canary in (cookie.value, secret, link, PASSWORD):
        assert canary not in seen + caplog.text
        assert canary.encode() not in kept
