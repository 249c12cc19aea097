"""Clients of a cluster: they ask through the proxy, and where a stream breaks they come back for the rest."""

import http.client
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deploy.cluster.cluster import Cluster
from tests.testkit.server_process import ServerProcess, Stream
from tests.torture.asking import ENDED
from tests.torture.echo import Echo, answer_to
from tests.torture.stage import MAX_SECONDS_TO_GO_ON, Outcome, check_database

SECONDS_BETWEEN_TRIES = 0.1
GIVE_UP_SECONDS = 90.0


class Client:
    """One question under a key of its own, followed to its end whatever breaks."""

    def __init__(self, entrance: ServerProcess, number: int) -> None:
        self.number = number
        self.turn_id: int | None = None
        self.shown = ""
        self.last: tuple[str, dict[str, Any]] | None = None
        self.refused: list[str] = []
        self.breaks = 0
        # How long it took at most from a break, or a refusal, to the next sign of the answer.
        self.longest_wait = 0.0
        self._entrance = entrance

    def run(self) -> None:
        """Ask, and follow until the answer has ended."""
        end = time.monotonic() + GIVE_UP_SECONDS
        broken_at: float | None = None
        while not self.has_ended and time.monotonic() < end:
            try:
                stream = self._open()
            except (OSError, http.client.HTTPException) as error:
                self.breaks += 1
                broken_at = broken_at or time.monotonic()
                self._note(repr(error))
                continue
            if stream.status != 200:
                self._note(str(stream.status))
                broken_at = broken_at or time.monotonic()
                stream.close()
                continue
            if self._read(stream) and broken_at is not None:
                self.longest_wait = max(self.longest_wait, time.monotonic() - broken_at)
                broken_at = None
            self._read_rest(stream)
            if not self.has_ended:
                self.breaks += 1
                broken_at = broken_at or time.monotonic()

    def _note(self, refusal: str) -> None:
        self.refused.append(refusal)
        time.sleep(SECONDS_BETWEEN_TRIES)

    def _open(self) -> Stream:
        if self.turn_id is None:
            return self._entrance.stream(f"Question {self.number}", key=f"key {self.number}")
        return self._entrance.follow(self.turn_id, len(self.shown))

    def _read(self, stream: Stream) -> bool:
        """Read until more of the answer is there, or its end; tell whether either came."""
        stream.read(1)
        self.turn_id = stream.turn_id or self.turn_id
        self.last = stream.last or self.last
        return bool(stream.text) or self.has_ended

    def _read_rest(self, stream: Stream) -> None:
        if not self.has_ended:
            stream.read()
        self.turn_id = stream.turn_id or self.turn_id
        self.shown += stream.text
        self.last = stream.last or self.last

    @property
    def has_ended(self) -> bool:
        """Whether the end of the answer was shown."""
        return self.last is not None and self.last[0] in ("end", "error")

    def check(self, outcome: Outcome) -> None:
        """Compare what was shown with what is kept."""
        if self.turn_id is None or not self.has_ended:
            outcome.lost.append(f"question {self.number} was never answered: {self.refused[-3:]}")
            return
        status, turn = self._entrance.call("GET", f"/api/turns/{self.turn_id}")
        if status != 200:
            outcome.lost.append(f"question {self.number} was accepted, and is {status}")
        elif turn["status"] not in ENDED:
            outcome.wrong.append(f"turn {self.turn_id} is {turn['status']}")
        elif turn["answer"] != self.shown and not turn["answer"].startswith(self.shown):
            outcome.lost.append(f"turn {self.turn_id}: {self.shown!r} was shown, {turn['answer']!r} is kept")
        elif turn["status"] == "completed" and self.shown != answer_to(self.number):
            outcome.wrong.append(f"turn {self.turn_id}: {self.shown!r} was shown to its end")
        if self.longest_wait > MAX_SECONDS_TO_GO_ON:
            outcome.wrong.append(f"question {self.number} went on after {self.longest_wait:.1f} s")


class Crowd:
    """Clients that ask one question after the other until they are told to end."""

    def __init__(self, entrance: ServerProcess, count: int, *, first: int = 0) -> None:
        self._entrance = entrance
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._next = first
        self.clients: list[Client] = []
        self._pool = ThreadPoolExecutor(count)
        self._running = [self._pool.submit(self._go_on) for _ in range(count)]

    def _go_on(self) -> None:
        while not self._over.is_set():
            with self._lock:
                client = Client(self._entrance, self._next)
                self._next += 1
                self.clients.append(client)
            client.run()

    def end(self) -> list[Client]:
        """Let each finish its question, and return all of them."""
        self._over.set()
        for one in self._running:
            one.result()
        self._pool.shutdown()
        return self.clients


def beside_clients(cluster: Cluster, stub: Echo, count: int, trouble: Callable[[], None], outcome: Outcome) -> Crowd:
    """Make trouble while clients ask; then compare everything, and count what went to the model."""
    crowd = Crowd(cluster.entrance, count)
    try:
        trouble()
    finally:
        clients = crowd.end()
    check_all(cluster, clients, stub, outcome)
    return crowd


def check_unbroken(crowd: Crowd, outcome: Outcome) -> None:
    """Look for clients that were refused, or whose streams broke."""
    for client in crowd.clients:
        outcome.wrong += [f"question {client.number} was refused: {one}" for one in client.refused]
        if client.breaks:
            outcome.wrong.append(f"question {client.number} broke off {client.breaks} times")
        if client.last is not None and client.last[1]["status"] != "completed":
            outcome.lost.append(f"question {client.number} is {client.last[1]['status']}")


def check_all(cluster: Cluster, clients: list[Client], stub: Echo, outcome: Outcome) -> None:
    """Compare what all clients saw with what is kept."""
    check_database(cluster.entrance, outcome)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda client: client.check(outcome), clients))
    for number, calls in stub.calls().items():
        if calls > 1:
            outcome.doubled.append(f"question {number} went to the model {calls} times")
    outcome.tried += len(clients)
    waits = [client.longest_wait for client in clients if client.breaks or client.refused]
    broken = sum(client.breaks > 0 for client in clients)
    refused = sum(len(client.refused) for client in clients)
    outcome.note = f"{broken} streams broken, {refused} tries refused, the longest wait {max(waits, default=0.0):.1f} s"
