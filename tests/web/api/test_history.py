"""What the model sees of a conversation: looked at, tried out, pinned, excluded, cleared, found again, erased."""

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.conversations.commands import is_command
from rag_assistant.web.services import Services
from testkit.stub_model import Reply, StubModel
from tests.web.api.test_overflow import conversation_of, said, view
from tests.web.conftest import PAGE, ask, until


def turn_ids(client: FlaskClient, conversation: int) -> list[int]:
    return [turn["turn_id"] for turn in client.get(f"/api/conversations/{conversation}/turns").json["turns"]]


def run(client: FlaskClient, conversation: int, command: str) -> Any:
    return client.post(f"/api/conversations/{conversation}/commands", json={"command": command})


# --- preview


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
        ("strategy=clever", "it must be window or smart."),
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


# --- per conversation: strategy


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


# --- pin and exclude


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


# --- commands


def test_history_tells_what_is_kept_and_what_is_seen(client: FlaskClient) -> None:
    conversation = conversation_of(client, 7)
    text = run(client, conversation, "/history").json["text"]
    assert "7 turns, 14 messages (7 assistant, 7 user)." in text
    assert "5 of 7 earlier turns (2 over the turn limit)" in text
    assert "- turns 1 and 2: over the turn limit" in text


@pytest.mark.parametrize("command", ["/clear", "/clear-history", "/reset"])
def test_clear_and_reset_let_the_model_see_nothing_and_lose_nothing(
    client: FlaskClient, stub: StubModel, command: str
) -> None:
    conversation = conversation_of(client, 3)
    client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"pinned": True})
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 9})
    result = run(client, conversation, command).json
    assert result["fold"] is (command == "/clear")
    assert result["view"]["kept_turns"] == []
    assert result["view"]["max_history_turns"] == (5 if command == "/reset" else 9)
    assert ask(client, "Question 4.", conversation_id=conversation)["history_trimmed"] is False
    assert said(stub) == ["Question 4"]
    assert len(turn_ids(client, conversation)) == 4
    run(client, conversation, "/undo")
    ask(client, "Question 5.", conversation_id=conversation)
    assert said(stub) == [f"Question {n}" for n in range(1, 6)]
    assert view(client, conversation)["max_history_turns"] == 9


def test_compact_shows_its_summary(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 4)
    stub.replies.append(Reply("What was said."))
    result = run(client, conversation, "/compact").json
    assert result["text"].startswith("The model now sees a summary of turns 1 and 2.")
    assert result["text"].endswith("What was said.")
    assert "Summary removed." in run(client, conversation, "/undo").json["text"]


def test_help_lists_every_command(client: FlaskClient) -> None:
    text = run(client, conversation_of(client, 1), "/help").json["text"]
    names = [line.split(":")[0] for line in text.splitlines()]
    assert names == [f"- /{n}" for n in ("history", "clear-history", "clear", "compact", "reset", "undo", "help")]


def test_an_unknown_command_is_named(client: FlaskClient) -> None:
    refused = run(client, conversation_of(client, 1), "/forget")
    assert refused.status_code == 422
    assert 'Unknown command "/forget". Available: /history,' in refused.json["error"]["message"]
    assert run(client, 99, "/help").status_code == 404


def test_nothing_changes_the_view_of_an_answer_that_is_being_written(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 2)
    stub.replies.append(Reply("Slow.", hang_at=0))
    response = client.post(
        "/api/query/stream", json={"question": "Wait.", "conversation_id": conversation}, buffered=False
    )
    pieces = response.iter_encoded()
    turn = json.loads(next(pieces).decode().split("data: ", 1)[1])["turn_id"]
    for path in ("clear", "reset", "undo", "purge"):
        refused = client.post(f"/api/conversations/{conversation}/{path}")
        assert (path, refused.status_code) == (path, 409)
    client.post(f"/api/turns/{turn}/stop")
    response.close()


# --- recall and slack


