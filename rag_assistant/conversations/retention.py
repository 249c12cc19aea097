"""Automatic deletion: conversations unused for ``retention_days``, perhaps a project's, and old ones in the trash."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from rag_assistant.conversations.window import decided
from rag_assistant.records import Conversation, ListedConversation
from rag_assistant.records.errors import ConversationBusy, ConversationNotFound, NotInTrash
from rag_assistant.runtime.background import SteadyClock
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser
from rag_assistant.storage.conversations.projects import ProjectStore

log = logging.getLogger(__name__)


def trash_date(conversation: Conversation | ListedConversation, settings: Settings) -> datetime | None:
    """Return when an unused conversation moves to the trash; ``None`` if it doesn't."""
    days = decided("retention_days", conversation, getattr(conversation, "project", None), settings)
    return None if days is None or conversation.pinned else conversation.updated_at + timedelta(days)


def used_since(retention_days: int | None) -> datetime | None:
    """Return the oldest last use that isn't moved to the trash; ``None`` if nothing is."""
    return None if retention_days is None else datetime.now(UTC) - timedelta(days=retention_days)


class Retention(Struct, frozen=True):
    """Moves old conversations to the trash, and erases those there, while ``retention_days`` says so."""

    conversations: ConversationManager
    projects: ProjectStore
    eraser: TurnEraser
    settings: Callable[[], Settings]
    clock: SteadyClock = field(default_factory=SteadyClock)

    def look(self) -> None:
        """Do what is due. Without ``retention_days`` in the settings only people empty the trash."""
        settings, moment = self.settings(), self.clock.now()
        if moment is None:
            return
        try:
            days = {one.id: decided("retention_days", one, settings) for one in self.projects.all()}
            since = used_since(settings.retention_days)
            in_projects = {number: used_since(own) for number, own in days.items() if own != settings.retention_days}
            if since is None and not in_projects:
                return
            # What another process has handled, or somebody uses now, is left alone.
            for conversation_id in self.conversations.unused_since(since, in_projects):
                with suppress(ConversationNotFound):
                    self.conversations.delete(conversation_id)
                    log.info("Conversation %s was moved to the trash: nobody used it.", conversation_id)
            if since is None:
                return
            for conversation_id in self.conversations.trashed_before(moment - timedelta(days=settings.trash_days)):
                with suppress(ConversationNotFound, ConversationBusy, NotInTrash):
                    self.eraser.erase_conversation(conversation_id, in_trash=True)
                    log.info("Conversation %s was erased from the trash.", conversation_id)
        except Exception:
            log.exception("Which conversations are old is looked at again in a minute")
