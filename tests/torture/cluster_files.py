"""Documents that come through any web while workers, or S3, are in trouble: none is lost, and none leaves a file."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from deploy.cluster.cluster import PREFIX, Cluster
from tests.torture.cluster_clients import beside_clients, check_unbroken
from tests.torture.cluster_parts import in_trouble
from tests.torture.kills import upload
from tests.torture.stage import Outcome, Stage, rows, until

CLIENTS = 4
SECONDS_BETWEEN_WORDS = 0.05
READING_TIMEOUT_SECONDS = 300.0
RECOVERY_TIMEOUT_SECONDS = 60.0
SECONDS_BETWEEN_TRIES = 0.2
# What is answered while S3 is away, or full.
AWAY = (503, 507)


def workers(stage: Stage) -> Outcome:
    """Kill workers while documents come."""
    outcome, stub = Outcome(), stage.echo()
    cluster = stage.cluster(stub.url)

    def trouble() -> None:
        time.sleep(stage.chance.uniform(0.5, 3))
        worker = stage.chance.choice(cluster.workers)
        worker.kill()
        time.sleep(stage.chance.uniform(0, 1))
        worker.start()

    _documents_beside(cluster, stage.rounds(6, 60), trouble, outcome)
    return outcome


def s3(stage: Stage) -> Outcome:
    """Kill S3, hold it up and slow it down while documents come and questions are asked, which do not need it."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    cluster = stage.cluster(stub.url)

    times = count()

    def trouble() -> None:
        time.sleep(stage.chance.uniform(0.5, 2))
        in_trouble(stage, cluster.s3, next(times), 6.0, lambda: None)

    def documents_come() -> None:
        _documents_beside(cluster, stage.rounds(6, 120), trouble, outcome)

    check_unbroken(beside_clients(cluster, stub, CLIENTS, documents_come, outcome), outcome)
    return outcome


def _documents_beside(cluster: Cluster, numbers: Iterable[int], trouble: Callable[[], None], outcome: Outcome) -> None:
    """Send documents beside trouble; all become ready and can be read, and what is deleted leaves no file."""
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(_send_all, cluster, numbers, outcome)
        # Here, since what a thread has started may end with it.
        while not sending.done():
            trouble()
    for name, times in rows(cluster.entrance, "SELECT name, COUNT(*) FROM documents GROUP BY name HAVING COUNT(*) > 1"):
        outcome.doubled.append(f"{name} is there {times} times")
    for document, text in sending.result().items():
        if _file(cluster, document) != text.encode():
            outcome.lost.append(f"the file of document {document}")
        status, _ = cluster.webs[(document + 1) % 3].call("DELETE", f"/api/documents/{document}")
        if status != 204:
            outcome.wrong.append(f"a deletion was {status}")
    kept = {file for (file,) in rows(cluster.entrance, "SELECT file FROM documents")}
    until(lambda: cluster.s3.names(PREFIX) <= kept, RECOVERY_TIMEOUT_SECONDS)
    outcome.wrong += [f"the file {name} is left" for name in cluster.s3.names(PREFIX) - kept]


def _send_all(cluster: Cluster, numbers: Iterable[int], outcome: Outcome) -> dict[int, str]:
    """Send documents, and return their texts by their ids when all of them are ready."""
    texts = {}
    for number in numbers:
        text = "\n\n".join(f"Paragraph {number}.{n} of geese. " + "Words and words. " * 45 for n in range(20))
        document = _upload(cluster, number, text, outcome)
        if document is not None:
            texts[document] = text
        outcome.tried += 1
    states = "SELECT state, COUNT(*) FROM documents WHERE state != 'ready' GROUP BY state"
    until(lambda: not rows(cluster.entrance, states), READING_TIMEOUT_SECONDS)
    outcome.lost += [f"{number} documents are {state}" for state, number in rows(cluster.entrance, states)]
    return texts


def _upload(cluster: Cluster, number: int, text: str, outcome: Outcome) -> int | None:
    """Send a document through one web after the other until it is taken."""
    end = time.monotonic() + RECOVERY_TIMEOUT_SECONDS
    tries = 0
    while time.monotonic() < end:
        tries += 1
        try:
            document = upload(cluster.webs[(number + tries) % 3], f"geese{number}.txt", text)
        except urllib.error.HTTPError as refusal:
            with refusal:
                if refusal.code not in AWAY:
                    outcome.wrong.append(f"an upload was {refusal.code}: {refusal.read()[:300]!r}")
        else:
            if document is not None:
                return document
        time.sleep(SECONDS_BETWEEN_TRIES)
    outcome.lost.append(f"document {number} was not taken")
    return None


def _file(cluster: Cluster, document: int) -> bytes | None:
    """Return the file of a document through a web."""
    try:
        with urllib.request.urlopen(f"{cluster.webs[document % 3].url}/api/documents/{document}/file") as file:
            return bytes(file.read())
    except (OSError, http.client.HTTPException):
        return None
