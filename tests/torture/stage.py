"""What a fault works with, and what it reports."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from deploy.cluster.cluster import Cluster
from deploy.cluster.proxy import ProxyMissing
from rag_assistant.storage.database import Database, sqlite_url
from tests.testkit.s3_server import S3Missing
from tests.testkit.server_fork import ServerFork
from tests.testkit.server_process import Launch, ServerProcess
from tests.torture.echo import Echo

T = TypeVar("T")

PROGRESS_INTERVAL_SECONDS = 5.0
POLL_INTERVAL_SECONDS = 0.02
MAX_RESTART_SECONDS = 5.0
MAX_SHOWN = 5
# A lease of 15 s, a beat, and a look.
MAX_SECONDS_TO_GO_ON = 20.0
COMMON = {"OPENAI_MODEL": "stub-model", "QUERY_REWRITING": "off", "LOG_LEVEL": "WARNING"}
# What a short form does not wait for.
SOON = {"LEASE_SECONDS": "4", "DRAIN_SECONDS": "2.5"}


class Skipped(Exception):
    """This machine lacks what a fault needs."""


@dataclass
class Outcome:
    """How often something was tried, and what was not as it must be, each in words."""

    tried: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def good(self) -> bool:
        """Whether everything was as it must be, and something was tried at all."""
        return self.tried > 0 and not (self.lost or self.doubled or self.wrong)

    def told(self) -> str:
        """Return what went wrong, a few of each kind."""
        kinds = {"lost": self.lost, "doubled": self.doubled, "wrong": self.wrong}
        return "\n".join(f"{kind}: {one}" for kind, all_of in kinds.items() for one in all_of[:MAX_SHOWN])


class Stage:
    """A folder, servers that end with it, chance from a seed, and how much is to be done."""

    def __init__(self, fork: ServerFork, folder: Path, seed: int, size: Literal["short", "full"]) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self._fork = fork
        self.is_full = size == "full"
        self._ends = ExitStack()
        self._shown = time.monotonic()
        self._servers = 0

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def count(self, short: int, full: int) -> int:
        """Return how often to try."""
        return full if self.is_full else short

    def rounds(self, short: int, full: int) -> Iterator[int]:
        """Count up to how often to try, and show how far that is."""
        of = self.count(short, full)
        for number in range(of):
            if sys.stderr.isatty() and time.monotonic() - self._shown > PROGRESS_INTERVAL_SECONDS:
                self._shown = time.monotonic()
                sys.stderr.write(f"\r{number} of {of} ")
                sys.stderr.flush()
            yield number

    def echo(self, seconds_between: float = 0.0) -> Echo:
        """Start a model that ends with the stage."""
        stub = Echo(seconds_between)
        self.at_end(stub.close)
        return stub

    def enter(self, made: AbstractContextManager[T]) -> T:
        """Enter a context that is left when the stage ends."""
        return self._ends.enter_context(made)

    def at_end(self, action: Callable[[], object]) -> None:
        """Do something when the stage ends."""
        self._ends.callback(action)

    def cluster(
        self, url: str, settings: Mapping[str, str] = MappingProxyType({}), *, launch: Launch | None = None
    ) -> Cluster:
        """Start a cluster that asks a model at ``url`` and ends with the stage. Leases are short in a short form."""
        own = COMMON if self.is_full else COMMON | SOON
        try:
            made = Cluster(
                self.folder,
                {"OPENAI_BASE_URL": url} | own | dict(settings),
                launch=launch or self._fork.launch,
                careless=True,
            )
        except (ProxyMissing, S3Missing, ImportError) as missing:
            raise Skipped(str(missing)) from missing
        self.at_end(made.stop)
        made.start()
        return made

    def server(
        self,
        url: str,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        folder: Path | None = None,
        launch: Launch | None = None,
    ) -> ServerProcess:
        """Return a server that asks a model at ``url``, in a folder of its own if none is given."""
        if folder is None:
            self._servers += 1
            folder = self.folder / f"server{self._servers}"
            folder.mkdir()
        given = {"OPENAI_BASE_URL": url} | COMMON | dict(settings)
        server = ServerProcess(folder, launch or self._fork.launch, **given)
        self.at_end(lambda: end(server))
        return server

    def victim(self, url: str) -> ServerProcess:
        """Return a server that asks a model at ``url`` and is going to be killed."""
        return self.server(url)


def end(server: ServerProcess) -> None:
    """Kill a server that still runs."""
    if server.process is not None and server.process.poll() is None:
        server.kill()


def start_again(server: ServerProcess, outcome: Outcome) -> None:
    """Start a server after a kill, which must not take long."""
    seconds = server.start()
    if seconds > MAX_RESTART_SECONDS:
        outcome.wrong.append(f"answered {seconds:.1f} s after a start")


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition, and return whether it came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_INTERVAL_SECONDS)
    return True


def rows(server: ServerProcess, query: str) -> list[tuple[Any, ...]]:
    """Return what is in a server's database."""
    database = Database(server.environment.get("DATABASE_URL") or sqlite_url(server.data))
    try:
        with database.read() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]
    finally:
        database.close()


def check_database(server: ServerProcess, outcome: Outcome) -> None:
    """Look for questions that are there twice, for turns in no definite state, and for damage."""
    for question, times in rows(
        server, "SELECT content, COUNT(*) FROM messages WHERE role = 'user' GROUP BY content HAVING COUNT(*) > 1"
    ):
        outcome.doubled.append(f"{times} times: {question}")
    running = "SELECT id FROM turns WHERE status = 'running'"
    if on_postgresql := "DATABASE_URL" in server.environment:
        # What could not be kept while the database was away is kept a moment after it is back.
        until(lambda: not rows(server, running), MAX_SECONDS_TO_GO_ON)
    outcome.wrong += [f"turn {turn_id} is running" for (turn_id,) in rows(server, running)]
    if not on_postgresql and (damage := rows(server, "PRAGMA integrity_check")) != [("ok",)]:
        outcome.wrong.append(f"integrity_check: {damage}")