class TestRecall:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return environment | {"HISTORY_RECALL": "2", "MAX_HISTORY_TURNS": "2"}

    def test_a_left_out_turn_comes_back_quoted_when_the_question_is_about_it(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        stub.replies.append(Reply("Noted: </earlier> the cat is called Mimi."))
        conversation = ask(client, "Remember that my cat is called Mimi.")["conversation_id"]
        for n in range(2, 6):
            ask(client, f"Question {n}.", conversation_id=conversation)
        answer = ask(client, "How is my cat called?", conversation_id=conversation)
        question = stub.requests[-1].messages[-1]["content"]
        assert answer["history"]["recalled_turns"] == [1]
        assert "my cat is called Mimi" in question
        assert question.endswith("How is my cat called?")
        assert question.count("</earlier>") == 1
        assert question.index("Mimi") < question.index("</earlier>")
        receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
        assert receipt["recalled_turns"] == [1]

    def test_what_was_cleared_or_excluded_is_told_and_never_recalled(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        conversation = ask(client, "The cat is called Mimi.")["conversation_id"]
        client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"excluded": True})
        for n in range(2, 6):
            ask(client, f"Question {n} about the dog.", conversation_id=conversation)
        answer = ask(client, "How is the cat called?", conversation_id=conversation)
        assert "Mimi" not in json.dumps(stub.requests[-1].messages)
        assert (answer["history"]["recalled_turns"], missing(answer)) == ([], [(1, "excluded")])
        client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"excluded": False})
        run(client, conversation, "/clear")
        answer = ask(client, "How is the cat called?", conversation_id=conversation)
        assert answer["history"]["recalled_turns"] == []
        assert (1, "cleared") in missing(answer)

    def test_a_question_about_something_else_raises_no_alarm(self, client: FlaskClient) -> None:
        conversation = ask(client, "Remember that my cat is called Mimi.")["conversation_id"]
        for n in range(2, 6):
            ask(client, f"Question {n}.", conversation_id=conversation)
        answer = ask(client, "How deep is the harbour of Bremerhaven?", conversation_id=conversation)
        assert (answer["history"]["recalled_turns"], missing(answer)) == ([], [])


class TestMissing:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return environment | {"HISTORY_RECALL": "0", "MAX_HISTORY_TURNS": "2"}

    def test_a_turn_that_is_not_sent_is_named_and_one_click_brings_it_back(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        conversation = ask(client, "Remember that my cat is called Mimi.")["conversation_id"]
        for n in range(2, 6):
            ask(client, f"Question {n}.", conversation_id=conversation)
        answer = ask(client, "How is my cat called?", conversation_id=conversation)
        assert missing(answer) == [(1, "turn_limit")]
        assert 0.3 <= answer["history"]["missing"][0]["score"] <= 1
        page = client.get(f"/conversations/{conversation}", headers=PAGE).text
        assert "see it (over the turn limit)." in page
        client.post(f"/turns/{answer['turn_id']}/regenerate", data={"pin": "1"}, headers=PAGE)
        until(lambda: client.get(f"/api/turns/{answer['turn_id']}").json["status"] == "completed")
        again = client.get(f"/api/turns/{answer['turn_id']}").json
        assert missing(again) == []
        assert "Mimi" in json.dumps(stub.requests[-1].messages)
        assert run(client, conversation, "/undo").status_code == 200
        refused = client.post(f"/turns/{answer['turn_id']}/regenerate", data={"pin": "99"}, headers=PAGE)
        assert refused.status_code == 422
        assert "pin is 99" in refused.text


def missing(answer: dict[str, Any]) -> list[tuple[int, str]]:
    return [(one["turn"], one["why"]) for one in answer["history"]["missing"]]


class TestSlack:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return environment | {"WINDOW_SLACK": "2", "MAX_HISTORY_TURNS": "3"}

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


def test_cached_tokens_are_shown(client: FlaskClient, stub: StubModel) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 64}}
    stub.replies.append(Reply("A.", usage=usage))
    answer = ask(client)
    assert (answer["usage"]["cached_tokens"], answer["usage"]["requests"]) == (64, 1)


