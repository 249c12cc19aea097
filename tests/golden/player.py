"""Plays a scenario over the API and writes down what came back, without what is another one each time."""

import io
import json
import re
import time
from typing import Any

from flask.testing import FlaskClient

from tests.testkit.stub_model import Reply, StubModel

VOLATILE = (
    (re.compile(r"(?<=\"seconds\": )[\d.e-]+"), '"<seconds>"'),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"), "<time>"),
    (re.compile(r"(?<=\()\d{4}-\d\d-\d\d(?=\) )|(?<=\"date\": \")\d{4}-\d\d-\d\d"), "<day>"),
    (re.compile(r"(?<=\"The code word is )\w+\.\\n0\. [^\"]*"), "<word> <a long prompt>"),
    (re.compile(r"(?<=a prompt of )5,88\d(?= tokens)"), "<with the word>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"/[^\s\"']*/(?=data\b|settings\.json)"), "<folder>/"),
    (re.compile(r"(?<=next_(?:before|cursor)\": \")[\d]{9,}-\d+"), "<cursor>"),
)


class Player:
    """Sends requests, and keeps each with its answer; ``stub`` is the model that answers."""

    def __init__(self, client: FlaskClient, stub: StubModel) -> None:
        self.client = client
        self.stub = stub
        self.steps: list[dict[str, Any]] = []
        self.rules: set[str] = set()

    def replies(self, *replies: Reply | str) -> None:
        """Say what the model answers next."""
        self.stub.replies.extend(Reply(one) if isinstance(one, str) else one for one in replies)

    def play(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request, record it with its answer and what the model was sent for it, and return its JSON."""
        before = len(self.stub.requests)
        response = self.client.open(path, method=method, json=body, buffered=True, **more)
        self._record(f"{method} {path}", body, response, before)
        return response.json if response.is_json else response.text

    def upload(self, text: str, name: str, **fields: str) -> int:
        """Add a document, record it once it was worked on, and return its id."""
        file = (io.BytesIO(text.encode()), name)
        document: int = self.client.post("/api/documents", data={"file": file, **fields}).json["document_id"]
        path = f"/api/documents/{document}"
        while self.client.get(path).json["state"] not in ("ready", "failed"):
            time.sleep(0.01)
        self.play("GET", path)
        return document

    def play_to_its_end(self, path: str, turn: int) -> None:
        """Send a request that lets a turn be answered behind it, and record it and the turn once that has ended."""
        before = len(self.stub.requests)
        response = self.client.post(path, json={})
        while self.client.get(f"/api/turns/{turn}").json["status"] == "running":
            time.sleep(0.01)
        self._record(f"POST {path}", {}, response, before)
        self.play("GET", f"/api/turns/{turn}")

    def _record(self, request: str, body: Any, response: Any, before: int) -> None:
        step = {"request": request, "body": body, "status": response.status_code, "type": response.mimetype}
        sent = [seen.body for seen in self.stub.requests[before:]]
        self.steps.append(step | {"answer": _answer(response)} | ({"sent to the model": sent} if sent else {}))

    def recorded(self) -> str:
        """Return everything that was recorded, as text that reads well."""
        text = json.dumps(self.steps, indent=1, ensure_ascii=False)
        for pattern, name in VOLATILE:
            text = pattern.sub(name, text)
        return text + "\n"


def _answer(response: Any) -> Any:
    if response.mimetype == "text/event-stream":
        return _events(response.text)
    return response.json if response.is_json else response.text


def _events(text: str) -> list[list[Any]]:
    """Return the events of a stream; how text is cut into pieces, and which states a reader still sees, is chance."""
    events: list[list[Any]] = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if not lines:
            continue
        name, data = lines["event"], json.loads(lines["data"])
        if "html" in data:
            data = {"html": "<drawn in pieces>"}
        if name == "token" and events and events[-1][0] == "token":
            events[-1][1] = lines.get("id")
            if "text" in data:
                events[-1][2]["text"] += data["text"]
        elif name != "state":
            events.append([name, lines.get("id"), data])
    return events
