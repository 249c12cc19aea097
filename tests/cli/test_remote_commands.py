"""``ask``, ``documents`` and ``history`` with ``--server``: the same commands on a server elsewhere."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from rag_assistant.__main__ import program
from rag_assistant.llm.calls import ModelCall
from rag_assistant.records import ModelReply, ModelRequest
from rag_assistant.services import Services
from tests.testkit.people import ACTOR, add_person, client_of, quick_passwords
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import app, environment, served, services, stand_ins, until

__all__ = ["app", "environment", "served", "services", "stand_ins"]  # Fixtures.
PROJECT = Path(__file__).resolve().parents[2]
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this test asks for, no services of this machine are made; progress is looked at often."""
    monkeypatch.setattr("rag_assistant.services.open_services", lambda *_: pytest.fail("services were made"))
    monkeypatch.setattr("rag_assistant.cli.documents.REMOTE_POLL_INTERVAL_SECONDS", 0.02)


@pytest.fixture
def elsewhere(services: Services, served: str) -> dict[str, str]:
    """Ann's server with her token, as variables."""
    with quick_passwords():
        ann = add_person(services, "Ann")
        add_person(services, "Ben")
    token = services.accounts.make_token(ann, "terminal", ["read", "ask", "documents"], 1, ACTOR)[0]
    return {"RAG_ASSISTANT_SERVER": served.removesuffix("/v1"), "RAG_ASSISTANT_TOKEN": token}


@pytest.fixture
def run(elsewhere: dict[str, str]) -> Run:
    def _run(*words: str, typed: str | None = None, **variables: str) -> Result:
        return CliRunner().invoke(program, words, input=typed, env=elsewhere | variables)

    return _run


def narrow(services: Services, *scopes: str) -> str:
    return services.accounts.make_token(services.accounts.people.get("Ann"), "narrow", scopes, 1, ACTOR)[0]


@pytest.mark.long
def test_a_command_is_run_there(run: Run, stub: StubModel) -> None:
    for words in (("One",), ("Two", "--conversation", "1")):
        assert run("ask", *words).exit_code == 0
    assert "2 turns.\n" in run("ask", "/history", "--conversation", "1").stdout
    assert 'Unknown command "/nonsense"' in run("ask", "/nonsense", "--conversation", "1").stderr
    assert len(stub.requests) == 2


def test_a_question_that_cannot_be_asked_says_why_with_its_exit_code(run: Run, services: Services) -> None:
    wrong = run("ask", "One", RAG_ASSISTANT_TOKEN="rag_wrong")
    assert (wrong.exit_code, "does not accept this token" in wrong.stderr) == (3, True)
    away = run("ask", "One", RAG_ASSISTANT_SERVER="http://127.0.0.1:1")
    assert (away.exit_code, "nothing is listening there" in away.stderr) == (5, True)
    gone = run("ask", "One", "--conversation", "9")
    assert (gone.exit_code, gone.stderr) == (1, "Error: There is no conversation 9.\n")
    refused = run("ask", "One", RAG_ASSISTANT_TOKEN=narrow(services, "read"))
    assert 'Only tokens with the scope "ask" can do this.' in refused.stderr


@pytest.mark.long
def test_ctrl_c_stops_the_answer_there(elsewhere: dict[str, str], services: Services, stub: StubModel) -> None:
    stub.default = Reply(pieces=["One", " two"] + [" word"] * 2000, seconds_between=0.1)  # Longer than any wait.
    # Tests that run in the background of a shell ignore the signal, which what they start inherits.
    command = ["/usr/bin/env", "--default-signal=INT", sys.executable, "-m", "rag_assistant", "ask", "Why?"]
    with subprocess.Popen(
        command, cwd=PROJECT, env=elsewhere | {"PATH": ""}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        try:
            assert running.stdout is not None
            assert running.stdout.read(3) == b"One"
            os.kill(running.pid, signal.SIGINT)
            until(lambda: services.turns.page(1, 1)[0].status == "stopped")
            _, stderr = running.communicate(timeout=120)
            assert (b"Aborted!" in stderr, running.returncode) == (True, 1), stderr
        finally:
            running.kill()


def test_documents_are_added_listed_tagged_and_deleted_there(run: Run, tmp_path: Path, app: Flask) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "geese.txt").write_text("Geese hiss.")
    (folder / "deep" / 'a "boat" of Zoë.md').write_text("# Boats\n\nBoats float.")
    (folder / ".hidden").write_text("not this one")
    (folder / "bad.bin").write_bytes(b"\0\1\2" * 100)
    added = run("documents", "add", str(folder), "--tag", "birds", "--tag", "boats")
    assert added.exit_code == 1, added.output
    assert "2 new, 1 rejected" in added.stdout
    assert 'bad.bin: "bad.bin" isn\'t a supported file type' in added.stderr
    known = run("documents", "add", str(folder / "geese.txt"))
    assert (known.exit_code, "known, document 2 (same content)" in known.stdout) == (0, True), known.output
    listed = run("documents", "list", "--tag", "birds").stdout
    assert [line.split()[1] for line in listed.splitlines()] == ["ready", "ready"]
    assert "geese.txt  [birds, boats]" in listed
    entries = [json.loads(line) for line in run("documents", "list", "--json").stdout.splitlines()]
    assert {(one["name"], *one["tags"]) for one in entries} >= {("geese.txt", "birds", "boats")}
    assert "Zoë.md" in listed
    assert "[wild geese]" in run("documents", "tag", "2", "wild geese").stdout
    assert "ready" in run("documents", "list").stdout
    assert "not compared: 2." in run("documents", "report").stdout
    assert json.loads(run("documents", "report", "--json").stdout)["counts"]["unread"] == 0
    assert run("documents", "retry", "2").exit_code == 0
    assert "ready" in run("documents", "cancel", "2").stdout, "there is nothing to cancel"
    asked = run("documents", "delete", "2", typed="n\n")
    assert "Delete geese.txt permanently? This can't be undone." in asked.stdout
    assert run("documents", "delete", "2", "--yes").stdout == "Document 2 deleted.\n"
    assert len(run("documents", "list").stdout.splitlines()) == 1
    with quick_passwords():
        assert '"documents":[]' in client_of(app, "Ben").get("/api/documents").text


