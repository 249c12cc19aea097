"""With ``retention_days`` a conversation that nobody uses goes to the trash, and from there away; it is told before."""

import io
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update

from rag_assistant.conversations import retention
from rag_assistant.runtime import background
from rag_assistant.services import Services
from rag_assistant.storage.tables import conversations
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.samples import sample
from tests.web.conftest import PAGE, ask, both_engines, post
from tests.web.pages.conversation_rows import fill


@pytest.fixture
def environment(environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
    ever = getattr(request, "param", "") == "for ever"
    return environment if ever else environment | {"RETENTION_DAYS": "90", "TRASH_DAYS": "10"}


def ids(client: FlaskClient, query: str = "") -> set[int]:
    return {one["conversation_id"] for one in client.get(f"/api/conversations?limit=50{query}").json["conversations"]}


def make_older(services: Services, conversation_id: int, **days: int) -> None:
    values = {name: datetime.now(UTC) - timedelta(days=n) for name, n in days.items()}
    with services.database.write() as connection:
        connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(values))


@both_engines
def test_what_nobody_used_moves_to_the_trash_and_is_erased_there(client: FlaskClient, services: Services) -> None:
    fill(services, 5)
    for number, days in ((1, 91), (2, 89), (3, 91)):
        make_older(services, number, updated_at=days)
    client.patch("/api/conversations/3", json={"pinned": True})
    for number, days in ((4, 9), (5, 11)):
        make_older(services, number, deleted_at=days)
    services.retention.look()
    assert (ids(client), ids(client, "&deleted=1")) == ({2, 3}, {1, 4})
    assert client.post("/api/conversations/5/restore").status_code == 404


@pytest.mark.long
@pytest.mark.parametrize("years", [1, -1])
def test_a_clock_that_jumps_deletes_nothing_until_it_is_back(
    client: FlaskClient,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    years: int,
) -> None:
    fill(services, 4)
    client.delete("/api/conversations/4")
    post_document = client.post("/api/documents", data={"file": (io.BytesIO(b"Geese hiss."), "geese.txt")})
    services.library.trash(post_document.json["document_id"])
    make_older(services, 1, updated_at=91)

    class Jumped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=365 * years)

    with monkeypatch.context() as patch:
        for module in (background, retention):
            patch.setattr(module, "datetime", Jumped)
        for _ in range(2):
            services.retention.look()
            services.processing._take_up_forgotten()
    assert (ids(client), ids(client, "&deleted=1")) == ({1, 2, 3}, {4})
    assert len(services.documents.trashed(10)) == 1
    assert caplog.text.count("The clock jumped to") == 2, "once each for conversations and documents"
    services.retention.look()
    assert (ids(client), ids(client, "&deleted=1")) == ({2, 3}, {1, 4})


def test_what_is_restored_is_not_old_at_once_and_an_undo_moves_nothing(client: FlaskClient, services: Services) -> None:
    fill(services, 3)
    make_older(services, 1, updated_at=200)
    services.retention.look()
    before = client.get("/api/conversations").json
    client.delete("/api/conversations/3")
    post(client, "/conversations/3/restore")
    assert client.get("/api/conversations").json == before
    for restore in ("/conversations/1/restore", "/api/conversations/1/restore"):
        make_older(services, 1, updated_at=200, deleted_at=1)
        client.post(restore, data={})
        services.retention.look()
        assert ids(client) == {1, 2, 3}


def test_older_versions_stay_as_long_as_a_newer_one(client: FlaskClient, services: Services) -> None:
    first = ask(client, "First?")
    second = ask(client, "Otherwise?", edits_turn=first["turn_id"])
    third = ask(client, "Or so?", edits_turn=second["turn_id"])
    versions = [one["conversation_id"] for one in (first, second, third)]
    with services.database.write() as connection:  # As the page makes them: the newest stands for all.
        connection.execute(update(conversations).where(conversations.c.id.in_(versions[:2])).values(listed=False))
    for number in versions[:2]:
        make_older(services, number, updated_at=200)
    services.retention.look()
    assert ids(client) == set(versions)
    make_older(services, versions[2], updated_at=200)
    for _ in versions:
        services.retention.look()
    assert ids(client) == set()


def test_it_is_told_in_the_week_before(client: FlaskClient, services: Services) -> None:
    fill(services, 3)
    for number, days in ((1, 84), (2, 82), (3, 84)):
        make_older(services, number, updated_at=days)
    client.patch("/api/conversations/3", json={"pinned": True})
    date = datetime.fromisoformat(client.get("/api/conversations/1").json["moves_to_trash_at"])
    assert timedelta(days=5.9) < date - datetime.now(UTC) < timedelta(days=6)
    listed = {
        one["conversation_id"]: "moves_to_trash_at" in one
        for one in client.get("/api/conversations").json["conversations"]
    }
    assert listed == {1: True, 2: True, 3: False}
    pages = {number: client.get(f"/conversations/{number}").text for number in (1, 2, 3)}
    assert [pages[n].count(", unless you ask something here or pin it.") for n in (1, 2, 3)] == [1, 0, 0]
    assert pages[2].count("Moves to the trash on ") == 1, "the list says it of the first one"
    client.delete("/api/conversations/1")
    assert "Deleted conversations can be restored for 10 days; then they are erased." in client.get("/deleted").text


