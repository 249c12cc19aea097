"""A question that needs all of something: what it rests on is in the answer, in the receipt, on the page, and told."""

import json
import re
import threading

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.coverage import TOO_LARGE
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import PAGE, ask, no_model, until, upload

ASSETS = "asset,place,price\n" + "".join(f"A{n},{'Oslo' if n % 2 else 'Bergen'},{n}\n" for n in range(1, 41))
MINUTES = "# Minutes\n\n" + "\n\n".join(
    f"## Topic {n}\n\n{'The roof was discussed at length. ' * 16}" for n in range(3)
)
LONG = "# Chronicle\n\n" + "\n\n".join(f"## Year {n}\n\n{'The herring came to the harbour. ' * 16}" for n in range(9))


@pytest.fixture(autouse=True)
def short_documents_are_very_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assistant.answering.coverage.MAX_WHOLE_CHARS", 2_500)


pytestmark = pytest.mark.library(("assets.csv", ASSETS), ("minutes.md", MINUTES), ("chronicle.md", LONG))


def said_to(stub: StubModel) -> str:
    return str(stub.requests[-1].messages[-1]["content"])


@no_model
def test_without_a_model_it_is_computed_or_said_to_rest_on_a_part(client: FlaskClient) -> None:
    computed = ask(client, "How many assets are in Oslo?")
    assert computed["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}
    assert "20 of 40 rows, where “place” is “Oslo”." in computed["answer"]
    partial = ask(client, "List everything in the chronicle about the herring")
    coverage = partial["search"]["coverage"]
    assert 0 < coverage["read"] < coverage["of"] == 9
    assert f"This rests on {coverage['read']} of 9 passages of these documents." in partial["answer"]
    assert "coverage" not in ask(client, "When did the herring come?")["search"]


@no_model
@pytest.mark.parametrize(
    ("question", "captions"),
    sample(
        [
            ("How many orders are from Bell and Sons?", ["15 von 30 Zeilen mit: “company” ist “Bell and Sons”."]),
            ("What is the total price of all orders?", ["Summe von price: 46.515,0.", "30 Zeilen."]),
            (
                "What is the total price per company?",
                ["Summe von price je company: This is 24.007,5; Bell and Sons 22.507,5.", "30 Zeilen."],
            ),
        ]
    ),
)
def test_what_is_said_of_a_table_is_in_the_language_of_the_page_and_stored_in_english(
    client: FlaskClient, question: str, captions: list[str]
) -> None:
    rows = "".join(f"{n},{'Bell and Sons' if n % 2 else 'This is'},{n * 100}.5\n" for n in range(1, 31))
    upload(client, f"order,company,price\n{rows}", "orders.csv")
    answer = ask(client, question)
    own = [line for line in answer["answer"].split("\n") if line and not line.startswith(">")]
    assert own[-1] == "The first 12 are shown."
    page = client.get(f"/turns/{answer['turn_id']}", headers=PAGE | {"Accept-Language": "de"}).text
    assert "\n".join([*captions, "Die ersten 12 werden gezeigt."]) in page
    assert "rows" not in page[: page.index("<table")]


def test_a_table_answers_though_the_words_say_that_nothing_is_found(client: FlaskClient) -> None:
    answer = ask(client, "Which is the cheapest of the assets altogether?")
    assert answer["search"]["support"] == "found"
    assert answer["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}
    assert ask(client, "Which is the cheapest of the submarines altogether?")["search"]["support"] == "nothing_found"


def test_a_model_is_told_what_was_computed(client: FlaskClient, stub: StubModel) -> None:
    stub.replies += [Reply("{}"), Reply("820 [1].")]
    answer = ask(client, "What is the total price of all assets?")
    assert "Computed from all 40 rows of the table or list in passage [1]: Sum of price: 820.\n40 rows." in said_to(
        stub
    )
    assert "Computed from all 40 rows." in client.get(f"/turns/{answer['turn_id']}").text


def test_a_word_that_a_models_query_leaves_out_is_named_in_a_note(client: FlaskClient, stub: StubModel) -> None:
    query = {"table": 1, "operation": "count", "where": [{"column": "place", "comparison": "=", "value": "oslo"}]}
    for question, is_named in (("How many of the insured assets are in Oslo?", True), ("How many are in Oslo?", False)):
        stub.replies += [Reply(json.dumps(query)), Reply("20 [1].")]
        assert any("insured" in note for note in ask(client, question)["notes"]) is is_named


def test_a_model_reads_all_of_a_short_document(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("The roof [1]."))
    answer = ask(client, "Summarise the minutes about the roof", document_ids=[2])
    assert answer["search"]["coverage"] == {"read": 3, "of": 3, "unit": "sections"}
    assert len(answer["sources"]) == answer["search"]["found"] == 3
    assert "The passages are 3 of the 3 sections of their documents.\n" in said_to(stub)


def test_a_model_queries_a_table_for_what_the_rules_do_not_understand(client: FlaskClient, stub: StubModel) -> None:
    query = {"table": 1, "operation": "largest", "column": "price"}
    query["where"] = [{"column": "place", "comparison": "=", "value": "oslo"}]
    stub.replies += [Reply(f"```json\n{json.dumps(query)}\n```"), Reply("A39 [1].")]
    answer = ask(client, "Which of the assets in Oslo is the dearest to insure?")
    asked, final = (str(request.messages[-1]["content"]) for request in stub.requests)
    assert "Table 1: assets.csv, 40 rows\nasset | place | price\nA1 | Oslo | 1\n" in asked
    assert "Values of place: Bergen; Oslo\n" in asked
    assert "Computed from all 40 rows of the table or list in passage [1]: Largest price: 39.\n20 of 40 rows" in final
    assert answer["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}
    assert answer["search"]["support"] == "found"
    receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
    assert [one["answer"] for one in receipt["reading"]] == [f"```json\n{json.dumps(query)}\n```"]
    assert receipt["reading"][0]["request"]["messages"] == stub.requests[0].messages


@pytest.mark.parametrize(
    "reply", sample(["No idea", '{"table": 0}', '{"table": 9}', '{"table": 1, "operation": "guess"}'])
)
def test_without_a_usable_query_the_rules_decide(client: FlaskClient, stub: StubModel, reply: str) -> None:
    stub.replies += [Reply(reply), Reply("Unknown [1].")]
    answer = ask(client, "What is the total price of all assets?")
    assert len(stub.requests) == 2
    assert answer["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}
    assert "Sum of price: 820.\n40 rows." in said_to(stub)


@pytest.mark.parametrize(("reply", "fifth"), sample([("No idea", 1), ('{"table": 9}', 1), ('{"table": 0}', 2)]))
def test_only_a_model_that_cannot_query_tables_is_no_longer_asked_to(
    client: FlaskClient, stub: StubModel, reply: str, fifth: int
) -> None:
    sent = []
    for _ in range(5):
        before = len(stub.requests)
        stub.replies += [Reply(reply), Reply("Unknown [1].")]
        ask(client, "What is the total price of all assets?")
        stub.replies.clear()
        sent.append(len(stub.requests) - before)
    assert sent == [2, 2, 2, 2, fifth]


def test_a_query_with_too_many_conditions_is_told_in_a_note(client: FlaskClient, stub: StubModel) -> None:
    conditions = [{"column": "place", "comparison": "=", "value": "oslo"}] * 9
    stub.replies += [Reply(json.dumps({"table": 1, "where": conditions})), Reply("Unknown [1].")]
    answer = ask(client, "What is the total price of all assets?")
    assert answer["notes"] == [TOO_LARGE.format(n=8, n1=2)]
    assert answer["search"]["coverage"] == {"read": 40, "of": 40, "unit": "rows"}


def test_a_question_about_a_table_reads_no_other_documents(client: FlaskClient, stub: StubModel) -> None:
    stub.replies += [Reply('{"table": 0}'), Reply("Nobody [1].")]
    answer = ask(client, "Which of the assets in Oslo is the dearest to insure?")
    assert "coverage" not in answer["search"]
    assert len(stub.requests) == 2


def test_a_long_document_is_read_in_parts(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.answering.coverage.MAX_PART_TOKENS", 350)
    notes = ["[1] Year 0: herring.\n[2] Year 1: herring,\nin May.", "NONE", "I can't", "[8] Year 7.\n[99] Never."]
    stub.replies += [*map(Reply, [*notes, "NONE"]), Reply("Herring in 0 [1], 1 [2] and 7 [3].")]
    answer = ask(client, "Summarise the chronicle of the herring", document_ids=[3])
    assert len(stub.requests) == 6
    assert "[3] (chronicle.md" in stub.requests[1].messages[-1]["content"]
    final = said_to(stub)
    assert "[2] (chronicle.md" in final
    assert "Year 1: herring,\nin May." in final
    assert "The herring came to the harbour." not in final
    assert "You read 7 of the 9 sections of the documents in parts." in final
    assert answer["search"] | {"query": ""} == {
        "query": "",
        "by": "question",
        "follow_up_context": None,
        "support": answer["search"]["support"],
        "found": 3,
        "coverage": {"read": 7, "of": 9, "unit": "sections"},
    }
    assert all("The herring came to the harbour." in source["text"] for source in answer["sources"])
    assert "1 of 5 requests to read the documents got no usable answer." in answer["notes"]
    receipt = client.get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
    assert "Request 5 of 5 before the answer" in receipt


def test_stop_ends_reading_at_once(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply(hang_before_headers=True))
    body = {"question": "Summarise the chronicle of the herring", "document_ids": [3]}
    waiting = threading.Thread(target=lambda: client.application.test_client().post("/api/query", json=body))
    waiting.start()
    until(lambda: stub.requests)
    client.post("/api/turns/1/stop")
    waiting.join(5)
    assert client.get("/api/turns/1").json["status"] == "stopped"
    assert len(stub.requests) == 1


def test_a_model_that_fails_is_not_asked_for_every_part(
    client: FlaskClient, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assistant.answering.coverage.MAX_PART_TOKENS", 350)
    stub.replies += [Reply("[1] Year 0: herring."), Reply(status=400), Reply("Herring [1].")]
    answer = ask(client, "Summarise the chronicle of the herring", document_ids=[3])
    assert len(stub.requests) == 3
    assert answer["search"]["coverage"]["read"] == 2
    assert "4 of 5 requests to read the documents got no usable answer." in answer["notes"]


@pytest.mark.settings(READING_TOKEN_BUDGET="400")
def test_reading_that_costs_too_much_is_not_begun(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Herring [1]."))
    answer = ask(client, "Summarise the chronicle of the herring", document_ids=[3])
    assert len(stub.requests) == 1
    assert any(
        re.fullmatch(r"This answer rests on part .* about 1,\d\d\d tokens; reading_token_budget allows 400\.", note)
        for note in answer["notes"]
    )


@pytest.mark.settings(READING_TOKEN_BUDGET="0")
def test_of_a_long_document_a_model_is_told_how_much_it_reads(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply("Herring [1]."))
    answer = ask(client, "Summarise the chronicle of the herring", document_ids=[3])
    read = answer["search"]["coverage"]["read"]
    assert answer["search"]["coverage"] == {"read": read, "of": 9, "unit": "sections"}
    assert f"The passages are {read} of the 9 sections of their documents. Say so" in said_to(stub)
    assert f"Based on {read} of 9 passages of these documents." in client.get(f"/turns/{answer['turn_id']}").text
    receipt = client.get(f"/turns/{answer['turn_id']}/receipt", headers=PAGE).text
    assert f"{read} of 9 passages" in receipt
