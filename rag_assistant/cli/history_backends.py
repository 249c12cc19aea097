"""Where ``history`` looks: at the conversations of this machine, or of a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from rag_assistant.cli.remote import RefusedThere, RemoteServer
from rag_assistant.conversations.commands import run_command
from rag_assistant.presenters.conversations import conversation_data
from rag_assistant.presenters.export import as_json, as_markdown
from rag_assistant.presenters.turns import receipt_data, turn_data
from rag_assistant.records.errors import ConversationDeleted

if TYPE_CHECKING:
    from datetime import datetime

    from rag_assistant.services import Services


class HistoryBackend(Protocol):
    """What a terminal shows of conversations, as the API has it. Raises AssistantError here, RemoteFailed elsewhere."""

    def conversations(self) -> Iterator[dict[str, Any]]:
        """Yield the conversations, most recent first."""

    def title(self, conversation_id: int) -> str | None:
        """Return the title of a conversation, ``None`` while it is in the trash."""

    def in_words(self, conversation_id: int) -> str:
        """Return what is saved, and what the model would see next."""

    def newest_turns(self, conversation_id: int, count: int) -> list[dict[str, Any]]:
        """Return the newest turns, oldest first."""

    def turn(self, turn_id: int) -> dict[str, Any]:
        """Return a turn."""

    def exported(self, conversation_id: int, format_name: str) -> Iterable[str]:
        """Yield a conversation as a file, in pieces."""

    def receipt(self, turn_id: int) -> dict[str, Any]:
        """Return the receipt of a turn."""

    def erase(self, turn_id: int) -> dict[str, Any]:
        """Erase a turn permanently, and return what is left of it."""

    def purge(self, conversation_id: int) -> None:
        """Erase a conversation permanently."""


class LocalHistory:
    """Looks at the conversations of this machine."""

    def __init__(self, services: Services) -> None:
        services.prepare()
        self._services = services

    def conversations(self) -> Iterator[dict[str, Any]]:
        """Yield the conversations, most recent first."""
        before: tuple[datetime, int] | None = None
        while found := self._services.conversations.page(100, before):
            before = (found[-1].updated_at, found[-1].id)
            yield from map(conversation_data, found)

    def title(self, conversation_id: int) -> str | None:
        """Return the title of a conversation, ``None`` while it is in the trash."""
        try:
            return self._services.conversations.get(conversation_id).title
        except ConversationDeleted:
            return None

    def in_words(self, conversation_id: int) -> str:
        """Return what is saved, and what the model would see next."""
        return run_command("/history", self._services.history_actions, conversation_id).text

    def newest_turns(self, conversation_id: int, count: int) -> list[dict[str, Any]]:
        """Return the newest turns, oldest first."""
        return [turn_data(turn) for turn in self._services.turns.page(conversation_id, count)]

    def turn(self, turn_id: int) -> dict[str, Any]:
        """Return a turn."""
        return turn_data(self._services.turns.get(turn_id))

    def exported(self, conversation_id: int, format_name: str) -> Iterable[str]:
        """Yield a conversation as a file, in pieces."""
        found = self._services.conversations.get(conversation_id)
        write = as_markdown if format_name == "markdown" else as_json
        return write(found, self._services.turns.every(conversation_id), self._services.versions.all)

    def receipt(self, turn_id: int) -> dict[str, Any]:
        """Return the receipt of a turn."""
        return receipt_data(self._services.turns.get(turn_id), self._services.turns.receipt(turn_id))

    def erase(self, turn_id: int) -> dict[str, Any]:
        """Erase a turn permanently, and return what is left of it."""
        return turn_data(self._services.eraser.erase(turn_id))

    def purge(self, conversation_id: int) -> None:
        """Erase a conversation permanently."""
        self._services.conversations.purge(conversation_id)


class RemoteHistory:
    """Looks at the conversations of whoever a token is for, on a server elsewhere."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server

    def conversations(self) -> Iterator[dict[str, Any]]:
        """Yield the conversations, most recent first."""
        return self._server.pages("/api/conversations?limit=100", "conversations")

    def title(self, conversation_id: int) -> str | None:
        """Return the title of a conversation, ``None`` while it is in the trash."""
        try:
            return str(self._server.call("GET", f"/api/conversations/{conversation_id}")["title"])
        except RefusedThere as refused:
            if refused.kind == ConversationDeleted.__name__:
                return None
            raise

    def in_words(self, conversation_id: int) -> str:
        """Return what is saved, and what the model would see next."""
        body = {"command": "/history"}
        return str(self._server.call("POST", f"/api/conversations/{conversation_id}/commands", body)["text"])

    def newest_turns(self, conversation_id: int, count: int) -> list[dict[str, Any]]:
        """Return the newest turns, oldest first."""
        path = f"/api/conversations/{conversation_id}/turns?limit={count}"
        turns: list[dict[str, Any]] = self._server.call("GET", path)["turns"]
        return turns

    def turn(self, turn_id: int) -> dict[str, Any]:
        """Return a turn."""
        turn: dict[str, Any] = self._server.call("GET", f"/api/turns/{turn_id}")
        return turn

    def exported(self, conversation_id: int, format_name: str) -> Iterable[str]:
        """Yield a conversation as a file, in pieces."""
        return self._server.text(f"/api/conversations/{conversation_id}/export?format={format_name}")

    def receipt(self, turn_id: int) -> dict[str, Any]:
        """Return the receipt of a turn."""
        receipt: dict[str, Any] = self._server.call("GET", f"/api/turns/{turn_id}/receipt")
        return receipt

    def erase(self, turn_id: int) -> dict[str, Any]:
        """Erase a turn permanently, and return what is left of it."""
        erased: dict[str, Any] = self._server.call("DELETE", f"/api/turns/{turn_id}?permanently=1")
        return erased

    def purge(self, conversation_id: int) -> None:
        """Erase a conversation permanently."""
        self._server.call("POST", f"/api/conversations/{conversation_id}/purge", {})
