"""The server as it is run: started, killed in the middle of an answer, started again, ended, started twice."""

import contextlib
import http.client
import itertools
import json
import random
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assistant.answering.writer import CHECKED_IN_PART, NOT_CHECKED
from rag_assistant.storage.accounts.people import PeopleStore
from rag_assistant.storage.database import Database, sqlite_url
from tests.testkit.gguf import carried_gguf
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import Launch, ServerEnded, ServerProcess, run_command
from tests.testkit.stub_model import Reply, StubModel

ANSWER = " ".join(f"wörd{n}" for n in range(60))


@pytest.fixture
def stub() -> Iterator[StubModel]:
    model = StubModel(Reply(ANSWER, seconds_between=0.01))
    yield model
    model.close()


@pytest.fixture
def server(tmp_path: Path, stub: StubModel) -> Iterator[ServerProcess]:
    yield from server_of(stub, tmp_path, run_command)


@pytest.fixture
def forked(tmp_path: Path, stub: StubModel, server_fork: ServerFork) -> Iterator[ServerProcess]:
    """A server that starts at once, where the start is not what is tested."""
    yield from server_of(stub, tmp_path, server_fork.launch)


def server_of(stub: StubModel, folder: Path, launch: Launch) -> Iterator[ServerProcess]:
    """Yield a server, and end it."""
    made = ServerProcess(folder, launch, OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model", QUERY_REWRITING="words")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


def test_a_start_answers_and_is_ready_a_little_later(server: ServerProcess, embedders: Path) -> None:
    server.data.mkdir(0o700)
    shutil.copytree(embedders, server.data / "embedders")
    server.start("/healthz")
    server.wait_until_ready()
    kept = [path for path in (server.data, *server.data.rglob("*")) if "embedders" not in path.parts]
    assert [path for path in kept if path.stat().st_mode & 0o077] == [], "what is kept is for its owner alone"
    assert "assistant.db" in {path.name for path in kept}


@pytest.mark.parametrize("cuts", [2, pytest.param(6, marks=pytest.mark.long)])
def test_a_kill_in_the_middle_of_an_answer_loses_nothing_that_was_shown(forked: ServerProcess, cuts: int) -> None:
    chance = random.Random(7)
    forked.start()
    conversation = None
    for cut in range(cuts):
        fields: dict[str, Any] = {} if conversation is None else {"conversation_id": conversation}
        stream = forked.stream(f"Question {cut}", **fields).read(until_length=chance.randrange(1, 300))
        forked.kill()
        stream.read()
        forked.start()
        assert stream.turn_id is not None
        status, turn = forked.call("GET", f"/api/turns/{stream.turn_id}")
        assert status == 200
        assert turn["status"] == "interrupted"
        assert turn["answer"].startswith(stream.text)
        assert ANSWER.startswith(turn["answer"])
        rest = forked.follow(stream.turn_id, stream.position).read()
        assert stream.text + rest.text == turn["answer"]
        assert rest.last is not None
        assert rest.last[0] == "error"
        conversation = turn["conversation_id"]
    status, page = forked.call("GET", f"/api/conversations/{conversation}/turns")
    assert [turn["question"] for turn in page["turns"]] == [f"Question {n}" for n in range(cuts)]
    status, answer = forked.call("POST", "/api/query", {"question": "And now?", "conversation_id": conversation})
    assert (status, answer["status"], answer["turn"]) == (200, "completed", cuts + 1)


@pytest.mark.long
def test_a_long_answer_on_one_line_stops_nothing(forked: ServerProcess, stub: StubModel) -> None:
    words = map("".join, itertools.product("aeioulmn", repeat=5))  # Repeated text would be ended.
    opened = ("".join(f"It opens at {word}. " for word in itertools.islice(words, 100)) for _ in range(211))
    line = ["The heron shed opens at nine [1]. ", *opened]
    forked.start()
    forked.upload("heron.md", "# Heron shed\n\nThe heron shed opens at nine.\n")
    forked.wait_for_documents()
    stub.replies.append(Reply(pieces=line))
    whole = forked.stream("When does the heron shed open?").read()
    assert whole.last is not None
    assert (whole.last[0], len(whole.text), whole.last[1]["notes"]) == ("end", 400_934, [CHECKED_IN_PART])
    stub.replies.append(Reply(pieces=line, hang_at=211))
    half = forked.stream("When does the heron shed open?").read(until_length=399_000)
    forked.kill()
    forked.start("/healthz")
    path = f"/api/turns/{half.turn_id}"
    assert forked.call("GET", path)[1]["status"] == "interrupted"
    forked.wait_for_words(path, CHECKED_IN_PART)
    assert NOT_CHECKED not in forked.call("GET", path)[1]["notes"]


def test_a_reader_who_loses_the_connection_comes_back_and_misses_nothing(forked: ServerProcess) -> None:
    forked.start()
    text, position = "", None
    stream = forked.stream("Why?").read(until_length=10)
    turn_id = stream.turn_id
    assert turn_id is not None
    while True:
        text, position = text + stream.text, stream.position
        stream.close()
        if stream.last is not None and stream.last[0] == "end":
            break
        stream = forked.follow(turn_id, position).read(until_length=25)
    assert text == ANSWER


@pytest.mark.long
@pytest.mark.parametrize("kept", [{}, {"metadata": {"conversation_id": "new"}}], ids=["unkept", "kept"])
def test_a_chat_over_the_protocol_of_openai_comes_whole(forked: ServerProcess, kept: dict[str, Any]) -> None:
    forked.start()
    asked = {"model": "rag-assistant", "messages": [{"role": "user", "content": "Why?"}], "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", forked.port, timeout=120)
    connection.request("POST", "/v1/chat/completions", json.dumps(asked | kept), {"Content-Type": "application/json"})
    *chunks, done, _ = connection.getresponse().read().decode().split("\n\n")
    connection.close()
    deltas = [json.loads(chunk.removeprefix("data: "))["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content", "") for delta in deltas) == ANSWER
    assert done == "data: [DONE]"


def test_an_end_on_request_comes_soon_and_keeps_what_is_written(forked: ServerProcess, stub: StubModel) -> None:
    stub.default = Reply("word " * 2000, seconds_between=0.05)
    forked.start()
    streams = [forked.stream("Why?").read(until_length=30) for _ in range(4)]
    forked.terminate()
    told = forked.log.read_text()
    assert "Ending; answers that are being written: 4" in told
    assert "serve: Ended" in told
    for stream in streams:
        stream.read()
        assert stream.last is not None
        assert stream.last[0] == "error"
        assert stream.last[1]["error"]["message"].startswith("The server stopped before the answer was complete.")
    with contextlib.closing(sqlite3.connect(forked.data / "assistant.db")) as alone:
        assert alone.execute("SELECT DISTINCT status FROM turns").fetchall() == [("interrupted",)]
    forked.start()
    for stream in streams:
        assert forked.call("GET", f"/api/turns/{stream.turn_id}")[1]["answer"] == stream.text


@pytest.mark.long
def test_an_end_on_request_keeps_how_far_an_answer_came_that_nobody_follows(
    forked: ServerProcess, stub: StubModel
) -> None:
    stub.default = Reply("word " * 2000, seconds_between=0.05)
    forked.start()
    stream = forked.stream("Why?").read(until_length=30)
    stream.close()
    forked.terminate()
    with contextlib.closing(sqlite3.connect(forked.data / "assistant.db")) as alone:
        ((status, characters),) = alone.execute(
            "SELECT status, sum(length(content)) FROM turns JOIN messages ON turn_id = turns.id AND role = 'assistant'"
        )
    assert status == "interrupted"
    assert characters >= len(stream.text)


@pytest.mark.long
def test_an_end_on_request_leaves_the_database_in_one_file(forked: ServerProcess) -> None:
    forked.start()
    for number in range(3):
        forked.call("POST", "/api/query", {"question": f"Question {number}"})
    forked.terminate()
    assert (forked.data / "assistant.db-wal").stat().st_size == 0
    with contextlib.closing(sqlite3.connect(f"file:{forked.data}/assistant.db?immutable=1", uri=True)) as alone:
        assert alone.execute("SELECT count(*) FROM turns").fetchone() == (3,)


@pytest.mark.long
def test_an_end_on_request_while_a_document_is_embedded_is_no_crash(server: ServerProcess) -> None:
    server.environment |= {"DRAIN_SECONDS": "0", "LAST_ANSWERS_SECONDS": "0"}
    server.start()
    text = "\n\n".join(f"Goose {n} was counted by the keeper of the lighthouse. " * 20 for n in range(100))
    document = f"/api/documents/{server.upload('geese.txt', text)}"
    while not server.call("GET", document)[1]["embedded"]:
        time.sleep(0.01)
    server.terminate()
    assert server.process is not None
    assert (server.process.poll(), "terminate called" in server.log.read_text()) == (0, False)


def test_a_second_server_on_the_same_folder_only_says_why_it_does_not_start(
    forked: ServerProcess, server_fork: ServerFork, tmp_path: Path
) -> None:
    forked.start()
    second = ServerProcess(tmp_path, server_fork.launch, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    second.log = tmp_path / "second.log"
    with pytest.raises(ServerEnded) as stopped:
        second.start()
    said = f'Cannot start. data_dir is "{forked.data}"; a server uses it already. Stop it, or set another DATA_DIR.\n'
    assert str(stopped.value) == said
    assert forked.call("GET", "/healthz")[0] == 200


@pytest.mark.long
def test_a_change_of_settings_json_counts_without_a_restart(forked: ServerProcess, tmp_path: Path) -> None:
    forked.start()
    (tmp_path / "settings.json").write_text('{"max_history_turns": 2}')
    end = time.monotonic() + 30
    while forked.call("POST", "/api/query", {"question": "Why?"})[1]["history"]["max_history_turns"] != 2:
        assert time.monotonic() < end, "the change never counted"
        time.sleep(0.05)


def test_the_log_has_a_line_for_each_request_if_asked_for_without_what_was_searched(forked: ServerProcess) -> None:
    forked.environment |= {"ACCESS_LOG": "true", "LOG_FORMAT": "json"}
    forked.start()
    forked.call("GET", "/api/search?q=canary")
    forked.terminate()
    lines = [json.loads(line) for line in forked.log.read_text().splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["logger"] == "rag_assistant.access"]
    assert {"method": "GET", "path": "/api/search", "status": 200}.items() <= requests[-1].items()
    assert re.fullmatch(r"GET /api/search 200, \d+ bytes, \d+ ms", requests[-1]["message"])
    assert re.fullmatch("[0-9a-f]{32}", requests[-1]["request_id"])
    assert "canary" not in forked.log.read_text()


@pytest.mark.long
def test_no_child_outlives_the_server(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, LOCAL_MODEL=str(carried_gguf()))
    server.start()
    children = descendants(server.process.pid)  # type: ignore[union-attr]
    assert any("local_model_server" in command for command in children.values())
    assert server.process is not None
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    end = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < end, children
        time.sleep(0.05)


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one, by number, with their command lines."""
    found = {}
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        for number in map(int, child.read_text().split()):
            found[number] = Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
            found |= descendants(number)
    return found


def test_a_header_that_only_looks_like_the_proxys_signs_nobody_in(
    tmp_path: Path, migrated: Path, stub: StubModel, server_fork: ServerFork
) -> None:
    """What the server itself makes of headers decides: WSGI takes ``Remote_User`` for ``Remote-User``."""
    shutil.copytree(migrated, tmp_path / "data")
    database = Database(sqlite_url(tmp_path / "data"))
    for name in ("Ann", "Ben"):
        PeopleStore(database).add(name, "member", None)
    database.close()
    proxy = "127.0.0.2"
    settings = {
        "PROXY_USER_HEADER": "Remote-User",
        "PROXY_GROUPS_HEADER": "Remote-Groups",
        "PROXY_USER_FROM": f'["{proxy}"]',
        "OPENAI_BASE_URL": stub.url,
    }
    server = ServerProcess(tmp_path, server_fork.launch, **settings)
    server.start()

    def name_seen(address: str, *headers: tuple[str, str]) -> str | int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, source_address=(address, 0), timeout=30)
        connection.putrequest("GET", "/account")
        for header, value in (("Accept", "text/html"), ("Sec-Fetch-Mode", "cors"), *headers):
            connection.putheader(header, value)
        connection.endheaders()
        response = connection.getresponse()
        page = response.read().decode()
        connection.close()
        found = re.search(r"<h1>(.*?)</h1>", page)
        return found[1] if response.status == 200 and found else response.status

    try:
        assert name_seen(proxy, ("Remote-User", "Ben")) == "Ben"
        assert name_seen("127.0.0.1", ("Remote-User", "Ben")) == 401
        assert name_seen("127.0.0.1", ("Remote-User", "Ben"), ("X-Forwarded-For", proxy)) == 401
        # Somebody sends this by way of a proxy that replaces only the header that it knows.
        assert name_seen(proxy, ("Remote_User", "Ann")) == 401
        assert name_seen(proxy, ("Remote_User", "Ann"), ("Remote-User", "Ben")) == "Ben"
        assert name_seen(proxy, ("Remote-User", "Ann"), ("Remote-User", "Ben")) == 403
        groups = ("Remote-Groups", "birds")
        assert name_seen(proxy, ("Remote-User", "Ben"), groups, ("X-Repeated", "remote-groups")) == "Ben"
        assert name_seen(proxy, ("Remote-User", "Ben"), groups, ("remote-groups", "admins")) == 403
    finally:
        server.kill()
