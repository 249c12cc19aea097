"""A provider that refuses, is broken or is away: a sentence on the page, and passwords go on."""

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

from tests.testkit.oidc_stub import StubProvider
from tests.testkit.people import client_of
from tests.web.conftest import PAGE
from tests.web.oidc.browser import Make, begin, come_back, sign_in


def test_what_the_provider_refuses_is_a_sentence(make: Make, provider: StubProvider) -> None:
    client = make().test_client()
    cases = [
        ({"error": "access_denied"}, "Stub denied access, or you did not consent."),
        ({"error": "server_error", "error_description": "<b>canary"}, "Stub could not sign you in"),
        ({"code": ""}, "Stub sent no code."),
        ({"code": "x" * 5000}, "Stub sent no code."),
        ({"code": "a\nb"}, "Stub sent no code."),
        ({"code": "unknown"}, "sent an invalid response"),
    ]
    for answer, sentence in cases:
        refused = come_back(client, provider.authorize(begin(client), **answer))
        assert refused.status_code == 401
        assert sentence in refused.text
        assert "canary" not in refused.text


BROKEN = [
    (500, b""),
    (200, b"no JSON"),
    (200, b"[]"),
    (200, b'{"a": "' + b"x" * 2_000_000 + b'"}'),
    (200, b'{"a": ' * 50_000),
    (200, b'{"keys": [7]}'),
    (302, b""),
]


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        "/token",
        *(pytest.param(path, marks=pytest.mark.long) for path in ("/jwks", "/userinfo")),
    ],
)
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
