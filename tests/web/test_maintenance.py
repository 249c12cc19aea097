"""Maintenance: what is there can be read, and nothing is added, through whatever door."""

import html
import io

import pytest
from flask import Flask
from flask.testing import FlaskClient

from rag_assistant.web import create_app
from tests.web.conftest import PAGE

BANNER = "The server is under maintenance: you can read, but not ask or change documents."
SENTENCE = f"{BANNER} Nothing was stored; try again later."
MESSAGES = [{"role": "user", "content": "Why?"}]


pytestmark = pytest.mark.settings(MAINTENANCE="true", ANNOUNCEMENT="Closed on Friday <from noon>.")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/query", {"question": "Why?"}),
        ("/api/query/stream", {"question": "Why?"}),
        ("/v1/chat/completions", {"model": "rag-assistant", "messages": MESSAGES}),
        ("/v1/messages", {"model": "rag-assistant", "max_tokens": 9, "messages": MESSAGES}),
        ("/api/documents/web-page", {"url": "http://127.0.0.1/"}),
    ],
)
def test_a_program_is_told_to_come_back(client: FlaskClient, path: str, body: dict[str, object]) -> None:
    response = client.post(path, json=body)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "300")
    assert SENTENCE in response.text


def test_an_upload_is_refused_and_nothing_is_stored(client: FlaskClient) -> None:
    for path in ("/api/documents", "/documents"):
        file = (io.BytesIO(b"Geese."), "geese.txt")
        response = client.post(path, data={"file": file}, content_type="multipart/form-data", headers=PAGE)
        assert (response.status_code, response.headers["Retry-After"]) == (503, "300")
        assert SENTENCE in response.text
    assert client.get("/api/documents").json["documents"] == []


def test_a_question_on_the_page_is_refused_with_the_sentence(client: FlaskClient) -> None:
    response = client.post("/ask", data={"question": "Why?"}, headers=PAGE)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "300")
    assert SENTENCE in response.text
    assert client.get("/api/conversations").json["conversations"] == []


def test_the_tool_of_another_program_says_it(client: FlaskClient) -> None:
    call = {"name": "ask", "arguments": {"question": "Why?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = client.post("/mcp", json=message, headers={"Accept": "application/json, text/event-stream"})
    assert SENTENCE in answer.text


def test_pages_are_read_and_say_it_to_everybody(client: FlaskClient) -> None:
    for path in ("/", "/documents", "/settings"):
        page = html.unescape(client.get(path, headers=PAGE).text)
        assert BANNER in page
    assert "Closed on Friday &lt;from noon&gt;." in client.get("/", headers=PAGE).text
    assert client.get("/api/search?q=geese").status_code == 200


def test_it_can_be_switched_without_a_restart(app: Flask, environment: dict[str, str]) -> None:
    app.extensions["assistant"].close()
    made = create_app(
        {name: value for name, value in environment.items() if name not in ("MAINTENANCE", "ANNOUNCEMENT")}
    )
    settings = made.extensions["assistant"].settings
    settings.path.write_text('{"maintenance": true}')
    settings.look()
    assert made.test_client().post("/api/query", json={"question": "Why?"}).status_code == 503
    settings.path.write_text('{"maintenance": false}')
    settings.look()
    assert made.test_client().post("/api/query", json={"question": "Why?"}).status_code == 200
    made.extensions["assistant"].close()
