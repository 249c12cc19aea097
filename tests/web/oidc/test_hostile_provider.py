"""What a hostile provider, or somebody between it and us, cannot do: be believed, or find out a secret."""

import time
from typing import Any

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

from rag_assistant.services import Services
from tests.testkit import oidc_stub
from tests.testkit.oidc_stub import CLIENT_ID, CLIENT_SECRET, Signer, StubProvider, key_named
from tests.testkit.people import client_of
from tests.web.conftest import PAGE
from tests.web.oidc.browser import Make, begin, come_back, names, sign_in

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
    "an expiry without end": {"exp": float("inf")},
    "another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


def test_an_id_token_that_is_not_for_this_sign_in_lets_nobody_in(make: Make, provider: StubProvider) -> None:
    app = make()
    client = app.test_client()
    for what, claims in HOSTILE.items():
        provider.claims = {name: f"{provider.issuer}/" if value == "SLASH" else value for name, value in claims.items()}
        refused = sign_in(client, provider)
        assert refused.status_code == 401, what
        assert "Stub sent an invalid response" in refused.text, what
        assert client.get("/api/conversations").status_code == 401, what
    assert names(app) == ["Ann"]


def test_half_a_character_in_the_user_info_lets_nobody_in(make: Make, provider: StubProvider) -> None:
    provider.userinfo = {"name": "\ud83d"}
    assert sign_in(make().test_client(), provider).status_code == 401


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


def test_a_cookie_of_great_depth_is_no_sign_in(make: Make, provider: StubProvider) -> None:
    client = make().test_client()
    answer = provider.authorize(begin(client))
    client.set_cookie("sign-in", "[" * 2_900)
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


@pytest.mark.parametrize("metadata", [{"issuer": "https://evil.example"}, {"token_endpoint": "http://evil.example/t"}])
def test_a_provider_that_is_another_or_sends_elsewhere_is_not_asked(
    make: Make, provider: StubProvider, metadata: dict[str, str]
) -> None:
    provider.metadata = metadata
    assert make().test_client().get("/login/provider", headers=PAGE).status_code == 401


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
