"""Questions about a part of the library, and what an answer rests on, as the pages show them."""

import html
from typing import Any

import pytest
from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.answering import search
from rag_assistant.records import Source
from rag_assistant.retrieval.postprocess import number_sources
from rag_assistant.services import Services
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, post, until, upload
from tests.web.pages.document_rows import FACT, enter


def test_a_question_about_what_is_not_there_is_refused(client: FlaskClient, stub: StubModel) -> None:
    upload(client, FACT, "geese.txt", tags="birds")
    for field, value, status, words in (
        ("document_ids", "abc", 422, 'document_ids[0] is "abc"; document_ids must be a list of 1 to 1000'),
        ("document_ids", "0", 422, "document_ids[0] is 0"),
        ("document_ids", "9", 404, "There is no document 9;"),
        ("tags", "fish", 422, 'No document has the tag "fish". Available: birds.'),
        ("tags", "a,b", 422, 'No document has the tag "a".'),
    ):
        found, page = post(client, "/ask", question="How many geese?", **{field: value})
        assert (found, words in page) == (status, True), value
    assert stub.requests == []


def test_a_question_is_asked_about_a_part_and_the_page_goes_on_doing_so(client: FlaskClient, stub: StubModel) -> None:
    geese = upload(client, FACT, "geese.txt", tags="birds")["document_id"]
    upload(client, "Forty geese live in the harbour.", "harbour.txt")
    page = client.get("/?tag=birds").text
    assert '<input type="hidden" name="tags" value="birds">' in page
    assert "Filter: <bdi>documents tagged birds</bdi>" in page
    status, place = post(client, "/ask", question="How many geese?", tags="birds")
    assert (status, place) == (303, "/conversations/1#turn-1")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    assert [one["document_id"] for one in client.get("/api/turns/1").json["sources"]] == [geese]
    page = client.get(place).text
    assert "Filter: documents tagged birds." in page
    assert 'formaction="/conversations/1/scope" data-widen' in page
    assert "Filter: <bdi>documents tagged birds</bdi>" in page
    assert client.get("/api/conversations/1").json["scope"] == {
        "document_ids": [],
        "tags": ["birds"],
        "library_ids": [],
        "after": None,
        "before": None,
    }
    _, place = post(client, "/ask", question="And now?", conversation_id="1", document_ids=str(geese))
    assert place == "/conversations/1#turn-2"
    until(lambda: client.get("/api/turns/2").json["status"] == "completed")
    assert "Filter: geese.txt." in client.get(place).text
    assert client.get("/api/conversations/1").json["scope"]["tags"] == ["birds"]
    post(client, "/ask", question="And then?", conversation_id="1")
    until(lambda: client.get("/api/turns/3").json["status"] == "completed")
    assert client.get(place).text.count("Filter: documents tagged birds.") == 2
    assert post(client, "/conversations/1/scope", question="Half typed") == (303, "/conversations/1")
    assert client.get("/api/conversations/1").json["scope"] is None


def test_documents_of_some_dates_are_asked_about_from_the_first_question_on(client: FlaskClient) -> None:
    new = upload(client, f"Valid from: 2024-06-01\n\n{FACT}", "geese-2024.txt")["document_id"]
    upload(client, f"Valid from: 2021-06-01\n\n{FACT}", "geese-2021.txt")
    page = client.get("/?after=2024-01-01&before=").text
    assert '<input type="hidden" name="after" value="2024-01-01">' in page
    assert "Answers use only these documents." in page
    assert client.get("/?after=soon").status_code == 422
    _, place = post(client, "/ask", question="How many geese?", after="2024-01-01")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    assert {one["document_id"] for one in client.get("/api/turns/1").json["sources"]} == {new}
    assert 'name="after" value="2024-01-01"' in client.get(place).text
    post(client, "/conversations/1/scope", after="", before="2022-01-01")
    scope = client.get("/api/conversations/1").json["scope"]
    assert (scope["after"], scope["before"]) == (None, "2022-01-01")
    post(client, "/conversations/1/scope", after="", before="")
    assert client.get("/api/conversations/1").json["scope"] is None


