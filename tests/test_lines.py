"""Lines of requests: whoever sends many waits behind themselves, and nobody else does."""

import http.client
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from rag_assistant.server.lines import (
    MAX_BEGINNING_SECONDS,
    MAX_BURST_SECONDS,
    MAX_REST_SECONDS,
    MAX_WAITING,
    PRESENCE_SECONDS,
    REST_FACTOR,
    Lines,
    who_sends,
)
from rag_assistant.web import create_app
from tests.testkit.people import ACTOR, add_person, quick_passwords
from tests.testkit.server_process import PROJECT, ServerProcess
from tests.testkit.stub_model import Reply, StubModel
from tests.web.conftest import until

NEVER_OVERDUE = (
    "import rag_assistant.server.lines as l; l.MAX_BEGINNING_SECONDS = 1e9; import runpy; "
    "runpy.run_path('app.py', run_name='__main__')"
)


def test_one_request_of_a_line_is_begun_at_a_time_in_their_order() -> None:
    lines = Lines()
    assert lines.join("ann", 1, 0.0) == [1]
    assert lines.join("ann", 2, 0.0) == lines.join("ann", 3, 0.0) == []
    assert lines.join("ben", 4, 0.0) == [4], "nobody else waits"
    assert lines.leave(1, 0.1) == [2]
    assert lines.leave(1, 0.1) == [], "who has left already changes nothing"
    assert lines.leave(2, 0.1) == [3]
    assert lines.seconds_to_look(0.1) is None, "nobody waits"
    assert lines.leave(3, 0.2) == lines.leave(4, 0.2) == []
    assert (lines._lines, lines._line_of) == ({}, {}), "nothing is kept of who has gone"


def test_a_request_that_takes_long_to_begin_lets_the_next_one_go() -> None:
    lines = Lines()
    lines.join("ann", 1, 0.0)
    assert lines.look(MAX_BEGINNING_SECONDS) == [], "nobody waits behind it"
    lines.join("ann", 2, 0.0)
    assert lines.look(MAX_BEGINNING_SECONDS - 0.1) == []
    assert lines.look(MAX_BEGINNING_SECONDS) == [2]
    assert lines.leave(1, 1.0) == []


def test_large_bodies_keep_nothing_else_of_theirs_waiting() -> None:
    lines = Lines()
    assert lines.join("ann", 1, 0.0, large=True) == [1]
    assert lines.join("ann", 2, 0.0) == [2]
    assert lines.join("ann", 3, 0.0, large=True) == []


def fill(lines: Lines, who: str, requests: list[int], now: float) -> None:
    for request in requests:
        lines.join(who, request, now)


def test_a_line_that_does_not_get_empty_rests_while_somebody_else_is_there() -> None:
    lines = Lines()
    fill(lines, "ann", [1, 2, 3, 4, 5], 10.0)
    assert lines.leave(1, 10.2) == [2]
    assert lines.leave(2, 10.6) == [3], "nobody else is there"
    lines.join("ben", 6, 10.65)
    lines.leave(6, 10.65)
    lines.join("ann", 7, 10.65)
    assert lines.leave(3, 10.65) == [], "it took a twentieth of a second"
    assert lines.seconds_to_look(10.9) == pytest.approx(0.65 + 0.05 * REST_FACTOR - 0.9)
    assert lines.look(10.9) == []
    assert lines.look(10.65 + 0.05 * REST_FACTOR + 0.01) == [4]
    assert lines.leave(4, 10.65 + PRESENCE_SECONDS + 0.1) == [5], "the other one has gone"


def test_a_rest_is_one_of_both_lines() -> None:
    lines = Lines()
    fill(lines, "ann", [1, 2], 10.0)
    for upload in (3, 4):
        lines.join("ann", upload, 10.0, large=True)
    lines.join("ben", 9, 10.5)
    lines.join("ann", 5, 10.6)
    assert lines.leave(3, 10.6) == [], "the upload took 0.6 seconds, and rests for half a second"
    assert lines.leave(1, 10.7) == [], "so does what is small"
    assert lines.look(11.05) == [], "the later rest counts for both"
    assert lines.look(11.25) == [2, 4]


