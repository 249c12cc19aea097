"""In which language a request is answered; codes, names and what a model is sent are the same in all of them."""

import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.web import create_app
from rag_assistant.web.i18n.languages import LANGUAGES
from rag_assistant.web.languages import in_words_of
from tests.testkit.stub_model import StubModel
from tests.web.conftest import PAGE, ask

OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}


def html_of(client: FlaskClient, accepted: str) -> str:
    return client.get("/", headers=PAGE | {"Accept-Language": accepted}).text


@pytest.mark.parametrize(
    ("accepted", "tag", "direction", "heading"),
    [
        ("", "en", "ltr", "Add your documents"),
        ("pt-BR,pt;q=0.9", "en", "ltr", "Add your documents"),
        ("de-AT,de;q=0.9,en;q=0.5", "de", "ltr", "Fügen Sie Ihre Dokumente hinzu"),
        ("pt,fr;q=0.5", "fr", "ltr", "Ajoutez vos documents"),
        ("es-MX", "es", "ltr", "Añada sus documentos"),
        ("zh-CN", "zh-Hans", "ltr", "添加您的文档"),
        ("ar-EG,ar;q=0.8", "ar-u-nu-latn", "rtl", "أضف مستنداتك"),
    ],
)
def test_the_page_speaks_the_first_language_of_the_browser_that_it_knows(
    empty: FlaskClient, accepted: str, tag: str, direction: str, heading: str
) -> None:
    page = html_of(empty, accepted)
    assert re.search(rf'<html lang="{tag}" dir="{direction}"', page)
    assert f"<h1>{heading}</h1>" in page


def test_a_language_that_is_set_is_spoken_to_everybody(environment: dict[str, str]) -> None:
    app = create_app(environment | {"PAGE_LANGUAGE": "es"})
    assert '<html lang="es"' in html_of(app.test_client(), "de")
    app.extensions["assistant"].close()


def test_the_language_that_a_reader_chose_comes_before_all_others(empty: FlaskClient) -> None:
    chosen = empty.post("/language", data={"language": "fr"}, headers=PAGE | {"Referer": "http://localhost/settings"})
    assert (chosen.status_code, chosen.headers["Location"]) == (303, "/settings")
    assert '<html lang="fr"' in html_of(empty, "de")
    empty.post("/language", data={"language": "auto"}, headers=PAGE)
    assert '<html lang="de"' in html_of(empty, "de")
    refused = empty.post("/language", data={"language": "tlh"}, headers=PAGE | {"Accept-Language": "en"})
    assert "must be one of auto, en, de" in refused.text


@pytest.mark.long
def test_the_scripts_of_a_page_speak_its_language(empty: FlaskClient) -> None:
    names = {}
    for code in LANGUAGES:
        address = re.search(r'src="(/static/[^"]+)"', html_of(empty, code))
        assert address is not None
        names[code] = Path(address[1]).name
        text = empty.get(address[1]).text
        assert ("Wird angehalten." in text) == (code == "de")
    assert names["en"] == "all.js"
    assert len(set(names.values())) == len(LANGUAGES)


def test_more_languages_than_anybody_reads_are_not_looked_through(empty: FlaskClient) -> None:
    assert '<html lang="de"' in html_of(empty, "de," * 100)
    assert '<html lang="en"' in html_of(empty, "de," * 10_000)


def test_an_error_page_is_in_the_language_of_the_browser(client: FlaskClient) -> None:
    page = client.get("/conversations/77", headers=PAGE | {"Accept-Language": "de"}).text
    assert "Es gibt keine Unterhaltung 77." in page
    assert "<h1>Nicht gefunden</h1>" in page


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (OUR_PAGE, "Es gibt keine Unterhaltung 77."),
        ({"Referer": "http://localhost/", "Accept-Language": "de"}, "Es gibt keine Unterhaltung 77."),
        ({"Accept-Language": "de"}, "There is no conversation 77."),
        (OUR_PAGE | {"Sec-Fetch-Site": "cross-site"}, "There is no conversation 77."),
        ({}, "There is no conversation 77."),
    ],
)
def test_the_api_speaks_english_unless_our_page_asks(empty: FlaskClient, headers: dict[str, str], message: str) -> None:
    assert empty.get("/api/conversations/77", headers=headers).json == {
        "error": {"type": "ConversationNotFound", "message": message}
    }


