"""Signing in by the header of a proxy: believed from the addresses of the settings, and from nowhere else."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask, request_started
from flask.testing import FlaskClient

from rag_assistant.records.errors import SettingsError
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.people import ACTOR, PASSWORD, add_person, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, events_of

Make = Callable[..., Flask]
PROXY, ELSEWHERE = "172.18.0.7", "172.19.0.7"


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture
def make(environment: dict[str, str]) -> Iterator[Make]:
    """Makes a server behind a proxy, on which Ann is the administrator."""
    made: list[Flask] = []

    def _make(**settings: str) -> Flask:
        known = {"PROXY_USER_HEADER": "Remote-User", "PROXY_USER_FROM": '["172.18.0.0/16", "::1"]'}
        for former in made:
            former.extensions["assistant"].close()
        app = create_app(environment | known | settings)
        services = services_of(app)
        if not services.accounts.any():
            add_person(services, "Ann", "admin")
        services.start()
        made.append(app)
        return app

    yield _make
    for app in made[-1:]:
        app.extensions["assistant"].close()


def from_proxy(app: Flask, name: str, address: str = PROXY, **headers: str) -> FlaskClient:
    """Return a client whose requests come by way of a proxy, with a name as WSGI has it: UTF-8 read as Latin-1."""
    client = app.test_client()
    client.environ_base |= {"REMOTE_ADDR": address, "HTTP_REMOTE_USER": name.encode().decode("latin-1")}
    client.environ_base |= {f"HTTP_{header.upper()}": value for header, value in headers.items()}
    return client


def services_of(app: Flask) -> Services:
    found: Services = app.extensions["assistant"]
    return found


def test_whom_the_proxy_names_is_signed_in(make: Make) -> None:
    app = make()
    client = from_proxy(app, "ann")
    assert "<bdi>Ann</bdi>" in client.get("/", headers=PAGE).text
    assert ask(client)["status"] == "completed"
    page = client.get("/account", headers=PAGE).text
    assert "API tokens" in page
    assert "Current password" not in page
    assert client.get("/people", headers=PAGE).status_code == 200
    assert client.get("/login", headers=PAGE).headers["Location"] == "/"
    assert not client.get("/", headers=PAGE).headers.getlist("Set-Cookie")


def test_from_any_other_address_the_header_is_taken_away(make: Make) -> None:
    app = make()
    seen: list[str | None] = []
    with request_started.connected_to(lambda _: seen.append(_header()), app):
        for address in (ELSEWHERE, "127.0.0.1", "::ffff:172.19.0.7", "2001:db8::1", "", "unix:", "proxy"):
            client = from_proxy(app, "Ann", address)
            assert client.get("/api/conversations").status_code == 401, address
            assert client.get("/", headers=PAGE).headers["Location"].startswith("/login")
    assert set(seen) == {None}


def _header() -> str | None:
    from flask import request

    return request.headers.get("Remote-User")


def test_the_addresses_may_be_networks(make: Make) -> None:
    app = make()
    for address in (PROXY, "::ffff:172.18.0.7", "::1"):
        assert from_proxy(app, "Ann", address).get("/api/conversations").status_code == 200, address


def test_a_header_that_says_where_a_request_comes_from_does_not_make_it_the_proxys(make: Make) -> None:
    app = make(TRUSTED_PROXIES=f'["{ELSEWHERE}"]')
    forged = from_proxy(app, "Ann", ELSEWHERE, x_forwarded_for=PROXY)
    assert forged.get("/api/conversations").status_code == 401
    # And the other way round: the proxy says from where a person comes, and is believed about both.
    app = make(TRUSTED_PROXIES='["172.18.0.0/16"]')
    told = from_proxy(app, "Ann", x_forwarded_for="203.0.113.9", x_forwarded_proto="https")
    assert told.get("/api/conversations").status_code == 200


def test_off_by_default_the_header_says_nothing(app: Flask, services: Services) -> None:
    add_person(services, "Ann", "admin")
    for name in ("REMOTE_USER", "X_FORWARDED_USER"):
        client = app.test_client()
        client.environ_base |= {f"HTTP_{name}": "Ann", "REMOTE_USER": "Ann"}
        assert client.get("/api/conversations").status_code == 401


def test_there_is_no_form_and_no_password_lets_in(make: Make) -> None:
    app = make()
    client = app.test_client()
    page = client.get("/login", headers=PAGE)
    assert "The proxy in front of this server signs people in" in page.text
    assert "<form" not in page.text
    assert client.post("/login", data={"name": "Ann", "password": PASSWORD}, headers=PAGE).status_code == 403
    services = services_of(app)
    ann = services.accounts.people.get("Ann")
    link = services.accounts.make_link(ann, ACTOR)
    assert client.get(f"/choose-password?link={link}", headers=PAGE).status_code == 403
    assert client.post("/choose-password", data={"link": link, "password": PASSWORD}).status_code == 403
    # Nor does a session of before.
    client.set_cookie("session", services.accounts.start_session(ann, "127.0.0.1", ""))
    assert client.get("/api/conversations").status_code == 401


def test_who_has_no_account_gets_one_only_where_that_is_allowed(make: Make) -> None:
    app = make()
    refused = from_proxy(app, "zoë").get("/", headers=PAGE)
    assert (refused.status_code, "There is no account &#34;zoë&#34;." in refused.text) == (403, True)
    assert from_proxy(app, "zoë").get("/healthz").status_code == 200
    app = make(PROXY_CREATE_ACCOUNTS="true")
    client = from_proxy(app, "zoë")
    assert client.get("/api/conversations").status_code == 200
    assert client.get("/api/conversations").status_code == 200
    people = services_of(app).accounts.people.all()
    assert [(one.name, one.role, one.has_password) for one in people] == [
        ("Ann", "admin", True),
        ("zoë", "member", False),
    ]
    made = services_of(app).accounts.log.newest(1)[0]
    assert (made.actor, made.action, made.subject, made.address) == (
        "proxy",
        "created an account (member)",
        "zoë",
        PROXY,
    )


@pytest.mark.parametrize("create", ["false", "true"])
def test_a_name_that_only_looks_like_another_is_not_that_ones(make: Make, create: str) -> None:
    app = make(PROXY_CREATE_ACCOUNTS=create)
    for name in ("\uff21nn", "\u24d0nn", "Ann,Ben", "a\u00adnn", "x" * 65, "a\x07b"):
        assert from_proxy(app, name).get("/api/conversations").status_code in (403, 422), name
    assert [one.name for one in services_of(app).accounts.people.all()] == ["Ann"]


def test_a_header_that_is_no_text_is_refused(make: Make) -> None:
    client = make().test_client()
    client.environ_base |= {"REMOTE_ADDR": PROXY, "HTTP_REMOTE_USER": "\xff\xfe"}
    refused = client.get("/api/conversations")
    assert (refused.status_code, "Remote-User" in refused.json["error"]["message"]) == (403, True)


@pytest.mark.long
def test_disabled_people_stay_out_and_what_is_open_ends(make: Make, stub: StubModel) -> None:
    app = make()
    services = services_of(app)
    ben = add_person(services, "Ben")
    client = from_proxy(app, "Ben")
    stub.replies.append(Reply("word " * 40, seconds_between=0.4))
    response = client.post("/api/query/stream", json={"question": "Why?"})
    services.accounts.set_disabled(ben, True, ACTOR)
    assert events_of(response.data)[-1][2]["error"]["type"] == "NotSignedIn"
    refused = client.get("/api/conversations")
    assert (refused.status_code, "This account is disabled." in refused.text) == (403, True)


def test_groups_of_the_header_decide_who_is_an_administrator(make: Make) -> None:
    app = make(PROXY_GROUPS_HEADER="Remote-Groups", PROXY_ADMIN_GROUP="boss", PROXY_CREATE_ACCOUNTS="true")

    def role(groups: str, address: str = PROXY) -> str:
        from_proxy(app, "ben", address, remote_groups=groups).get("/api/conversations")
        return services_of(app).accounts.people.get("ben").role

    assert role("staff") == "member"
    assert role("staff, boss") == "admin"
    assert role("bossy") == "member"
    assert role("a|boss") == "admin"
    assert role("", ELSEWHERE) == "admin"
    assert role("") == "member"
    # Ann is in no such group, and the last administrator.
    assert from_proxy(app, "Ann").get("/api/settings").status_code == 200


def test_a_token_goes_on_without_a_name_and_is_refused_beside_one(make: Make) -> None:
    app = make()
    services = services_of(app)
    secret, _ = services.accounts.make_token(services.accounts.people.get("Ann"), "x", ["read"], None, ACTOR)
    bearer = {"Authorization": f"Bearer {secret}"}
    program = app.test_client()
    assert program.get("/api/conversations", headers=bearer).status_code == 200
    assert program.post("/api/query", json={"question": "Why?"}, headers=bearer).status_code == 403
    named = from_proxy(app, "Ann")
    assert named.get("/api/conversations", headers=bearer).status_code == 400
    # A proxy may hand on a token of its own.
    assert named.get("/api/conversations", headers={"Authorization": "Bearer eyJhbGciOi"}).status_code == 200
    assert program.get("/api/conversations", headers={"Authorization": "Bearer eyJhbGciOi"}).status_code == 401


def test_a_page_elsewhere_does_nothing_in_the_name_of_whom_the_proxy_names(make: Make) -> None:
    client = from_proxy(make(), "Ann")
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert client.post("/api/query", json={"question": "Why?"}, headers=headers).status_code == 403


def test_signing_out_is_the_proxys(make: Make) -> None:
    page = from_proxy(make(), "Ann").get("/account", headers=PAGE).text
    assert "Sign out" not in page
    page = from_proxy(make(PROXY_LOGOUT_LINK="/oauth2/sign_out?rd=/"), "Ann").get("/account", headers=PAGE).text
    assert '<a class="button" href="/oauth2/sign_out?rd=/">Sign out</a>' in page


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"PROXY_USER_FROM": "[]"}, "set proxy_user_from, too"),
        ({"PROXY_USER_FROM": '["10.0.0.0/33"]'}, r"proxy_user_from\[0\] is .* must be a list of addresses or"),
        ({"PROXY_USER_HEADER": "Remote_User"}, "proxy_user_header is .* it must be the name of a header"),
        ({"PROXY_LOGOUT_LINK": "javascript:alert(1)"}, "proxy_logout_link is .* it must be a URL or a path"),
        ({"PROXY_LOGOUT_LINK": "//evil.example"}, "proxy_logout_link is"),
        ({"TRUSTED_PROXIES": '["proxy"]'}, r"trusted_proxies\[0\] is .* must be a list of addresses or"),
    ],
)
def test_settings_that_name_no_proxy_are_refused_at_the_start(
    make: Make, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        make(**settings)