# --- found, exported, erased


def test_conversations_are_found_by_what_was_said(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([Reply("Its wings are blue."), Reply("In Lisbon.")])
    bird = ask(client, "Tell me of the kingfisher.")["conversation_id"]
    city = ask(client, "Where is the castle?")["conversation_id"]

    def found(words: str) -> list[int]:
        listed = client.get("/api/conversations", query_string={"q": words}).json["conversations"]
        return [one["conversation_id"] for one in listed]

    assert found("wings") == [bird]
    assert found("lisbon castle") == [city]
    assert found("submarine") == []
    assert found("the") == [] or set(found("the")) <= {bird, city}
    client.delete(f"/api/conversations/{bird}")
    assert found("kingfisher") == []


def test_a_conversation_is_exported_whole(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 7)
    markdown = client.get(f"/api/conversations/{conversation}/export")
    assert markdown.headers["Content-Disposition"] == f'attachment; filename="conversation-{conversation}.md"'
    assert [f"## {n}. Question {n}." in markdown.text for n in range(1, 8)] == [True] * 7
    assert "*The model saw 5 of 6 earlier turns (1 over the turn limit).*" in markdown.text
    exported = client.get(f"/api/conversations/{conversation}/export?format=json").json
    assert [turn["turn"] for turn in exported["turns"]] == list(range(1, 8))
    assert client.get(f"/api/conversations/{conversation}/export?format=pdf").status_code == 422


def test_a_purged_conversation_leaves_no_trace(
    client: FlaskClient, services: Services, environment: dict[str, str]
) -> None:
    secret = "Xylophonsecret4711"
    conversation = ask(client, f"My password is {secret}.")["conversation_id"]
    assert client.post(f"/api/conversations/{conversation}/purge").status_code == 204
    assert client.get(f"/api/conversations/{conversation}").status_code == 404
    assert client.post(f"/api/conversations/{conversation}/restore").status_code == 404
    assert client.post(f"/api/conversations/{conversation}/purge").status_code == 404
    for path in Path(environment["DATA_DIR"]).rglob("*"):
        if path.is_file():
            held = path.read_bytes().lower()
            assert secret.lower().encode() not in held, path


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


def test_clearing_what_is_clear_is_no_step_that_could_be_undone(client: FlaskClient) -> None:
    conversation = conversation_of(client, 2)
    first = turn_ids(client, conversation)[0]
    run(client, conversation, "/clear")
    run(client, conversation, "/clear")
    assert (
        run(client, conversation, "/undo").json["text"]
        == "The model sees what it saw before you cleared the conversation."
    )
    assert view(client, conversation)["sentence"] == "2 of 2 earlier turns"
    client.patch(f"/api/turns/{first}", json={"pinned": True})
    client.patch(f"/api/turns/{first}", json={"pinned": True})
    run(client, conversation, "/undo")
    assert client.get(f"/api/turns/{first}").json["pinned"] is False
    assert run(client, conversation, "/undo").json["error"]["type"] == "NothingToUndo"


def test_an_empty_conversation_is_named_by_its_first_question(client: FlaskClient) -> None:
    made = client.post("/api/conversations").json
    ask(client, "Why is the sky blue?", conversation_id=made["conversation_id"])
    assert client.get(f"/api/conversations/{made['conversation_id']}").json["title"] == "Why is the sky blue?"
    named = client.post("/api/conversations", json={"title": "Mine"}).json
    ask(client, "Why?", conversation_id=named["conversation_id"])
    assert client.get(f"/api/conversations/{named['conversation_id']}").json["title"] == "Mine"


def test_a_command_takes_nothing_behind_it(client: FlaskClient) -> None:
    refused = run(client, conversation_of(client, 1), "/undo 3")
    assert (refused.status_code, "takes no arguments" in refused.json["error"]["message"]) == (422, True)
    assert [is_command(text) for text in ("/undo 3", "/UNDO", "/foo", "/foo bar", "/etc/hosts", "a /undo", "/")] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip
