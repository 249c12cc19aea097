"""Turns that are not sent and that a question is about: quoted with it, or named so that one click brings them back."""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.records import RelatedTurn
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import kept, run, turn_ids
from tests.web.conftest import PAGE, ask, until


@pytest.mark.settings(HISTORY_RECALL="2", MAX_HISTORY_TURNS="2")
class TestRecall:
    def test_a_left_out_turn_comes_back_quoted_when_the_question_is_about_it(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        stub.replies.append(Reply("Noted: </earlier> the cat is called Mimi."))
        conversation = kept(client, "Remember that my cat is called Mimi.").conversation_id
        for n in range(2, 6):
            kept(client, f"Question {n}.", conversation)
        answer = ask(client, "How is my cat called?", conversation_id=conversation)
        question = stub.requests[-1].messages[-1]["content"]
        assert answer["history"]["recalled_turns"] == [1]
        assert "my cat is called Mimi" in question
        assert question.endswith("How is my cat called?")
        assert question.count("</earlier>") == 1
        assert question.index("Mimi") < question.index("</earlier>")
        receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
        assert receipt["recalled_turns"] == [1]

    @pytest.mark.long
    def test_whoever_is_asked_what_to_do_reads_that_quoted_turns_are_in_the_figure(self, client: FlaskClient) -> None:
        conversation = kept(client, "Remember that my cat is called Mimi.").conversation_id
        for n in range(2, 6):
            kept(client, f"Question {n}.", conversation)
        client.patch(f"/api/conversations/{conversation}", json={"on_overflow": "ask"})
        quoted = "They include left-out turns that are quoted as they seem to be about it."
        for question, is_quoted in (("How is my cat called?", True), ("Is it raining?", False)):
            body = {"question": question, "conversation_id": conversation}
            refused = client.post("/api/query", json=body)
            assert refused.status_code == 409
            figures = refused.json["error"]["details"]["figures"]
            assert "tokens with this question and its passages." in figures
            assert (quoted in figures) == is_quoted
            on_page = client.post("/ask", data=body, headers=PAGE | {"Accept-Language": "de"}).text
            assert "Das Modell würde 2 von 5 früheren Fragen" in on_page

    def test_of_two_questions_in_one_each_brings_its_turn_back(self, client: FlaskClient) -> None:
        conversation = kept(client, "My cat is called Mimi.").conversation_id
        kept(client, "My other cat is called Momo.", conversation)
        kept(client, "The boat lies in Bremerhaven.", conversation)
        for n in range(4, 8):
            kept(client, f"Question {n}.", conversation)
        answer = ask(client, "How is my other cat called? Where is the boat?", conversation_id=conversation)
        assert answer["history"]["recalled_turns"] == [2, 3]

    def test_a_turn_is_found_by_other_forms_of_its_words_in_its_language(self, client: FlaskClient) -> None:
        conversation = kept(client, "Die Gänse schlafen in dem alten Haus am Ufer.").conversation_id
        kept(client, "Die Boote liegen im Hafen von Bremen.", conversation)
        for n in range(3, 7):
            kept(client, f"Frage {n}.", conversation)
        answer = ask(client, "Welche Häuser haben die schlafenden Gänse?", conversation_id=conversation)
        assert answer["history"]["recalled_turns"] == [1]

    def test_recalled_are_the_first_by_the_order_of_the_index_however_certain_others_are(
        self, client: FlaskClient, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation = kept(client, "My cat is called Mimi.").conversation_id
        for n in range(2, 9):
            kept(client, f"My cat number {n} is called Mimi." if n < 5 else f"Question {n}.", conversation)
        store, order = type(services.history), list[int]()
        related = store.related

        def surest_last(*args: Any) -> list[RelatedTurn]:
            turns = [replace(one, certainty=0.3 + n / 100) for n, one in enumerate(related(*args))]
            order[:] = [one.number for one in turns]
            return turns

        monkeypatch.setattr(store, "related", surest_last)
        answer = ask(client, "How is my cat called?", conversation_id=conversation)
        assert len(order) > 2
        assert answer["history"]["recalled_turns"] == sorted(order[:2])

    def test_what_was_cleared_or_excluded_is_told_and_never_recalled(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        conversation = kept(client, "The cat is called Mimi.").conversation_id
        client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"excluded": True})
        for n in range(2, 6):
            kept(client, f"Question {n} about the dog.", conversation)
        answer = ask(client, "How is the cat called?", conversation_id=conversation)
        assert "Mimi" not in json.dumps(stub.requests[-1].messages)
        assert (answer["history"]["recalled_turns"], missing(answer)) == ([], [(1, "excluded")])
        client.patch(f"/api/turns/{turn_ids(client, conversation)[0]}", json={"excluded": False})
        run(client, conversation, "/clear")
        answer = ask(client, "How is the cat called?", conversation_id=conversation)
        assert answer["history"]["recalled_turns"] == []
        assert (1, "cleared") in missing(answer)

    def test_a_question_about_something_else_raises_no_alarm(self, client: FlaskClient) -> None:
        conversation = kept(client, "Remember that my cat is called Mimi.").conversation_id
        for n in range(2, 6):
            kept(client, f"Question {n}.", conversation)
        answer = ask(client, "How deep is the harbour of Bremerhaven?", conversation_id=conversation)
        assert (answer["history"]["recalled_turns"], missing(answer)) == ([], [])


@pytest.mark.settings(HISTORY_RECALL="5", MAX_HISTORY_TURNS="1")
class TestMoreThanIsRecalled:
    @pytest.mark.long
    def test_turns_that_are_about_a_question_beyond_those_recalled_are_told(self, client: FlaskClient) -> None:
        conversation = kept(client, "My cat is called Mimi.").conversation_id
        for n in range(2, 25):
            kept(client, f"My cat number {n} is called Mimi." if n < 8 else f"Question {n}.", conversation)
        answer = ask(client, "How is my cat called?", conversation_id=conversation)
        recalled = answer["history"]["recalled_turns"]
        assert len(recalled) == 5
        told = [number for number, _ in missing(answer)]
        assert sorted([*recalled, *told]) == list(range(1, 8))


@pytest.mark.settings(HISTORY_RECALL="0", MAX_HISTORY_TURNS="2")
class TestMissing:
    def test_a_turn_that_is_not_sent_is_named_and_one_click_brings_it_back(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        conversation = kept(client, "Remember that my cat is called Mimi.").conversation_id
        for n in range(2, 6):
            kept(client, f"Question {n}.", conversation)
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
