"""This process among those that share a database: how it is called there, that it lives, and what it takes over."""

import logging
import threading
from collections.abc import Callable

from rag_assistant.answering.assistant import Assistant
from rag_assistant.documents.library import Library
from rag_assistant.records.errors import StorageFailed
from rag_assistant.runtime.job_queue import Heartbeat
from rag_assistant.storage.leases import BEAT_INTERVAL_SECONDS, Leases, ProcessKind
from rag_assistant.storage.signals import Signals

log = logging.getLogger(__name__)


class Membership:
    """Enters this process, beats for it, and lets it go.

    ``take_name`` is told under which name its work goes. With ``beats`` others may take it for dead, and it them.
    """

    def __init__(
        self,
        leases: Leases,
        signals: Signals,
        assistant: Assistant,
        library: Library,
        take_name: Callable[[str], None],
        *,
        beats: bool,
    ) -> None:
        self._leases = leases
        self._signals = signals
        self._assistant = assistant
        self._library = library
        self.take_name = take_name
        self._beating = threading.Lock()
        self._beats = beats
        self._heartbeat: Heartbeat | None = None

    @property
    def has_worker(self) -> bool:
        """Whether somebody works on documents."""
        return self._leases.has_worker

    def forget_commands(self) -> None:
        """Take off the commands of this installation, of which a lock says that none runs."""
        self._leases.forget(commands=True)

    def enter_server(self, kind: ProcessKind) -> None:
        """Enter this process, which has locked the data folder: no other server of this installation lives."""
        self._leases.forget(commands=False)
        self.enter(kind)

    def enter(self, kind: ProcessKind) -> None:
        """Enter this process under a name that nobody had before, and hear what others tell it."""
        self.take_name(self._leases.enter(kind))
        self._signals.start(self._assistant.stop_here, self._assistant.look_for_stops, self._library.take_over)
        if self._beats:
            self._heartbeat = Heartbeat(self._beat, BEAT_INTERVAL_SECONDS)
            self._heartbeat.start()

    def hold(self) -> None:
        """See to it that what is accepted now is not taken over at once: this process may have hung for long."""
        if self._heartbeat is not None and not self._leases.is_held:
            with self._beating:
                if not self._leases.is_held:
                    self._show_life()

    def leave(self) -> None:
        """Let others take over at once what is left."""
        self._signals.close()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        try:
            self._leases.leave()
            self._signals.tell_work()
        except StorageFailed as error:
            log.warning("The others see only in a while that this process has ended: %s", error)

    def _beat(self) -> None:
        """Show that this process lives, and take over what others left when they died."""
        try:
            with self._beating:
                self._show_life()
                if self._leases.bury():
                    self._assistant.recover()
            self._assistant.take_over()
            self._library.take_over()
        except Exception as error:  # noqa: BLE001 - the next beat tries again
            log.error("The database does not hear this process: %s", error)

    def _show_life(self) -> None:
        """Beat; under a new name, if the others have taken this process for dead."""
        name = self._leases.beat()
        if name is not None:
            self._assistant.give_up_running()
            self.take_name(name)
