"""The steps of an answer on its page, whatever a model, or an archive, says was called."""

import json

import pytest
from flask.testing import FlaskClient

from tests.web.conftest import PAGE

MOMENT = "2026-01-01T00:00:00Z"


HALF_CHARACTERS = '{"a": "\\ud800 geese", "\\udc00": ["\\ud800"]}'


@pytest.mark.parametrize(
    "arguments", ["[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, "{", "7", '{"a": "b"}', HALF_CHARACTERS]
)
def test_a_conversation_is_shown_whatever_was_called(client: FlaskClient, arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": arguments}}
    said = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": "c"},
    ]
    answer = {"messages": [*said, {"role": "assistant", "content": "So."}]}
    one = {"id": 1, "title": "a", "created_at": MOMENT, "updated_at": MOMENT}
    one["turns"] = [{"question": "Why?", "created_at": MOMENT, "answer": answer}]
    lines = [{"format": "rag-assistant", "version": 1}, {"conversation": one}]
    imported = client.post(
        "/api/conversations/import", data="\n".join(map(json.dumps, lines)), content_type="application/json"
    )
    assert imported.status_code == 200, imported.text
    page = client.get(f"/conversations/{imported.json['imported'][0]['conversation_id']}", headers=PAGE)
    assert page.status_code == 200
    assert "So." in page.text
