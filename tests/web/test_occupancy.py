"""What one person can occupy of a server, counted: threads, slots, places; the others' stay free."""

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.accounts.places import MAX_PLACES, MAX_WORKING, Kind, Places
from rag_assistant.records.errors import LimitReached
from rag_assistant.server.worker import MAX_LARGE_AT_ONCE, MAX_OTHERS_AT_ONCE
from rag_assistant.services import Services
from rag_assistant.settings.schema import Settings
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, until


@pytest.fixture
def people(app: Flask, services: Services) -> Iterator[list[FlaskClient]]:
    with quick_passwords():
        for name in ("Ann", "Ben"):
            add_person(services, name)
        yield [client_of(app, name) for name in ("Ann", "Ben")]


def places_of(services: Services, name: str) -> Places:
    limits = services.of_person(services.accounts.named(name).id, True).limits
    assert limits is not None
    return limits.places


def test_one_person_leaves_most_of_every_kind_of_thread_to_the_others() -> None:
    assert MAX_PLACES["reading"] * 4 <= MAX_OTHERS_AT_ONCE
    assert MAX_PLACES["upload"] * 4 <= MAX_LARGE_AT_ONCE
    assert MAX_PLACES["waiting"] * 4 <= Settings().max_running_answers
    assert MAX_PLACES["upload"] + MAX_PLACES["reading"] < MAX_OTHERS_AT_ONCE / 4


@pytest.mark.parametrize("kind", MAX_PLACES)
def test_of_each_kind_one_person_has_so_many_places_and_gets_them_back(kind: Kind) -> None:
    places = Places()
    taken = [places.take(kind) for _ in range(MAX_PLACES[kind])]
    with pytest.raises(LimitReached, match=f"{MAX_PLACES[kind]} requests of yours are under way"):
        places.take(kind)
    taken[0]()
    places.take(kind)


def test_of_many_requests_of_one_person_two_are_worked_on(
    services: Services, people: list[FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = people
    go_on, lock, working, most = threading.Event(), threading.Lock(), 0, 0
    before = services.conversations.page.__func__

    def slow(self: object, *arguments: object, **more: object) -> object:
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        if self._database._person == services.accounts.named("Ann").id:
            go_on.wait(20)
        with lock:
            working -= 1
        return before(self, *arguments, **more)

    monkeypatch.setattr(type(services.conversations), "page", slow)
    with ThreadPoolExecutor(MAX_PLACES["reading"]) as threads:
        cookie = ann.get_cookie("session")
        assert cookie is not None
        sent = [
            threads.submit(_get, ann.application, cookie.value, "/api/conversations")
            for _ in range(MAX_PLACES["reading"])
        ]
        until(lambda: working == MAX_WORKING)
        until(lambda: places_of(services, "Ann")._taken["reading"] == MAX_PLACES["reading"])
        refused = ann.get("/api/conversations")
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        # Nobody else waits for any of it.
        assert ben.get("/api/account").status_code == 200
        assert ben.get("/api/documents").status_code == 200
        go_on.set()
        assert {one.result() for one in sent} == {200}
    assert most == MAX_WORKING
    assert places_of(services, "Ann")._taken.total() == 0


def _get(app: Flask, cookie: str, path: str) -> int:
    client = app.test_client()
    client.set_cookie("session", cookie)
    return client.get(path, buffered=True).status_code


def test_open_streams_are_counted_until_their_readers_leave(
    services: Services, people: list[FlaskClient], stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MAX_PLACES, "waiting", 3)
    ann, ben = people
    turn = ask(ann)["turn_id"]
    assert places_of(services, "Ann")._taken.total() == 0
    streams = [ann.get(f"/api/turns/{turn}/stream") for _ in range(3)]
    assert ann.get(f"/api/turns/{turn}/stream", buffered=True).status_code == 429
    assert ann.post("/api/query", json={"question": "Why?"}, buffered=True).status_code == 429
    assert ask(ben)["status"] == "completed"
    # What is quick is not refused for what waits.
    assert ann.get("/api/conversations", buffered=True).status_code == 200
    for stream in streams:
        stream.close()
    assert ask(ann)["status"] == "completed"
    assert places_of(services, "Ann")._taken.total() == 0


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
    assert places_of(services, "Ann")._taken.total() == 0
    for _ in range(2 * MAX_WORKING):
        assert ann.get("/api/documents").status_code == 200


def test_alone_nothing_is_counted(client: FlaskClient, services: Services) -> None:
    streams = [client.get(f"/api/turns/{ask(client)['turn_id']}/stream") for _ in range(5)]
    assert [one.status_code for one in streams] == [200] * 5
    for stream in streams:
        stream.close()
    assert services.limits is None
