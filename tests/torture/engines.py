"""Chroma killed, held, corrupted and robbed while documents come, go and are searched; servers killed as they start."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.testkit.server_process import ServerProcess
from tests.torture.kills import upload
from tests.torture.processes import group_of
from tests.torture.stage import Outcome, Stage, check_database, until

SEARCHERS = 3
SECONDS_OF_TROUBLE = 2.0
RECOVERY_TIMEOUT_SECONDS = 90.0
CORRUPTED_BYTES = 4096
# Somebody else who opens the folder beside us, and deletes every vector, or adds one.
STRANGER = """
import sys, chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], Settings(anonymized_telemetry=False))
for collection in client.list_collections():
    ids = collection.get(include=[])["ids"]
    collection.delete(ids=ids) if sys.argv[2] == "delete" else collection.add(ids=["777777"], embeddings=[[1.0] * 384])
"""
FIRST_SECONDS = 5.0
MAX_SECONDS_TO_END = 5.0


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
        ends = TROUBLES[number % len(TROUBLES)] not in LASTING
        if not until(
            lambda before=before, ends=ends: (  # type: ignore[misc]
                _state(server) == "ready" and not (ends and before & _pids(server))
            ),
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


def _hold(_stage: Stage, server: ServerProcess) -> None:
    """Stop Chroma's process, and let it go on a little later."""
    for pid in _pids(server):
        _send(pid, signal.SIGSTOP)
        threading.Timer(SECONDS_OF_TROUBLE, _send, (pid, signal.SIGCONT)).start()


def _rob(_stage: Stage, server: ServerProcess) -> None:
    _as_stranger(server, "delete")


def _foist(_stage: Stage, server: ServerProcess) -> None:
    _as_stranger(server, "add")


def _as_stranger(server: ServerProcess, what: str) -> None:
    subprocess.run(
        [sys.executable, "-c", STRANGER, str(server.data / "chroma"), what], check=False, capture_output=True
    )


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


TROUBLES: tuple[Callable[[Stage, ServerProcess], None], ...] = (
    *(_kill, _wedge, _corrupt, _empty),
    *(_hold, _rob, _foist),
)
LASTING = (_hold, _rob, _foist)


def starts(stage: Stage) -> Outcome:
    """Kill a server, and it alone, at a moment of its first seconds: none of its processes may outlive it."""
    outcome, stub = Outcome(), stage.echo()
    server = stage.server(stub.url, {"INDEX_DELAY": "0.5"})
    server.start()
    upload(server, "lasting.txt", "Geese that stay hiss at night. " * 20)
    server.wait_for_documents()
    until(lambda: _state(server) == "ready", RECOVERY_TIMEOUT_SECONDS)
    opened = 0
    for number in stage.rounds(4, 200):
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        if not until(lambda: not _alive(server), MAX_SECONDS_TO_END):
            outcome.wrong.append(f"{_alive(server)} outlived their server")
        server.launch()
        if number % 2:  # The other half of the moments is counted from the start of its index.
            until(lambda: bool(_pids(server)), RECOVERY_TIMEOUT_SECONDS)
        end = time.monotonic() + stage.chance.uniform(0, FIRST_SECONDS)
        while time.monotonic() < end:
            time.sleep(0.02)
            owners = _owners(server)
            opened = max(opened, len(owners))
            if len(owners) > 1:
                outcome.wrong.append(f"{owners} have the folder open")
        outcome.tried += 1
    server.wait_until_ready()
    if not until(lambda: _state(server) == "ready", RECOVERY_TIMEOUT_SECONDS):
        outcome.wrong.append(f"Chroma is {_state(server)}")
    if (server.data / "chroma-broken").exists():
        outcome.lost.append("a healthy folder was put aside")
    if not server.call("GET", "/api/search?q=geese")[1]["passages"]:
        outcome.lost.append("a search found nothing")
    outcome.note = f"{opened} process at most had the folder open"
    check_database(server, outcome)
    return outcome


def _files(server: ServerProcess) -> list[Path]:
    return [path for path in (server.data / "chroma").rglob("*") if path.is_file()]


def _send(pid: int, number: int) -> None:
    """Send a signal to Chroma, if it is still that."""
    if "chroma" in _command(pid):
        os.kill(pid, number)


def _pids(server: ServerProcess) -> set[int]:
    """Return the processes that hold the index."""
    return {pid for pid in group_of(server) if "chroma_process" in _command(pid)}


def _alive(server: ServerProcess) -> list[str]:
    """Return what still runs of a server's processes."""
    return [command for pid in group_of(server) if (command := _command(pid))]


def _owners(server: ServerProcess) -> set[str]:
    """Return the processes, whosever they are, that have Chroma's database open."""
    path, owners = str(server.data / "chroma" / "chroma.sqlite3"), set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                owners |= {process.name for one in process.joinpath("fd").iterdir() if str(one.readlink()) == path}
    return owners


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
