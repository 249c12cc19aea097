"""Tokens of models within a day: every call counts for whoever it was made for, and more than the limit is refused."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, update

from rag_assistant.services import Services
from rag_assistant.storage.tables import model_tokens
from rag_assistant.web import create_app
from tests.testkit.people import add_person, client_of, quick_passwords
from tests.testkit.samples import sample
from tests.testkit.statements import listening
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask

USAGE = {"prompt_tokens": 300, "completion_tokens": 100}


@pytest.fixture
def limited(environment: dict[str, str], stub: StubModel) -> Iterator[Callable[..., Flask]]:
    """Makes a server with other settings, on which Ann and Ben have accounts."""
    made: list[Flask] = []
    stub.default = Reply(usage=USAGE)

    def make(**settings: str) -> Flask:
        made.append(create_app(environment | settings))
        services: Services = made[-1].extensions["assistant"]
        services.start()
        with quick_passwords():
            for name in ("Ann", "Ben"):
                add_person(services, name)
        return made[-1]

    yield make
    for app in made:
        app.extensions["assistant"].close()


def sign_in(app: Flask, name: str) -> FlaskClient:
    with quick_passwords():
        return client_of(app, name)


def used(client: FlaskClient) -> int:
    tokens: int = client.get("/api/account").json["limits"]["tokens_per_day"]["used"]
    return tokens


def age(app: Flask, **by: float) -> None:
    """Let what was counted be older."""
    services: Services = app.extensions["assistant"]
    with services.database.write() as connection:
        at = connection.execute(model_tokens.select()).first()
        assert at is not None
        connection.execute(update(model_tokens).values(at=at.at - timedelta(**by)))


def test_one_persons_tokens_are_used_up_until_they_are_a_day_old(limited: Callable[..., Flask]) -> None:
    app = limited(MAX_TOKENS_PER_DAY_PER_PERSON="700")
    ann, ben = sign_in(app, "Ann"), sign_in(app, "Ben")
    answered = [ask(ann)["turn_id"] for _ in range(2)]
    shown = ann.get("/api/account").json
    assert shown["limits"]["tokens_per_day"] == {"used": 800, "limit": 700}
    assert (shown["name"], shown["role"], shown["scopes"]) == ("Ann", "admin", ["admin", "ask", "documents", "read"])
    assert "Model tokens in the last 24 hours: 800 of 700" in ann.get("/account", headers=PAGE).text
    for path, body in (
        ("/api/query", {"question": "More?"}),
        ("/api/query/stream", {"question": "More?"}),
        (f"/api/turns/{answered[0]}/regenerate", {}),
        ("/v1/chat/completions", {"model": "rag-assistant", "messages": [{"role": "user", "content": "More?"}]}),
        ("/v1/responses", {"model": "rag-assistant", "input": "More?"}),
    ):
        refused = ann.post(path, json=body)
        assert refused.status_code == 429, path
        assert 82_700 < int(refused.headers["Retry-After"]) <= 86_400, path
    assert "You have used 700 tokens within a day. Try again in 24 hours." in refused.text
    assert used(ben) == 0
    assert ask(ben)["status"] == "completed"
    age(app, hours=23)
    assert int(ann.post("/api/query", json={"question": "More?"}).headers["Retry-After"]) <= 3600
    age(app, hours=1, seconds=1)
    assert used(ann) == 0
    assert ask(ann)["status"] == "completed"


def test_what_all_take_together_has_a_limit_of_its_own(limited: Callable[..., Flask]) -> None:
    app = limited(MAX_TOKENS_PER_DAY="700")
    ann, ben = sign_in(app, "Ann"), sign_in(app, "Ben")
    for client in (ann, ben):
        ask(client)
    for client in (ann, ben):
        refused = client.post("/api/query", json={"question": "More?"})
        assert (refused.status_code, refused.json["error"]["type"]) == (503, "SharedLimitReached")
        assert int(refused.headers["Retry-After"]) > 82_700
    assert used(ben) == 400


def test_without_accounts_the_limit_of_all_holds(environment: dict[str, str], stub: StubModel) -> None:
    stub.default = Reply(usage=USAGE)
    app = create_app(environment | {"MAX_TOKENS_PER_DAY": "400"})
    client = app.test_client()
    first = ask(client)
    assert client.post("/api/query", json={"question": "More?"}).status_code == 503
    # Quotes of the documents cost nothing, and a conversation is read as ever.
    assert client.get(f"/api/turns/{first['turn_id']}").status_code == 200
    app.extensions["assistant"].close()


@pytest.mark.long
def test_summaries_and_rewritten_questions_count_too(limited: Callable[..., Flask], stub: StubModel) -> None:
    app = limited(QUERY_REWRITING="model", MAX_HISTORY_TURNS="20", MAX_TOKENS_PER_DAY_PER_PERSON="100000")
    client = sign_in(app, "Ann")
    long = "It was told at some length, so that a summary can be shorter than what it stands for. " * 3
    first = ask(client, f"Who kept the lamp? {long}")["conversation_id"]
    for n in range(4):
        ask(client, f"And what about {n}? {long}", conversation_id=first)
    requests = len(stub.requests)
    stub.replies.append(Reply("They spoke of the lamp.", usage=USAGE))
    assert client.post(f"/api/conversations/{first}/compact", json={}).status_code == 200
    assert len(stub.requests) > requests
    assert used(client) == 400 * len(stub.requests)


@pytest.mark.long
def test_a_summary_is_refused_when_the_tokens_are_used_up(limited: Callable[..., Flask], stub: StubModel) -> None:
    app = limited(MAX_TOKENS_PER_DAY_PER_PERSON="2000")
    client = sign_in(app, "Ann")
    first = ask(client)["conversation_id"]
    for _ in range(4):
        ask(client, conversation_id=first)
    requests = len(stub.requests)
    refused = client.post(f"/api/conversations/{first}/compact", json={})
    assert (refused.status_code, refused.json["error"]["type"]) == (429, "LimitReached")
    assert len(stub.requests) == requests


@pytest.mark.long
def test_an_endpoint_that_does_not_count_is_counted_for(limited: Callable[..., Flask], stub: StubModel) -> None:
    stub.default = Reply("word " * 40, usage={"total_tokens": 0})
    client = sign_in(limited(), "Ann")
    ask(client)
    whole = used(client)
    assert whole > 60
    # What breaks off or is stopped was paid for, too.
    stub.replies.append(Reply("word " * 40, break_at=20))
    assert client.post("/api/query", json={"question": "Why?"}).json["status"] == "interrupted"
    assert whole < used(client) < 2 * whole


def test_who_is_at_the_limit_can_still_be_quoted_to(limited: Callable[..., Flask], stub: StubModel) -> None:
    client = sign_in(limited(MAX_TOKENS_PER_DAY_PER_PERSON="400"), "Ann")
    stub.replies.append(Reply(status=400))
    failed = client.post("/api/query", json={"question": "Why?"}).json
    assert failed["status"] == "failed"
    ask(client)
    assert client.post(f"/api/turns/{failed['turn_id']}/retry", json={}).status_code == 429
    assert client.post(f"/api/turns/{failed['turn_id']}/retry", json={"quotes": True}).status_code == 202


@pytest.mark.long
def test_what_was_counted_while_the_clock_was_wrong_keeps_nobody_from_asking(limited: Callable[..., Flask]) -> None:
    app = limited(MAX_TOKENS_PER_DAY_PER_PERSON="300")
    ann = sign_in(app, "Ann")
    ask(ann)
    assert ann.post("/api/query", json={"question": "Why?"}).status_code == 429
    age(app, days=-400)
    assert used(ann) == 0
    ask(ann)


@pytest.mark.parametrize("count", sample([2**31, 9 * 10**18, 10**30, -1]))
def test_a_count_that_cannot_be_true_uses_nothing_up(
    limited: Callable[..., Flask], stub: StubModel, count: int
) -> None:
    client = sign_in(limited(MAX_TOKENS_PER_DAY_PER_PERSON="1000000"), "Ann")
    stub.default = Reply(usage={"prompt_tokens": count, "completion_tokens": count}, finish_reason="x" * 10_000)
    for _ in range(3):
        assert ask(client)["status"] == "completed"
    assert 0 < used(client) < 1_000_000


def test_what_was_used_before_there_was_a_limit_counts(
    environment: dict[str, str], stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.default = Reply(usage=USAGE)
    app = create_app(environment)
    services: Services = app.extensions["assistant"]
    client = app.test_client()
    ask(client)
    with services.database.read() as connection:
        assert connection.execute(model_tokens.select()).all() == [], "without a limit, once a minute"
    monkeypatch.setattr("rag_assistant.accounts.limits.COUNT_INTERVAL_SECONDS", 0)
    ask(client)
    monkeypatch.undo()
    ask(client)
    settings = Path(environment["SETTINGS_FILE"])
    settings.write_text('{"max_tokens_per_day": 1200}')
    services.settings.look()
    refused = client.post("/api/query", json={"question": "More?"})
    assert (refused.status_code, refused.json["error"]["type"]) == (503, "SharedLimitReached")
    app.extensions["assistant"].close()


PRICES = '{"stub-model": [10000, 20000]}'


@pytest.mark.long
def test_a_budget_is_used_up_until_it_is_a_month_old(limited: Callable[..., Flask]) -> None:
    app = limited(MODEL_PRICES=PRICES, MAX_COST_PER_PERSON="9.5")
    ann, ben = sign_in(app, "Ann"), sign_in(app, "Ben")
    banner = "of the budget for models is used"
    ask(ann)
    assert ann.get("/api/account").json["limits"]["cost"] == {"used": 5, "limit": 9.5}
    assert banner not in ann.get("/", headers=PAGE).text
    ask(ann)
    assert f"105 % {banner}" in ann.get("/", headers=PAGE).text
    assert "Cost of models in the last 30 days: 10.00 of 9.50" in ann.get("/account", headers=PAGE).text
    for path, body in (
        ("/api/query", {"question": "More?"}),
        ("/api/query/stream", {"question": "More?"}),
        ("/v1/chat/completions", {"model": "rag-assistant", "messages": [{"role": "user", "content": "More?"}]}),
    ):
        refused = ann.post(path, json=body)
        assert (refused.status_code, refused.headers["Retry-After"] > "2588000") == (429, True), path
        assert "You have used your budget of 9.5 for a month. Try again in 30 days." in refused.text
    german = ann.post("/ask", data={"question": "More?"}, headers=PAGE | {"Accept-Language": "de"})
    assert "Wartezeit: 30 Tage." in german.text
    assert ask(ben)["status"] == "completed"
    age(app, days=29)
    assert ann.post("/api/query", json={"question": "More?"}).status_code == 429
    age(app, days=1)
    assert ask(ann)["status"] == "completed"


@pytest.mark.long
def test_a_budget_of_a_day_is_free_again_the_next_day(limited: Callable[..., Flask]) -> None:
    app = limited(MODEL_PRICES=PRICES, MAX_COST="5", MAX_COST_PERIOD="day")
    ann, ben = sign_in(app, "Ann"), sign_in(app, "Ben")
    ask(ann)
    refused = ben.post("/api/query", json={"question": "More?"})
    assert (refused.status_code, refused.json["error"]["type"]) == (503, "SharedLimitReached")
    assert "This server has used its budget of 5 for a day. Try again in 24 hours." in refused.text
    age(app, days=1)
    assert ask(ben)["status"] == "completed"


@pytest.mark.long
def test_a_question_reads_one_sum_for_each_limit_and_no_turns(limited: Callable[..., Flask]) -> None:
    every = {"MAX_COST": "99", "MAX_COST_PER_PERSON": "99", "MAX_TOKENS_PER_DAY": "9999999"}
    app = limited(MODEL_PRICES=PRICES, MAX_TOKENS_PER_DAY_PER_PERSON="9999999", **every)
    ann, ben = sign_in(app, "Ann"), sign_in(app, "Ben")
    for client in (ann, ben) * 3:
        ask(client)
    services: Services = app.extensions["assistant"]
    read: list[str] = []
    with listening(
        Engine, "before_cursor_execute", lambda *event: read.append(event[2]) if event[2] != "BEGIN" else None
    ):
        services.for_person(1, changes_documents=True).model_limits.refuse_beyond()
    assert (len(read), [sql for sql in read if "FROM model_tokens" not in sql]) == (4, [])


def test_the_page_warns_before_a_limit_is_reached(limited: Callable[..., Flask]) -> None:
    app = limited(MAX_TOKENS_PER_DAY_PER_PERSON="500", MAX_TOKENS_PER_DAY="10000")
    ann, ben = sign_in(app, "Ann"), sign_in(app, "Ben")
    assert "of the tokens for a day are used" not in ann.get("/", headers=PAGE).text
    ask(ann)
    assert "80 % of the tokens for a day are used." in ann.get("/", headers=PAGE).text
    assert "of the tokens for a day are used" not in ben.get("/", headers=PAGE).text
