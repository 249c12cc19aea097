"""The command line, with the services of the application and a stub model."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import delete

from rag_assistant.llm.local_servers import LocalServers
from rag_assistant.records import Question
from rag_assistant.runtime.public_http import Fetched, PublicHttp
from rag_assistant.services import open_services
from rag_assistant.storage.migrate import SCHEMA_REVISION
from rag_assistant.storage.tables import embeddings
from tests.cli.shell import Shell, queue
from tests.extraction.archives import archive
from tests.testkit.samples import sample
from tests.testkit.stub_model import Reply, StubModel
from tests.web.api.test_pictures import data_url


def test_ask_prints_the_answer_and_goes_on_in_a_conversation(shell: Shell, stub: StubModel) -> None:
    stub.replies.extend([Reply("Seventeen geese."), Reply("They hiss.")])
    first = shell("ask", "How many?")
    assert first.exit_code == 0
    assert first.stdout == "Seventeen geese.\n"
    assert "Continue with: --conversation 1" in first.stderr
    assert shell("ask", "And then?", "--conversation", "1").stdout == "They hiss.\n"
    assert [message["content"] for message in stub.requests[-1].messages[1:]] == [
        "How many?", "Seventeen geese.", "And then?",
    ]  # fmt: skip


@pytest.mark.long
def test_ask_names_what_documents_state_differently(shell: Shell, stub: StubModel, tmp_path: Path) -> None:
    for days, year in ((30, 2023), (60, 2024)):
        name = tmp_path / f"refunds-{year}.md"
        name.write_text(f"Valid from: {year}-01-04\n\nCustomers may return goods within {days} days of purchase.")
        shell("documents", "add", str(name))
    stub.replies.append(Reply("Within 30 days [1]."))
    told = shell("ask", "Within how many days may customers return goods?").stderr
    assert re.search(r"disagree: .*30 days \[\d\].*\. When this was answered, the newer document said 60 days\.", told)
    for year in (2023, 2024):
        assert re.search(rf"\[\d\] refunds-{year}\.md, {year}-01-04", told)


@pytest.mark.long
def test_ask_searches_documents_of_a_time_alone(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "geese.txt").write_text("Geese hiss.")
    shell("documents", "add", str(tmp_path / "geese.txt"))
    for days, found in ((("--after", "2100"), 0), (("--after", "2001-05", "--before", "2100"), 1)):
        asked = shell("ask", "Do geese hiss?", *days, "--json")
        assert json.loads(asked.stdout)["search"]["found"] == found
    assert "after" in shell("ask", "How many?", "--after", "yesterday").stderr


def test_ask_tells_what_the_model_did_not_see(shell: Shell, stub: StubModel) -> None:
    shell("ask", "One")
    shell("ask", "Two", "--conversation", "1")
    result = shell("ask", "Three", "--conversation", "1", "--max-history-turns", "1")
    assert "The model saw 1 of 2 earlier turns (1 over the turn limit)." in result.stderr
    assert [message["role"] for message in stub.requests[-1].messages] == [
        "system", "system", "user", "assistant", "user",
    ]  # fmt: skip
    assert "The model saw" not in shell("ask", "Four", "--conversation", "1", "--max-history-turns", "all").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", " "), "The question is empty"),
        (("ask", "caf\udce9"), "an invalid character"),
        (("ask", "Why?", "--conversation", "99"), "99"),
        (("ask", "Why?", "--max-history-turns", "-1"), '"-1"; it must be a whole number, 0 or more, or "all"'),
        (("ask", "Why?", "--max-history-turns", "ten"), '"ten"; it must be a whole number'),
        (("documents", "delete", "7"), "There is no document 7;"),
        (("documents", "delete", "seven"), "'seven' is not a valid number."),
        (("documents", "tag", "7"), "Name the new tags, or use --clear"),
        (("history", "erase", "7"), "There is no turn 7."),
        (("history", "purge", "7"), "There is no conversation 7."),
        (("documents", "add", "no-such-file"), "no-such-file"),
    ],
)
def test_what_is_wrong_is_one_sentence(shell: Shell, words: tuple[str, ...], said: str) -> None:
    result = shell(*words)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_model_that_is_away_is_named_and_the_question_is_kept(shell: Shell, stub: StubModel) -> None:
    shell = shell.under(OPENAI_BASE_URL="http://127.0.0.1:9/v1", CONNECT_TIMEOUT_SECONDS="0.3")
    result = shell("ask", "Why?")
    assert result.exit_code == 1
    assert "Your question was saved" in result.stderr


def test_documents_are_added_listed_and_deleted(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "geese.txt").write_text("Geese hiss.")
    (folder / "deep" / "boats.md").write_text("# Boats\n\nBoats float.")
    (folder / ".hidden").write_text("not this one")
    added = shell("documents", "add", str(folder))
    assert added.exit_code == 0, added.output
    assert shell("documents", "add", str(folder / "geese.txt")).stdout.count("1 unchanged") == 1

    entries = [json.loads(line) for line in shell("documents", "list", "--json").stdout.splitlines()]
    assert [(one["document_id"], one["name"], one["state"]) for one in entries] == [
        (2, "geese.txt", "ready"),
        (1, "boats.md", "ready"),
    ]
    listed = shell("documents", "list").stdout
    assert [line.split()[1] for line in listed.splitlines()] == ["ready", "ready"]
    assert "geese.txt" in listed
    assert "boats.md" in listed
    assert "Delete boats.md permanently? This can't be undone. [y/N]" in shell("documents", "delete", "1").stdout
    assert len(shell("documents", "list").stdout.splitlines()) == 2, "nobody said yes"
    assert shell("documents", "delete", "1", "--yes").stdout == "Document 1 deleted.\n"
    assert len(shell("documents", "list").stdout.splitlines()) == 1


@pytest.mark.long
def test_what_goes_into_a_pipe_holds_no_progress(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "geese.txt"
    path.write_text("Geese hiss.")
    assert shell("documents", "add", str(path)).stdout == f"{path}: new, document 1\n1 new\n"
    assert shell("documents", "retry", "1").stdout == ""
    reindexed = shell("reindex").stdout
    assert reindexed.startswith("1 of 1 chunks are embedded")
    assert reindexed.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize("command", [("reindex",), ("doctor", "--fix"), ("reindex", "--read-again")])
def test_what_is_beside_a_server_is_done_by_it_and_ends(shell: Shell, tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "geese.txt"
    path.write_text("Geese hiss.")
    with closing(open_services(shell.environment)) as server:
        server.start()
        shell("documents", "add", str(path))
        with server.database.write() as connection:
            connection.execute(delete(embeddings))
        done = shell(*command)
        assert (done.exit_code, "The running server processes them." in done.stdout) == (0, True), done.output
        assert server.embeddings.progress(server.embedders.configured().key) == (1, 1)
        assert server.documents.get(1).state == "ready"


def test_a_file_that_cannot_be_read_does_not_keep_the_others_out(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bad.bin").write_bytes(b"\0\1\2" * 100)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "good.txt").write_text("Geese hiss.")
    result = shell("documents", "add", *(str(tmp_path / name) for name in ("bad.bin", "broken.pdf", "good.txt")))
    assert result.exit_code == 1
    assert "isn't a supported file type" in result.stderr
    assert "This PDF is damaged" in result.stderr
    states = {line.split()[-1]: line.split()[1] for line in shell("documents", "list").stdout.splitlines()}
    assert states["good.txt"] == "ready"


@pytest.mark.long
def test_the_files_in_an_archive_are_added_and_refused_ones_named(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "birds.zip"
    path.write_bytes(archive({"sea/gulls.txt": "Gulls nest on cliffs.", "film.mkv": b"\x1aE\xdf\xa3\0\0"}))
    added = shell("documents", "add", str(path), "--tag", "2024")
    assert added.exit_code == 1
    assert f"{path}: new, document 1\n1 new, 1 rejected" in added.stdout
    assert f'{path}: film.mkv: "film.mkv" is audio or video' in added.stderr
    assert "gulls.txt  [2024, birds, sea]" in shell("documents", "list").stdout
    assert "1 known, 1 rejected" in shell("documents", "add", str(path)).stdout


@pytest.mark.long
def test_the_database_is_brought_to_the_present_schema(shell: Shell, tmp_path: Path) -> None:
    shell = shell.under(DATA_DIR=str(tmp_path / "empty"))
    assert re.search("^Schema +none yet, upgraded at the next start$", shell("status").stdout, re.MULTILINE)
    assert shell("history", "list").exit_code == 0
    assert re.search(f"^Schema +{SCHEMA_REVISION}$", shell("status").stdout, re.MULTILINE)


@pytest.mark.long
def test_a_command_is_run_in_the_conversation_that_is_named(shell: Shell, stub: StubModel) -> None:
    stub.replies.extend([Reply("First answer."), Reply("Second answer.")])
    assert "/compact: Send a summary" in shell("ask", "/help").stdout
    assert "A command needs the conversation" in shell("ask", "/history").stderr
    assert not stub.requests
    shell("ask", "One")
    shell("ask", "Two", "--conversation", "1")
    assert [message["content"] for message in stub.requests[-1].messages[1:]] == ["One", "First answer.", "Two"]
    assert "2 turns.\n" in shell("ask", "/history", "--conversation", "1").stdout
    assert "Every turn is still saved" in shell("ask", "/clear-history", "--conversation", "1").stdout
    assert 'Unknown command "/nonsense"' in shell("ask", "/nonsense", "--conversation", "1").stderr
    assert len(stub.requests) == 2


def test_what_to_do_before_turns_are_left_out_is_asked_for(shell: Shell, stub: StubModel) -> None:
    shell = shell.under(ON_OVERFLOW="ask", MAX_HISTORY_TURNS="1")
    for question in ("One", "Two"):
        shell("ask", question, *(() if question == "One" else ("--conversation", "1")))
    asked = shell("ask", "Three", "--conversation", "1")
    assert (asked.exit_code, "This question would leave out 1 earlier turn" in asked.stderr) == (1, True)
    assert "started over" in shell("ask", "Four", "--conversation", "1", "--on-overflow", "reset").stderr
    assert [request.messages[-1]["content"] for request in stub.requests] == ["One", "Two", "Four"]


@pytest.mark.long
def test_steps_are_shown_and_what_is_confirmed_is_carried_out(shell: Shell, stub: StubModel, tmp_path: Path) -> None:
    shell = shell.under(RETRIEVAL_MODE="agent")
    (tmp_path / "draft.txt").write_text("A draft.")
    shell("documents", "add", str(tmp_path / "draft.txt"))
    stub.replies.append(Reply(tool_calls=[{"id": "d", "name": "delete_documents", "arguments": {"document_ids": [1]}}]))
    asked = shell("ask", "Delete the draft.")
    assert "1. delete_documents" in asked.stderr
    assert "Found 1 document: `draft.txt`. Delete it?" in asked.stdout
    assert "1 document deleted: `draft.txt`." in shell("ask", "yes", "--conversation", "1").stdout
    assert "draft.txt" not in shell("documents", "list").stdout


def test_a_receipt_is_printed(shell: Shell, stub: StubModel) -> None:
    shell("ask", "Why?")
    receipt = json.loads(shell("history", "receipt", "1").stdout)
    assert receipt["messages"] == stub.requests[-1].messages
    assert json.loads(shell("history", "receipt", "1", "--json").stdout) == receipt
    assert shell("history", "receipt", "7").stderr == "Error: There is no turn 7.\n"


def test_a_receipt_names_the_kind_and_size_of_a_picture(shell: Shell, stub: StubModel) -> None:
    shell = shell.under(MODEL_IMAGES="true")
    url = data_url(b"\x89PNG\r\n\x1a\n" + bytes(30_000))
    with closing(open_services(shell.environment)) as services:
        services.prepare()
        turn = services.assistant.ask(Question('What is "data:a,b"?', images=(url,)))
        services.assistant.wait(turn.id)
    printed = shell("history", "receipt", "1").stdout
    assert ('"data:image/png;base64 (30 kB)"' in printed, url in printed) == (True, False)
    assert "data:a,b" in printed
    assert url in shell("history", "receipt", "1", "--json").stdout


@pytest.mark.long
def test_a_turn_is_erased_after_a_yes_and_its_place_is_shown(shell: Shell) -> None:
    shell("ask", "What is the password?")
    shell("ask", "--conversation", "1", "And why?")
    asked = shell("history", "erase", "1")
    assert "“What is the password?”" in asked.stdout
    assert asked.exit_code == 1, "nobody said yes"
    assert shell("history", "erase", "1", "--yes").stdout == "Turn 1 of conversation 1 erased.\n"
    shown = shell("history", "show", "1").stdout
    assert "\nTurn 1 (id 1, erased)\nErased on 2" in shown
    assert "password" not in shown


def test_a_conversation_is_shown_exported_and_erased(shell: Shell) -> None:
    shell("ask", "Why?")
    assert shell("history", "list").stdout.split() == ["1", "1", "turn", "Why?"]
    assert json.loads(shell("history", "list", "--json").stdout)["title"] == "Why?"
    shown = shell("history", "show", "1").stdout
    assert "1 turn.\n" in shown
    assert "\nTurn 1 (id 1, completed)\n> Why?\n\nAn answer.\n" in shown
    assert "## 1. Why?" in shell("history", "export", "1").stdout
    assert json.loads(shell("history", "export", "1", "--format", "json").stdout)["turns"][0]["question"] == "Why?"
    assert "Erase “Why?” permanently? This can't be undone." in shell("history", "purge", "1").stdout
    assert shell("history", "purge", "1", "--yes").stdout == "Conversation 1 erased.\n"
    assert "There is no conversation 1." in shell("history", "show", "1").stderr


def test_the_connection_is_tested_step_by_step(shell: Shell, stub: StubModel) -> None:
    told = shell("model", "test")
    assert re.sub(r"\d\.\d s", "- s", told.stdout).splitlines()[:2] == [
        "ok: 1 model listed, including stub-model. (- s)",
        "ok: stub-model answered. (- s)",
    ]
    assert "the model did not repeat a word from its start" in told.stdout
    stub.default = Reply(status=401)
    told = shell("model", "test")
    assert told.exit_code == 1
    assert "failed: The model at" in told.stderr
    assert "(401)" in told.stderr


def test_without_an_endpoint_a_server_on_this_machine_is_offered(
    shell: Shell, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    del shell.environment["OPENAI_BASE_URL"]
    monkeypatch.setattr("rag_assistant.services.LocalServers", lambda port: LocalServers(port, {"Ollama": stub.port}))
    told = shell("model", "test")
    assert told.exit_code == 1
    assert "No endpoint is set." in told.stderr
    assert f'{{"openai_base_url": "{stub.url}", "openai_model": "stub-model"}}' in told.stderr


@pytest.mark.long
def test_a_web_page_is_added_by_its_address(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = shell("documents", "add-page", "https://example.org/lamp.txt")
    assert (refused.exit_code, "Adding web pages is switched off." in refused.stderr) == (1, True)

    @contextmanager
    def fetch(self: PublicHttp, url: str, *limits: object) -> Iterator[Fetched]:
        yield Fetched(url, "text/plain", None, io.BytesIO(b"The lamp burns rapeseed oil."))

    monkeypatch.setattr(PublicHttp, "fetch", fetch)
    switched_on = shell.under(WEB_PAGES="true")
    for said in ("new", "unchanged"):
        added = switched_on("documents", "add-page", "https://example.org/lamp.txt", "--tag", "sea")
        assert f"https://example.org/lamp.txt: {said}, document 1" in added.stdout, added.stderr
    inside = switched_on("documents", "add-page", "http://127.0.0.1:22/")
    assert (inside.exit_code, "has port 22" in inside.stderr) == (1, True)


@pytest.mark.parametrize("colour", sample([True, False]), ids=["in a terminal", "in a pipe"])
def test_an_answer_has_its_gauge_and_colours_only_in_a_terminal(shell: Shell, stub: StubModel, colour: bool) -> None:
    small = shell.under(MODEL_CONTEXT_TOKENS="4096", MAX_HISTORY_TURNS="0")
    small("ask", "One")
    result = small("ask", "Two", "--conversation", "1", color=colour)
    assert "The model saw 0 of 1 earlier turn (1 over the turn limit)." in result.stderr
    assert re.search(r"Estimated tokens: instructions [0-9,]+, question [0-9,]+, free [0-9,]+", result.stderr)
    assert ("\x1b[" in result.stderr) == colour


@pytest.mark.long
def test_what_is_queued_is_read_before_a_question(shell: Shell) -> None:
    for name in ("one", "two"):
        queue(shell, f"The goose {name} hisses.", f"{name}.txt")
    shell = shell.under(OPENAI_BASE_URL="", OPENAI_MODEL="")
    asked = shell("ask", "Which goose hisses?")
    assert "Reading 2 documents first." in asked.stderr
    assert "hisses" in asked.stdout
    assert {line.split()[1] for line in shell("documents", "list").stdout.splitlines()} == {"ready"}
    assert "Reading" not in shell("ask", "Which goose hisses?").stderr


def test_what_is_too_much_to_be_read_before_a_question_is_counted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(shell, "Geese hiss.", "geese.txt")
    monkeypatch.setattr("rag_assistant.cli.ask.MAX_READ_FIRST", 0)
    asked = shell("ask", "What do geese do?")
    assert "1 document has not been read yet." in asked.stderr
    assert "queued" in shell("documents", "list").stdout
