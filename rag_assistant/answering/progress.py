"""An answer on its way: what is known and decided so far, and who follows it. Written by answering.py alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rag_assistant.answering.stream import LiveTurn
from rag_assistant.answering.writer import AnswerKeeper
from rag_assistant.conversations.collaborators import (
    Conversations,
    Documents,
    Endpoint,
    History,
    Models,
    Retriever,
    ToolRunner,
    Turns,
)
from rag_assistant.conversations.model_profile import Choices
from rag_assistant.conversations.window import Moved, Past, Rules, read_past
from rag_assistant.presenters.turns import state_event
from rag_assistant.records import Conversation, Message, RecalledTurn, Turn
from rag_assistant.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Collaborators:
    """Whom an answer needs."""

    conversations: Conversations
    documents: Documents
    turns: Turns
    history: History
    retriever: Retriever
    tools: ToolRunner
    models: Models
    keeper: AnswerKeeper
    settings: Callable[[], Settings]


@dataclass(slots=True)
class Progress:
    """What is known of one answer.

    ``past`` is what was read for the rules, and ``moved`` what a decision for this answer took out of the view.
    ``iterations`` are the messages of its tool calls so far; ``requests`` the bodies that were sent, the newest last.
    ``token_cap`` bounds a request beyond what is set, after the model refused one and did not say what it takes.
    ``rewrite`` is the request by which the model was asked for a query, and what it answered.
    """

    turn: Turn
    live: LiveTurn
    settings: Settings
    conversation: Conversation
    endpoint: Endpoint
    choices: Choices
    rules: Rules
    past: Past | None = None
    moved: Moved | None = None
    recalled: tuple[RecalledTurn, ...] = ()
    has_recalled: bool = False
    iterations: list[Message] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    token_cap: int | None = None
    rewrite: dict[str, Any] | None = None

    def read_past(self, history: History) -> Past:
        """Return what the rules may keep of the past; it is read once."""
        if self.past is None:
            self.past = read_past(history, self.conversation, self.turn.number, self.rules, self.settings, self.moved)
        return self.past

    def say(self, state: str, sentence: str) -> None:
        """Tell who follows what is awaited."""
        self.live.tell_state(state_event(self.turn, state, sentence))

    def note(self, sentence: str) -> None:
        """Put a sentence about how the answer came about beside it."""
        self.turn = replace(self.turn, notes=(*self.turn.notes, sentence))
