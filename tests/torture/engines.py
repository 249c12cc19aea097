"""Chroma killed, wedged and corrupted while documents come, go and are searched: exact search answers meanwhile."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.testkit.server_process import ServerProcess
from tests.torture.kills import upload
from tests.torture.processes import group_of
from tests.torture.stage import Outcome, Stage, check_database, until

SEARCHERS = 3
SECONDS_OF_TROUBLE = 2.0
RECOVERY_TIMEOUT_SECONDS = 90.0
CORRUPTED_BYTES = 4096


def chroma(stage: Stage) -> Outcome:
    """Search all the time; a document that was deleted is never found again, one that is ready always is."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url)
    server.start()
    upload(server, "lasting.txt", "Geese that stay hiss at night. " * 20)
    server.wait_for_documents()
    server.call("GET", "/api/search?q=geese")
    if not until(lambda: _state(server) == "ready", RECOVERY_TIMEOUT_SECONDS):
        outcome.wrong.append(f"Chroma is {_state(server)}")
        return outcome
    deleted: dict[int, float] = {}
    searches = 0
    over = threading.Event()

    def search() -> None:
        nonlocal searches
        while not over.is_set():
            began = time.monotonic()
            status, found = server.call("GET", "/api/search?q=geese+hiss&limit=20")
            searches += 1
            if status != 200:
                outcome.wrong.append(f"a search was {status}: {found}")
                continue
            ids = {passage["document_id"] for passage in found["passages"]}
            outcome.wrong += [f"document {gone} was found" for gone in ids if deleted.get(gone, began) < began]
            if not ids:
                outcome.lost.append("a search found nothing")

    threads = [threading.Thread(target=search) for _ in range(SEARCHERS)]
    for thread in threads:
        thread.start()
    for number in stage.rounds(1, 40):
        before = _pids(server)
        TROUBLES[number % len(TROUBLES)](stage, server)
        document = upload(server, f"brief{number}.txt", f"Geese number {number} hiss once. " * 20)
        server.wait_for_documents()
        assert document is not None
        _, found = server.call("GET", f"/api/search?q=geese+number+{number}&document_id={document}")
        if not found["passages"]:
            outcome.lost.append(f"document {document} is ready and not found")
        time.sleep(stage.chance.uniform(0, SECONDS_OF_TROUBLE))
        status = server.call("DELETE", f"/api/documents/{document}")[0]
        deleted[document] = time.monotonic()
        if status != 204:
            outcome.wrong.append(f"a deletion was {status}")
        if not until(
            lambda before=before: _state(server) == "ready" and not before & _pids(server),  # type: ignore[misc]
            RECOVERY_TIMEOUT_SECONDS,
        ):
            outcome.wrong.append(f"Chroma is not back {RECOVERY_TIMEOUT_SECONDS:.0f} s after trouble {number}")
        outcome.tried += 1
    over.set()
    for thread in threads:
        thread.join()
    outcome.note = f"{searches} searches meanwhile"
    check_database(server, outcome)
    return outcome


def _state(server: ServerProcess) -> str:
    return str(server.call("GET", "/readyz")[1]["parts"]["chroma"])


def _kill(_stage: Stage, server: ServerProcess) -> None:
    for pid in _pids(server):
        _send(pid, signal.SIGKILL)


def _wedge(_stage: Stage, server: ServerProcess) -> None:
    """Stop Chroma's process without ending it, and end it a little later."""
    for pid in _pids(server):
        _send(pid, signal.SIGSTOP)
        threading.Timer(SECONDS_OF_TROUBLE, _send, (pid, signal.SIGKILL)).start()


def _corrupt(stage: Stage, server: ServerProcess) -> None:
    """Write random bytes into Chroma's largest file, and kill its process."""
    until(lambda: bool(_files(server)), RECOVERY_TIMEOUT_SECONDS)  # It may just be made anew.
    largest = max(_files(server), key=lambda path: path.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(stage.chance.randrange(max(1, largest.stat().st_size)))
        file.write(stage.chance.randbytes(CORRUPTED_BYTES))
    _kill(stage, server)


def _empty(stage: Stage, server: ServerProcess) -> None:
    """Empty all of Chroma's files, and kill its process."""
    for path in _files(server):
        path.write_bytes(b"")
    _kill(stage, server)


TROUBLES: tuple[Callable[[Stage, ServerProcess], None], ...] = (_kill, _wedge, _corrupt, _empty)


def _files(server: ServerProcess) -> list[Path]:
    return [path for path in (server.data / "chroma").rglob("*") if path.is_file()]


def _send(pid: int, number: int) -> None:
    """Send a signal to Chroma, if it is still that."""
    if "chroma" in _command(pid):
        os.kill(pid, number)


def _pids(server: ServerProcess) -> set[int]:
    """Return the processes of ``chroma run``."""
    return {pid for pid in group_of(server) if "chroma\0run" in _command(pid)}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