@pytest.mark.parametrize("environment", ["for ever"], indirect=True)
def test_without_it_everything_stays(client: FlaskClient, services: Services) -> None:
    fill(services, 2)
    make_older(services, 1, updated_at=9000)
    make_older(services, 2, deleted_at=9000)
    services.retention.look()
    assert (ids(client), ids(client, "&deleted=1")) == ({1}, {2})


def test_what_is_imported_is_not_old_at_once(client: FlaskClient, services: Services) -> None:
    ask(client, "What did we say in 2023?")
    make_older(services, 1, updated_at=900, created_at=900)
    with client.get("/api/export") as exported:
        archive = exported.data
    services.eraser.erase_conversation(1)
    imported = client.post("/api/conversations/import", data=archive, content_type="application/json")
    assert len(imported.json["imported"]) == 1
    services.retention.look()
    assert len(ids(client)) == 1


@both_engines
@pytest.mark.parametrize("environment", sample(["", "for ever"]), indirect=True)
def test_what_moves_into_a_project_with_fewer_days_is_not_old_at_once(client: FlaskClient, services: Services) -> None:
    fill(services, 2)
    short = client.post("/api/projects", json={"name": "Short", "retention_days": 10}).json["project_id"]
    other = client.post("/api/projects", json={"name": "Other"}).json["project_id"]
    for number, project in ((1, short), (2, other)):
        make_older(services, number, updated_at=30)
        client.patch(f"/api/conversations/{number}", json={"project_id": project})
    services.retention.look()
    assert ids(client) == {1, 2}
    moved = {
        one["conversation_id"]: one["updated_at"] for one in client.get("/api/conversations").json["conversations"]
    }
    assert moved[1] > moved[2], "in other projects its date stays"


def test_a_project_may_keep_its_conversations_longer_or_not_as_long(
    client: FlaskClient, services: Services, environment: dict[str, str]
) -> None:
    fill(services, 7)
    short = client.post("/api/projects", json={"name": "Short", "retention_days": 10}).json
    long = client.post("/api/projects", json={"name": "Long"}).json
    assert (short["retention_days"], "retention_days" in long) == (10, False)
    client.post(f"/projects/{long['project_id']}", data={"retention_days": "all", "notes": "false"})
    long = client.get(f"/api/projects/{long['project_id']}").json
    assert (long["retention_days"], long["notes"]) == (None, False)
    places = {1: short, 2: short, 3: short, 4: long}
    for number, project in places.items():
        client.patch(f"/api/conversations/{number}", json={"project_id": project["project_id"], "pinned": number == 3})
    for number, days in ((1, 11), (2, 8), (3, 11), (4, 900), (5, 11), (6, 91)):
        make_older(services, number, updated_at=days)
    make_older(services, 7, deleted_at=9000)
    told = ["moves_to_trash_at" in client.get(f"/api/conversations/{number}").text for number in (2, 3, 4)]
    assert told == [True, False, False]
    assert "Moves to the trash on " in client.get("/").text, "the list says it, too"
    services.retention.look()
    forever = "RETENTION_DAYS" not in environment
    assert ids(client) == ({2, 3, 4, 5, 6} if forever else {2, 3, 4, 5})
    assert (7 in ids(client, "&deleted=1")) is forever, "a project empties no trash"
    client.post("/api/conversations/1/restore")
    services.retention.look()
    assert 1 in ids(client), "what is restored is not old at once"
    refused = client.patch(f"/api/projects/{short['project_id']}", json={"retention_days": 0})
    assert refused.json["error"]["message"].startswith("retention_days is 0; it must be a whole number from 1 to 36500")


@both_engines
@pytest.mark.parametrize("environment", sample(["", "for ever"]), indirect=True)
def test_a_shared_projects_retention_is_set_by_its_owner_and_moves_nobody_elses(app: Flask, services: Services) -> None:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        ann, ben = client_of(app, "Ann"), client_of(app, "Ben")
    project = ann.post("/api/projects", json={"name": "Harbour"}).json["project_id"]
    ann.put(f"/api/projects/{project}/shares", json={"person": "Ben", "access": "write"})
    first, second = (ask(one, "Where is the key?", project_id=project)["conversation_id"] for one in (ann, ben))
    refused = ben.patch(f"/api/projects/{project}", json={"retention_days": 1})
    assert (refused.status_code, "belongs to somebody else" in refused.text) == (403, True)
    assert 'name="retention_days"' not in ben.get(f"/projects/{project}").text
    saved = ben.post(f"/projects/{project}", data={"name": "Harbour", "instructions": "Of boats."}, headers=PAGE)
    assert saved.status_code == 303, saved.text
    assert "Applies to your conversations only." in ann.get(f"/projects/{project}").text
    assert ann.patch(f"/api/projects/{project}", json={"retention_days": 1}).json["retention_days"] == 1
    assert "moves_to_trash_at" in ann.get("/api/conversations").json["conversations"][0]
    for number in (first, second):
        make_older(services, number, updated_at=30)
    assert "Moves to the trash on " not in ben.get("/").text
    services.retention.look()
    assert [ids(one) for one in (ann, ben)] == [set(), {second}]
    changes = [entry.action for entry in services.accounts.log.newest(9) if entry.subject == f"project {project}"]
    assert "changed a project (retention_days)" in changes
    assert "changed a project (instructions, name)" in changes
