"""A small model is asked for less, and the documents are quoted before its answer."""

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.sending import UNCITED
from rag_assistant.conversations.summary_lines import LEAD_WANTED, MODEL_LEAD
from rag_assistant.llm.endpoint import Endpoint
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, events_of, upload

NOTE = (
    "# The lighthouse\n\n"
    + "The keeper of the lighthouse feeds seventeen geese every morning, and none of them is late. " * 9
)
GEESE = "How many geese does the keeper of the lighthouse feed?"


pytestmark = pytest.mark.settings(OPENAI_MODEL="tiny-1.5b-instruct", RETRIEVAL_MODE="agent")


@pytest.fixture
def library(client: FlaskClient) -> None:
    for number in range(5):
        upload(client, f"{NOTE}\n\nThe boat number {number} is green.", f"lighthouse-{number}.md")


@pytest.mark.parametrize(
    ("name", "is_small"),
    [
        *((name, True) for name in ("SmolLM2-135M-Instruct.Q4_1", "llama3.2:3b", "qwen2.5-1.5b", "gemma-3-4b-it")),
        *((name, True) for name in ("/models/Llama-3.2-1B-Instruct-Q4_K_M.gguf", "Qwen/Qwen3-0.6B")),
        *((name, False) for name in ("llama3.1:8b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt-4o-mini", "phi-3-mini-128k")),
        *((name, False) for name in ("bge-m3", "gpt-oss:20b", "v2.1b2", "")),
    ],
)
def test_its_name_says_that_a_model_is_small(name: str, is_small: bool) -> None:
    assert Endpoint("http://model/v1", None, name).is_small == is_small


def test_what_its_file_says_counts_more_than_its_name() -> None:
    assert not Endpoint("http://model/v1", None, "tiny-1b", billions=7.0).is_small
    assert Endpoint("http://model/v1", None, "big-70b", billions=0.135).is_small
    assert not Endpoint("http://model/v1", None, None).is_small


