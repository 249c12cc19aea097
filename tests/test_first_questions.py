"""Many people ask at the same instant, and nobody before them: the server lives, and each gets an answer."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from tests.testkit.server_process import PROJECT, Launched, ServerProcess
from tests.testkit.stub_model import StubModel

PEOPLE = 20
# Threads take turns after every few instructions, so that what happens once in many starts happens in most.
PROGRAM = "import runpy, sys; sys.setswitchinterval(1e-5); runpy.run_path('app.py', run_name='__main__')"


def run_hurried(environment: dict[str, str], log: Path) -> Launched:
    """Start the server as a user does, with threads that take turns all the time."""
    with log.open("ab") as written:
        return subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", PROGRAM], cwd=PROJECT, env=environment, stdout=written,
            stderr=written, start_new_session=True,
        )  # fmt: skip


@pytest.fixture
def server(tmp_path: Path, stub: StubModel, migrated: Path, embedders: Path) -> Iterator[ServerProcess]:
    shutil.copytree(migrated, tmp_path / "data")
    shutil.copytree(embedders, tmp_path / "data" / "embedders")
    server = ServerProcess(tmp_path, run_hurried, OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model")
    yield server
    server.kill()


@pytest.mark.long  # What many threads touch first at once: test_first_touch.py.
def test_a_burst_of_first_questions_is_answered_and_ends_no_server(server: ServerProcess) -> None:
    for _ in range(20):
        server.start("/healthz")
        assert burst(server.port) == ["end"] * PEOPLE, server.log.read_text()
        server.kill()


def burst(port: int) -> list[str]:
    """Ask at the same instant, and return how each question ended."""
    together, endings = threading.Barrier(PEOPLE), list[str]()

    def ask(number: int) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.connect()
            together.wait(60)
            body = json.dumps({"question": f"What is number {number}?"})
            connection.request("POST", "/api/query/stream", body, {"Content-Type": "application/json"})
            endings.append(re.findall("^event: (.+)$", connection.getresponse().read().decode(), re.MULTILINE)[-1])
        except (OSError, HTTPException, IndexError) as error:
            endings.append(repr(error))
        finally:
            connection.close()

    people = [threading.Thread(target=ask, args=(number,)) for number in range(PEOPLE)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    return endings