def test_openais_protocol_speaks_english_to_everybody(client: FlaskClient) -> None:
    answer: Any = client.post("/v1/chat/completions", json={"model": "x", "messages": []}, headers=OUR_PAGE).json
    assert answer["error"]["message"].isascii()


@pytest.mark.long
def test_our_page_gets_sentences_in_its_language_and_codes_as_they_are(client: FlaskClient) -> None:
    conversation = ask(client, "One?")["conversation_id"]
    for question in ("Two?", "Three?"):
        ask(client, question, conversation_id=conversation)
    address = f"/api/conversations/{conversation}/preview?max_history_turns=1"
    english, german = client.get(address).json, client.get(address, headers=OUR_PAGE).json
    assert english["sentence"] == "1 of 3 earlier turns (2 over the turn limit)"
    assert german["sentence"] == "1 von 3 früheren Fragen (2 über der eingestellten Anzahl)"
    assert isinstance(german, dict)
    assert {**german, "sentence": english["sentence"]} == english
    told: Any = client.post(
        f"/api/conversations/{conversation}/commands", json={"command": "/clear"}, headers=OUR_PAGE
    ).json
    assert told["text"].startswith("Das Modell sieht nichts mehr vom bisher Gesagten.")


def test_the_page_says_in_its_language_what_was_left_out(client: FlaskClient) -> None:
    conversation = ask(client, "One?")["conversation_id"]
    for question in ("Two?", "Three?"):
        ask(client, question, conversation_id=conversation, max_history_turns=1)
    page = client.get(f"/conversations/{conversation}", headers=PAGE | {"Accept-Language": "de"}).text
    assert "Das Modell hat 1 von 2 früheren Fragen (1 über der eingestellten Anzahl) gesehen." in page
    assert "<code>[History trimmed to last 1 turns]</code>" in page


def test_what_is_said_in_an_event_is_translated_and_its_codes_are_not() -> None:
    event = {"state": "preparing", "message": "Waiting for the model.", "turn_id": 1}
    assert in_words_of(LANGUAGES["de"], event) == event | {"message": "Warten auf das Modell."}


def test_a_stream_speaks_the_language_of_the_page_and_carries_the_same_codes(client: FlaskClient) -> None:
    question = {"question": "One?"}
    spoken = client.post("/api/query/stream?html=1", json=question, headers=OUR_PAGE).text
    plain = client.post("/api/query/stream?html=1", json=question).text
    for stream in (spoken, plain):
        assert {"start", "token", "end"} <= set(re.findall(r"^event: (\w+)$", stream, re.M))
    english = {"Searching your documents.", "Waiting for the model."}  # Those of them that there is time for.
    assert set(re.findall(r'"message":"([^"]+)"', plain)) <= english
    assert set(re.findall(r'"message":"([^"]+)"', spoken)) & english == set()


def test_a_model_is_sent_the_same_bytes_whatever_the_page_speaks(client: FlaskClient, stub: StubModel) -> None:
    sent = []
    for headers in ({}, OUR_PAGE):
        first: Any = client.post("/api/query", json={"question": "One?"}, headers=headers).json
        again = {"question": "Two?", "conversation_id": first["conversation_id"], "max_history_turns": 0}
        client.post("/api/query", json=again, headers=headers)
        client.post(f"/api/conversations/{first['conversation_id']}/compact", json={}, headers=headers)
        sent.append([request.messages for request in stub.requests])
        stub.requests.clear()
    assert sent[0] == sent[1]
    assert sent[0]
