"""A disk that is full or fails at random moments: a refusal with a reason, and all is well afterwards."""

import contextlib
import resource
import subprocess
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.testkit.server_process import ServerProcess
from tests.torture.asking import Asked, ask_all, check_all
from tests.torture.kills import upload
from tests.torture.processes import group_of
from tests.torture.stage import Outcome, Skipped, Stage, check_database, rows, until

SIZE = "40m"
CLIENTS = 6
SECONDS_BETWEEN_WORDS = 0.01
MAX_SECONDS_BEFORE = 0.4
MAX_SECONDS_OF_TROUBLE = 1.5
RECOVERY_TIMEOUT_SECONDS = 40.0
UNLIMITED = resource.RLIM_INFINITY

Trouble = Callable[[ServerProcess], AbstractContextManager[None]]


def full(stage: Stage) -> Outcome:
    """Fill a small disk to its last byte while questions and documents come in."""
    folder = stage.enter(small_disk(stage.folder / "disk"))

    @contextmanager
    def filled(_server: ServerProcess) -> Iterator[None]:
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1_000_000, 1000, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size) == size:
                        pass
        try:
            yield
        finally:
            filler.unlink()

    return _trouble(stage, folder, filled, 30)


def failing(stage: Stage) -> Outcome:
    """Let every write of the server fail that makes a file longer."""
    folder = stage.folder / "disk"
    folder.mkdir()

    @contextmanager
    def forbidden(server: ServerProcess) -> Iterator[None]:
        processes = group_of(server)
        for pid in processes:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, UNLIMITED))
        try:
            yield
        finally:
            for pid in set(processes) & set(group_of(server)):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))

    return _trouble(stage, folder, forbidden, 30)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a small disk in memory. Raises Skipped where nothing may be mounted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=False, capture_output=True
    )
    if mounted.returncode:
        raise Skipped("no small disk may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _trouble(stage: Stage, folder: Path, trouble: Trouble, times: int) -> Outcome:
    outcome, stub = Outcome(), stage.echo(SECONDS_BETWEEN_WORDS)
    server = stage.server(stub.url, folder=folder)
    server.start("/readyz")
    refused = 0
    for number in stage.rounds(2, times):
        asked = [Asked(server, number * CLIENTS + client) for client in range(CLIENTS)]
        statuses: list[int] = []

        def meanwhile(number: int = number, statuses: list[int] = statuses) -> None:
            # An answer that cannot be kept is tried again for minutes, and who asked waits: that ends with the trouble.
            question = {"question": f"Late question {number}"}
            late = threading.Thread(target=lambda: statuses.append(_try(server, "POST", "/api/query", question)))
            time.sleep(stage.chance.uniform(0, MAX_SECONDS_BEFORE))
            with trouble(server):
                late.start()
                statuses += [_try_upload(server, f"late{number}.txt")]
                if (status := _try(server, "GET", "/api/conversations")) != 200:
                    outcome.wrong.append(f"reading was {status}")
                time.sleep(stage.chance.uniform(0, MAX_SECONDS_OF_TROUBLE))
            late.join()

        ask_all(asked, meanwhile)
        outcome.wrong += [f"a write was {status}" for status in statuses if status not in (200, 202, 502, 503, 507)]
        refused += sum(status == 507 for status in statuses)
        if not until(lambda: not _running(server), RECOVERY_TIMEOUT_SECONDS):
            outcome.wrong.append(f"turns {_running(server)} still run after the trouble")
        check_all(asked, stub, outcome)
    outcome.note = f"{refused} writes were refused with 507"
    if refused == 0:
        outcome.wrong.append("nothing was refused, so there was no trouble")
    server.kill()
    server.start("/readyz")
    check_database(server, outcome)
    return outcome


def _running(server: ServerProcess) -> list[int]:
    return [turn_id for (turn_id,) in rows(server, "SELECT id FROM turns WHERE status = 'running'")]


def _try(server: ServerProcess, method: str, path: str, body: object = None) -> int:
    return server.call(method, path, body)[0]


def _try_upload(server: ServerProcess, name: str) -> int:
    try:
        upload(server, name, f"{name} has geese. " * 500)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 202
