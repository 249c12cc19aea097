"""A model's endpoint that hangs, lies and never ends: an error that says so in time, and nothing is held for it."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

from rag_assistant.answering.sending import REPEATED
from tests.testkit.lying_endpoint import Shape, lying_endpoint
from tests.testkit.server_process import ServerProcess
from tests.torture.processes import held_by
from tests.torture.stage import Outcome, Stage, until

CLIENTS = 8
DEADLINE_SECONDS = 3.0
SLACK_SECONDS = 1.0
MAX_GROWTH_MB = 30
WARM_UP = 16
FIELDS = {"CONNECT": "1", "FIRST_TOKEN": "1", "TOKEN": "1", "ANSWER": str(DEADLINE_SECONDS)}
TYPES = {
    *("ModelError", "ModelFailed", "ModelRefused", "ModelUnreachable", "ModelBusy", "ModelTimedOut"),
    *("AnswerInterrupted", "AnswerTooLong", "ContextTooLong"),
}


def event(chunk: object) -> bytes:
    """Return a chunk as a server-sent event."""
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def delta(fields: object) -> bytes:
    """Return an event with one choice."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


OK = b"HTTP/1.1 200 OK\r\n"
STREAM = OK + b"Content-Type: text/event-stream\r\n\r\n"
JSON = OK + b"Content-Type: application/json\r\n\r\n"
WORD = delta({"content": "geese "})
CALL = {"index": 0, "id": "a", "function": {"name": "search_documents", "arguments": "{}"}}
SHAPES = {
    # Silence
    "silent": Shape(b"", "silence"),
    "half a head": Shape(OK + b"Content-Ty", "silence"),
    "head alone": Shape(STREAM, "silence"),
    "half an event": Shape(STREAM + b"data: {", "silence"),
    "one word": Shape(STREAM + WORD, "silence"),
    "comments": Shape(STREAM + b": wait\n\n", "silence"),
    # The end of the connection
    "closed": Shape(b"", "close"),
    "reset": Shape(b"", "reset"),
    "closed behind the head": Shape(STREAM, "close"),
    "reset behind a word": Shape(STREAM + WORD, "reset"),
    "cut within a letter": Shape(STREAM + 'data: {"choices": [{"delta": {"content": "ö'.encode()[:-1], "close"),
    "a shorter body": Shape(OK + b"Content-Length: 900\r\n\r\n{}", "close"),
    # Without end
    "endless head": Shape(OK, "repeat", b"X-Geese: " + b"a" * 5000 + b"\r\n"),
    "endless promises": Shape(b"", "repeat", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "endless error": Shape(b"HTTP/1.1 500 Trouble\r\n\r\n", "repeat", b"a" * 60_000),
    "endless JSON": Shape(JSON, "repeat", b"[" * 60_000),
    "endless line": Shape(STREAM, "repeat", b"a" * 60_000),
    "endless words": Shape(STREAM, "repeat", delta({"content": "geese " * 2000})),
    "endless counting": Shape(STREAM, "repeat", delta({"content": " ".join(map(str, range(2000)))})),
    "endless thoughts": Shape(STREAM, "repeat", delta({"reasoning_content": "geese " * 2000})),
    "endless calls": Shape(STREAM, "repeat", delta({"tool_calls": [CALL] * 3000})),
    # Nonsense
    "another protocol": Shape(b"HTTP/1.1 101 X\r\nUpgrade: geese\r\nConnection: Upgrade\r\n\r\n", "silence"),
    "no HTTP": Shape(b"220 geese.example ESMTP\r\n", "close"),
    "a web page": Shape(OK + b"Content-Type: text/html\r\n\r\n<html>", "close"),
    "choices as a text": Shape(STREAM + event({"choices": "geese"}) + b"data: [DONE]\n\n"),
    "delta as a list": Shape(STREAM + delta([1]) + b"data: [DONE]\n\n"),
    "content as a number": Shape(STREAM + delta({"content": 7}) + b"data: [DONE]\n\n"),
    "deep JSON": Shape(STREAM + b"data: " + b"[" * 100_000 + b"\n\n"),
    "thoughts alone": Shape(STREAM + delta({"reasoning_content": "Hm."}) + b"data: [DONE]\n\n"),
    "nothing": Shape(STREAM + b"data: [DONE]\n\n"),
    # Refusals
    "401": Shape(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}"),
    "404": Shape(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}"),
    "429": Shape(b"HTTP/1.1 429 No\r\nRetry-After: 1e400\r\nContent-Length: 2\r\n\r\n{}"),
    "500": Shape(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}"),
    "503": Shape(b"HTTP/1.1 503 No\r\nRetry-After: 86400\r\nContent-Length: 2\r\n\r\n{}"),
}
ASKED = re.compile(rb"Shape (\d+)\.")


def lies(stage: Stage) -> Outcome:
    """Ask an endpoint that answers in all these ways."""
    outcome, names = Outcome(), list(SHAPES)

    def shape_of(request: bytes) -> Shape:
        found = ASKED.findall(request)
        return SHAPES[names[int(found[-1])]] if found else SHAPES["404"]

    url = stage.enter(lying_endpoint(shape_of))
    server = stage.server(url, {f"{name}_TIMEOUT_SECONDS": value for name, value in FIELDS.items()})
    server.start("/readyz")
    took: dict[str, float] = {}

    def ask(number: int) -> None:
        began = time.monotonic()
        status, answer = server.call("POST", "/api/query", {"question": f"Shape {number}."})
        took[names[number]] = max(took.get(names[number], 0.0), time.monotonic() - began)
        error = (answer.get("error") or {}).get("type")
        if status == 200 and REPEATED in answer["notes"] and names[number] == "endless words":
            return  # What came until then is the answer.
        if status not in (502, 503, 504) or error not in TYPES:
            outcome.wrong.append(f"{names[number]}: {status} {error or answer.get('answer')!r}")

    def ask_all(numbers: list[int]) -> None:
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(ask, numbers))
        outcome.tried += len(numbers)

    every = list(range(len(names)))
    # Pools of connections and the allocator's arenas fill in the first two minutes.
    for _ in range(WARM_UP if stage.is_full else 1):
        ask_all(every)
    before = held_by(server)
    for _ in stage.rounds(0, 45):
        stage.chance.shuffle(every)
        ask_all(every)
    slowest = max(took, key=took.__getitem__)
    outcome.note = f"the slowest, {slowest}, took {took[slowest]:.1f} s; deadline {DEADLINE_SECONDS:.0f} s"
    if stage.is_full and took[slowest] > DEADLINE_SECONDS + SLACK_SECONDS:
        outcome.wrong.append(outcome.note)
    check_held(server, before, outcome)
    return outcome


def check_held(server: ServerProcess, before: dict[str, int], outcome: Outcome) -> None:
    """Compare what is held with what was; a pool of connections may keep a few."""

    def back() -> bool:
        now = held_by(server)
        return now["threads"] <= before["threads"] + 2 and now["descriptors"] <= before["descriptors"] + CLIENTS

    if not until(back, 20):
        outcome.wrong.append(f"held {before} before and {held_by(server)} afterwards")
    # What is not used is given back some seconds after the last answer.
    if not until(lambda: grown(server, before) <= MAX_GROWTH_MB, 20):
        outcome.wrong.append(f"{grown(server, before)} MB more are in use")


def grown(server: ServerProcess, before: dict[str, int]) -> int:
    """Return how many MB more a server uses than before."""
    return held_by(server)["MB"] - before["MB"]
