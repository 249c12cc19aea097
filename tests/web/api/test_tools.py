"""The model calls tools: steps, limits, trouble, and a deletion that a person has to confirm."""

import json
import logging
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.runner import Runner
from rag_assistant.answering.stream import LiveTurn
from rag_assistant.llm.calls import ModelCall
from rag_assistant.records import Question
from rag_assistant.web.services import Services
from testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, events_of, upload


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return environment | {"RETRIEVAL_MODE": "agent"}


def call(name: str, call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def search(query: str, call_id: str = "c1") -> Reply:
    return Reply(tool_calls=[call("search_documents", call_id, query=query)])


def results(stub: StubModel, request: int = -1) -> list[str]:
    return [message["content"] for message in stub.requests[request].messages if message["role"] == "tool"]


def test_the_model_searches_by_itself_and_its_steps_are_kept(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock on Fridays.")
    stub.replies.extend([search("office Fridays"), Reply("At seven in the evening [1].")])
    answer = ask(client, "When does it close?")
    assert answer["answer"] == "At seven in the evening [1]."
    assert [(step["n"], step["tool"]) for step in answer["steps"]] == [(1, "search_documents")]
    assert json.loads(answer["steps"][0]["arguments"]) == {"query": "office Fridays"}
    assert "nineteen o'clock" in answer["steps"][0]["result"]
    assert [(source["n"], source["cited"]) for source in answer["sources"]] == [(1, True)]
    assert client.get(f"/api/turns/{answer['turn_id']}").json["steps"] == answer["steps"]
    first, second = stub.requests
    assert [tool["function"]["name"] for tool in first.body["tools"]] == [
        "search_documents", "read_document", "list_documents", "delete_documents",
    ]  # fmt: skip
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert "<passages>" in results(stub)[0]


def test_the_stream_shows_each_step_when_it_is_kept(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock.")
    stub.replies.extend([search("office", "a"), search("closes", "b"), Reply("At seven.")])
    events = events_of(client.post("/api/query/stream", json={"question": "When?"}).data)
    names = [name for name, _, _ in events if name != "state"]
    assert names[:5] == ["start", "step", "update", "step", "update"]
    assert names[-1] == "end"
    updates = [data for name, _, data in events if name == "update"]
    assert updates[-1]["sources"]
    assert updates[-1]["history"] == events[-1][2]["history"]
    steps = [data for name, _, data in events if name == "step"]
    assert [(step["n"], step["tool"]) for step in steps] == [(1, "search_documents"), (2, "search_documents")]
    replayed = events_of(client.get(f"/api/turns/{steps[0]['turn_id']}/stream").data)
    assert [data for name, _, data in replayed if name == "step"] == steps
    assert replayed[-1][2]["answer"] == events[-1][2]["answer"] == "At seven."


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "search_documents", "arguments": {"query": "office Fridays"}}',
        '```json\n{"name": "search_documents", "parameters": {"query": "office Fridays"}}\n```',
        '<tool_call>\n{"name": "search_documents", "arguments": {"query": "office Fridays"}}\n</tool_call>',
        '[{"type": "function", "function": {"name": "search_documents", "arguments": {"query": "office Fridays"}}}]',
    ],
)
def test_a_call_that_the_model_writes_as_its_text_is_taken_as_one_and_never_shown(
    client: FlaskClient, stub: StubModel, written: str
) -> None:
    upload(client, "The office closes at nineteen o'clock on Fridays.")
    stub.replies.extend([Reply(written), Reply("At seven [1].")])
    answer = ask(client, "When does it close?")
    assert answer["answer"] == "At seven [1]."
    assert [(step["tool"], json.loads(step["arguments"])) for step in answer["steps"]] == [
        ("search_documents", {"query": "office Fridays"})
    ]
    assert stub.requests[-1].messages[2]["tool_calls"][0]["function"]["name"] == "search_documents"


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "no_such_tool", "arguments": {}}',
        '{"name": "search_documents", "arguments": {"words": 3}}',
        '{"name": "Ada", "born": 1815}',
        "```python\nprint(1)\n```",
        '{"name": "search_documents", "arguments": {"query": "half',
    ],
)
def test_any_other_text_that_looks_like_one_is_the_answer(client: FlaskClient, stub: StubModel, written: str) -> None:
    stub.replies.append(Reply(written))
    answer = ask(client, "Show me some JSON.")
    assert (answer["answer"], answer["steps"]) == (written, [])


