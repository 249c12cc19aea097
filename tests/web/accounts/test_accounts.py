"""Accounts: made, disabled, deleted and passed on by an administrator; a link for a password."""

import re
from unittest import mock

import pytest
from flask import Flask

from rag_assistant.records import Person
from rag_assistant.records.errors import ConversationBusy, LastAdmin
from rag_assistant.services import Services
from tests.testkit.people import ACTOR, PASSWORD, add_person, client_of
from tests.web.conftest import PAGE, ask, no_model, post, upload


def test_what_is_done_for_a_person_is_the_work_of_this_process_under_whatever_name(
    services: Services, ann: Person
) -> None:
    for name in (services.turns.owner, "after it was taken for dead"):
        services.membership.take_name(name)
        own = services.for_person(ann.id, changes_documents=True)
        assert name
        assert {own.conversations.owner, own.turns.owner, own.documents.worker} == {name}
        assert own.membership is services.membership


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
    status, page = post(guest, "/choose-password", link=secret, password="short")
    assert (status, "For the account <strong>Ben</strong>" in page, "has 5 characters" in page) == (422, True, True)
    assert post(guest, "/choose-password", link=secret, password="chosen by a link") == (303, "/")
    assert guest.get("/api/conversations").status_code == 200
    assert before.get("/api/conversations").status_code == 401
    assert guest.get(link, headers=PAGE).status_code == 410
    status, page = post(guest, "/choose-password", link=secret, password="chosen once more")
    assert (status, "Set password" in page) == (410, False)  # The link is over, so the form would lead nowhere.
    client_of(app, "Ben", "chosen by a link")


@no_model
def test_only_who_may_change_the_settings_is_led_there(app: Flask, services: Services) -> None:
    add_person(services, "Ann", "admin")
    add_person(services, "Ben")
    pages = {name: client_of(app, name).get("/", headers=PAGE).text for name in ("Ann", "Ben")}
    assert all("No model is connected: answers are quotes." in page for page in pages.values())
    assert {name: "Connect a model" in page for name, page in pages.items()} == {"Ann": True, "Ben": False}


def test_an_administrator_makes_disables_and_deletes_accounts(app: Flask, services: Services, ann: Person) -> None:
    admin = client_of(app, "Ann")
    status, page = post(admin, "/people", name="Ben", role="member")
    assert (status, "/choose-password?link=" in page) == (200, True)
    ben = services.accounts.people.get("ben")
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
    assert [one.name for one in services.accounts.people.all()] == ["Ann"]
    assert services.conversations.page(9) == []
    assert services.documents.page(9) == []
    audit = admin.get("/people", headers=PAGE).text
    for done in ("created an account (member)", "disabled", "enabled", "deleted with everything"):
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


def test_a_deletion_that_cannot_be_finished_is_in_the_log_of_accounts(
    app: Flask, services: Services, ann: Person, ben: Person
) -> None:
    turn = ask(client_of(app, "Ben"), "Kept?")
    busy = ConversationBusy(turn["conversation_id"])
    with pytest.raises(ConversationBusy), mock.patch.object(services.eraser, "erase_conversation", side_effect=busy):
        services.delete_account(ben, ACTOR, None)
    entry = services.accounts.log.newest(1)[0]
    assert (entry.subject, entry.action) == ("Ben", f"disabled, and not yet deleted: {busy}")
    services.delete_account(services.accounts.people.get(ben.id), ACTOR, None)
    assert services.accounts.log.newest(1)[0].action == "deleted with everything"


def test_there_is_always_an_administrator(services: Services, ann: Person, ben: Person) -> None:
    with pytest.raises(LastAdmin):
        services.accounts.set_role(ann, "member", ACTOR)
    with pytest.raises(LastAdmin):
        services.accounts.set_disabled(ann, True, ACTOR)
    with pytest.raises(LastAdmin):
        services.delete_account(ann, ACTOR, ben)
    assert services.accounts.people.get(ann.id) == ann
    services.accounts.set_role(ben, "admin", ACTOR)
    services.accounts.set_role(ann, "member", ACTOR)


def test_a_member_manages_nothing(app: Flask, ben: Person) -> None:
    client = client_of(app, "Ben")
    for path in ("/people", "/api/settings"):
        assert client.get(path).status_code == 403, path
    for path in ("/people", "/people/1/disabled", "/api/model/test", "/settings"):
        assert client.post(path).status_code == 403, path
    page = client.get("/settings", headers=PAGE)
    assert page.status_code == 200
    assert "settings.json" not in page.text
    assert "openai_base_url" not in page.text
    assert "/people" not in client.get("/", headers=PAGE).text


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
