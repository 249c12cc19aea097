"""What the model sees of a conversation: looked at, tried out, set for it alone, pinned and excluded."""

import json

import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import StubModel
from tests.web.api.conversations import conversation_of, run, said, turn_ids, view
from tests.web.conftest import PAGE, ask


def test_a_preview_shows_what_another_window_would_keep_and_changes_nothing(client: FlaskClient) -> None:
    conversation = conversation_of(client, 7)
    tried = client.get(f"/api/conversations/{conversation}/preview?max_history_turns=3").json
    assert (tried["kept_turns"], tried["turns_dropped"], tried["horizon"]) == ([[5, 7]], 4, 5)
    assert tried["sentence"] == "3 of 7 earlier turns (4 over the turn limit)"
    everything = client.get(f"/api/conversations/{conversation}/preview?max_history_turns=all").json
    assert everything["kept_turns"] == [[1, 7]]
    smart = client.get(f"/api/conversations/{conversation}/preview?strategy=smart").json
    assert (smart["kept_turns"], smart["left_out"][0]["reason"]) == ([[7, 7]], "filtered")
    assert view(client, conversation)["kept_turns"] == [[3, 7]]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("max_history_turns=-1", 'max_history_turns is "-1"; it must be a whole number, 0 or more, or all.'),
        ("max_history_turns=x", 'max_history_turns is "x"; it must be a whole number, 0 or more, or all.'),
        ("strategy=clever", "it must be one of window, smart."),
    ],
)
def test_a_preview_of_nonsense_is_refused(client: FlaskClient, asked: str, words: str) -> None:
    conversation = conversation_of(client, 1)
    refused = client.get(f"/api/conversations/{conversation}/preview?{asked}")
    assert refused.status_code == 422
    assert words in refused.json["error"]["message"]


def test_a_preview_is_what_the_next_question_really_sends(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 7)
    ids = turn_ids(client, conversation)
    client.patch(f"/api/turns/{ids[1]}", json={"pinned": True})
    client.patch(f"/api/turns/{ids[5]}", json={"excluded": True})
    promised = view(client, conversation)
    ask(client, "Question 8.", conversation_id=conversation)
    kept = [n for first, last in promised["kept_turns"] for n in range(first, last + 1)]
    assert said(stub) == [f"Question {n}" for n in [*kept, 8]]
    assert kept == [2, 3, 4, 5, 7]


def test_a_conversation_can_have_its_own_strategy(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 7)
    client.patch(f"/api/conversations/{conversation}", json={"history_strategy": "smart"})
    answer = ask(client, "Question 8.", conversation_id=conversation)
    assert said(stub) == ["Question 7", "Question 8"]
    assert (answer["history"]["strategy"], answer["history"]["reason"]) == ("smart", "filtered")
    assert answer["notice"] == "[History trimmed to last 1 turns]"
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert receipt["explanation"] == "7 completed turns (more): 1 kept."
    assert answer["history"]["turns_dropped"] == 6
    assert "Memory: smart" in client.get(f"/conversations/{conversation}").text
    client.patch(f"/api/conversations/{conversation}", json={"history_strategy": "default"})
    assert ask(client, "Question 9.", conversation_id=conversation)["history"]["strategy"] == "window"


def test_a_pinned_turn_comes_back_in_its_place(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 7)
    pinned = client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"pinned": True}).json
    assert pinned["pinned"] is True
    answer = ask(client, "Question 8.", conversation_id=conversation, max_history_turns=2)
    assert said(stub) == ["Question 1", "Question 6", "Question 7", "Question 8"]
    assert answer["notice"] == "[History trimmed to last 2 turns and 1 before them]"
    assert (answer["history"]["turns_kept"], answer["history"]["turns_dropped"]) == (3, 4)


