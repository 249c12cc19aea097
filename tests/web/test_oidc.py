"""Signing in with a provider of OpenID Connect: what works, and what a hostile or broken provider cannot do."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

pytest.importorskip("authlib", reason="pip install -r requirements-oidc.txt")

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from rag_assistant.errors import SettingsError
from rag_assistant.factory import create_app
from rag_assistant.records import Person
from rag_assistant.web.services import Services
from testkit import oidc_stub
from testkit.oidc_stub import CLIENT_ID, CLIENT_SECRET, Signer, StubProvider, key_named
from testkit.people import ACTOR, PASSWORD, add_person, client_of, quick_passwords
from tests.web.conftest import PAGE, post

Make = Callable[..., Flask]


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture
def provider() -> Iterator[StubProvider]:
    made = StubProvider()
    yield made
    made.close()


@pytest.fixture
def make(environment: dict[str, str], stand_ins: None, provider: StubProvider) -> Iterator[Make]:
    """Makes a server that knows the provider, on which Ann is the administrator."""
    made: list[Flask] = []

    def _make(**settings: str) -> Flask:
        known = {
            "OIDC_ISSUER": provider.issuer,
            "OIDC_CLIENT_ID": CLIENT_ID,
            "OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "OIDC_LABEL": "Stub",
            "OIDC_CREATE_ACCOUNTS": "true",
            "OIDC_ALLOWED_DOMAINS": '["*"]',
        }
        app = create_app(environment | known | settings)
        add_person(app.extensions["assistant"], "Ann", "admin")
        app.extensions["assistant"].start()
        made.append(app)
        return app

    yield _make
    for app in made:
        app.extensions["assistant"].close()


def begin(client: FlaskClient, asked: str = "", **more: Any) -> str:
    """Begin a sign-in and return where the browser is sent."""
    response = client.get("/login/provider", query_string={"next": asked} if asked else {}, headers=PAGE, **more)
    assert response.status_code == 303, response.text
    return response.headers["Location"]


def come_back(client: FlaskClient, answer: dict[str, str], **more: Any) -> TestResponse:
    return client.get(f"/login/provider/callback?{urlencode(answer)}", headers=PAGE, **more)


def sign_in(client: FlaskClient, provider: StubProvider, asked: str = "") -> TestResponse:
    return come_back(client, provider.authorize(begin(client, asked)))


def names(app: Flask) -> list[str]:
    services: Services = app.extensions["assistant"]
    return [one.name for one in services.accounts.all()]


def audit(app: Flask) -> str:
    services: Services = app.extensions["assistant"]
    return "\n".join(f"{one.actor}: {one.action}: {one.subject}" for one in services.accounts.audit(100))


def link(client: FlaskClient, provider: StubProvider) -> TestResponse:
    """Link the provider's user with whoever is signed in."""
    page = client.post("/account/identities", headers=PAGE)
    assert page.status_code == 200, page.text
    return come_back(client, provider.authorize(href_of(page.text)))


def href_of(page: str) -> str:
    import html
    import re

    found = re.search(r'href="(http[^"]+/authorize\?[^"]+)"', page)
    assert found is not None, page
    return html.unescape(found[1])


def test_a_person_signs_in_and_comes_back_as_the_same(make: Make, provider: StubProvider) -> None:
    app = make()
    client = app.test_client()
    assert "Sign in with Stub" in client.get("/login", headers=PAGE).text
    answered = sign_in(client, provider, "/documents?tag=a")
    assert (answered.status_code, answered.headers["Location"]) == (303, "/documents?tag=a")
    assert client.get("/api/conversations").status_code == 200
    assert "<bdi>zoe</bdi>" in client.get("/", headers=PAGE).text
    provider.user |= {"preferred_username": "renamed", "email": "other@example.org"}
    assert sign_in(app.test_client(), provider).status_code == 303
    assert names(app) == ["Ann", "zoe"]
    assert "Stub: made an account (member): zoe" in audit(app)


