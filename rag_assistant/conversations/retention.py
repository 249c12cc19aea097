"""What goes away by itself: conversations that nobody used for ``retention_days``, and what was long in the trash."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from rag_assistant.records import Conversation, ListedConversation
from rag_assistant.records.errors import ConversationBusy, ConversationNotFound, NotInTrash
from rag_assistant.runtime.job_queue import Heartbeat
from rag_assistant.settings.schema import Settings
from rag_assistant.storage.conversations.conversations import ConversationManager
from rag_assistant.storage.conversations.erasing import TurnEraser

log = logging.getLogger(__name__)

LOOK_INTERVAL_SECONDS = 60.0


def trash_date(conversation: Conversation | ListedConversation, retention_days: int | None) -> datetime | None:
    """Return when a conversation that nobody uses until then moves to the trash; ``None`` if it does not."""
    return (
        None if retention_days is None or conversation.pinned else conversation.updated_at + timedelta(retention_days)
    )


def used_since(retention_days: int | None) -> datetime | None:
    """Return since when what is not to move to the trash was used; ``None`` if nothing moves there."""
    return None if retention_days is None else datetime.now(UTC) - timedelta(days=retention_days)


class Retention:
    """Moves old conversations to the trash, and erases those there, while ``retention_days`` says so."""

    def __init__(
        self, conversations: ConversationManager, eraser: TurnEraser, settings: Callable[[], Settings]
    ) -> None:
        self._conversations = conversations
        self._eraser = eraser
        self._settings = settings
        self._look = Heartbeat(self.look, LOOK_INTERVAL_SECONDS)

    def start(self) -> None:
        """Look again and again."""
        self._look.start()

    def look(self) -> None:
        """Do what is due. Without ``retention_days`` nothing is: then the trash is emptied by people alone."""
        settings, moment = self._settings(), datetime.now(UTC)
        if (since := used_since(settings.retention_days)) is None:
            return
        try:
            # What another process was quicker with, or somebody uses now, is left alone.
            for conversation_id in self._conversations.unused_since(since):
                with suppress(ConversationNotFound):
                    self._conversations.delete(conversation_id)
                    log.info("Conversation %s was moved to the trash: nobody used it.", conversation_id)
            for conversation_id in self._conversations.trashed_before(moment - timedelta(days=settings.trash_days)):
                with suppress(ConversationNotFound, ConversationBusy, NotInTrash):
                    self._eraser.erase_conversation(conversation_id, in_trash=True)
                    log.info("Conversation %s was erased from the trash.", conversation_id)
        except Exception:
            log.exception("Which conversations are old is looked at again in %g s", LOOK_INTERVAL_SECONDS)

    def close(self) -> None:
        """End."""
        self._look.stop()
