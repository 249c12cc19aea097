"""(f) Promises: what must be done within so many seconds, on a real server, the slowest of a few runs."""

import json
import tempfile
import time
from pathlib import Path

from tests.testkit.server_process import ServerProcess
from tests.testkit.stub_model import Reply, StubModel

TIMES = 5
PAUSE_SECONDS = 0.003


def main() -> None:
    """Print each promise with the longest time."""
    print("| promise | limit, s | measured, s | met |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        stub = StubModel(Reply("word " * 2000, seconds_between=0.05))
        server = ServerProcess(Path(folder), OPENAI_BASE_URL=stub.url, OPENAI_MODEL="stub-model")
        server.start("/readyz")
        try:
            tell("a change to settings.json takes effect", 2, [change_settings(server, n) for n in range(1, TIMES + 1)])
            tell("a stop closes the connection to the model", 1, [stop_answer(server, stub) for _ in range(TIMES)])
            ends, starts = zip(*(restart(server) for _ in range(TIMES)), strict=True)
            tell("the server shuts down in the middle of an answer", 20, ends)
            tell("a second start responds", 5, starts)
        finally:
            server.kill()
            stub.close()


def tell(promise: str, seconds: float, took: tuple[float, ...] | list[float]) -> None:
    """Print one row."""
    print(f"| {promise} | {seconds} | {max(took):.2f} | {'yes' if max(took) <= seconds else 'NO'} |", flush=True)


def change_settings(server: ServerProcess, turns: int) -> float:
    """Write another window to the settings, and return how long it takes to apply."""
    began = time.monotonic()
    Path(server.environment["SETTINGS_FILE"]).write_text(json.dumps({"max_history_turns": turns + 10}))
    while window_of(server) != turns + 10:
        time.sleep(PAUSE_SECONDS)
    return time.monotonic() - began


def window_of(server: ServerProcess) -> object:
    """Return the ``max_history_turns`` in force."""
    settings = server.call("GET", "/api/settings")[1]["settings"]
    return next(one["value"] for one in settings if one["name"] == "max_history_turns")


def stop_answer(server: ServerProcess, stub: StubModel) -> float:
    """Stop an answer once text has arrived, and return how long it takes to close the model's connection."""
    stream = server.stream("Why?").read(until_length=5)
    began = time.monotonic()
    server.call("POST", f"/api/turns/{stream.turn_id}/stop")
    while (left := stub.requests[-1].left_after) is None:
        time.sleep(PAUSE_SECONDS)
    stream.close()
    return stub.requests[-1].started + left - began


def restart(server: ServerProcess) -> tuple[float, float]:
    """Stop the server while an answer is being written, and restart it; return how long each took."""
    stream = server.stream("Why?").read(until_length=5)
    ended = server.terminate()
    stream.close()
    return ended, server.start()
