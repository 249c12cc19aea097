"""What a server answers while it loads the application, and what the process that watches over it loads."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from werkzeug.test import Client, TestResponse

from rag_assistant.server.loading import ALIVE, Loading
from tests.testkit.server_process import PROJECT


def say_loaded(_wsgi: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [])
    return [b"loaded"]


def test_while_the_application_is_loaded_the_server_is_alive_and_all_else_waits() -> None:
    loading, loaded = Loading("/rag"), threading.Event()
    loading.start(lambda: loaded.wait() and say_loaded)
    client = Client(loading)
    assert [client.get(path).data for path in ("/healthz", "/rag/healthz")] == [ALIVE, ALIVE]
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(client.get, path) for path in ("/", "/readyz", "/rag/")]
        assert loading.app is None
        loaded.set()
        answers: list[TestResponse] = [one.result() for one in waiting]
    assert [answer.data for answer in answers] == [b"loaded"] * 3
    assert loading.app is say_loaded
    assert client.get("/healthz").data == b"loaded"


def test_what_few_requests_need_is_not_loaded_with_the_application(tmp_path: Path) -> None:
    code = "import sys; from rag_assistant.web import create_app; create_app(); print(*sys.modules)"
    environment = os.environ | {"DATA_DIR": str(tmp_path), "SETTINGS_FILE": str(tmp_path / "settings.json")}
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT, env=environment).split()
    ours = {"exchange.shapes", "retrieval.example_questions", "web.openapi.operations"}
    assert {"argon2", "openai", *(f"rag_assistant.{name}" for name in ours)}.isdisjoint(loaded)


def test_the_process_that_watches_over_the_server_loads_nothing_of_the_application() -> None:
    modules = "rag_assistant.server.serve, rag_assistant.server.worker"
    code = f"import sys, {modules}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=PROJECT).split()
    assert {"flask", "jinja2", "numpy", "sqlalchemy", "werkzeug"}.isdisjoint(loaded)
