"""This process among those on the same database: its name, its lease, and what it takes over; and its chores."""

import logging
import threading
from collections.abc import Callable

from msgspec import Struct, field

from rag_assistant.answering.assistant import Assistant
from rag_assistant.conversations.retention import Retention
from rag_assistant.documents.processing import DocumentProcessing
from rag_assistant.records.errors import StorageFailed
from rag_assistant.runtime.background import Heartbeat
from rag_assistant.runtime.data_dir import Disk
from rag_assistant.storage.processes import BEAT_INTERVAL_SECONDS, Leases, ProcessKind, Signals
from rag_assistant.storage.scheduled_backups import ScheduledBackups

log = logging.getLogger(__name__)


class Membership(Struct):
    """Registers this process, renews its lease, and unregisters it.

    ``take_name`` is called with its name. Only with ``beats`` can others declare it dead, and it them.
    """

    leases: Leases
    signals: Signals
    assistant: Assistant
    processing: DocumentProcessing
    take_name: Callable[[str], None]
    beats: bool
    beating: threading.Lock = field(default_factory=threading.Lock)
    heartbeat: Heartbeat | None = None

    def enter_server(self, kind: ProcessKind) -> None:
        """Register this process, which has locked the data folder: no other server of this installation is alive."""
        self.leases.forget(commands=False)
        self.enter(kind)

    def enter(self, kind: ProcessKind) -> None:
        """Register this process under a new name, and listen for signals."""
        self.take_name(self.leases.enter(kind))
        self.signals.start(self.assistant.stop_here, self.assistant.look_for_stops, self.processing.take_over)
        if self.beats:
            self.heartbeat = Heartbeat(self._beat, BEAT_INTERVAL_SECONDS)
            self.heartbeat.start()

    def hold(self) -> None:
        """Renew the lease, so that what is accepted now isn't taken over at once: this process may have hung."""
        if self.heartbeat is not None and not self.leases.is_held:
            with self.beating:
                if not self.leases.is_held:
                    self._show_life()

    def leave(self) -> None:
        """Let others take over at once what is left."""
        self.signals.close()
        if self.heartbeat is not None:
            self.heartbeat.stop()
        try:
            self.leases.leave()
            self.signals.tell_work()
        except StorageFailed as error:
            log.warning("Other processes will notice only after a while that this one has ended: %s", error)

    def _beat(self) -> None:
        """Renew the lease, and take over what dead processes left."""
        try:
            with self.beating:
                self._show_life()
                if self.leases.bury():
                    self.assistant.recover()
            self.assistant.take_over()
            self.processing.take_over()
        except Exception as error:  # noqa: BLE001 - the next beat tries again
            log.error("The heartbeat could not be written: %s", error)

    def _show_life(self) -> None:
        """Renew the lease; under a new name, if others have declared this process dead."""
        name = self.leases.beat()
        if name is not None:
            self.assistant.give_up_running()
            self.take_name(name)


INTERVAL_SECONDS = 60.0


class Upkeep(Heartbeat):
    """Looks after what is stored; without ``retention``, another process does what is due by age."""

    def __init__(self, disk: Disk, backups: ScheduledBackups, leases: Leases, retention: Retention | None) -> None:
        super().__init__(self.look, INTERVAL_SECONDS)
        self._disk = disk
        self._backups = backups
        self._leases = leases
        self._retention = retention

    def look(self) -> None:
        """Do what is due."""
        if self._retention is not None:
            self._retention.look()
        try:
            self._disk.watch()
            if self._leases.is_first_worker:
                self._backups.run_if_due()
            self._backups.last_status = self._backups.status()
        except (StorageFailed, OSError) as error:
            log.error("The disk, or whether a backup is due, could not be looked at: %s", error)