def test_the_browser_takes_along_what_the_protocol_asks_for(make: Make, provider: StubProvider) -> None:
    client = make().test_client()
    asked = parse_qs(urlsplit(begin(client)).query)
    assert asked["scope"] == ["openid profile email"]
    assert asked["redirect_uri"] == ["http://localhost/login/provider/callback"]
    for name in ("state", "nonce", "code_challenge"):
        assert len(asked[name][0]) == 43
    kept = client.get_cookie("sign-in")
    assert kept is not None
    assert kept.http_only
    assert kept.same_site == "Lax"
    assert not any(value[0] in kept.decoded_value for value in asked.values() if len(value[0]) == 43)


def test_below_a_path_and_behind_https_the_provider_leads_back_there(make: Make, provider: StubProvider) -> None:
    app = make(BASE_PATH="/assistant")
    client = app.test_client()
    secure = {"base_url": "https://localhost"}
    url = begin(client, **secure)
    assert parse_qs(urlsplit(url).query)["redirect_uri"] == ["https://localhost/assistant/login/provider/callback"]
    answered = come_back(client, provider.authorize(url), **secure)
    assert answered.headers["Location"] == "/assistant/"
    cookies = answered.headers.getlist("Set-Cookie")
    assert [one.split("=")[0] for one in cookies] == ["__Host-session", "__Host-sign-in"]
    assert all("; Secure;" in one and "; Path=/;" in f"{one};" for one in cookies)


def test_signing_in_leads_to_no_other_host(make: Make, provider: StubProvider) -> None:
    app = make()
    for place in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert sign_in(app.test_client(), provider, place).headers["Location"] == "/", place


def test_the_session_is_another_one_and_the_former_is_over(make: Make, provider: StubProvider) -> None:
    app = make()
    client = client_of(app, "Ann")
    before = client.get_cookie("session")
    sign_in(client, provider)
    after = client.get_cookie("session")
    assert before is not None
    assert after is not None
    assert before.value != after.value
    old = app.test_client()
    old.set_cookie("session", before.value)
    assert old.get("/api/conversations").status_code == 401


HOSTILE: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "somebody else"},
    "no audience": {"aud": None},
    "an audience that is a part": {"aud": CLIENT_ID[:-1]},
    "two audiences, issued to the other": {"aud": [CLIENT_ID, "other"], "azp": "other"},
    "two audiences, issued to nobody": {"aud": [CLIENT_ID, "other"]},
    "another issuer": {"iss": "https://evil.example"},
    "an issuer with a slash more": {"iss": "SLASH"},
    "no issuer": {"iss": None},
    "expired": {"exp": int(time.time()) - 3600},
    "no expiry": {"exp": None},
    "not yet": {"nbf": int(time.time()) + 3600},
    "issued later": {"iat": int(time.time()) + 3600},
    "no subject": {"sub": None},
    "a subject that is a number": {"sub": 7},
    "an empty subject": {"sub": ""},
    "a subject with a NUL": {"sub": "a\0"},
    "an endless subject": {"sub": "x" * 300},
    "another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


def test_an_id_token_that_is_not_for_this_sign_in_lets_nobody_in(make: Make, provider: StubProvider) -> None:
    app = make()
    client = app.test_client()
    for what, claims in HOSTILE.items():
        provider.claims = {name: f"{provider.issuer}/" if value == "SLASH" else value for name, value in claims.items()}
        refused = sign_in(client, provider)
        assert refused.status_code == 401, what
        assert "Stub gave an answer that does not count" in refused.text, what
        assert client.get("/api/conversations").status_code == 401, what
    assert names(app) == ["Ann"]


FORGED: list[Signer] = [
    oidc_stub.unsigned,
    oidc_stub.signed_with_public_key,
    oidc_stub.signed_with_client_secret,
    oidc_stub.signed_by_another,
    oidc_stub.with_own_key,
    oidc_stub.changed_afterwards,
    lambda *_: "",
    lambda *_: "a.b.c",
]


