"""Without a model the documents are quoted: over the same API, with sources, a receipt, a window and follow-ups."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from bench.questions import QUESTIONS
from rag_assistant.answering.quoting import NEEDS_MODEL, NOTHING_SAID, NOTHING_TO_QUOTE, UNCLEAR
from rag_assistant.conversations.compaction import EXTRACTED
from rag_assistant.conversations.summary_lines import (
    LEAD,
    LEAD_GUIDE,
    LEAD_INSTEAD,
    LEAD_NEAR,
    NOTHING_FOUND,
    NOTHING_IN_SCOPE,
)
from rag_assistant.services import Services
from rag_assistant.web import create_app
from rag_assistant.web.pages.history import EXAMPLES
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, events_of, no_model, post, until, upload

NOTE = """# The lighthouse

The keeper of the lighthouse on the island feeds seventeen geese every morning. The lamp burns oil.

## The boat

The boat of the harbour master was painted green in spring.
"""


pytestmark = [pytest.mark.library(("lighthouse.md", NOTE)), no_model]


def test_it_answers_with_a_sentence_of_the_documents_and_its_source(client: FlaskClient) -> None:
    answer = ask(client, "How many geese does the keeper of the lighthouse feed?")
    assert answer["answer"].startswith(LEAD)
    assert "> The keeper of the lighthouse on the island feeds seventeen geese every morning." in answer["answer"]
    assert answer["answer"].endswith("[1]")
    assert (answer["model"], answer["status"], answer["support"]) == ("quotes", "completed", "cited")
    assert answer["sources"][0]["document"] == "lighthouse.md"
    assert answer["sources"][0]["cited"]
    assert answer["usage"] is None


@pytest.mark.parametrize(
    "question",
    [
        "What does it burn?",
        "Und der andere?",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("Why?", "And the other one?")),
    ],
)
def test_it_asks_what_is_meant_where_nothing_tells(client: FlaskClient, question: str) -> None:
    answer = ask(client, question)
    assert answer["answer"].startswith(UNCLEAR)
    assert "- lighthouse.md > The lighthouse" in answer["answer"]
    assert (answer["support"] in ("not_sent", "nothing_found"), answer["sources"]) == (True, [])
    filtered = ask(client, question, document_ids=[1])
    assert not filtered["answer"].startswith(UNCLEAR), "a filter says what is meant"


def test_it_asks_what_else_is_meant_but_not_what_a_conversation_tells(client: FlaskClient) -> None:
    conversation = ask(client, "What does the lamp burn?")["conversation_id"]
    assert ask(client, "And the other one?", conversation_id=conversation)["answer"].startswith(UNCLEAR)
    assert ask(client, "What does it burn?", conversation_id=conversation)["answer"].startswith(LEAD)


def test_without_anything_to_offer_it_asks_for_a_name(client: FlaskClient) -> None:
    client.delete("/api/documents/1")
    assert ask(client, "And the other one?")["answer"] == NOTHING_TO_QUOTE


def test_the_stream_is_the_same_answer(client: FlaskClient) -> None:
    question = "What does the lamp burn?"
    events = events_of(client.post("/api/query/stream", json={"question": question}).data)
    assert [name for name, _, _ in events][-1] == "end"
    assert "".join(data["text"] for name, _, data in events if name == "token") == ask(client, question)["answer"]


def test_the_receipt_holds_the_request_that_was_quoted_from(client: FlaskClient) -> None:
    answer = ask(client, "What does the lamp burn?")
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert "The lamp burns oil." in receipt["request"]["messages"][-1]["content"]
    text = client.get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
    assert "No model is connected" in text
    assert "Copy as curl" not in text


@pytest.mark.settings(HISTORY_TOKEN_BUDGET="60")
def test_what_does_not_fit_is_not_quoted(client: FlaskClient) -> None:
    upload(client, NOTE + "More about the island. " * 20, "lighthouse.md")
    answer = ask(client, "How many geese does the keeper of the lighthouse feed?")
    assert (answer["answer"], answer["sources"]) == (NOTHING_TO_QUOTE, [])


def test_a_follow_up_leans_on_what_is_in_the_window_only(client: FlaskClient) -> None:
    first = ask(client, "How many geese does the keeper of the lighthouse feed?", max_history_turns=5)
    second = ask(client, "And why?", conversation_id=first["conversation_id"])
    assert "seventeen geese" in second["search"]["follow_up_context"]
    assert LEAD not in second["search"]["follow_up_context"]
    third = ask(client, "And why?", conversation_id=first["conversation_id"], max_history_turns=0)
    assert third["search"]["follow_up_context"] is None


def test_no_model_is_said_to_have_seen_anything(client: FlaskClient) -> None:
    first = ask(client, "How many geese does the keeper of the lighthouse feed?")
    second = ask(client, "And the lamp?", conversation_id=first["conversation_id"], max_history_turns=0)
    page = client.get(f"/turns/{second['turn_id']}").text
    assert "In view" not in page
    assert "odel saw" not in page
    assert "It was told" not in page


def test_what_is_not_in_the_documents_is_said_with_the_nearest_sections(client: FlaskClient) -> None:
    answer = ask(client, "Which parliament votes about taxation?")
    assert answer["answer"].startswith(NOTHING_FOUND)
    assert "\n- lighthouse.md > The lighthouse" in answer["answer"]
    assert (answer["support"], answer["sources"]) == ("nothing_found", [])


# Alone, somebody has one library, with all documents.
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "limited_to", "question", "then"),
    [
        ("document", 1, "How many geese does the keeper of the lighthouse feed?", "feeds seventeen geese"),
        ("tag", 1, "How many geese does the keeper of the lighthouse feed?", "feeds seventeen geese"),
        ("project", 1, "How many geese does the keeper of the lighthouse feed?", "feeds seventeen geese"),
        ("library", 2, "Which parliament votes about taxation?", NOTHING_FOUND),
    ],
)
def test_where_a_part_of_the_library_has_nothing_it_is_said_and_all_documents_are_offered(
    client: FlaskClient, kind: str, limited_to: int, question: str, then: str
) -> None:
    sheep = upload(client, "# Sheep\n\nThe shepherd shears forty sheep in June.", "sheep.md", tags="farm")
    limits: dict[str, dict[str, object]] = {
        "document": {"document_ids": [sheep["document_id"]]},
        "tag": {"tags": ["farm"]},
        "project": {
            "project_id": client.post("/api/projects", json={"name": "Farm", "tags": ["farm"]}).json["project_id"]
        },
        "library": {"library_ids": [client.get("/api/libraries").json["libraries"][0]["library_id"]]},
    }
    answer = ask(client, question, **limits[kind])
    assert answer["answer"].startswith(NOTHING_IN_SCOPE.format(n=limited_to))
    german = client.get(f"/turns/{answer['turn_id']}", headers=PAGE | {"Accept-Language": "de"}).text
    assert NOTHING_IN_SCOPE.format(n=limited_to)[:30] not in german
    assert "Am nächsten kommen diese Abschnitte:" in german
    page = client.get(f"/turns/{answer['turn_id']}", headers=PAGE).text
    offer = re.search(r'action="(/ask)"><button class="quiet" name="question" value="([^"]+)">([^<]+)', page)
    assert offer is not None, page
    assert offer.groups() == ("/ask", question, "Ask all documents in a new conversation")
    turn = answer["turn_id"] + 1
    assert post(client, offer[1], question=offer[2])[0] == 303
    until(lambda: client.get(f"/api/turns/{turn}").json["status"] == "completed")
    assert then in client.get(f"/api/turns/{turn}").json["answer"], "your documents are all of them"
    assert "Ask all documents" not in client.get(f"/turns/{turn}", headers=PAGE).text


def test_where_a_filter_of_one_question_finds_nothing_it_is_said_what_was_searched(client: FlaskClient) -> None:
    answer = ask(client, "Which parliament votes about taxation?", document_ids=[1])
    assert answer["answer"].startswith(NOTHING_IN_SCOPE.format(n=1))
    assert "1 documents" not in answer["answer"]


def test_where_a_filter_has_no_document_all_are_offered(client: FlaskClient) -> None:
    answer = ask(client, "What does the lamp burn?", after="2100")
    assert answer["answer"].startswith(NOTHING_IN_SCOPE.format(n=0))
    assert (answer["support"], answer["search"]["found"]) == ("nothing_found", 0)
    assert "Ask all documents in a new conversation" in client.get(f"/turns/{answer['turn_id']}", headers=PAGE).text


@pytest.mark.long
def test_what_the_person_said_is_quoted_where_the_documents_have_nothing(client: FlaskClient) -> None:
    conversation = ask(client, "Remember: my cat is called Mimi. What does the lamp burn?")["conversation_id"]
    for n in range(7):
        ask(client, f"How many geese are there, for the {n}th time?", conversation_id=conversation)
    answer = ask(client, "How is my cat called?", conversation_id=conversation)
    assert (
        answer["answer"]
        == f"{NOTHING_FOUND} In turn 1 of this conversation, you said:\n\n> Remember: my cat is called Mimi."
    )
    again = ask(client, "How is my dog called?", conversation_id=conversation)
    assert "you said" not in again["answer"]


def test_what_neither_documents_nor_conversation_speak_of_is_not_answered_with_the_last_passages(
    client: FlaskClient,
) -> None:
    conversation = ask(client, "How many geese does the keeper feed?")["conversation_id"]
    answer = ask(client, "Which parliament votes about taxation?", conversation_id=conversation)
    assert answer["answer"].startswith(NOTHING_FOUND)
    assert answer["support"] == "nothing_found"


def test_an_empty_library_has_nothing_to_quote(client: FlaskClient) -> None:
    client.delete("/api/documents/1")
    assert ask(client, "How many geese?")["answer"] == NOTHING_TO_QUOTE


@pytest.mark.parametrize("question", ["Which documents do I have?", "List all my documents", "What files are there?"])
def test_documents_are_listed_to_who_asks_for_them(client: FlaskClient, question: str) -> None:
    upload(client, "The boat is green.", "boats.md")
    answer = ask(client, question)
    assert (answer["answer"], answer["support"]) == (
        "You have 2 documents:\n\n- boats.md\n- lighthouse.md",
        "not_searched",
    )


@pytest.mark.long
def test_it_is_said_if_the_listed_documents_are_not_all(client: FlaskClient) -> None:
    upload(client, "The boat is green.", "boats.md")
    answer = ask(client, "Which documents do I have?", document_ids=[2])["answer"]
    assert answer == "The documents that this question is limited to (1 in all):\n\n- boats.md"


@pytest.mark.long
def test_the_guide_is_not_among_the_documents_that_answers_speak_of(
    client: FlaskClient, services: Services, tmp_path: Path
) -> None:
    services.guide = tmp_path / "guide"
    services.guide.mkdir()
    (services.guide / "1-first-steps.md").write_text("# First steps\n\nThe Stop button ends an answer early.\n")
    services.add_guide()
    until(lambda: services.documents.page(5)[0].state == "ready")
    assert ask(client, "Which documents do I have?")["answer"] == "You have one document:\n\n- lighthouse.md"
    assert "1-first-steps" not in ask(client, "Which parliament votes about taxation?")["answer"]
    of_guide = ask(client, "What does the Stop button do?")
    assert [one["document"] for one in of_guide["sources"] if one["cited"]] == ["1-first-steps.md"]
    assert of_guide["answer"].startswith(LEAD_GUIDE)
    assert ask(client, "What does the lamp burn?")["answer"].startswith(LEAD)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "Im Winter räumt die Firma Schneeblitz den Weg, Telefon 0341 555 0199.",
            "Wie ist die Faxnummer von Schneeblitz?",
        ),
        ("If error E04 appears on the boiler, the pump is blocked.", "What does error E09 of the boiler mean?"),
        ("# Flat\n\nThe landlord of the flat is Ruth Feldmann, Elm Road 9.", "Who is the landlord's insurer?"),
    ],
)
def test_a_quote_without_the_kind_of_thing_that_is_asked_for_is_no_clear_answer(
    client: FlaskClient, text: str, question: str
) -> None:
    upload(client, text, "notes.md")
    upload(client, "Item,EUR\nInsurance,640\nFax,20\nE-09,3\n", "costs.csv")
    assert ask(client, question)["answer"].startswith((LEAD_NEAR, NOTHING_FOUND))


@pytest.mark.long
def test_a_row_that_shares_a_word_takes_no_question_from_the_sentence_that_answers(client: FlaskClient) -> None:
    upload(client, "# Minutes\n\nThe summer party of the lighthouse is on 4 July 2026.", "minutes.md")
    upload(client, "Item,Planned (EUR),Who\nSummer party,900,Gus\nHall rent,3600,Cleo\n", "budget.csv")
    answer = ask(client, "When is the summer party?")["answer"]
    assert "4 July 2026" in answer
    assert "where Item is" not in answer
    assert (
        "1 of 2 rows, where “Item” is “Summer party”."
        in ask(client, "What is the budget of the summer party?")["answer"]
    )


def test_what_was_asked_before_is_told_without_a_search(client: FlaskClient) -> None:
    assert ask(client, "What did I ask before?")["answer"] == NOTHING_SAID


def test_what_was_discussed_is_told_without_a_search(client: FlaskClient) -> None:
    conversation = ask(client, "How many geese does the keeper feed?")["conversation_id"]
    answer = ask(client, "Summarise what we discussed", conversation_id=conversation)
    assert "- Turn 1, User: How many geese does the keeper feed?" in answer["answer"]
    assert answer["support"] == "not_searched"


def test_what_needs_a_model_is_said_without_a_search(client: FlaskClient) -> None:
    answer = ask(client, "Summarise the lighthouse.")
    assert (answer["answer"], answer["support"]) == (NEEDS_MODEL, "not_searched")


def test_agent_mode_searches_without_a_word_about_tools(environment: dict[str, str]) -> None:
    made = create_app(environment | {"RETRIEVAL_MODE": "agent"})
    made.extensions["assistant"].start()
    try:
        answer = ask(made.test_client(), "What does the lamp burn?")
        assert (answer["support"], answer["notes"]) == ("cited", [])
    finally:
        made.extensions["assistant"].close()


def test_it_summarises_by_whole_sentences(client: FlaskClient) -> None:
    conversation = ask(client, "My cat is called Mimi. How many geese does the keeper feed?")["conversation_id"]
    for _ in range(3):
        ask(client, conversation_id=conversation)
    refused = client.post(
        "/api/query",
        json={"question": "Why?", "conversation_id": conversation, "max_history_turns": 1, "on_overflow": "ask"},
    )
    assert refused.status_code == 409
    assert "trim, compact, reset, continue" in refused.json["error"]["message"]
    said = client.post(f"/api/conversations/{conversation}/commands", json={"command": "/compact"})
    assert EXTRACTED in said.json["text"]
    summary = client.get(f"/api/conversations/{conversation}").json["view"]["summary"]
    assert summary["written_by"] == "extract"
    assert "Turn 1, User: My cat is called Mimi." in summary["text"]
    assert "feeds seventeen geese" in summary["text"]
    assert LEAD not in summary["text"]
    assert "chosen without a model" in client.get(f"/conversations/{conversation}", headers=PAGE).text
    assert client.post(f"/api/conversations/{conversation}/undo", json={}).json["view"]["summary"] is None


def test_the_page_has_no_controls_of_a_models_memory(client: FlaskClient) -> None:
    conversation = ask(client)["conversation_id"]
    page = client.get(f"/conversations/{conversation}", headers=PAGE).text
    assert 'value="/compact"' not in page
    assert '<option value="compact"' not in page
    assert '<option value="compact"' in client.get("/settings", headers=PAGE).text


def test_it_is_ready_with_the_process_and_the_page_says_that_no_model_is_connected(client: FlaskClient) -> None:
    assert client.get("/readyz").json["parts"]["model"] == "off"
    text = client.get("/", headers=PAGE).text
    assert "No model is connected: answers are quotes." in text
    client.set_cookie("dismissed", "quotes")
    assert "No model is connected" not in client.get("/", headers=PAGE).text


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A server that nobody has set up, with the guide in its library and the embedding model for real."""
    folder = tmp_path_factory.mktemp("guide")
    made = create_app({"DATA_DIR": str(folder), "SETTINGS_FILE": str(folder / "settings.json")})
    services: Services = made.extensions["assistant"]
    services.start()
    while any(document.state not in ("ready", "failed") for document in services.documents.page(50)):
        time.sleep(0.05)
    yield made.test_client()
    services.close()


