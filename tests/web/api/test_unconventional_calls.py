"""Calls that are written as text, and models that call nothing: nothing of an answer is lost or shown by mistake."""

import json

import pytest
from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.tool_calls import call, search
from tests.web.conftest import ask, upload

pytestmark = pytest.mark.settings(RETRIEVAL_MODE="agent")


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "search_documents", "arguments": {"query": "office Fridays"}}',
        pytest.param(
            '```json\n{"name": "search_documents", "parameters": {"query": "office Fridays"}}\n```',
            marks=pytest.mark.long,
        ),
        '<tool_call>\n{"name": "search_documents", "arguments": {"query": "office Fridays"}}\n</tool_call>',
        '[{"type": "function", "function": {"name": "search_documents", "arguments": {"query": "office Fridays"}}}]',
    ],
)
def test_a_call_that_the_model_writes_as_its_text_is_taken_as_one_and_never_shown(
    client: FlaskClient, stub: StubModel, written: str
) -> None:
    upload(client, "The office closes at nineteen o'clock on Fridays.")
    stub.replies.extend([Reply(written), Reply("At seven [1].")])
    answer = ask(client, "When does it close?")
    assert answer["answer"] == "At seven [1]."
    assert [(step["tool"], json.loads(step["arguments"])) for step in answer["steps"]] == [
        ("search_documents", {"query": "office Fridays"})
    ]
    assert stub.requests[-1].messages[2]["tool_calls"][0]["function"]["name"] == "search_documents"


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "no_such_tool", "arguments": {}}',
        pytest.param('{"name": "search_documents", "arguments": {"words": 3}}', marks=pytest.mark.long),
        '{"name": "Ada", "born": 1815}',
        pytest.param("```python\nprint(1)\n```", marks=pytest.mark.long),
        '{"name": "search_documents", "arguments": {"query": "half',
    ],
)
def test_any_other_text_that_looks_like_one_is_the_answer(client: FlaskClient, stub: StubModel, written: str) -> None:
    stub.replies.append(Reply(written))
    answer = ask(client, "Show me some JSON.")
    assert (answer["answer"], answer["steps"]) == (written, [])


@pytest.mark.library(("note.txt", "The bicycle costs nine crowns on Sundays."))
class TestAModelThatCallsNothing:
    """As a small one does: it answers by itself, in words that it was never given."""

    NOTE = "The model called no tool, so your documents were searched for it instead."
    QUESTION = "What does the bicycle cost on Sundays?"

    def test_gets_the_documents_searched_for_it(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.extend([Reply("The bicycle costs $10 on Sundays."), Reply("Nine crowns [1].")])
        answer = ask(client, self.QUESTION)
        assert (answer["answer"], answer["notes"]) == ("Nine crowns [1].", [self.NOTE])
        assert answer["support"] == "cited"
        assert "nine crowns" in stub.requests[1].messages[-1]["content"]
        assert "tools" not in stub.requests[1].body
        receipt = client.get(f"/api/turns/{answer['turn_id']}/receipt").json
        assert receipt["request"]["messages"] == stub.requests[1].messages

    def test_is_offered_none_after_the_second_time(self, client: FlaskClient, stub: StubModel) -> None:
        for _ in range(3):
            answer = ask(client, self.QUESTION)
        assert ["tools" in request.body for request in stub.requests] == [True, False, True, False, False]
        assert "does not use tools" in answer["notes"][0]

    def test_is_taken_at_its_word_where_nothing_is_found(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("Seven times six is 42."))
        assert ask(client, "Zwölfeinhalb Prozent?")["notes"] == []
        assert len(stub.requests) == 1

    @pytest.mark.long
    def test_is_taken_at_its_word_once_it_has_called_one(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.extend([search("bicycle"), Reply("Nine crowns [1]."), Reply("As I said, nine crowns.")])
        ask(client, self.QUESTION)
        answer = ask(client, self.QUESTION)
        assert (answer["answer"], answer["notes"]) == ("As I said, nine crowns.", [])

    @pytest.mark.long
    def test_loses_nothing_of_what_it_says_before_its_first_call(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("Let me look.", tool_calls=[call("search_documents", query="bicycle")]))
        stub.replies.append(Reply("Nine crowns [1]."))
        assert ask(client, self.QUESTION)["answer"] == "Let me look.\n\nNine crowns [1]."

    def test_loses_nothing_of_an_answer_that_breaks_off(self, client: FlaskClient, stub: StubModel) -> None:
        stub.replies.append(Reply("The bicycle costs ten dollars.", break_at=3))
        answer = client.post("/api/query", json={"question": self.QUESTION}).json
        assert answer["status"] == "interrupted"
        assert answer["answer"].startswith("The bicycle")


def test_what_was_held_back_of_an_answer_that_breaks_off_is_kept(client: FlaskClient, stub: StubModel) -> None:
    stub.replies.append(Reply('{"name": "Ada", "born": 1815, "died": 1852}', break_at=3))
    answer = client.post("/api/query", json={"question": "Who?"}).json
    assert answer["status"] == "interrupted"
    assert answer["answer"].startswith('{"name":')


@pytest.mark.long
def test_a_deletion_that_is_written_as_text_asks_all_the_same(client: FlaskClient, stub: StubModel) -> None:
    document = upload(client, "Seventeen geese.")["document_id"]
    written = {"name": "delete_documents", "arguments": {"document_ids": [document]}}
    stub.replies.append(Reply(json.dumps(written)))
    answer = ask(client, "Delete it.")
    assert answer["waiting"]
    assert client.get(f"/api/documents/{document}").status_code == 200


def test_an_endpoint_without_tools_searches_for_the_model_and_says_so(client: FlaskClient, stub: StubModel) -> None:
    upload(client, "The office closes at nineteen o'clock.")
    refusal = b'{"error": {"message": "registry/model does not support tools"}}'
    stub.replies.extend([Reply(status=400, body=refusal), Reply("At seven [1].")])
    answer = ask(client, "When does the office close?")
    assert answer["answer"] == "At seven [1]."
    assert answer["notes"] == ["This model does not use tools, so your documents were searched for it instead."]
    assert "nineteen o'clock" in stub.requests[-1].messages[-1]["content"]
    assert "tools" not in stub.requests[-1].body
    again = ask(client, "And on Mondays?")
    assert len(stub.requests) == 3
    assert again["notes"] == answer["notes"]
    client.post("/api/model/test")
    begun = len(stub.requests)
    ask(client, "When does the office close?")
    assert "tools" in stub.requests[begun].body, "another model may be there now"
