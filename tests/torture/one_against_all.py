"""One person with heavy questions, documents and half requests, all at once; everybody else's light requests."""

import contextlib
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack

from rag_assistant.accounts.accounts import Accounts
from rag_assistant.storage.accounts.credentials import CredentialStore
from rag_assistant.storage.accounts.people import AuditLog, PeopleStore
from rag_assistant.storage.database import Database, sqlite_url
from rag_assistant.storage.migrate import migrate
from tests.testkit.people import ACTOR, PASSWORD
from tests.testkit.server_process import ServerProcess
from tests.torture.floods import HALVES, durations_of_light_requests, other_process
from tests.torture.stage import Outcome, Stage, check_database, until

ATTACKERS = 8
SECONDS = 20.0
WARM_UP_SECONDS = 5.0
MAX_SECONDS = 1.0
HEAVY = "Which of all the geese in every document hissed at whom, and why? " * 50
DOCUMENT = "\n\n".join(f"Goose {n} was counted by keeper {n % 7} of the lighthouse. " * 8 for n in range(400))


def one_against_all(stage: Stage) -> Outcome:
    """Let one member do the worst that a member may, and measure the light requests of another one."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.data.mkdir(mode=0o700)
    database = Database(sqlite_url(server.data))
    migrate(database)
    accounts = Accounts(PeopleStore(database), CredentialStore(database), AuditLog(database))
    ann, ben = (accounts.add(name, "member", ACTOR, PASSWORD) for name in ("Ann", "Ben"))
    anns, _ = accounts.make_token(ann, "torture", ("read", "ask", "documents"), 1, ACTOR)
    bens, _ = accounts.make_token(ben, "torture", ("read",), 1, ACTOR)
    database.close()
    server.start("/readyz")
    other, ended, statuses = stage.enter(other_process()), threading.Event(), Counter[str]()
    time.sleep(stage.count(0, 1) * WARM_UP_SECONDS)  # Chroma loads in the background.
    usual, wrong = other.submit(durations_of_light_requests, server.url, 0.0, bens).result()
    attackers = [
        threading.Thread(target=attack, args=(server, anns, n, ended, statuses), daemon=True) for n in range(ATTACKERS)
    ]
    attackers.append(threading.Thread(target=hold, args=(server, stage.count(100, 2000), ended, statuses), daemon=True))
    for thread in attackers:
        thread.start()
    took, more = other.submit(durations_of_light_requests, server.url, stage.count(0, 1) * SECONDS, bens).result()
    ended.set()
    for thread in attackers:
        thread.join()
    outcome.wrong += wrong + more
    outcome.tried = statuses.total()
    late, median = sorted(took)[int(len(took) * 0.99) - 1], sorted(took)[len(took) // 2]
    outcome.note = (
        f"{len(took)} light requests took {median:.3f} s (median; {sorted(usual)[len(usual) // 2]:.3f} s beforehand), "
        f"{late:.2f} s (99th percentile), {max(took):.2f} s (slowest); {dict(statuses)}"
    )
    if stage.is_full and late > MAX_SECONDS:
        outcome.wrong.append(outcome.note)
    until(lambda: server.call("GET", "/healthz")[0] == 200, 10)
    check_database(server, outcome)
    return outcome


def attack(server: ServerProcess, token: str, number: int, ended: threading.Event, statuses: Counter[str]) -> None:
    """Ask long questions and send documents, as fast as they are answered."""
    count = 0
    while not ended.is_set():
        count += 1
        if number % 2:
            head = f'Content-Disposition: form-data; name="file"; filename="{number}.{count}.txt"'
            body = f"--x\r\n{head}\r\n\r\n{number} {count}\n\n{DOCUMENT}\r\n--x--\r\n"
            kind, path = "multipart/form-data; boundary=x", "/api/documents"
        else:
            body = json.dumps({"question": f"Question {number}{count:06}: {HEAVY}"})
            kind, path = "application/json", "/api/query"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(server.url + path, body.encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                statuses[f"{path} {response.status}"] += 1
        except urllib.error.HTTPError as error:
            error.close()
            statuses[f"{path} {error.code}"] += 1
        except OSError:
            statuses[f"{path} broken"] += 1


def hold(server: ServerProcess, count: int, ended: threading.Event, statuses: Counter[str]) -> None:
    """Hold half requests of all kinds, and open them again once they are closed."""
    while not ended.is_set():
        with ExitStack() as stack:
            for number in range(count):
                with contextlib.suppress(OSError):
                    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 5))
                    connection.sendall(list(HALVES.values())[number % len(HALVES)])
                    statuses["half requests"] += 1
            ended.wait(2)