def test_an_upload_lets_no_page_rest_that_is_opened_meanwhile() -> None:
    lines = Lines()
    for upload in (1, 2):
        lines.join("ann", upload, 10.0, large=True)
    lines.join("ben", 9, 10.5)
    fill(lines, "ann", [3, 4], 10.9)
    assert lines.leave(1, 11.0) == [], "uploads rest"
    assert lines.leave(3, 11.0) == [4]


def test_a_short_burst_never_rests() -> None:
    lines = Lines()
    lines.join("ben", 9, 0.0)
    fill(lines, "ann", [1, 2, 3], 0.1)
    assert lines.leave(1, 0.3) == [2]
    assert lines.leave(2, 0.1 + MAX_BURST_SECONDS) == [3]


def test_no_rest_is_longer_than_half_a_second() -> None:
    lines = Lines()
    fill(lines, "ann", [1, 2], 0.0)
    lines.join("ben", 9, 29.0)
    assert lines.leave(1, 30.0) == []
    assert lines.look(30.0 + MAX_REST_SECONDS) == [2]


def test_who_waits_for_an_answer_before_the_next_request_never_rests() -> None:
    lines = Lines()
    for request in range(100):
        lines.join("ben", f"ben's {request}", request * 0.1)
        assert lines.join("ann", request, request * 0.1) == [request]
        assert lines.leave(request, request * 0.1 + 0.09) == []


def test_a_line_has_an_end() -> None:
    lines = Lines()
    for number in range(MAX_WAITING + 1):
        assert not lines.is_full("ann")
        lines.join("ann", number, 0.0)
    assert (lines.is_full("ann"), lines.is_full("ben")) == (True, False)


@pytest.mark.parametrize(
    ("head", "who"),
    [
        (b"authorization: Bearer rag_abc-D\r\n", b"rag_abc-D"),
        (b"Authorization:bearer  rag_x\r\n", b"rag_x"),
        (b"Cookie: zone=UTC; session=s-1; theme=dark\r\n", b"s-1"),
        (b"cookie: __Host-session=s_2\r\n", b"s_2"),
        (b"Authorization: Bearer sk-any\r\n", None),
        (b"Cookie: my-session=3; zone=UTC\r\n", None),
        (b"X: session=4\r\n", None),
        (b"", None),
    ],
)
def test_who_sends_is_told_from_what_they_show(head: bytes, who: bytes | None) -> None:
    assert who_sends(b"GET / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n") == who


@pytest.mark.long
def test_answers_that_are_waited_for_keep_nothing_else_of_theirs_waiting(tmp_path: Path, stub: StubModel) -> None:
    def launch(environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as written:
            return subprocess.Popen(
                [sys.executable, "-c", NEVER_OVERDUE], cwd=PROJECT, env=environment, stdout=written, stderr=written,
                start_new_session=True,
            )  # fmt: skip

    server = ServerProcess(tmp_path, launch, OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub", QUERY_REWRITING="words")
    services = create_app(server.environment).extensions["assistant"]
    services.prepare()
    with quick_passwords():
        token = services.accounts.make_token(add_person(services, "Ann"), "t", ["read", "ask"], 1, ACTOR)[0]
    services.close()
    server.start("/readyz")
    statuses: Counter[int] = Counter()

    def send(method: str, path: str, body: dict[str, object] | None = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            statuses[response.status] += 1
            response.read()
            return response.status
        except (OSError, http.client.HTTPException):
            return 0  # At the end the server is killed.
        finally:
            connection.close()

    stub.default = Reply("word word", hang_at=1)
    chat = {"model": "rag-assistant", "messages": [{"role": "user", "content": "Why?"}]}
    waiting = [
        threading.Thread(target=send, args=("POST", path, body))
        for path, body in (
            ("/api/query", {"question": "Why?"}),
            ("/api/query/stream", {"question": "Why?"}),
            ("/v1/chat/completions", chat),
        )
    ]
    try:
        for thread in waiting:
            thread.start()
        until(lambda: len(stub.requests) == 3)
        assert send("GET", "/api/account") == 200
        # More than may wait is refused, and every connection gets an answer.
        many = [threading.Thread(target=send, args=("GET", "/api/conversations")) for _ in range(3 * MAX_WAITING)]
        for thread in many:
            thread.start()
        for thread in many:
            thread.join()
    finally:
        server.kill()
        for thread in waiting:
            thread.join()
    assert set(statuses) <= {200, 429}
    assert statuses.total() >= 3 * MAX_WAITING + 1