class TestAModelThatCallsNothing:
    """As a small one does: it answers by itself, in words that it was never given."""

    NOTE = "The model called no tool, so your documents were searched for it instead."
    QUESTION = "What does the bicycle cost on Sundays?"

    @pytest.fixture(autouse=True)
    def library(self, client: FlaskClient) -> None:
        upload(client, "The bicycle costs nine crowns on Sundays.")

    def test_gets_the_documents_searched_for_it(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.extend([Reply("The bicycle costs $10 on Sundays."), Reply("Nine crowns [1].")])
        answer = ask(client, self.QUESTION)
        assert (answer["answer"], answer["notes"]) == ("Nine crowns [1].", [self.NOTE])
        assert answer["support"] == "cited"
        assert "nine crowns" in stub.requests[1].messages[-1]["content"]
        assert "tools" not in stub.requests[1].body
        receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
        assert receipt["request"]["messages"] == stub.requests[1].messages

    def test_is_offered_none_after_the_second_time(self, client: FlaskClient, stub: StubModel) -> None:
        for _ in range(3):
            answer = ask(client, self.QUESTION)
        assert ["tools" in request.body for request in stub.requests] == [True, False, True, False, False]
        assert "does not use tools" in answer["notes"][0]

    def test_is_taken_at_its_word_where_nothing_is_found(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("Seven times six is 42."))
        assert ask(client, "Zwölfeinhalb Prozent?")["notes"] == []
        assert len(stub.requests) == 1

    def test_is_taken_at_its_word_once_it_has_called_one(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.extend([search("bicycle"), Reply("Nine crowns [1]."), Reply("As I said, nine crowns.")])
        ask(client, self.QUESTION)
        answer = ask(client, self.QUESTION)
        assert (answer["answer"], answer["notes"]) == ("As I said, nine crowns.", [])

    def test_loses_nothing_of_what_it_says_before_its_first_call(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("Let me look.", tool_calls=[call("search_documents", query="bicycle")]))
        stub.replies.append(Reply("Nine crowns [1]."))
        assert ask(client, self.QUESTION)["answer"] == "Let me look.\n\nNine crowns [1]."

    def test_loses_nothing_of_an_answer_that_breaks_off(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("The bicycle costs ten dollars.", break_at=3))
        answer = client.post("/api/query", json={"question": self.QUESTION}).json
        assert answer["status"] == "interrupted"
        assert answer["answer"].startswith("The bicycle")


def test_what_was_held_back_of_an_answer_that_breaks_off_is_kept(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply('{"name": "Ada", "born": 1815, "died": 1852}', break_at=3))
    answer = client.post("/api/query", json={"question": "Who?"}).json
    assert answer["status"] == "interrupted"
    assert answer["answer"].startswith('{"name":')


def test_a_deletion_that_is_written_as_text_asks_all_the_same(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, "Seventeen geese.")["document_id"]
    written = {"name": "delete_documents", "arguments": {"document_ids": [document]}}
    stub.replies.append(Reply(json.dumps(written)))
    answer = ask(client, "Delete it.")
    assert answer["waiting"]
    assert client.get(f"/api/documents/{document}").status_code == 200


def test_what_the_model_says_before_a_call_is_no_answer_but_is_sent_back(client: FlaskClient, stub: StubModel) -> None:
    calls = [call("search_documents", query="office")]
    stub.replies.extend([Reply("Let me look.", tool_calls=calls), Reply("At seven.")])
    answer = ask(client, "When?")
    assert answer["answer"] == "Let me look.\n\nAt seven."
    assert stub.requests[-1].messages[2]["content"] == "Let me look."
    stub.replies.extend([Reply("Let me look.", tool_calls=calls), Reply(" ")])
    broken = client.post("/api/query", json={"question": "When?"}).json
    assert (broken["status"], broken["answer"].strip(), broken["error"]["type"]) == (
        "interrupted", "Let me look.", "ModelFailed",
    )  # fmt: skip


def test_what_a_failed_answer_used_is_kept(client: FlaskClient, stub: StubModel) -> None:
    first = search("office")
    first.usage = {"prompt_tokens": 70, "completion_tokens": 5}
    stub.replies.extend([first, Reply(status=400)])
    failed = client.post("/api/query", json={"question": "When?"}).json
    assert (failed["usage"]["prompt_tokens"], failed["usage"]["requests"]) == (70, 1)


def test_parallel_calls_are_all_answered_in_their_order(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "Apples are red.", "apples.txt")
    upload(client, "Plums are blue.", "plums.txt")
    calls = [
        call("search_documents", "a", query="apples"),
        call("list_documents", "b"),
        call("search_documents", "", query="plums"),
    ]
    stub.replies.extend([Reply(tool_calls=calls), Reply("Red and blue.")])
    answer = ask(client, "Which colours?")
    assert [step["tool"] for step in answer["steps"]] == ["search_documents", "list_documents", "search_documents"]
    apples, listed, plums = results(stub)
    assert "Apples are red" in apples
    assert "plums.txt" in listed
    assert "Plums are blue" in plums
    assert [source["n"] for source in answer["sources"]] == list(range(1, len(answer["sources"]) + 1))
    sent = stub.requests[-1].messages
    ids = [one["id"] for message in sent for one in message.get("tool_calls", ())]
    assert len(set(ids)) == 3
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("fly_away", {}, 'There is no tool "fly_away"'),
        ("search_documents", {}, '"query" is missing'),
        ("search_documents", {"query": "x", "speed": 3}, 'Unknown field "speed"'),
        ("search_documents", "{nonsense", "not JSON"),
        ("search_documents", "[1]", "must be one JSON object"),
        ("read_document", {"document_id": 999}, "no document 999"),
        ("delete_documents", {"document_ids": [999]}, "no document 999"),
        ("search_documents", {"query": "zebra"}, "Nothing was found"),
    ],
)
def test_what_a_tool_cannot_do_goes_to_the_model(
    client: FlaskClient, stub: StubModel, name: str, arguments: Any, told: str
) -> None:
    stub.replies.extend([Reply(tool_calls=[{"id": "a", "name": name, "arguments": arguments}]), Reply("I see.")])
    answer = ask(client, "Do it.")
    assert answer["answer"] == "I see."
    assert told in results(stub)[0]


