"""Who comes in with a provider, and as what: by address, by group, and by the settings."""

from typing import Any

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

from flask.testing import FlaskClient

from rag_assistant.records import Person
from rag_assistant.records.errors import SettingsError
from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.oidc_stub import CLIENT_ID, StubProvider
from tests.testkit.people import ACTOR, add_person
from tests.web.conftest import PAGE
from tests.web.oidc.browser import Make, audit, names, sign_in


def test_disabled_people_stay_out(make: Make, provider: StubProvider) -> None:
    app = make()
    services: Services = app.extensions["assistant"]
    client = app.test_client()
    sign_in(client, provider)
    services.accounts.set_disabled(services.accounts.people.get("zoe"), True, ACTOR)
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
        ({"email": "zoe@evil.example@example.org", "email_verified": True}, 403),
        ({"email": "<zoe@evil.example> zoe@example.org", "email_verified": True}, 403),
        ({"email": "zoe@example.org", "email_verified": 1}, 403),
        ({"email": "zoe@example.org", "email_verified": "true"}, 403),
        ({}, 403),
        ({"email": "zoe@Example.org", "email_verified": True}, 303),
    ]
    for user, status in cases:
        provider.user = {"sub": "248"} | user
        assert sign_in(app.test_client(), provider).status_code == status, user


@pytest.mark.parametrize(
    ("in_token", "in_userinfo"),
    [
        ({"email": "zoe@example.org"}, {"email": "me@evil.example", "email_verified": True}),
        ({"email_verified": True}, {"email": "zoe@example.org", "email_verified": False}),
    ],
)
def test_an_address_that_another_source_verified_is_not_verified(
    make: Make, provider: StubProvider, in_token: dict[str, Any], in_userinfo: dict[str, Any]
) -> None:
    app = make(OIDC_ALLOWED_DOMAINS='["example.org"]')
    provider.claims, provider.userinfo = in_token, in_userinfo
    assert sign_in(app.test_client(), provider).status_code == 403


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
        return services.accounts.people.get("zoe").role if answered.status_code == 303 else str(answered.status_code)

    assert comes_as("assistants", {"staff": 1}) == "403"
    assert comes_as("assistant") == "member"
    assert comes_as("staff", "boss") == "admin"
    assert comes_as("staff") == "member"
    assert "Stub: changed the role to admin: zoe" in audit(app)
    assert comes_as() == "403"
    # The last administrator stays one, whatever the groups say.
    services.single_sign_on.link_subject(services.accounts.people.get("Ann"), "ann", ACTOR)
    provider.user["sub"] = "ann"
    comes_as("staff")
    assert services.accounts.people.get("Ann").role == "admin"


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
    environment: dict[str, str], provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.accounts.accounts.in_container", lambda: False)
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
    person: Person = services.accounts.people.get("Ann")
    with pytest.raises(Exception, match="oidc_issuer is not set"):
        services.single_sign_on.link_subject(person, "x", ACTOR)
