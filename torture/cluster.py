"""A cluster under clients: any of its processes killed, held up, told to end or restarted; nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
import time

from cluster.cluster import PREFIX, Cluster
from testkit.server_process import ServerProcess
from torture.cluster_clients import Client, beside_clients, check_all, check_rows, rows
from torture.kills import upload
from torture.stage import Outcome, Stage, until

CLIENTS = 8
SECONDS_BETWEEN_WORDS = 0.05
SLOW_SECONDS_BETWEEN_WORDS = 0.3
SHORT_LEASE = {"LEASE_SECONDS": "4"}
RECOVERY_TIMEOUT_SECONDS = 60.0
STREAMS_AT_ONCE = 300
FEW_CONNECTIONS = "5"


def _cluster(stage: Stage, url: str, **settings: str) -> Cluster:
    """Return a cluster; in the short form with a shorter lease and a shorter end."""
    own = {} if stage.is_full else SHORT_LEASE | {"DRAIN_SECONDS": "2.5", "LAST_ANSWERS_SECONDS": "5"}
    return stage.cluster(url, **own | settings)


def kill(stage: Stage) -> Outcome:
    """Kill any web or worker at random moments beside clients, and start it again."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url)

    def trouble() -> None:
        for _ in stage.rounds(1, 60):
            time.sleep(stage.chance.uniform(0, 1.5))
            victim = stage.chance.choice(cluster.servers if stage.is_full else cluster.webs)
            victim.kill()
            time.sleep(stage.chance.uniform(0, 1.0))
            victim.start("/readyz")

    beside_clients(cluster, stub, CLIENTS, trouble, outcome)
    return outcome


def rolling(stage: Stage) -> Outcome:
    """Tell each web in turn to end, and start it again: nobody is refused, and no stream breaks."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url)

    def trouble() -> None:
        for _ in stage.rounds(1, 5):
            for web in cluster.webs[: stage.count(2, 3)]:
                web.terminate()
                web.start("/readyz")
                time.sleep(stage.count(2, 4))  # The proxy takes it in again after two good answers.

    crowd = beside_clients(cluster, stub, CLIENTS, trouble, outcome)
    for client in crowd.clients:
        outcome.wrong += [f"question {client.number} was refused: {one}" for one in client.refused]
        if client.breaks:
            outcome.wrong.append(f"question {client.number} broke off {client.breaks} times")
        if client.last is not None and client.last[1]["status"] != "completed":
            outcome.lost.append(f"question {client.number} is {client.last[1]['status']}")
    return outcome


def postgres(stage: Stage) -> Outcome:
    """Kill, hold up and restart PostgreSQL beside clients; /readyz says so meanwhile, and all goes on by itself."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url)

    def away(seconds: float) -> None:
        web = cluster.webs[0]
        if not until(lambda: _ready(web) == 503, RECOVERY_TIMEOUT_SECONDS):
            outcome.wrong.append("/readyz did not say that the database is away")
        time.sleep(seconds)

    def trouble() -> None:
        for number in stage.rounds(1, 15):
            time.sleep(stage.chance.uniform(0.5, 2))
            if number % 3 == 0:
                cluster.postgres.kill()
                away(stage.chance.uniform(0, 3))
                cluster.postgres.start()
            elif number % 3 == 1:
                cluster.postgres.pause()
                away(stage.chance.uniform(0, 6))
                cluster.postgres.resume()
            else:
                cluster.postgres.stop()
                cluster.postgres.start()
            if not until(lambda: all(_ready(web) == 200 for web in cluster.webs), RECOVERY_TIMEOUT_SECONDS):
                outcome.wrong.append("not ready again after a minute")
            cluster.wait_for_proxy()

    beside_clients(cluster, stub, CLIENTS, trouble, outcome)
    return outcome


