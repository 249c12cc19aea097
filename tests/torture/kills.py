"""kill -9 at random moments, and at every step of a turn and of an ingest."""

import contextlib
import http.client
import json
import time
import urllib.error
import urllib.request

from tests.testkit.server_process import ServerEnded, ServerProcess
from tests.torture.asking import Asked, ask_all, check_all
from tests.torture.stage import Outcome, Stage, check_database, rows, start_again, until

CLIENTS = 8
MAX_SECONDS_BEFORE_A_KILL = 0.5
SECONDS_BETWEEN_WORDS = 0.005
# Long enough for the longest answer, so that a step that is never reached is told as such.
STEP_TIMEOUT_SECONDS = 20.0

TURNS = "rag_assistant.storage.conversations.turns:TurnStore"
ANSWERS = "rag_assistant.storage.conversations.turn_endings:AnswerLog"
STEPS_OF_A_TURN = (
    f"{TURNS}.accept:before:1",
    f"{TURNS}.accept:after:1",
    "rag_assistant.answering.assistant:answer:before:1",
    f"{TURNS}.keep_receipt:before:1",
    f"{TURNS}.keep_receipt:after:1",
    f"{ANSWERS}.append_all:before:1",
    f"{ANSWERS}.append_all:after:1",
    f"{ANSWERS}.append_all:after:2",
    f"{TURNS}.finish:before:1",
    f"{TURNS}.finish:after:1",
    "rag_assistant.answering.live:LiveTurn.finish:before:1",
    "rag_assistant.answering.live:LiveTurn.finish:after:1",
)

READING = "rag_assistant.documents.reading"
DOCUMENTS = "rag_assistant.storage.documents.documents:DocumentStore"
CHUNKS = "rag_assistant.storage.documents.chunks:ChunkStore"
EMBEDDINGS = "rag_assistant.storage.documents.embeddings:EmbeddingStore"
STEPS_OF_AN_INGEST = (
    "rag_assistant.documents.uploads:Uploads.receive:after:1",
    f"{DOCUMENTS}.add:after:1",
    "rag_assistant.runtime.background:JobQueue.add:after:2",
    f"{DOCUMENTS}.take:before:1",
    f"{DOCUMENTS}.take:after:1",
    f"{READING}:extract:after:1",
    f"{READING}:chunk_document:after:1",
    f"{CHUNKS}.keep_text:before:1",
    f"{CHUNKS}.keep_text:after:1",
    f"{EMBEDDINGS}.keep_embeddings:before:1",
    f"{EMBEDDINGS}.keep_embeddings:after:1",
    f"{EMBEDDINGS}.keep_embeddings:after:2",
    f"{DOCUMENTS}.finish:before:1",
    f"{DOCUMENTS}.finish:after:1",
)
BOUNDARY = "a-boundary"


def at_random(stage: Stage) -> Outcome:
    """Kill a server while eight clients ask; look at each question, shown text and answer after the next start."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    server = stage.server(stub.url)
    server.start("/readyz")
    cut_off = 0
    for number in stage.rounds(3, 1000):
        asked = [Asked(server, number * CLIENTS + client) for client in range(CLIENTS)]
        seconds = stage.chance.uniform(0, MAX_SECONDS_BEFORE_A_KILL)

        def kill_soon(seconds: float = seconds) -> None:
            time.sleep(seconds)
            server.kill()

        ask_all(asked, kill_soon)
        start_again(server, outcome)
        check_all(asked, stub, outcome)
        cut_off += sum(one.cut_off for one in asked)
    check_database(server, outcome)
    outcome.note = f"{cut_off} answers were cut off in the middle"
    return outcome


def steps_of_a_turn(stage: Stage) -> Outcome:
    """Kill a server at each step from a question to its stored answer."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    server = stage.victim(stub.url)
    server.start("/readyz")
    server.kill()
    steps = STEPS_OF_A_TURN[:: 1 if stage.is_full else 4]
    for number in stage.rounds(len(steps), 10 * len(steps)):
        step = steps[number % len(steps)]
        asked = Asked(server, number)
        start_until(server, step)
        asked.ask()
        if not killed(server):
            outcome.wrong.append(f"{step} was never reached")
        start_again(server, outcome)
        check_all([asked], stub, outcome)
        server.kill()
    check_database(server, outcome)
    return outcome