def test_an_excluded_turn_is_left_out_without_being_trimmed(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 3)
    ids = turn_ids(client, conversation)
    client.patch(f"/api/turns/{ids[1]}", json={"excluded": True})
    answer = ask(client, "Question 4.", conversation_id=conversation)
    assert said(stub) == ["Question 1", "Question 3", "Question 4"]
    assert (answer["history_trimmed"], answer["notice"]) == (False, None)
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert [(one["reason"], one["first_turn"]) for one in receipt["left_out"]] == [("excluded", 2)]
    client.patch(f"/api/turns/{ids[1]}", json={"excluded": False})
    ask(client, "Question 5.", conversation_id=conversation)
    assert said(stub) == [f"Question {n}" for n in (1, 2, 3, 4, 5)]


def test_a_turn_that_does_not_exist_cannot_be_pinned(client: FlaskClient) -> None:
    assert client.patch("/api/turns/99", json={"pinned": True}).status_code == 404
    conversation = conversation_of(client, 1)
    turn = turn_ids(client, conversation)[0]
    assert client.patch(f"/api/turns/{turn}", json={"pinned": "yes"}).status_code == 422


@pytest.mark.settings(WINDOW_SLACK="2", MAX_HISTORY_TURNS="3")
class TestSlack:
    def test_the_prefix_stands_while_the_window_grows(self, client: FlaskClient, stub: StubModel) -> None:
        conversation = conversation_of(client, 6)
        starts, prefixes, notices = [], [], []
        for n in range(7, 14):
            answer = ask(client, f"Question {n}.", conversation_id=conversation)
            starts.append(answer["history"]["first_kept_turn"])
            notices.append(answer["notice"])
            prefixes.append(json.dumps(stub.requests[-1].messages[:4]))
        assert starts == [4, 4, 4, 7, 7, 7, 10]
        assert set(notices) == {"[History trimmed to at least the last 3 turns]"}
        assert prefixes[0] == prefixes[1] == prefixes[2] != prefixes[3] == prefixes[4]


def test_what_was_left_out_before_stands_in_the_figures_without_being_a_trim(client: FlaskClient) -> None:
    conversation = conversation_of(client, 4)
    client.patch(f"/api/turns/{turn_ids(client, conversation)[1]}", json={"excluded": True})
    answer = ask(client, "Question 5.", conversation_id=conversation)
    assert (answer["history_trimmed"], answer["history"]["left_out"]) == (False, {"excluded": 1})
    page = client.get(f"/turns/{answer['turn_id']}").text
    assert "The model saw 3 of 4 earlier turns (1 excluded)." in page
    again = ask(client, "And again?", conversation_id=conversation)
    assert "Trimmed" not in client.get(f"/turns/{again['turn_id']}").text, "what a person excluded was not trimmed"


def test_pinning_and_excluding_rule_each_other_out(client: FlaskClient) -> None:
    conversation = conversation_of(client, 1)
    turn = turn_ids(client, conversation)[0]
    client.patch(f"/api/turns/{turn}", json={"pinned": True})
    changed = client.patch(f"/api/turns/{turn}", json={"excluded": True}).json
    assert (changed["pinned"], changed["excluded"]) == (False, True)
    changed = client.patch(f"/api/turns/{turn}", json={"pinned": True}).json
    assert (changed["pinned"], changed["excluded"]) == (True, False)
    client.post(f"/api/conversations/{conversation}/undo")
    undone = client.get(f"/api/turns/{turn}").json
    assert (undone["pinned"], undone["excluded"]) == (False, True)


def test_the_runs_of_left_out_turns_name_what_was_sent_between_them(client: FlaskClient) -> None:
    conversation = conversation_of(client, 9)
    ids = turn_ids(client, conversation)
    client.patch(f"/api/turns/{ids[1]}", json={"pinned": True})
    client.patch(f"/api/turns/{ids[3]}", json={"excluded": True})
    told = run(client, conversation, "/history").json["text"]
    assert "- turns 1 and 3: over the turn limit" in told
    assert "- turn 4: excluded" in told
    answer = ask(client, "And now?", conversation_id=conversation)
    page = client.get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
    assert "It saw 6 of 9 earlier turns (2 over the turn limit; 1 excluded)." in page
    assert ">Turns 1 and 3</a>: over the turn limit (4 messages)" in page