def proxy(stage: Stage) -> Outcome:
    """Kill the proxy beside clients, and start it again."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url)

    def trouble() -> None:
        for _ in stage.rounds(2, 20):
            time.sleep(stage.chance.uniform(0.2, 1.5))
            cluster.proxy.kill()
            time.sleep(stage.chance.uniform(0, 0.5))
            cluster.proxy.start()
            cluster.wait_for_proxy()

    beside_clients(cluster, stub, CLIENTS, trouble, outcome)
    return outcome


def resume(stage: Stage) -> Outcome:
    """Follow answers through other webs than those that write them, from any position, and end with a dead one."""
    outcome, stub = Outcome(), stage.echo(SLOW_SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url)
    for number in stage.rounds(2, 20):
        one, other, third = cluster.webs
        stream = one.stream(f"Question {number}", key=f"key {number}").read(20)
        assert stream.turn_id is not None
        kept, half = other.follow(stream.turn_id, 0), third.follow(stream.turn_id, 7)
        if number % 2:
            one.kill()
        began = time.monotonic()
        texts = [kept.read().text, half.read().text]
        stream.read()
        took = time.monotonic() - began
        turn = other.call("GET", f"/api/turns/{stream.turn_id}")[1]
        if (texts[0], texts[1]) != (turn["answer"], turn["answer"][7:]) or not turn["answer"].startswith(stream.text):
            outcome.lost.append(f"turn {stream.turn_id}: {texts} and {stream.text!r} of {turn['answer']!r}")
        if kept.last is None or half.last is None or turn["status"] != ("interrupted" if number % 2 else "completed"):
            outcome.wrong.append(f"turn {stream.turn_id} is {turn['status']}, its readers got {kept.last}")
        if number % 2:
            if took > 20.0:
                outcome.wrong.append(f"the turn of a dead web ended after {took:.1f} s")
            one.start("/readyz")
        cluster.webs.append(cluster.webs.pop(0))
        outcome.tried += 2
    check_rows(cluster, outcome)
    return outcome


def streams(stage: Stage) -> Outcome:
    """Write three hundred answers at once with five connections to PostgreSQL for each web."""
    outcome, stub = Outcome(), stage.echo(SLOW_SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url, DATABASE_CONNECTIONS=FEW_CONNECTIONS)
    for again in stage.rounds(1, 3):
        count = stage.count(40, STREAMS_AT_ONCE)
        clients = [Client(cluster.entrance, again * count + number) for number in range(count)]
        _run_all(clients)
        for client in clients:
            outcome.wrong += [f"question {client.number} was refused: {one}" for one in client.refused]
        check_all(cluster, clients, stub, outcome)
    return outcome


def told_to_end(stage: Stage) -> Outcome:
    """Tell a web to end while fifty answers are written: all of them come to their ends there."""
    outcome, stub = Outcome(), stage.echo(SLOW_SECONDS_BETWEEN_WORDS)
    cluster = _cluster(stage, stub.url)
    for again in stage.rounds(1, 5):
        count = stage.count(15, 50)
        web = cluster.webs[again % len(cluster.webs)]
        clients = [Client(web, again * count + number) for number in range(count)]
        assert web.process is not None
        threading.Timer(1.0, web.process.terminate).start()
        _run_all(clients)
        for client in clients:
            if client.last is None or client.last[1]["status"] != "completed":
                outcome.lost.append(f"question {client.number} ended with {client.last}")
        web.process.wait(60)
        web.start("/readyz")
        check_all(cluster, clients, stub, outcome)
    return outcome


def hang(stage: Stage) -> Outcome:
    """Hold a web up for longer than its lease; what it takes first, once it goes on, is its own."""
    outcome, stub = Outcome(), stage.echo()
    cluster = _cluster(stage, stub.url)
    for number in stage.rounds(1, 5):
        web = cluster.webs[number % 3]
        running = len(cluster.servers)
        _send(web, signal.SIGSTOP)
        if not until(lambda running=running: _living(cluster) < running, 30):  # type: ignore[misc]
            outcome.wrong.append("a web that hangs was never taken for dead")
        _send(web, signal.SIGCONT)
        client = Client(web, number)
        client.run()
        if client.last is None or client.last[1]["status"] != "completed":
            outcome.wrong.append(f"what was asked after a hang ended with {client.last}")
        check_all(cluster, [client], stub, outcome)
    return outcome


def documents(stage: Stage) -> Outcome:
    """Kill workers while documents come through any web; all become ready, and what is deleted leaves no file."""
    outcome, stub = Outcome(), stage.echo()
    cluster = _cluster(stage, stub.url)
    over = threading.Event()

    def kill_workers() -> None:
        while not over.wait(stage.chance.uniform(0.5, 3)):
            worker = stage.chance.choice(cluster.workers)
            worker.kill()
            time.sleep(stage.chance.uniform(0, 1))
            worker.start()

    killer = threading.Thread(target=kill_workers)
    killer.start()
    ids = []
    for number in stage.rounds(6, 60):
        text = "\n\n".join(f"Paragraph {number}.{n} of geese. " + "Words and words. " * 45 for n in range(20))
        document = upload(cluster.webs[number % 3], f"geese{number}.txt", text)
        if document is None:
            outcome.lost.append(f"document {number} was not taken")
            continue
        ids.append(document)
        outcome.tried += 1
    states: dict[str, int] = {}

    def all_ended() -> bool:
        states.clear()
        for state, count in _states(cluster):
            states[state] = count
        return set(states) <= {"ready", "failed"}

    ended = until(all_ended, 300)
    over.set()
    killer.join()
    if not ended or "failed" in states:
        outcome.lost.append(f"documents are {states}")
    for number, document in enumerate(ids):
        status, _ = cluster.webs[(number + 1) % 3].call("DELETE", f"/api/documents/{document}")
        if status != 204:
            outcome.wrong.append(f"a deletion was {status}")
    kept = {file for (file,) in rows(cluster, "SELECT file FROM documents")}
    until(lambda: cluster.s3.names(PREFIX) <= kept, RECOVERY_TIMEOUT_SECONDS)
    outcome.wrong += [f"the file {name} is left" for name in cluster.s3.names(PREFIX) - kept]
    return outcome


def _states(cluster: Cluster) -> list[tuple[str, int]]:
    return [(state, count) for state, count in rows(cluster, "SELECT state, COUNT(*) FROM documents GROUP BY state")]


def _living(cluster: Cluster) -> int:
    return int(rows(cluster, "SELECT COUNT(*) FROM processes")[0][0])


def _run_all(clients: list[Client]) -> None:
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _ready(web: ServerProcess) -> int:
    try:
        return web.call("GET", "/readyz")[0]
    except OSError:
        return 0


def _send(server: ServerProcess, number: int) -> None:
    assert server.process is not None
    os.killpg(server.process.pid, number)


FAULTS = {
    "cluster-kill": kill,
    "cluster-rolling": rolling,
    "cluster-postgres": postgres,
    "cluster-proxy": proxy,
    "cluster-resume": resume,
    "cluster-streams": streams,
    "cluster-term": told_to_end,
    "cluster-hang": hang,
    "cluster-documents": documents,
}
