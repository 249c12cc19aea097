"""Automatic deletion: conversations unused for ``retention_days``, perhaps a project's, and old ones in the trash."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from rag_assistant.conversations.window import decided
from rag_assistant.records import Conversation, ListedConversation
from rag_assistant.records.errors import ConversationBusy, ConversationNotFound, NotInTrash
from rag_assistant.runtime.job_queue import Heartbeat
from rag_assistant.runtime.steady_clock import SteadyClock
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.projects import ProjectStore

log = logging.getLogger(__name__)

LOOK_INTERVAL_SECONDS = 60.0


def trash_date(conversation: Conversation | ListedConversation, settings: Settings) -> datetime | None:
    """Return when an unused conversation moves to the trash; ``None`` if it doesn't."""
    days = decided("retention_days", conversation, getattr(conversation, "project", None), settings)
    return None if days is None or conversation.pinned else conversation.updated_at + timedelta(days)


def used_since(retention_days: int | None) -> datetime | None:
    """Return the oldest last use that isn't moved to the trash; ``None`` if nothing is."""
    return None if retention_days is None else datetime.now(UTC) - timedelta(days=retention_days)


class Retention:
    """Moves old conversations to the trash, and erases those there, while ``retention_days`` says so."""

    def __init__(
        self,
        conversations: ConversationManager,
        projects: ProjectStore,
        eraser: TurnEraser,
        settings: Callable[[], Settings],
    ) -> None:
        self._conversations = conversations
        self._projects = projects
        self._eraser = eraser
        self._settings = settings
        self._clock = SteadyClock()
        self._look = Heartbeat(self.look, LOOK_INTERVAL_SECONDS)

    def start(self) -> None:
        """Start checking regularly."""
        self._look.start()

    def look(self) -> None:
        """Do what is due. Without ``retention_days`` in the settings only people empty the trash."""
        settings, moment = self._settings(), self._clock.now()
        if moment is None:
            return
        try:
            days = {one.id: decided("retention_days", one, settings) for one in self._projects.all()}
            since = used_since(settings.retention_days)
            in_projects = {number: used_since(own) for number, own in days.items() if own != settings.retention_days}
            if since is None and not in_projects:
                return
            # What another process has handled, or somebody uses now, is left alone.
            for conversation_id in self._conversations.unused_since(since, in_projects):
                with suppress(ConversationNotFound):
                    self._conversations.delete(conversation_id)
                    log.info("Conversation %s was moved to the trash: nobody used it.", conversation_id)
            if since is None:
                return
            for conversation_id in self._conversations.trashed_before(moment - timedelta(days=settings.trash_days)):
                with suppress(ConversationNotFound, ConversationBusy, NotInTrash):
                    self._eraser.erase_conversation(conversation_id, in_trash=True)
                    log.info("Conversation %s was erased from the trash.", conversation_id)
        except Exception:
            log.exception("Which conversations are old is looked at again in %g s", LOOK_INTERVAL_SECONDS)

    def close(self) -> None:
        self._look.stop()
