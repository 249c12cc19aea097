"""Tokens of programs: what each was made for, until it is revoked."""

import re
from typing import Any

import pytest
from flask import Flask

from rag_assistant.records import Person
from rag_assistant.services import Services
from tests.testkit.people import ACTOR, client_of, token_client
from tests.web.conftest import PAGE, ask, post


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


def test_an_administrators_token_is_told_which_scope_it_lacks(
    app: Flask, services: Services, ann: Person, ben: Person
) -> None:
    def refusal(person: Person) -> str:
        return str(token_client(app, services, person, "read").get("/metrics").json["error"]["message"])

    assert refusal(ann) == 'Only tokens with the scope "admin" can do this.'
    assert refusal(ben) == "Only an administrator can do this."


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
    over = program.get("/api/conversations", headers=bearer)
    assert (over.status_code, over.json["error"]["type"]) == (401, "NotSignedIn")
    assert over.json["error"]["message"] == "This API token has expired, was revoked, or never existed."


def test_a_session_is_no_token_and_a_token_no_session(app: Flask, services: Services, ben: Person) -> None:
    client = client_of(app, "Ben")
    cookie = client.get_cookie("session")
    assert cookie is not None
    secret, _ = services.accounts.make_token(ben, "x", ["read"], None, ACTOR)
    swapped = app.test_client()
    assert swapped.get("/api/conversations", headers={"Authorization": f"Bearer {cookie.value}"}).status_code == 401
    swapped.set_cookie("session", secret)
    assert swapped.get("/api/conversations").status_code == 401
    swapped.set_cookie("session", "decoy")
    for one in (client, swapped):
        both = one.get("/api/conversations", headers={"Authorization": f"Bearer {secret}"})
        assert (both.status_code, both.json["error"]["type"]) == (400, "MalformedBody")


def test_a_token_of_a_former_administrator_manages_nothing(app: Flask, services: Services, ben: Person) -> None:
    services.accounts.set_role(ben, "admin", ACTOR)
    program = token_client(app, services, services.accounts.people.get(ben.id), "admin")
    assert program.get("/api/settings").status_code == 200
    services.accounts.set_role(ben, "member", ACTOR)
    assert program.get("/api/settings").status_code == 403


def test_anthropics_clients_send_a_token_in_a_header_of_their_own(app: Flask, services: Services, ben: Person) -> None:
    secret, _ = services.accounts.make_token(ben, "x", ["read", "ask"], None, ACTOR)
    reader, _ = services.accounts.make_token(ben, "y", ["read"], None, ACTOR)
    program: Any = app.test_client()
    body = {"model": "rag-assistant", "messages": [{"role": "user", "content": "Why?"}]}
    for key, status, kind in (
        (secret, 200, None), (reader, 403, "permission_error"), ("rag_none", 401, "authentication_error"),
        ("", 401, "authentication_error"),
    ):  # fmt: skip
        answer = program.post("/v1/messages", json=body, headers={"X-Api-Key": key})
        assert (answer.status_code, answer.json.get("error", {}).get("type")) == (status, kind), key
    assert program.get("/api/conversations", headers={"X-Api-Key": secret}).status_code == 401
    cookie = client_of(app, "Ben").post("/v1/messages", json=body, headers={"X-Api-Key": secret})
    assert cookie.status_code == 400
