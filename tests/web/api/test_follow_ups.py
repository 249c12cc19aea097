"""Questions that lean on the conversation: searched with what they lean on; what stands alone stays as it is."""

import threading

import pytest
from flask.testing import FlaskClient

from rag_assistant.conversations.prompts import PROMPTS
from rag_assistant.conversations.summary_lines import LEAD
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, no_model, until, upload

LAMP = "The lighthouse lamp burns oil from whales."
BOAT = "A boat costs ninety crowns at the harbour."


pytestmark = pytest.mark.library(("lamp.txt", LAMP), ("boat.txt", BOAT))


def first_document(answer: dict) -> str:  # type: ignore[type-arg]
    return str(answer["sources"][0]["document"])


def test_a_question_that_leans_is_searched_with_what_it_leans_on(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Oil from whales [1]."))
    first = ask(client, "What does the lighthouse lamp burn?")
    assert first["search"] == {
        "query": "What does the lighthouse lamp burn?", "by": "question", "follow_up_context": None, "found": 2,
        "support": "found",
    }  # fmt: skip
    second = ask(client, "And why?", conversation_id=first["conversation_id"])
    assert first_document(second) == "lamp.txt"
    assert second["search"]["by"] == "words"
    assert second["search"]["query"] == "And why?"
    assert "lighthouse lamp burn" in second["search"]["follow_up_context"]
    receipt = client.get(f"/api/turns/{second['turn_id']}/receipt").json
    assert receipt["search"] == second["search"]
    assert receipt["rewrite"] is None
    assert stub.requests[-1].messages[-1]["content"].endswith("And why?"), "the question itself is sent as it was asked"


def test_a_question_that_stands_alone_stays_as_it_is(client: FlaskClient) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    second = ask(client, BOAT, conversation_id=first["conversation_id"])
    assert (second["search"]["by"], second["search"]["follow_up_context"]) == ("question", None)
    assert first_document(second) == "boat.txt"


def test_what_the_model_does_not_see_nothing_leans_on(client: FlaskClient) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    conversation = first["conversation_id"]
    assert ask(client, "And why?", conversation_id=conversation, max_history_turns=0)["search"]["by"] == "question"
    client.post(f"/api/conversations/{conversation}/clear")
    assert ask(client, "And why?", conversation_id=conversation)["search"]["by"] == "question"


@pytest.mark.settings(QUERY_REWRITING="off")
def test_follow_ups_can_be_left_alone(client: FlaskClient) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    assert ask(client, "And why?", conversation_id=first["conversation_id"])["search"]["by"] == "question"


@pytest.mark.settings(QUERY_REWRITING="model")
def test_a_connected_model_puts_it_into_words_that_stand_alone(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    before = len(stub.requests)
    usage = {"prompt_tokens": 40, "completion_tokens": 4}
    stub.replies.append(Reply('"How much oil does the lighthouse lamp burn?"', usage=usage))
    second = ask(client, "And those?", conversation_id=first["conversation_id"])
    assert second["search"] == {
        "query": "How much oil does the lighthouse lamp burn?",
        "by": "model",
        "follow_up_context": None,
        "found": 2,
        "support": "found",
    }
    assert first_document(second) == "lamp.txt"
    rewriting, answering = stub.requests[before:]
    assert "one search query that stands alone" in rewriting.messages[0]["content"]
    assert "What does the lighthouse lamp burn?" in rewriting.messages[1]["content"]
    assert rewriting.messages[1]["content"].endswith("The last question: And those?")
    assert rewriting.body["temperature"] == 0
    assert answering.messages[-1]["content"].endswith("And those?")
    assert second["usage"]["prompt_tokens"] == 50, "both requests are counted"
    receipt = client.get(f"/api/turns/{second['turn_id']}/receipt").json
    assert receipt["rewrite"]["answer"] == '"How much oil does the lighthouse lamp burn?"'
    assert receipt["rewrite"]["request"]["messages"] == rewriting.messages
    assert receipt["request"]["messages"] == answering.messages


@pytest.mark.settings(QUERY_REWRITING="model")
def test_a_question_that_stands_alone_takes_no_request_more(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    before = len(stub.requests)
    ask(client, BOAT, conversation_id=first["conversation_id"])
    assert len(stub.requests) == before + 1


@pytest.mark.settings(QUERY_REWRITING="model")
@pytest.mark.parametrize(
    "useless",
    sample(
        [
            [Reply(status=400)],
            [Reply(status=500)] * 3,
            [Reply("One line.\nAnother line.")],
            [Reply("word " * 400)],
            [Reply("  ")],
            [Reply("Because the lamp burns whale oil.")],
        ]
    ),
)
def test_a_model_that_cannot_rewrite_does_no_harm(client: FlaskClient, stub: StubModel, useless: list[Reply]) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    stub.replies.extend([*useless, Reply("Whales.")])
    second = ask(client, "And why?", conversation_id=first["conversation_id"])
    assert second["search"]["by"] == "words"
    assert (second["answer"], first_document(second)) == ("Whales.", "lamp.txt")


@pytest.mark.long
@pytest.mark.settings(QUERY_REWRITING="model")
def test_a_model_that_never_rewrites_is_rarely_asked_to(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.llm.calibration.SEND_EVERY", 3)
    conversation = ask(client, "What does the lighthouse lamp burn?")["conversation_id"]
    sent = []
    for _ in range(8):
        before = len(stub.requests)
        stub.replies.append(Reply("Because the lamp burns whale oil."))
        ask(client, "And why?", conversation_id=conversation)
        stub.replies.clear()
        sent.append(len(stub.requests) - before)
        assert ("could not rewrite" in client.get("/settings").text) == (len(sent) >= 4)
    assert sent == [2, 2, 2, 2, 1, 1, 2, 1]


@pytest.mark.long
@pytest.mark.settings(QUERY_REWRITING="model")
def test_a_model_that_is_too_busy_to_rewrite_is_asked_again(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.llm.client.RETRY_BACKOFF_SECONDS", ())
    conversation = ask(client, "What does the lighthouse lamp burn?")["conversation_id"]
    sent = []
    for _ in range(5):
        before = len(stub.requests)
        stub.replies.append(Reply(status=429))
        ask(client, "And why?", conversation_id=conversation)
        stub.replies.clear()
        sent.append(len(stub.requests) - before)
    assert sent == [2, 2, 2, 2, 2]


@pytest.mark.long
@pytest.mark.settings(QUERY_REWRITING="model")
def test_a_rewriting_that_takes_too_long_is_not_waited_for(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rag_assistant.answering.search.TIMEOUT_SECONDS", 0.5)
    first = ask(client, "What does the lighthouse lamp burn?")
    stub.replies.extend([Reply("What? " * 9, hang_at=2), Reply("Whales.")])
    second = ask(client, "And why?", conversation_id=first["conversation_id"])
    assert (second["answer"], second["search"]["by"]) == ("Whales.", "words")
    assert "A request before an answer failed: The model at" in caplog.text
    assert "was saved" not in caplog.text


@pytest.mark.settings(QUERY_REWRITING="model")
def test_stop_ends_a_rewriting_at_once(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    before = len(stub.requests)
    stub.replies.append(Reply(hang_before_headers=True))
    body = {"question": "And why?", "conversation_id": first["conversation_id"]}
    waiting = threading.Thread(target=lambda: client.application.test_client().post("/api/query", json=body))
    waiting.start()
    until(lambda: len(stub.requests) > before)
    turn_id = first["turn_id"] + 1
    client.post(f"/api/turns/{turn_id}/stop")
    waiting.join(5)
    assert client.get(f"/api/conversations/{first['conversation_id']}/turns").json["turns"][-1]["status"] != "running"
    until(lambda: stub.requests[-1].left_after is not None)
    assert len(stub.requests) == before + 1


def test_an_answer_says_what_it_rests_on(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([Reply("Oil [1]."), Reply("Oil [7]."), Reply("I do not know.")])
    assert ask(client, "What does the lighthouse lamp burn?")["support"] == "cited"
    assert ask(client, "What does the lighthouse lamp burn?")["support"] == "uncited"
    nothing = ask(client, "Zebras xylophone?")
    assert (nothing["support"], nothing["sources"], nothing["search"]["found"]) == ("nothing_found", [], 0)
    assert "Nothing in the documents was found" in stub.requests[-1].messages[-1]["content"]


def test_a_model_judges_weak_passages_itself(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.extend([Reply("I do not know.")])
    weak = ask(client, "Which harbour parliament votes about taxation and duties, tariffs, levies and tolls?")
    assert (weak["support"], weak["search"]["support"]) == ("uncited", "nothing_found")
    assert "The passages may not answer the question." in stub.requests[-1].messages[-1]["content"]
    assert "No sources cited" in client.get(f"/turns/{weak['turn_id']}").text


@pytest.mark.long
def test_a_search_can_be_made_as_for_a_follow_up(client: FlaskClient) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    alone = client.get("/api/search?q=And why?").json
    assert (alone["follow_up_context"], alone["passages"]) == (None, [])
    found = client.get(f"/api/search?q=And why?&conversation_id={first['conversation_id']}").json
    assert "lighthouse lamp" in found["follow_up_context"]
    assert found["passages"][0]["document"] == "lamp.txt"


def test_a_search_leans_on_nothing_that_the_model_would_not_see(client: FlaskClient) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    client.patch(f"/api/conversations/{first['conversation_id']}", json={"max_history_turns": 0})
    found = client.get(f"/api/search?q=And why?&conversation_id={first['conversation_id']}").json
    assert (found["follow_up_context"], found["passages"]) == (None, [])


@no_model
def test_a_search_leans_on_quotes_without_the_line_that_leads_them(client: FlaskClient) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    found = client.get(f"/api/search?q=And why?&conversation_id={first['conversation_id']}").json
    assert first["answer"].startswith(LEAD)
    assert found["follow_up_context"]
    assert LEAD[:20] not in found["follow_up_context"]


def test_a_connected_model_is_told_to_ask_what_is_meant(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, "What does the lighthouse lamp burn?")
    assert PROMPTS["ask_back"] not in stub.requests[-1].messages[-1]["content"]
    ask(client, "And the other one?", conversation_id=first["conversation_id"])
    assert f"</passages>\n\n{PROMPTS['ask_back']}\n\nAnd the other one?" in stub.requests[-1].messages[-1]["content"]
    ask(client, "And why?", conversation_id=first["conversation_id"])
    assert PROMPTS["ask_back"] not in stub.requests[-1].messages[-1]["content"], "it leans on what was said"


def delete_all(client: FlaskClient) -> None:
    for document in client.get("/api/documents").json["documents"]:
        client.delete(f"/api/documents/{document['document_id']}")


def test_without_documents_nothing_is_searched(client: FlaskClient, stub: StubModel) -> None:
    delete_all(client)
    answer = ask(client, "Why?")
    assert (answer["support"], answer["search"]) == ("not_searched", None)
    assert stub.requests[-1].messages[-1]["content"] == "Why?"


@pytest.mark.long
@pytest.mark.settings(PASSAGES_TOKEN_BUDGET="100")
def test_the_passages_of_a_question_keep_to_their_budget(client: FlaskClient) -> None:
    delete_all(client)
    for number in range(4):
        upload(client, f"Geese number{number} " + f"hiss{number} " * 40, f"{number}.txt")
    assert len(ask(client, "Geese?")["sources"]) == 1


def test_a_citation_that_its_passage_does_not_carry_is_doubted_everywhere(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("The lighthouse lamp burns whale oil [1]. It burned 99 barrels of it [1]."))
    answer = ask(client, "What does the lighthouse lamp burn?")
    assert (answer["support"], answer["doubts"]) == ("cited", 1)
    (doubt,) = answer["sources"][0]["doubts"]
    assert doubt == {"nth": 2, "problem": "number", "missing": ["99"], "carried_by": None}
    assert answer["notes"] == ["In none of the passages, your question or earlier turns, so check these: 99."]
    page = client.get(f"/turns/{answer['turn_id']}").text
    assert page.count("data-doubt=") == 1
    assert "“99” is not in source 1." in page
    assert "1 citation to check" in page
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert receipt["doubts"] == 1
    stub.replies.append(Reply(LAMP))
    uncited = ask(client, "What does the lighthouse lamp burn?")
    assert (uncited["support"], uncited["sources"][0]["offered"]) == ("uncited", [LAMP])
    assert "Uncited, but in a passage" in client.get(f"/turns/{uncited['turn_id']}").text
    assert client.get(f"/api/turns/{answer['turn_id']}").json["sources"] == answer["sources"]


def test_an_invented_figure_without_a_citation_is_told_unless_the_question_or_an_earlier_turn_has_it(
    client: FlaskClient, stub: StubModel
) -> None:
    stub.default = Reply("The lamp burns 115 barrels.")
    first = ask(client, "What does the lighthouse lamp burn?")
    assert first["notes"] == ["In none of the passages, your question or earlier turns, so check these: 115."]
    later = ask(client, "What does the lighthouse lamp burn?", conversation_id=first["conversation_id"])
    asked = ask(client, "Does the lighthouse lamp burn 115 barrels?")
    assert (later["notes"], asked["notes"]) == ([], [])


KINDS = "hammer saw drill vice file chisel plane clamp level gauge anvil awl axe bellows brace".split()


@no_model
@pytest.mark.library(
    (
        "tools.csv",
        "Article,Price (EUR),In stock\n" + "".join(f"Steel {one},{n + 10},{n}\n" for n, one in enumerate(KINDS)),
    ),
    (
        "rooms.csv",
        "Room,Available,Seats\n" + "".join(f"Room {n},{'no' if n % 2 else 'yes'},{n}\n" for n in range(1, 22)),
    ),
)
def test_it_is_the_row_of_the_turn_before_and_none_of_another_file(client: FlaskClient) -> None:
    first = ask(client, "What does the steel chisel cost?")
    answer = ask(client, "Is it available?", conversation_id=first["conversation_id"])["answer"]
    assert "Steel chisel" in answer
    assert "Room 1" not in answer


FLEET = "".join(f"V-{n},{'Van' if n % 3 else 'Trailer'},{'no' if n % 5 else 'yes'}\n" for n in range(1, 60))


@no_model
@pytest.mark.library(("fleet.csv", f"Plate,Kind,In service\n{FLEET}"))
def test_what_points_back_is_not_computed_from_all_rows(client: FlaskClient) -> None:
    first = ask(client, "How many vans are in service?")
    assert "of 59 rows, where “Kind” is “Van” and “In service” is “yes”" in first["answer"]
    for question in ("And of the trailers?", "How many of those are trailers?", "How many of the trailers?"):
        answer = ask(client, question, conversation_id=first["conversation_id"])["answer"]
        assert ("where “Kind” is" in answer, "Nothing was computed." in answer) == (False, True), question
    whole = ask(client, "How many trailers are in service?", conversation_id=first["conversation_id"])["answer"]
    assert "where “Kind” is “Trailer” and “In service” is “yes”" in whole
