"""What an answer cited stays: its passages come along with a question that leans on it, and with a turn recalled."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import ask, no_model, until, upload

LAMP = "The lighthouse lamp burns oil from whales."
BOAT = "A boat costs ninety crowns at the harbour."
ABOUT_THE_LAMP = "What does the lighthouse lamp burn?"
LEANING = "What about a boat?"


pytestmark = [
    pytest.mark.library(("lamp.txt", LAMP), ("boat.txt", BOAT)),
    pytest.mark.settings(QUERY_REWRITING="words", MAX_PASSAGES="1"),
]


@pytest.fixture
def lamp(client: FlaskClient, stub: StubModel) -> dict[str, Any]:
    """The first answer of a conversation, which cites what the library says about the lamp."""
    stub.replies.append(Reply("Oil from whales [1]."))
    return ask(client, ABOUT_THE_LAMP)


def next_answer(client: FlaskClient, lamp: dict[str, Any], question: str = LEANING, **fields: Any) -> dict[str, Any]:
    return ask(client, question, conversation_id=lamp["conversation_id"], **fields)


def evidence_of(answer: dict[str, Any]) -> list[tuple[int, str, int]]:
    return [(one["n"], one["document"], one["cited_in"]) for one in answer["sources"] if one["cited_in"]]


def test_what_was_cited_comes_along_with_a_question_that_leans_on_it(
    client: FlaskClient, stub: StubModel, lamp: dict[str, Any]
) -> None:
    stub.replies.append(Reply("Ninety crowns [1], and oil [2]."))
    answer = next_answer(client, lamp)
    assert [one["document"] for one in answer["sources"]] == ["boat.txt", "lamp.txt"]
    assert evidence_of(answer) == [(2, "lamp.txt", 1)]
    assert f"[2] (lamp.txt, cited in turn 1)\n{LAMP}" in stub.requests[-1].messages[-1]["content"]
    assert answer["sources"][1]["cited"]
    assert answer["search"]["found"] == 1
    assert "cited in turn 1" in client.get(f"/turns/{answer['turn_id']}").text
    again = next_answer(client, lamp, "And how about that boat?")
    assert evidence_of(again) == [(2, "lamp.txt", 2)], "of the newest turn that cited it, once"


def test_a_question_that_stands_alone_brings_nothing_along(client: FlaskClient, lamp: dict[str, Any]) -> None:
    answer = next_answer(client, lamp, BOAT)
    assert [one["document"] for one in answer["sources"]] == ["boat.txt"]


def test_what_nobody_cited_does_not_come_along(client: FlaskClient, lamp: dict[str, Any]) -> None:
    next_answer(client, lamp, BOAT)
    assert [one[1] for one in evidence_of(next_answer(client, lamp, "And then?"))] in ([], ["lamp.txt"])


@pytest.mark.parametrize("change", sample(["deleted", "replaced", "out of scope"]))
def test_what_does_not_stand_in_the_library_any_more_does_not_come_along(
    client: FlaskClient, lamp: dict[str, Any], change: str
) -> None:
    document = lamp["sources"][0]["document_id"]
    scope: dict[str, list[int]] = {}
    if change == "deleted":
        client.delete(f"/api/documents/{document}")
    elif change == "replaced":
        newer = upload(client, "The lighthouse lamp burns gas.", wait=False, replaces=str(document))
        until(lambda: client.get(f"/api/documents/{newer['document_id']}").json["document_id"] == document)
    else:
        scope = {"document_ids": [document + 1]}
    assert evidence_of(next_answer(client, lamp, **scope)) == []


@pytest.mark.settings(PASSAGES_TOKEN_BUDGET="100")
def test_it_keeps_to_the_budget_of_the_passages(client: FlaskClient, lamp: dict[str, Any]) -> None:
    upload(client, "What about a boat? " * 20, "boats.txt")
    answer = next_answer(client, lamp)
    assert [one["document"] for one in answer["sources"]] == ["boats.txt"]


@pytest.mark.settings(MAX_HISTORY_TURNS="1")
def test_it_comes_back_with_a_turn_that_fell_out_of_view(
    client: FlaskClient, stub: StubModel, lamp: dict[str, Any]
) -> None:
    stub.replies += [Reply("Ninety crowns."), Reply("Yes.")]
    next_answer(client, lamp, BOAT)
    answer = next_answer(client, lamp, "Does a boat need a lighthouse lamp that burns oil from whales at the harbour?")
    assert answer["history"]["recalled_turns"] == [1]
    found = [one["document"] for one in answer["sources"] if not one["cited_in"]]
    assert found == ["lamp.txt"] or evidence_of(answer) == [(2, "lamp.txt", 1)]


@no_model
def test_without_a_model_it_is_quoted(client: FlaskClient, lamp: dict[str, Any]) -> None:
    answer = next_answer(client, lamp, "And what does that burn?")
    assert "lamp.txt" in {one["document"] for one in answer["sources"]}
    assert LAMP in answer["answer"]