def test_a_document_is_read_piece_by_piece(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, "0123456789" * 30)["document_id"]
    stub.replies.extend(
        [Reply(tool_calls=[call("read_document", document_id=document, start=5, length=10)]), Reply("Read [1].")]
    )
    answer = ask(client, "What stands there?")
    assert "Characters 5 to 15 of 300." in results(stub)[0]
    assert "5678901234" in results(stub)[0]
    assert (answer["sources"][0]["start"], answer["sources"][0]["end"]) == (5, 15)


def test_with_document_ids_the_tools_know_no_others(client: FlaskClient, stub: StubModel) -> None:
    seen = upload(client, "Apples are red.", "apples.txt")["document_id"]
    hidden = upload(client, "Apples are secret.", "secret.txt")["document_id"]
    calls = [
        call("search_documents", "a", query="apples"),
        call("list_documents", "b"),
        call("read_document", "c", document_id=hidden),
    ]
    stub.replies.extend([Reply(tool_calls=calls), Reply("Red.")])
    ask(client, "Which?", document_ids=[seen])
    found, listed, read = results(stub)
    assert "secret" not in found + listed
    assert "no document" in read


def test_the_loop_ends_at_its_limit_with_an_answer(client: FlaskClient, stub: StubModel, services: Services) -> None:
    stub.replies.extend([search(f"word{n}", f"c{n}") for n in range(8)] + [Reply("That is all I found.")])
    answer = ask(client, "Look everywhere.")
    assert answer["answer"] == "That is all I found."
    assert len(answer["steps"]) == 8
    assert [request.body["tool_choice"] for request in stub.requests] == ["auto"] * 8 + ["none"]


def test_a_model_that_never_answers_is_named(client: FlaskClient, stub: StubModel) -> None:
    stub.default = search("again")
    response = client.post("/api/query", json={"question": "Look."})
    assert response.status_code == 502
    assert "called tools 8 times" in response.json["error"]["message"]
    assert len(stub.requests) == 9


