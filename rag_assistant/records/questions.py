"""A question with its options."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from rag_assistant.records.base import UNSET, Unset


class Scope(Struct, frozen=True):
    """Which documents are searched: those named or in a named library, with one of the tags; empty parts don't
    restrict.

    A newer version that is named is searched once it has replaced the older one.
    """

    document_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    library_ids: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.document_ids or self.tags or self.library_ids)

    def as_dict(self) -> dict[str, list[Any]] | None:
        """Return the scope as stored and shown, ``None`` if it includes all documents."""
        return {name: list(getattr(self, name)) for name in SCOPE_FIELDS} if self else None

    def holds(self, document_id: int, tags: Iterable[str], library_id: int | None) -> bool:
        """Return whether a document with these tags is in the scope."""
        named = document_id in self.document_ids or library_id in self.library_ids
        return (named or not (self.document_ids or self.library_ids)) and (
            not self.tags or bool(set(self.tags) & set(tags))
        )


EVERYTHING = Scope()
SCOPE_FIELDS = Scope.__struct_fields__
AnswerMode = Literal["documents", "tools", "plain"]
ConversationSearch = Literal["off", "project", "mine"]


class AnswerOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options for one answer; ``None`` uses the settings.

    ``mode``: search for the question, let the model search with tools, or neither. ``instructions`` are added to ours.
    ``fields`` go to the endpoint unchanged: ``tools`` whose calls the caller runs, ``response_format``, ``stop`` and
    the like.
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
    # One of the setting models_offered.
    model: str | None = None

    @property
    def needs_model(self) -> bool:
        """Whether quotes can't answer: the caller has tools or a schema."""
        return not {"tools", "response_format"}.isdisjoint(self.fields or ())


AS_SET = AnswerOptions()


class Question(Struct, frozen=True):
    """One question, checked for form but not yet accepted."""

    text: str
    conversation_id: int | None = None
    max_history_turns: int | Unset | None = UNSET
    # By default, the conversation's scope.
    scope: Scope | Unset = UNSET
    # The project of a new conversation; an existing one must be in it.
    project_id: int | None = None
    idempotency_key: str | None = None
    # What to do if turns would be left out; None: as the conversation or the settings say.
    on_overflow: str | None = None
    # The turn whose confirmation this answers with yes or no.
    confirms_turn: int | None = None
    # The turn whose question this edits: it is asked in a branch before that turn.
    edits_turn: int | None = None
    # Whether a person asked, on the page or in a terminal, and not a program.
    interactive: bool = False
    options: AnswerOptions = AS_SET
    # Pictures attached to the question, as data URLs.
    images: tuple[str, ...] = ()
