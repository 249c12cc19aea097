"""Many questions and documents, and a clock that jumps: nothing grows that should not, and order stays."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testkit.server_process import run_command
from tests.torture.asking import Asked
from tests.torture.clients import ask_in_turn, check_locks
from tests.torture.echo import answer_to
from tests.torture.kills import upload
from tests.torture.processes import held_by
from tests.torture.stage import Outcome, Skipped, Stage, check_database, rows

CLIENTS = 8
ROUND = 200
DOCUMENTS_OF_A_ROUND = 20
WARM_UP_SHARE = 0.25
# Of 20,000 turns and 2,000 documents, the vectors of which are kept in memory.
MAX_GROWTH_MB = 60
MAX_WAL_MB = 64
STREAMS = 200
SECONDS_BETWEEN_WORDS = 1.0

FAKETIME = tuple(Path(f"/usr/lib/{kind}-linux-gnu/faketime/libfaketime.so.1") for kind in ("x86_64", "aarch64"))
JUMPS = ("-1d", "+1d", "+0", "-1h", "+1h", "+3650d", "+0")


def soak(stage: Stage) -> Outcome:
    """Answer 20,000 questions and take in 2,000 documents beside two hundred open streams."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.start("/readyz")
    rounds = stage.count(2, 100)
    warm: dict[str, int] = {}
    for number in stage.rounds(2, 100):
        size = stage.count(20, ROUND)
        asked = [Asked(server, number * ROUND + n) for n in range(size)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(Asked.ask, asked))
        for one in asked:
            if one.stream is None or one.stream.text != answer_to(one.number):
                outcome.lost.append(f"question {one.number} got {one.stream and one.stream.text!r}")
        for n in range(stage.count(2, DOCUMENTS_OF_A_ROUND)):
            upload(server, f"geese{number}.{n}.txt", f"Geese {number}.{n} hiss. " * 40)
        server.wait_for_documents()
        stub.calls()
        outcome.tried += size
        if number + 1 == max(1, int(rounds * WARM_UP_SHARE)):
            warm = held_by(server)
    after = held_by(server)
    wal = _wal_beside_streams(stage, outcome)
    outcome.note = f"after a quarter: {warm}; at the end: {after}; SQLite's log had {wal:.0f} MB at most"
    if after["MB"] - warm["MB"] > MAX_GROWTH_MB or after["threads"] > warm["threads"] + 4 or wal > MAX_WAL_MB:
        outcome.wrong.append(outcome.note)
    if after["descriptors"] > warm["descriptors"] + 2 * CLIENTS:
        outcome.wrong.append(outcome.note)
    check_database(server, outcome)
    check_locks(server, outcome)
    return outcome


def _wal_beside_streams(stage: Stage, outcome: Outcome) -> float:
    """Return how large SQLite's log becomes, in MB, while many streams are open and others write."""
    server = stage.server(stage.echo(SECONDS_BETWEEN_WORDS).url)
    server.start("/readyz")
    open_streams = [server.stream(f"Question {n}") for n in range(stage.count(20, STREAMS))]
    largest = 0.0
    end = time.monotonic() + stage.count(3, 20)
    while time.monotonic() < end:
        upload(server, f"{time.monotonic_ns()}.txt", f"Geese {time.monotonic_ns()} hiss. " * 400)
        largest = max(largest, (server.data / "assistant.db-wal").stat().st_size / 1e6)
    for number, stream in enumerate(open_streams):
        if stream.read().text != answer_to(number):
            outcome.lost.append(f"stream {number} ended with {stream.last}")
    return largest


def clock(stage: Stage) -> Outcome:
    """Let the clock jump by hours, days and years between questions."""
    library = next((path for path in FAKETIME if path.exists()), None)
    if library is None:
        raise Skipped("libfaketime is not on this machine")
    outcome, stub = Outcome(), stage.echo()
    moment = stage.folder / "moment"
    moment.write_text("+0")
    server = stage.server(stub.url, launch=run_command)
    server.environment |= {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(moment),
        "FAKETIME_NO_CACHE": "1",
    }
    server.start("/readyz")
    conversation = server.call("POST", "/api/conversations", {})[1]["conversation_id"]
    turns = []
    for number in stage.rounds(len(JUMPS), 40 * len(JUMPS)):
        moment.write_text(JUMPS[number % len(JUMPS)])
        turns.append(ask_in_turn(server, f"Question {number}", conversation, outcome))
        outcome.tried += 1
    if turns != list(range(1, len(turns) + 1)):
        outcome.wrong.append(f"the turns are {turns}")
    days = {day for (day,) in rows(server, "SELECT date(created_at) FROM turns")}
    if len(days) < len(set(JUMPS)) - 2:
        outcome.wrong.append(f"the clock did not jump: {days}")
    last = stub.requests[-1].messages
    seen = [message["content"] for message in last if message["role"] == "user"]
    if [question.split()[1] for question in seen[:-1]] != [str(n) for n in range(len(turns) - 6, len(turns) - 1)]:
        outcome.wrong.append(f"the model saw {seen}")
    check_database(server, outcome)
    return outcome