def test_a_question_that_waits_for_a_decision_keeps_what_it_is_about(client: FlaskClient, services: Services) -> None:
    upload(client, FACT, "geese.txt", tags="birds")
    (services.data_dir.parent / "settings.json").write_text('{"on_overflow": "ask", "max_history_turns": 1}')
    services.settings.look()
    conversation = ask(client)["conversation_id"]
    ask(client, conversation_id=conversation, on_overflow="trim")
    status, page = post(client, "/ask", question="More?", conversation_id=str(conversation), tags="birds")
    assert status == 409
    decision = page[page.index('class="overflow"') : page.index('id="composer"')]
    assert '<input type="hidden" name="tags" value="birds">' in decision


def test_an_address_that_names_no_document_is_refused_and_one_that_is_gone_is_said(client: FlaskClient) -> None:
    assert client.get("/?documents=abc").status_code == 422
    assert "Filter: <bdi>document 9 (deleted)" in client.get("/?documents=9").text


def test_more_documents_than_can_be_named_are_counted(client: FlaskClient, services: Services) -> None:
    ids = [enter(services, f"{n}.txt") for n in range(5)]
    address = "&".join(f"documents={one}" for one in ids)
    assert "Filter: <bdi>0.txt, 1.txt, 2.txt and 2 more" in client.get(f"/?{address}").text
    assert "Filter: <bdi>0.txt, if tagged a or b" in client.get(f"/?documents={ids[0]}&tag=a&tag=b").text


def test_what_an_answer_rests_on_is_said(client: FlaskClient, stub: StubModel) -> None:
    assert "No matching passages" not in client.get(f"/turns/{ask(client)['turn_id']}").text
    upload(client, FACT)
    stub.default = Reply("Seventeen.")
    uncited = ask(client, "How many geese does the keeper feed?")
    assert "No sources cited. Passages provided:" in client.get(f"/turns/{uncited['turn_id']}").text
    stub.default = Reply("Seventeen [1].")
    cited = client.get(f"/turns/{ask(client, 'How many geese does the keeper feed?')['turn_id']}").text
    assert "No sources cited" not in cited


def test_a_source_says_its_page_and_its_section(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def placed(*arguments: Any) -> tuple[Source, ...]:
        found = number_sources(*arguments)
        return tuple(replace(source, page=3, section="Prices > <b>Europe</b>") for source in found)

    monkeypatch.setattr(search, "number_sources", placed)
    upload(client, FACT, "geese.txt")
    shown = client.get(f"/turns/{ask(client, 'How many geese?')['turn_id']}").text
    assert "<bdi>geese.txt</bdi><span>, page 3</span></span></a>" in shown
    assert 'data-section="Prices &gt; &lt;b&gt;Europe&lt;/b&gt;"' in shown


def test_how_a_follow_up_was_searched_is_said(client: FlaskClient) -> None:
    upload(client, FACT)
    conversation = ask(client, "How many geese does the lighthouse keeper feed?")["conversation_id"]
    turn = ask(client, "And when?", conversation_id=conversation)
    assert turn["search"]["by"] == "words"
    assert "Searched" not in client.get(f"/turns/{turn['turn_id']}").text
    receipt = html.unescape(client.get(f"/turns/{turn['turn_id']}/receipt").text)
    assert "your question plus words from the conversation" in receipt
    assert turn["search"]["follow_up_context"] in receipt


@pytest.mark.settings(QUERY_REWRITING="model")
def test_a_receipt_shows_what_the_model_made_of_a_follow_up(client: FlaskClient, stub: StubModel) -> None:
    upload(client, FACT)
    conversation = ask(client, "How many geese does the lighthouse keeper feed?")["conversation_id"]
    stub.replies.append(Reply("When does the lighthouse keeper feed the geese?"))
    turn = ask(client, "And when?", conversation_id=conversation)
    assert turn["search"]["by"] == "model"
    receipt = client.get(f"/turns/{turn['turn_id']}/receipt").text
    assert "The model rewrote the question" in receipt
    assert '<pre dir="auto" tabindex="0">When does the lighthouse keeper feed the geese?</pre>' in receipt
