"""What one person can occupy of a server, counted: threads, slots, places; the others' stay free."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.accounts import limits
from rag_assistant.accounts.limits import MAX_PLACES, Kind, Places
from rag_assistant.records.errors import LimitReached
from rag_assistant.server.serve import SPARE_THREADS
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask


@pytest.fixture
def people(app: Flask, services: Services) -> Iterator[list[FlaskClient]]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        yield [client_of(app, name) for name in ("Ann", "Ben")]


def places_of(services: Services, name: str) -> Places:
    limits = services.for_person(services.accounts.people.get(name).id, changes_documents=True).limits
    assert limits is not None
    return limits.places


def take_and_release_all(places: Places) -> None:
    """Take every place there is, which shows that all are free."""
    for release in [places.take(kind) for kind, count in MAX_PLACES.items() for _ in range(count)]:
        release()


def test_one_person_leaves_most_of_every_kind_of_thread_to_the_others() -> None:
    assert (MAX_PLACES["reading"] + MAX_PLACES["upload"]) * 3 < SPARE_THREADS
    assert MAX_PLACES["waiting"] * 4 <= Settings().max_running_answers


@pytest.mark.parametrize("kind", MAX_PLACES)
def test_of_each_kind_one_person_has_so_many_places_and_gets_them_back(kind: Kind) -> None:
    places = Places()
    taken = [places.take(kind) for _ in range(MAX_PLACES[kind])]
    with pytest.raises(LimitReached, match=f"{MAX_PLACES[kind]} requests of yours are under way"):
        places.take(kind)
    taken[0]()
    places.take(kind)


@pytest.mark.long
def test_open_streams_are_counted_until_their_readers_leave(
    services: Services, people: list[FlaskClient], stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MAX_PLACES, "waiting", 3)
    ann, ben = people
    turn = ask(ann)["turn_id"]
    take_and_release_all(places_of(services, "Ann"))
    streams = [ann.get(f"/api/turns/{turn}/stream") for _ in range(3)]
    assert ann.get(f"/api/turns/{turn}/stream", buffered=True).status_code == 429
    assert ann.post("/api/query", json={"question": "Why?"}, buffered=True).status_code == 429
    assert ask(ben)["status"] == "completed"
    # What is quick is not refused for what waits.
    assert ann.get("/api/conversations", buffered=True).status_code == 200
    for stream in streams:
        stream.close()
    assert ask(ann)["status"] == "completed"
    take_and_release_all(places_of(services, "Ann"))


@pytest.mark.long
def test_a_place_is_given_back_whatever_becomes_of_the_request(
    services: Services, people: list[FlaskClient], stub: StubModel
) -> None:
    ann, _ = people
    stub.replies.append(Reply(status=400))
    for method, path, more in (
        ("GET", "/api/conversations/99", {}),
        ("GET", "/nothing", {}),
        ("POST", "/api/query", {"json": {"question": ""}}),
        ("POST", "/api/query", {"json": {"question": "Why?"}}),
        ("POST", "/api/documents", {"data": {"file": (io.BytesIO(b"PK"), "x.zip")}}),
        ("POST", "/api/documents", {"data": "nonsense", "content_type": "multipart/form-data; boundary=x"}),
        ("DELETE", "/api/conversations", {}),
    ):
        ann.open(path, method=method, buffered=True, **more)
    with ann.get("/api/export", buffered=True) as archive:
        assert archive.status_code == 200
    take_and_release_all(places_of(services, "Ann"))
    for _ in range(4):
        assert ann.get("/api/documents").status_code == 200


def test_few_requests_of_one_person_are_worked_on_at_once_and_the_others_wait(
    services: Services, people: list[FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = people
    ended = [places_of(services, "Ann").work() for _ in range(limits.MAX_WORKED_ON)]
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(ann.get, "/api/conversations")
        assert ben.get("/api/conversations").status_code == 200
        assert not waiting.done()
        ended.pop()()
        assert waiting.result().status_code == 200
    monkeypatch.setattr(limits, "MAX_WAIT_SECONDS", 0.0)
    for path in ("/api/conversations", "/", "/nothing", "/api/turns/9/receipt", "/api/conversations"):
        assert ann.get(path, buffered=True).status_code in (200, 404)
    ended.append(places_of(services, "Ann").work())
    refused = ann.get("/api/conversations")
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "1"


def test_alone_nothing_is_counted(client: FlaskClient, services: Services) -> None:
    streams = [client.get(f"/api/turns/{ask(client)['turn_id']}/stream") for _ in range(5)]
    assert [one.status_code for one in streams] == [200] * 5
    for stream in streams:
        stream.close()
    assert services.limits is None
