"""Where ``ask`` and ``chat`` ask: on the data of this machine, or a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from rag_assistant.cli.remote import RemoteFailed, RemoteServer
from rag_assistant.cli.remote_answer import RemoteAnswer
from rag_assistant.conversations.commands import CommandResult, run_command
from rag_assistant.records import Event, Question, Unset
from rag_assistant.records.errors import OverflowDecisionNeeded

if TYPE_CHECKING:
    from rag_assistant.services import Services


class ChatBackend(Protocol):
    """What a terminal needs for talking. Raises AssistantError here, RemoteFailed elsewhere."""

    def opened(self) -> AbstractContextManager[None]:
        """Get ready to answer."""

    def begin(self, conversation_id: int | None) -> str | None:
        """Begin to chat, in a conversation of which the title comes back, or in a new one."""

    def answering(self, question: Question) -> AbstractContextManager[Iterable[Event]]:
        """Ask, and give the events of the answer; Ctrl-C meanwhile stops it. Raises OverflowDecisionNeeded."""

    def run_command(self, conversation_id: int, text: str) -> CommandResult:
        """Carry out a command such as /history."""

    def remember(self, conversation_id: int, on_overflow: str) -> None:
        """Let a conversation decide by itself from now on what happens to older turns."""


class LocalChat:
    """Asks on the data of this machine."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Get ready to answer."""
        self._services.prepare_to_answer()
        try:
            yield
        finally:
            self._services.close()

    def begin(self, conversation_id: int | None) -> str | None:
        """Return the title of the conversation to go on with."""
        return None if conversation_id is None else self._services.conversations.get(conversation_id).title

    @contextmanager
    def answering(self, question: Question) -> Iterator[Iterable[Event]]:
        """Ask, and give the events of the answer."""
        assistant = self._services.assistant
        turn = assistant.ask(question)
        try:
            yield (event for event in assistant.follow(turn.id) if event is not None)
        except KeyboardInterrupt:
            assistant.stop(turn.id)
            raise

    def run_command(self, conversation_id: int, text: str) -> CommandResult:
        """Carry out a command."""
        return run_command(text, self._services.history_actions, conversation_id)

    def remember(self, conversation_id: int, on_overflow: str) -> None:
        """Keep what a conversation decides by itself."""
        self._services.conversations.change(conversation_id, own={"on_overflow": on_overflow})


class RemoteChat:
    """Asks a server elsewhere."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server

    def opened(self) -> AbstractContextManager[None]:
        """Get ready: there is nothing to be done."""
        return nullcontext()

    def begin(self, conversation_id: int | None) -> str | None:
        """Return the title of the conversation to go on with; find out in any case whether one is let in."""
        if conversation_id is None:
            self._server.call("GET", "/api/conversations?limit=1")
            return None
        return str(self._server.call("GET", f"/api/conversations/{conversation_id}")["title"])

    @contextmanager
    def answering(self, question: Question) -> Iterator[Iterable[Event]]:
        """Ask, and give the events of the answer."""
        body: dict[str, Any] = {"question": question.text}
        body |= {"conversation_id": question.conversation_id} if question.conversation_id is not None else {}
        body |= {"on_overflow": question.on_overflow} if question.on_overflow is not None else {}
        if not isinstance(question.max_history_turns, Unset):
            body["max_history_turns"] = question.max_history_turns
        answer = RemoteAnswer(self._server, body)
        try:
            yield answer
        except KeyboardInterrupt:
            answer.stop()
            raise
        except RemoteFailed as refused:
            if refused.kind == OverflowDecisionNeeded.__name__ and "options" in refused.details:
                raise OverflowDecisionNeeded(refused.message, refused.details) from refused
            raise

    def run_command(self, conversation_id: int, text: str) -> CommandResult:
        """Carry out a command."""
        done = self._server.call("POST", f"/api/conversations/{conversation_id}/commands", {"command": text})
        return CommandResult(done["command"], done["text"], done["fold"])

    def remember(self, conversation_id: int, on_overflow: str) -> None:
        """Keep what a conversation decides by itself."""
        self._server.call("PATCH", f"/api/conversations/{conversation_id}", {"on_overflow": on_overflow})