def test_a_signature_that_is_not_the_providers_lets_nobody_in(make: Make, provider: StubProvider) -> None:
    app = make()
    # Also if the provider says that it signs like this.
    provider.metadata = {"id_token_signing_alg_values_supported": ["none", "HS256", "RS256"]}
    for sign in FORGED:
        provider.sign = sign
        assert sign_in(app.test_client(), provider).status_code == 401, sign
    assert names(app) == ["Ann"]


def test_clocks_may_differ_by_a_minute(make: Make, provider: StubProvider) -> None:
    now = int(time.time())
    provider.claims = {"exp": now - 30, "iat": now + 30}
    assert sign_in(make().test_client(), provider).status_code == 303


def test_an_answer_counts_once_and_in_the_browser_that_began(make: Make, provider: StubProvider) -> None:
    app = make()
    client, other = app.test_client(), app.test_client()
    answer = provider.authorize(begin(client))
    stolen = come_back(other, answer)
    assert (stolen.status_code, "begun in another browser" in stolen.text) == (401, True)
    began = client.get_cookie("sign-in")
    assert began is not None
    assert come_back(client, answer).status_code == 303
    assert client.get_cookie("sign-in") is None
    client.post("/logout")
    assert come_back(client, answer).status_code == 401
    # Even with the cookie of before: the provider takes a code once.
    client.set_cookie("sign-in", began.value)
    assert come_back(client, answer).status_code == 401


def test_a_code_of_another_sign_in_is_refused(make: Make, provider: StubProvider) -> None:
    """Code injection: the code of somebody else in an answer with the right state."""
    app = make()
    victim, attacker = app.test_client(), app.test_client()
    code = provider.authorize(begin(victim))["code"]
    mine = provider.authorize(begin(attacker))
    refused = come_back(attacker, mine | {"code": code})
    assert refused.status_code == 401
    assert "canary of a description" not in refused.text
    for state in ("", "x", "å"):
        assert come_back(attacker, mine | {"state": state}).status_code == 401
    assert names(app) == ["Ann"]


def test_the_answer_of_another_provider_is_refused_before_a_code_is_sent(make: Make, provider: StubProvider) -> None:
    client = make().test_client()
    for told in ({"iss": "https://evil.example"}, {"iss": ""}):
        answer = provider.authorize(begin(client)) | told
        refused = come_back(client, answer)
        assert (refused.status_code, "not from Stub" in refused.text) == (401, True)
    without = provider.authorize(begin(client))
    del without["iss"]
    assert come_back(client, without).status_code == 401
    assert "/token" not in provider.requests


def test_user_info_about_somebody_else_is_refused(make: Make, provider: StubProvider) -> None:
    provider.userinfo = {"sub": "admin"}
    assert sign_in(make().test_client(), provider).status_code == 401


def test_keys_may_change_while_the_server_runs(make: Make, provider: StubProvider) -> None:
    app = make()
    assert sign_in(app.test_client(), provider).status_code == 303
    provider.key = key_named("second")
    assert sign_in(app.test_client(), provider).status_code == 303
    assert sign_in(app.test_client(), provider).status_code == 303
    assert provider.requests.count("/jwks") == 2
    assert provider.requests.count("/.well-known/openid-configuration") == 1


def test_what_the_provider_refuses_is_a_sentence(make: Make, provider: StubProvider) -> None:
    client = make().test_client()
    cases = [
        ({"error": "access_denied"}, "Stub did not let you in, or you did not agree."),
        ({"error": "server_error", "error_description": "<b>canary"}, "Stub could not sign you in"),
        ({"code": ""}, "Stub sent no code."),
        ({"code": "x" * 5000}, "Stub sent no code."),
        ({"code": "a\nb"}, "Stub sent no code."),
        ({"code": "unknown"}, "does not count"),
    ]
    for answer, sentence in cases:
        refused = come_back(client, provider.authorize(begin(client), **answer))
        assert refused.status_code == 401
        assert sentence in refused.text
        assert "canary" not in refused.text