@pytest.mark.long  # tests/browser/test_first_run.py asks one of them.
@pytest.mark.parametrize("in_one_conversation", [False, True])
def test_questions_about_the_guide_are_answered_from_the_right_page(
    guide: FlaskClient, in_one_conversation: bool
) -> None:
    wrong, conversation = [], None
    for question, facts, page in QUESTIONS:
        answer = ask(guide, question, conversation_id=conversation)
        conversation = answer["conversation_id"] if in_one_conversation else None
        cited = [source["document"] for source in answer["sources"] if source["cited"]]
        if not any(fact in answer["answer"] for fact in facts) or not any(name.startswith(page) for name in cited):
            wrong.append((question, answer["answer"]))
    assert wrong == []


def test_the_examples_of_the_start_page_are_among_these_questions() -> None:
    assert set(EXAMPLES) <= {question for question, _, _ in QUESTIONS}
    assert Path("docs/guide").is_dir()


def failing(environment: dict[str, str], stub: StubModel, when_model_fails: str) -> Flask:
    """Return an application whose model fails."""
    stub.default = Reply(status=500, body=b"{}")
    connected = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model", "WHEN_MODEL_FAILS": when_model_fails}
    made = create_app(environment | connected)
    made.extensions["assistant"].start()
    return made


def test_where_the_model_fails_a_button_quotes_the_documents(environment: dict[str, str], stub: StubModel) -> None:
    made = failing(environment, stub, "offer")
    client = made.test_client()
    try:
        assert client.post("/api/query", json={"question": "What does the lamp burn?"}).status_code == 502
        assert "Quote my documents" in client.get("/turns/1", headers=PAGE).text
        refused = client.post("/api/turns/1/retry", json={"quotes": "perhaps"})
        assert "true or false" in refused.json["error"]["message"]
        assert client.post("/turns/1/retry", data={"quotes": "true"}, headers=PAGE).status_code == 303
        answer = made.extensions["assistant"].assistant.wait(1)
        assert (answer.status, answer.model) == ("completed", "quotes")
        assert answer.answer.startswith(LEAD_INSTEAD)
        assert "The lamp burns oil." in answer.answer
    finally:
        made.extensions["assistant"].close()


