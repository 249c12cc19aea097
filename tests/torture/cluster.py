"""A cluster under clients: any of its processes killed, held up, told to end or restarted; nothing is lost."""

import io
import os
import signal
import subprocess
import tarfile
import threading
import time
from pathlib import Path

from deploy.cluster.cluster import Cluster
from rag_assistant.storage.migrate import SCHEMA_REVISION
from tests.testkit.server_process import PROJECT, Launched, ServerProcess, run_command
from tests.torture import clients, cluster_files, cluster_parts, copies, kills
from tests.torture.cluster_clients import Client, beside_clients, check_all, check_unbroken
from tests.torture.entrance import on_cluster
from tests.torture.kills import upload
from tests.torture.stage import Outcome, Skipped, Stage, check_database, rows, until

CLIENTS = 8
SECONDS_BETWEEN_WORDS = 0.05
SLOW_SECONDS_BETWEEN_WORDS = 0.3
STREAMS_AT_ONCE = 300
FEW_CONNECTIONS = "5"


def kill(stage: Stage) -> Outcome:
    """Kill any web or worker at random moments beside clients, and start it again."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url)

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
    cluster = stage.cluster(stub.url)

    def trouble() -> None:
        for _ in stage.rounds(1, 5):
            for web in cluster.webs[: stage.count(2, 3)]:
                web.terminate()
                web.start("/readyz")
                time.sleep(stage.count(2, 4))  # The proxy takes it in again after two good answers.

    check_unbroken(beside_clients(cluster, stub, CLIENTS, trouble, outcome), outcome)
    return outcome


def upgrade(stage: Stage) -> Outcome:
    """Replace the version before the newest schema by this one, one server after the other, as in ``rolling``."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    before, upgraded = version_before(stage.folder / "before"), set[str]()

    def launch(environment: dict[str, str], log: Path) -> Launched:
        return run_command(environment, log, PROJECT if environment["PORT"] in upgraded else before)

    cluster = stage.cluster(stub.url, launch=launch)

    def trouble() -> None:
        for number, server in enumerate(cluster.servers):
            upload(cluster.entrance, f"geese{number}.txt", f"Geese number {number} hiss. " * 200)
            server.terminate()
            upgraded.add(server.environment["PORT"])
            server.start("/readyz")
            time.sleep(4)  # The proxy takes it in again after two good answers.
        cluster.entrance.wait_for_documents()

    check_unbroken(beside_clients(cluster, stub, CLIENTS, trouble, outcome), outcome)
    if rows(cluster.entrance, "SELECT version_num FROM alembic_version") != [(SCHEMA_REVISION,)]:
        outcome.wrong.append("the schema is not the newest")
    states = rows(cluster.entrance, "SELECT state FROM documents WHERE substr(name, 1, 5) = 'geese'")
    if states != [("ready",)] * len(cluster.servers):
        outcome.lost.append(f"documents are {states}")
    return outcome


def version_before(folder: Path) -> Path:
    """Write the newest version that knows an older schema into a folder. Raises Skipped."""
    folder.mkdir()
    git = ["git", "-C", str(PROJECT)]
    changed = [*git, "log", "-1", "--format=%P", "-G^SCHEMA_REVISION", "--", "rag_assistant/storage/migrate.py"]
    try:
        commit = subprocess.run(changed, check=True, capture_output=True, text=True).stdout.split()[0]
        files = subprocess.run([*git, "archive", commit], check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError, IndexError) as missing:
        raise Skipped("the version before is taken from git's history") from missing
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def follow(stage: Stage) -> Outcome:
    """Follow answers through other webs than those that write them, from any position, and end with a dead one."""
    outcome, stub = Outcome(), stage.echo(SLOW_SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url)
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
    check_database(cluster.entrance, outcome)
    return outcome


def resume(stage: Stage) -> Outcome:
    """Pick an answer up from each position through other webs than the one that writes it, which is killed, too."""
    stub = stage.echo(clients.SECONDS_BETWEEN_WORDS)
    writer, *others = stage.cluster(stub.url).webs
    return clients.follow_from_everywhere(stage, stub, writer, others)


def streams(stage: Stage) -> Outcome:
    """Write three hundred answers at once with five connections to PostgreSQL for each web."""
    outcome, stub = Outcome(), stage.echo(SLOW_SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url, {"DATABASE_CONNECTIONS": FEW_CONNECTIONS})
    for again in stage.rounds(1, 3):
        count = stage.count(40, STREAMS_AT_ONCE)
        asked = [Client(cluster.entrance, again * count + number) for number in range(count)]
        _run_all(asked)
        for client in asked:
            outcome.wrong += [f"question {client.number} was refused: {one}" for one in client.refused]
        check_all(cluster, asked, stub, outcome)
    return outcome


def told_to_end(stage: Stage) -> Outcome:
    """Tell a web to end while fifty answers are written: all of them come to their ends there."""
    outcome, stub = Outcome(), stage.echo(SLOW_SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url)
    for again in stage.rounds(1, 5):
        count = stage.count(15, 50)
        web = cluster.webs[again % len(cluster.webs)]
        asked = [Client(web, again * count + number) for number in range(count)]
        assert web.process is not None
        threading.Timer(1.0, web.process.terminate).start()
        _run_all(asked)
        for client in asked:
            if client.last is None or client.last[1]["status"] != "completed":
                outcome.lost.append(f"question {client.number} ended with {client.last and client.last[1]['status']}")
        web.process.wait(60)
        web.start("/readyz")
        check_all(cluster, asked, stub, outcome)
    return outcome


def hang(stage: Stage) -> Outcome:
    """Hold a web up for longer than its lease; what it takes first, once it goes on, is its own."""
    outcome, stub = Outcome(), stage.echo()
    cluster = stage.cluster(stub.url)
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


def _living(cluster: Cluster) -> int:
    return int(rows(cluster.entrance, "SELECT COUNT(*) FROM processes")[0][0])


def _run_all(clients: list[Client]) -> None:
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send(server: ServerProcess, number: int) -> None:
    assert server.process is not None
    os.killpg(server.process.pid, number)


FAULTS = {
    "cluster-kill": kill,
    "cluster-kill-turn": on_cluster(kills.steps_of_a_turn),
    "cluster-kill-ingest": on_cluster(kills.steps_of_an_ingest),
    "cluster-gone": on_cluster(clients.gone),
    "cluster-resume": resume,
    "cluster-follow": follow,
    "cluster-retries": on_cluster(clients.retries),
    "cluster-tabs": on_cluster(clients.tabs),
    "cluster-crowd": on_cluster(clients.crowd),
    "cluster-streams": streams,
    "cluster-rolling": rolling,
    "cluster-upgrade": upgrade,
    "cluster-term": told_to_end,
    "cluster-hang": hang,
    "cluster-postgres": cluster_parts.postgres,
    "cluster-s3": cluster_files.s3,
    "cluster-proxy": cluster_parts.proxy,
    "cluster-documents": cluster_files.workers,
    "cluster-backup": on_cluster(copies.backups),
}
