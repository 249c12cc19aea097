"""An edited question is asked in a branch: a conversation of its own, and the first one stays as it was."""

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from tests.testkit.samples import sample
from tests.testkit.stub_model import StubModel
from tests.web.api.conversations import kept, run, turn_ids
from tests.web.conftest import ask, events_of, post, upload


def talk(client: FlaskClient, count: int) -> list[int]:
    """Let some questions have been asked, and return the ids of their turns."""
    return [kept(client, f"Question {n}", 1 if n > 1 else None).id for n in range(1, count + 1)]


def said_in(client: FlaskClient, conversation_id: int) -> list[tuple[int, str, str]]:
    listed = client.get(f"/api/conversations/{conversation_id}/turns").json["turns"]
    return [(turn["turn"], turn["question"], turn["answer"]) for turn in listed]


def test_an_edited_question_is_asked_in_a_branch(client: FlaskClient, stub: StubModel) -> None:
    turns = talk(client, 4)
    before = client.get("/api/conversations/1/turns").json
    answer = ask(client, "Question 3, better", edits_turn=turns[2])
    assert (answer["conversation_id"], answer["turn"]) == (2, 3)
    asked = [message["content"] for message in stub.requests[-1].messages if message["role"] == "user"]
    assert [question.split("\n")[0] for question in asked[:2]] == ["Question 1", "Question 2"]
    assert "Question 3, better" in asked[2]
    assert [question for _, question, _ in said_in(client, 2)] == ["Question 1", "Question 2", "Question 3, better"]
    assert client.get("/api/conversations/1/turns").json == before


def test_a_branch_has_everything_that_was_there(client: FlaskClient) -> None:
    upload(client, "The lighthouse keeper feeds seventeen geese.")
    first = ask(client, "How many geese does the lighthouse keeper feed?")
    second = ask(client, "And ducks?", conversation_id=1)
    third = ask(client, "And hens?", conversation_id=1)
    client.patch(f"/api/turns/{first['turn_id']}", json={"pinned": True})
    client.patch(f"/api/turns/{second['turn_id']}", json={"excluded": True})
    client.patch("/api/conversations/1", json={"max_history_turns": 7})
    ask(client, "And larks?", edits_turn=third["turn_id"])
    branch = client.get("/api/conversations/2").json
    assert branch["max_history_turns"] == 7
    assert branch["branched_from"] == {"conversation_id": 1, "turn": 3}
    # The list tells it from its origin by what is asked in it.
    assert branch["title"] == "And larks?"
    copied = client.get("/api/conversations/2/turns").json["turns"]
    assert [(turn["pinned"], turn["excluded"]) for turn in copied] == [(True, False), (False, True), (False, False)]
    assert copied[0]["sources"] == first["sources"] != []
    receipts = [client.get(f"/api/turns/{turn}/receipt").json for turn in (first["turn_id"], copied[0]["turn_id"])]
    assert receipts[0]["messages"] == receipts[1]["messages"]
    found = client.get("/api/conversations", query_string={"q": "geese"}).json["conversations"]
    assert {one["conversation_id"] for one in found} == {1, 2}


def test_the_counters_of_a_branch_are_its_own(client: FlaskClient) -> None:
    turns = talk(client, 7)
    answer = ask(client, "Again", edits_turn=turns[6])
    assert answer["history_trimmed"] is True
    assert answer["history"]["turns_total"] == 6
    assert ask(client, "Early", edits_turn=turns[2])["history"]["turns_total"] == 2


@pytest.mark.long
def test_a_summary_comes_along_only_where_it_tells_of_turns_that_are_there(client: FlaskClient) -> None:
    turns = [kept(client, f"{n} " + "word " * 200, 1 if n else None).id for n in range(5)]
    assert client.post("/api/conversations/1/compact").status_code == 200
    last = client.get("/api/conversations/1").json["view"]["summary"]["last_turn"]
    ask(client, "Behind it", edits_turn=turns[last])
    assert client.get("/api/conversations/2").json["view"]["summary"]["last_turn"] == last
    ask(client, "Within it", edits_turn=turns[last - 1])
    assert client.get("/api/conversations/3").json["view"]["summary"] is None
    assert client.get("/api/conversations/3").json["view"]["turns_kept"] == last


def test_the_same_key_makes_one_branch(client: FlaskClient) -> None:
    turns = talk(client, 2)
    body = {"question": "Again", "edits_turn": turns[1]}
    first, second = (client.post("/api/query", json=body, headers={"Idempotency-Key": "k"}).json for _ in range(2))
    assert first["turn_id"] == second["turn_id"]
    assert len(client.get("/api/conversations").json["conversations"]) == 2


def test_the_stream_says_where_it_is_asked(client: FlaskClient) -> None:
    turns = talk(client, 2)
    response = client.post("/api/query/stream", json={"question": "Again", "edits_turn": turns[1]})
    start = next(data for name, _, data in events_of(response.data) if name == "start")
    assert (start["conversation_id"], start["turn"]) == (2, 2)


