"""Questions over the API: the answer, its streaming twin, the window, and every refusal before the first byte."""

import logging
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.sending import READING_PROMPT, REPEATED
from rag_assistant.services import Services
from tests.testkit.shared_data import shared_jsonl
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, events_of, upload


def test_a_first_question_makes_a_conversation_and_is_answered(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Because.", usage={"prompt_tokens": 12, "completion_tokens": 1}))
    answer = ask(client, "Why is the sky blue?")
    assert (answer["answer"], answer["status"], answer["turn"]) == ("Because.", "completed", 1)
    assert answer["usage"]["prompt_tokens"] == 12
    assert answer["model"] == "stub-model"
    assert answer["history_trimmed"] is False
    assert answer["notice"] is None
    listed = client.get("/api/conversations").json["conversations"]
    assert [one["title"] for one in listed] == ["Why is the sky blue?"]


def test_query_is_another_name_for_question(client: FlaskClient) -> None:
    assert client.post("/api/query", json={"query": "Why?"}).json["question"] == "Why?"


def test_the_stream_has_start_tokens_and_end_and_says_the_same(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("Eins zwei drei äöü 世界.")
    plain = ask(client)
    response = client.post("/api/query/stream", json={"question": "Why?"})
    assert response.content_type == "text/event-stream; charset=utf-8"
    events = [event for event in events_of(response.data) if event[0] != "state"]
    assert events[0][0] == "start"
    assert events[-1][0] == "end"
    assert "".join(data["text"] for name, _, data in events if name == "token") == plain["answer"]
    assert [position for name, position, _ in events if name == "token"][-1] == len(plain["answer"])
    different = {"conversation_id", "turn_id", "created_at", "finished_at"}
    assert {k: v for k, v in events[-1][2].items() if k not in different} == {
        k: v for k, v in plain.items() if k not in different
    }


def test_the_stream_tells_how_much_of_the_request_the_model_has_read(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(progress=[{"total": 1200, "processed": read} for read in (256, 1200)])
    told = list(events_of(client.post("/api/query/stream", json={"question": "Why?"}).data))
    named = [data for name, _, data in told if name == "state" and data["state"] == "reading_request"]
    assert [(one["read_tokens"], one["request_tokens"]) for one in named] == [(256, 1200), (1200, 1200)]
    assert [one["message"] for one in named] == [READING_PROMPT.format(n=n, n1="1,200") for n in ("256", "1,200")]
    names = [name for name, _, _ in told]
    assert names.index("start") < told.index(("state", None, named[0])) < names.index("token")


def seven_turns(client: FlaskClient, streamed: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    conversation, start = None, None
    for n in range(1, 8):
        body = {"question": f"Question {n}"} | ({"conversation_id": conversation} if conversation else {})
        if streamed:
            events = events_of(client.post("/api/query/stream", json=body).data)
            answer, start = events[-1][2], next(data for name, _, data in events if name == "start")
        else:
            answer = client.post("/api/query", json=body).json
        conversation = answer["conversation_id"]
    return answer, start


@pytest.mark.parametrize("streamed", [False, True])
def test_the_seventh_question_sees_the_last_five_turns_and_everyone_is_told(
    client: FlaskClient, stub: StubModel, caplog: pytest.LogCaptureFixture, streamed: bool
) -> None:
    caplog.set_level(logging.INFO)
    answer, start = seven_turns(client, streamed)
    assert answer["history_trimmed"] is True
    assert answer["notice"] == "[History trimmed to last 5 turns]"
    figures = {k: v for k, v in answer["history"].items() if k != "tokens"}
    assert figures == {
        "max_history_turns": 5,
        "strategy": "window",
        "turns_total": 6,
        "turns_kept": 5,
        "turns_dropped": 1,
        "messages_dropped": 2,
        "first_kept_turn": 2,
        "reason": "turn_limit",
        "notice": "[History trimmed to last 5 turns]",
        "left_out": {"turn_limit": 1},
        "summary_sent": False,
        "recalled_turns": [],
        "missing": [],
        "past_turns": [],
        "notes": [],
        "iterations_dropped": 0,
        "endpoint": None,
    }
    sent = stub.requests[-1].messages
    assert [m["role"] for m in sent] == ["system", "system"] + ["user", "assistant"] * 5 + ["user"]
    assert sent[1]["content"] == "[History trimmed to last 5 turns]"
    assert [m["content"] for m in sent[2::2]] == [f"Question {n}" for n in range(2, 8)]
    if start is not None:
        assert (start["trimmed"], start["dropped"], start["history_trimmed"]) == (True, 2, True)
    assert "2 messages left out; the model sees 5 of 6 earlier turns (1 over the turn limit)" in caplog.text


def test_plain_and_streamed_send_the_model_the_same(client: FlaskClient, stub: StubModel) -> None:
    plain, _ = seven_turns(client, streamed=False)
    sent = [request.messages for request in stub.requests]
    streamed, _ = seven_turns(client, streamed=True)
    assert [request.messages for request in stub.requests[7:]] == sent
    assert streamed["history"] == plain["history"]


def conversation_of(client: FlaskClient, turns: int) -> int:
    conversation = ask(client, "Question 1")["conversation_id"]
    for n in range(2, turns + 1):
        ask(client, f"Question {n}", conversation_id=conversation)
    return int(conversation)


def kept(answer: dict[str, Any]) -> int:
    return int(answer["history"]["turns_kept"])


def test_the_window_is_set_by_settings_environment_conversation_and_request_in_growing_strength(
    client: FlaskClient, services: Services
) -> None:
    conversation = conversation_of(client, 4)
    (services.data_dir.parent / "settings.json").write_text('{"max_history_turns": 1}')
    services.settings.look()
    assert kept(ask(client, conversation_id=conversation)) == 1
    assert client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": 2}).status_code == 200
    assert kept(ask(client, conversation_id=conversation)) == 2
    assert kept(ask(client, conversation_id=conversation, max_history_turns=3)) == 3
    assert kept(ask(client, conversation_id=conversation, max_history_turns=None)) == 7
    assert kept(ask(client, conversation_id=conversation, max_history_turns=0)) == 0
    client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": "default"})
    assert kept(ask(client, conversation_id=conversation)) == 1


def test_a_conversation_can_have_no_limit(client: FlaskClient) -> None:
    conversation = conversation_of(client, 7)
    changed = client.patch(f"/api/conversations/{conversation}", json={"max_history_turns": None}).json
    assert changed["max_history_turns"] is None
    view = changed["view"]
    assert (view["max_history_turns"], view["turns_kept"], view["turns_dropped"]) == (None, 7, 0)
    assert (view["kept_turns"], view["left_out"], view["horizon"]) == ([[1, 7]], [], 1)
    answer = ask(client, conversation_id=conversation)
    assert (kept(answer), answer["history_trimmed"]) == (7, False)


def test_the_receipt_is_what_the_model_was_sent(client: FlaskClient, stub: StubModel) -> None:
    answer, _ = seven_turns(client, streamed=False)
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert receipt["messages"] == stub.requests[-1].messages
    assert receipt["left_out"] == [
        {"reason": "turn_limit", "turns": 1, "messages": 2, "first_turn": 1, "last_turn": 1, "trimmed": True}
    ]
    assert receipt["history"] == answer["history"]


def test_passages_go_with_the_question_and_are_never_history(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock on Fridays.")
    first = ask(client, "When does the office close?")
    assert first["sources"][0]["document"] == "note.txt"
    assert "nineteen" in first["sources"][0]["text"]
    assert "nineteen" in stub.requests[-1].messages[-1]["content"]
    ask(client, "Thanks, good.", conversation_id=first["conversation_id"])
    history = stub.requests[-1].messages[1:-1]
    assert history[0]["content"] == "When does the office close?"


def test_only_sources_that_the_answer_names_are_cited(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "Alpha office hours.", "a.txt")
    upload(client, "Beta office hours.", "b.txt")
    stub.replies.append(Reply("See [2] and [9]."))
    assert [source["cited"] for source in ask(client, "office hours")["sources"]] == [False, True]


def test_document_ids_restrict_the_search(client: FlaskClient) -> None:
    upload(client, "Alpha office hours.", "a.txt")
    wanted = upload(client, "Beta office hours.", "b.txt")["document_id"]
    sources = ask(client, "office hours", document_ids=[wanted])["sources"]
    assert [source["document"] for source in sources] == ["b.txt"]


def test_system_messages_can_be_merged_into_one(client: FlaskClient, services: Services, stub: StubModel) -> None:
    (services.data_dir.parent / "settings.json").write_text(
        '{"merge_system_messages": true, "max_history_turns": 0, "instructions": "Be brief."}'
    )
    services.settings.look()
    ask(client, conversation_id=conversation_of(client, 1))
    assert stub.requests[-1].messages[0]["content"] == "Be brief.\n\n[History trimmed to last 0 turns]"
    assert len(stub.requests[-1].messages) == 2


@pytest.mark.parametrize("path", ["/api/query", "/api/query/stream"])
@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        ({}, 422, "InvalidRequest", '"question" is missing'),
        ({"question": ""}, 422, "InvalidRequest", "The question is empty"),
        ({"question": " \n"}, 422, "InvalidRequest", "The question is empty"),
        ({"question": "x" * 8001}, 422, "InvalidRequest", "has 8001 characters; the limit is 8000"),
        ({"question": 7}, 422, "InvalidRequest", "question is 7; it must be text"),
        ({"query": 7}, 422, "InvalidRequest", "query is 7; it must be text"),
        ({"question": "a", "query": "b"}, 422, "InvalidRequest", "mean the same"),
        ({"question": "a", "conversation_id": 77}, 404, "ConversationNotFound", "There is no conversation 77."),
        ({"question": "a", "conversation_id": "1"}, 422, "InvalidRequest", 'conversation_id is "1"'),
        ({"question": "a", "conversation_id": 0}, 422, "InvalidRequest", "conversation_id is 0"),
        ({"question": "a", "max_history_turns": -1}, 422, "InvalidRequest", "max_history_turns is -1; it must be a"),
        ({"question": "a", "max_history_turns": 2.5}, 422, "InvalidRequest", "max_history_turns is 2.5"),
        ({"question": "a", "max_history_turns": "5"}, 422, "InvalidRequest", 'max_history_turns is "5"'),
        ({"question": "a", "max_history_turns": True}, 422, "InvalidRequest", "max_history_turns is true"),
        ({"question": "a", "document_ids": [3]}, 404, "DocumentNotFound", "There is no document 3"),
        (
            {"question": "a", "document_ids": [2, "3"]},
            422,
            "InvalidRequest",
            'document_ids[1] is "3"; document_ids must',
        ),
        ({"question": "a", "on_overflow": "panic"}, 422, "InvalidRequest", 'on_overflow is "panic"'),
        ({"question": "a", "max_history_turn": 3}, 422, "InvalidRequest", 'Did you mean "max_history_turns"?'),
        ({"question": "a", "document_ids": []}, 422, "InvalidRequest", "a list of 1 to 1000 document ids"),
        ({"question": "a", "document_ids": [2**31]}, 422, "InvalidRequest", "document_ids"),
        ({"question": "a", "conversation_id": 10**20}, 422, "InvalidRequest", "conversation_id is 1000"),
        ([], 422, "InvalidRequest", "must be one JSON object"),
    ],
)
def test_a_wrong_body_is_refused_before_anything_is_stored(  # type: ignore[no-untyped-def]
    empty: FlaskClient, path, body, status, kind, words
) -> None:
    response = empty.post(path, json=body)
    assert (response.status_code, response.content_type) == (status, "application/json")
    assert set(response.json) == {"error"}
    assert response.json["error"]["type"] == kind
    assert words in response.json["error"]["message"]


@pytest.mark.parametrize("path", ["/api/query", "/api/query/stream"])
def test_what_is_not_json_is_refused(empty: FlaskClient, path: str) -> None:
    def send(data: bytes, kind: str | None) -> tuple[int, str]:
        response = empty.post(path, data=data, content_type=kind)
        return response.status_code, response.json["error"]["type"]

    assert send(b'{"question": ', "application/json") == (400, "MalformedBody")
    assert send(b'{"question": NaN}', "application/json") == (400, "MalformedBody")
    assert send(b'{"question": "\xff"}', "application/json") == (400, "MalformedBody")
    assert send(b"[" * 100_000, "application/json") == (400, "MalformedBody")
    assert send(b'{"question": "a"}', "text/plain") == (415, "UnsupportedContentType")
    assert send(b'{"question": "a"}', None) == (415, "UnsupportedContentType")
    assert send(b"x" * 1_100_000, "application/json") == (413, "RequestEntityTooLarge")


def test_an_empty_body_is_called_empty(empty: FlaskClient) -> None:
    response = empty.post("/api/query", data=b"", content_type="application/json")
    message = "The body is empty; it must be one JSON object."
    assert (response.status_code, response.json["error"]) == (400, {"type": "MalformedBody", "message": message})


@pytest.mark.parametrize("text", ["half \\ud83d", "zero \\u0000"])
def test_text_that_no_database_keeps_is_refused(empty: FlaskClient, text: str) -> None:
    response = empty.post("/api/query", data=b'{"question": "' + text.encode() + b'"}', content_type="application/json")
    assert (response.status_code, response.json["error"]["type"]) == (422, "InvalidRequest")


@pytest.mark.parametrize("every", [50, pytest.param(1, marks=pytest.mark.long)])
def test_every_naughty_string_is_asked_kept_and_shown_as_it_is(client: FlaskClient, every: int) -> None:
    strings = [line["text"] for line in shared_jsonl("blns/strings.jsonl") if line["text"].strip()]
    strings = [text for text in strings if "\0" not in text]
    assert len(strings) > 100
    conversation = ask(client)["conversation_id"]
    for text in strings[::every]:
        assert ask(client, text, conversation_id=conversation)["question"] == text
    page = client.get(f"/conversations/{conversation}")
    assert page.status_code == 200
    assert b"<script>alert" not in page.data


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/api/documents", "takes limit, cursor, tag, q, state."),
        ("/api/conversations", "takes limit, cursor, q, pinned, archived, deleted, project_id."),
        ("/api/search", "takes q, limit, document_id, tag, after, before, conversation_id."),
        ("/api/settings", "takes no parameters."),
    ],
)
def test_a_parameter_that_counts_for_nothing_is_refused(empty: FlaskClient, path: str, known: str) -> None:
    refused = empty.get(f"{path}?limits=5")
    assert refused.status_code == 422
    assert refused.json["error"]["message"] == f"Unknown parameter: limits. {path} {known}"


@pytest.mark.settings(MAX_PASSAGES="0")
class TestWithoutPassages:
    def test_documents_are_not_searched_and_not_called_empty(self, client: FlaskClient, stub: StubModel) -> None:
        upload(client, "The office closes at nineteen o'clock on Fridays.")
        answer = ask(client, "When does the office close on Fridays?")
        assert (answer["sources"], answer["search"], answer["support"]) == ([], None, "not_searched")
        assert stub.requests[-1].messages[-1]["content"] == "When does the office close on Fridays?"


def test_unknown_addresses_and_methods_have_the_same_shape(empty: FlaskClient) -> None:
    assert empty.get("/api/nothing").json == {
        "error": {"type": "NotFound", "message": "There is nothing at /api/nothing."}
    }
    html = {"Accept": "text/html"}
    assert empty.get("/api/nothing", headers=html).json["error"]["type"] == "NotFound"
    assert empty.get("/v1/nothing", headers=html).json["error"]["code"] == "not_found"
    response = empty.put("/api/query")
    refused = {"type": "MethodNotAllowed", "message": "PUT is not allowed for /api/query; use POST."}
    assert (response.status_code, response.json["error"]) == (405, refused)
    for path in ("/api/turns/9", "/api/turns/9/stream", "/api/turns/9/receipt", "/api/conversations/9"):
        assert empty.get(path).status_code == 404, path
    for path in ("/api/turns/9/stop", "/api/turns/9/retry", "/api/conversations/9/restore"):
        assert empty.post(path).status_code == 404, path


def test_cached_tokens_are_shown(client: FlaskClient, stub: StubModel) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 64}}
    stub.replies.append(Reply("A.", usage=usage))
    answer = ask(client)
    assert (answer["usage"]["cached_tokens"], answer["usage"]["requests"]) == (64, 1)


@pytest.mark.long
def test_an_answer_that_repeats_itself_without_end_is_ended_told_and_kept(client: FlaskClient, stub: StubModel) -> None:
    begun = "It is so. "
    stub.replies.append(Reply(pieces=[begun, *["I do not know. "] * 3_000]))
    answer = ask(client, "Why?")
    assert (answer["status"], answer["notes"]) == ("completed", [REPEATED])
    assert answer["answer"].startswith(f"{begun}I do not know. ")
    assert 16_000 < len(answer["answer"]) < 16_000 + len(begun) + 2 * 500
    assert ask(client, "And why?", conversation_id=answer["conversation_id"])["status"] == "completed"
