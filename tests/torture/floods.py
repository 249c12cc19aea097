"""Floods: silent connections, half requests and streams by the thousand; light requests are answered meanwhile."""

import contextlib
import http.client
import json
import multiprocessing
import resource
import socket
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlencode

from rag_assistant.accounts.accounts import Accounts
from rag_assistant.storage.accounts.credentials import MAX_SESSIONS, CredentialStore
from rag_assistant.storage.accounts.people import AuditLog, PeopleStore
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import migrate
from tests.testkit.people import ACTOR, PASSWORD
from tests.testkit.server_process import ServerProcess
from tests.torture.processes import held_by
from tests.torture.stage import Outcome, Stage, check_database, until

HEAD = b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALVES = {
    "silent": b"",
    "half a head": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "half a body": HEAD + b"Content-Length: 900000\r\n\r\n{",
    "half a part": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
}
# What announces a body that never comes, or is no request at all; each with another length, form or place.
ATTACKS = {
    "a head without its body": HEAD + b"Content-Length: 5\r\n\r\n",
    "a padded length": HEAD + b"Content-Length: 000000000000000000005\r\n\r\n",
    "a body behind a request": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    + HEAD
    + b"Content-Length: 900000\r\n\r\n",
    "a body that is waited for": HEAD + b"Content-Length: 900000\r\nExpect: 100-continue\r\n\r\n",
    "a body behind GET": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n",
    "HTTP/1.0": b"POST /login HTTP/1.0\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n",
    "both lengths": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 900000\r\n\r\n",
    "a length of many digits": HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "an absolute address": b"POST http://localhost/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n",
    "a body to sign in": b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n",
    "an authority": b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n",
}
LIGHT_SECONDS = 1.0
UPLOAD_SECONDS = 2.0
# Less than it takes until who reads nothing is taken for gone.
SECONDS_TO_WRITE = 40.0
LIGHT_REQUESTS = 10
# How long a flood of questions is watched: until it is answered or refused, on a machine that is not busy with others.
FLOOD_SECONDS = 8.0
SECONDS_BETWEEN_LIGHT = 0.02
SECONDS_BETWEEN_WORDS = 0.2
DESCRIPTORS_NEEDED = 10_000
# What readers of the database keep open: eight connections with three files each; a client too many would be thousands.
SPARE_DESCRIPTORS = 30


def half_requests(stage: Stage) -> Outcome:
    """Hold thousands of connections that never finish what they say."""
    outcome, stub = Outcome(), stage.echo()
    server = _server(stage, stub.url)
    before = held_by(server)
    slowest, other = 0.0, stage.enter(other_process())
    for half in HALVES.values():
        with ExitStack() as stack:
            for _ in range(stage.count(150, 2000)):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
                with contextlib.suppress(OSError):  # The oldest ones are sent away.
                    connection.sendall(half)
                outcome.tried += 1
            slowest = max(slowest, _light(server, outcome, other))
            status, answer = server.call("POST", "/api/query", {"question": f"Question {outcome.tried}"})
            if (status, answer["status"]) != (200, "completed"):
                outcome.wrong.append(f"a question was {status} {answer['status']}")
    _told(stage, slowest, outcome)
    if not until(lambda: held_by(server)["descriptors"] <= before["descriptors"] + SPARE_DESCRIPTORS, 30):
        outcome.wrong.append(f"held {before} before and {held_by(server)} afterwards")
    return outcome


def attacks(stage: Stage) -> Outcome:
    """Hold hundreds of connections of each kind that once held all threads, and of readers that read nothing."""
    outcome, stub = Outcome(), stage.echo()
    server = _server(stage, stub.url)
    slowest, other, uploads = 0.0, stage.enter(other_process()), list[float]()
    status, answer = server.call("POST", "/api/query", {"question": "Question 0"})
    follow = b"GET /api/turns/%d/stream HTTP/1.1\r\nHost: localhost\r\n\r\n" % answer["turn_id"]
    page = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"
    for sent in (*ATTACKS.values(), *(readers := (follow, page * 20))):
        with ExitStack() as stack:
            for _ in range(stage.count(40, 200)):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
                connection.sendall(sent)
                outcome.tried += 1
            if sent in readers and stage.is_full:
                time.sleep(SECONDS_TO_WRITE)  # Then they hold only what they do not read.
            slowest = max(slowest, _light(server, outcome, other))
            uploads.append(_upload(server, f"Note {outcome.tried}"))
            status, answer = server.call("POST", "/api/query", {"question": f"Question {outcome.tried}"})
            if (status, answer["status"]) != (200, "completed"):
                outcome.wrong.append(f"a question was {status} {answer['status']}")
    _told(stage, slowest, outcome)
    outcome.note += f", the slowest upload {max(uploads):.2f} s"
    if stage.is_full and max(uploads) > UPLOAD_SECONDS:
        outcome.wrong.append(outcome.note)
    check_database(server, outcome)
    return outcome