def steps_of_an_ingest(stage: Stage) -> Outcome:
    """Kill a server at each step from an upload to a document that is found."""
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    server = stage.victim(stub.url)
    server.start("/readyz")
    server.kill()
    steps = STEPS_OF_AN_INGEST[:: 1 if stage.is_full else 5]
    for number in stage.rounds(len(steps), 10 * len(steps)):
        step, name = steps[number % len(steps)], f"geese{number}.txt"
        text = "\n\n".join(f"Paragraph {number}.{n} of geese. " + "Words and words. " * 45 for n in range(40))
        start_until(server, step)
        accepted = upload(server, name, text)
        if not killed(server):
            outcome.wrong.append(f"{step} was never reached")
        start_again(server, outcome)
        if accepted is None:  # Who sent it has no answer, and sends it again.
            accepted = upload(server, name, text)
        check_document(server, name, text, outcome)
        outcome.tried += 1
        server.kill()
    check_database(server, outcome)
    return outcome


def start_until(server: ServerProcess, step: str) -> None:
    """Start a server that ends itself at a step, be it before it is ready: work of the last round may go on."""
    server.environment["KILL_AT"] = step
    try:
        with contextlib.suppress(ServerEnded):
            server.start("/readyz")
    finally:
        del server.environment["KILL_AT"]


def killed(server: ServerProcess) -> bool:
    """Return whether a server ended itself; one that did not is ended now."""
    assert server.process is not None
    came = until(lambda: server.process is not None and server.process.poll() is not None, STEP_TIMEOUT_SECONDS)
    server.kill()
    return came


def upload(server: ServerProcess, name: str, text: str) -> int | None:
    """Send a document and return its id, or ``None`` where the connection broke before the answer."""
    body = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        f"Content-Type: text/plain\r\n\r\n{text}\r\n--{BOUNDARY}--\r\n"
    )
    request = urllib.request.Request(
        f"{server.url}/api/documents", body.encode(), {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(json.loads(response.read())["document_id"])
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException):
        return None


def check_document(server: ServerProcess, name: str, text: str, outcome: Outcome) -> None:
    """Wait until a document is ready, and compare what is kept of it with what was sent."""

    def found() -> list[tuple[int, str, int, int]]:
        return rows(server, f"SELECT id, state, chunks, embedded FROM documents WHERE name = '{name}'")

    if not until(lambda: any(state in ("ready", "failed") for _, state, _, _ in found()), 60):
        outcome.lost.append(f"{name}: {found()} after 60 s")
        return
    if len(found()) > 1:
        outcome.doubled.append(f"{name} is there {len(found())} times")
    document_id, state, chunks, embedded = found()[0]
    if state != "ready" or chunks != embedded:
        outcome.lost.append(f"{name} is {state} with {embedded} of {chunks} chunks")
    own = f"(SELECT id FROM chunks WHERE document_id = {document_id})"
    words_key = "chunk_id" if "DATABASE_URL" in server.environment else "rowid"
    for table, key in (("embeddings", "chunk_id"), ("chunk_words", words_key)):
        if (held := rows(server, f"SELECT COUNT(*) FROM {table} WHERE {key} IN {own}")[0][0]) != chunks:
            (outcome.doubled if held > chunks else outcome.lost).append(f"{name}: {held} of {chunks} in {table}")
    kept = "".join(one for (one,) in rows(server, f"SELECT text FROM chunks WHERE id IN {own} ORDER BY id"))
    if "".join(kept.split()) != "".join(text.split()):
        outcome.lost.append(f"{name}: the chunks are not the text")