@pytest.mark.long
def test_a_conversation_is_listed_shown_exported_and_erased_there(run: Run) -> None:
    run("ask", "When do geese hiss?")
    run("ask", "And swans?", "--conversation", "1")
    assert run("history", "list").stdout == "     1     2 turns  When do geese hiss?\n"
    shown = run("history", "show", "1").stdout
    assert "2 turns.\n" in shown
    assert "Turn 2 (id 2, completed)\n> And swans?\n\nAn answer.\n" in shown
    assert run("history", "export", "1").stdout.startswith("# When do geese hiss?")
    exported = json.loads(run("history", "export", "1", "--format", "json").stdout)
    assert len(exported["turns"]) == 2
    receipt = json.loads(run("history", "receipt", "2").stdout)
    assert receipt["messages"][-1]["content"] == "And swans?"
    assert "Erase the question “And swans?” and its answers permanently" in run("history", "erase", "2").stdout
    assert run("history", "erase", "2", "--yes").stdout == "Turn 2 of conversation 1 erased.\n"
    assert "Erased on 20" in run("history", "show", "1").stdout
    assert "Erase “When do geese hiss?” permanently?" in run("history", "purge", "1").stdout
    assert run("history", "purge", "1", "--yes").stdout == "Conversation 1 erased.\n"
    assert run("history", "list").stdout == ""


@pytest.mark.long
def test_lists_there_are_read_page_by_page(run: Run, app: Flask, services: Services) -> None:
    own = services.for_person(services.accounts.people.get("Ann").id, changes_documents=False)
    for number in range(101):
        own.conversations.create(f"Number {number}")
    assert len(run("history", "list").stdout.splitlines()) == 101


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "scope", "said"),
    [
        pytest.param(("documents", "add", __file__), "read", '"documents"', marks=pytest.mark.long),
        (("documents", "list"), "ask", '"read"'),
        pytest.param(("history", "purge", "1", "--yes"), "read", '"ask"', marks=pytest.mark.long),
    ],
)
def test_a_token_that_is_too_narrow_is_named(
    run: Run, services: Services, words: tuple[str, ...], scope: str, said: str
) -> None:
    ask_first = run("ask", "Why?")
    assert ask_first.exit_code == 0
    refused = run(*words, RAG_ASSISTANT_TOKEN=narrow(services, scope))
    assert (refused.exit_code, refused.stderr) == (3, f"Error: Only tokens with the scope {said} can do this.\n")


@pytest.mark.long
def test_a_test_of_the_endpoints_there_makes_that_server_forget_what_it_guessed(
    run: Run, services: Services, stub: StubModel
) -> None:
    endpoint = services.models.endpoint(ModelCall())
    request = ModelRequest(({"role": "user", "content": "The geese on the shore are asleep. " * 1_000},))
    for _ in range(2):
        services.models.calibration.read(endpoint, request, ModelReply(usage={"prompt_tokens": 2050}))
    assert services.models.known_endpoint().guess is not None
    told = run("model", "test", RAG_ASSISTANT_TOKEN=narrow(services, "admin"))
    assert "ok: 1 model listed, including stub-model." in told.stdout, told.output
    assert services.models.known_endpoint().guess is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("documents", "add", "--remove-missing", __file__), "--remove-missing works only on this machine's library"),
        (("documents", "--server", "http://127.0.0.1:1", "list"), "No such option"),
    ],
)
def test_what_only_works_here_is_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    result = run(*words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output


@pytest.mark.long
def test_the_receipts_of_a_conversation_are_printed(run: Run, stub: StubModel) -> None:
    run("ask", "Where is the key?")
    (one,) = map(json.loads, run("history", "receipts", "1").stdout.splitlines())
    assert one["receipt"]["request"]["messages"] == stub.requests[-1].messages
    run("history", "erase", "1", "--yes")
    assert run("history", "receipts", "1").stdout == ""


@pytest.mark.long
def test_a_columns_type_is_one_that_there_is(run: Run) -> None:
    refused = run("grids", "new", "Leases", "bogus: foo")
    assert refused.exit_code == 2
    for word in ('"bogus:"', '"text:"', '"number:"', '"date:"', '"yes_no:"'):
        assert word in refused.stderr
    added = run("grids", "new", "Leases", "Who signed?", "Number: What is the rent?", "text: Note: is it new?")
    assert added.exit_code == 0, added.output
    grid = json.loads(run("grids", "list", "--json").stdout)
    columns = [(one["type"], one["question"]) for one in grid["columns"]]
    assert columns == [("text", "Who signed?"), ("number", "What is the rent?"), ("text", "Note: is it new?")]
    assert "Tables" in run("grids", "--help").stdout