@pytest.mark.usefixtures("library")
def test_quotes_come_first_and_one_short_request_asks_for_the_answer(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("It feeds forty-two geese, says Hilda.")
    answer = ask(client, GEESE)
    quotes, _, text = answer["answer"].partition(MODEL_LEAD)
    assert quotes.startswith(f"{LEAD_WANTED}\n\n> The keeper of the lighthouse feeds seventeen geese")
    assert text == "It feeds forty-two geese, says Hilda."
    assert (answer["model"], answer["status"], len(answer["sources"])) == ("tiny-1.5b-instruct", "completed", 3)
    assert [request.body["max_tokens"] for request in stub.requests] == [512]
    assert "tools" not in stub.requests[0].body
    passages = stub.requests[0].messages[-1]["content"]
    assert passages.count("The keeper of the lighthouse") <= 3 * 5
    assert "…" in passages


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_quotes_are_shown_before_the_model_has_read_its_request(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(progress=[{"total": 90, "processed": 9}])
    events = events_of(client.post("/api/query/stream", json={"question": GEESE}).data)
    names = [data.get("state", name) for name, _, data in events if name != "end"]
    assert names.index("start") < names.index("token") < names.index("reading_request")


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_the_receipt_and_the_settings_page_say_what_is_different(client: FlaskClient) -> None:
    turn = ask(client, GEESE)["turn_id"]
    told = client.get(f"/api/turns/{turn}/receipt").json["small_model"]
    assert told.startswith("Requests suit a small model: 3 passages of up to 400 characters")
    assert told in client.get(f"/turns/{turn}/receipt", headers=PAGE).text
    assert told in client.get("/settings", headers=PAGE).text


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_quotes_of_earlier_answers_are_not_sent_again(client: FlaskClient, stub: StubModel) -> None:
    first = ask(client, GEESE)
    ask(client, "And the boat?", conversation_id=first["conversation_id"])
    past = [one["content"] for one in stub.requests[-1].messages if one["role"] == "assistant"]
    assert past == ["An answer."]


@pytest.mark.usefixtures("library")
def test_a_model_that_fails_leaves_the_quotes(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply(status=400)
    answer = client.post("/api/query", json={"question": GEESE}).json
    assert (answer["status"], answer["error"]["type"]) == ("interrupted", "ModelRefused")
    assert answer["answer"].startswith(LEAD_WANTED)
    assert MODEL_LEAD.strip() not in answer["answer"]


@pytest.mark.settings(WHEN_MODEL_FAILS="quote")
class TestQuotedInstead:
    @pytest.mark.long
    @pytest.mark.usefixtures("library")
    def test_if_quotes_take_its_place_those_before_its_answer_do(self, client: FlaskClient, stub: StubModel) -> None:
        stub.default = Reply(status=400)
        answer = ask(client, GEESE)
        assert (answer["status"], answer["model"]) == ("completed", "quotes")
        assert answer["answer"].startswith(LEAD_WANTED)
        assert answer["answer"].count("> The keeper") == 1
        assert "Your documents are quoted instead." in answer["notes"][-1]


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_only_the_models_own_sentences_are_doubted(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("The keeper of the lighthouse feeds ninety-nine (99) geese every morning [1].")
    source = ask(client, GEESE)["sources"][0]
    assert [doubt["problem"] for doubt in source["doubts"]] == ["number"]
    assert [doubt["nth"] for doubt in source["doubts"]] == [2]


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_only_the_models_own_sentences_are_offered_a_citation(client: FlaskClient, stub: StubModel) -> None:
    question, said = (
        "Which bird is fed on the shore, and how often?",
        "A heron is fed on the northern shore every evening by a boy.",
    )
    upload(client, f"# Birds\n\nWhich bird is fed? That is told here. {said} He has a bucket.", "heron.md")
    stub.default = Reply("I cannot say.")
    assert [source["offered"] for source in ask(client, question)["sources"] if source["offered"]] == []
    stub.default = Reply(said)
    assert [source["offered"] for source in ask(client, question)["sources"] if source["offered"]] == [[said]]


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_an_answer_that_cites_nothing_is_to_be_compared_with_the_quotes(client: FlaskClient, stub: StubModel) -> None:
    assert UNCITED in ask(client, GEESE)["notes"]
    stub.default = Reply("It feeds seventeen geese [1].")
    assert UNCITED not in ask(client, GEESE)["notes"]


@pytest.mark.usefixtures("library")
def test_a_task_is_not_answered_with_quotes_and_reads_whole_sections(client: FlaskClient, stub: StubModel) -> None:
    answer = ask(client, "Summarise what the lighthouse keeper does.")
    assert answer["answer"] == "An answer."
    assert answer["search"]["coverage"]["read"] == answer["search"]["coverage"]["of"]
    assert "…" not in stub.requests[0].messages[-1]["content"]


@pytest.mark.settings(SMALL_MODEL="off", RETRIEVAL_MODE="always")
class TestSwitchedOff:
    @pytest.mark.usefixtures("library")
    def test_it_is_asked_as_any_other_model(self, client: FlaskClient, stub: StubModel) -> None:
        answer = ask(client, GEESE)
        assert answer["answer"] == "An answer."
        assert len(answer["sources"]) > 3
        assert "max_tokens" not in stub.requests[0].body
        assert client.get(f"/api/turns/{answer['turn_id']}/receipt").json["small_model"] is None


@pytest.mark.settings(SMALL_MODEL="on", OPENAI_MODEL="gpt-9", MAX_PASSAGES="2", MAX_ANSWER_TOKENS="99")
class TestSwitchedOn:
    @pytest.mark.long
    @pytest.mark.usefixtures("library")
    def test_a_model_of_any_name_is_asked_so_with_the_numbers_that_are_set(
        self, client: FlaskClient, stub: StubModel
    ) -> None:
        answer = ask(client, GEESE)
        assert answer["answer"].endswith(f"{MODEL_LEAD}An answer.")
        assert len(answer["sources"]) == 2
        assert stub.requests[0].body["max_tokens"] == 99


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_the_page_says_in_its_language_what_is_quoted_and_what_the_model_wrote(client: FlaskClient) -> None:
    conversation = ask(client, GEESE)["conversation_id"]
    page = client.get(f"/conversations/{conversation}", headers=PAGE | {"Accept-Language": "de"}).text
    assert "Das steht in Ihren Dokumenten:" in page
    assert "Die Antwort des Modells:" in page


def test_what_a_person_or_another_model_writes_is_sent_whole(client: FlaskClient, stub: StubModel) -> None:
    written = f"My secret is 4711.{MODEL_LEAD}Keep it."
    stub.default = Reply(f"I noted 4711.{MODEL_LEAD}Kept.")
    conversation_id = ask(client, written)["conversation_id"]
    ask(client, "And now?", conversation_id=conversation_id)
    sent = [message["content"] for message in stub.requests[-1].messages]
    assert written in sent, "a question of a person"
    assert f"I noted 4711.{MODEL_LEAD}Kept." in sent, "an answer without quotes"
