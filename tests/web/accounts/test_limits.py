"""What one person may take of a server: questions, answers at once, files. The others go on."""

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from rag_assistant.services import Services
from rag_assistant.web import create_app
from tests.testkit.people import add_person, client_of
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, events_of, upload


@pytest.fixture
def limited(environment: dict[str, str]) -> Iterator[Flask]:
    """A server with narrow limits, on which Ann and Ben have accounts."""
    limits = {"MAX_QUESTIONS_PER_MINUTE": "3", "MAX_RUNNING_ANSWERS_PER_PERSON": "1", "MAX_STORED_MB_PER_PERSON": "1"}
    made = create_app(environment | limits)
    services: Services = made.extensions["assistant"]
    services.start()
    for name in ("Ann", "Ben"):
        add_person(services, name)
    yield made
    services.close()


@pytest.mark.long
def test_one_persons_questions_end_and_the_others_go_on(limited: Flask) -> None:
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    first = ann.post("/api/query", json={"question": "Why?"}, headers={"Idempotency-Key": "k"}).json
    assert ann.post(f"/api/turns/{first['turn_id']}/regenerate").status_code == 202
    assert events_of(ann.get(f"/api/turns/{first['turn_id']}/stream").data)[-1][0] == "end"
    ask(ann)
    refused = ann.post("/api/query", json={"question": "Why?"})
    assert (refused.status_code, refused.json["error"]["type"]) == (429, "LimitReached")
    assert 50 <= int(refused.headers["Retry-After"]) <= 60
    assert ann.post(f"/api/turns/{first['turn_id']}/regenerate").status_code == 429
    again = ann.post("/api/query", json={"question": "Why?"}, headers={"Idempotency-Key": "k"})
    assert again.json["turn_id"] == first["turn_id"]
    assert ask(ben)["status"] == "completed"
    assert "Questions in the last minute: 3 of 3" in ann.get("/account", headers=PAGE).text


def test_one_persons_answers_at_once_are_bounded(limited: Flask, stub: StubModel) -> None:
    stub.replies.append(Reply("word " * 20, seconds_between=0.1))
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    running = ann.post("/api/query/stream", json={"question": "Slow?"})
    refused = ann.post("/api/query", json={"question": "More?"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
    assert ask(ben)["status"] == "completed"
    assert events_of(running.data)[-1][0] == "end"
    assert ask(ann)["status"] == "completed"


@pytest.mark.long
def test_one_persons_files_have_a_size(limited: Flask) -> None:
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    for letter in "ab":
        upload(ann, f"{letter} " * 200_000, wait=False)
    refused = ann.post("/api/documents", data={"file": (io.BytesIO(b"c " * 200_000), "c.txt")})
    assert (refused.status_code, refused.json["error"]["type"]) == (413, "StorageLimitReached")
    assert "a limit of 1 MB" in refused.json["error"]["message"]
    services: Services = limited.extensions["assistant"]
    assert len(services.uploads.names()) == 2
    upload(ben, "c " * 200_000, wait=False)


@pytest.mark.long
def test_asking_at_once_passes_no_limit(limited: Flask, stub: StubModel) -> None:
    stub.default = Reply("word " * 20, seconds_between=0.1)
    ann = client_of(limited, "Ann")
    session = ann.get_cookie("session")
    assert session is not None
    met = threading.Barrier(3)

    def ask_at_once(_number: int) -> int:
        client = limited.test_client()
        client.set_cookie("session", session.value)
        met.wait(30)
        return client.post("/api/query", json={"question": "Why?"}, buffered=True).status_code

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(ask_at_once, range(3))) == [200, 429, 429]


@pytest.mark.long
def test_questions_that_are_not_kept_count_among_the_answers_at_once(limited: Flask, stub: StubModel) -> None:
    stub.default = Reply("word " * 20, seconds_between=0.1)
    ann = client_of(limited, "Ann")
    body = {"model": "rag-assistant", "messages": [{"role": "user", "content": "Slow?"}], "stream": True}
    running = ann.post("/v1/chat/completions", json=body)
    assert ann.post("/v1/chat/completions", json=body, buffered=True).status_code == 429
    assert ann.post("/api/query", json={"question": "More?"}, buffered=True).status_code == 429
    assert b"[DONE]" in running.data
    assert ask(ann)["status"] == "completed"


def test_a_library_that_is_shared_has_no_more_room_than_its_owner(limited: Flask) -> None:
    ann, ben = client_of(limited, "Ann"), client_of(limited, "Ben")
    library = ann.post("/api/libraries", json={"name": "Shared"}).json["library_id"]
    assert ann.patch(f"/api/libraries/{library}", json={"everyone": "write"}).status_code == 200
    statuses = []
    for letter in "abc":
        file = io.BytesIO(f"{letter} ".encode() * 200_000), f"{letter}.txt"
        statuses.append(ben.post("/api/documents", data={"file": file, "library_id": library}).status_code)
    assert statuses == [202, 202, 413]


@pytest.mark.long
def test_an_administrator_sees_what_each_person_used_and_what_it_cost(
    environment: dict[str, str], stub: StubModel
) -> None:
    made = create_app(environment | {"MODEL_PRICES": '{"stub-model": [2e4, 1e5]}'})
    services: Services = made.extensions["assistant"]
    services.start()
    try:
        add_person(services, "=Ann", "admin")
        add_person(services, "Ben")
        ann, ben = client_of(made, "=Ann"), client_of(made, "Ben")
        stub.default = Reply("Yes.", usage={"prompt_tokens": 40, "completion_tokens": 10})
        ask(ben)
        ask(ben)
        stub.default = Reply("Yes.", usage={"prompt_tokens": 4, "completion_tokens": 1})
        ask(ann)
        upload(ben, "x" * 1000, "own.txt")
        rows = ann.get("/api/use?days=1").json["use"]
        assert [(row["name"], row["questions"], row["prompt_tokens"], row["cost"]) for row in rows] == [
            ("Ben", 2, 80, 3.6),
            ("=Ann", 1, 4, 0.18),
        ]
        assert (rows[0]["stored_bytes"], rows[0]["completion_tokens"], rows[0]["model"]) == (
            1000,
            20,
            "stub-model",
        )
        assert rows[0]["last_seen"].startswith("20")
        assert "days is" in ann.get("/api/use?days=0").json["error"]["message"]
        assert [ben.get(url).status_code for url in ("/api/use", "/people/use.csv")] == [403, 403]
        page = ann.get("/people", headers=PAGE).text
        assert "3.60" in page
        table = ann.get("/people/use.csv").text.splitlines()
        assert table[1].startswith("Ben,stub-model,2,80,20,3.6,1000,20")
        assert table[2].startswith("'=Ann,stub-model,1,4,1,")
    finally:
        services.close()