def passwords(stage: Stage) -> Outcome:
    """Sign in with the right password two hundred times at once; somebody else reads on meanwhile."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.data.mkdir(mode=0o700)
    database = Database(sqlite_url(server.data))
    migrate(database)
    accounts = Accounts(PeopleStore(database), CredentialStore(database), AuditLog(database))
    ann, ben = (accounts.add(name, "member", ACTOR, PASSWORD) for name in ("Ann", "Ben"))
    token, _ = accounts.make_token(ben, "torture", ("read",), 1, ACTOR)
    server.start("/readyz")
    other, statuses = stage.enter(other_process()), Counter[int]()

    def sign_in() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        form = urlencode({"name": "Ann", "password": PASSWORD})
        connection.request("POST", "/login", form, {"Content-Type": "application/x-www-form-urlencoded"})
        statuses[connection.getresponse().status] += 1
        connection.close()

    outcome.tried = stage.count(30, 200)
    threads = [threading.Thread(target=sign_in) for _ in range(outcome.tried)]
    for thread in threads:
        thread.start()
    slowest = _light(server, outcome, other, FLOOD_SECONDS if stage.is_full else 0.0, token)
    for thread in threads:
        thread.join()
    sessions = len(accounts.credentials.sessions_of(ann.id))
    database.close()
    _told(stage, slowest, outcome)
    outcome.note += f", {dict(statuses)}, {sessions} sessions"
    answered = set(statuses) <= {303, 429, 503} and statuses.total() == outcome.tried
    if not answered or not 0 < sessions <= MAX_SESSIONS:
        outcome.wrong.append(outcome.note)
    return outcome


def streams(stage: Stage) -> Outcome:
    """Open two thousand streams: as many as the server carries are written, the others are told to come back."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    server = _server(stage, stub.url)
    many, carried = stage.count(60, 2000), stage.count(30, 500)
    statuses: list[int] = []
    ended: list[str] = []

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        with contextlib.suppress(OSError, http.client.HTTPException):
            body = json.dumps({"question": f"Question {number}"})
            connection.request("POST", "/api/query/stream", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            statuses.append(response.status)
            text = response.read().decode()
            if response.status == 200:
                ended.append("end" if "event: end" in text else text[-300:])
            elif response.status != 503 or not response.getheader("Retry-After"):
                outcome.wrong.append(f"a stream was {response.status}: {text[:200]}")
        connection.close()

    other = stage.enter(other_process())
    server.kill()
    server.environment["MAX_RUNNING_ANSWERS"] = str(carried)
    server.start("/readyz")
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(many)]
    for thread in threads:
        thread.start()
    slowest = _light(server, outcome, other, FLOOD_SECONDS if stage.is_full else 0.0)
    for thread in threads:
        thread.join()
    outcome.tried = many
    if len(statuses) != many or statuses.count(200) < carried:
        outcome.wrong.append(f"{len(statuses)} of {many} streams got an answer, {statuses.count(200)} a stream")
    outcome.lost += [f"a stream ended with {one!r}" for one in ended if one != "end"]
    _told(stage, slowest, outcome)
    outcome.note += f", {statuses.count(200)} streams written, {statuses.count(503)} refused"
    check_database(server, outcome)
    return outcome


def _server(stage: Stage, url: str) -> ServerProcess:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, DESCRIPTORS_NEEDED)), hard))
    server = stage.server(url)
    server.start("/readyz")
    return server


def _upload(server: ServerProcess, text: str) -> float:
    """Add a document, and return how long it took."""
    began = time.monotonic()
    server.upload(f"{text}.txt", text)
    return time.monotonic() - began


def _light(
    server: ServerProcess, outcome: Outcome, other: ProcessPoolExecutor, seconds: float = 0.0, token: str = ""
) -> float:
    """Make light requests from another process, for so long, and return how long the slowest took."""
    took, wrong = other.submit(durations_of_light_requests, server.url, seconds, token).result()
    outcome.wrong += wrong
    return max(took)


def durations_of_light_requests(url: str, seconds: float, token: str) -> tuple[list[float], list[str]]:
    """Return how many seconds each light request took, and those that were not answered 200."""
    took, wrong, end = list[float](), list[str](), time.monotonic() + seconds
    rounds = 0
    while rounds < LIGHT_REQUESTS or time.monotonic() < end:
        rounds += 1
        for path in ("/healthz", "/api/conversations"):
            began = time.monotonic()
            try:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                with urllib.request.urlopen(
                    urllib.request.Request(url + path, headers=headers), timeout=30
                ) as response:
                    response.read()
            except OSError as error:
                wrong.append(f"{path}: {error}")
            took.append(time.monotonic() - began)
        time.sleep(SECONDS_BETWEEN_LIGHT)
    return took, wrong


def other_process() -> ProcessPoolExecutor:
    """Start a process for light requests: this one is busy with the flood."""
    other = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    other.submit(time.sleep, 0).result()
    return other


def _told(stage: Stage, slowest: float, outcome: Outcome) -> None:
    outcome.note = f"the slowest light request took {slowest:.2f} s"
    if stage.is_full and slowest > LIGHT_SECONDS:
        outcome.wrong.append(outcome.note)
