"""A question as it was asked: what is searched for it, and how it is answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.records.base import UNSET, Unset


class Scope(Struct, frozen=True):
    """Which documents are searched: those named, or of a library named, with one of the tags; an empty part leaves all.

    Where one of the named is the newer version of another, it is not searched before it has taken that one's place.
    """

    document_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    library_ids: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.document_ids or self.tags or self.library_ids)

    def as_dict(self) -> dict[str, list[Any]] | None:
        """Return the scope as it is kept and shown, ``None`` where it leaves all documents."""
        return {name: list(getattr(self, name)) for name in SCOPE_FIELDS} if self else None

    def holds(self, document_id: int, tags: Iterable[str], library_id: int | None) -> bool:
        """Tell whether a document with these tags is one of those that are searched."""
        named = document_id in self.document_ids or library_id in self.library_ids
        return (named or not (self.document_ids or self.library_ids)) and (
            not self.tags or bool(set(self.tags) & set(tags))
        )


EVERYTHING = Scope()
SCOPE_FIELDS = Scope.__struct_fields__
AnswerMode = Literal["documents", "tools", "plain"]
ConversationSearch = Literal["off", "project", "mine"]


class AnswerOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a caller wants of one answer; ``None`` leaves it to the settings.

    ``mode``: the documents are searched for the question, or the model searches with tools, or neither.
    ``instructions`` are told the model behind ours. ``fields`` go to its endpoint as they are: ``tools`` whose calls
    the caller carries out, ``response_format``, ``stop`` and the like.
    """

    mode: AnswerMode | None = None
    instructions: str | None = None
    max_answer_tokens: int | None = None
    temperature: float | None = None
    history_token_budget: int | None = None
    tool_iterations_keep: int | None = None
    search_conversations: ConversationSearch | None = None
    notes: bool | None = None
    fields: dict[str, Any] | None = None


AS_SET = AnswerOptions()


class Question(Struct, frozen=True):
    """One question as a caller asked it, checked for form but not yet accepted."""

    text: str
    conversation_id: int | None = None
    max_history_turns: int | Unset | None = UNSET
    # Nothing said: what the conversation is about.
    scope: Scope | Unset = UNSET
    # In which project a new conversation is made. One that is there must be in it.
    project_id: int | None = None
    idempotency_key: str | None = None
    # What to do if turns would be left out; None: as the conversation or the settings say.
    on_overflow: str | None = None
    # The turn whose question "shall I?" this one answers with yes or no.
    confirms_turn: int | None = None
    # The turn whose question this one is in other words: it is asked in a branch that goes off before that turn.
    edits_turn: int | None = None
    # Whether a person asked it, on the page or in a terminal, and not a program.
    interactive: bool = False
    options: AnswerOptions = AS_SET
    # Pictures beside the question, as data URLs.
    images: tuple[str, ...] = ()
