"""Signing in with a provider of OpenID Connect, and out again: where it leads, and what the browser takes along."""

from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

from tests.testkit.oidc_stub import CLIENT_ID, StubProvider
from tests.testkit.people import client_of
from tests.web.conftest import PAGE, post
from tests.web.oidc.browser import Make, audit, begin, come_back, names, sign_in


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
    assert "Stub: created an account (member): zoe" in audit(app)


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


def test_who_is_not_signed_in_keeps_nobody_else_from_signing_in(make: Make) -> None:
    app = make()
    with ExitStack() as unread:
        for _ in range(40):
            page = unread.enter_context(app.test_client().get("/login", headers=PAGE))
            assert page.status_code == 200
        client_of(app, "Ann")


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