def test_where_it_is_set_so_quotes_take_the_place_of_a_model_that_fails_and_say_so(
    environment: dict[str, str], stub: StubModel
) -> None:
    made = failing(environment, stub, "quote")
    try:
        answer = ask(made.test_client(), "What does the lamp burn?")
        assert (answer["model"], answer["support"]) == ("quotes", "cited")
        assert answer["answer"].startswith(LEAD_INSTEAD)
        assert answer["notes"][0].endswith("Your documents are quoted instead.")
        assert "try again" not in answer["notes"][0]
        receipt = made.test_client().get(f"/api/turns/{answer['turn_id']}/receipt").json
        assert receipt["quotes"]
        assert len(receipt["earlier_requests"]) == 1
        page = made.test_client().get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
        assert "No model wrote" in page
        assert "<title>Passages used - Assistant</title>" in page
        assert "What the model saw" not in page
    finally:
        made.extensions["assistant"].close()


def test_what_a_model_began_to_say_is_never_followed_by_quotes(environment: dict[str, str], stub: StubModel) -> None:
    made = failing(environment, stub, "quote")
    stub.default = Reply("one two three four", break_at=2)
    try:
        answer = made.test_client().post("/api/query", json={"question": "What does the lamp burn?"}).json
        assert (answer["status"], answer["model"], answer["notes"]) == ("interrupted", "stub-model", [])
    finally:
        made.extensions["assistant"].close()


def test_where_it_is_set_so_a_model_that_fails_just_fails(environment: dict[str, str], stub: StubModel) -> None:
    made = failing(environment, stub, "fail")
    try:
        assert made.test_client().post("/api/query", json={"question": "Why?"}).status_code == 502
        assert "Quote my documents" not in made.test_client().get("/turns/1", headers=PAGE).text
    finally:
        made.extensions["assistant"].close()