@pytest.mark.parametrize(
    ("body", "status"),
    [({"edits_turn": 99}, 404), ({"edits_turn": 1, "conversation_id": 2}, 422), ({"edits_turn": "1"}, 422)],
)
def test_what_cannot_be_edited_is_refused_and_leaves_nothing(
    client: FlaskClient, body: dict[str, object], status: int
) -> None:
    talk(client, 1)
    client.post("/api/conversations", json={})
    assert client.post("/api/query", json={"question": "Again"} | body).status_code == status
    assert len(client.get("/api/conversations").json["conversations"]) == 2


def test_the_first_question_can_be_edited_too(client: FlaskClient) -> None:
    turns = talk(client, 2)
    answer = ask(client, "Another beginning", edits_turn=turns[0])
    assert (answer["turn"], answer["history_trimmed"]) == (1, False)
    assert client.get("/api/conversations/2").json["title"] == "Another beginning"


def test_a_confirmation_that_waits_is_not_doubled(services: Services, client: FlaskClient) -> None:
    turns = talk(client, 2)
    with services.database.write() as connection:
        connection.exec_driver_sql("""UPDATE turns SET waiting = '{"call_id": "c", "tool": "t"}' WHERE id = 1""")
    ask(client, "Again", edits_turn=turns[1])
    assert [turn["waiting"] for turn in client.get("/api/conversations/2/turns").json["turns"]] == [False, False]


def test_plain_forms_do_the_same(client: FlaskClient) -> None:
    turns = talk(client, 2)
    drawn = client.get("/conversations/1", query_string={"edit": 2}).text
    assert f'name="edits_turn" value="{turns[1]}"' in drawn
    assert "Question 2</textarea>" in drawn
    where = post(client, "/ask", question="Better", conversation_id="1", edits_turn=str(turns[1]))
    assert where == (303, "/conversations/2#turn-2")
    assert 'href="/conversations/1?at=2#turn-2"' in client.get("/conversations/2").text
    assert 'href="/conversations/2?at=2#turn-2"' in client.get("/conversations/1").text


@pytest.mark.parametrize("how", sample(["branch", "branch of a branch", "imported"]))
def test_what_was_cleared_before_a_turn_stays_cleared_in_its_branch(
    client: FlaskClient, stub: StubModel, how: str
) -> None:
    talk(client, 3)
    run(client, 1, "/clear")
    asked, later = kept(client, "Question 4", 1), kept(client, "Question 5", 1)
    run(client, 1, "/clear")
    kept(client, "Question 6", 1)
    turn_id = asked.id
    if how == "branch of a branch":
        branch = ask(client, "Question 5, better", edits_turn=later.id)["conversation_id"]
        turn_id = turn_ids(client, branch)[3]
    elif how == "imported":
        exported = client.get("/api/export", buffered=True).data
        client.post("/api/conversations/1/purge")
        assert (
            client.post("/api/conversations/import", data=exported, content_type="application/zip").status_code == 200
        )
        turn_id = turn_ids(client, 2)[3]
    stub.requests.clear()
    answer = ask(client, "Question 4, better", edits_turn=turn_id)
    assert "Question 1" not in repr(stub.requests[-1].messages)
    assert answer["history"]["left_out"] == {"cleared": 3}


@pytest.mark.long
def test_a_clear_that_was_undone_holds_in_no_branch(client: FlaskClient, stub: StubModel) -> None:
    talk(client, 3)
    run(client, 1, "/clear")
    asked = kept(client, "Question 4", 1)
    run(client, 1, "/undo")
    ask(client, "Question 4, better", edits_turn=asked.id)
    assert "Question 1" in repr(stub.requests[-1].messages)


@pytest.mark.long
def test_an_older_summary_holds_where_a_later_one_covers_too_much(client: FlaskClient) -> None:
    turns = [kept(client, f"{n} " + "word " * 200, 1 if n else None).id for n in range(5)]
    assert client.post("/api/conversations/1/compact").status_code == 200
    first = client.get("/api/conversations/1").json["view"]["summary"]
    turns += [kept(client, f"{n} " + "word " * 200, 1).id for n in range(5, 9)]
    assert client.post("/api/conversations/1/compact").status_code == 200
    second = client.get("/api/conversations/1").json["view"]["summary"]
    assert first["last_turn"] < second["last_turn"]
    branch = ask(client, "Within the second", edits_turn=turns[second["last_turn"] - 1])["conversation_id"]
    summary = client.get(f"/api/conversations/{branch}").json["view"]["summary"]
    assert (summary["text"], summary["last_turn"]) == (first["text"], first["last_turn"])


@pytest.mark.long
def test_a_summary_that_was_undone_is_in_no_branch(client: FlaskClient) -> None:
    turns = [kept(client, f"{n} " + "word " * 200, 1 if n else None).id for n in range(5)]
    assert client.post("/api/conversations/1/compact").status_code == 200
    run(client, 1, "/undo")
    branch = ask(client, "Last, better", edits_turn=turns[-1])["conversation_id"]
    assert client.get(f"/api/conversations/{branch}").json["view"]["summary"] is None
