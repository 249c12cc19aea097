"""A turn that is erased is nowhere any more; its place is, and everything that other turns say."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.records.errors import HistoryChanged
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import FILLER, conversation_of, view
from tests.web.conftest import PAGE, ask, both_engines, post, until, upload
from tests.web.leftovers import SECRET, compressed_with_secret, files_with, tables_with_secret

pytestmark = pytest.mark.settings(HISTORY_RECALL="2", QUERY_REWRITING="model")


def erase(client: FlaskClient, turn: int) -> Any:
    response = client.delete(f"/api/turns/{turn}?permanently=1")
    assert response.status_code == 200, response.text
    return response.json


def turns_of(client: FlaskClient, conversation: int) -> Any:
    return client.get(f"/api/conversations/{conversation}/turns").json["turns"]


def receipt(client: FlaskClient, turn: int) -> Any:
    return client.get(f"/api/turns/{turn}/receipt").json


def regenerate(client: FlaskClient, turn: int) -> None:
    assert client.post(f"/api/turns/{turn}/regenerate").status_code == 202
    until(lambda: client.get(f"/api/turns/{turn}").json["status"] == "completed")


def told_everywhere(client: FlaskClient, stub: StubModel) -> Any:
    """Say a secret in a first turn, let everything be made of it that can be, and return that turn."""
    upload(client, "The lighthouse keeper feeds seventeen geese.")
    stub.replies.extend([Reply(f"First {SECRET}. {FILLER}"), Reply(f"Again {SECRET}. {FILLER}")])
    keyed = {"question": f"What is {SECRET}?"}
    told = client.post("/api/query", json=keyed, headers={"Idempotency-Key": SECRET}).json
    here = {"conversation_id": told["conversation_id"]}
    regenerate(client, told["turn_id"])
    stub.replies.append(Reply(f"{SECRET} geese"))  # The query that the model writes for a follow-up.
    second = ask(client, "And why?", **here)
    assert second["search"]["by"] == "model"
    regenerate(client, second["turn_id"])
    ask(client, f"Else. {FILLER}", **here)
    client.patch(f"/api/turns/{told['turn_id']}", json={"pinned": True})
    client.patch(f"/api/turns/{told['turn_id']}", json={"pinned": False})
    ask(client, "And why not?", edits_turn=second["turn_id"])  # A branch with a copy.
    right = {"rating": "down", "right_answer": f"It is {SECRET}."}
    assert client.put(f"/api/turns/{told['turn_id']}/rating", json=right).status_code == 200
    recalling = ask(client, "What was said at some length?", max_history_turns=1, **here)
    assert recalling["history"]["recalled_turns"]
    stub.replies.append(Reply(f"They spoke of {SECRET}."))
    path = f"/api/conversations/{told['conversation_id']}"
    assert client.post(f"{path}/compact", json={}).status_code == 200
    assert client.put(f"{path}/summary", json={"text": f"About {SECRET}."}).status_code == 200
    ask(client, "Now?", **here)
    return told


EVERYWHERE = {
    *("conversations", "turns", "messages", "receipts", "answer_versions", "summaries", "ratings", "turn_words"),
}


@both_engines
def test_nothing_of_an_erased_turn_is_left_in_any_table_or_file(
    client: FlaskClient, stub: StubModel, services: Services
) -> None:
    told = told_everywhere(client, stub)
    assert tables_with_secret(services) == EVERYWHERE
    assert client.get(f"/api/conversations?q={SECRET}").json["conversations"]
    compressed = compressed_with_secret(services)
    assert len(compressed) > 5
    erase(client, told["turn_id"])
    assert tables_with_secret(services) == set()
    assert files_with(services, SECRET.encode(), SECRET.capitalize().encode(), *compressed) == []
    assert client.get(f"/api/conversations?q={SECRET}").json["conversations"] == []


def test_its_place_stays_and_says_so(client: FlaskClient) -> None:
    conversation = conversation_of(client, 3)
    first, second, third = turns_of(client, conversation)
    erased = erase(client, second["turn_id"])
    assert (erased["status"], erased["question"], erased["answer"], erased["turn"]) == ("erased", "", "", 2)
    assert erase(client, second["turn_id"])["erased_at"] == erased["erased_at"]
    now = turns_of(client, conversation)
    assert [turn["turn"] for turn in now] == [1, 2, 3]
    assert (now[0], now[2]["answer"]) == (first, third["answer"])
    page = client.get(f"/conversations/{conversation}").text
    assert "Turn 2 was erased on " in page
    asked = ask(client, "Question 4.", conversation_id=conversation)
    assert "The model saw" not in client.get(f"/turns/{asked['turn_id']}").text, "it saw all that is left"
    assert "## 2. (erased)" in client.get(f"/api/conversations/{conversation}/export").text
    assert client.get(f"/api/conversations/{conversation}/export?format=json").json["turns"][1]["status"] == "erased"


@pytest.mark.long
def test_it_counts_among_no_turns_and_is_named_as_erased(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 4)
    erase(client, turns_of(client, conversation)[1]["turn_id"])
    answer = ask(client, "Question 5.", conversation_id=conversation, max_history_turns=2)
    assert (answer["history_trimmed"], answer["history"]["turns_total"]) == (True, 3)
    assert answer["history"]["left_out"] == {"turn_limit": 1, "erased": 1}
    page = client.get(f"/turns/{answer['turn_id']}").text
    assert "The model saw 2 of 3 earlier turns (1 over the turn limit)." in page
    assert "erased (0 messages)" in client.get(f"/turns/{answer['turn_id']}/receipt").text


def test_receipts_of_later_turns_say_what_was_erased_of_them(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([Reply("First answer."), Reply("(a query)"), Reply("Second answer.")])
    first = ask(client, "First question?")
    second = ask(client, "And after that?", conversation_id=first["conversation_id"])
    third = ask(client, "Third question?", conversation_id=first["conversation_id"])
    erase(client, first["turn_id"])
    found = receipt(client, third["turn_id"])
    assert [one["content"] for one in found["messages"][1:5]] == [
        "[Erased: 15 characters]",
        "[Erased: 13 characters]",
        "And after that?",
        "Second answer.",
    ]
    assert found["erased_turns"] == [1]
    assert "prefix_sha256" not in found
    page = client.get(f"/turns/{second['turn_id']}/receipt").text
    assert "This is what was sent to stub-model" in page
    assert "Erased since: turn 1." in page
    fourth = ask(client, "Fourth?", conversation_id=first["conversation_id"])
    assert "exactly what was sent" in client.get(f"/turns/{fourth['turn_id']}/receipt").text


def test_a_summary_of_it_is_dropped_and_no_undo_brings_it_back(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    path = f"/api/conversations/{conversation}"
    pinned, erased = (turns_of(client, conversation)[n]["turn_id"] for n in (4, 0))
    client.patch(f"/api/turns/{pinned}", json={"pinned": True})
    stub.replies.append(Reply("They spoke of questions."))
    client.post(f"{path}/compact")
    client.put(f"{path}/summary", json={"text": "They asked."})
    client.patch(f"/api/turns/{erased}", json={"pinned": True})
    erase(client, erased)
    seen = view(client, conversation)
    assert (seen["summary"], seen["kept_turns"]) == (None, [[2, 6]])
    assert seen["undo"] == "pin"
    client.post(f"{path}/undo")
    assert client.get(f"/api/turns/{pinned}").json["pinned"] is False
    assert client.post(f"{path}/undo").status_code == 409


def test_a_summary_that_is_being_made_of_it_is_not_kept(client: FlaskClient, services: Services) -> None:
    begun = services.conversations.get(conversation_of(client, 3))
    erase(client, turns_of(client, begun.id)[0]["turn_id"])
    with pytest.raises(HistoryChanged):
        services.history.keep_summary(begun, "They asked.", [1, 2], "stub-model", None)


@pytest.mark.long
def test_a_summary_of_other_turns_stays(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    stub.replies.append(Reply("They spoke of questions."))
    client.post(f"/api/conversations/{conversation}/compact")
    erase(client, turns_of(client, conversation)[5]["turn_id"])
    assert view(client, conversation)["summary"]["text"] == "Turns 1 to 3: They spoke of questions."


@pytest.mark.long
def test_copies_in_branches_of_branches_go_too_and_from_the_trash(client: FlaskClient, services: Services) -> None:
    told = ask(client, f"What is {SECRET}?")
    second = ask(client, "Second?", conversation_id=told["conversation_id"])
    branch = ask(client, "Otherwise?", edits_turn=second["turn_id"])
    deeper = ask(client, "Or else?", edits_turn=branch["turn_id"])
    client.post(f"/api/conversations/{branch['conversation_id']}/purge")
    client.delete(f"/api/conversations/{told['conversation_id']}")
    copy = turns_of(client, deeper["conversation_id"])[0]
    erase(client, copy["turn_id"])
    assert tables_with_secret(services) == set()
    client.post(f"/api/conversations/{told['conversation_id']}/restore")
    assert [turn["status"] for turn in turns_of(client, told["conversation_id"])] == ["erased", "completed"]


def test_a_title_made_of_the_question_goes_and_any_other_stays(client: FlaskClient) -> None:
    told = ask(client, f"What is {SECRET} and what is it good for, where and when and why?")
    conversation = told["conversation_id"]
    second = ask(client, "Second question?", conversation_id=conversation)
    erase(client, told["turn_id"])
    assert client.get(f"/api/conversations/{conversation}").json["title"] == "Second question?"
    client.patch(f"/api/conversations/{conversation}", json={"title": "Lamps"})
    erase(client, second["turn_id"])
    assert client.get(f"/api/conversations/{conversation}").json["title"] == "Lamps"
    assert "Turn 2 was erased" in client.get(f"/conversations/{conversation}").text


def test_nothing_is_erased_without_being_asked_for(client: FlaskClient) -> None:
    turn = ask(client)
    for address in ("", "?permanently=0"):
        refused = client.delete(f"/api/turns/{turn['turn_id']}{address}")
        assert (refused.status_code, "permanently=1" in refused.json["error"]["message"]) == (422, True)
    assert client.delete("/api/turns/99?permanently=1").status_code == 404
    assert client.get(f"/api/turns/{turn['turn_id']}").json == turn | {"corrections": []}


def test_nothing_is_erased_while_the_conversation_answers(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client)
    stub.replies.append(Reply(hang_at=0))
    body = {"question": "Second?", "conversation_id": first["conversation_id"]}
    with client.post("/api/query/stream", json=body, buffered=False) as stream:
        running = int(stream.headers["X-Turn-Id"])
        for turn in (first["turn_id"], running):
            refused = client.delete(f"/api/turns/{turn}?permanently=1")
            assert (refused.status_code, refused.json["error"]["type"]) == (409, "ConversationBusy")
        client.post(f"/api/turns/{running}/stop")
    assert client.get(f"/api/turns/{first['turn_id']}").json == first | {"corrections": []}


def test_nothing_can_be_done_with_what_is_left(client: FlaskClient) -> None:
    turn = ask(client)["turn_id"]
    erase(client, turn)
    for method, path in (
        ("PATCH", f"/api/turns/{turn}"),
        ("POST", f"/api/turns/{turn}/regenerate"),
        ("POST", f"/api/turns/{turn}/retry"),
    ):
        body = {"pinned": True} if method == "PATCH" else {}
        assert client.open(path, method=method, json=body).status_code == 409, path
    assert client.get(f"/api/turns/{turn}/receipt").status_code == 404
    assert len(client.get(f"/api/turns/{turn}/versions").json["versions"]) == 1


def test_the_page_asks_first_and_works_without_scripts(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply(status=400))
    turn: Any = client.post("/api/query", json={"question": "Why?"}).json
    assert client.get(f"/api/turns/{turn['turn_id']}").json["status"] == "failed"
    page = client.get(f"/conversations/{turn['conversation_id']}").text
    assert "Text that other answers repeat stays." in page
    status, place = post(client, f"/turns/{turn['turn_id']}/erase")
    assert (status, place) == (303, f"/conversations/{turn['conversation_id']}?at=1#turn-1")
    assert "Turn 1 was erased on" in client.get(place, headers=PAGE).text
