"""Conversations found by their words: what is shown of them, and the turn that a hit leads to."""

import re

import pytest
from flask.testing import FlaskClient

from rag_assistant.services import Services
from rag_assistant.web.pages import conversation as conversation_pages
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, upload
from tests.web.pages.conversation_rows import fill, rows


def test_a_search_shows_the_words_and_leads_to_the_turn(client: FlaskClient, stub: StubModel) -> None:
    conversation = ask(client, "How many birds?")["conversation_id"]
    stub.default = Reply("Seventeen <b>geese</b> & a swan.")
    ask(client, "And on the pond?", conversation_id=conversation)
    page = client.get("/?q=goose geese").text
    assert f'href="/conversations/{conversation}?q=goose+geese&amp;at=2#turn-2"' in page
    assert "Seventeen &lt;b&gt;<mark>geese</mark>&lt;/b&gt; &amp; a swan." in page
    assert "1 result for" in page


def test_a_search_of_documents_is_no_search_of_conversations(client: FlaskClient) -> None:
    conversation = ask(client, "How many birds?")["conversation_id"]
    page = client.get("/documents?q=zebra").text
    assert rows(page) == [conversation]
    assert page.count('value="zebra"') == 1, "the search box of the documents alone"


def test_a_search_finds_text_in_documents_at_its_place(client: FlaskClient) -> None:
    number = upload(client, "# Geese\n\nThe keeper feeds seventeen geese.", "keeper.md")["document_id"]
    upload(client, "Boats pass.", "boats.md")
    page = client.get("/conversations?part=1&q=seventeen").text
    (place,) = re.findall(r'data-drawer href="([^"]*)"', page)
    assert place.startswith(f"/documents/{number}?start=")
    assert "feeds <mark>seventeen</mark> geese" in page
    assert "1 result for" in page


def test_a_word_that_is_not_typed_to_its_end_is_found(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("Seventeen.")
    ask(client, "How many?")
    assert "<mark>Seventeen</mark>" in client.get("/conversations?part=1&q=sevent").text
    assert rows(client.get('/conversations?part=1&q=sev"*').text) == [1]
    assert rows(client.get("/conversations?part=1&q=***").text) == []


def test_a_title_is_found_whatever_its_capitals(client: FlaskClient, services: Services) -> None:
    fill(services, 3)
    client.patch("/api/conversations/2", json={"title": "Über 100% Ökostrom_"})
    for words in ("über", "ÖKOSTROM", "öko 100"):
        assert rows(client.get("/conversations", query_string={"part": 1, "q": words}).text) == [2], words
    client.delete("/api/conversations/2")
    assert rows(client.get("/conversations?part=1&q=über").text) == []


def test_a_conversation_opens_around_a_turn(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_pages, "TURNS_SHOWN", 4)
    conversation = ask(client, "Question 1")["conversation_id"]
    for n in range(2, 8):
        ask(client, f"Question {n}", conversation_id=conversation)
    shown = re.compile(r'id="turn-(\d+)"')
    path = f"/conversations/{conversation}"
    around = client.get(f"{path}?at=2").text
    assert [int(n) for n in shown.findall(around)] == [1, 2, 3]
    later = re.search(r'href="([^"]+)">Later turns', around)
    assert later is not None
    assert later[1].endswith("#turn-4")
    rest = client.get(later[1]).text
    assert [int(n) for n in shown.findall(rest)] == [4, 5, 6, 7]
    assert "Earlier turns" in rest
    assert "Later turns" not in rest
    assert client.get(f"{path}?at=0").status_code == 422
    assert [int(n) for n in shown.findall(client.get(f"{path}?at=99999").text)] == [4, 5, 6, 7]
