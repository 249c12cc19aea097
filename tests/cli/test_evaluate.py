"""``eval``: rated questions are asked again, and what got worse fails."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from rag_assistant.answering.evaluation import Evaluation
from rag_assistant.web import create_app
from tests.cli.shell import Shell
from tests.testkit.stub_model import Reply, StubModel

FERRY = "The ferry leaves the harbour at nine. It takes forty cars and two hundred people to the island."
LAMP = "The lamp of the lighthouse burns rapeseed oil. It is trimmed every four hours by the keeper."


@pytest.fixture
def shell(shell: Shell, tmp_path: Path) -> Shell:
    """A shell over a library of two documents."""
    for name, text in (("ferry.txt", FERRY), ("lamp.txt", LAMP)):
        (tmp_path / name).write_text(text)
    assert shell("documents", "add", str(tmp_path / "ferry.txt"), str(tmp_path / "lamp.txt")).exit_code == 0
    return shell


@pytest.fixture
def client(shell: Shell) -> Iterator[FlaskClient]:
    """The API over the same data, to rate what the shell asks."""
    app = create_app(shell.environment)
    services = app.extensions["assistant"]
    services.prepare()
    services.load_embedder()
    services.start = lambda: None
    yield app.test_client()
    services.close()


def rated(client: FlaskClient, question: str, rating: str, **fields: Any) -> Any:
    conversation = fields.pop("conversation_id", None)
    turn: Any = client.post("/api/query", json={"question": question, "conversation_id": conversation}).json
    assert client.put(f"/api/turns/{turn['turn_id']}/rating", json={"rating": rating} | fields).status_code == 200
    return turn


def cells(output: str) -> dict[int, list[str]]:
    """Return what the table says behind each question, by turn: found, cited, doubts, answer, result."""
    lines = [line for line in output.splitlines() if line[:5].strip().isdigit()]
    return {int(line[:5]): re.split(r"\s{2,}", line[34:].strip()) for line in lines}


def results(client: FlaskClient) -> list[Any]:
    page: Any = client.get("/api/ratings").json
    return [one["result"] for one in page["ratings"]]


def everything(client: FlaskClient) -> list[Any]:
    """Return what the API tells of the first turn and its conversation."""
    paths = "/api/conversations", "/api/conversations/1", "/api/turns/1", "/api/turns/1/receipt"
    return [client.get(path).json for path in paths]


def test_nothing_is_worse_where_nothing_has_changed(shell: Shell, stub: StubModel, client: FlaskClient) -> None:
    stub.default = Reply("The ferry leaves at nine [1].")
    rated(client, "When does the ferry leave the harbour?", "up")
    before = everything(client)
    result = shell("eval")
    assert result.exit_code == 0, result.output
    assert cells(result.stdout) == {1: ["#1", "yes", "0", "100%", "same"]}
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "1/1  When does the ferry leave the harbour?" in result.stderr
    assert result.stdout.endswith("1 question: 1 same.\n")
    assert everything(client) == before
    assert shell("eval").stdout.endswith("Since the last run: 1 same.\n")


def test_a_document_that_is_gone_makes_it_worse(shell: Shell, stub: StubModel, client: FlaskClient) -> None:
    stub.default = Reply("The ferry leaves at nine [1].")
    rated(client, "When does the ferry leave the harbour?", "up")
    shell("documents", "delete", "1", "--yes")
    result = shell("eval")
    assert result.exit_code == 1
    assert cells(result.stdout)[1] == ["#1 → no", "yes → no", "0", "100%", "worse"]
    assert "Turn 1: The passages it needs are no longer found. It no longer cites them.\n" in result.stdout
    kept = results(client)[0]
    assert (kept["verdict"], kept["checks"]["found"]) == ("worse", "worse")


def test_a_setting_that_takes_the_passages_away_makes_it_worse(
    shell: Shell, stub: StubModel, client: FlaskClient
) -> None:
    stub.default = Reply("The ferry leaves at nine [1].")
    rated(client, "When does the ferry leave the harbour?", "up")
    assert shell.under(MAX_PASSAGES="0")("eval").exit_code == 1
    again = shell("eval")
    assert again.exit_code == 0
    assert again.stdout.endswith("Since the last run: 1 better.\n")
    assert shell.under(MAX_PASSAGES="0")("eval").stdout.endswith("Since the last run: 1 worse. Worse: turn 1.\n")


def test_a_right_answer_that_is_there_now_is_better_and_one_that_is_gone_is_worse(
    shell: Shell, stub: StubModel, client: FlaskClient
) -> None:
    stub.replies.extend([Reply("I do not know."), Reply("Rapeseed oil [1].")])
    rated(client, "When does the ferry leave the harbour?", "down", right_answer="at NINE!")
    rated(client, "What does the lamp of the lighthouse burn?", "up", right_answer="rapeseed oil")
    stub.replies.extend([Reply("It leaves at nine [1]."), Reply("Candles [1].")])
    result = shell("eval", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["counts"] == {"worse": 1, "better": 1}
    first, second = told["questions"]
    assert first["verdict"] == "better"
    assert first["result"]["checks"] == {"found": "same", "cited": "better", "claims": "same", "answer": "better"}
    assert second["result"]["checks"] | {"claims": ""} == {
        "found": "same", "cited": "same", "claims": "", "answer": "worse",
    }  # fmt: skip
    assert (second["answer"], second["result"]["answer"]) == ("Rapeseed oil [1].", "Candles [1].")


def test_a_question_is_asked_with_the_turns_before_it_and_no_others(
    shell: Shell, stub: StubModel, client: FlaskClient
) -> None:
    first: Any = client.post("/api/query", json={"question": "When does the ferry leave?"}).json
    talk = {"conversation_id": first["conversation_id"]}
    rated(client, "And how many cars?", "up", **talk)
    asked = stub.requests[-1].messages
    client.post("/api/query", json={"question": "And people?"} | talk)
    client.post(f"/api/conversations/{talk['conversation_id']}/clear", json={})
    assert shell("eval").exit_code == 0
    assert stub.requests[-1].messages == asked


def test_without_a_rating_there_is_nothing_to_ask(shell: Shell) -> None:
    result = shell("eval")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no answers are rated" in result.stderr
    assert shell("eval", "--limit", "0").exit_code == 2


def test_an_answer_that_fails_is_no_success(shell: Shell, stub: StubModel, client: FlaskClient) -> None:
    rated(client, "When does the ferry leave?", "up")
    stub.default = Reply(status=401)
    result = shell("eval")
    assert result.exit_code == 1
    assert "1 question: 1 failed." in result.stdout
    assert "API key" in result.stdout
    assert "try again" not in result.stdout
    assert results(client) == [None]


def test_what_was_asked_before_an_interruption_is_told(
    shell: Shell, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for question in ("When does the ferry leave?", "How many cars?", "How many people?"):
        rated(client, question, "up")
    ask_again = Evaluation.ask_again

    def ask_two(self: Evaluation, turn: Any) -> Any:
        if turn.id == 3:
            raise KeyboardInterrupt
        return ask_again(self, turn)

    monkeypatch.setattr(Evaluation, "ask_again", ask_two)
    result = shell("eval")
    assert result.exit_code == 130
    assert result.stdout.endswith("2 questions: 2 same.\n")
    assert shell("eval", "--conversation", "2", "--limit", "1").stdout.endswith("Since the last run: 1 same.\n")


def test_quotes_are_compared_where_no_model_is_connected(shell: Shell, tmp_path: Path, client: FlaskClient) -> None:
    shell = shell.under(OPENAI_BASE_URL="", OPENAI_MODEL="")
    app = create_app(shell.environment)
    rated(app.test_client(), "When does the ferry leave the harbour?", "up", right_answer="at nine")
    app.extensions["assistant"].close()
    assert cells(shell("eval").stdout)[1] == ["#1", "yes", "0", "100%", "same"]


def test_a_model_with_tools_is_asked_again_and_nothing_that_it_does_is_kept(
    shell: Shell, stub: StubModel, client: FlaskClient
) -> None:
    rated(client, "When does the ferry leave the harbour?", "down", right_answer="at nine")
    search = {"id": "a", "name": "search_documents", "arguments": {"query": "ferry harbour"}}
    delete = {"id": "b", "name": "delete_documents", "arguments": {"document_ids": [1]}}
    before = everything(client)
    agent = shell.under(RETRIEVAL_MODE="agent")
    stub.replies.extend([Reply(tool_calls=[search]), Reply("It leaves at nine [1].")])
    assert cells(agent("eval").stdout)[1] == ["#1", "no → yes", "0", "0% → 100%", "better"]
    stub.replies.append(Reply(tool_calls=[delete]))
    assert agent("eval").exit_code == 1
    assert everything(client) == before
    assert client.get("/api/documents/1").status_code == 200
