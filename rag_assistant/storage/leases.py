"""Which processes live: what one of them works on is its own for as long as it is known here, and nobody's afterwards.

On PostgreSQL each process counts its beats in a row, and the others look whether the count moves. Only that is
compared, never two clocks. On SQLite nobody counts: all processes are on this machine, and the locks of the data
folder tell who lives.
"""

import logging
import uuid
from collections.abc import Mapping
from time import CLOCK_BOOTTIME, clock_gettime, monotonic, sleep
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, insert, select, true, update

from rag_assistant.records.errors import SettingsError
from rag_assistant.settings.agreement import conflict, differences
from rag_assistant.storage.database import Database, Store
from rag_assistant.storage.tables import processes

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
BEAT_INTERVAL_SECONDS = 2.0
# Who has not looked for so long, because the database was away, has not heard the others either.
MAX_PAUSE_SECONDS = 6.0

# A server does everything; a web has no work on documents, and a worker nothing else.
ProcessKind = Literal["server", "web", "worker", "command"]
WORKING: tuple[ProcessKind, ...] = ("server", "worker")
is_working = processes.c.kind.in_(WORKING)


def since_boot() -> float:
    """Return a time in seconds that goes on while the machine sleeps."""
    return clock_gettime(CLOCK_BOOTTIME)


def is_nobodys(owner: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Return the condition that the process in a column is not known any more; a column without one is nobody's."""
    return owner.is_(None) | owner.not_in(select(processes.c.id))


class Leases(Store):
    """Enters this process among those that live, and takes off those that died.

    ``settings`` are compared with those of other servers; see settings/agreement.py.
    """

    def __init__(self, database: Database, installation: str, settings: Mapping[str, Any]) -> None:
        super().__init__(database)
        self._installation = installation
        self._settings = dict(settings)
        self._kind: ProcessKind = "server"
        self._id: str | None = None
        # For each other process its beats, and when they were first seen to be so many.
        self._seen: dict[str, tuple[int, float]] = {}
        self._kinds: set[str] = set()
        self._looked = 0.0
        self._heard = 0.0

    @property
    def has_others(self) -> bool:
        """Whether other processes lived when this one last looked."""
        return bool(self._seen)

    @property
    def has_worker(self) -> bool:
        """Whether somebody worked on documents when this process last looked."""
        return self._kind in WORKING or not self._kinds.isdisjoint(WORKING)

    @property
    def is_held(self) -> bool:
        """Whether this process was heard of so lately that nobody has taken it for dead; it may have hung."""
        return self._database.is_sqlite or since_boot() - self._heard < LEASE_SECONDS

    def enter(self, kind: ProcessKind) -> str:
        """Enter this process under a name that nobody had before, and return it.

        Raises SettingsError if it is a server and does not go with the others. One of them that died meanwhile is told
        by its silence, so that takes the time of a lease.
        """
        self._kind = kind
        end = monotonic() + LEASE_SECONDS + 2 * BEAT_INTERVAL_SECONDS
        while True:
            with self._database.one_at_a_time("enter"):
                others = self._settings_of_others()
                problem = conflict(self._settings, others) if kind != "command" else None
                if problem is None:
                    self._id = self._insert(kind)
                    break
            if monotonic() > end:
                raise SettingsError(problem)
            sleep(BEAT_INTERVAL_SECONDS)
            self.bury()
        for sentence in differences(self._settings, others) if kind != "command" else ():
            log.warning("Servers on one database should have the same settings: %s", sentence)
        self.bury()  # To see who is there.
        return self._id

    def _insert(self, kind: ProcessKind) -> str:
        name, began = uuid.uuid4().hex, since_boot()
        own = {"id": name, "installation": self._installation, "kind": kind, "beats": 0, "settings": self._settings}
        self._commit(insert(processes).values(own))
        self._heard = began
        return name

    def _settings_of_others(self) -> list[dict[str, Any]]:
        """Return the settings of the other servers on PostgreSQL."""
        if self._database.is_sqlite:
            return []
        others = processes.c.kind != "command", processes.c.installation != self._installation
        return self._values(select(processes.c.settings).where(*others))

    def leave(self) -> None:
        """Give up everything that is still ours, so that nobody waits for it."""
        if self._id is not None:
            self._commit(delete(processes).where(processes.c.id == self._id))
            self._id = None

    def forget(self, *, commands: bool) -> None:
        """Take off the commands, or the servers, of this installation, of which a lock says that none lives.

        SQLite's file may have come from another one, by a backup.
        """
        ours = true() if self._database.is_sqlite else processes.c.installation == self._installation
        dead = processes.c.kind == "command" if commands else processes.c.kind != "command"
        self._commit(delete(processes).where(ours, dead))

    def beat(self) -> str | None:
        """Say that this process lives. If the others have taken it for dead, enter it anew and return its new name."""
        began = since_boot()
        if self._commit(update(processes).where(processes.c.id == self._id).values(beats=processes.c.beats + 1)):
            self._heard = began
            return None
        log.error("This process was not heard of for %g seconds; what it worked on was given up.", LEASE_SECONDS)
        return self.enter(self._kind)

    def bury(self) -> int:
        """Take off the other processes whose beats have not moved for the time of a lease, and return how many."""
        others = self._rows(select(processes).where(processes.c.id != self._id))
        self._kinds = {other["kind"] for other in others}
        now = monotonic()
        if now - self._looked > MAX_PAUSE_SECONDS:
            self._seen = {}
        self._looked = now
        seen = {other["id"]: (other["beats"], now) for other in others}
        for name, before in self._seen.items():
            if name in seen and seen[name][0] == before[0]:
                seen[name] = before
        self._seen, buried = seen, 0
        for name, (beats, since) in seen.items():
            silent = processes.c.id == name, processes.c.beats == beats
            if now - since >= LEASE_SECONDS and self._commit(delete(processes).where(*silent)):
                buried += 1
                silence = "Process %s has been silent for %g seconds; others take over its work."
                log.warning(silence, name, LEASE_SECONDS)
        return buried
