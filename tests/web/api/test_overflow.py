"""What happens when a question would leave turns out: trim, ask, compact, reset, continue; and taking it back."""

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.overflow import CONTINUED_IN_PART
from rag_assistant.services import Services
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import FILLER, conversation_of, said, view
from tests.web.conftest import ask

# --- ask


@pytest.mark.parametrize("choice", sample(["trim", "compact", "reset", "continue"]))
def test_each_choice_says_what_comes_of_it(client: FlaskClient, stub: StubModel, choice: str) -> None:
    conversation = conversation_of(client, 6)
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 3})
    refused = client.post(
        "/api/query", json={"question": "Question 7.", "conversation_id": conversation, "on_overflow": "ask"}
    )
    options = refused.json["error"]["details"]["options"]
    promised = {
        "trim": "The model sees turns 4 to 6.",
        "compact": "A summary replaces turns 1 to 4; the model also sees turns 5 and 6.",
        "reset": "The model sees none of the earlier turns.",
        "continue": "The model sees turns 1 to 6, just this once: about ",
    }
    assert options[choice].startswith(promised[choice])
    if choice == "compact":
        stub.replies.append(Reply("They spoke of questions."))
    ask(client, "Question 7.", conversation_id=conversation, on_overflow=choice)
    seen = {"trim": [4, 5, 6], "compact": [5, 6], "reset": [], "continue": [1, 2, 3, 4, 5, 6]}[choice]
    assert said(stub) == [f"Question {number}" for number in [*seen, 7]]
    summary = view(client, conversation)["summary"]
    assert summary is None if choice != "compact" else (summary["first_turn"], summary["last_turn"]) == (1, 4)


