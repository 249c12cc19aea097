"""A model server that cuts a prompt by itself, answers with 200 and tells by its count alone, as Ollama does."""

import threading
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.request import IS_TRIED
from rag_assistant.llm import client as client_module
from rag_assistant.llm.calls import ModelCall
from rag_assistant.llm.client import OWN_ADDRESSES, ModelClient
from rag_assistant.records import ModelReply, ModelRequest, Reading
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, Seen, StubModel
from tests.web.api.conversations import turn_ids
from tests.web.api.documents import running
from tests.web.conftest import ask, events_of, until

SENTENCE = "The harbour of Bremerhaven was built when the river had silted up for the third time in a century. "
ANSWER = "".join(f"{n}. {SENTENCE}" for n in range(50))
CONTEXT_TOKENS = 4096
CUT = ModelReply(usage={"prompt_tokens": 2050})


def tokens_in(messages: list[dict[str, Any]]) -> int:
    """Return how many tokens the server counts: an English text has some four characters in each."""
    return sum(4 + len(message["content"]) * 2 // 9 for message in messages)


@pytest.fixture(autouse=True)
def cuts(stub: StubModel) -> None:
    """Let the server keep half of its context, and say nothing of it."""

    def read(messages: list[dict[str, Any]]) -> int:
        sent = tokens_in(messages)
        return sent if sent <= CONTEXT_TOKENS else CONTEXT_TOKENS // 2 + 2

    stub.count, stub.default = read, Reply(ANSWER)


@pytest.fixture
def asked_for_its_limit(stand_ins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "OWN_ADDRESSES", OWN_ADDRESSES)


pytestmark = pytest.mark.settings(MAX_HISTORY_TURNS="20")


def cut_answer(client: FlaskClient, conversation: int | None = None) -> dict[str, Any]:
    """Ask until an answer says that its request was cut, which is believed the second time, and return it."""
    fields: dict[str, Any] = {} if conversation is None else {"conversation_id": conversation}
    for n in range(20):
        answer = ask(client, f"Question {n}. {SENTENCE}", **fields)
        fields = {"conversation_id": answer["conversation_id"]}
        if answer["history"]["endpoint"]:
            return answer
    raise AssertionError("No answer tells of a cut.")


def test_a_cut_is_told_at_the_answer_that_it_befell(client: FlaskClient, stub: StubModel) -> None:
    answer = cut_answer(client)
    sent = tokens_in(stub.requests[-1].messages)
    assert sent > CONTEXT_TOKENS
    assert [tokens_in(seen.messages) > CONTEXT_TOKENS for seen in stub.requests[-3:]] == [False, True, True]
    first = client.get(f"/api/turns/{answer['turn_id'] - 1}").json  # One low count is shown, and nothing made of it.
    assert (first["history"]["tokens"]["read"], first["history"]["endpoint"], first["notes"]) == (2050, None, [])
    cut = answer["history"]["endpoint"]
    assert (cut["read"], cut["limit"], abs(cut["sent"] - sent) < 0.1 * sent) == (2050, 4096, True)
    assert (answer["history_trimmed"], answer["notice"], answer["history"]["reason"]) == (True, None, "endpoint_limit")
    assert answer["history"]["tokens"]["read"] == 2050
    note = f"The model server read only about 2,050 of {cut['sent']:,} tokens. Its context is probably 4,096 tokens."
    assert note in answer["notes"]


@pytest.mark.long
def test_everybody_who_looks_later_is_told_the_same(client: FlaskClient) -> None:
    answer = cut_answer(client)
    turn = f"/api/turns/{answer['turn_id']}"
    (*_, (name, _, end)) = events_of(client.get(f"{turn}/stream").data)
    receipt = client.get(f"{turn}/receipt").json
    for told in (end, receipt, client.get(turn).json):
        assert (told["history_trimmed"], told["history"]["endpoint"]) == (True, answer["history"]["endpoint"])
    assert name == "end"
    assert 'rag_assistant_trims_total{reason="endpoint_limit"} 1.0' in client.get("/metrics").text
    page = client.get(f"/turns/{answer['turn_id']}").text
    assert "read only about 2,050 of" in page
    assert "Ask again with less" in page


def test_after_a_cut_the_next_request_fits_and_nothing_of_it_is_learnt(client: FlaskClient, stub: StubModel) -> None:
    answer = cut_answer(client)
    preview = client.get(f"/api/conversations/{answer['conversation_id']}/preview").json
    assert preview["tokens"]["limit"] == 4096
    for n in range(3):
        answer = ask(client, f"And then {n}? {SENTENCE}", conversation_id=answer["conversation_id"])
        sent, tokens = tokens_in(stub.requests[-1].messages), answer["history"]["tokens"]
        assert sent <= CONTEXT_TOKENS
        assert (tokens["limit"], tokens["read"], answer["history"]["endpoint"]) == (4096, sent, None)
        assert abs(tokens["total"] - sent) < 0.1 * sent
        assert (answer["history_trimmed"], answer["history"]["reason"]) == (True, "token_limit")
        assert any("UTC the limit is a guess, 4,096 tokens: of" in note for note in answer["notes"])


@pytest.mark.long
def test_a_guessed_limit_is_told_where_it_acts_and_a_connection_test_forgets_it(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    answer = cut_answer(client)
    cut = answer["history"]["endpoint"]
    answer = ask(client, f"And then? {SENTENCE}", conversation_id=answer["conversation_id"])
    guess = services.models.known_endpoint().guess
    assert guess is not None
    assert guess.sentence == (
        f"Since {guess.at:%Y-%m-%d %H:%M} UTC the limit is a guess, 4,096 tokens: of {cut['sent']:,} tokens of a "
        "request, 2,050 were read. Test the connection to forget it."
    )
    told = answer["notes"], client.get(f"/turns/{answer['turn_id']}/receipt").text, client.get("/settings").text
    assert [guess.sentence in one for one in told] == [True, True, True]
    stub.count = tokens_in
    client.post("/api/model/test")
    assert services.models.known_endpoint().guess is None
    assert "the limit is a guess" not in client.get("/settings").text


@pytest.mark.long
def test_a_connection_test_that_fails_forgets_a_guessed_limit_as_well(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    cut_answer(client)
    stub.default = Reply(status=401)
    assert client.post("/api/model/test").json["ok"] is False
    assert services.models.known_endpoint().guess is None


@pytest.mark.long
def test_once_an_hour_a_request_may_be_longer_than_the_guess_and_says_so(
    client: FlaskClient, stub: StubModel, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = cut_answer(client)["conversation_id"]
    monkeypatch.setattr("rag_assistant.llm.calibration.TO_TRY", timedelta(0))
    for read_whole in (False, True):
        stub.count = tokens_in if read_whole else stub.count
        tried = ask(client, f"And then? {SENTENCE}", conversation_id=conversation)
        assert tokens_in(stub.requests[-1].messages) > CONTEXT_TOKENS
        assert (IS_TRIED in tried["notes"], tried["history"]["tokens"]["limit"]) == (True, None)
        assert (tried["history"]["endpoint"] is None) is read_whole
    assert services.models.known_endpoint().guess is None


@pytest.mark.long
def test_regenerate_asks_with_what_fits(client: FlaskClient, stub: StubModel) -> None:
    answer = cut_answer(client)
    client.post(f"/api/turns/{turn_ids(client, answer['conversation_id'])[-1]}/regenerate")
    (*_, (_, _, end)) = events_of(client.get(f"/api/turns/{answer['turn_id']}/stream").data)
    assert tokens_in(stub.requests[-1].messages) <= CONTEXT_TOKENS
    assert (end["history"]["endpoint"], end["history"]["reason"]) == (None, "token_limit")


def told_once_cut(client: FlaskClient, stub: StubModel, **fields: Any) -> tuple[dict[str, Any], list[int]]:
    """Answer nothing to the second request that is cut; return the answer, and the tokens of the requests for it."""

    def reply(seen: Seen) -> Reply:
        cut = sum(tokens_in(one.messages) > CONTEXT_TOKENS for one in stub.requests)
        return Reply(pieces=[]) if cut > 1 and tokens_in(seen.messages) > CONTEXT_TOKENS else stub.default

    stub.next_reply = reply
    for n in range(20):
        before = len(stub.requests)
        answer = ask(client, f"Question {n}. {SENTENCE}", **fields)
        fields = {"conversation_id": answer["conversation_id"]}
        if len(stub.requests) > before + 1:
            return answer, [tokens_in(seen.messages) for seen in stub.requests[before:]]
    raise AssertionError("No request was sent again.")


def test_where_nothing_was_shown_yet_the_request_is_fitted_and_sent_again_once(
    client: FlaskClient, stub: StubModel
) -> None:
    answer, (first, second) = told_once_cut(client, stub)
    assert second <= CONTEXT_TOKENS < first
    assert (answer["answer"], answer["history"]["endpoint"]) == (ANSWER, None)
    assert (answer["history_trimmed"], answer["history"]["reason"]) == (True, "token_limit")
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert len(receipt["earlier_requests"]) == 1


def test_a_stateless_request_is_told_in_its_header(client: FlaskClient) -> None:
    turns = [{"role": "user", "content": "The code word is Walnut."}, {"role": "assistant", "content": "Noted."}]
    for n in range(4):
        turns += [{"role": "user", "content": f"Go on {n}."}, {"role": "assistant", "content": ANSWER}]
    messages = [*turns, {"role": "user", "content": "What is the code word?"}]
    for is_told in False, True:
        response = client.post("/v1/chat/completions", json={"model": "rag-assistant-plain", "messages": messages})
        assert response.status_code == 200, response.text
        told = response.json["rag_assistant"]["history"]
        assert (response.json["history_trimmed"], told["endpoint"] is not None) == (is_told, is_told)
    assert (told["endpoint"]["read"], told["turns_dropped"]) == (2050, 0)
    assert response.headers["X-History-Trimmed"] == "true"


def test_an_honest_count_raises_no_alarm(client: FlaskClient, stub: StubModel) -> None:
    stub.count = tokens_in
    conversation = None
    for n in range(5):
        fields: dict[str, Any] = {} if conversation is None else {"conversation_id": conversation}
        answer = ask(client, f"Question {n}. {SENTENCE}", **fields)
        conversation = answer["conversation_id"]
        assert answer["history"]["endpoint"] is None
        assert answer["history"]["tokens"]["read"] == tokens_in(stub.requests[-1].messages)
    assert answer["history_trimmed"] is False


@pytest.mark.long
def test_a_restart_forgets_a_guessed_limit_and_a_set_one_is_believed(
    client: FlaskClient, stub: StubModel, services: Services, environment: dict[str, str]
) -> None:
    conversation = cut_answer(client)["conversation_id"]
    services.close()
    for more, limit in ({}, None), ({"MODEL_CONTEXT_TOKENS": "4096"}, 4096), ({"MODEL_CONTEXT_TOKENS": "9000"}, 9000):
        with running(environment, **more) as (again, _):
            for n in range(2):
                answer = ask(again, f"With {more}, {n}? {SENTENCE}", conversation_id=conversation)
        sent, tokens = tokens_in(stub.requests[-1].messages), answer["history"]["tokens"]
        assert (sent > CONTEXT_TOKENS) is (limit != 4096)
        assert (tokens["limit"], answer["history"]["endpoint"] is not None) == (limit, limit is None)
        assert tokens["read"] == (2050 if sent > CONTEXT_TOKENS else sent)


@pytest.mark.long
@pytest.mark.usefixtures("asked_for_its_limit")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/show", {"parameters": 'temperature 0.7\nnum_ctx                  4096\nstop "<|eot|>"'}),
        ("/props", {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}),
    ],
    ids=["by POST", "by GET"],
)
def test_a_server_that_tells_its_limit_once_the_model_is_loaded_never_cuts(
    client: FlaskClient, stub: StubModel, services: Services, path: str, body: dict[str, Any]
) -> None:
    stub.own_addresses[path] = body
    answer = ask(client, "First.")
    until(lambda: services.models.known_endpoint().context_tokens == 4096)
    for n in range(5):
        answer = ask(client, f"Question {n}. {SENTENCE}", conversation_id=answer["conversation_id"])
        assert (answer["history"]["tokens"]["limit"], answer["history"]["endpoint"]) == (4096, None)
    assert answer["history"]["reason"] == "token_limit"


def test_the_end_of_an_answer_does_not_wait_for_the_limit_that_the_server_tells(
    client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, tells = threading.Event(), threading.Event()

    def limit(*_: object) -> int | None:
        asked.set()
        return 4096 if tells.wait(20) else None

    monkeypatch.setattr(ModelClient, "limit_of_loaded", limit)
    assert ask(client)["status"] == "completed"
    assert asked.wait(20)
    assert services.models.known_endpoint().context_tokens is None
    tells.set()
    until(lambda: services.models.known_endpoint().context_tokens == 4096)


@pytest.mark.usefixtures("asked_for_its_limit")
def test_a_server_that_answers_something_else_tells_no_limit(client: FlaskClient, stub: StubModel) -> None:
    stub.own_addresses |= dict.fromkeys(OWN_ADDRESSES, 7)
    ask(client)
    assert ask(client)["history"]["tokens"]["limit"] is None


def test_requests_beside_the_answer_teach_no_limit(client: FlaskClient, stub: StubModel, services: Services) -> None:
    models, request = services.models, ModelRequest(({"role": "user", "content": SENTENCE * 400},))
    for _ in range(3):
        models.ask_aside(models.endpoint(ModelCall()), request, ModelCall())
    conversation = ask(client, f"Question 0. {SENTENCE}", max_history_turns=0)["conversation_id"]
    for n in range(1, 10):
        ask(client, f"Question {n}. {SENTENCE}", conversation_id=conversation, max_history_turns=0)
    for _ in range(2):
        client.post(f"/api/conversations/{conversation}/compact")
        assert tokens_in(stub.requests[-1].messages) > CONTEXT_TOKENS
        client.post(f"/api/conversations/{conversation}/undo")
    assert models.known_endpoint().guess is None
    # Nothing is suspected either: one low count of an answer is the first.
    assert models.calibration.read(models.endpoint(ModelCall()), request, CUT) == Reading(ANY, 2050, None)


def test_an_endpoint_that_was_away_may_have_another_limit(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    models, request = services.models, ModelRequest(({"role": "user", "content": SENTENCE * 400},))
    endpoint = models.endpoint(ModelCall())
    assert [models.calibration.read(endpoint, request, CUT) for _ in range(2)][1] == Reading(ANY, 2050, 4096)
    assert models.known_endpoint().guess is not None
    stub.close()
    client.post("/api/query", json={"question": "Why?"})
    assert models.known_endpoint().guess is None