BROKEN = [(500, b""), (200, b"no JSON"), (200, b"[]"), (200, b'{"a": "' + b"x" * 2_000_000 + b'"}'), (302, b"")]


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks", "/token", "/userinfo"])
def test_a_provider_that_is_broken_is_a_sentence_and_passwords_go_on(
    make: Make, provider: StubProvider, path: str
) -> None:
    app = make()
    client = app.test_client()
    for broken in BROKEN:
        provider.broken[path] = broken
        response = client.get("/login/provider", headers=PAGE)
        if response.status_code == 303:
            response = come_back(client, provider.authorize(response.headers["Location"]))
        assert response.status_code in (401, 503), broken
        assert "Stub" in response.text
        assert 'name="password"' in response.text
    assert client_of(app, "Ann").get("/api/conversations").status_code == 200
    del provider.broken[path]
    assert sign_in(client, provider).status_code == 303


def test_a_provider_that_is_away_is_a_sentence_and_passwords_go_on(make: Make, provider: StubProvider) -> None:
    app = make()
    provider.close()
    away = app.test_client().get("/login/provider", headers=PAGE)
    assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
    assert "Stub could not be reached. Try again in a moment, or sign in with a password." in away.text
    assert 'name="password"' in away.text
    client_of(app, "Ann")


def test_who_is_not_signed_in_keeps_nobody_else_from_signing_in(make: Make) -> None:
    app = make()
    with ExitStack() as unread:
        for _ in range(40):
            page = unread.enter_context(app.test_client().get("/login", headers=PAGE))
            assert page.status_code == 200
        client_of(app, "Ann")


@pytest.mark.parametrize("metadata", [{"issuer": "https://evil.example"}, {"token_endpoint": "http://evil.example/t"}])
def test_a_provider_that_is_another_or_sends_elsewhere_is_not_asked(
    make: Make, provider: StubProvider, metadata: dict[str, str]
) -> None:
    provider.metadata = metadata
    assert make().test_client().get("/login/provider", headers=PAGE).status_code == 401


def test_without_leave_to_make_accounts_only_those_come_in_who_are_linked(make: Make, provider: StubProvider) -> None:
    app = make(OIDC_CREATE_ACCOUNTS="false", OIDC_ALLOWED_DOMAINS="[]")
    refused = sign_in(app.test_client(), provider)
    assert (refused.status_code, "There is no account here that is linked to zoe." in refused.text) == (403, True)
    ann = client_of(app, "Ann")
    assert link(ann, provider).headers["Location"] == "/account"
    assert "Unlink" in ann.get("/account", headers=PAGE).text
    client = app.test_client()
    assert sign_in(client, provider).status_code == 303
    assert "<bdi>Ann</bdi>" in client.get("/", headers=PAGE).text
    assert names(app) == ["Ann"]
    assert "Ann: linked an account of Stub: Ann: zoe" in audit(app)


def test_a_name_or_an_address_alone_leads_to_no_account(make: Make, provider: StubProvider) -> None:
    app = make()
    provider.user = {"sub": "9", "preferred_username": "ANN", "email": "ann", "email_verified": True, "name": "Ann"}
    client = app.test_client()
    assert sign_in(client, provider).status_code == 303
    assert names(app) == ["Ann", "ANN 2"]
    assert client.get("/people").status_code == 403
    provider.user |= {"sub": "10"}
    sign_in(app.test_client(), provider)
    assert names(app) == ["Ann", "ANN 2", "ANN 3"]


def test_an_account_elsewhere_is_linked_to_one_person_who_is_signed_in(make: Make, provider: StubProvider) -> None:
    app = make()
    assert app.test_client().post("/account/identities").status_code == 401
    sign_in(app.test_client(), provider)
    taken = link(client_of(app, "Ann"), provider)
    assert (taken.status_code, "linked to somebody here already" in taken.text) == (409, True)
    # Signed out, or somebody else, meanwhile.
    add_person(app.extensions["assistant"], "Ben")
    provider.user = {"sub": "new"}
    client = client_of(app, "Ann")
    answer = provider.authorize(href_of(client.post("/account/identities", headers=PAGE).text))
    client.post("/login", data={"name": "Ben", "password": PASSWORD})
    assert come_back(client, answer).status_code == 401
    assert "linked an account" not in audit(app)


