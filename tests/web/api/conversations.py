"""Conversations over the API to test with: made, looked at and commanded, and what the model was sent of them."""

from typing import Any

from flask.testing import FlaskClient

from testkit.stub_model import StubModel
from tests.web.conftest import ask

FILLER = "It was said at some length, so that a summary of it has a chance to be shorter than what it stands for. " * 2


def conversation_of(client: FlaskClient, turns: int) -> int:
    conversation: int | None = None
    for n in range(1, turns + 1):
        fields = {"conversation_id": conversation} if conversation else {}
        conversation = ask(client, f"Question {n}. {FILLER}", **fields)["conversation_id"]
    assert conversation is not None
    return conversation


def contents(stub: StubModel) -> list[str]:
    return [message["content"] for message in stub.requests[-1].messages]


def said(stub: StubModel) -> list[str]:
    return [text.split(".")[0] for text in contents(stub) if text.startswith("Question")]


def view(client: FlaskClient, conversation: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/conversations/{conversation}").json["view"]
    return found


def turn_ids(client: FlaskClient, conversation: int) -> list[int]:
    return [turn["turn_id"] for turn in client.get(f"/api/conversations/{conversation}/turns").json["turns"]]


def run(client: FlaskClient, conversation: int, command: str) -> Any:
    return client.post(f"/api/conversations/{conversation}/commands", json={"command": command})
