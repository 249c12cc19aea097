"""The export: every answer, where a branch comes from, what was asked about, the pages of sources."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from markdown_it import MarkdownIt

from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.conversations import conversation_of
from tests.web.conftest import ask, until, upload


def exported(client: FlaskClient, conversation: int) -> tuple[str, Any]:
    path = f"/api/conversations/{conversation}/export"
    return client.get(path).text, client.get(path, query_string={"format": "json"}).json


def test_every_answer_is_exported_and_which_was_chosen(client: FlaskClient, stub: StubModel) -> None:
    stub.default = Reply("The first.\n\nIn two parts.")
    turn = ask(client)
    stub.default = Reply("The second.")
    client.post(f"/api/turns/{turn['turn_id']}/regenerate")
    until(lambda: client.get("/api/turns/1").json["status"] == "completed")
    markdown, data = exported(client, 1)
    assert "The second.\n" in markdown
    assert "> Answer 1 of 2, not selected:\n>\n> The first.\n>\n> In two parts.\n" in markdown
    assert [(one["version"], one["answer"]) for one in data["turns"][0]["other_answers"]] == [
        (1, "The first.\n\nIn two parts.")
    ]


def test_a_question_is_its_words_and_no_headings_or_html_in_markdown(client: FlaskClient) -> None:
    question = "Why?\n\n# 9. Faked\n\n9. Faked\n===\n<img src=x>\n```\n## 10. Faked\n````"
    asked = ask(client, question)
    ask(client, "And <b>then</b>?", conversation_id=asked["conversation_id"])
    client.patch("/api/conversations/1", json={"title": "<i>Geese</i>"})
    tokens = MarkdownIt().parse(exported(client, 1)[0])
    pieces = [one for token in tokens for one in (token, *(token.children or ()))]
    assert sum(one.type == "heading_open" for one in pieces) == 3, "of the conversation, and of its two turns"
    assert [one.content for one in pieces if one.type in ("html_block", "html_inline")] == []
    assert [one.content for one in pieces if one.type == "fence"] == [f"{question}\n"]


@pytest.mark.long
def test_a_branch_says_where_it_comes_from(client: FlaskClient) -> None:
    turn = ask(client, "One")
    ask(client, "Two", edits_turn=turn["turn_id"])
    markdown, data = exported(client, 2)
    assert "*Branched from conversation 1, before turn 1.*" in markdown
    assert data["branched_from"] == {"conversation_id": 1, "turn": 1}
    assert exported(client, 1)[1]["branched_from"] is None


def test_what_a_question_was_about_is_exported(client: FlaskClient) -> None:
    document = upload(client, "The lighthouse keeper feeds seventeen geese.")
    ask(client, "How many geese?", document_ids=[document["document_id"]])
    markdown, data = exported(client, 1)
    assert f"*Limited to document {document['document_id']}.*" in markdown
    assert data["turns"][0]["scope"] == {
        "document_ids": [document["document_id"]],
        "tags": [],
        "library_ids": [],
        "after": None,
        "before": None,
    }


@pytest.mark.long
def test_the_page_of_a_source_is_exported(client: FlaskClient, stub: StubModel) -> None:
    pages = "<html><body><p>Lighthouse geese: seventeen.</p></body></html>"
    upload(client, pages, "keeper.html")
    stub.default = Reply("Seventeen [1].")
    ask(client, "How many lighthouse geese?")
    markdown, data = exported(client, 1)
    source = data["turns"][0]["sources"][0]
    page = f", page {source['page']}" if source["page"] else ""
    assert f"\n[1] keeper.html{page}\n" in markdown


@pytest.mark.long
def test_what_a_conversation_is_about_is_exported(client: FlaskClient) -> None:
    document = upload(client, "The lighthouse keeper feeds seventeen geese.")
    ask(client, "How many geese?")
    assert exported(client, 1)[1]["scope"] is None
    client.patch("/api/conversations/1", json={"document_ids": [document["document_id"]]})
    markdown, data = exported(client, 1)
    assert f"*Limited to document {document['document_id']}.*" in markdown
    assert data["scope"] == {
        "document_ids": [document["document_id"]],
        "tags": [],
        "library_ids": [],
        "after": None,
        "before": None,
    }


def test_a_conversation_is_exported_whole(client: FlaskClient, stub: StubModel) -> None:
    conversation = conversation_of(client, 6)
    ask(client, "Question 7.", conversation_id=conversation)
    markdown = client.get(f"/api/conversations/{conversation}/export")
    assert markdown.headers["Content-Disposition"] == f'attachment; filename="conversation-{conversation}.md"'
    assert [f"## {n}. Question {n}." in markdown.text for n in range(1, 8)] == [True] * 7
    assert "*The model saw 5 of 6 earlier turns (1 over the turn limit).*" in markdown.text
    exported = client.get(f"/api/conversations/{conversation}/export?format=json").json
    assert [turn["turn"] for turn in exported["turns"]] == list(range(1, 8))
    assert client.get(f"/api/conversations/{conversation}/export?format=pdf").status_code == 422