def test_a_page_elsewhere_cannot_have_an_account_linked(make: Make, provider: StubProvider) -> None:
    client = client_of(make(), "Ann")
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert client.post("/account/identities", headers=PAGE | headers).status_code == 403
    assert client.get("/account/identities", headers=PAGE).status_code == 405


def test_a_link_of_an_administrator_takes_the_provider_in_the_place_of_a_password(
    make: Make, provider: StubProvider
) -> None:
    app = make(OIDC_CREATE_ACCOUNTS="false")
    services: Services = app.extensions["assistant"]
    ben = services.accounts.add("Ben", "member", ACTOR)
    secret = services.accounts.make_link(ben, ACTOR)
    client = app.test_client()
    assert "Always sign in with Stub" in client.get(f"/choose-password?link={secret}", headers=PAGE).text
    page = client.post("/login/provider", data={"link": secret}, headers=PAGE)
    assert come_back(client, provider.authorize(href_of(page.text))).headers["Location"] == "/"
    assert "<bdi>Ben</bdi>" in client.get("/", headers=PAGE).text
    assert app.test_client().post("/login/provider", data={"link": secret}, headers=PAGE).status_code == 410
    assert sign_in(app.test_client(), provider).status_code == 303


def test_the_last_way_in_is_not_unlinked_and_what_began_with_it_ends(make: Make, provider: StubProvider) -> None:
    app = make()
    services: Services = app.extensions["assistant"]
    here, there = app.test_client(), app.test_client()
    sign_in(here, provider)
    sign_in(there, provider)
    zoe = services.accounts.named("zoe")
    identity = services.single_sign_on.identities_of(zoe)[0]
    path = f"/account/identities/{identity.id}/unlink"
    refused = here.post(path, headers=PAGE)
    assert (refused.status_code, "Nothing else lets you in." in refused.text) == (409, True)
    assert client_of(app, "Ann").post(path).status_code == 404
    provider.user = {"sub": "second"}
    assert link(here, provider).status_code == 303
    assert post(here, path) == (303, "/account")
    assert here.get("/api/conversations").status_code == 200
    assert there.get("/api/conversations").status_code == 401
    assert "zoe: unlinked an account: zoe: zoe" in audit(app)


def test_disabled_people_stay_out(make: Make, provider: StubProvider) -> None:
    app = make()
    services: Services = app.extensions["assistant"]
    client = app.test_client()
    sign_in(client, provider)
    services.accounts.set_disabled(services.accounts.named("zoe"), True, ACTOR)
    assert client.get("/api/conversations").status_code == 401
    refused = sign_in(app.test_client(), provider)
    assert (refused.status_code, "This account is disabled." in refused.text) == (403, True)


def test_only_verified_addresses_of_the_domains_come_in(make: Make, provider: StubProvider) -> None:
    app = make(OIDC_ALLOWED_DOMAINS='["example.org"]')
    cases: list[tuple[dict[str, Any], int]] = [
        ({"email": "zoe@example.org", "email_verified": False}, 403),
        ({"email": "zoe@example.org"}, 403),
        ({"email": "zoe@example.org.evil.example", "email_verified": True}, 403),
        ({"email": "zoe@sub.example.org", "email_verified": True}, 403),
        ({"email": "example.org", "email_verified": True}, 403),
        ({}, 403),
        ({"email": "zoe@Example.org", "email_verified": True}, 303),
    ]
    for user, status in cases:
        provider.user = {"sub": "248"} | user
        assert sign_in(app.test_client(), provider).status_code == status, user


