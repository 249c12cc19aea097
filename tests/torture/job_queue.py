"""The job queue's file damaged, emptied, taken away and locked while documents come: each is ready, once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rag_assistant.runtime.data_dir import QUEUE_FILE
from tests.torture.asking import Asked, ask_all, check_all
from tests.torture.kills import check_document, upload
from tests.torture.stage import Outcome, Stage, check_database

CLIENTS = 3
DOCUMENTS = 3
SECONDS_OF_A_LOCK = 2.0
DAMAGED_BYTES = 4096


def trouble(stage: Stage) -> Outcome:
    """Break the queue between two of three uploads, while others ask."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.start("/readyz")
    for number in stage.rounds(len(TROUBLES), 15 * len(TROUBLES)):
        asked = [Asked(server, number * CLIENTS + client) for client in range(CLIENTS)]
        sent = {f"geese{number}-{one}.txt": _text(number, one) for one in range(DOCUMENTS)}
        before = stage.chance.randrange(DOCUMENTS)

        def meanwhile(number: int = number, sent: dict[str, str] = sent, before: int = before) -> None:
            for place, (name, text) in enumerate(sent.items()):
                if place == before:
                    TROUBLES[number % len(TROUBLES)](stage, server.data / QUEUE_FILE)
                upload(server, name, text)

        ask_all(asked, meanwhile)
        check_all(asked, stub, outcome)
        for name, text in sent.items():
            check_document(server, name, text, outcome)
        outcome.tried += DOCUMENTS
    server.kill()
    server.start("/readyz")
    check_database(server, outcome)
    return outcome


def _text(number: int, one: int) -> str:
    return "\n\n".join(f"Paragraph {number}.{one}.{n} of geese. " + "Words and words. " * 45 for n in range(20))


def _damage(stage: Stage, path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(stage.chance.randrange(path.stat().st_size))
        file.write(stage.chance.randbytes(DAMAGED_BYTES))


def _empty(_stage: Stage, path: Path) -> None:
    path.write_bytes(b"")


def _take_away(_stage: Stage, path: Path) -> None:
    path.unlink(missing_ok=True)


def _lock(_stage: Stage, path: Path) -> None:
    """Hold the file's lock as another process would, for as long as nobody else can write."""
    held = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            held.set()
            threading.Event().wait(SECONDS_OF_A_LOCK)
            connection.execute("ROLLBACK")

    threading.Thread(target=hold).start()
    held.wait(SECONDS_OF_A_LOCK)


TROUBLES: tuple[Callable[[Stage, Path], None], ...] = (_damage, _empty, _take_away, _lock)
