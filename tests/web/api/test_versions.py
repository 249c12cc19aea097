"""Answers given anew: every earlier one is kept, and any of them can be the turn's answer again."""

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.writer import unchecked
from rag_assistant.records import Question
from rag_assistant.services import Services
from rag_assistant.storage.conversations.turn_endings import AnswerLog
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import kept
from tests.web.conftest import PAGE, ask, owned_by_the_dead, post, until, upload


def regenerated(client: FlaskClient, turn_id: int) -> dict:  # type: ignore[type-arg]
    response = client.post(f"/api/turns/{turn_id}/regenerate")
    assert response.status_code == 202, response.text
    until(lambda: client.get(f"/api/turns/{turn_id}").json["status"] != "running")
    turn: dict = client.get(f"/api/turns/{turn_id}").json  # type: ignore[type-arg]
    return turn


def answers(client: FlaskClient, turn_id: int) -> list[tuple[int, str, bool]]:
    listed = client.get(f"/api/turns/{turn_id}/versions").json["versions"]
    return [(one["version"], one["answer"], one["chosen"]) for one in listed]


def test_an_answer_given_anew_keeps_the_earlier_one(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("The first.")
    turn = ask(client)
    assert (turn["version"], turn["versions"]) == (1, 1)
    stub.default = Reply("The second.")
    again = regenerated(client, turn["turn_id"])
    assert (again["answer"], again["version"], again["versions"], again["turn"]) == ("The second.", 2, 2, 1)
    assert answers(client, turn["turn_id"]) == [(1, "The first.", False), (2, "The second.", True)]


@pytest.mark.long
def test_quotes_stand_beside_a_models_answer_where_they_are_wanted(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lighthouse keeper feeds seventeen geese.")
    stub.default = Reply("Twelve [1].")
    turn = ask(client, "How many geese does the lighthouse keeper feed?")
    page = f"/turns/{turn['turn_id']}"
    button = "Quote my documents instead"
    assert button in client.get(page, headers=PAGE).text
    before = len(stub.requests)
    assert client.post(f"{page}/regenerate", data={"quotes": "true"}, headers=PAGE).status_code == 303
    services = client.application.extensions["assistant"]
    again = services.assistant.wait(turn["turn_id"])
    assert (again.model, again.version, len(stub.requests)) == ("quotes", 2, before)
    assert "seventeen geese" in again.answer
    assert again.answer.startswith("Here is what your documents say:")
    assert button not in client.get(page, headers=PAGE).text
    url = f"/api/turns/{turn['turn_id']}/regenerate"
    assert "true or false" in client.post(url, json={"quotes": "perhaps"}).json["error"]["message"]
    assert client.post(url, json={"quotes": True}).status_code == 202
    assert services.assistant.wait(turn["turn_id"]).versions == 3


@pytest.mark.parametrize(
    ("question", "said"),
    sample(
        [
            ("Summarise the lighthouse.", "That needs the language model: quotes only repeat what your documents say."),
            (
                "And the other one?",
                "There is nothing to quote for this question. Add documents that answer it.",
            ),
        ]
    ),
)
def test_quotes_beside_a_connected_model_do_not_ask_for_one(client: FlaskClient, question: str, said: str) -> None:
    turn = ask(client, question)
    assert client.post(f"/api/turns/{turn['turn_id']}/regenerate", json={"quotes": True}).status_code == 202
    assert client.application.extensions["assistant"].assistant.wait(turn["turn_id"]).answer == said


def test_what_is_answered_anew_does_not_see_its_own_earlier_answer(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "One")
    turn = ask(client, "Two", conversation_id=first["conversation_id"])
    sent = [message["content"] for message in stub.requests[-1].messages]
    regenerated(client, turn["turn_id"])
    assert [message["content"] for message in stub.requests[-1].messages] == sent


def test_a_chosen_answer_is_whole_and_is_what_the_model_sees_next(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The lighthouse keeper feeds seventeen geese.")
    stub.default = Reply("Seventeen [1].")
    turn = ask(client, "How many geese does the lighthouse keeper feed?")
    receipt = client.get(f"/api/turns/{turn['turn_id']}/receipt").json
    stub.default = Reply("No idea.")
    regenerated(client, turn["turn_id"])
    chosen = client.post(f"/api/turns/{turn['turn_id']}/versions/1/choose").json
    assert chosen == turn | {"versions": 2}
    assert client.get(f"/api/turns/{turn['turn_id']}/receipt").json == receipt
    assert [chosen for _, _, chosen in answers(client, turn["turn_id"])] == [True, False]
    stub.default = Reply("Fine.")
    ask(client, "And ducks?", conversation_id=turn["conversation_id"])
    assert [m["content"] for m in stub.requests[-1].messages if m["role"] == "assistant"] == ["Seventeen [1]."]
    found = client.get("/api/conversations", query_string={"q": "idea"}).json["conversations"]
    assert found == []


def test_the_counters_are_right_after_each_change(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client)
    stub.default = Reply(status=401)
    failed = regenerated(client, turn["turn_id"])
    path = f"/api/conversations/{turn['conversation_id']}"
    assert (failed["status"], failed["versions"]) == ("failed", 2)
    assert client.get(path).json["view"]["turns_kept"] == 0
    client.post(f"/api/turns/{turn['turn_id']}/versions/1/choose")
    assert client.get(path).json["view"]["turns_kept"] == 1
    client.post(f"/api/turns/{turn['turn_id']}/versions/2/choose")
    assert client.get(path).json["view"]["turns_kept"] == 0


def test_a_failed_answer_is_not_worth_keeping(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=401)
    client.post("/api/query", json={"question": "Why?"})
    stub.default = Reply("Because.")
    assert regenerated(client, 1)["versions"] == 1


def test_a_server_that_dies_meanwhile_leaves_the_earlier_answer(
    client: FlaskClient, services: Services, stub: StubModel
) -> None:
    turn = ask(client)
    with owned_by_the_dead(services) as dead:
        running, _ = services.turns.regenerate(turn["turn_id"])
        AnswerLog(services.database, dead).append_all([(running.id, 0, "Half an")])
    services.turns.interrupt_unfinished(unchecked)
    again = client.get(f"/api/turns/{turn['turn_id']}").json
    assert (again["status"], again["answer"], again["version"]) == ("interrupted", "Half an", 2)
    assert answers(client, turn["turn_id"]) == [(1, "An answer.", False), (2, "Half an", True)]


def refusal(client: FlaskClient, path: str) -> tuple[int, str]:
    response = client.post(path)
    return response.status_code, response.json["error"]["type"] + ": " + response.json["error"]["message"]


def test_only_the_last_turn_is_answered_anew(client: FlaskClient) -> None:
    first = ask(client, "One")
    ask(client, "Two", conversation_id=first["conversation_id"])
    status, said = refusal(client, f"/api/turns/{first['turn_id']}/regenerate")
    assert (status, said.split(".")[0]) == (
        409,
        "TurnNotRegenerable: Turn 1 is no longer the last in its conversation",
    )


def test_a_running_turn_is_left_alone(client: FlaskClient, services: Services) -> None:
    turn = services.turns.accept(Question("Why?"), "t")[0]
    assert refusal(client, f"/api/turns/{turn.id}/regenerate")[0] == 409
    services.turns.finish(turn, "completed", "Because.")


def test_a_version_that_is_not_there_is_refused(client: FlaskClient) -> None:
    turn = ask(client)
    assert refusal(client, f"/api/turns/{turn['turn_id']}/versions/7/choose") == (
        404,
        "VersionNotFound: Turn 1 has no answer 7; it has 1.",
    )


@pytest.mark.long
def test_an_answer_that_is_summarised_stays(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client, "One " + "word " * 200)
    regenerated(client, turn["turn_id"])
    for n in range(3):
        kept(client, f"Question {n} " + "word " * 200, turn["conversation_id"])
    stub.default = Reply("It was about words.")
    assert client.post(f"/api/conversations/{turn['conversation_id']}/compact").status_code == 200
    status, said = refusal(client, f"/api/turns/{turn['turn_id']}/versions/1/choose")
    assert (status, said.split(":")[0]) == (409, "VersionFixed")
    client.post(f"/api/conversations/{turn['conversation_id']}/undo")
    assert client.post(f"/api/turns/{turn['turn_id']}/versions/1/choose").status_code == 200


@pytest.mark.long
def test_an_answer_stays_that_a_summary_tells_of_which_an_undo_would_bring_back(
    client: FlaskClient, stub: StubModel
) -> None:
    turn = ask(client, "One " + "word " * 200)
    regenerated(client, turn["turn_id"])
    path = f"/api/conversations/{turn['conversation_id']}"
    for n in range(3):
        kept(client, f"Question {n} " + "word " * 200, turn["conversation_id"])
    stub.default = Reply("It was about words.")
    assert client.post(f"{path}/compact").status_code == 200
    assert client.post(f"{path}/clear").status_code == 200
    assert refusal(client, f"/api/turns/{turn['turn_id']}/versions/1/choose")[0] == 409
    client.post(f"{path}/undo")
    client.post(f"{path}/undo")
    assert client.post(f"/api/turns/{turn['turn_id']}/versions/1/choose").status_code == 200


def test_a_cleared_turn_is_not_answered_anew(client: FlaskClient) -> None:
    turn = ask(client)
    client.post(f"/api/conversations/{turn['conversation_id']}/clear")
    assert refusal(client, f"/api/turns/{turn['turn_id']}/regenerate")[0] == 409


@pytest.mark.long
def test_plain_forms_do_the_same(client: FlaskClient, stub: StubModel) -> None:
    turn = ask(client)
    stub.default = Reply("Another one.")
    assert post(client, f"/turns/{turn['turn_id']}/regenerate") == (303, "/conversations/1#turn-1")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    assert "Previous answer" in client.get("/conversations/1").text
    assert post(client, f"/turns/{turn['turn_id']}/versions", version="1") == (303, "/conversations/1#turn-1")
    assert client.get("/api/turns/1").json["answer"] == "An answer."