def test_groups_say_who_comes_in_and_who_is_an_administrator(make: Make, provider: StubProvider) -> None:
    app = make(
        OIDC_ALLOWED_DOMAINS="[]",
        OIDC_ALLOWED_GROUPS='["assistant", "staff"]',
        OIDC_GROUPS_CLAIM="realm_access.roles",
        OIDC_ADMIN_GROUP="boss",
    )
    services: Services = app.extensions["assistant"]

    def comes_as(*groups: object) -> str:
        provider.user["realm_access"] = {"roles": list(groups)}
        answered = sign_in(app.test_client(), provider)
        return services.accounts.named("zoe").role if answered.status_code == 303 else str(answered.status_code)

    assert comes_as("assistants", {"staff": 1}) == "403"
    assert comes_as("assistant") == "member"
    assert comes_as("staff", "boss") == "admin"
    assert comes_as("staff") == "member"
    assert "Stub: changed the role to admin: zoe" in audit(app)
    assert comes_as() == "403"
    # The last administrator stays one, whatever the groups say.
    services.single_sign_on.link_subject(services.accounts.named("Ann"), "ann", ACTOR)
    provider.user["sub"] = "ann"
    comes_as("staff")
    assert services.accounts.named("Ann").role == "admin"


def test_signing_out_offers_to_sign_out_of_the_provider_too(make: Make, provider: StubProvider) -> None:
    app = make()
    client = app.test_client()
    sign_in(client, provider)
    page = client.post("/logout", headers=PAGE)
    assert page.status_code == 200
    to = f"{provider.issuer}/logout?client_id={CLIENT_ID}&amp;post_logout_redirect_uri=http%3A%2F%2Flocalhost%2Flogin"
    assert to in page.text
    assert client.get("/api/conversations").status_code == 401
    assert post(client_of(app, "Ann"), "/logout") == (303, "/login")


def test_no_secret_of_a_sign_in_is_in_a_page_a_log_or_a_table(
    make: Make, provider: StubProvider, caplog: pytest.LogCaptureFixture
) -> None:
    app = make()
    services: Services = app.extensions["assistant"]
    client = app.test_client()
    answer = provider.authorize(begin(client))
    kept = client.get_cookie("sign-in")
    assert kept is not None
    come_back(client, answer)
    admin = client_of(app, "Ann")
    seen = "".join(one.get(path, headers=PAGE).text for one in (client, admin) for path in ("/account", "/settings"))
    seen += admin.get("/api/settings").text + caplog.text
    stored = b"".join(path.read_bytes() for path in services.database.file.parent.glob("assistant.db*"))
    for canary in (CLIENT_SECRET, answer["code"], answer["state"], kept.value, "an access token"):
        assert canary not in seen
        assert canary.encode() not in stored


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"OIDC_ISSUER": "http://login.example"}, "must start with https://"),
        ({"OIDC_CLIENT_ID": ""}, "set oidc_client_id, too"),
        ({"OIDC_ALLOWED_DOMAINS": "[]"}, "say for whom"),
        ({"OIDC_SCOPES": '["email"]'}, 'a list of scopes, "openid" among them'),
        ({"PROXY_USER_HEADER": "Remote-User", "PROXY_USER_FROM": '["10.0.0.2"]'}, "are both set"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_at_the_start(
    make: Make, settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        make(**settings)


def test_a_server_to_which_others_come_needs_an_account_first(
    environment: dict[str, str], stand_ins: None, provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.web.services.in_container", lambda: False)
    app = create_app(environment | {"OIDC_ISSUER": provider.issuer, "OIDC_CLIENT_ID": CLIENT_ID})
    with pytest.raises(SettingsError, match="oidc_issuer is set, so that others sign in, and there is no account yet"):
        app.extensions["assistant"].start()
    # Nobody from elsewhere becomes the first administrator.
    client = app.test_client()
    for path in ("/login/provider", "/login/provider/callback?code=x"):
        assert client.get(path).status_code == 500
    assert names(app) == []
    app.extensions["assistant"].close()


def test_without_a_provider_nobody_signs_in_with_one(client: FlaskClient, services: Services) -> None:
    add_person(services, "Ann", "admin")
    refused = client.get("/login/provider", headers=PAGE)
    assert (refused.status_code, "(oidc_issuer)" in refused.text) == (409, True)
    assert "Sign in with" not in client.get("/login", headers=PAGE).text
    person: Person = services.accounts.named("Ann")
    with pytest.raises(Exception, match="oidc_issuer is not set"):
        services.single_sign_on.link_subject(person, "x", ACTOR)
