"""Conversations over the API to test with: made, looked at and commanded, and what the model was sent of them."""

from typing import Any

from flask.testing import FlaskClient
from msgspec.structs import replace

from rag_assistant.records import Question, Turn
from rag_assistant.storage.conversations.turns import TurnStore
from tests.testkit.stub_model import StubModel

FILLER = "It was said at some length, so that a summary of it has a chance to be shorter than what it stands for. " * 2


def kept(client: FlaskClient, question: str, conversation_id: int | None = None) -> Turn:
    """Keep a turn as if it had been asked and answered."""
    turns: TurnStore = client.application.extensions["assistant"].turns
    turn, _ = turns.accept(Question(question, conversation_id), question[:40])
    return turns.finish(replace(turn, model="stub-model"), "completed", "An answer.")


def conversation_of(client: FlaskClient, turns: int) -> int:
    conversation: int | None = None
    for n in range(1, turns + 1):
        conversation = kept(client, f"Question {n}. {FILLER}", conversation).conversation_id
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