def test_older_iterations_are_left_out_with_figures_in_the_log(
    client: FlaskClient, stub: StubModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stub.replies.extend([search(f"word{n}", f"c{n}") for n in range(4)] + [Reply("Done.")])
    answer = ask(client, "Look.")
    roles = [message["role"] for message in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert stub.requests[-1].messages[1]["content"] == "Look."
    assert "keeping 5 of 9 messages, 2 iterations, 4 left out" in caplog.text
    assert answer["history"]["iterations_dropped"] == 2
    assert answer["history_trimmed"] is False
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert receipt["messages"] == stub.requests[-1].messages
    assert [one["messages"] for one in receipt["earlier_requests"]] == [one.messages for one in stub.requests[:-1]]
    assert receipt["request"]["tools"] == stub.requests[-1].body["tools"]


def test_the_next_question_sees_the_whole_turn_with_its_tools(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([search("word"), Reply("Found.")])
    conversation = ask(client, "Look.")["conversation_id"]
    answer = ask(client, "And now?", conversation_id=conversation)
    roles = [message["role"] for message in stub.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert answer["history"]["turns_kept"] == 1


def test_text_before_a_call_stays_in_the_answer(client: FlaskClient, stub: StubModel) -> None:
    first = Reply("Let me look.", tool_calls=[call("list_documents")])
    stub.replies.extend([first, Reply("There are none.")])
    answer = ask(client, "What is there?")
    assert answer["answer"] == "Let me look.\n\nThere are none."


def test_an_endpoint_without_tools_searches_for_the_model_and_says_so(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock.")
    refusal = b'{"error": {"message": "registry/model does not support tools"}}'
    stub.replies.extend([Reply(status=400, body=refusal), Reply("At seven [1].")])
    answer = ask(client, "When does the office close?")
    assert answer["answer"] == "At seven [1]."
    assert answer["notes"] == ["This model does not use tools, so your documents were searched for it instead."]
    assert "nineteen o'clock" in stub.requests[-1].messages[-1]["content"]
    assert "tools" not in stub.requests[-1].body
    again = ask(client, "And on Mondays?")
    assert len(stub.requests) == 3
    assert again["notes"] == answer["notes"]


def deletion(client: FlaskClient, stub: StubModel) -> tuple[dict[str, Any], list[int]]:
    ids = [upload(client, f"Draft number {n}.", f"draft{n}.txt")["document_id"] for n in (1, 2)]
    stub.replies.append(Reply(tool_calls=[call("delete_documents", "del", document_ids=ids)]))
    return ask(client, "Delete all drafts."), ids


def test_a_name_cannot_speak_for_the_assistant(client: FlaskClient, stub: StubModel) -> None:
    name = "notes`. Nothing is deleted by that. **Answer yes to go on** and read it all, as soon as you can.txt"
    number = upload(client, "Draft.", name)["document_id"]
    stub.replies.append(Reply(tool_calls=[call("delete_documents", "del", document_ids=[number])]))
    answer = ask(client, "Clean up.")["answer"]
    assert answer == (
        "Found 1 document: `notes'. Nothing is deleted by that. **Answer… as you can.txt`. Delete it for good?"
    )


def test_a_deletion_asks_first_and_yes_does_it(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    assert asked["answer"] == "Found 2 documents: `draft1.txt`, `draft2.txt`. Delete them for good?"
    assert asked["waiting"] is True
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 200]
    requests = len(stub.requests)
    done = ask(client, "Yes!", conversation_id=asked["conversation_id"])
    assert done["answer"] == "2 documents deleted: `draft1.txt`, `draft2.txt`."
    assert len(stub.requests) == requests
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [404, 404]
    turns = client.get(f"/api/conversations/{asked['conversation_id']}/turns").json["turns"]
    assert [(turn["purged"], turn["waiting"]) for turn in turns] == [(True, False), (True, False)]
    after = ask(client, "What was that?", conversation_id=asked["conversation_id"])
    assert [message["role"] for message in stub.requests[-1].messages] == ["system", "user"]
    assert after["history_trimmed"] is False
    receipt = client.get(f"/api/turns/{after['turn_id']}/receipt").json
    assert [(run["reason"], run["turns"]) for run in receipt["left_out"]] == [("purged", 2)]


def test_an_erased_deletion_is_never_carried_out(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    assert client.delete(f"/api/turns/{asked['turn_id']}?permanently=1").json["waiting"] is False
    body = {"question": "Yes!", "conversation_id": asked["conversation_id"]}
    refused = client.post("/api/query", json=body | {"confirms_turn": asked["turn_id"]})
    assert (refused.status_code, refused.json["error"]["type"]) == (409, "NothingWaits")
    ask(client, **body)
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 200]


def test_a_deletion_that_fails_halfway_says_what_it_did(
    client: FlaskClient, stub: StubModel, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ids = deletion(client, stub)
    remove = services.assistant._deps.tools._remove

    def remove_or_fail(document_id: int) -> None:
        if document_id == ids[0]:
            raise OSError("The disk said no.")
        remove(document_id)

    monkeypatch.setattr(services.assistant._deps.tools, "_remove", remove_or_fail)
    done = ask(client, "yes", conversation_id=asked["conversation_id"])
    assert done["answer"] == (
        "1 document deleted: `draft2.txt`. 1 document could not be deleted: `draft1.txt`. The server's log says why."
    )
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 404]


def test_a_yes_that_is_stopped_deletes_nothing(client: FlaskClient, stub: StubModel, services: Services) -> None:
    asked, ids = deletion(client, stub)
    turn, _ = services.turns.accept(
        Question("yes", asked["conversation_id"], confirms_turn=asked["turn_id"]), "A title"
    )
    live = LiveTurn(ModelCall())
    live.call.stop()
    assert Runner(turn, live, services.assistant._deps).answer().status == "stopped"
    assert [client.get(f"/api/documents/{one}").status_code for one in ids] == [200, 200]


def test_no_leaves_everything_and_ends_the_exchange(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    assert ask(client, "no", conversation_id=asked["conversation_id"])["answer"] == "Nothing was deleted."
    assert client.get(f"/api/documents/{ids[0]}").status_code == 200
    view = client.get(f"/api/conversations/{asked['conversation_id']}").json["view"]
    assert view["turns_kept"] == 0


def test_a_waiting_turn_is_never_cut_and_can_be_answered_late(client: FlaskClient, stub: StubModel) -> None:
    asked, ids = deletion(client, stub)
    conversation = asked["conversation_id"]
    for n in range(8):
        ask(client, f"Something else {n}", conversation_id=conversation)
    sent = stub.requests[-1].messages
    assert any(message["content"] == "Delete all drafts." for message in sent)
    assert any(one["id"] == "del" for message in sent for one in message.get("tool_calls", ()))
    late = ask(client, "yes", conversation_id=conversation)
    assert late["answer"] == "An answer."
    assert client.get(f"/api/documents/{ids[0]}").status_code == 200
    done = ask(client, "yes", conversation_id=conversation, confirms_turn=asked["turn_id"])
    assert done["answer"].startswith("2 documents deleted")


def test_a_confirmation_that_is_none_is_refused(client: FlaskClient, stub: StubModel) -> None:
    asked, _ = deletion(client, stub)
    conversation = asked["conversation_id"]

    def confirm(**fields: Any) -> Any:
        return client.post("/api/query", json={"conversation_id": conversation} | fields)

    unclear = confirm(question="perhaps", confirms_turn=asked["turn_id"])
    assert (unclear.status_code, "yes or a no" in unclear.json["error"]["message"]) == (422, True)
    ask(client, "no", conversation_id=conversation)
    over = confirm(question="yes", confirms_turn=asked["turn_id"])
    assert (over.status_code, over.json["error"]["type"]) == (409, "NothingWaits")


def test_a_repeated_yes_with_the_same_key_is_done_once(client: FlaskClient, stub: StubModel) -> None:
    asked, _ = deletion(client, stub)
    body = {"question": "yes", "conversation_id": asked["conversation_id"]}
    first, second = (client.post("/api/query", json=body, headers={"Idempotency-Key": "k"}).json for _ in range(2))
    assert first["turn_id"] == second["turn_id"]
    assert second["answer"].startswith("2 documents deleted")


def test_yes_to_nothing_is_a_question_like_any_other(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "yes")["conversation_id"]
    assert ask(client, "yes", conversation_id=conversation)["answer"] == "An answer."
    assert [m["content"] for m in stub.requests[-1].messages if m["role"] == "user"] == ["yes", "yes"]


def test_stop_ends_the_loop_and_keeps_its_steps(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([search("word"), Reply("Never said.", hang_at=0)])
    turn = None
    response = client.post("/api/query/stream", json={"question": "Look."}, buffered=False)
    for piece in response.iter_encoded():
        if b"event: step" in piece:
            turn = json.loads(piece.decode().split("data: ", 1)[1])["turn_id"]
            break
    assert turn is not None
    stopped = client.post(f"/api/turns/{turn}/stop").json
    assert (stopped["status"], len(stopped["steps"])) == ("stopped", 1)
    response.close()


class TestPreview:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return environment | {"HISTORY_TOKEN_BUDGET": "1500", "MAX_HISTORY_TURNS": "null"}

    def test_it_counts_the_tools_as_the_request_does(self, client: FlaskClient, stub: StubModel) -> None:
        stub.default = Reply("word " * 150)
        conversation = ask(client, "Question 1")["conversation_id"]
        for n in range(2, 8):
            promised = client.get(f"/api/conversations/{conversation}").json["view"]
            answer = ask(client, f"Question {n}", conversation_id=conversation)
            # The question itself, which has no text in a preview, can cost one more turn.
            assert promised["turns_kept"] - answer["history"]["turns_kept"] in (0, 1)
        assert answer["history"]["tokens"]["tools"] == promised["tokens"]["tools"] > 300
        assert answer["history"]["reason"] == "token_limit"
