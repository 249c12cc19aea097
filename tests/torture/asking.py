"""Clients that ask, remember what they were shown, and compare it with what is kept."""

import contextlib
import http.client
import json
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.testkit.server_process import ServerProcess, Stream
from tests.torture.echo import Echo, answer_to
from tests.torture.stage import Outcome

ENDED = ("completed", "interrupted", "failed")


class Asked:
    """One question of one client, under a key of its own."""

    def __init__(self, server: ServerProcess, number: int) -> None:
        self.number = number
        self.stream: Stream | None = None
        self._server = server

    def ask(self) -> None:
        """Ask and read the answer until it ends or the connection breaks."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.stream = self._server.stream(f"Question {self.number}", key=f"key {self.number}")
            self.stream.read()

    @property
    def cut_off(self) -> bool:
        """Whether some of an answer was shown, and not its end."""
        return self.stream is not None and self.stream.text != "" and (self.stream.last or [""])[0] == "token"

    def check(self, outcome: Outcome) -> None:
        """Compare what was shown with what is kept, after a restart; ask again under the same key."""
        shown = self.stream if self.stream is not None and self.stream.status == 200 else None
        if shown is not None:
            status, turn = self._server.call("GET", f"/api/turns/{shown.turn_id}")
            if status != 200:
                outcome.lost.append(f"question {self.number} was accepted, and is {status}")
            elif turn["status"] not in ENDED:
                outcome.wrong.append(f"turn {turn['turn_id']} is {turn['status']} after a restart")
            elif not turn["answer"].startswith(shown.text):
                outcome.lost.append(f"turn {turn['turn_id']}: {shown.text!r} was shown, {turn['answer']!r} is kept")
            elif not answer_to(self.number).startswith(turn["answer"]):
                outcome.wrong.append(f"turn {turn['turn_id']}: {turn['answer']!r}")
            elif shown.last is not None and shown.last[0] == "end" and turn["status"] != "completed":
                outcome.lost.append(f"turn {turn['turn_id']} was shown to its end, and is {turn['status']}")
        again = self._server.stream(f"Question {self.number}", key=f"key {self.number}").read()
        if shown is not None and again.turn_id != shown.turn_id:
            outcome.doubled.append(f"question {self.number} is turn {shown.turn_id} and turn {again.turn_id}")


def ask_all(asked: list[Asked], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Let each client ask at the same time, and do something meanwhile."""
    with ThreadPoolExecutor(len(asked)) as pool:
        for one in asked:
            pool.submit(one.ask)
        meanwhile()


def check_all(asked: list[Asked], stub: Echo, outcome: Outcome) -> None:
    """Compare everything, and count how often the model was called for each question."""
    with ThreadPoolExecutor(len(asked)) as pool:
        list(pool.map(lambda one: one.check(outcome), asked))
    for number, calls in stub.calls().items():
        if calls > 1:
            outcome.doubled.append(f"question {number} went to the model {calls} times")
    outcome.tried += len(asked)


def half_read(server: ServerProcess, number: int, byte: int, *, reset: bool) -> int:
    """Ask over the streaming API, read so many bytes, and leave with FIN or RST; return how many came."""
    body = json.dumps({"question": f"Question {number}"}).encode()
    head = (
        "POST /api/query/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: key {number}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    came = 0
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 20) as connection:
        connection.sendall(head.encode() + body)
        while came < byte and (piece := connection.recv(min(65536, byte - came))):
            came += len(piece)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return came
