"""An account elsewhere that is linked with one here, and unlinked."""

import pytest

pytest.importorskip("authlib", reason="pip install -e '.[oidc]'")

from rag_assistant.services import Services
from tests.testkit.oidc_stub import StubProvider
from tests.testkit.people import ACTOR, PASSWORD, add_person, client_of
from tests.web.conftest import PAGE, post
from tests.web.oidc.browser import Make, audit, come_back, href_of, link, names, sign_in


@pytest.mark.long
def test_without_leave_to_make_accounts_only_those_come_in_who_are_linked(make: Make, provider: StubProvider) -> None:
    app = make(OIDC_CREATE_ACCOUNTS="false", OIDC_ALLOWED_DOMAINS="[]")
    refused = sign_in(app.test_client(), provider)
    assert (refused.status_code, "No account here is linked to zoe." in refused.text) == (403, True)
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
    assert (taken.status_code, "already linked to someone here" in taken.text) == (409, True)
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


@pytest.mark.long
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
    zoe = services.accounts.people.get("zoe")
    identity = services.single_sign_on.identities.of_person(zoe.id)[0]
    path = f"/account/identities/{identity.id}/unlink"
    refused = here.post(path, headers=PAGE)
    assert (refused.status_code, "You would have no other way to sign in." in refused.text) == (409, True)
    assert client_of(app, "Ann").post(path).status_code == 404
    provider.user = {"sub": "second"}
    assert link(here, provider).status_code == 303
    assert post(here, path) == (303, "/account")
    assert here.get("/api/conversations").status_code == 200
    assert there.get("/api/conversations").status_code == 401
    assert "zoe: unlinked an account: zoe: zoe" in audit(app)