def test_ask_refuses_before_the_first_byte_and_keeps_nothing(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    requests = len(stub.requests)
    for path in ("/api/query", "/api/query/stream"):
        refused = client.post(
            path, json={"question": "And now?", "conversation_id": conversation, "on_overflow": "ask"}
        )
        assert refused.status_code == 409
        error = refused.json["error"]
        assert error["type"] == "OverflowDecisionNeeded"
        assert "leave out 1 earlier turn: turn 1." in error["message"]
        assert set(error["details"]["options"]) == {"trim", "compact", "reset", "continue"}
        assert error["details"]["history"]["turns_dropped"] == 1
        assert error["details"]["history"]["tokens"]["total"] > 0
    assert len(stub.requests) == requests
    assert client.get(f"/api/conversations/{conversation}").json["turns"] == 6


def test_ask_lets_a_question_pass_that_leaves_nothing_out(client: FlaskClient) -> None:
    conversation = conversation_of(client, 5)
    assert ask(client, "Fits.", conversation_id=conversation, on_overflow="ask")["history_trimmed"] is False


def test_what_was_decided_is_not_asked_again(client: FlaskClient) -> None:
    conversation = conversation_of(client, 6)
    client.patch(f"/api/conversations/{conversation}", json={"on_overflow": "ask"})
    body = {"question": "And now?", "conversation_id": conversation}
    assert client.post("/api/query", json=body).status_code == 409
    assert client.post("/api/query", json=body | {"on_overflow": "trim"}).json["history_trimmed"] is True
    again = client.post("/api/query", json=body)
    assert again.status_code == 409
    assert "leave out" in again.json["error"]["message"]
    client.patch(f"/api/conversations/{conversation}", json={"on_overflow": "trim"})
    assert client.post("/api/query", json=body).status_code == 200


def test_an_unknown_choice_is_refused(client: FlaskClient) -> None:
    refused = client.post("/api/query", json={"question": "x", "on_overflow": "forget"})
    assert refused.status_code == 422
    assert "one of trim, ask, compact, reset, continue" in refused.json["error"]["message"]


# --- reset and continue


def test_reset_lets_the_model_begin_afresh(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    answer = ask(client, "Question 7.", conversation_id=conversation, on_overflow="reset")
    assert said(stub) == ["Question 7"]
    assert answer["history_trimmed"] is True
    assert answer["notice"] == "[History trimmed to last 0 turns]"
    assert answer["history"]["turns_dropped"] == 6
    assert "started over" in answer["notes"][0]
    after = ask(client, "Question 8.", conversation_id=conversation)
    assert said(stub) == ["Question 7", "Question 8"]
    assert after["history_trimmed"] is False
    receipt = client.get(f"/api/turns/{after['turn_id']}/receipt").json
    assert [(run["reason"], run["turns"], run["trimmed"]) for run in receipt["left_out"]] == [("cleared", 6, False)]


def test_what_a_person_cleared_is_not_told_as_a_reset_of_the_next_question(client: FlaskClient) -> None:
    conversation = conversation_of(client, 2)
    client.patch(f"/api/conversations/{conversation}", json={"on_overflow": "reset"})
    client.post(f"/api/conversations/{conversation}/clear")
    answer = ask(client, "Question 3.", conversation_id=conversation)
    assert (answer["history_trimmed"], answer["history"]["left_out"]) == (False, {"cleared": 2})


def test_continue_sends_everything_once_with_a_warning(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 7)
    answer = ask(client, "Question 8.", conversation_id=conversation, on_overflow="continue")
    assert answer["history_trimmed"] is False
    assert answer["history"]["turns_kept"] == 7
    assert "All earlier turns were sent this once" in answer["notes"][0]
    assert ask(client, "Question 9.", conversation_id=conversation)["history"]["turns_kept"] == 5


@pytest.mark.long
def test_continue_says_that_what_is_summarised_stays_out(client: FlaskClient) -> None:
    conversation = conversation_of(client, 7)
    ask(client, "Question 8.", conversation_id=conversation, on_overflow="compact")
    ask(client, "Question 9.", conversation_id=conversation, on_overflow="trim")
    ask(client, "Question 10.", conversation_id=conversation, on_overflow="trim")
    answer = ask(client, "Question 11.", conversation_id=conversation, on_overflow="continue")
    assert answer["history"]["turns_kept"] < 10
    assert answer["notes"] == [CONTINUED_IN_PART]


# --- undo


def test_everything_can_be_undone_also_after_a_restart(
    client: FlaskClient, stub: StubModel, services: Services, environment: dict[str, str]
) -> None:
    conversation = conversation_of(client, 6)
    stub.replies.extend([Reply("A summary."), Reply("An answer.")])
    ask(client, f"Question 7. {FILLER}", conversation_id=conversation, on_overflow="compact")
    client.put(f"/api/conversations/{conversation}/summary", json={"text": "Edited."})
    client.post(f"/api/conversations/{conversation}/reset")
    assert view(client, conversation)["turns_kept"] == 0
    services.close()
    from rag_assistant.web import create_app

    made = create_app(environment)
    again = made.test_client()
    try:
        undo = f"/api/conversations/{conversation}/undo"
        assert again.post(undo).json["undone"] == "reset"
        assert view(again, conversation)["summary"]["text"] == "Edited."
        assert again.post(undo).json["undone"] == "edit summary"
        assert view(again, conversation)["summary"]["text"] == "Turns 1 to 3: A summary."
        undone = again.post(undo).json
        assert (undone["undone"], undone["view"]["summary"], undone["view"]["turns_kept"]) == ("compact", None, 5)
        nothing = again.post(undo)
        assert (nothing.status_code, nothing.json["error"]["type"]) == (409, "NothingToUndo")
        turns = again.get(f"/api/conversations/{conversation}/turns").json["turns"]
        assert [turn["question"].split(".")[0] for turn in turns] == [f"Question {n}" for n in range(1, 8)]
    finally:
        made.extensions["assistant"].close()


def test_undoing_a_fresh_start_takes_back_the_decision_too(client: FlaskClient) -> None:
    conversation = conversation_of(client, 3)
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 1, "on_overflow": "ask"})
    body = {"question": "And now?", "conversation_id": conversation}
    assert client.post("/api/query", json=body | {"on_overflow": "reset"}).status_code == 200
    client.post(f"/api/conversations/{conversation}/undo")
    refused = client.post("/api/query", json=body)
    assert refused.status_code == 409
    assert refused.json["error"]["details"]["sentence"].endswith("leave out 3 earlier turns: turns 1 to 3.")
