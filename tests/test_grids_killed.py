"""A table survives ``kill -9``: what was answered is never asked again, and what was left is taken up."""

import collections
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, Seen, StubModel


def test_every_cell_is_answered_once_across_a_kill(tmp_path: Path, stub: StubModel, server_fork: ServerFork) -> None:
    asked: collections.Counter[str] = collections.Counter()
    hanging = threading.Event()

    def reply(seen: Seen) -> Reply:
        content = str(seen.messages[-1]["content"])
        asked[content] += 1
        hangs = sum(asked.values()) > 5 and not hanging.is_set()
        return Reply("not found", hang_at=0 if hangs else None)

    stub.next_reply = reply  # type: ignore[method-assign, assignment]
    own = {"OPENAI_BASE_URL": stub.url, "OPENAI_MODEL": "stub-model", "OCR": "off", "EXACT_INDEX": "yes"}
    server = ServerProcess(tmp_path, server_fork.launch, **own)
    server.start()
    try:
        ids = [server.upload(f"{n}.txt", f"House {n} has {n} windows and a door.") for n in range(4)]
        server.wait_for_documents()
        body = {"name": "Houses", "document_ids": ids, "cells_at_once": 2}
        columns = [{"question": f"How many {what} has the house?"} for what in ("windows", "doors", "gates")]
        _, grid = server.call("POST", "/api/grids", body | {"columns": columns})
        path = f"/api/grids/{grid['grid_id']}"
        server.call("POST", f"{path}/start", {})
        wait(lambda: server.call("GET", path)[1]["cells"].get("done") == 5 and sum(asked.values()) == 7)
        before = server.call("GET", path)[1]
        server.kill()
        hanging.set()
        server.start()
        wait(lambda: server.call("GET", path)[1]["cells"] == {"done": 12})
        after = server.call("GET", path)[1]
    finally:
        server.kill()
    assert len(asked) == 12
    # Only the two that were being answered are asked a second time.
    assert sorted(asked.values()) == [1] * 10 + [2] * 2
    assert before["used_tokens"] * 12 == after["used_tokens"] * 5


def wait(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
